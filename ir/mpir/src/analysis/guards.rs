//! [`Guards`]: what branches prove.

use super::predicate::{Predicate, Relation};
use super::{Cfg, Dominators};
use crate::{Block, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;

/// The second operand of a [`Guard`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    Value(Value),
    Bits(u64),
}

/// A comparison that holds wherever a block is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Guard {
    pub(crate) left: Value,
    pub(crate) predicate: Predicate,
    pub(crate) right: Bound,
}

/// Conditions of one branch that are taken apart; more are not looked at.
const MAX_PARTS: usize = 32;

/// For each block the comparisons that the branch into it proves. They hold in every block that it
/// dominates.
#[derive(Clone, Default, Debug)]
pub(crate) struct Guards {
    start: Vec<u32>,
    guards: Vec<Guard>,
    work: Vec<(Value, bool)>,
}

impl Guards {
    pub(crate) fn compute(&mut self, f: &MpirFn, cfg: &Cfg, dom: &Dominators) {
        self.start.clear();
        self.guards.clear();
        for b in f.block_ids() {
            self.start.push(self.guards.len() as u32);
            if let Some(from) = entered_from(cfg, dom, b) {
                self.edge(f, from, b);
            }
        }
        self.start.push(self.guards.len() as u32);
    }

    pub(crate) fn of(&self, b: Block) -> &[Guard] {
        &self.guards[self.start[b.index()] as usize..self.start[b.index() + 1] as usize]
    }

    pub(crate) fn all(&self) -> &[Guard] {
        &self.guards
    }

    /// What the edge proves, if it is the only one between the two blocks.
    fn edge(&mut self, f: &MpirFn, from: Block, to: Block) {
        match f.block(from).term {
            Terminator::Cbr { cond, then, else_ } if then != else_ => {
                self.condition(f, cond, then == to);
            }
            Terminator::Switch { value, ref cases, default } if default != to => {
                let mut hits = cases.iter().filter(|c| c.1 == to);
                if let (Some(&(bits, _)), None) = (hits.next(), hits.next()) {
                    self.push(value, Relation::Eq, Bound::Bits(bits));
                }
            }
            Terminator::Ret(_)
            | Terminator::Br(_)
            | Terminator::Cbr { .. }
            | Terminator::Switch { .. }
            | Terminator::Unreachable => {}
        }
    }

    /// Adds the comparisons that follow from `cond` being `truth`.
    fn condition(&mut self, f: &MpirFn, cond: Value, truth: bool) {
        self.work.push((cond, truth));
        for _ in 0..MAX_PARTS {
            let Some((v, truth)) = self.work.pop() else { break };
            self.push(v, Relation::Eq, Bound::Bits(truth as u64));
            let Some(i) = f.def_inst(v) else { continue };
            let op = f.inst(i).op;
            let args = f.args(i);
            let is_bits = |v: Value, bits| f.ty(v) == fixed::BOOL && f.as_bits(v) == Some(bits);
            if let Some(predicate) = Predicate::of(op) {
                let predicate = if truth { predicate } else { predicate.opposite() };
                self.guards.push(Guard { left: args[0], predicate, right: Bound::Value(args[1]) });
            } else if op == Op::IXor && is_bits(args[1], 1) {
                self.work.push((args[0], !truth));
            } else if op == Op::IAnd && truth || op == Op::IOr && !truth {
                self.work.extend([(args[1], truth), (args[0], truth)]);
            } else if op == Op::Select && truth && is_bits(args[2], 0) {
                self.work.extend([(args[1], true), (args[0], true)]);
            } else if op == Op::Select && !truth && is_bits(args[1], 1) {
                self.work.extend([(args[2], false), (args[0], false)]);
            }
        }
        self.work.clear();
    }

    fn push(&mut self, left: Value, relation: Relation, right: Bound) {
        self.guards.push(Guard { left, predicate: Predicate { relation, signed: false }, right });
    }
}

/// The block from which `b` is always entered first: its only predecessor that it does not
/// dominate itself.
pub(super) fn entered_from(cfg: &Cfg, dom: &Dominators, b: Block) -> Option<Block> {
    let mut from = None;
    for &p in cfg.preds(b) {
        if cfg.is_reachable(p) && !dom.dominates(b, p) && from.replace(p).is_some() {
            return None;
        }
    }
    from.filter(|_| cfg.is_reachable(b))
}
