//! Operations that no GPU target has, or that only Metal has.

use magpie_diag::{Code, Diagnostic};
use magpie_mpir::{Inst, MpirFn, Op};
use magpie_types::kernel::GpuBackend;

/// A refusal for each instruction that has no form on a target without prints, recursion and, unless
/// it is Metal, Metal's own operations.
pub fn refusals(f: &MpirFn, target: GpuBackend, code: Code) -> Vec<Diagnostic> {
    let is_metal = target == GpuBackend::Msl;
    let target = target.name();
    let refuse = |&i: &Inst| {
        let inst = f.inst(i);
        let (why, help) = if inst.op == Op::GpuPrint {
            (
                format!("is not available on {target}"),
                "run the kernel on the CPU device to see what it prints",
            )
        } else if inst.op == Op::Call {
            (
                format!("of a recursive function is not available on {target}"),
                "write the recursion as a loop",
            )
        } else if !is_metal
            && matches!(
                inst.op,
                Op::GpuMetalSimdShuffle | Op::GpuMetalSimdSum | Op::GpuMetalSimdPrefixSum
            )
        {
            ("exists on msl only".to_string(), "use the `gpu.subgroup` operations")
        } else {
            return None;
        };
        let message = format!("`{}` {why}", inst.op.name());
        Some(Diagnostic::new(code, inst.span, message).with_help(help))
    };
    f.blocks.iter().flat_map(|b| &b.insts).filter_map(refuse).collect()
}
