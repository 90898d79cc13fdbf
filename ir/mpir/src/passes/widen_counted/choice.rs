//! Values that depend on a condition: what a select chooses, or a phi where the ways of a branch
//! meet.

use super::find::LoopView;
use crate::{Block, Inst, Op, Terminator, Value};

/// One value when the condition is true, else another one.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) cond: Value,
    pub(super) then: Value,
    pub(super) else_: Value,
}

impl Choice {
    /// What an instruction of a loop chooses, if it is a select, or a phi behind a branch in the
    /// loop whose two ways meet there.
    pub(super) fn of(view: &LoopView, i: Inst) -> Option<Choice> {
        let f = view.f;
        if f.inst(i).op == Op::Select {
            let &[cond, then, else_] = f.args(i) else { return None };
            return Some(Choice { cond, then, else_ });
        }
        if f.inst(i).op != Op::Phi {
            return None;
        }
        let meet = view.positions.block(i)?;
        let from = view.dom.idom(meet)?;
        let Terminator::Cbr { cond, then, else_ } = f.block(from).term else { return None };
        let is_on = |way: Block, pred: Block| match way == meet {
            true => pred == from,
            false => view.cfg.preds(way) == [from] && view.dom.dominates(way, pred),
        };
        let mut arms = f.phi_arms(i);
        let (Some(x), Some(y), None) = (arms.next(), arms.next(), arms.next()) else { return None };
        if then == else_ || !view.loops.contains(view.l, from) {
            return None;
        }
        [(x, y), (y, x)]
            .into_iter()
            .find(|(x, y)| is_on(then, x.0) && is_on(else_, y.0))
            .map(|(x, y)| Choice { cond, then: x.1, else_: y.1 })
    }
}
