//! Rules of integer arithmetic and bits.

use super::{Folder, Outcome};
use crate::eval::sign_extend;
use crate::{Inst, Op, Value};
use magpie_types::{PrimType, TypeId};

/// An op on two operands, of which the second is a constant.
#[derive(Clone, Copy)]
struct WithConstant {
    i: Inst,
    op: Op,
    x: Value,
    /// Type of the operands, at most 64 bits wide.
    p: PrimType,
    ty: TypeId,
    /// The bits of the constant.
    c: u64,
    /// The bits of the largest unsigned number.
    ones: u64,
    width: u64,
}

impl WithConstant {
    fn of(fx: &Folder, i: Inst) -> Option<WithConstant> {
        let [x, y] = fx.args(i);
        let p = fx.prim(x).filter(|p| (1..=64).contains(&p.bit_width()))?;
        let (op, ty, ones) = (fx.f.inst(i).op, fx.f.ty(x), p.mask());
        let c = fx.bits(y)? & ones;
        Some(WithConstant { i, op, x, p, ty, c, ones, width: p.bit_width() as u64 })
    }

    /// The smallest and the largest signed number, as bits.
    fn signed_ends(&self) -> (u64, u64) {
        (1 << (self.width - 1), self.ones >> 1)
    }

    fn same(&self) -> Outcome {
        Outcome::Value(self.x)
    }

    fn constant(&self, fx: &mut Folder, bits: u64) -> Outcome {
        fx.constant(self.ty, bits)
    }

    /// `op x, bits` instead.
    fn instead(&self, fx: &mut Folder, op: Op, x: Value, bits: u64) -> Outcome {
        let bits = fx.f.const_bits(self.ty, bits);
        fx.rewrite(self.i, op, &[x, bits])
    }

    /// `0 - x` instead.
    fn negated(&self, fx: &mut Folder) -> Outcome {
        let zero = fx.f.zero(self.ty);
        fx.rewrite(self.i, Op::ISub, &[zero, self.x])
    }

    /// The operand and the constant of `x` when it is an `op` with a constant too.
    fn inner(&self, fx: &Folder, op: Op) -> Option<(Value, u64)> {
        let [inner, a] = fx.operands(self.x, op)?;
        Some((inner, fx.bits(a)?))
    }

    /// `op (op x, a), c` → `op x, join(a, c)`.
    fn chain(&self, fx: &mut Folder, join: impl Fn(u64, u64) -> Option<u64>) -> Outcome {
        let joined = self.inner(fx, self.op).and_then(|(x, a)| Some((x, join(a, self.c)?)));
        match joined {
            Some((x, joined)) => self.instead(fx, self.op, x, joined),
            None => Outcome::Keep,
        }
    }
}

/// The zero of the result when both operands are one value, for vectors too.
fn zero_when_equal(fx: &mut Folder, i: Inst) -> Option<Outcome> {
    let [x, y] = fx.args(i);
    (x == y).then(|| Outcome::Value(fx.f.zero(fx.f.inst(i).ty)))
}

/// Operand 0 when both are one value.
fn first_when_equal(fx: &Folder, i: Inst) -> Option<Outcome> {
    let [x, y] = fx.args(i);
    (x == y).then_some(Outcome::Value(x))
}

/// Operand 0 when it is zero.
fn zero_stays(fx: &Folder, i: Inst) -> Outcome {
    let [x, _] = fx.args(i);
    if fx.bits(x) == Some(0) { Outcome::Value(x) } else { Outcome::Keep }
}

pub(super) fn add(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(c) = WithConstant::of(fx, i) {
        return plus(fx, c, c.c);
    }
    let [x, y] = fx.args(i);
    let undone = |x: Value, y: Value| match fx.operands::<2>(x, Op::ISub) {
        Some([a, b]) if b == y => Some(a),
        _ => None,
    };
    undone(x, y).or_else(|| undone(y, x)).map_or(Outcome::Keep, Outcome::Value)
}

pub(super) fn sub(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(outcome) = zero_when_equal(fx, i) {
        return outcome;
    }
    if let Some(c) = WithConstant::of(fx, i) {
        return plus(fx, c, c.c.wrapping_neg() & c.ones);
    }
    let [x, y] = fx.args(i);
    match (fx.operands::<2>(x, Op::IAdd), fx.operands::<2>(y, Op::ISub)) {
        (Some([a, b]), _) if a == y => Outcome::Value(b),
        (Some([a, b]), _) if b == y => Outcome::Value(a),
        (_, Some([a, b])) if a == x => Outcome::Value(b),
        _ => Outcome::Keep,
    }
}

