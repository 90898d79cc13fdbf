//! What no WGSL can do, found before anything is emitted.

use crate::ballots;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_gpu::available;
use magpie_mpir::{Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

/// A refusal for each parameter and instruction that has no form in WGSL.
pub(crate) fn refusals(f: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for (n, &(_, ty)) in f.params.iter().enumerate() {
        if let Some(prim) = missing_scalar(types, ty) {
            let what = format!("parameter `{}`", f.param_names[n]);
            out.push(refuse_type(&what, prim, f.param_spans[n]));
        }
    }
    if out.is_empty() {
        out = available::refusals(f, types, GpuBackend::Wgsl, Code::MPG_WGSL_1101);
    }
    if out.is_empty() {
        let insts = f.blocks.iter().flat_map(|b| &b.insts);
        out.extend(insts.filter_map(|&i| refuse_inst(f, types, i)));
    }
    out
}

fn refuse_inst(f: &MpirFn, types: &TypeCtx, i: Inst) -> Option<Diagnostic> {
    let inst = f.inst(i);
    let refuse = |why: &str, help| {
        let message = format!("`{}` {why}", inst.op.name());
        Some(Diagnostic::new(Code::MPG_WGSL_1101, inst.span, message).with_help(help))
    };
    if inst.op == Op::GpuSubgroupBallot {
        if ballots::is_narrow(f, types, i) {
            return None;
        }
        return refuse(
            "gives a `u64`, which wgsl does not have",
            "cast it to `u32`, or use `gpu.subgroup.any` or `gpu.subgroup.all`",
        );
    }
    // Of a ballot, refused already if that is not right.
    if inst.op == Op::Cast && is_ballot(f, f.args(i)) {
        return None;
    }
    if matches!(inst.op, magpie_mpir::atomic_ops!())
        && types.prim(inst.ty).is_some_and(|p| p.bit_width() < 32)
    {
        return refuse("works on words only", "use elements of 32 bits");
    }
    let operands = f.args(i).iter().map(|&v| f.ty(v));
    let mut tys = std::iter::once(inst.ty).chain(operands);
    let prim = tys.find_map(|ty| missing_scalar(types, ty))?;
    Some(refuse_type(&format!("`{}`", inst.op.name()), prim, inst.span))
}

fn is_ballot(f: &MpirFn, args: &[Value]) -> bool {
    let of = |v: &Value| match f.def(*v) {
        ValueDef::Inst(i) => f.inst(i).op == Op::GpuSubgroupBallot,
        ValueDef::Param(_) | ValueDef::Const(_) => false,
    };
    args.first().is_some_and(of)
}

fn refuse_type(what: &str, prim: PrimType, span: Span) -> Diagnostic {
    let name = prim.name();
    let message = format!("{what}: wgsl has no `{name}`");
    let help = match prim.is_float() {
        true => "use `f32`, or another target",
        false => "use an integer of 32 bits, or another target",
    };
    Diagnostic::new(Code::MPG_WGSL_1101, span, message).with_help(help)
}

/// The scalar inside a type that WGSL has not and legalisation cannot replace.
fn missing_scalar(types: &TypeCtx, ty: TypeId) -> Option<PrimType> {
    let missing = |p: PrimType| match p {
        PrimType::I64
        | PrimType::U64
        | PrimType::F64
        | PrimType::I128
        | PrimType::U128
        | PrimType::U1 => Some(p),
        PrimType::Unit
        | PrimType::Bool
        | PrimType::I8
        | PrimType::U8
        | PrimType::I16
        | PrimType::U16
        | PrimType::I32
        | PrimType::U32
        | PrimType::F16
        | PrimType::Bf16
        | PrimType::F32 => None,
    };
    match types.kind(ty) {
        TypeKind::Prim(p) | TypeKind::Vec(p, _) => missing(p),
        TypeKind::Buffer(elem) | TypeKind::SharedArray(elem, _) | TypeKind::LocalArray(elem, _) => {
            missing_scalar(types, elem)
        }
        _ if types.is_aggregate(ty) => {
            types.leaves(ty).iter().find_map(|leaf| missing_scalar(types, leaf.ty))
        }
        _ => None,
    }
}
