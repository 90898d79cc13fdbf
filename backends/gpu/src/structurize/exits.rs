//! `lower_multi_exits`: gives every loop a header of its own, one latch and one exit.
//!
//! Loops are done from the inside out. An exit to a block several levels further out becomes a
//! transfer ([`super::variables`]): it goes to the loop's merge block, where a dispatch on the
//! selector goes to the targets of that level and hands the others on.

use super::edges::{rename_predecessors, split_edges};
use super::variables::{Before, Transfers};
use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, LoopId, Loops};
use magpie_mpir::{Block, MpirFn, Op, Terminator};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The parts of a loop after lowering.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopParts {
    /// Phis and a `br` to `body`.
    pub(super) header: Block,
    /// The first block inside.
    pub(super) body: Block,
    /// Phis and the only edge back.
    pub(super) latch: Block,
    /// Where all exits go; `None` when the loop is left by returns only.
    pub(super) merge: Option<Block>,
}

/// A function whose loops are being given their shape.
pub(super) struct LoopLowering<'a> {
    f: &'a mut MpirFn,
    loops: &'a Loops,
    /// The innermost loop around each block, new ones included.
    level: Vec<Option<LoopId>>,
    parts: Vec<LoopParts>,
}

impl<'a> LoopLowering<'a> {
    /// First step: headers, latches, returns from inside loops, critical edges.
    pub(super) fn new(f: &'a mut MpirFn, cfg: &Cfg, loops: &'a Loops) -> LoopLowering<'a> {
        let level = f.block_ids().map(|b| loops.innermost(b)).collect();
        let mut lowering = LoopLowering { f, loops, level, parts: Vec::new() };
        lowering.split_headers(cfg);
        lowering.add_latches();
        lowering.keep_returns_inside();
        lowering.split_critical_edges();
        lowering
    }

    fn add_block(&mut self, level: Option<LoopId>, span: Span) -> Block {
        let b = self.f.add_block();
        self.f.block_mut(b).term_span = span;
        self.level.push(level);
        b
    }

    /// Whether an edge from `from` to `to` leaves a loop.
    fn leaves(&self, from: Block, to: Block) -> bool {
        self.level[from.index()].is_some_and(|l| !self.contains(l, to))
    }

    fn contains(&self, l: LoopId, b: Block) -> bool {
        self.level[b.index()].is_some_and(|inner| self.loops.encloses(l, inner))
    }

    /// Moves everything but the phis out of loop headers.
    fn split_headers(&mut self, cfg: &Cfg) {
        let mut renamed = FxHashMap::default();
        for l in self.loops.ids() {
            let header = self.loops.header(l);
            let span = self.f.block(header).term_span;
            let body = self.add_block(Some(l), span);
            let phis = self.f.phis(header).count();
            let old = self.f.block_mut(header);
            let insts = old.insts.split_off(phis);
            let term = std::mem::replace(&mut old.term, Terminator::Br(body));
            let new = self.f.block_mut(body);
            new.insts = insts;
            new.term = term;
            for &s in cfg.succs(header) {
                renamed.insert((header, s), body);
            }
            self.parts.push(LoopParts { header, body, latch: header, merge: None });
        }
        rename_predecessors(self.f, &renamed);
    }

    /// Routes the edges back to each header through one block.
    fn add_latches(&mut self) {
        let cfg = Cfg::new(self.f);
        for l in self.loops.ids() {
            let header = self.parts[l.index()].header;
            let span = self.f.block(header).term_span;
            let latch = self.add_block(Some(l), span);
            self.parts[l.index()].latch = latch;
            let back: Vec<Block> =
                cfg.preds(header).iter().copied().filter(|&p| self.contains(l, p)).collect();
            for &p in &back {
                self.f.block_mut(p).term.map_targets(|t| if t == header { latch } else { t });
            }
            self.f.block_mut(latch).term = Terminator::Br(header);
            let phis: Vec<_> = self.f.phis(header).collect();
            for phi in phis {
                let (inside, mut arms): (Vec<_>, Vec<_>) =
                    self.f.phi_arms(phi).partition(|&(p, _)| self.contains(l, p));
                let value = match *inside {
                    [(_, only)] => only,
                    _ => {
                        let (ty, span) = (self.f.inst(phi).ty, self.f.inst(phi).span);
                        let merged = self.f.make_phi(ty, &inside, span);
                        self.f.block_mut(latch).insts.push(merged);
                        self.f.inst(merged).result().unwrap_or(inside[0].1)
                    }
                };
                arms.push((latch, value));
                self.f.set_phi_arms(phi, &arms);
            }
        }
    }

    /// A block that only returns (or is unreachable) stays inside the loop that goes there, when
    /// the loop has other exits too; the loop's own condition is always an exit. It costs a flag
    /// otherwise.
    fn keep_returns_inside(&mut self) {
        let cfg = Cfg::new(self.f);
        let exits: Vec<(Block, Block)> = cfg
            .rpo()
            .iter()
            .flat_map(|&b| cfg.succs(b).iter().map(move |&s| (b, s)))
            .filter(|&(b, s)| self.leaves(b, s))
            .collect();
        let mut target: Vec<Option<Block>> = vec![None; self.parts.len()];
        let mut has_several = vec![false; self.parts.len()];
        for &(from, to) in &exits {
            let mut at = self.level[from.index()];
            while let Some(l) = at.filter(|&l| !self.contains(l, to)) {
                let first = *target[l.index()].get_or_insert(to);
                has_several[l.index()] |= first != to;
                at = self.loops.parent(l);
            }
        }
        let mut redirected: FxHashMap<Block, Vec<(Block, Block)>> = FxHashMap::default();
        for (from, to) in exits {
            let Some(l) = self.level[from.index()] else { continue };
            let crossed = std::iter::successors(Some(l), |&l| self.loops.parent(l))
                .take_while(|&l| !self.contains(l, to));
            let is_costly = crossed.into_iter().any(|l| has_several[l.index()]);
            if !is_costly || from == self.parts[l.index()].body {
                continue;
            }
            let block = self.f.block(to);
            if !matches!(block.term, Terminator::Ret(_) | Terminator::Unreachable) {
                continue;
            }
            if cfg.preds(to).len() == 1 {
                if self.is_small(to) {
                    self.level[to.index()] = Some(l);
                }
            } else if block.insts.is_empty() {
                let (term, span) = (block.term.clone(), block.term_span);
                let copy = self.add_block(Some(l), span);
                self.f.block_mut(copy).term = term;
                redirected.entry(from).or_default().push((to, copy));
            }
        }
        for (from, targets) in redirected {
            let find = |t: Block| targets.iter().find(|&&(to, _)| to == t).map_or(t, |&(_, c)| c);
            self.f.block_mut(from).term.map_targets(find);
        }
    }

    /// Whether a block is worth keeping inside a loop that it leaves.
    fn is_small(&self, b: Block) -> bool {
        const FEW: usize = 8;
        let insts = &self.f.block(b).insts;
        insts.len() <= FEW
            && insts.iter().all(|&i| {
                let op = self.f.inst(i).op;
                op != Op::Phi && !op.info().convergent
            })
    }

    /// Splits the edges that transfers may start on: from a block with several successors to one
    /// with several predecessors, to a latch, or out of a loop.
    fn split_critical_edges(&mut self) {
        let cfg = Cfg::new(self.f);
        let mut is_latch = vec![false; self.f.blocks.len()];
        self.parts.iter().for_each(|p| is_latch[p.latch.index()] = true);
        let this = &*self;
        let wanted: Vec<(Block, Block)> = cfg
            .rpo()
            .iter()
            .filter(|&&b| cfg.succs(b).len() > 1)
            .flat_map(|&b| cfg.succs(b).iter().map(move |&s| (b, s)))
            .filter(|&(b, s)| cfg.preds(s).len() > 1 || is_latch[s.index()] || this.leaves(b, s))
            .collect();
        let mut next = wanted.into_iter().peekable();
        let new = split_edges(self.f, &cfg, |b, s| next.next_if_eq(&(b, s)).is_some());
        for (from, _, _) in new {
            self.level.push(self.level[from.index()]);
        }
    }

    /// The dominator tree from before any edge is a transfer.
    pub(super) fn before(&self) -> Before {
        Before::new(self.f)
    }

    /// Second step: one exit a loop. Returns the parts by loop, in the order of [`Loops::ids`].
    pub(super) fn lower_multi_exits(mut self, transfers: &mut Transfers) -> Vec<LoopParts> {
        let cfg = Cfg::new(self.f);
        let mut exits: Vec<Exits> = self.parts.iter().map(|_| Exits::default()).collect();
        for &b in cfg.rpo() {
            if let [to] = *cfg.succs(b)
                && self.leaves(b, to)
                && let Some(l) = self.level[b.index()]
            {
                let depth = self.depth(to);
                exits[l.index()].direct.push((b, to));
                exits[l.index()].targets.insert((Reverse(depth), to));
            }
        }
        // Inner loops have larger numbers.
        for l in self.loops.ids().rev() {
            let own = std::mem::take(&mut exits[l.index()]);
            if let Some((parent, outer)) = self.lower_exits(l, own, &cfg, transfers) {
                exits[parent.index()].absorb(outer);
            }
        }
        self.parts
    }

    /// Number of loops around the place where an edge to a block arrives: a header is entered
    /// from outside its loop.
    fn depth(&self, b: Block) -> u32 {
        self.level[b.index()].map_or(0, |l| {
            let is_header = self.parts[l.index()].header == b;
            self.loops.depth(l) - is_header as u32
        })
    }

    /// Gives loop `l` its merge block. Returns what leaves the loop around it too.
    fn lower_exits(
        &mut self,
        l: LoopId,
        exits: Exits,
        cfg: &Cfg,
        transfers: &mut Transfers,
    ) -> Option<(LoopId, Exits)> {
        let parent = self.loops.parent(l);
        let parent_depth = parent.map_or(0, |p| self.loops.depth(p));
        let &(Reverse(depth), first) = exits.targets.first()?;
        let is_single = exits.targets.len() == 1;
        if is_single && depth == parent_depth && self.can_be_merge(first, &exits, cfg) {
            self.parts[l.index()].merge = Some(first);
            return None;
        }
        let span = self.f.block(self.parts[l.index()].header).term_span;
        let merge = self.add_block(parent, span);
        self.parts[l.index()].merge = Some(merge);
        transfers.set_passing(merge);
        for &(from, to) in &exits.direct {
            transfers.lower_phis(self.f, to);
            if !is_single {
                transfers.start(self.f, from, to);
            }
            self.f.block_mut(from).term = Terminator::Br(merge);
        }
        for &from in &exits.passing {
            self.f.block_mut(from).term = Terminator::Br(merge);
        }
        let mut outer = Exits { targets: exits.targets, ..Exits::default() };
        let mut inside = Vec::new();
        // What leads furthest in comes first.
        while let Some(&(Reverse(depth), to)) = outer.targets.first()
            && depth >= parent_depth
        {
            outer.targets.pop_first();
            inside.push(to);
        }
        if is_single {
            self.f.block_mut(merge).term = Terminator::Br(first);
            outer.direct.extend(inside.is_empty().then_some((merge, first)));
        } else if inside.is_empty() {
            outer.passing.push(merge);
        } else {
            let or_else = !outer.targets.is_empty();
            let dispatch = transfers.dispatch(self.f, merge, &inside, or_else);
            self.level.extend(dispatch.blocks.iter().map(|_| parent));
            outer.passing = dispatch.open;
        }
        Some((parent?, outer))
    }

    /// Whether the only target can serve as the merge block itself: nothing else leads there and
    /// it is no part of another loop's frame.
    fn can_be_merge(&self, target: Block, exits: &Exits, cfg: &Cfg) -> bool {
        exits.passing.is_empty()
            && target.index() < cfg.num_blocks()
            && cfg.preds(target).len() == exits.direct.len()
            && self.level[target.index()].is_none_or(|l| {
                let parts = self.parts[l.index()];
                parts.header != target && parts.latch != target
            })
    }
}

/// What leaves a loop.
#[derive(Default, Debug)]
struct Exits {
    /// Edges from blocks with one successor.
    direct: Vec<(Block, Block)>,
    /// Blocks inside that hand on transfers of inner loops.
    passing: Vec<Block>,
    /// Where everything goes, the deepest loops first.
    targets: BTreeSet<(Reverse<u32>, Block)>,
}

impl Exits {
    /// Adds what leaves an inner loop and this one.
    fn absorb(&mut self, mut inner: Exits) {
        self.direct.append(&mut inner.direct);
        self.passing.append(&mut inner.passing);
        if self.targets.len() < inner.targets.len() {
            std::mem::swap(&mut self.targets, &mut inner.targets);
        }
        self.targets.append(&mut inner.targets);
    }
}
