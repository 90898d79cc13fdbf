//! Conversions between f32 and the 16-bit formats in integer code, each with one rounding. 16-bit
//! values are their bits in a `u32`.

use super::seq::Seq;
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// bfloat16 bits to f32.
pub(super) fn bf16_to_f32(s: &mut Seq, bits: Value) -> Value {
    let high = s.shl(bits, 16);
    s.bits(high, PrimType::F32)
}

/// f32 to bfloat16 bits, nearest even; NaN stays NaN.
pub(super) fn f32_to_bf16(s: &mut Seq, v: Value) -> Value {
    let bits = s.bits(v, PrimType::U32);
    let high = s.lshr(bits, 16);
    let odd = s.mask(high, 1);
    let bias = s.plus(odd, 0x7fff);
    let sum = s.add(bits, bias);
    let rounded = s.lshr(sum, 16);
    let quiet = s.u32(0x40);
    let quiet = s.or(high, quiet);
    let nan = super::float_ops::is_nan(s, v);
    s.select(nan, quiet, rounded)
}

/// binary16 bits to f32.
pub(super) fn f16_to_f32(s: &mut Seq, bits: Value) -> Value {
    let sign = s.mask(bits, 0x8000);
    let sign = s.shl(sign, 16);
    let magnitude = s.mask(bits, 0x7fff);
    let shifted = s.shl(magnitude, 13);
    // Normal numbers: another bias. Infinity and NaN: all ones. Subnormals: n × 2^-24, exact.
    let normal = s.plus(shifted, 112 << 23);
    let special = s.plus(shifted, 224 << 23);
    let count = s.cast(magnitude, PrimType::F32);
    let unit = s.f32(2f32.powi(-24));
    let subnormal = s.same(Op::FMul, &[count, unit]);
    let subnormal = s.bits(subnormal, PrimType::U32);
    let (least, most) = (s.u32(0x0400), s.u32(0x7c00));
    let is_sub = s.cmp(Op::IcmpUlt, magnitude, least);
    let is_special = s.cmp(Op::IcmpUge, magnitude, most);
    let r = s.select(is_sub, subnormal, normal);
    let r = s.select(is_special, special, r);
    let r = s.or(r, sign);
    s.bits(r, PrimType::F32)
}

/// f32 to binary16 bits, nearest even; NaN stays NaN.
pub(super) fn f32_to_f16(s: &mut Seq, v: Value) -> Value {
    let bits = s.bits(v, PrimType::U32);
    let sign = s.lshr(bits, 16);
    let sign = s.mask(sign, 0x8000);
    let magnitude = s.mask(bits, 0x7fff_ffff);
    // Normal results: round at bit 13, then change the bias. A carry moves on by itself.
    let odd = s.lshr(magnitude, 13);
    let odd = s.mask(odd, 1);
    let bias = s.plus(odd, 0xfff);
    let sum = s.add(magnitude, bias);
    let rebiased = s.plus(sum, -(112i64 << 23));
    let normal = s.lshr(rebiased, 13);
    // Subnormal results: the significand shifted to units of 2^-24, with what is lost as sticky.
    let exponent = s.lshr(magnitude, 23);
    let fraction = s.mask(magnitude, 0x7f_ffff);
    let hidden = s.u32(0x80_0000);
    let significand = s.or(fraction, hidden);
    // Units of 2^-24 are the significand shifted right by 126 - exponent, at most 25 of interest.
    let base = s.u32(126);
    let shift = s.sub(base, exponent);
    let limit = s.u32(25);
    let shift = s.same(Op::IUmin, &[shift, limit]);
    let units = s.same(Op::ILshr, &[significand, shift]);
    let back = s.same(Op::IShl, &[units, shift]);
    let lost = s.sub(significand, back);
    let one = s.u32(1);
    let before = s.sub(shift, one);
    let before = s.mask(before, 31);
    let half = s.same(Op::IShl, &[one, before]);
    let above = s.cmp(Op::IcmpUgt, lost, half);
    let tie = s.cmp(Op::IcmpEq, lost, half);
    let odd = s.mask(units, 1);
    let odd = s.is(odd, 1);
    let tie_up = s.and(tie, odd);
    let up = s.or(above, tie_up);
    let up = s.bit(up, units);
    let subnormal = s.add(units, up);
    // Below 2^-14 the result is subnormal; from 65520 on it is infinite.
    let least = s.u32(0x3880_0000);
    let is_sub = s.cmp(Op::IcmpUlt, magnitude, least);
    let most = s.u32(0x477f_f000);
    let is_large = s.cmp(Op::IcmpUge, magnitude, most);
    let infinity = s.u32(0x7c00);
    let r = s.select(is_sub, subnormal, normal);
    let r = s.select(is_large, infinity, r);
    let payload = s.lshr(magnitude, 13);
    let payload = s.mask(payload, 0x1ff);
    let quiet = s.u32(0x7e00);
    let quiet = s.or(payload, quiet);
    let nan = super::float_ops::is_nan(s, v);
    let r = s.select(nan, quiet, r);
    s.or(r, sign)
}
