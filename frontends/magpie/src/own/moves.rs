//! No use after a move (MPO0007), on any path.
//!
//! The life of each value that something consumes is walked backwards from its uses to its
//! definition. Where it is consumed it must not live on: no later use in the block, and not live at
//! the end of the block or, for a phi, at the start of the phi's block. The cost is the size of the
//! lives; the use that is complained about is looked for only when there is one.

use super::{Checker, Use};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Block, Op, Terminator, Value};
use std::collections::VecDeque;

/// A use of an owned value.
#[derive(Clone, Copy, Debug)]
struct Site {
    v: Value,
    block: Block,
    /// Position in the block; `END` for terminators, and for phis of the block that `edge` names.
    at: u32,
    edge: Option<Block>,
    span: Span,
    consumes: bool,
}

const END: u32 = u32::MAX;

/// Where the value at hand lives, as the round in which a block was marked.
struct Lives {
    live_in: Vec<u32>,
    live_out: Vec<u32>,
    round: u32,
    work: Vec<Block>,
}

impl Lives {
    fn mark(marks: &mut [u32], b: Block, round: u32) -> bool {
        std::mem::replace(&mut marks[b.index()], round) != round
    }
}

impl Checker<'_> {
    pub(super) fn moves(&mut self) {
        let sites = self.sites();
        let homes = self.homes();
        let blocks = self.f.blocks.len();
        let (live_in, live_out) = (vec![0; blocks], vec![0; blocks]);
        let mut lives = Lives { live_in, live_out, round: 0, work: Vec::new() };
        for uses in sites.chunk_by(|a, b| a.v == b.v) {
            if uses.iter().any(|site| site.consumes) {
                self.live(uses, homes[uses[0].v.index()], &mut lives);
                self.check_value(uses, &lives);
            }
        }
    }

    /// The uses of owned values in reachable blocks, by value and then by place.
    fn sites(&self) -> Vec<Site> {
        let f = self.f;
        let mut sites = Vec::new();
        for &block in self.cfg.rpo() {
            for (at, &i) in f.block(block).insts.iter().enumerate() {
                let span = f.inst(i).span;
                if f.inst(i).op == Op::Phi {
                    let arms = f.phi_arms(i).filter(|&(_, v)| self.is_owned(v));
                    for (pred, v) in arms.filter(|&(pred, _)| self.cfg.is_reachable(pred)) {
                        let edge = Some(block);
                        sites.push(Site { v, block: pred, at: END, edge, span, consumes: true });
                    }
                    continue;
                }
                for (n, &v) in f.args(i).iter().enumerate() {
                    if self.is_owned(v) {
                        let consumes = self.use_of(i, n) == Use::Consume;
                        let at = at as u32;
                        sites.push(Site { v, block, at, edge: None, span, consumes });
                    }
                }
            }
            let term = &f.block(block).term;
            if let Some(v) = term.operand().filter(|&v| self.is_owned(v)) {
                let consumes = matches!(term, Terminator::Ret(_));
                let span = f.block(block).term_span;
                sites.push(Site { v, block, at: END, edge: None, span, consumes });
            }
        }
        sites.sort_by_key(|site| (site.v, site.block, site.at, site.edge));
        sites
    }

    /// By value: the block that defines it.
    fn homes(&self) -> Vec<Block> {
        let f = self.f;
        let mut homes = vec![Block(0); f.locals.len()];
        for b in f.block_ids() {
            for &i in &f.block(b).insts {
                if let Some(v) = f.inst(i).result() {
                    homes[v.index()] = b;
                }
            }
        }
        for (v, &b) in &self.source.texts {
            homes[v.index()] = b;
        }
        homes
    }

    /// Marks where a value lives, given its uses and the block that defines it.
    fn live(&self, uses: &[Site], home: Block, lives: &mut Lives) {
        lives.round += 1;
        let round = lives.round;
        for site in uses {
            // A phi reads its operand at the end of the block that its arm names.
            let reaches_start = match site.edge {
                Some(_) => Lives::mark(&mut lives.live_out, site.block, round),
                None => true,
            };
            if reaches_start
                && site.block != home
                && Lives::mark(&mut lives.live_in, site.block, round)
            {
                lives.work.push(site.block);
            }
            while let Some(b) = lives.work.pop() {
                for &p in self.cfg.preds(b).iter().filter(|&&p| self.cfg.is_reachable(p)) {
                    if Lives::mark(&mut lives.live_out, p, round)
                        && p != home
                        && Lives::mark(&mut lives.live_in, p, round)
                    {
                        lives.work.push(p);
                    }
                }
            }
        }
    }

    fn check_value(&mut self, uses: &[Site], lives: &Lives) {
        let is_live = |marks: &[u32], b: Block| marks[b.index()] == lives.round;
        // One report a value: the first use in the text.
        let mut first: Option<(Span, &Site)> = None;
        for (n, moved) in uses.iter().enumerate().filter(|(_, site)| site.consumes) {
            // Uses of a block stand together, in order.
            let after = uses.get(n + 1).filter(|site| site.block == moved.block);
            let (used, lives_on, next) = match moved.edge {
                Some(target) => (
                    after.filter(|site| site.edge == moved.edge),
                    is_live(&lives.live_in, target),
                    vec![target],
                ),
                None => {
                    let before = n.checked_sub(1).map(|n| &uses[n]);
                    let beside =
                        before.filter(|site| (site.block, site.at) == (moved.block, moved.at));
                    (
                        after.filter(|site| site.edge.is_none()).or(beside),
                        is_live(&lives.live_out, moved.block),
                        self.cfg.succs(moved.block).to_vec(),
                    )
                }
            };
            if used.is_some() || lives_on {
                let used = used.map(|site| site.span).or_else(|| self.first_use(moved, next));
                let used = used.unwrap_or(moved.span);
                if first.is_none_or(|(known, _)| used < known) {
                    first = Some((used, moved));
                }
            }
        }
        if let Some((used, moved)) = first {
            self.report_moved(moved, used);
        }
    }

    fn report_moved(&mut self, moved: &Site, used: Span) {
        let name = self.name(moved.v);
        self.findings.push(
            Diagnostic::new(Code::MPO0007, used, format!("{name} is used after it was moved"))
                .with_secondary(moved.span, format!("{name} is moved here"))
                .with_help(format!(
                    "borrow {name} where it is only read, or make a second handle with `share` and \
                     `clone.shared` before the move"
                )),
        );
    }

    /// The nearest use of a value behind a move, from the start of some blocks on.
    fn first_use(&self, moved: &Site, next: Vec<Block>) -> Option<Span> {
        let f = self.f;
        let v = moved.v;
        let mut seen = vec![false; f.blocks.len()];
        if moved.edge.is_none()
            && let Some(span) = self.phi_use(v, moved.block)
        {
            return Some(span);
        }
        let mut work = VecDeque::from(next);
        while let Some(b) = work.pop_front() {
            if std::mem::replace(&mut seen[b.index()], true) {
                continue;
            }
            let block = f.block(b);
            // The text is made anew here.
            if self.source.texts.get(&v) == Some(&b) {
                continue;
            }
            let mut redefined = false;
            for &i in &block.insts {
                let data = f.inst(i);
                redefined |= data.result() == Some(v);
                if data.op != Op::Phi && f.args(i).contains(&v) {
                    return Some(data.span);
                }
            }
            if redefined {
                continue;
            }
            if block.term.operand() == Some(v) {
                return Some(block.term_span);
            }
            if let Some(span) = self.phi_use(v, b) {
                return Some(span);
            }
            work.extend(self.cfg.succs(b));
        }
        None
    }

    /// A phi behind a block that takes the value over on the edge.
    fn phi_use(&self, v: Value, b: Block) -> Option<Span> {
        let f = self.f;
        let targets = self.cfg.succs(b).iter();
        let phis = targets.flat_map(|&s| f.phis(s));
        let mut taking = phis.filter(|&phi| f.phi_value(phi, b) == Some(v));
        taking.next().map(|phi| f.inst(phi).span)
    }
}
