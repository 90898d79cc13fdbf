//! Logarithms, and powers by them.

use super::super::seq::Seq;
use super::exponentials::exp2_of_sum;
use super::library::{LN_2, LOG_FIRST, LOG2_E, Library, abs, add, fma, mul, neg, sub};
use super::{approximate, divide, has_approximations};
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// `x = 2^exponent · (1 + f)`, with `1 + f` between the root of ½ and of 2.
struct Taken {
    exponent: Value,
    f: Value,
}

/// Takes a positive number apart.
fn take_apart(s: &mut Seq, lib: &Library, x: Value) -> Taken {
    let format = &lib.format;
    // A subnormal number has no leading one: made larger first.
    let smallest = lib.raw(s, format.hidden());
    let subnormal = s.cmp(Op::FcmpOlt, x, smallest);
    let raise = format.fraction + 1;
    let factor = lib.number(s, 2f64.powi(raise as i32));
    let raised = mul(s, x, factor);
    let x = s.select(subnormal, raised, x);
    let (lowered, none) = (s.i32(raise as i32), s.i32(0));
    let lowered = s.select(subnormal, lowered, none);

    let bits = s.bits(x, lib.signed);
    let root_of_half = match format.float {
        PrimType::F32 => 0x3f35_04f3,
        _ => 0x3fe6_a09e_667f_3bcd,
    };
    let offset = s.like(bits, root_of_half);
    let above = s.sub(bits, offset);
    let octave = s.ashr(above, format.fraction);
    let field = s.shl(octave, format.fraction);
    let mantissa = s.sub(bits, field);
    let mantissa = s.bits(mantissa, format.float);
    let octave = s.cast(octave, PrimType::I32);
    let exponent = s.sub(octave, lowered);
    let exponent = s.cast(exponent, format.float);
    let one = lib.number(s, 1.0);
    Taken { exponent, f: sub(s, mantissa, one) }
}

/// log(1 + f) as f and what has to be added to it.
fn log_correction(s: &mut Seq, lib: &Library, f: Value) -> Value {
    let (two, half) = (lib.number(s, 2.0), lib.number(s, 0.5));
    let sum = add(s, f, two);
    let q = divide(s, Op::FDiv, &[f, sum]);
    let z = mul(s, q, q);
    let p = lib.polynomial(s, lib.log, z);
    // 2 q = f - f²/2 + q f²/2, and the first of these is exact.
    let half_f = mul(s, half, f);
    let half_square = mul(s, half_f, f);
    let rest = fma(s, z, p, half_square);
    let minus = neg(s, half_square);
    fma(s, q, rest, minus)
}

/// The logarithm for positive finite numbers that `finite` is, and for all others.
fn with_ends(s: &mut Seq, lib: &Library, x: Value, finite: Value) -> Value {
    let infinity = lib.raw(s, lib.format.infinity());
    let least = lib.raw(s, lib.format.infinity() | lib.format.sign());
    let nan = lib.raw(s, lib.format.quiet_nan());
    let zero = lib.number(s, 0.0);
    let positive = s.cmp(Op::FcmpOgt, x, zero);
    let is_zero = s.cmp(Op::FcmpOeq, x, zero);
    let is_infinite = s.cmp(Op::FcmpOeq, x, infinity);
    let r = s.select(is_infinite, infinity, finite);
    let other = s.select(is_zero, least, nan);
    s.select(positive, r, other)
}

pub(super) fn log(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let [high, low] = lib.split(s, LN_2);
    if has_approximations(s, lib) {
        let octaves = approximate(s, Op::FLog2, x);
        return mul(s, octaves, high);
    }
    let Taken { exponent, f } = take_apart(s, lib, x);
    let correction = log_correction(s, lib, f);
    let rest = fma(s, exponent, low, correction);
    let rest = add(s, f, rest);
    let r = fma(s, exponent, high, rest);
    with_ends(s, lib, x, r)
}

pub(super) fn log2(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let Taken { exponent, f } = take_apart(s, lib, x);
    let correction = log_correction(s, lib, f);
    let [high, low] = lib.split(s, LOG2_E);
    let rest = mul(s, correction, high);
    let rest = fma(s, f, low, rest);
    let rest = fma(s, f, high, rest);
    let r = add(s, exponent, rest);
    with_ends(s, lib, x, r)
}

