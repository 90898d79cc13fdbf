//! Rules of `select`.

use super::{Folder, Outcome};
use crate::{Inst, Op, Value};
use magpie_types::{PrimType, fixed};

pub(super) fn simplify(fx: &mut Folder, i: Inst) -> Outcome {
    let [cond, x, y] = fx.args(i);
    if x == y {
        return Outcome::Value(x);
    }
    if fx.f.ty(cond) != fixed::BOOL {
        return Outcome::Keep;
    }
    if let Some(c) = fx.bits(cond) {
        return Outcome::Value(if c & 1 == 1 { x } else { y });
    }
    if let Some([inner, one]) = fx.operands(cond, Op::IXor)
        && fx.bits(one) == Some(1)
    {
        return fx.rewrite(i, Op::Select, &[inner, y, x]);
    }
    if fx.f.inst(i).ty != fixed::BOOL {
        return match extremum(fx, cond, x, y) {
            Some(op) => fx.rewrite(i, op, &[x, y]),
            None => Outcome::Keep,
        };
    }
    match (fx.bits(x), fx.bits(y)) {
        (Some(1), Some(_)) => Outcome::Value(cond),
        (Some(_), Some(_)) => {
            let yes = fx.f.const_bool(true);
            fx.rewrite(i, Op::IXor, &[cond, yes])
        }
        (Some(1), None) => fx.rewrite(i, Op::IOr, &[cond, y]),
        (None, Some(0)) => fx.rewrite(i, Op::IAnd, &[cond, x]),
        _ => Outcome::Keep,
    }
}

/// The minimum or maximum that `select cond, x, y` is: `cond` compares the same two integers, or
/// one of them with the neighbour of a constant, as in `x > 4 ? x : 5`.
fn extremum(fx: &Folder, cond: Value, x: Value, y: Value) -> Option<Op> {
    let p = PrimType::from_id(fx.f.ty(x)).filter(|p| p.is_int() && p.bit_width() <= 64)?;
    let compare = fx.f.def_inst(cond)?;
    let (op, args) = (fx.f.inst(compare).op, fx.f.args(compare));
    let &[a, b] = args else { return None };
    let (is_less, is_signed) = match op {
        Op::IcmpSlt | Op::IcmpSle => (true, true),
        Op::IcmpSgt | Op::IcmpSge => (false, true),
        Op::IcmpUlt | Op::IcmpUle => (true, false),
        Op::IcmpUgt | Op::IcmpUge => (false, false),
        _ => return None,
    };
    let picks_first = match (a == x, a == y) {
        (true, _) => is_same_bound(fx, p, op, b, y),
        (_, true) => is_same_bound(fx, p, op, b, x),
        (false, false) => return None,
    }
    .then_some(a == x)?;
    // `a < b ? a : b` is the smaller one, `a < b ? b : a` the larger.
    Some(match (is_less == picks_first, is_signed) {
        (true, true) => Op::ISmin,
        (true, false) => Op::IUmin,
        (false, true) => Op::ISmax,
        (false, false) => Op::IUmax,
    })
}

/// Whether comparing with `b` by `op` decides between a number and `other`: they are one value, or
/// constants of which `other` is the next one on the side that `op` tells apart strictly.
fn is_same_bound(fx: &Folder, p: PrimType, op: Op, b: Value, other: Value) -> bool {
    if b == other {
        return true;
    }
    let (Some(b), Some(other)) = (fx.bits(b), fx.bits(other)) else { return false };
    let sign = 1 << (p.bit_width() - 1);
    let (next, previous) = (b.wrapping_add(1) & p.mask(), b.wrapping_sub(1) & p.mask());
    match op {
        Op::IcmpUgt => b != p.mask() && other == next,
        Op::IcmpUlt => b != 0 && other == previous,
        Op::IcmpSgt => b != sign - 1 && other == next,
        Op::IcmpSlt => b != sign && other == previous,
        _ => false,
    }
}
