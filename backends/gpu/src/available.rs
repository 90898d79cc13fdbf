//! Operations that only some targets have.

use magpie_diag::{Code, Diagnostic};
use magpie_mpir::{InstData, MpirFn, Op};
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind, fixed};

/// A refusal for each instruction of a kernel, and of the recursive functions that it carries, that
/// has no form on a target: prints that were not lowered because they are in such a function,
/// recursion where there is no stack, and Metal's own operations elsewhere.
pub fn refusals(f: &MpirFn, types: &TypeCtx, target: GpuBackend, code: Code) -> Vec<Diagnostic> {
    let has_stack = match target {
        GpuBackend::Ptx | GpuBackend::Hip | GpuBackend::Cpu | GpuBackend::Interp => true,
        GpuBackend::Spv | GpuBackend::Msl | GpuBackend::Wgsl => false,
    };
    let name = target.name();
    let refuse = |inst: &InstData| {
        let (why, help) = if inst.op == Op::GpuPrint && target != GpuBackend::Interp {
            (
                format!("in a recursive function is not available on {name}"),
                "print in the kernel itself, or write the recursion as a loop",
            )
        } else if inst.op == Op::Call && !has_stack {
            (
                format!("of a recursive function is not available on {name}"),
                "write the recursion as a loop",
            )
        } else if target != GpuBackend::Msl
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
    let mut found: Vec<Diagnostic> = instructions(f).filter_map(refuse).collect();
    for (_, callee) in f.callees.iter().filter(|_| has_stack) {
        found.extend(match target {
            // Code of the host calls what it likes.
            GpuBackend::Cpu | GpuBackend::Interp => refusals(callee, types, target, code),
            GpuBackend::Ptx
            | GpuBackend::Hip
            | GpuBackend::Spv
            | GpuBackend::Msl
            | GpuBackend::Wgsl => refusals_in_recursion(callee, types, target, code),
        });
    }
    found
}

/// What a recursive function cannot do: only values travel on the stack, and the invocations of a
/// workgroup are not together in it.
fn refusals_in_recursion(
    f: &MpirFn,
    types: &TypeCtx,
    target: GpuBackend,
    code: Code,
) -> Vec<Diagnostic> {
    let short = f.name.rsplit('@').next().unwrap_or(&f.name);
    let travels = |ty: TypeId| match types.kind(ty) {
        TypeKind::Buffer(_) => true,
        // Others change their type where a target lacks them.
        _ => types
            .element_prim(ty)
            .is_some_and(|p| p == PrimType::Bool || matches!(p.bit_width(), 32 | 64)),
    };
    let signature = |span, ty| {
        let message = format!(
            "`@{short}` is recursive: it cannot take or give `{}` on {}",
            types.name(ty),
            target.name()
        );
        let help = "pass buffers, and single numbers of 32 or 64 bits or bool";
        Diagnostic::new(code, span, message).with_help(help)
    };
    let mut found = refusals(f, types, target, code);
    for (&(_, ty), &span) in f.params.iter().zip(&f.param_spans) {
        if !travels(ty) {
            found.push(signature(span, ty));
        }
    }
    if f.ret_ty != fixed::UNIT && !travels(f.ret_ty) {
        found.push(signature(f.span, f.ret_ty));
    }
    for inst in instructions(f) {
        let info = inst.op.info();
        if info.convergent || inst.op == Op::GpuShared {
            let message = format!("`{}` in the recursive function `@{short}`", inst.op.name());
            let d = Diagnostic::new(code, inst.span, message);
            let help = "do what concerns the whole workgroup in the kernel itself";
            found.push(d.with_help(help));
        }
    }
    found
}

fn instructions(f: &MpirFn) -> impl Iterator<Item = &InstData> {
    f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i))
}
