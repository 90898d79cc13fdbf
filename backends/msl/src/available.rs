//! What no Metal device can do.

use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Memory, MpirFn, Op};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

/// A refusal for each parameter and instruction that has no form in MSL.
pub(crate) fn refusals(f: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for (n, &(_, ty)) in f.params.iter().enumerate() {
        if has_f64(types, ty) {
            let at = f.param_spans.get(n).copied().filter(|s| s.is_some()).unwrap_or(f.span);
            let name = f.param_names.get(n).map_or("", String::as_str);
            out.push(no_f64(at, &format!("parameter `{name}`")));
        }
    }
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        let inst = f.inst(i);
        let name = inst.op.name();
        let of_atomic = match inst.op.info().memory {
            Memory::Atomic => types.prim(inst.ty),
            Memory::None | Memory::Read | Memory::Write | Memory::Fence | Memory::Any => None,
        };
        let (why, help) = if inst.op == Op::GpuPrint {
            ("is not available on msl", "run the kernel on the CPU device to see what it prints")
        } else if inst.op == Op::Call {
            ("of a recursive function is not available on msl", "write the recursion as a loop")
        } else if matches!(of_atomic, Some(PrimType::I64 | PrimType::U64)) {
            ("of 64 bits is not available on msl", "use elements of 32 bits, or another target")
        } else if has_f64(types, inst.ty) {
            // What computes with the parameters has been said already.
            if out.is_empty() {
                out.push(no_f64(inst.span, &format!("`{name}`")));
            }
            continue;
        } else {
            continue;
        };
        let d = Diagnostic::new(Code::MPG_MSL_1101, inst.span, format!("`{name}` {why}"));
        out.push(d.with_help(help));
    }
    out
}

fn no_f64(at: Span, thing: &str) -> Diagnostic {
    let d = Diagnostic::new(Code::MPG_CORE_1200, at, format!("{thing}: msl has no `f64`"));
    d.with_help("use `f32`, or another target")
}

fn has_f64(types: &TypeCtx, ty: TypeId) -> bool {
    match types.kind(ty) {
        TypeKind::Prim(p) | TypeKind::Vec(p, _) => p == PrimType::F64,
        TypeKind::Buffer(t) | TypeKind::SharedArray(t, _) | TypeKind::LocalArray(t, _) => {
            has_f64(types, t)
        }
        _ => types.is_aggregate(ty) && types.leaves(ty).iter().any(|leaf| has_f64(types, leaf.ty)),
    }
}
