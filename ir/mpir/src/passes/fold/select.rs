//! Rules of `select`.

use super::{Folder, Outcome};
use crate::{Inst, Op};
use magpie_types::fixed;

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
        return Outcome::Keep;
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
