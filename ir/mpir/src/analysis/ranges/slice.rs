//! [`Slice`]: the part of a function on which some values depend.

use super::ranged;
use crate::analysis::guards::{Bound, Guards};
use crate::analysis::predicate::Predicate;
use crate::analysis::{Cfg, Dominators};
use crate::{Inst, MpirFn, Op, Terminator, Value};

const NONE: u32 = u32::MAX;
/// Of phis with more arms the branches are not looked at.
const MAX_BRANCHES: usize = 4;

/// The values whose ranges are kept, with the instructions that compute them by block. A value
/// that is left out is not wrong, only unknown.
#[derive(Clone, Default, Debug)]
pub(super) struct Slice {
    contains: Vec<bool>,
    insts: Vec<Inst>,
    /// By position of the block in the dominator tree's preorder.
    start: Vec<u32>,
    work: Vec<Value>,
    /// Values compared with a value: lists by value, linked.
    newest: Vec<u32>,
    compared: Vec<(Value, u32)>,
}

impl Slice {
    pub(super) fn compute(
        &mut self,
        f: &MpirFn,
        cfg: &Cfg,
        dom: &Dominators,
        guards: &Guards,
        wanted: impl Iterator<Item = Value>,
    ) {
        self.contains.clear();
        self.contains.resize(f.locals.len(), false);
        self.newest.clear();
        self.newest.resize(f.locals.len(), NONE);
        self.compared.clear();
        for guard in guards.all() {
            if let Bound::Value(right) = guard.right {
                for (v, other) in [(guard.left, right), (right, guard.left)] {
                    let before = &mut self.newest[v.index()];
                    let before = std::mem::replace(before, self.compared.len() as u32);
                    self.compared.push((other, before));
                }
            }
        }
        wanted.for_each(|v| self.add(f, v));
        while let Some(v) = self.work.pop() {
            self.add_sources(f, cfg, v);
        }
        self.insts.clear();
        self.start.clear();
        for &b in dom.preorder() {
            self.start.push(self.insts.len() as u32);
            let kept = |&&i: &&Inst| f.inst(i).result().is_some_and(|v| self.contains[v.index()]);
            self.insts.extend(f.block(b).insts.iter().filter(kept));
        }
        self.start.push(self.insts.len() as u32);
    }

    fn add(&mut self, f: &MpirFn, v: Value) {
        if !self.contains[v.index()] && f.as_const(v).is_none() && ranged(f, v).is_some() {
            self.contains[v.index()] = true;
            self.work.push(v);
        }
    }

    /// Adds what the range of `v` depends on.
    fn add_sources(&mut self, f: &MpirFn, cfg: &Cfg, v: Value) {
        let mut at = self.newest[v.index()];
        while let Some(&(other, next)) = self.compared.get(at as usize) {
            self.add(f, other);
            at = next;
        }
        let Some(i) = f.def_inst(v) else { return };
        for &arg in f.args(i) {
            self.add(f, arg);
        }
        let op = f.inst(i).op;
        if op == Op::Select {
            self.add_compared(f, f.arg(i, 0));
        }
        if op == Op::Phi && f.args(i).len() <= MAX_BRANCHES {
            for (p, _) in f.phi_arms(i).filter(|&(p, _)| cfg.is_reachable(p)) {
                if let Terminator::Cbr { cond, .. } = f.block(p).term {
                    self.add_compared(f, cond);
                }
            }
        }
    }

    /// Adds the operands of a comparison.
    fn add_compared(&mut self, f: &MpirFn, cond: Value) {
        let Some(i) = f.def_inst(cond).filter(|&i| Predicate::of(f.inst(i).op).is_some()) else {
            return;
        };
        f.args(i).iter().for_each(|&v| self.add(f, v));
    }

    pub(super) fn contains(&self, v: Value) -> bool {
        self.contains[v.index()]
    }

    /// The instructions of the slice in a block, by its position in preorder.
    pub(super) fn insts(&self, n: usize) -> &[Inst] {
        &self.insts[self.start[n] as usize..self.start[n + 1] as usize]
    }
}
