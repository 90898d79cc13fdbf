//! f32 and f64 operations that a target rounds more than once or less than exactly, and f16 ones
//! that are exact through f32.

use super::format::{F32, F64, Rounding};
use super::{LegalOps, exact64, float_ops, fma, rewrite_ops};
use crate::legalize::seq::Seq;
use magpie_mpir::{Flags, MpirFn, Op, Value};
use magpie_types::PrimType;

/// Rewrites fused multiply-adds, f64 divisions and roots, and f16 remainders. What it writes is
/// legal after the passes that follow.
pub(super) fn lower_wide_floats(f: &mut MpirFn, legal: &LegalOps) -> bool {
    let wanted = |op| matches!(op, Op::FFma | Op::FDiv | Op::FSqrt | Op::FRem);
    rewrite_ops(f, wanted, |s, op, ty, args| match (op, PrimType::from_id(ty)?) {
        (Op::FFma, p) if !legal.exact_fma => fused(s, legal, p, args),
        (Op::FDiv, PrimType::F64) if is_strict(s, legal) => {
            Some(exact64::div_f64(s, *args.first()?, *args.get(1)?))
        }
        (Op::FSqrt, PrimType::F64) if is_strict(s, legal) => {
            Some(exact64::sqrt_f64(s, *args.first()?))
        }
        // The remainder of two 16-bit floats is one.
        (Op::FRem, PrimType::F16 | PrimType::Bf16) if !legal.exact_rem => {
            let a = s.cast(*args.first()?, PrimType::F32);
            let b = s.cast(*args.get(1)?, PrimType::F32);
            let r = s.same(Op::FRem, &[a, b]);
            Some(s.cast(r, PrimType::from_id(ty)?))
        }
        _ => None,
    })
}

fn is_strict(s: &Seq, legal: &LegalOps) -> bool {
    !legal.exact_division && !s.flags.contains(Flags::AFN)
}

fn fused(s: &mut Seq, legal: &LegalOps, p: PrimType, args: &[Value]) -> Option<Value> {
    let free = Flags::CONTRACT.union(Flags::AFN);
    if s.flags.intersect(free) != Flags::NONE {
        return None;
    }
    let &[a, b, c] = args else { return None };
    match p {
        // The product of two f16 is exact in f32; the sum is rounded to odd, then once to f16.
        PrimType::F16 => {
            let [a, b, c] = [a, b, c].map(|v| s.cast(v, PrimType::F32));
            let product = s.same(Op::FMul, &[a, b]);
            let sum = float_ops::odd_sum(s, product, c);
            Some(s.cast(sum, PrimType::F16))
        }
        PrimType::F32 if legal.float64 => Some(float_ops::fma_by_f64(s, a, b, c)),
        PrimType::F32 => Some(fma::fma(s, &F32, [a, b, c], Rounding::NearestEven)),
        PrimType::F64 => Some(fma::fma(s, &F64, [a, b, c], Rounding::NearestEven)),
        _ => None,
    }
}
