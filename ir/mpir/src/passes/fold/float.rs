//! Rules of float arithmetic.
//!
//! Without flags a rule must give the same bits for every operand, up to the payload of NaN.

use super::{Folder, Outcome};
use crate::eval::{float_bits, float_value};
use crate::{Flags, Inst, Op, Value};
use magpie_types::PrimType;

/// A float operand that is a constant: type and value.
fn constant(fx: &Folder, v: Value) -> Option<(PrimType, f64)> {
    let p = fx.prim(v).filter(|p| p.is_float())?;
    Some((p, float_value(p, fx.bits(v)?)))
}

fn is_negative_zero(v: f64) -> bool {
    v == 0.0 && v.is_sign_negative()
}

fn allows(fx: &Folder, i: Inst, flags: Flags) -> bool {
    fx.f.inst(i).flags.contains(flags)
}

/// The operand of the negation that defines `v`.
fn negated(fx: &Folder, v: Value) -> Option<Value> {
    fx.operands(v, Op::FNeg).map(|[x]| x)
}

pub(super) fn add(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y] = fx.args(i);
    // x + -0 is x for every x; x + 0 is not when x is -0.
    if let Some((_, c)) = constant(fx, y)
        && c == 0.0
        && (is_negative_zero(c) || allows(fx, i, Flags::NSZ))
    {
        return Outcome::Value(x);
    }
    if let Some(y) = negated(fx, y) {
        return fx.rewrite(i, Op::FSub, &[x, y]);
    }
    match negated(fx, x) {
        Some(x) => fx.rewrite(i, Op::FSub, &[y, x]),
        None => Outcome::Keep,
    }
}

pub(super) fn sub(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y] = fx.args(i);
    if let Some((_, c)) = constant(fx, y)
        && c == 0.0
        && (!is_negative_zero(c) || allows(fx, i, Flags::NSZ))
    {
        return Outcome::Value(x);
    }
    if x == y && allows(fx, i, Flags::NNAN) {
        return Outcome::Value(fx.f.zero(fx.f.inst(i).ty));
    }
    match negated(fx, y) {
        Some(y) => fx.rewrite(i, Op::FAdd, &[x, y]),
        None => Outcome::Keep,
    }
}

pub(super) fn mul(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y] = fx.args(i);
    if let Some((_, c)) = constant(fx, y) {
        if c == 1.0 {
            return Outcome::Value(x);
        }
        if c == -1.0 {
            return fx.rewrite(i, Op::FNeg, &[x]);
        }
        if c == 0.0 && allows(fx, i, Flags::NNAN.union(Flags::NSZ)) {
            return Outcome::Value(y);
        }
    }
    match (negated(fx, x), negated(fx, y)) {
        (Some(x), Some(y)) => fx.rewrite(i, Op::FMul, &[x, y]),
        _ => Outcome::Keep,
    }
}

pub(super) fn div(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y] = fx.args(i);
    let Some((p, c)) = constant(fx, y) else { return Outcome::Keep };
    if c == 1.0 {
        return Outcome::Value(x);
    }
    if c == -1.0 {
        return fx.rewrite(i, Op::FNeg, &[x]);
    }
    let reciprocal = 1.0 / c;
    let bits = float_bits(p, reciprocal);
    // Dividing by a power of two and multiplying with its inverse round the same number.
    let exact = is_power_of_two(p, fx.bits(y).unwrap_or(0)) && is_power_of_two(p, bits);
    let near = allows(fx, i, Flags::AFN) && is_normal(p, bits);
    if exact || near {
        let reciprocal = fx.f.const_bits(p.id(), bits);
        return fx.rewrite(i, Op::FMul, &[x, reciprocal]);
    }
    Outcome::Keep
}

/// Number of fraction bits.
fn fraction_bits(p: PrimType) -> u32 {
    match p {
        PrimType::F64 => 52,
        PrimType::F32 => 23,
        PrimType::F16 => 10,
        _ => 7,
    }
}

/// Neither zero, subnormal, infinite nor NaN.
fn is_normal(p: PrimType, bits: u64) -> bool {
    let exponent = (bits & (p.mask() >> 1)) >> fraction_bits(p);
    exponent != 0 && exponent != p.mask() >> (fraction_bits(p) + 1)
}

fn is_power_of_two(p: PrimType, bits: u64) -> bool {
    is_normal(p, bits) && bits & ((1 << fraction_bits(p)) - 1) == 0
}

pub(super) fn neg(fx: &mut Folder, i: Inst) -> Outcome {
    let [x] = fx.args(i);
    negated(fx, x).map_or(Outcome::Keep, Outcome::Value)
}

pub(super) fn abs(fx: &mut Folder, i: Inst) -> Outcome {
    let [x] = fx.args(i);
    if fx.f.def_op(x) == Some(Op::FAbs) {
        return Outcome::Value(x);
    }
    match negated(fx, x) {
        Some(x) => fx.rewrite(i, Op::FAbs, &[x]),
        None => Outcome::Keep,
    }
}

pub(super) fn min_max(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y] = fx.args(i);
    if x == y { Outcome::Value(x) } else { Outcome::Keep }
}

pub(super) fn fma(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y, z] = fx.args(i);
    match constant(fx, y) {
        Some((_, 1.0)) => fx.rewrite(i, Op::FAdd, &[x, z]),
        _ => Outcome::Keep,
    }
}