/// log2 of a positive number as a sum of two, of which the second is small.
fn log2_in_two(s: &mut Seq, lib: &Library, x: Value) -> [Value; 2] {
    let Taken { exponent, f } = take_apart(s, lib, x);
    let (one, two) = (lib.number(s, 1.0), lib.number(s, 2.0));
    // q = f / (2 + f), with the digits that sum and quotient lose.
    let sum = add(s, f, two);
    let rounded = sub(s, sum, two);
    let lost = sub(s, f, rounded);
    let inverse = s.same(Op::FDiv, &[one, sum]);
    let q = mul(s, f, inverse);
    let minus = neg(s, q);
    let rest = fma(s, minus, sum, f);
    let rest = fma(s, minus, lost, rest);
    let q_low = mul(s, rest, inverse);
    // log = 2 q + q z p(z). Of the second part, which is small, only the first term counts in the
    // digits that are lost.
    let z = mul(s, q, q);
    let minus = neg(s, z);
    let z_low = fma(s, q, q, minus);
    let twice = add(s, q, q);
    let z_low = fma(s, twice, q_low, z_low);
    let cube = mul(s, q, z);
    let minus = neg(s, cube);
    let cube_low = fma(s, q, z, minus);
    let cube_low = fma(s, q, z_low, cube_low);
    let cube_low = fma(s, q_low, z, cube_low);
    let [c_high, c_low] = lib.split(s, LOG_FIRST);
    let first = mul(s, cube, c_high);
    let minus = neg(s, first);
    let first_low = fma(s, cube, c_high, minus);
    let first_low = fma(s, cube, c_low, first_low);
    let first_low = fma(s, cube_low, c_high, first_low);
    let p = lib.polynomial(s, &lib.log[1..], z);
    let cube_z = mul(s, cube, z);
    let rest = fma(s, cube_z, p, first_low);
    let rest = fma(s, two, q_low, rest);
    let [head, lost] = sum_in_two(s, twice, first);
    let small = add(s, lost, rest);
    let [high, low] = sum_in_two(s, head, small);
    // To base 2, and the exponent in front.
    let [c_high, c_low] = lib.split(s, LOG2_E);
    let head = mul(s, high, c_high);
    let minus = neg(s, head);
    let tail = fma(s, high, c_high, minus);
    let tail = fma(s, high, c_low, tail);
    let tail = fma(s, low, c_high, tail);
    let [total, lost] = sum_in_two(s, exponent, head);
    [total, add(s, lost, tail)]
}

/// A sum, and what rounding took from it. The first number is zero or the larger one.
fn sum_in_two(s: &mut Seq, large: Value, small: Value) -> [Value; 2] {
    let sum = add(s, large, small);
    let part = sub(s, sum, large);
    [sum, sub(s, small, part)]
}

/// |x|^y for |x| that is no special case.
fn power_of_size(s: &mut Seq, lib: &Library, size: Value, y: Value) -> Value {
    if has_approximations(s, lib) {
        let octaves = approximate(s, Op::FLog2, size);
        let exponent = mul(s, octaves, y);
        return approximate(s, Op::FExp2, exponent);
    }
    let [high, low] = log2_in_two(s, lib, size);
    let head = mul(s, y, high);
    let minus = neg(s, head);
    let tail = fma(s, y, high, minus);
    let tail = fma(s, y, low, tail);
    let held = lib.clamp(s, head, lib.exp2_range);
    let inside = s.cmp(Op::FcmpOeq, held, head);
    let zero = lib.number(s, 0.0);
    let tail = s.select(inside, tail, zero);
    let n = s.same(Op::FRound, &[held]);
    let r = sub(s, held, n);
    let r = add(s, r, tail);
    exp2_of_sum(s, lib, n, r)
}

/// x^y for all operands, as C's `pow` has it.
pub(super) fn pow(s: &mut Seq, lib: &Library, x: Value, y: Value) -> Value {
    let [zero, one, half] = [0.0, 1.0, 0.5].map(|v| lib.number(s, v));
    let infinity = lib.raw(s, lib.format.infinity());
    let nan = lib.raw(s, lib.format.quiet_nan());
    let size = abs(s, x);
    let mut power = power_of_size(s, lib, size, y);
    // Zero and infinity, by the sign of the exponent.
    let falls = s.cmp(Op::FcmpOlt, y, zero);
    let (of_zero, of_infinity) = (s.select(falls, infinity, zero), s.select(falls, zero, infinity));
    let is_zero = s.cmp(Op::FcmpOeq, x, zero);
    power = s.select(is_zero, of_zero, power);
    let is_infinite = s.cmp(Op::FcmpOeq, size, infinity);
    power = s.select(is_infinite, of_infinity, power);
    // An infinite exponent: of what is larger than one, or of what is smaller.
    let y_size = abs(s, y);
    let endless = s.cmp(Op::FcmpOeq, y_size, infinity);
    let grows = s.cmp(Op::FcmpOgt, size, one);
    let to_infinity = s.select(falls, zero, infinity);
    let to_zero = s.select(falls, infinity, zero);
    let end = s.select(grows, to_infinity, to_zero);
    power = s.select(endless, end, power);
    let not_a_number = s.cmp(Op::FcmpUno, x, y);
    power = s.select(not_a_number, nan, power);
    let is_unit = s.cmp(Op::FcmpOeq, size, one);
    let defined = s.cmp(Op::FcmpOeq, y, y);
    let unit = s.and(is_unit, defined);
    power = s.select(unit, one, power);
    // A negative base gives its sign to odd powers; it has no others but whole ones.
    let whole = is_whole(s, y);
    let halved = mul(s, y, half);
    let even = is_whole(s, halved);
    let sign = lib.sign_of(s, x);
    let none = s.like(sign, 0);
    let sign = s.select(even, none, sign);
    let signed = lib.flip(s, power, sign);
    power = s.select(whole, signed, power);
    let below = s.cmp(Op::FcmpOlt, x, zero);
    let finite = s.cmp(Op::FcmpOlt, size, infinity);
    let negative = s.and(below, finite);
    let of_negative = s.select(whole, power, nan);
    power = s.select(negative, of_negative, power);
    // Every base to the power of zero, and one to every power.
    let no_power = s.cmp(Op::FcmpOeq, y, zero);
    let of_one = s.cmp(Op::FcmpOeq, x, one);
    let always_one = s.or(no_power, of_one);
    s.select(always_one, one, power)
}

/// Whether a number has no fraction; infinities have none.
fn is_whole(s: &mut Seq, v: Value) -> Value {
    let whole = s.same(Op::FTrunc, &[v]);
    s.cmp(Op::FcmpOeq, whole, v)
}
