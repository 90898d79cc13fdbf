//! Float ops whose native forms promise less than the numeric table: minimum and maximum with NaN
//! and signed zeros, and fused multiply-add.

use super::seq::Seq;
use magpie_mpir::{Flags, Op, Value};
use magpie_types::PrimType;

/// Smaller or larger of two floats; the other operand when one is NaN; -0 below +0.
pub(super) fn min_max(s: &mut Seq, op: Op, a: Value, b: Value) -> Value {
    let p = s.prim(a);
    let (better, join) = match op {
        Op::FMin => (Op::FcmpOlt, Op::IOr),
        _ => (Op::FcmpOgt, Op::IAnd),
    };
    // Equal operands have equal bits, or are zeros: joining the bits orders the signs.
    let (ua, ub) = (s.bits(a, p.bits_type()), s.bits(b, p.bits_type()));
    let joined = s.same(join, &[ua, ub]);
    let joined = s.bits(joined, p);
    let first = s.cmp(better, a, b);
    let second = s.cmp(better, b, a);
    let r = s.select(second, b, joined);
    let r = s.select(first, a, r);
    let (a_nan, b_nan) = (is_nan(s, a), is_nan(s, b));
    let r = s.select(b_nan, a, r);
    s.select(a_nan, b, r)
}

/// Whether a float is NaN, told from its bits: comparisons may be rewritten by drivers that assume
/// there is none.
pub(super) fn is_nan(s: &mut Seq, v: Value) -> Value {
    let p = s.prim(v);
    let bits = s.bits(v, p.bits_type());
    let (magnitude, infinity) = match p {
        PrimType::F16 => (0x7fff, 0x7c00),
        PrimType::Bf16 => (0x7fff, 0x7f80),
        PrimType::F64 => (i64::MAX as u64, 0x7ff0_0000_0000_0000),
        _ => (0x7fff_ffff, 0x7f80_0000),
    };
    let magnitude = s.mask(bits, magnitude);
    let infinity = s.like(magnitude, infinity);
    s.cmp(Op::IcmpUgt, magnitude, infinity)
}

/// `a × b + c` in f32 with one rounding, through f64: the product is exact there, the sum is
/// rounded to odd, so that narrowing rounds once (Boldo and Melquiond, 2008).
pub(super) fn fma_by_f64(s: &mut Seq, a: Value, b: Value, c: Value) -> Value {
    let wide = [a, b, c].map(|v| s.cast(v, PrimType::F64));
    let product = s.same(Op::FMul, &[wide[0], wide[1]]);
    let sum = odd_sum(s, product, wide[2]);
    s.cast(sum, PrimType::F32)
}

/// `x + y` rounded to odd: the error of the sum (Knuth's two-sum) says whether and where the exact
/// value lies off it.
pub(super) fn odd_sum(s: &mut Seq, x: Value, y: Value) -> Value {
    let p = s.prim(x);
    let ty = p.id();
    let strict = |s: &mut Seq, op, a, b| s.inst(op, ty, &[a, b], Flags::NONE);
    let sum = strict(s, Op::FAdd, x, y);
    let part = strict(s, Op::FSub, sum, x);
    let rest = strict(s, Op::FSub, sum, part);
    let low_x = strict(s, Op::FSub, x, rest);
    let low_y = strict(s, Op::FSub, y, part);
    let error = strict(s, Op::FAdd, low_x, low_y);
    let zero = s.like(error, 0);
    // NaN from infinities compares as ordered false: such sums stay as they are.
    let above = s.cmp(Op::FcmpOgt, error, zero);
    let below = s.cmp(Op::FcmpOlt, error, zero);
    let off = s.or(above, below);
    let bits = s.bits(sum, p.bits_type());
    let last = s.mask(bits, 1);
    let even = s.is(last, 0);
    let adjust = s.and(off, even);
    let positive = s.cmp(Op::FcmpOgt, sum, zero);
    let away = s.cmp(Op::IcmpEq, above, positive);
    let (up, down) = (s.plus(bits, 1), s.plus(bits, -1));
    let moved = s.select(away, up, down);
    let bits = s.select(adjust, moved, bits);
    s.bits(bits, p)
}
