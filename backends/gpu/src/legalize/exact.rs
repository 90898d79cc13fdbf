//! Correctly rounded f32 division and square root from approximate ones.
//!
//! The native result only seeds an integer quotient or root, which an integer residual then makes
//! exact; rounding, subnormal results and special operands are integer code too. So nothing here
//! depends on the device's rounding mode, on its subnormals, or on whether its `fma` is one.

use super::seq::Seq;
use magpie_mpir::{Flags, Op, Value};
use magpie_types::{PrimType, fixed};

const SIGN: u64 = 0x8000_0000;
const MAGNITUDE: u64 = 0x7fff_ffff;
const INFINITY: u64 = 0x7f80_0000;
const QUIET_NAN: u32 = 0x7fc0_0000;
const HIDDEN: u64 = 0x0080_0000;

/// A finite f32 taken apart: `significand × 2^(exponent - 150)`, the significand in
/// `2^23 .. 2^24` unless the number is zero.
struct Parts {
    significand: Value,
    exponent: Value,
}

fn take_apart(s: &mut Seq, magnitude: Value) -> Parts {
    let exponent = s.lshr(magnitude, 23);
    let fraction = s.mask(magnitude, HIDDEN - 1);
    let subnormal = s.is(exponent, 0);
    let hidden = s.u32(HIDDEN as u32);
    let normal = s.or(fraction, hidden);
    let zeros = s.same(Op::IClz, &[fraction]);
    let shift = s.plus(zeros, -8);
    let amount = s.mask(shift, 31);
    let shifted = s.same(Op::IShl, &[fraction, amount]);
    let one = s.u32(1);
    let low = s.sub(one, shift);
    let significand = s.select(subnormal, shifted, normal);
    let exponent = s.select(subnormal, low, exponent);
    Parts { significand, exponent: s.bits(exponent, PrimType::I32) }
}

/// An f32 from `q × 2^(exponent - 153)` with `q` in `2^26 .. 2^27`, where `inexact` says that the
/// true value lies above `q` by less than one. Rounds to nearest even, once. Unsigned result bits.
fn put_together(s: &mut Seq, q: Value, exponent: Value, inexact: Value) -> Value {
    // Subnormal results have fewer bits: shift the surplus out, keeping whether it was zero.
    let one = s.i32(1);
    let deficit = s.sub(one, exponent);
    let zero = s.i32(0);
    let most = s.i32(31);
    let deficit = s.smax(deficit, zero);
    let deficit = s.smin(deficit, most);
    let deficit = s.bits(deficit, PrimType::U32);
    let kept = s.same(Op::ILshr, &[q, deficit]);
    let back = s.same(Op::IShl, &[kept, deficit]);
    let lost = s.cmp(Op::IcmpNe, back, q);
    let inexact = s.or(inexact, lost);
    let sticky = s.bit(inexact, q);
    let kept = s.or(kept, sticky);
    // Three bits below the last one, the lowest sticky. Its own bit may be set already: that is
    // the same to the rounding.
    let bits = s.lshr(kept, 3);
    let rest = s.mask(kept, 7);
    let odd = s.mask(bits, 1);
    let biased = s.add(rest, odd);
    let four = s.u32(4);
    let up = s.cmp(Op::IcmpUgt, biased, four);
    let up = s.bit(up, q);
    let below = s.plus(exponent, -1);
    let below = s.smax(below, zero);
    let below = s.bits(below, PrimType::U32);
    let high = s.shl(below, 23);
    let sum = s.add(high, bits);
    let sum = s.add(sum, up);
    let limit = s.i32(255);
    let over = s.cmp(Op::IcmpSge, exponent, limit);
    let infinity = s.u32(INFINITY as u32);
    s.select(over, infinity, sum)
}

