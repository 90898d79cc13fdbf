//! Operations that no PTX of ours can do.

use magpie_diag::{Code, Diagnostic};
use magpie_mpir::{MpirFn, Op};

/// A refusal for each instruction that has no form in PTX.
pub(crate) fn refusals(f: &MpirFn) -> Vec<Diagnostic> {
    let refuse = |&i: &magpie_mpir::Inst| {
        let inst = f.inst(i);
        let (why, help) = if inst.op == Op::GpuPrint {
            ("is not available on ptx", "run the kernel on the CPU device to see what it prints")
        } else if inst.op == Op::Call {
            ("of a recursive function is not available on ptx", "write the recursion as a loop")
        } else if matches!(
            inst.op,
            Op::GpuMetalSimdShuffle | Op::GpuMetalSimdSum | Op::GpuMetalSimdPrefixSum
        ) {
            ("exists on msl only", "use the `gpu.subgroup` operations")
        } else {
            return None;
        };
        let message = format!("`{}` {why}", inst.op.name());
        Some(Diagnostic::new(Code::MPG_CORE_1304, inst.span, message).with_help(help))
    };
    f.blocks.iter().flat_map(|b| &b.insts).filter_map(refuse).collect()
}
