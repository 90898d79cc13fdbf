//! Simplification of the control-flow graph.
//!
//! What it leaves alone, for the sake of structuring and of loop passes: blocks that enter a loop,
//! leave one or go back in one, and blocks where several ways meet.

use super::PassContext;
use super::context::refill;
use super::replacements::Replacements;
use crate::analysis::{Cfg, Dominators, Loops};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;

/// Phis with more arms are not searched for the sake of an empty block.
const MAX_ARMS: usize = 32;

/// Folds branches whose way is known, removes blocks that cannot be reached, replaces phis that
/// have one value, joins blocks that always follow each other, and lets branches skip empty blocks.
pub fn simplify_cfg(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host || f.blocks.is_empty() {
        return false;
    }
    let mut changed = false;
    for b in f.block_ids() {
        while fold_branch(f, b) {
            changed = true;
        }
    }
    let PassContext {
        cfg, dom, loops, replacements, marks, numbers, counts, blocks, insts, ..
    } = ctx;
    cfg.compute(f);
    if changed || cfg.rpo().len() < f.blocks.len() {
        prune_phis(f, cfg, numbers);
    }
    replacements.start(f);
    drop_trivial_phis(f, cfg, replacements, insts);
    refill(marks, f.blocks.len(), false);
    refill(numbers, f.blocks.len(), 0);
    counts.clear();
    counts.extend(f.block_ids().map(|b| cfg.preds(b).len() as u32));
    blocks.clear();
    blocks.extend(f.block_ids());
    let mut join = Join {
        pred_count: counts,
        moved_to: blocks,
        target_in: numbers,
        round: 0,
        candidates: Vec::new(),
        loops_known: false,
        dead: marks,
        f,
        cfg,
        dom,
        loops,
        replacements,
    };
    join.run();
    let any_dead = marks.contains(&true);
    changed |= any_dead | !replacements.is_empty();
    replacements.apply(f);
    if any_dead {
        drop_blocks(f, marks, numbers);
    }
    changed
}

/// Simplifies the terminator of a block by itself; whether it did.
fn fold_branch(f: &mut MpirFn, b: Block) -> bool {
    let new = match &f.block(b).term {
        &Terminator::Cbr { cond, then, else_ } => {
            if then == else_ {
                Terminator::Br(then)
            } else if let Some(bits) = f.as_bits(cond) {
                Terminator::Br(if bits & 1 == 1 { then } else { else_ })
            } else if let Some(cond) = negated(f, cond) {
                Terminator::Cbr { cond, then: else_, else_: then }
            } else {
                return false;
            }
        }
        &Terminator::Switch { value, ref cases, default } => {
            if let Some(bits) = f.as_bits(value) {
                let hit = cases.iter().find(|c| c.0 == bits);
                Terminator::Br(hit.map_or(default, |c| c.1))
            } else if cases.iter().any(|c| c.1 == default) {
                let cases = cases.iter().copied().filter(|c| c.1 != default).collect();
                Terminator::Switch { value, cases, default }
            } else if let [(bits, target)] = cases[..] {
                let case = f.const_bits(f.ty(value), bits);
                let span = f.block(b).term_span;
                let args = [value, case];
                let equal = f.append(b, Op::IcmpEq, Flags::NONE, fixed::BOOL, &args, 0, span);
                let Some(cond) = equal else { return false };
                Terminator::Cbr { cond, then: target, else_: default }
            } else if cases.is_empty() {
                Terminator::Br(default)
            } else {
                return false;
            }
        }
        Terminator::Ret(_) | Terminator::Br(_) | Terminator::Unreachable => return false,
    };
    f.block_mut(b).term = new;
    true
}

/// The `x` of `xor x, true`.
fn negated(f: &MpirFn, cond: Value) -> Option<Value> {
    let not = f.def_inst(cond).filter(|&i| f.inst(i).op == Op::IXor)?;
    (f.as_bits(f.arg(not, 1)) == Some(1)).then(|| f.arg(not, 0))
}