/// `a / b` rounded once to nearest even.
pub(super) fn div_f32(s: &mut Seq, a: Value, b: Value) -> Value {
    let (ua, ub) = (s.bits(a, PrimType::U32), s.bits(b, PrimType::U32));
    let sign = s.xor(ua, ub);
    let sign = s.mask(sign, SIGN);
    let (ma, mb) = (s.mask(ua, MAGNITUDE), s.mask(ub, MAGNITUDE));
    let (x, y) = (take_apart(s, ma), take_apart(s, mb));

    // q = floor(x * 2^26 / y), between 2^25 and 2^27. The native quotient is off by at most 2.5
    // units in its last place, that is by about 21 here; its residual fits 32 bits.
    let (fx, fy) = (s.cast(x.significand, PrimType::F32), s.cast(y.significand, PrimType::F32));
    let ratio = s.inst(Op::FDiv, fixed::F32, &[fx, fy], Flags::FAST);
    let scale = s.f32(67_108_864.0);
    let scaled = s.same(Op::FMul, &[ratio, scale]);
    let q = s.cast(scaled, PrimType::U32);
    let wide = s.shl(x.significand, 26);
    let product = s.mul(q, y.significand);
    let residual = s.sub(wide, product);
    let residual = s.bits(residual, PrimType::I32);
    // The same for the residual: now off by at most one.
    let fr = s.cast(residual, PrimType::F32);
    let more = s.inst(Op::FDiv, fixed::F32, &[fr, fy], Flags::FAST);
    let more = s.same(Op::FFloor, &[more]);
    let more = s.cast(more, PrimType::I32);
    let divisor = s.bits(y.significand, PrimType::I32);
    let product = s.mul(more, divisor);
    let residual = s.sub(residual, product);
    let q = s.bits(q, PrimType::I32);
    let q = s.add(q, more);
    let zero = s.i32(0);
    let negative = s.cmp(Op::IcmpSlt, residual, zero);
    let down = s.bit(negative, q);
    let q = s.sub(q, down);
    let raised = s.add(residual, divisor);
    let residual = s.select(negative, raised, residual);
    let large = s.cmp(Op::IcmpSge, residual, divisor);
    let up = s.bit(large, q);
    let q = s.add(q, up);
    let lowered = s.sub(residual, divisor);
    let residual = s.select(large, lowered, residual);
    let inexact = s.cmp(Op::IcmpNe, residual, zero);

    // To 27 bits.
    let q = s.bits(q, PrimType::U32);
    let top = s.u32(1 << 26);
    let is_top = s.cmp(Op::IcmpUge, q, top);
    let doubled = s.shl(q, 1);
    let q = s.select(is_top, q, doubled);
    let exponent = s.sub(x.exponent, y.exponent);
    let (full, less) = (s.i32(127), s.i32(126));
    let bias = s.select(is_top, full, less);
    let exponent = s.add(exponent, bias);
    let magnitude = put_together(s, q, exponent, inexact);

    // Zeros and infinities, then what is no number.
    let infinity = s.u32(INFINITY as u32);
    let (a_zero, b_zero) = (s.is(ma, 0), s.is(mb, 0));
    let (a_inf, b_inf) = (s.is(ma, INFINITY), s.is(mb, INFINITY));
    let to_zero = s.or(a_zero, b_inf);
    let to_inf = s.or(b_zero, a_inf);
    let none = s.u32(0);
    let magnitude = s.select(to_zero, none, magnitude);
    let magnitude = s.select(to_inf, infinity, magnitude);
    let signed = s.or(magnitude, sign);
    let a_nan = s.cmp(Op::IcmpUgt, ma, infinity);
    let b_nan = s.cmp(Op::IcmpUgt, mb, infinity);
    let nan = s.or(a_nan, b_nan);
    let zeros = s.and(a_zero, b_zero);
    let infs = s.and(a_inf, b_inf);
    let undefined = s.or(zeros, infs);
    let nan = s.or(nan, undefined);
    let quiet = s.u32(QUIET_NAN);
    let bits = s.select(nan, quiet, signed);
    s.bits(bits, PrimType::F32)
}

