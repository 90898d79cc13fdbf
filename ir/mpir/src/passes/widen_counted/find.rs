//! Loops that count, and the checks in them that are known to hold for a number of rounds.

use super::super::unroll::{Candidate, ends_program};
use super::linear::Linear;
use crate::analysis::{Cfg, Dominators, LoopId, Loops, Positions};
use crate::{Block, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;

/// Loops with fewer rounds, when their number is known, stay.
const MIN_ROUNDS: u64 = 16;
/// Loops with more instructions stay.
const MAX_SIZE: usize = 64;
/// Checks of one loop that are left out.
const MAX_CHECKS: usize = 12;
/// The largest number by which an index may grow each round.
const MAX_STEP: i64 = 1 << 16;

/// A loop and what is known of its function.
#[derive(Clone, Copy)]
pub(super) struct LoopView<'a> {
    pub(super) f: &'a MpirFn,
    pub(super) cfg: &'a Cfg,
    pub(super) dom: &'a Dominators,
    pub(super) loops: &'a Loops,
    pub(super) positions: &'a Positions,
    pub(super) l: LoopId,
}

/// A loop that counts up by one to a bound and calls nothing.
pub(super) struct Counted {
    pub(super) candidate: Candidate,
    /// The blocks of the loop, the header first.
    pub(super) blocks: Vec<Block>,
    pub(super) counter: Value,
    pub(super) first: Value,
    pub(super) bound: Value,
    pub(super) checks: Vec<Check>,
    /// Whether `checks` are all ways out but the counter's.
    pub(super) is_covered: bool,
}

/// A condition without which the loop ends the program.
pub(super) struct Check {
    pub(super) holds: Value,
    pub(super) kind: CheckKind,
}

pub(super) enum CheckKind {
    /// It is the same in all rounds.
    Same,
    /// The index, which is one less or more by its step each round, is below the length; both are
    /// unsigned.
    Below { index: Linear, length: Value },
}

impl LoopView<'_> {
    /// Whether a value is made in the loop.
    pub(super) fn is_inside(&self, v: Value) -> bool {
        let block = self.positions.def_block(self.f, v);
        block.is_some_and(|b| self.loops.contains(self.l, b))
    }

    /// The loop, if it counts.
    pub(super) fn counted(&self) -> Option<Counted> {
        let &LoopView { f, cfg, loops, l, .. } = self;
        let header = loops.header(l);
        let preheader = loops.preheader(cfg, l)?;
        let mut latches = loops.latches(cfg, l);
        let (latch, None) = (latches.next()?, latches.next()) else { return None };
        let Terminator::Br(_) = f.block(latch).term else { return None };
        let Terminator::Cbr { cond, then: inside, else_: exit } = f.block(header).term else {
            return None;
        };
        if !loops.contains(l, inside) || loops.contains(l, exit) || inside == header {
            return None;
        }
        let less = f.def_inst(cond).filter(|&i| f.inst(i).op == Op::IcmpSlt)?;
        let &[counter, bound] = f.args(less) else { return None };
        if self.is_inside(bound) || f.ty(counter) != fixed::I64 {
            return None;
        }
        let phi = f
            .def_inst(counter)
            .filter(|&i| f.inst(i).op == Op::Phi && self.positions.block(i) == Some(header))?;
        let first = f.phi_value(phi, preheader)?;
        let next = Linear::of(self, counter, f.phi_value(phi, latch)?)?;
        if !next.terms.is_empty() || (next.step, next.constant) != (1, 1) {
            return None;
        }
        if let (Some(from), Some(to)) = (f.as_bits(first), f.as_bits(bound))
            && to.wrapping_sub(from) < MIN_ROUNDS
        {
            return None;
        }
        let size = self.size()?;
        let (mut ends, mut checks) = (Vec::new(), Vec::new());
        let mut is_covered = true;
        for (from, to) in loops.exits(cfg, l) {
            if from == header {
                continue;
            }
            if !ends_program(f, cfg, loops, l, to) {
                return None;
            }
            if !ends.contains(&to) {
                ends.push(to);
            }
            match self.check(from, to, counter).filter(|_| checks.len() < MAX_CHECKS) {
                Some(check) => checks.push(check),
                None => is_covered = false,
            }
        }
        let blocks = loops.blocks(l).to_vec();
        let exiting = header;
        let candidate = Candidate { header, preheader, latch, exiting, exit, inside, ends, size };
        Some(Counted { candidate, blocks, counter, first, bound, checks, is_covered })
    }

    /// The number of instructions, if none of them stays single.
    fn size(&self) -> Option<usize> {
        let mut size = 0;
        for &b in self.loops.blocks(self.l) {
            size += 1 + self.f.block(b).insts.len();
            let stays = |&i: &Inst| {
                let op = self.f.inst(i).op;
                matches!(op, Op::Call | Op::CallAddr | Op::RtRaw | Op::StackSlot)
            };
            if size > MAX_SIZE || self.f.block(b).insts.iter().any(stays) {
                return None;
            }
        }
        Some(size)
    }

    /// The check of an edge to the end of the program.
    fn check(&self, from: Block, end: Block, counter: Value) -> Option<Check> {
        let Terminator::Cbr { cond, then, else_ } = self.f.block(from).term else { return None };
        if else_ != end || then == end {
            return None;
        }
        if !self.is_inside(cond) {
            return Some(Check { holds: cond, kind: CheckKind::Same });
        }
        let below = self.f.def_inst(cond).filter(|&i| self.f.inst(i).op == Op::IcmpUlt)?;
        let &[index, length] = self.f.args(below) else { return None };
        if self.is_inside(length) || self.f.ty(length) != fixed::I64 {
            return None;
        }
        let index = Linear::of(self, counter, index)?;
        let is_steady = index.step == -1 || (1..=MAX_STEP).contains(&index.step);
        is_steady.then_some(Check { holds: cond, kind: CheckKind::Below { index, length } })
    }
}