/// Removes arms of phis that belong to no edge from a reachable block any more.
fn prune_phis(f: &mut MpirFn, cfg: &Cfg, pred_of: &mut Vec<u32>) {
    refill(pred_of, f.blocks.len(), u32::MAX);
    let mut arms = Vec::new();
    for &b in cfg.rpo() {
        let phis = f.phis(b).count();
        if phis == 0 {
            continue;
        }
        for p in cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)) {
            pred_of[p.index()] = b.0;
        }
        for n in 0..phis {
            let i = f.block(b).insts[n];
            let all = f.args(i).len();
            arms.clear();
            arms.extend(f.phi_arms(i).filter(|(p, _)| pred_of[p.index()] == b.0));
            if arms.len() < all {
                f.set_phi_arms(i, &arms);
            }
        }
    }
}

/// Replaces phis whose arms are all one value, or the phi itself.
fn drop_trivial_phis(f: &mut MpirFn, cfg: &Cfg, r: &mut Replacements, kept: &mut Vec<Inst>) {
    for &b in cfg.rpo() {
        let phis = f.phis(b).count();
        if phis == 0 {
            continue;
        }
        kept.clear();
        for n in 0..phis {
            let i = f.block(b).insts[n];
            match f.inst(i).result().zip(only_value(f, i, r)) {
                Some((phi, value)) => r.set(phi, value),
                None => kept.push(i),
            }
        }
        f.block_mut(b).insts.splice(..phis, kept.drain(..));
    }
}

fn only_value(f: &MpirFn, phi: Inst, r: &mut Replacements) -> Option<Value> {
    let result = f.inst(phi).result()?;
    let mut only = None;
    for &v in f.args(phi) {
        let v = r.get(v);
        if v != result && *only.get_or_insert(v) != v {
            return None;
        }
    }
    only
}

/// Removes the blocks marked dead and renumbers the others.
fn drop_blocks(f: &mut MpirFn, dead: &[bool], number: &mut Vec<u32>) {
    refill(number, f.blocks.len(), 0);
    let mut next = 0;
    for (b, &dead) in dead.iter().enumerate() {
        number[b] = next;
        next += !dead as u32;
    }
    let mut at = 0;
    f.blocks.retain(|_| {
        at += 1;
        !dead[at - 1]
    });
    for b in f.block_ids() {
        f.block_mut(b).term.map_targets(|t| Block(number[t.index()]));
        let mut n = 0;
        while let Some(&i) = f.block(b).insts.get(n).filter(|&&i| f.inst(i).op == Op::Phi) {
            f.map_phi_blocks(i, |p| Block(number[p.index()]));
            n += 1;
        }
    }
}

/// Joining and skipping of blocks, successors before predecessors.
struct Join<'a> {
    f: &'a mut MpirFn,
    cfg: &'a Cfg,
    dom: &'a mut Dominators,
    loops: &'a mut Loops,
    loops_known: bool,
    replacements: &'a mut Replacements,
    /// Number of reachable predecessors.
    pred_count: &'a mut Vec<u32>,
    /// The block that took over the end of a block. Phis name the old one until the end.
    moved_to: &'a mut Vec<Block>,
    /// The last round in which a block was seen to be a target.
    target_in: &'a mut Vec<u32>,
    round: u32,
    candidates: Vec<(Block, Block)>,
    dead: &'a mut Vec<bool>,
}

