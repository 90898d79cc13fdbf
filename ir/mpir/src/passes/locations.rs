//! Values instead of memory that only the function itself sees.
//!
//! Where it is known of all accesses what they do, the content of a place in memory is a value: what
//! was stored last, or a phi where ways with different content meet. The same holds of other memory as
//! long as all that may change it is known.

use super::PassContext;
use super::context::refill;
use crate::analysis::{Cfg, Dominators};
use crate::{Block, Inst, MpirFn, Op, Value};
use magpie_types::TypeId;
use rustc_hash::FxHashMap;

/// Entries of the table of values by block and location.
const MAX_TABLE: usize = 1 << 18;

/// What an instruction does with a location, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Gives the content, or a view of it.
    Read(usize),
    /// Makes its last operand the content.
    Write(usize),
    /// Makes zero the content.
    Clear(usize),
    /// A store or a load that stays: what is stored or loaded is the content.
    Becomes(usize),
    /// Nothing that is left to be done.
    Nothing,
}

impl Access {
    fn location(self) -> Option<usize> {
        match self {
            Access::Read(n) | Access::Write(n) | Access::Clear(n) | Access::Becomes(n) => Some(n),
            Access::Nothing => None,
        }
    }

    fn changes(self) -> bool {
        matches!(self, Access::Write(_) | Access::Clear(_) | Access::Becomes(_))
    }
}

/// Places that become values.
#[derive(Default, Debug)]
pub(super) struct Locations {
    types: Vec<TypeId>,
    accesses: FxHashMap<Inst, Access>,
}

impl Locations {
    /// Whether `count` more locations can be had.
    pub(super) fn has_room_for(&self, count: usize, f: &MpirFn) -> bool {
        (self.types.len() + count) * f.blocks.len() <= MAX_TABLE
    }

    /// A new location with content of a type.
    pub(super) fn add(&mut self, ty: TypeId) -> usize {
        self.types.push(ty);
        self.types.len() - 1
    }

    /// Notes what an instruction does.
    pub(super) fn note(&mut self, i: Inst, access: Access) {
        self.accesses.insert(i, access);
    }

    /// What an instruction does, as far as was noted.
    pub(super) fn access(&self, i: Inst) -> Option<Access> {
        self.accesses.get(&i).copied()
    }

    /// Replaces what is read by the content; whether there was anything to do.
    pub(super) fn promote(&self, f: &mut MpirFn, ctx: &mut PassContext) -> bool {
        if self.types.is_empty() {
            return false;
        }
        let PassContext { cfg, dom, replacements, insts: kept, .. } = ctx;
        let (types, count) = (&self.types, self.types.len());
        cfg.compute(f);
        dom.compute(cfg);
        let phis = self.place_phis(f, cfg, dom);
        replacements.start(f);
        // What is in each location at the end of each block.
        let mut behind = vec![None; f.blocks.len() * count];
        let mut now: Vec<Value> = Vec::new();
        for &b in dom.preorder() {
            now.clear();
            match dom.idom(b) {
                Some(above) => {
                    let from = above.index() * count;
                    now.extend(behind[from..from + count].iter().flatten());
                }
                None => now.extend(types.iter().map(|&ty| f.zero(ty))),
            }
            for &(_, n, phi) in of_block(&phis, b) {
                now[n] = f.inst(phi).result().unwrap_or(now[n]);
            }
            kept.clear();
            let mut insts = std::mem::take(&mut f.block_mut(b).insts);
            for &i in &insts {
                match self.access(i) {
                    None => kept.push(i),
                    Some(Access::Read(n)) if f.inst(i).ty == types[n] => {
                        if let Some(read) = f.inst(i).result() {
                            replacements.set(read, now[n]);
                        }
                    }
                    Some(Access::Read(n)) => {
                        f.rewrite(i, Op::BorrowShared, &[now[n]], 0);
                        kept.push(i);
                    }
                    Some(Access::Write(n)) => {
                        let stored = f.args(i).last().copied();
                        now[n] = stored.map_or(now[n], |v| replacements.get(v));
                    }
                    Some(Access::Becomes(n)) => {
                        let content = f.inst(i).result().or(f.args(i).last().copied());
                        now[n] = content.map_or(now[n], |v| replacements.get(v));
                        kept.push(i);
                    }
                    Some(Access::Clear(n)) => now[n] = f.zero(types[n]),
                    Some(Access::Nothing) => {}
                }
            }
            insts.clear();
            insts.extend(of_block(&phis, b).iter().map(|phi| phi.2));
            insts.extend_from_slice(kept);
            f.block_mut(b).insts = insts;
            for (slot, &v) in behind[b.index() * count..].iter_mut().zip(&now) {
                *slot = Some(v);
            }
        }
        for &(b, n, phi) in &phis {
            let arm = |&p: &Block| (p, behind[p.index() * count + n]);
            let arms: Vec<_> = cfg.preds(b).iter().map(arm).collect();
            // Nothing comes from where nobody gets to.
            let arms = arms.into_iter().map(|(p, v)| (p, v.unwrap_or_else(|| f.zero(types[n]))));
            let arms: Vec<(Block, Value)> = arms.collect();
            f.set_phi_arms(phi, &arms);
        }
        replacements.apply(f);
        true
    }

