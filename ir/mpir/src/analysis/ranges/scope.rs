//! [`Scope`]: what is known at a place, on a walk down the dominator tree.

use super::range::Range;
use super::slice::Slice;
use super::{LaunchFacts, has_range, op_range};
use crate::analysis::Dominators;
use crate::analysis::guards::{Bound, Guards};
use crate::analysis::predicate::Predicate;
use crate::{Block, MpirFn, Op, Value};
use magpie_types::PrimType;
use std::cell::RefCell;

/// A comparison with another value that holds at the current place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) predicate: Predicate,
    pub(crate) other: Bound,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// Facts that are looked at for one value; the newest come first.
pub(crate) const MAX_FACTS: usize = 12;

/// Ranges of values and comparisons between them that hold in the current block.
#[derive(Clone, Default, Debug)]
pub(crate) struct Scope {
    now: Vec<Range>,
    narrowed: Vec<(Value, Range)>,
    newest_fact: Vec<u32>,
    facts: Vec<Fact>,
    told: Vec<(Value, u32)>,
    open: Vec<(Block, usize, usize)>,
    /// Ranges that were computed again, with the number of the block they hold in.
    memo: RefCell<Vec<(u32, Range)>>,
    /// Counts the blocks entered.
    block: u32,
}

impl Scope {
    /// Starts at the entry, with a range for each value.
    pub(super) fn start(&mut self, ranges: &[Range]) {
        self.now.clear();
        self.now.extend_from_slice(ranges);
        self.newest_fact.clear();
        self.newest_fact.resize(self.now.len(), NONE);
        self.narrowed.clear();
        self.facts.clear();
        self.told.clear();
        self.open.clear();
        self.block = 0;
        let memo = self.memo.get_mut();
        memo.clear();
        memo.extend(ranges.iter().map(|&r| (0, r)));
    }

    /// Starts at the entry again, with the ranges of the walk before.
    pub(super) fn restart(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }

    /// Forgets what the innermost block told.
    fn close(&mut self) {
        let Some((_, narrowed, told)) = self.open.pop() else { return };
        for (v, before) in self.narrowed.drain(narrowed..).rev() {
            self.now[v.index()] = before;
        }
        for (v, before) in self.told.drain(told..).rev() {
            self.newest_fact[v.index()] = before;
        }
        self.facts.truncate(told);
    }

    /// Goes on to a block: blocks come in the order of [`Dominators::preorder`].
    pub(super) fn enter(
        &mut self,
        f: &MpirFn,
        guards: &Guards,
        slice: &Slice,
        dom: &Dominators,
        b: Block,
    ) {
        self.block += 1;
        while self.open.last().is_some_and(|&(from, ..)| !dom.dominates(from, b)) {
            self.close();
        }
        if guards.of(b).is_empty() {
            return;
        }
        self.open.push((b, self.narrowed.len(), self.told.len()));
        for guard in guards.of(b) {
            let p = PrimType::from_id(f.ty(guard.left)).filter(|&p| has_range(p));
            let is_wanted = slice.contains(guard.left)
                || matches!(guard.right, Bound::Value(v) if slice.contains(v));
            let Some(p) = p.filter(|_| is_wanted) else { continue };
            let right = self.bound(f, p, guard.right);
            self.narrow(p, guard.left, guard.predicate, right);
            self.tell(guard.left, guard.predicate, guard.right);
            if let Bound::Value(v) = guard.right {
                let left = self.now[guard.left.index()];
                let swapped = guard.predicate.swapped();
                self.narrow(p, v, swapped, left);
                self.tell(v, swapped, Bound::Value(guard.left));
            }
        }
    }

    fn bound(&self, f: &MpirFn, p: PrimType, bound: Bound) -> Range {
        match bound {
            Bound::Bits(bits) => Range::exact(p, bits),
            Bound::Value(v) => self.range(f, v),
        }
    }

    fn narrow(&mut self, p: PrimType, v: Value, predicate: Predicate, other: Range) {
        let before = self.now[v.index()];
        let after = before.refined(p, predicate, other);
        if after != before {
            self.narrowed.push((v, before));
            self.now[v.index()] = after;
        }
    }

    fn tell(&mut self, v: Value, predicate: Predicate, other: Bound) {
        let next = self.newest_fact[v.index()];
        self.newest_fact[v.index()] = self.facts.len() as u32;
        self.facts.push(Fact { predicate, other, next });
        self.told.push((v, next));
    }

    /// The comparisons of a value that hold here, newest first.
    pub(crate) fn facts(&self, v: Value) -> impl Iterator<Item = Fact> + '_ {
        let mut at = self.newest_fact.get(v.index()).copied().unwrap_or(NONE);
        let mut left = MAX_FACTS;
        std::iter::from_fn(move || {
            let fact = *self.facts.get(at as usize).filter(|_| left > 0)?;
            left -= 1;
            at = fact.next;
            Some(fact)
        })
    }

    /// What is known of a value here without looking at how it was computed.
    pub(crate) fn range(&self, f: &MpirFn, v: Value) -> Range {
        match (f.as_bits(v), PrimType::from_id(f.ty(v))) {
            (Some(bits), Some(p)) if has_range(p) => Range::exact(p, bits),
            _ => self.now[v.index()],
        }
    }

    /// Sets the range of a value that is computed here.
    pub(super) fn define(&mut self, v: Value, range: Range) {
        self.now[v.index()] = range;
    }

    /// What is known of a value here, computed again from what is known of its operands here. Each
    /// value is computed once a block.
    pub(crate) fn recomputed(
        &self,
        f: &MpirFn,
        facts: &LaunchFacts,
        v: Value,
        depth: u32,
    ) -> Range {
        let known = self.range(f, v);
        let Some(i) = f.def_inst(v).filter(|_| depth > 0) else { return known };
        if let Some(&(block, range)) = self.memo.borrow().get(v.index())
            && block == self.block
        {
            return range;
        }
        let op = f.inst(i).op;
        if op == Op::Phi || !op.is_pure() {
            return known;
        }
        let Some(p) = PrimType::from_id(f.inst(i).ty).filter(|&p| has_range(p)) else {
            return known;
        };
        let operand = |v, given: Option<(Value, bool)>| match given {
            Some((cond, truth)) => self.given(f, cond, truth, v),
            None => self.recomputed(f, facts, v, depth - 1),
        };
        let range = match op_range(f, facts, i, operand) {
            Some(new) => known.intersect(p, new),
            None => known,
        };
        if let Some(memo) = self.memo.borrow_mut().get_mut(v.index()) {
            *memo = (self.block, range);
        }
        range
    }

    /// The range of `v` where `cond` is known to be `truth`.
    pub(super) fn given(&self, f: &MpirFn, cond: Value, truth: bool, v: Value) -> Range {
        let known = self.range(f, v);
        let Some(p) = PrimType::from_id(f.ty(v)).filter(|&p| has_range(p)) else { return known };
        if cond == v {
            return Range::exact(p, truth as u64);
        }
        let Some(i) = f.def_inst(cond) else { return known };
        let Some(predicate) = Predicate::of(f.inst(i).op) else { return known };
        let predicate = if truth { predicate } else { predicate.opposite() };
        let (x, y) = (f.arg(i, 0), f.arg(i, 1));
        if x == v {
            known.refined(p, predicate, self.range(f, y))
        } else if y == v {
            known.refined(p, predicate.swapped(), self.range(f, x))
        } else {
            known
        }
    }
}