/// The square root of `a` rounded once to nearest even.
pub(super) fn sqrt_f32(s: &mut Seq, a: Value) -> Value {
    let ua = s.bits(a, PrimType::U32);
    let magnitude = s.mask(ua, MAGNITUDE);
    let parts = take_apart(s, magnitude);
    // value = m × 2^(e - 150). With an even power in front: m or 2m, in 2^23 .. 2^25.
    let odd = s.mask(parts.exponent, 1);
    let odd = s.bits(odd, PrimType::U32);
    // e - 150 is even exactly when e is even.
    let m = s.same(Op::IShl, &[parts.significand, odd]);
    // root = floor(sqrt(m × 2^24)), in 2^23.5 .. 2^24.5. The native root may be off by some five
    // units in its last place, that is by about ten here; the residual fits 32 bits.
    let fm = s.cast(m, PrimType::F32);
    let approximate = s.inst(Op::FSqrt, fixed::F32, &[fm], Flags::FAST);
    let scale = s.f32(4096.0);
    let scaled = s.same(Op::FMul, &[approximate, scale]);
    let root = s.cast(scaled, PrimType::U32);
    let wide = s.shl(m, 24);
    let remainder = |s: &mut Seq, root| {
        let square = s.mul(root, root);
        let r = s.sub(wide, square);
        s.bits(r, PrimType::I32)
    };
    let residual = remainder(s, root);
    let fr = s.cast(residual, PrimType::F32);
    let froot = s.cast(root, PrimType::F32);
    let half = s.f32(0.5);
    let step = s.inst(Op::FDiv, fixed::F32, &[fr, froot], Flags::FAST);
    let step = s.same(Op::FMul, &[step, half]);
    let step = s.same(Op::FFloor, &[step]);
    let step = s.cast(step, PrimType::I32);
    let step = s.bits(step, PrimType::U32);
    let root = s.add(root, step);
    // Off by at most one either way now.
    let zero = s.i32(0);
    let r = remainder(s, root);
    let negative = s.cmp(Op::IcmpSlt, r, zero);
    let down = s.bit(negative, root);
    let root = s.sub(root, down);
    let r = remainder(s, root);
    let signed_root = s.bits(root, PrimType::I32);
    let twice = s.shl(signed_root, 1);
    let large = s.cmp(Op::IcmpSgt, r, twice);
    let up = s.bit(large, root);
    let root = s.add(root, up);
    // One more bit of the root: (2 root + 1)² ≤ 4 (root² + r) exactly when r > root.
    let r = remainder(s, root);
    let signed_root = s.bits(root, PrimType::I32);
    let next = s.cmp(Op::IcmpSgt, r, signed_root);
    let left = s.cmp(Op::IcmpNe, r, zero);
    let inexact = s.or(next, left);
    let next = s.bit(next, root);
    let doubled = s.shl(root, 1);
    let root = s.or(doubled, next);
    // To 27 bits: the root has 25 or 26.
    let top = s.u32(1 << 25);
    let is_top = s.cmp(Op::IcmpUge, root, top);
    let (by_one, by_two) = (s.shl(root, 1), s.shl(root, 2));
    let q = s.select(is_top, by_one, by_two);
    // sqrt(m × 2^(e - odd - 150)) is root × 2^((e - odd - 150) / 2 - 13).
    let odd = s.bits(odd, PrimType::I32);
    let even = s.sub(parts.exponent, odd);
    let even = s.plus(even, -150);
    let halved = s.ashr(even, 1);
    let (one, two) = (s.i32(139), s.i32(138));
    let bias = s.select(is_top, one, two);
    let exponent = s.add(halved, bias);
    let magnitude_out = put_together(s, q, exponent, inexact);
    // Zeros keep their sign; infinity stays; NaN and negative numbers give NaN.
    let infinity = s.u32(INFINITY as u32);
    let is_zero = s.is(magnitude, 0);
    let is_inf = s.is(ua, INFINITY);
    let same = s.or(is_zero, is_inf);
    let out = s.select(same, ua, magnitude_out);
    let positive = s.cmp(Op::IcmpUle, ua, infinity);
    let fine = s.or(positive, is_zero);
    let quiet = s.u32(QUIET_NAN);
    let bits = s.select(fine, out, quiet);
    s.bits(bits, PrimType::F32)
}
