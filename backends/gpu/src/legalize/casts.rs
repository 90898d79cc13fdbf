//! Conversions that native forms leave undefined or round twice.

use super::LegalOps;
use super::seq::Seq;
use magpie_mpir::eval::float_bits;
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// The replacement of a conversion, or `None` when it is legal as it is.
pub(super) fn expand(s: &mut Seq, legal: &LegalOps, v: Value, to: PrimType) -> Option<Value> {
    let from = s.prim(v);
    if from == to {
        return Some(v);
    }
    if to == PrimType::Bool {
        let zero = s.like(v, 0);
        return Some(s.cmp(Op::IcmpNe, v, zero));
    }
    if from == PrimType::Bool {
        let bits = |p: PrimType, one: bool| match (one, p.is_float()) {
            (false, _) => 0,
            (true, true) => float_bits(p, 1.0),
            (true, false) => 1,
        };
        let one = s.f.const_bits(to.id(), bits(to, true));
        let zero = s.f.const_bits(to.id(), 0);
        return Some(s.select(v, one, zero));
    }
    if from.is_float() && !to.is_float() && !legal.saturating_casts {
        return Some(saturating(s, v, from, to));
    }
    if to == PrimType::F16 && !from.is_float() {
        // Exact in f32 up to 2^24; larger numbers overflow f16 either way.
        let single = s.cast(v, PrimType::F32);
        return Some(s.cast(single, PrimType::F16));
    }
    if (from, to) == (PrimType::F64, PrimType::F16) && !legal.double_to_half {
        let single = rounded_to_odd(s, v);
        return Some(s.cast(single, PrimType::F16));
    }
    None
}

/// The f64 as f32; where that is not exact, the one of its two neighbours whose significand is odd,
/// so that rounding it further is rounding the f64.
fn rounded_to_odd(s: &mut Seq, v: Value) -> Value {
    let single = s.cast(v, PrimType::F32);
    let back = s.cast(single, PrimType::F64);
    let (wanted, found) = (s.same(Op::FAbs, &[v]), s.same(Op::FAbs, &[back]));
    let bits = s.bits(single, PrimType::U32);
    let is_above = s.cmp(Op::FcmpOgt, found, wanted);
    let step = s.bit(is_above, bits);
    let below = s.sub(bits, step);
    let one = s.u32(1);
    let odd = s.or(below, one);
    // False for NaN, which stays as it is.
    let is_inexact = s.cmp(Op::FcmpOne, back, v);
    let bits = s.select(is_inexact, odd, bits);
    s.bits(bits, PrimType::F32)
}

/// Truncates inside the type's range, then puts the ends and NaN right.
fn saturating(s: &mut Seq, v: Value, from: PrimType, to: PrimType) -> Value {
    let (v, from) = match from {
        PrimType::F16 => (s.cast(v, PrimType::F32), PrimType::F32),
        _ => (v, from),
    };
    let w = to.bit_width();
    // Through 32 bits, where every target can convert.
    let through = match (w, to.is_signed()) {
        (64, _) | (32, _) => to,
        (_, true) => PrimType::I32,
        (_, false) => PrimType::U32,
    };
    let (low, high) = match to.is_signed() {
        true => (-(2f64.powi(w as i32 - 1)), 2f64.powi(w as i32 - 1)),
        false => (0.0, 2f64.powi(w as i32)),
    };
    let float = |s: &mut Seq, x: f64| s.f.const_bits(from.id(), float_bits(from, x));
    let (lowest, beyond) = (float(s, low), float(s, high));
    let zero = float(s, 0.0);
    // Ordered comparisons are false for NaN: it takes the way of numbers below the range.
    let above_low = s.cmp(Op::FcmpOge, v, lowest);
    let below_high = s.cmp(Op::FcmpOlt, v, beyond);
    let inside = s.and(above_low, below_high);
    let safe = s.select(inside, v, zero);
    let mut n = s.cast(safe, through);
    if through != to {
        n = s.cast(n, to);
    }
    let (min, max) = match to.is_signed() {
        true => (1u64 << (w - 1), (1u64 << (w - 1)) - 1),
        false => (0, to.mask()),
    };
    let (min, max) = (s.f.const_bits(to.id(), min), s.f.const_bits(to.id(), max));
    let number = s.cmp(Op::FcmpOrd, v, v);
    let none = s.f.const_bits(to.id(), 0);
    let low_end = s.select(number, min, none);
    let is_high = s.cmp(Op::FcmpOge, v, beyond);
    let outside = s.select(is_high, max, low_end);
    s.select(inside, n, outside)
}
