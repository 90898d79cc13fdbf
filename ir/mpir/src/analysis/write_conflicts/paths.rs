//! When a block is executed, and between which barriers.

use crate::analysis::guards::entered_from;
use crate::analysis::{Cfg, Dominators, Loops};
use crate::{Block, MpirFn, Op, Terminator, Value};

/// What decides whether a block is executed.
#[derive(Clone, Default, Debug)]
pub(super) struct Path {
    /// Values with the bits that they must have.
    pub(super) conditions: Vec<(Value, u64)>,
    /// Whether the conditions suffice: when they hold in the first round of all loops around the
    /// block, it is executed in that round.
    pub(super) is_complete: bool,
}

/// Steps up the dominator tree, and parts of conditions.
const MAX_STEPS: usize = 64;

/// The graph of a function.
pub(super) struct Paths<'a> {
    pub(super) f: &'a MpirFn,
    pub(super) cfg: &'a Cfg,
    pub(super) dom: &'a Dominators,
    pub(super) loops: &'a Loops,
}

impl Paths<'_> {
    /// What decides whether a block is executed.
    pub(super) fn of(&self, b: Block) -> Path {
        let mut path = Path::default();
        let mut at = b;
        for _ in 0..MAX_STEPS {
            let Some(above) = self.dom.idom(at) else {
                path.is_complete = true;
                break;
            };
            if self.always_follows(at, above) {
                at = above;
                continue;
            }
            // Conditions that are left out keep the others true.
            match entered_from(self.cfg, self.dom, at) {
                Some(from) if self.condition(from, at, &mut path) => at = from,
                _ => break,
            }
        }
        path
    }

    /// Adds what takes the way from one block to the other.
    fn condition(&self, from: Block, to: Block, path: &mut Path) -> bool {
        let f = self.f;
        let mut work = match f.block(from).term {
            Terminator::Cbr { cond, then, else_ } if then != else_ => {
                vec![(cond, (then == to) as u64)]
            }
            Terminator::Switch { value, ref cases, default } if default != to => {
                let mut hits = cases.iter().filter(|c| c.1 == to);
                let (Some(&(bits, _)), None) = (hits.next(), hits.next()) else { return false };
                path.conditions.push((value, bits));
                return true;
            }
            Terminator::Br(_) => return true,
            Terminator::Cbr { .. }
            | Terminator::Switch { .. }
            | Terminator::Ret(_)
            | Terminator::Unreachable => return false,
        };
        while let Some((v, truth)) = work.pop() {
            let parts = f.def_inst(v).map(|i| (f.inst(i).op, f.args(i)));
            match parts {
                Some((Op::IAnd, &[x, y])) if truth == 1 => work.extend([(y, 1), (x, 1)]),
                Some((Op::IOr, &[x, y])) if truth == 0 => work.extend([(y, 0), (x, 0)]),
                _ => path.conditions.push((v, truth)),
            }
            if path.conditions.len() + work.len() > MAX_STEPS {
                return false;
            }
        }
        true
    }

    /// Whether every way on from `a` leads to `b`, in the same round of the loops around both.
    fn always_follows(&self, b: Block, a: Block) -> bool {
        let mut seen = vec![false; self.cfg.num_blocks()];
        let mut work = vec![a];
        while let Some(at) = work.pop() {
            let succs = self.cfg.succs(at);
            if succs.is_empty() {
                return false;
            }
            for &next in succs {
                let starts_round = self.cfg.is_retreating(at, next);
                let around = self.loops.innermost(next).filter(|_| starts_round);
                if around.is_some_and(|l| self.loops.contains(l, a) && self.loops.contains(l, b)) {
                    return false;
                }
                if next != b && !std::mem::replace(&mut seen[next.index()], true) {
                    work.push(next);
                }
            }
        }
        true
    }

    /// How many barriers stand before each block in the first round of the loops around it, where
    /// that is the same on all ways.
    pub(super) fn barriers_before(&self) -> Vec<Option<u32>> {
        let has_barrier = |b: Block| self.barriers(b, usize::MAX) > 0;
        let waits: Vec<bool> = self
            .loops
            .ids()
            .map(|l| self.loops.blocks(l).iter().any(|&b| has_barrier(b)))
            .collect();
        let mut before: Vec<Option<u32>> = vec![None; self.cfg.num_blocks()];
        for &b in self.cfg.rpo() {
            let mut counts = self
                .cfg
                .preds(b)
                .iter()
                .filter(|&&p| self.cfg.is_reachable(p) && !self.cfg.is_retreating(p, b));
            let behind = |p: Block| {
                let leaves = |l| self.loops.contains(l, p) && !self.loops.contains(l, b);
                // How often its barriers were passed is not known.
                let is_left = self.loops.ids().any(|l| waits[l.index()] && leaves(l));
                before[p.index()].filter(|_| !is_left).map(|n| n + self.barriers(p, usize::MAX))
            };
            before[b.index()] = match counts.next() {
                None => Some(0),
                Some(&p) => behind(p).filter(|&n| counts.all(|&p| behind(p) == Some(n))),
            };
        }
        before
    }

    /// The barriers among the first instructions of a block.
    pub(super) fn barriers(&self, b: Block, insts: usize) -> u32 {
        let insts = self.f.block(b).insts.iter().take(insts);
        insts.filter(|&&i| self.f.inst(i).op == Op::GpuBarrier).count() as u32
    }
}
