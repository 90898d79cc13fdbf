//! Sine, cosine and tangent of every argument, however large.
//!
//! The argument in quarter turns, `x · 2/π`, is computed as an integer product of the significand
//! and those bits of 2/π that matter (Payne and Hanek, 1983): one way for all arguments.

use super::super::seq::Seq;
use super::library::{HALF_PI, Library, abs, fma, mul};
use super::{approximate, divide, has_approximations};
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// An angle of at most an eighth of a turn, and the number of quarter turns before it.
struct Angle {
    r: Value,
    quarters: Value,
    finite: Value,
}

/// Takes whole quarter turns off the size of a number.
fn reduce(s: &mut Seq, lib: &Library, x: Value) -> Angle {
    let format = &lib.format;
    let is_double = format.float == PrimType::F64;
    let size = abs(s, x);
    let bits = s.bits(size, format.int);
    let field = s.lshr(bits, format.fraction);
    let fraction = s.mask(bits, format.hidden() - 1);
    let hidden = s.like(fraction, format.hidden());
    let significand = s.or(fraction, hidden);
    let significand = s.cast(significand, PrimType::U64);

    // Bits of 2/π from the one that stands for two quarter turns, times the significand. The zeros
    // in front of the table are what the least exponent skips.
    let least = format.bias - 1;
    let skip = s.plus(field, -least);
    let skip = s.cast(skip, PrimType::U32);
    let words = if is_double { 3 } else { 2 };
    let window = bits_from(s, lib.two_over_pi, skip, words);
    let high = s.mul(significand, window[0]);
    let carried = s.same(Op::IMulHiU, &[significand, window[1]]);
    let mut turn = s.add(high, carried);
    let mut below = None;
    if let Some(&last) = window.get(2) {
        let low = s.mul(significand, window[1]);
        let carried = s.same(Op::IMulHiU, &[significand, last]);
        let sum = s.add(low, carried);
        let over = s.cmp(Op::IcmpUlt, sum, low);
        let over = s.bit(over, turn);
        turn = s.add(turn, over);
        below = Some(sum);
    }

    // To the nearest quarter: 2 bits for them, 62 for what is left.
    let rounding = s.plus(turn, 1 << 61);
    let quarters = s.lshr(rounding, 62);
    let whole = s.shl(quarters, 62);
    let left = s.sub(turn, whole);
    let left = s.bits(left, PrimType::I64);
    let mut r = s.cast(left, format.float);
    if let Some(below) = below {
        let below = s.cast(below, format.float);
        let unit = lib.number(s, 2f64.powi(-64));
        r = fma(s, below, unit, r);
    }
    let quarter_turn = lib.split(s, HALF_PI);
    let unit = lib.number(s, 2f64.powi(-62));
    let r = mul(s, r, unit);
    let low = mul(s, r, quarter_turn[1]);
    let r = fma(s, r, quarter_turn[0], low);

    // Small angles are what they are.
    let eighth = lib.number(s, std::f64::consts::FRAC_PI_4);
    let is_small = s.cmp(Op::FcmpOlt, size, eighth);
    let r = s.select(is_small, size, r);
    let quarters = s.cast(quarters, PrimType::U32);
    let none = s.u32(0);
    let quarters = s.select(is_small, none, quarters);
    let infinity = lib.raw(s, format.infinity());
    let finite = s.cmp(Op::FcmpOlt, size, infinity);
    Angle { r, quarters, finite }
}

/// `count` words of a bit string from the bit with the number `skip`.
fn bits_from(s: &mut Seq, table: &[u64], skip: Value, count: usize) -> Vec<Value> {
    let mut words: Vec<Value> =
        table.iter().map(|&w| s.f.const_bits(PrimType::U64.id(), w)).collect();
    // Whole words by halving: move by 16 words or not, by 8 or not, …
    let levels = (table.len() - count).next_power_of_two().ilog2();
    for level in (0..=levels).rev() {
        let step = 1 << level;
        let chosen = s.mask(skip, 64 << level);
        let none = s.like(chosen, 0);
        let moved = s.cmp(Op::IcmpNe, chosen, none);
        let keep = (count + step).min(words.len());
        let last = words.len() - 1;
        words = (0..keep).map(|n| s.select(moved, words[(n + step).min(last)], words[n])).collect();
    }
    let amount = s.mask(skip, 63);
    let back = s.like(amount, 63);
    let back = s.xor(amount, back);
    let (amount, back) = (s.cast(amount, PrimType::U64), s.cast(back, PrimType::U64));
    let pairs: Vec<[Value; 2]> = words.windows(2).take(count).map(|w| [w[0], w[1]]).collect();
    let join = |[first, next]: [Value; 2]| {
        let first = s.same(Op::IShl, &[first, amount]);
        let next = s.lshr(next, 1);
        let next = s.same(Op::ILshr, &[next, back]);
        s.or(first, next)
    };
    pairs.into_iter().map(join).collect()
}

/// Sine and cosine up to an eighth of a turn.
fn sin_cos(s: &mut Seq, lib: &Library, r: Value) -> [Value; 2] {
    let z = mul(s, r, r);
    let sin = lib.odd_of_square(s, lib.sin, r, z);
    let p = lib.polynomial(s, lib.cos, z);
    let (one, half) = (lib.number(s, 1.0), lib.number(s, -0.5));
    let head = fma(s, z, half, one);
    let zz = mul(s, z, z);
    [sin, fma(s, zz, p, head)]
}

/// Whether a bit of a number is set.
fn has_bit(s: &mut Seq, v: Value, bit: u64) -> Value {
    let masked = s.mask(v, bit);
    let zero = s.like(masked, 0);
    s.cmp(Op::IcmpNe, masked, zero)
}

/// The sine `quarters` quarter turns further on.
fn wave(s: &mut Seq, lib: &Library, angle: &Angle, quarters: Value) -> Value {
    let [sin, cos] = sin_cos(s, lib, angle.r);
    let is_odd = has_bit(s, quarters, 1);
    let v = s.select(is_odd, cos, sin);
    let is_lower = has_bit(s, quarters, 2);
    let minus = s.same(Op::FNeg, &[v]);
    let v = s.select(is_lower, minus, v);
    let nan = lib.raw(s, lib.format.quiet_nan());
    s.select(angle.finite, v, nan)
}

pub(super) fn sin(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let angle = reduce(s, lib, x);
    let v = wave(s, lib, &angle, angle.quarters);
    let sign = lib.sign_of(s, x);
    lib.flip(s, v, sign)
}

pub(super) fn cos(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let angle = reduce(s, lib, x);
    let ahead = s.plus(angle.quarters, 1);
    wave(s, lib, &angle, ahead)
}

pub(super) fn tan(s: &mut Seq, lib: &Library, x: Value) -> Value {
    if has_approximations(s, lib) {
        let (sin, cos) = (approximate(s, Op::FSin, x), approximate(s, Op::FCos, x));
        return divide(s, Op::FDiv, &[sin, cos]);
    }
    let angle = reduce(s, lib, x);
    let [sin, cos] = sin_cos(s, lib, angle.r);
    // A quarter turn further it is -cos / sin.
    let is_odd = has_bit(s, angle.quarters, 1);
    let minus = s.same(Op::FNeg, &[cos]);
    let (over, under) = (s.select(is_odd, minus, sin), s.select(is_odd, sin, cos));
    let v = divide(s, Op::FDiv, &[over, under]);
    let sign = lib.sign_of(s, x);
    let v = lib.flip(s, v, sign);
    let nan = lib.raw(s, lib.format.quiet_nan());
    s.select(angle.finite, v, nan)
}
