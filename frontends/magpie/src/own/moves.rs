//! No use after a move (MPO0007), on any path.

use super::{Checker, Use};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::analysis::Cfg;
use magpie_mpir::{Block, Inst, Op, Value, ValueDef};

/// A use of an owned value: at an instruction, on the edge out of a block, or at its terminator.
#[derive(Clone, Copy, Debug)]
struct Site {
    block: Block,
    /// Position in the block; the end for edges and terminators.
    at: u32,
    span: Span,
    consumes: bool,
}

impl Checker<'_> {
    pub(super) fn moves(&mut self) {
        let cfg = Cfg::new(self.f);
        let sites = self.sites(&cfg);
        let mut search = Search { seen: vec![0; self.f.blocks.len()], round: 0, work: Vec::new() };
        for (v, sites) in sites.into_iter().enumerate() {
            if sites.iter().any(|s| s.consumes) {
                self.check_value(Value::new(v), &sites, &cfg, &mut search);
            }
        }
    }

    /// The uses of every owned value, in reverse postorder of their blocks.
    fn sites(&self, cfg: &Cfg) -> Vec<Vec<Site>> {
        let f = self.f;
        let mut sites: Vec<Vec<Site>> = vec![Vec::new(); f.locals.len()];
        for &block in cfg.rpo() {
            let end = f.block(block).insts.len() as u32;
            for (at, &i) in f.block(block).insts.iter().enumerate() {
                if f.inst(i).op == Op::Phi {
                    continue;
                }
                for (n, &v) in f.args(i).iter().enumerate() {
                    if self.is_owned(v) {
                        let consumes = self.use_of(i, n) == Use::Consume;
                        let span = f.inst(i).span;
                        sites[v.index()].push(Site { block, at: at as u32, span, consumes });
                    }
                }
            }
            for &s in cfg.succs(block) {
                for phi in f.phis(s) {
                    if let Some(v) = f.phi_value(phi, block)
                        && self.is_owned(v)
                    {
                        let span = f.inst(phi).span;
                        sites[v.index()].push(Site { block, at: end, span, consumes: true });
                    }
                }
            }
            if let (Some(v), magpie_mpir::Terminator::Ret(_)) =
                (f.block(block).term.operand(), &f.block(block).term)
                && self.is_owned(v)
            {
                let span = f.block(block).term_span;
                sites[v.index()].push(Site { block, at: end, span, consumes: true });
            }
        }
        sites
    }

    fn check_value(&mut self, v: Value, sites: &[Site], cfg: &Cfg, search: &mut Search) {
        let home = match self.f.def(v) {
            ValueDef::Inst(i) => self.home(i, cfg),
            ValueDef::Param(_) | ValueDef::Const(_) => None,
        };
        let elsewhere = |b: Block| sites.iter().any(|s| s.block != b);
        let in_a_loop = |b: Block| home != Some(b);
        let mut found: Option<(Site, Site)> = None;
        for (n, moved) in sites.iter().enumerate().filter(|(_, s)| s.consumes) {
            // Later in the same block. Arms for several edges of one block are alternatives.
            let later = sites.iter().enumerate().find(|&(m, s)| {
                s.block == moved.block
                    && (s.at > moved.at || (m > n && s.at == moved.at && !self.is_edge(s)))
            });
            if let Some((_, used)) = later {
                found = Some((*used, *moved));
                break;
            }
            if !elsewhere(moved.block) && !in_a_loop(moved.block) {
                continue;
            }
            if let Some(used) = search.reachable_use(moved, sites, home, cfg) {
                found = Some((used, *moved));
                break;
            }
        }
        if let Some((used, moved)) = found {
            let name = self.name(v);
            self.findings.push(
                Diagnostic::new(
                    Code::MPO0007,
                    used.span,
                    format!("{name} is used after it was moved"),
                )
                .with_secondary(moved.span, format!("{name} is moved here"))
                .with_help(format!(
                    "borrow {name} where it is only read, or make a second handle with `share` and \
                     `clone.shared` before the move"
                )),
            );
        }
    }

    fn is_edge(&self, s: &Site) -> bool {
        s.at as usize >= self.f.block(s.block).insts.len()
    }

    fn home(&self, i: Inst, cfg: &Cfg) -> Option<Block> {
        cfg.rpo().iter().copied().find(|&b| self.f.block(b).insts.contains(&i))
    }
}

struct Search {
    seen: Vec<u32>,
    round: u32,
    work: Vec<Block>,
}

impl Search {
    /// A use that control can reach after the move without making the value anew.
    fn reachable_use(
        &mut self,
        moved: &Site,
        sites: &[Site],
        home: Option<Block>,
        cfg: &Cfg,
    ) -> Option<Site> {
        self.round += 1;
        self.work.clear();
        self.work.extend(cfg.succs(moved.block));
        let mut reached = Vec::new();
        while let Some(b) = self.work.pop() {
            if Some(b) == home
                || std::mem::replace(&mut self.seen[b.index()], self.round) == self.round
            {
                continue;
            }
            reached.push(b);
            self.work.extend(cfg.succs(b));
        }
        let round = self.round;
        sites.iter().copied().find(|s| Some(s.block) != home && self.seen[s.block.index()] == round)
    }
}
