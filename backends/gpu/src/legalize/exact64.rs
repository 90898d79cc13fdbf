//! Correctly rounded f64 division and square root.
//!
//! Quotient and root are integers here. Only the root starts from the native one, of which nothing
//! is asked but the precision of f32; an integer remainder makes it exact.

use super::format::{F64, Rounding, put_together, take_apart};
use super::seq::Seq;
use magpie_mpir::{Flags, Op, Value};
use magpie_types::{PrimType, fixed};

/// `a / b` rounded once to nearest even.
pub(super) fn div_f64(s: &mut Seq, a: Value, b: Value) -> Value {
    let (ua, ub) = (s.bits(a, PrimType::U64), s.bits(b, PrimType::U64));
    let sign = s.xor(ua, ub);
    let sign = s.mask(sign, F64.sign());
    let (ma, mb) = (s.mask(ua, F64.sign() - 1), s.mask(ub, F64.sign() - 1));
    let (x, ex) = take_apart(s, &F64, ma);
    let (y, ey) = take_apart(s, &F64, mb);
    let b_zero = s.is(mb, 0);
    let one = s.like(y, 1);
    let divisor = s.select(b_zero, one, y);

    // One bit before the point, and 55 behind it, 11 at a time: what a word has above a divisor.
    const STEP: u32 = 11;
    let has_one = s.cmp(Op::IcmpUge, x, divisor);
    let reduced = s.sub(x, divisor);
    let mut rest = s.select(has_one, reduced, x);
    let mut quotient = s.bit(has_one, x);
    for _ in 0..5 {
        let shifted = s.shl(rest, STEP);
        let digits = s.same(Op::IUdiv, &[shifted, divisor]);
        let product = s.mul(digits, divisor);
        rest = s.sub(shifted, product);
        quotient = s.shl(quotient, STEP);
        quotient = s.or(quotient, digits);
    }
    // The first of 56 or 55 bits to the top.
    let zero = s.like(rest, 0);
    let lost = s.cmp(Op::IcmpNe, rest, zero);
    let sticky = s.bit(lost, rest);
    let (near, far) = (s.shl(quotient, 8), s.shl(quotient, 9));
    let significand = s.select(has_one, near, far);
    let significand = s.or(significand, sticky);
    let exponent = s.sub(ex, ey);
    let (full, less) = (s.like(ex, F64.bias as u64), s.like(ex, F64.bias as u64 - 1));
    let bias = s.select(has_one, full, less);
    let exponent = s.add(exponent, bias);
    let magnitude = put_together(s, &F64, significand, exponent, Rounding::NearestEven);

    let infinity = s.like(zero, F64.infinity());
    let a_zero = s.is(ma, 0);
    let (a_inf, b_inf) = (s.is(ma, F64.infinity()), s.is(mb, F64.infinity()));
    let to_zero = s.or(a_zero, b_inf);
    let to_inf = s.or(b_zero, a_inf);
    let magnitude = s.select(to_zero, zero, magnitude);
    let magnitude = s.select(to_inf, infinity, magnitude);
    let signed = s.or(magnitude, sign);
    let a_nan = s.cmp(Op::IcmpUgt, ma, infinity);
    let b_nan = s.cmp(Op::IcmpUgt, mb, infinity);
    let nan = s.or(a_nan, b_nan);
    let (zeros, infs) = (s.and(a_zero, b_zero), s.and(a_inf, b_inf));
    let undefined = s.or(zeros, infs);
    let nan = s.or(nan, undefined);
    let quiet = s.like(zero, F64.quiet_nan());
    let bits = s.select(nan, quiet, signed);
    s.bits(bits, PrimType::F64)
}

/// The square root of `a` rounded once to nearest even.
pub(super) fn sqrt_f64(s: &mut Seq, a: Value) -> Value {
    let ua = s.bits(a, PrimType::U64);
    let magnitude = s.mask(ua, F64.sign() - 1);
    let (significand, exponent) = take_apart(s, &F64, magnitude);
    // a = m × 2^(exponent - 1075). With an even power in front: m or 2m, in 2^52 .. 2^54.
    let odd = s.mask(exponent, 1);
    let one = s.like(odd, 1);
    let odd = s.xor(odd, one);
    let m = s.same(Op::IShl, &[significand, odd]);
    // The top half: root = floor(sqrt(m)), in 2^26 .. 2^27, with its remainder.
    let fm = s.cast(m, PrimType::F64);
    let seed = s.inst(Op::FSqrt, fixed::F64, &[fm], Flags::FAST);
    let seed = s.cast(seed, PrimType::U64);
    let least = s.like(seed, 1);
    let root = s.same(Op::IUmax, &[seed, least]);
    let remainder = |s: &mut Seq, root| {
        let square = s.mul(root, root);
        s.sub(m, square)
    };
    // Off by some 2^5 at most: one step of Newton's method leaves an error of one.
    let r = remainder(s, root);
    let twice = s.shl(root, 1);
    let step = s.same(Op::ISdiv, &[r, twice]);
    let root = s.add(root, step);
    let zero = s.like(root, 0);
    let r = remainder(s, root);
    let below = s.cmp(Op::IcmpSlt, r, zero);
    let down = s.bit(below, root);
    let root = s.sub(root, down);
    let r = remainder(s, root);
    let twice = s.shl(root, 1);
    let above = s.cmp(Op::IcmpSgt, r, twice);
    let up = s.bit(above, root);
    let root = s.add(root, up);
    let r = remainder(s, root);
    // The bottom half (Zimmermann, "Karatsuba Square Root", 1999): of m × 2^54, in 2^53 .. 2^54.
    const HALF: u32 = 27;
    let twice = s.shl(root, 1);
    let twice = s.same(Op::IUmax, &[twice, least]);
    let raised = s.shl(r, HALF);
    let digits = s.same(Op::IUdiv, &[raised, twice]);
    let product = s.mul(digits, twice);
    let rest = s.sub(raised, product);
    let high = s.shl(root, HALF);
    let whole = s.add(high, digits);
    let rest = s.shl(rest, HALF);
    let square = s.mul(digits, digits);
    let rest = s.sub(rest, square);
    let below = s.cmp(Op::IcmpSlt, rest, zero);
    let down = s.bit(below, whole);
    let doubled = s.shl(whole, 1);
    let raise = s.plus(doubled, -1);
    let raised = s.add(rest, raise);
    let rest = s.select(below, raised, rest);
    let whole = s.sub(whole, down);

    let lost = s.cmp(Op::IcmpNe, rest, zero);
    let sticky = s.bit(lost, whole);
    let top = s.shl(whole, 10);
    let top = s.or(top, sticky);
    // The first bit of the root stands for 2^((exponent - 1075 - odd) / 2 + 26).
    let even = s.sub(exponent, odd);
    let even = s.plus(even, -1075);
    let field = s.ashr(even, 1);
    let field = s.plus(field, 26 + F64.bias);
    let out = put_together(s, &F64, top, field, Rounding::NearestEven);

    // Zeros keep their sign; infinity stays; NaN and negative numbers give NaN.
    let infinity = s.like(zero, F64.infinity());
    let is_zero = s.is(magnitude, 0);
    let is_inf = s.is(ua, F64.infinity());
    let same = s.or(is_zero, is_inf);
    let out = s.select(same, ua, out);
    let positive = s.cmp(Op::IcmpUle, ua, infinity);
    let fine = s.or(positive, is_zero);
    let quiet = s.like(zero, F64.quiet_nan());
    let bits = s.select(fine, out, quiet);
    s.bits(bits, PrimType::F64)
}