/// x + c, where x may be a sum with a constant itself. The constant of the result is added when it
/// is positive as a signed number, else its negative is subtracted.
fn plus(fx: &mut Folder, o: WithConstant, c: u64) -> Outcome {
    let (base, sum) = if let Some((inner, a)) = o.inner(fx, Op::IAdd) {
        (inner, a.wrapping_add(c) & o.ones)
    } else if let Some((inner, a)) = o.inner(fx, Op::ISub) {
        (inner, c.wrapping_sub(a) & o.ones)
    } else {
        (o.x, c)
    };
    if sum == 0 {
        return Outcome::Value(base);
    }
    let (op, constant) = match sign_extend(sum, o.width as u32) < 0 {
        true => (Op::ISub, sum.wrapping_neg() & o.ones),
        false => (Op::IAdd, sum),
    };
    if base == o.x && o.op == op {
        return Outcome::Keep;
    }
    o.instead(fx, op, base, constant)
}

pub(super) fn mul(fx: &mut Folder, i: Inst) -> Outcome {
    let Some(o) = WithConstant::of(fx, i) else { return Outcome::Keep };
    match o.c {
        0 => o.constant(fx, 0),
        1 => o.same(),
        c if c.is_power_of_two() => o.instead(fx, Op::IShl, o.x, c.trailing_zeros() as u64),
        c if c == o.ones => o.negated(fx),
        _ => o.chain(fx, |a, b| Some(a.wrapping_mul(b))),
    }
}

pub(super) fn udiv(fx: &mut Folder, i: Inst) -> Outcome {
    let Some(o) = WithConstant::of(fx, i) else { return zero_stays(fx, i) };
    match o.c {
        0 | 1 => o.same(),
        c if c.is_power_of_two() => o.instead(fx, Op::ILshr, o.x, c.trailing_zeros() as u64),
        _ => o.chain(fx, |a, b| a.checked_mul(b).filter(|&m| a != 0 && m <= o.ones)),
    }
}

pub(super) fn sdiv(fx: &mut Folder, i: Inst) -> Outcome {
    let Some(o) = WithConstant::of(fx, i) else { return zero_stays(fx, i) };
    match o.c {
        // Of one bit, 1 is -1.
        0 => o.same(),
        1 if o.width > 1 => o.same(),
        c if c == o.ones => o.negated(fx),
        _ => Outcome::Keep,
    }
}

pub(super) fn urem(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(outcome) = zero_when_equal(fx, i) {
        return outcome;
    }
    let Some(o) = WithConstant::of(fx, i) else { return zero_stays(fx, i) };
    match o.c {
        0 | 1 => o.constant(fx, 0),
        c if c.is_power_of_two() => o.instead(fx, Op::IAnd, o.x, c - 1),
        _ => Outcome::Keep,
    }
}

pub(super) fn srem(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(outcome) = zero_when_equal(fx, i) {
        return outcome;
    }
    match WithConstant::of(fx, i) {
        Some(o) if o.c <= 1 || o.c == o.ones => o.constant(fx, 0),
        Some(_) => Outcome::Keep,
        None => zero_stays(fx, i),
    }
}

pub(super) fn mulhi(fx: &mut Folder, i: Inst) -> Outcome {
    match WithConstant::of(fx, i) {
        Some(o) if o.c == 0 || o.c == 1 && o.op == Op::IMulHiU => o.constant(fx, 0),
        _ => Outcome::Keep,
    }
}

pub(super) fn and(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(outcome) = first_when_equal(fx, i) {
        return outcome;
    }
    match WithConstant::of(fx, i) {
        Some(o) if o.c == 0 => o.constant(fx, 0),
        Some(o) if o.c == o.ones => o.same(),
        Some(o) => o.chain(fx, |a, b| Some(a & b)),
        None => Outcome::Keep,
    }
}

pub(super) fn or(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(outcome) = first_when_equal(fx, i) {
        return outcome;
    }
    match WithConstant::of(fx, i) {
        Some(o) if o.c == 0 => o.same(),
        Some(o) if o.c == o.ones => o.constant(fx, o.ones),
        Some(o) => o.chain(fx, |a, b| Some(a | b)),
        None => Outcome::Keep,
    }
}