    /// Makes phis where ways with different content meet that is read later, sorted by block. They
    /// have no arms yet.
    fn place_phis(&self, f: &mut MpirFn, cfg: &Cfg, dom: &Dominators) -> Vec<(Block, usize, Inst)> {
        // Where the dominance of each block ends.
        let mut ends: Vec<(Block, Block)> = Vec::new();
        for &b in cfg.rpo().iter().filter(|b| cfg.preds(**b).len() > 1) {
            for &p in cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)) {
                let mut at = Some(p);
                while let Some(block) = at.filter(|_| at != dom.idom(b)) {
                    ends.push((block, b));
                    at = dom.idom(block);
                }
            }
        }
        ends.sort_unstable();
        ends.dedup();
        // Where each location is accessed first in a block, and whether it is changed there.
        let (mut first, mut changed) = (Vec::new(), Vec::new());
        for &b in cfg.rpo() {
            for &i in &f.block(b).insts {
                let Some(access) = self.access(i) else { continue };
                let Some(n) = access.location() else { continue };
                first.push((n, b, access.changes()));
                if access.changes() {
                    changed.push((n, b));
                }
            }
        }
        first.sort_by_key(|&(n, b, _)| (n, b));
        first.dedup_by_key(|&mut (n, b, _)| (n, b));
        changed.sort_unstable();
        changed.dedup();
        let (mut has_phi, mut is_read, mut work) = (Vec::new(), Vec::new(), Vec::new());
        let mut phis = Vec::new();
        for changes in changed.chunk_by(|a, b| a.0 == b.0) {
            let n = changes[0].0;
            // Whether the content at the beginning of a block is read.
            refill(&mut is_read, f.blocks.len(), false);
            let from = first.partition_point(|first| first.0 < n);
            let firsts = first[from..].iter().take_while(|first| first.0 == n);
            work.extend(firsts.filter(|first| !first.2).map(|first| first.1));
            while let Some(b) = work.pop() {
                if !std::mem::replace(&mut is_read[b.index()], true) {
                    let passes = |p: &&Block| changes.binary_search(&(n, **p)).is_err();
                    work.extend(cfg.preds(b).iter().filter(passes));
                }
            }
            refill(&mut has_phi, f.blocks.len(), false);
            work.extend(changes.iter().map(|change| change.1));
            while let Some(b) = work.pop() {
                let from = ends.partition_point(|end| end.0 < b);
                for &(_, end) in ends[from..].iter().take_while(|end| end.0 == b) {
                    let is_new = is_read[end.index()] && !has_phi[end.index()];
                    if is_new {
                        has_phi[end.index()] = true;
                        let span = f.block(end).term_span;
                        phis.push((end, n, f.make_phi(self.types[n], &[], span)));
                        work.push(end);
                    }
                }
            }
        }
        phis.sort_unstable_by_key(|&(b, n, _)| (b, n));
        phis
    }
}

/// The phis of a block.
fn of_block(phis: &[(Block, usize, Inst)], b: Block) -> &[(Block, usize, Inst)] {
    let first = phis.partition_point(|phi| phi.0 < b);
    let count = phis[first..].partition_point(|phi| phi.0 == b);
    &phis[first..first + count]
}
