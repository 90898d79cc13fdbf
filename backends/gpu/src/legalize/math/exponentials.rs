//! e^x, 2^x and the hyperbolic functions.

use super::super::seq::Seq;
use super::library::{LN_2, LOG2_E, Library, abs, add, fma, mul, neg, sub};
use super::{approximate, divide, has_approximations};
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// e^x.
pub(super) fn exp(s: &mut Seq, lib: &Library, x: Value) -> Value {
    scaled_exp(s, lib, x, 0)
}

/// e^x · 2^shift, without overflow in between.
fn scaled_exp(s: &mut Seq, lib: &Library, x: Value, shift: i64) -> Value {
    let [per_octave, _] = lib.split(s, LOG2_E);
    if has_approximations(s, lib) {
        let shift = lib.number(s, shift as f64);
        let exponent = fma(s, x, per_octave, shift);
        return approximate(s, Op::FExp2, exponent);
    }
    // x = n log 2 + r
    let x = lib.clamp(s, x, lib.exp_range);
    let octaves = mul(s, x, per_octave);
    let n = s.same(Op::FRound, &[octaves]);
    let minus = neg(s, n);
    let [high, low] = lib.split(s, LN_2);
    let r = fma(s, minus, high, x);
    let r = fma(s, minus, low, r);
    let power = reduced(s, lib, r);
    let n = s.cast(n, PrimType::I32);
    let n = s.plus(n, shift);
    scale(s, lib, power, n)
}

/// 2^x.
pub(super) fn exp2(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let x = lib.clamp(s, x, lib.exp2_range);
    let n = s.same(Op::FRound, &[x]);
    let r = sub(s, x, n);
    exp2_of_sum(s, lib, n, r)
}

/// 2^(n + r) for a whole number n inside `exp2_range` and |r| at most a half.
pub(super) fn exp2_of_sum(s: &mut Seq, lib: &Library, n: Value, r: Value) -> Value {
    let [log_2, _] = lib.split(s, LN_2);
    let r = mul(s, r, log_2);
    let power = reduced(s, lib, r);
    let n = s.cast(n, PrimType::I32);
    scale(s, lib, power, n)
}

/// e^r for |r| at most half of log 2.
fn reduced(s: &mut Seq, lib: &Library, r: Value) -> Value {
    let p = lib.polynomial(s, lib.exp, r);
    let rr = mul(s, r, r);
    let p = fma(s, rr, p, r);
    let one = lib.number(s, 1.0);
    add(s, p, one)
}

/// x · 2^n in two steps, because 2^n may not be a normal number. Only the second one rounds.
fn scale(s: &mut Seq, lib: &Library, x: Value, n: Value) -> Value {
    let half = s.ashr(n, 1);
    let rest = s.sub(n, half);
    [half, rest].into_iter().fold(x, |x, n| {
        let field = s.plus(n, lib.format.bias);
        let field = s.cast(field, lib.signed);
        let field = s.bits(field, lib.format.int);
        let bits = s.shl(field, lib.format.fraction);
        let power = s.bits(bits, lib.format.float);
        mul(s, x, power)
    })
}

/// Half of e^|x|, and half of e^-|x|.
fn halves(s: &mut Seq, lib: &Library, x: Value) -> [Value; 2] {
    let size = abs(s, x);
    let grown = scaled_exp(s, lib, size, -1);
    let quarter = lib.number(s, 0.25);
    [grown, divide(s, Op::FDiv, &[quarter, grown])]
}

pub(super) fn cosh(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let [grown, shrunk] = halves(s, lib, x);
    add(s, grown, shrunk)
}

pub(super) fn sinh(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let [grown, shrunk] = halves(s, lib, x);
    let far = sub(s, grown, shrunk);
    odd_function(s, lib, x, (1.0, lib.sinh), far)
}

pub(super) fn tanh(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let size = abs(s, x);
    let twice = add(s, size, size);
    let square = exp(s, lib, twice);
    let (one, two) = (lib.number(s, 1.0), lib.number(s, 2.0));
    let sum = add(s, square, one);
    let missing = divide(s, Op::FDiv, &[two, sum]);
    let far = sub(s, one, missing);
    odd_function(s, lib, x, (0.6, lib.tanh), far)
}

/// An odd function from its polynomial below an end, and from its value for |x| beyond it.
fn odd_function(
    s: &mut Seq,
    lib: &Library,
    x: Value,
    (end, coefficients): (f64, &[f64]),
    far: Value,
) -> Value {
    let sign = lib.sign_of(s, x);
    let far = lib.flip(s, far, sign);
    let near = lib.odd(s, coefficients, x);
    let size = abs(s, x);
    let end = lib.number(s, end);
    let is_near = s.cmp(Op::FcmpOlt, size, end);
    s.select(is_near, near, far)
}