pub(super) fn xor(fx: &mut Folder, i: Inst) -> Outcome {
    if let Some(outcome) = zero_when_equal(fx, i) {
        return outcome;
    }
    match WithConstant::of(fx, i) {
        Some(o) if o.c == 0 => o.same(),
        Some(o) if o.p == PrimType::Bool && super::compare::invert(fx, i, o.x) => {
            Outcome::Rewritten
        }
        Some(o) => o.chain(fx, |a, b| Some(a ^ b)),
        None => Outcome::Keep,
    }
}

/// A shift or rotation by nothing, or by more than the width.
fn amount(fx: &mut Folder, o: WithConstant) -> Option<Outcome> {
    let amount = o.c % o.width;
    if amount == 0 {
        return Some(o.same());
    }
    (amount != o.c).then(|| o.instead(fx, o.op, o.x, amount))
}

pub(super) fn shl(fx: &mut Folder, i: Inst) -> Outcome {
    shift(fx, i, Op::ILshr, |c, ones| ones << c)
}

pub(super) fn lshr(fx: &mut Folder, i: Inst) -> Outcome {
    shift(fx, i, Op::IShl, |c, ones| ones >> c)
}

/// A shift of a shift, in the same direction or `back`, which leaves the bits of a mask.
fn shift(fx: &mut Folder, i: Inst, back: Op, mask: impl Fn(u64, u64) -> u64) -> Outcome {
    let Some(o) = WithConstant::of(fx, i) else { return zero_stays(fx, i) };
    if let Some(outcome) = amount(fx, o) {
        return outcome;
    }
    if let Some((inner, a)) = o.inner(fx, o.op) {
        let total = a % o.width + o.c;
        return match total < o.width {
            true => o.instead(fx, o.op, inner, total),
            false => o.constant(fx, 0),
        };
    }
    match o.inner(fx, back) {
        Some((inner, a)) if a % o.width == o.c => {
            o.instead(fx, Op::IAnd, inner, mask(o.c, o.ones) & o.ones)
        }
        _ => Outcome::Keep,
    }
}

pub(super) fn ashr(fx: &mut Folder, i: Inst) -> Outcome {
    let Some(o) = WithConstant::of(fx, i) else { return zero_stays(fx, i) };
    match amount(fx, o) {
        Some(outcome) => outcome,
        None => o.chain(fx, |a, b| Some((a % o.width + b).min(o.width - 1))),
    }
}

pub(super) fn rotate(fx: &mut Folder, i: Inst) -> Outcome {
    let Some(o) = WithConstant::of(fx, i) else { return zero_stays(fx, i) };
    match amount(fx, o) {
        Some(outcome) => outcome,
        None => o.chain(fx, |a, b| Some((a % o.width + b) % o.width)),
    }
}

pub(super) fn unsigned_min_max(fx: &mut Folder, i: Inst) -> Outcome {
    let ends = |o: WithConstant| (0, o.ones);
    min_max(fx, i, fx.f.inst(i).op == Op::IUmin, ends, |bits, _| bits as i128)
}

pub(super) fn signed_min_max(fx: &mut Folder, i: Inst) -> Outcome {
    let ends = |o: WithConstant| o.signed_ends();
    let number = |bits, width| sign_extend(bits, width) as i128;
    min_max(fx, i, fx.f.inst(i).op == Op::ISmin, ends, number)
}

fn min_max(
    fx: &mut Folder,
    i: Inst,
    is_min: bool,
    ends: impl Fn(WithConstant) -> (u64, u64),
    number: impl Fn(u64, u32) -> i128,
) -> Outcome {
    if let Some(outcome) = first_when_equal(fx, i) {
        return outcome;
    }
    let Some(o) = WithConstant::of(fx, i) else { return Outcome::Keep };
    let (least, most) = ends(o);
    let (absorbing, neutral) = if is_min { (least, most) } else { (most, least) };
    if o.c == absorbing {
        return o.constant(fx, o.c);
    }
    if o.c == neutral {
        return o.same();
    }
    let width = o.width as u32;
    o.chain(fx, |a, b| {
        let first_smaller = number(a, width) <= number(b, width);
        Some(if first_smaller == is_min { a } else { b })
    })
}

pub(super) fn overflows(fx: &mut Folder, i: Inst) -> Outcome {
    let ty = fx.f.inst(i).ty;
    match WithConstant::of(fx, i) {
        Some(o) if o.c == 0 => fx.constant(ty, 0),
        Some(o) if o.c == 1 && o.op == Op::IMulOverflows && o.width > 1 => fx.constant(ty, 0),
        _ => Outcome::Keep,
    }
}
