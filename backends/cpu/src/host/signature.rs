//! Machine types of values, and how functions are called.

use crate::jit::Code;
use crate::pure::clif_type;
use cranelift_codegen::ir::{self, AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_module::Module as _;
use magpie_mpir::{Domain, MpirFn};
use magpie_types::{Category, PrimType, TypeCtx, TypeId, TypeKind, fixed};

/// The machine type of a value.
pub(super) fn machine_type(ctx: &TypeCtx, ty: TypeId) -> ir::Type {
    match ctx.kind(ty) {
        TypeKind::Prim(p) => clif_type(p),
        TypeKind::Enum(e) if ctx.enum_def(e).category == Category::Value => types::I32,
        _ => types::I64,
    }
}

/// The scalar behind a value: handles and addresses are 64-bit numbers.
pub(super) fn machine_prim(ctx: &TypeCtx, ty: TypeId) -> PrimType {
    match ctx.kind(ty) {
        TypeKind::Prim(p) => p,
        TypeKind::Enum(e) if ctx.enum_def(e).category == Category::Value => PrimType::I32,
        _ => PrimType::U64,
    }
}

fn param(ctx: &TypeCtx, ty: TypeId) -> AbiParam {
    match ty {
        fixed::BOOL => AbiParam::new(types::I8).uext(),
        _ => AbiParam::new(machine_type(ctx, ty)),
    }
}

/// The values that a function with a result of this type gives back.
fn returned(ctx: &TypeCtx, ty: TypeId) -> Vec<AbiParam> {
    match ctx.members(ty) {
        Some(members) => members.into_iter().map(|ty| param(ctx, ty)).collect(),
        None if ty == fixed::UNIT => Vec::new(),
        None => vec![param(ctx, ty)],
    }
}

/// The signature of a function. Those that nobody calls by address may give back in registers
/// whatever there is; the others keep to the convention of C.
pub(super) fn signature(
    code: &Code,
    ctx: &TypeCtx,
    f: &MpirFn,
    is_called_from_outside: bool,
) -> Signature {
    debug_assert!(f.domain == Domain::LowHost, "{} is lowered before emission", f.name);
    let params = f.params.iter().map(|p| p.1);
    let mut sig = signature_by_address(code, ctx, params, f.ret_ty);
    if !is_called_from_outside {
        sig.call_conv = CallConv::Tail;
    }
    sig
}

/// The signature of code that is called by its address.
pub(super) fn signature_by_address(
    code: &Code,
    ctx: &TypeCtx,
    params: impl Iterator<Item = TypeId>,
    ret: TypeId,
) -> Signature {
    let mut sig = code.jit.make_signature();
    sig.params.extend(params.map(|ty| param(ctx, ty)));
    sig.returns.extend(returned(ctx, ret));
    sig
}
