//! Rules of comparisons.

use super::{Folder, Outcome};
use crate::analysis::predicate::{Predicate, Relation};
use crate::eval::sign_extend;
use crate::{Domain, Flags, Inst, Op, Value};
use magpie_types::{PrimType, fixed};

pub(super) fn simplify(fx: &mut Folder, i: Inst) -> Outcome {
    let [x, y] = fx.args(i);
    let Some(predicate) = Predicate::of(fx.f.inst(i).op) else { return Outcome::Keep };
    if fx.f.inst(i).ty != fixed::BOOL {
        return Outcome::Keep;
    }
    if x == y {
        let reflexive = matches!(predicate.relation, Relation::Eq | Relation::Le | Relation::Ge);
        return fx.constant(fixed::BOOL, reflexive as u64);
    }
    let Some(p) = fx.prim(x).filter(|p| (1..=64).contains(&p.bit_width())) else {
        return Outcome::Keep;
    };
    if fx.is_const(x) && !fx.is_const(y) {
        return fx.rewrite(i, predicate.swapped().op(), &[y, x]);
    }
    if let Some(outcome) = widened(fx, i, predicate, p, x, y) {
        return outcome;
    }
    match fx.bits(y) {
        Some(c) if p == PrimType::Bool => bool_constant(fx, i, predicate, x, c & 1 == 1),
        Some(c) => with_constant(fx, i, predicate, p, x, c & p.mask()),
        None => Outcome::Keep,
    }
}

fn bool_constant(fx: &mut Folder, i: Inst, p: Predicate, x: Value, c: bool) -> Outcome {
    match p.relation {
        Relation::Eq | Relation::Ne if c == (p.relation == Relation::Eq) => Outcome::Value(x),
        Relation::Eq | Relation::Ne => {
            let yes = fx.f.const_bool(true);
            fx.rewrite(i, Op::IXor, &[x, yes])
        }
        Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge => Outcome::Keep,
    }
}

fn with_constant(
    fx: &mut Folder,
    i: Inst,
    predicate: Predicate,
    p: PrimType,
    x: Value,
    c: u64,
) -> Outcome {
    let ones = p.mask();
    let (least, most) = match predicate.signed {
        true => (1 << (p.bit_width() - 1), ones >> 1),
        false => (0, ones),
    };
    let instead = |fx: &mut Folder, relation, x, c: u64| {
        let c = fx.f.const_bits(fx.f.ty(x), c);
        fx.rewrite(i, Predicate { relation, ..predicate }.op(), &[x, c])
    };
    match predicate.relation {
        Relation::Lt if c == least => fx.constant(fixed::BOOL, 0),
        Relation::Gt if c == most => fx.constant(fixed::BOOL, 0),
        Relation::Ge if c == least => fx.constant(fixed::BOOL, 1),
        Relation::Le if c == most => fx.constant(fixed::BOOL, 1),
        // Next to an end only one value is left.
        Relation::Lt if c == least.wrapping_add(1) & ones => instead(fx, Relation::Eq, x, least),
        Relation::Gt if c == least => instead(fx, Relation::Ne, x, least),
        // One form for equal tests: strict.
        Relation::Le => instead(fx, Relation::Lt, x, c.wrapping_add(1)),
        Relation::Ge => instead(fx, Relation::Gt, x, c.wrapping_sub(1)),
        Relation::Lt | Relation::Gt => Outcome::Keep,
        Relation::Eq | Relation::Ne => {
            let inner = |op| {
                let [a, b] = fx.operands(x, op)?;
                Some((a, fx.bits(b)?))
            };
            let moved = inner(Op::IAdd)
                .map(|(a, k)| (a, c.wrapping_sub(k)))
                .or_else(|| inner(Op::ISub).map(|(a, k)| (a, c.wrapping_add(k))))
                .or_else(|| inner(Op::IXor).map(|(a, k)| (a, c ^ k)));
            if let Some((a, c)) = moved {
                return instead(fx, predicate.relation, a, c);
            }
            // A multiple of a power of two has zeros at the end, whatever its sign.
            match inner(Op::ISrem) {
                Some((a, k)) if c == 0 && k.is_power_of_two() => {
                    let (ty, span) = (fx.f.ty(a), fx.f.inst(i).span);
                    let ones = fx.f.const_bits(ty, k - 1);
                    let and = fx.f.make_inst(Op::IAnd, Flags::NONE, ty, &[a, ones], 0, span);
                    fx.out.push(and);
                    match fx.f.inst(and).result() {
                        Some(rest) => instead(fx, predicate.relation, rest, 0),
                        None => Outcome::Keep,
                    }
                }
                _ => Outcome::Keep,
            }
        }
    }
}

/// Comparison of unsigned numbers that were widened: on the narrow type. In kernels legalisation
/// widens small numbers, which the target cannot compare.
fn widened(
    fx: &mut Folder,
    i: Inst,
    predicate: Predicate,
    p: PrimType,
    x: Value,
    y: Value,
) -> Option<Outcome> {
    let narrow = |fx: &Folder, v| {
        let [inner] = fx.operands(v, Op::Cast)?;
        let from = fx.prim(inner)?;
        let widens = from.is_int() && !from.is_signed() && from.bit_width() < p.bit_width();
        (widens && p.is_int()).then_some((inner, from))
    };
    let (a, from) = narrow(fx, x)?;
    let b = match fx.bits(y) {
        Some(c) if c <= from.mask() => fx.f.const_bits(from.id(), c),
        // Negative, or larger than the narrow type holds: the answer does not depend on x.
        Some(c) => {
            let c_is_larger = !predicate.signed || sign_extend(c, p.bit_width()) >= 0;
            let truth = match predicate.relation {
                Relation::Eq => false,
                Relation::Ne => true,
                Relation::Lt | Relation::Le => c_is_larger,
                Relation::Gt | Relation::Ge => !c_is_larger,
            };
            return Some(fx.constant(fixed::BOOL, truth as u64));
        }
        None => {
            let (b, other) = narrow(fx, y)?;
            if other != from {
                return None;
            }
            b
        }
    };
    if fx.f.domain == Domain::Device && from.bit_width() < 32 {
        return None;
    }
    Some(fx.rewrite(i, Predicate { signed: false, ..predicate }.op(), &[a, b]))
}

/// Float comparisons and their opposites.
const FLOAT_OPPOSITES: [(Op, Op); 7] = [
    (Op::FcmpOeq, Op::FcmpUne),
    (Op::FcmpOne, Op::FcmpUeq),
    (Op::FcmpOlt, Op::FcmpUge),
    (Op::FcmpOgt, Op::FcmpUle),
    (Op::FcmpOle, Op::FcmpUgt),
    (Op::FcmpOge, Op::FcmpUlt),
    (Op::FcmpOrd, Op::FcmpUno),
];

/// Turns `xor x, true` at `i` into the opposite of the comparison that defines `x`.
pub(super) fn invert(fx: &mut Folder, i: Inst, x: Value) -> bool {
    let Some(cmp) = fx.f.def_inst(x) else { return false };
    let op = fx.f.inst(cmp).op;
    let float = || {
        let row = FLOAT_OPPOSITES.iter().find(|row| row.0 == op || row.1 == op)?;
        Some(if row.0 == op { row.1 } else { row.0 })
    };
    let Some(opposite) = Predicate::of(op).map(|p| p.opposite().op()).or_else(float) else {
        return false;
    };
    let args: [Value; 2] = fx.args(cmp);
    fx.f.inst_mut(i).flags = fx.f.inst(cmp).flags;
    fx.rewrite(i, opposite, &args);
    true
}