impl Join<'_> {
    fn run(&mut self) {
        for b in self.f.block_ids().filter(|&b| !self.cfg.is_reachable(b)) {
            self.dead[b.index()] = true;
            for s in self.cfg.succs(b) {
                self.pred_count[s.index()] -= 1;
            }
        }
        let mut any = false;
        for &b in self.cfg.rpo().iter().rev() {
            while !self.dead[b.index()] && (self.absorb(b) || self.skip_empty(b)) {
                any = true;
            }
        }
        if any {
            self.rename_phi_arms();
        }
    }

    /// Appends the only successor when it has no other predecessor.
    fn absorb(&mut self, b: Block) -> bool {
        let Terminator::Br(s) = self.f.block(b).term else { return false };
        if s == b || s == Block(0) || self.pred_count[s.index()] != 1 {
            return false;
        }
        let phis = self.f.phis(s).count();
        for n in 0..phis {
            let i = self.f.block(s).insts[n];
            if let (Some(phi), Some(&value)) = (self.f.inst(i).result(), self.f.args(i).first()) {
                let value = self.replacements.get(value);
                self.replacements.set(phi, value);
            }
        }
        let block = self.f.block_mut(s);
        let term = std::mem::replace(&mut block.term, Terminator::Unreachable);
        let span = block.term_span;
        let insts = std::mem::take(&mut block.insts);
        let block = self.f.block_mut(b);
        block.insts.extend_from_slice(&insts[phis..]);
        block.term = term;
        block.term_span = span;
        self.dead[s.index()] = true;
        self.moved_to[s.index()] = b;
        true
    }

    /// Sends branches of `b` past empty blocks that only `b` reaches.
    fn skip_empty(&mut self, b: Block) -> bool {
        self.candidates.clear();
        self.round += 1;
        let f = &*self.f;
        f.block(b).term.for_each_target(|e| {
            self.target_in[e.index()] = self.round;
            if let Terminator::Br(t) = f.block(e).term
                && f.block(e).insts.is_empty()
                && self.pred_count[e.index()] == 1
                && e != b
                && t != e
            {
                self.candidates.push((e, t));
            }
        });
        let mut any = false;
        for n in 0..self.candidates.len() {
            let (e, t) = self.candidates[n];
            // A switch may name a block several times.
            if !self.dead[e.index()] && self.may_skip(b, e, t) && self.take_over_arm(b, e, t) {
                self.dead[e.index()] = true;
                self.target_in[t.index()] = self.round;
                any = true;
            }
        }
        if any {
            let mut term =
                std::mem::replace(&mut self.f.block_mut(b).term, Terminator::Unreachable);
            term.map_targets(|e| match self.f.block(e).term {
                Terminator::Br(t) if self.dead[e.index()] => t,
                _ => e,
            });
            self.f.block_mut(b).term = term;
            while fold_branch(self.f, b) {}
        }
        any
    }

    fn may_skip(&mut self, b: Block, e: Block, t: Block) -> bool {
        if !std::mem::replace(&mut self.loops_known, true) {
            self.dom.compute(self.cfg);
            self.loops.compute(self.cfg, self.dom);
        }
        let home = self.loops.innermost(e);
        self.loops.innermost(b) == home
            && self.loops.innermost(t) == home
            && !self.loops.is_header(t)
    }

    /// Makes the arms of `t` for `e` the arms for `b`; refused when `b` reaches `t` by itself with
    /// other values.
    fn take_over_arm(&mut self, b: Block, e: Block, t: Block) -> bool {
        let also_direct = self.target_in[t.index()] == self.round;
        let phis = self.f.phis(t).count();
        for n in 0..phis {
            let i = self.f.block(t).insts[n];
            if self.f.args(i).len() > MAX_ARMS
                || also_direct && self.arm(i, e).is_none_or(|v| self.arm(i, b) != Some(v))
            {
                return false;
            }
        }
        for n in 0..phis {
            let i = self.f.block(t).insts[n];
            let moved_to = &mut *self.moved_to;
            if also_direct {
                let others = |&(p, _): &(Block, Value)| follow(moved_to, p) != e;
                let arms: Vec<_> = self.f.phi_arms(i).filter(others).collect();
                self.f.set_phi_arms(i, &arms);
            } else {
                self.f.map_phi_blocks(i, |p| if follow(moved_to, p) == e { b } else { p });
            }
        }
        self.pred_count[t.index()] -= also_direct as u32;
        true
    }

    fn arm(&mut self, phi: Inst, pred: Block) -> Option<Value> {
        let moved_to = &mut *self.moved_to;
        let arm = self.f.phi_arms(phi).find(|&(p, _)| follow(moved_to, p) == pred);
        arm.map(|(_, v)| self.replacements.get(v))
    }

    fn rename_phi_arms(&mut self) {
        for b in self.f.block_ids() {
            let mut n = 0;
            while let Some(&i) = self.f.block(b).insts.get(n) {
                if self.f.inst(i).op != Op::Phi {
                    break;
                }
                self.f.map_phi_blocks(i, |p| follow(self.moved_to, p));
                n += 1;
            }
        }
    }
}

/// The block that ends the way `b` ended.
fn follow(moved_to: &mut [Block], b: Block) -> Block {
    let mut at = b;
    while moved_to[at.index()] != at {
        let next = moved_to[at.index()];
        moved_to[at.index()] = moved_to[next.index()];
        at = next;
    }
    at
}
