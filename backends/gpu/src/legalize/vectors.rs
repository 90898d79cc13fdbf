//! Whether the vectors of a kernel can stay.
//!
//! Legalisation works on scalars. When every vector operation of a kernel is one that targets with
//! vectors do exactly as it stands, vectors are kept, which the device's compiler and readers of the
//! text thank us for; else all are taken apart.

use super::LegalOps;
use magpie_mpir::{Flags, Inst, MpirFn, Op};
use magpie_types::{PrimType, TypeCtx, TypeKind};

/// Whether no vector operation of `f` needs legalisation.
pub fn keeps_vectors(f: &MpirFn, types: &TypeCtx, legal: &LegalOps) -> bool {
    f.blocks.iter().flat_map(|b| &b.insts).all(|&i| {
        let inst = f.inst(i);
        let operands = f.args(i).iter().map(|&v| f.ty(v));
        std::iter::once(inst.ty).chain(operands).all(|ty| match types.kind(ty) {
            TypeKind::Vec(p, _) => is_native(p, legal) && is_exact(f, types, i, legal),
            _ => true,
        })
    })
}

/// Whether the device computes with a type.
fn is_native(p: PrimType, legal: &LegalOps) -> bool {
    match p {
        PrimType::F16 => legal.float16,
        PrimType::Bf16 => legal.bfloat16,
        PrimType::I8 | PrimType::U8 => legal.int8,
        PrimType::I16 | PrimType::U16 => legal.int16,
        PrimType::Unit
        | PrimType::Bool
        | PrimType::I32
        | PrimType::I64
        | PrimType::I128
        | PrimType::U32
        | PrimType::U64
        | PrimType::U128
        | PrimType::U1
        | PrimType::F32
        | PrimType::F64 => true,
    }
}

/// Whether the vector form of an operation means on targets what it means here.
fn is_exact(f: &MpirFn, types: &TypeCtx, i: Inst, legal: &LegalOps) -> bool {
    let inst = f.inst(i);
    let prims =
        || Some((types.element_prim(f.ty(*f.args(i).first()?))?, types.element_prim(inst.ty)?));
    match inst.op {
        Op::FDiv | Op::FSqrt | Op::VecLength | Op::VecNormalize => {
            legal.exact_division || inst.flags.contains(Flags::AFN)
        }
        Op::FMin | Op::FMax => {
            legal.ordered_min_max || inst.flags.contains(Flags::NNAN.union(Flags::NSZ))
        }
        Op::Cast => prims().is_some_and(|(from, to)| {
            from.is_int() && (to.is_int() || matches!(to, PrimType::F32 | PrimType::F64))
                || from.is_float() && to.is_float()
        }),
        op => matches!(
            op,
            Op::IAdd
                | Op::ISub
                | Op::IMul
                | Op::IAnd
                | Op::IOr
                | Op::IXor
                | Op::ISmin
                | Op::ISmax
                | Op::IUmin
                | Op::IUmax
                | Op::FAdd
                | Op::FSub
                | Op::FMul
                | Op::FNeg
                | Op::FAbs
                | Op::FFloor
                | Op::FCeil
                | Op::FTrunc
                | Op::FRound
                | Op::IcmpEq
                | Op::IcmpNe
                | Op::IcmpSlt
                | Op::IcmpSgt
                | Op::IcmpSle
                | Op::IcmpSge
                | Op::IcmpUlt
                | Op::IcmpUgt
                | Op::IcmpUle
                | Op::IcmpUge
                | Op::FcmpOeq
                | Op::FcmpOne
                | Op::FcmpOlt
                | Op::FcmpOgt
                | Op::FcmpOle
                | Op::FcmpOge
                | Op::FcmpOrd
                | Op::FcmpUeq
                | Op::FcmpUne
                | Op::FcmpUlt
                | Op::FcmpUgt
                | Op::FcmpUle
                | Op::FcmpUge
                | Op::FcmpUno
                | Op::BitsCast
                | Op::Select
                | Op::Phi
                | Op::VecNew
                | Op::VecSplat
                | Op::VecExtract
                | Op::VecInsert
                | Op::VecDot
                | Op::VecCross
                | Op::VecReflect
                | Op::VecMix
                | Op::VecAny
                | Op::VecAll
                | Op::LeafGet
                | Op::GpuBufferLoad
                | Op::GpuBufferStore
                | Op::GpuLeafLoad
                | Op::GpuLeafStore
        ),
    }
}
