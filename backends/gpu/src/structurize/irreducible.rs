//! Irreducible control flow: finding it, and making it reducible with a selector.

use super::edges::split_edges;
use super::prepare::prepare;
use super::shape;
use super::ssa::Undefined;
use super::variables::{Before, Transfers};
use magpie_mpir::analysis::Cfg;
use magpie_mpir::{Block, MpirFn, Terminator};
use magpie_types::TypeCtx;
use rustc_hash::FxHashMap;

/// Makes a function reducible: all ways into a cycle with several entries go to one new block,
/// which chooses the entry by a selector. Returns whether there was such a cycle.
pub fn lower_irreducible(f: &mut MpirFn, types: &TypeCtx) -> bool {
    prepare(f, types);
    let (cfg, loops) = shape(f);
    let is_irreducible = !loops.is_reducible();
    if is_irreducible {
        let mut undefined = Undefined::default();
        lower_prepared(f, cfg, &mut undefined);
        undefined.settle(f);
    }
    is_irreducible
}

/// The same for a function that has such a cycle, in the form that structuring starts from.
pub(super) fn lower_prepared(f: &mut MpirFn, mut cfg: Cfg, undefined: &mut Undefined) {
    let before = Before::new(f);
    let mut transfers = Transfers::new();
    let mut origin = FxHashMap::default();
    let mut search = Search::new(&cfg);
    loop {
        let mut found = Vec::new();
        while let Some(cycle) = search.next(&cfg) {
            found.push(cycle);
        }
        if found.is_empty() {
            break;
        }
        let mut is_entry = vec![false; f.blocks.len()];
        for &e in found.iter().flat_map(|c| &c.entries) {
            is_entry[e.index()] = true;
        }
        let new =
            split_edges(f, &cfg, |from, to| cfg.succs(from).len() > 1 && is_entry[to.index()]);
        for (from, middle, _) in new {
            origin.insert(middle, from);
            if transfers.is_passing(from) {
                transfers.set_passing(middle);
            }
        }
        cfg.compute(f);
        for cycle in &found {
            let entrance = f.add_block();
            f.block_mut(entrance).term_span = f.block(cycle.entries[0]).term_span;
            transfers.set_passing(entrance);
            for &e in &cycle.entries {
                transfers.lower_phis(f, e);
                for &p in cfg.preds(e) {
                    transfers.start(f, p, e);
                    f.block_mut(p).term = Terminator::Br(entrance);
                }
            }
            transfers.dispatch(f, entrance, &cycle.entries, false);
        }
        cfg.compute(f);
        for cycle in found {
            search.add(cycle.blocks);
        }
    }
    transfers.resolve(f, &before, &origin, undefined);
}

/// The entries of the first cycle that has several, in block order.
pub(super) fn first_entries(cfg: &Cfg) -> Vec<Block> {
    Search::new(cfg).next(cfg).map_or_else(Vec::new, |c| c.entries)
}

/// A strongly connected part with several entries.
struct Cycle {
    blocks: Vec<Block>,
    entries: Vec<Block>,
}

/// The search for cycles with several entries. A cycle with one entry is searched without it.
struct Search {
    /// Blocks that are searched together have the same number.
    part: Vec<u32>,
    parts: u32,
    work: Vec<Vec<Block>>,
    /// Tarjan's numbers; 0 when not visited.
    number: Vec<u32>,
    low: Vec<u32>,
    numbers: u32,
}

impl Search {
    fn new(cfg: &Cfg) -> Search {
        let mut search = Search {
            part: Vec::new(),
            parts: 0,
            work: Vec::new(),
            number: Vec::new(),
            low: Vec::new(),
            numbers: 0,
        };
        search.add(cfg.rpo().to_vec());
        search
    }

    /// Lets a set of blocks be searched.
    fn add(&mut self, blocks: Vec<Block>) {
        self.parts += 1;
        for b in &blocks {
            if self.part.len() <= b.index() {
                self.part.resize(b.index() + 1, 0);
            }
            self.part[b.index()] = self.parts;
        }
        self.work.push(blocks);
    }

    fn part(&self, b: Block) -> u32 {
        self.part.get(b.index()).copied().unwrap_or(0)
    }

    fn next(&mut self, cfg: &Cfg) -> Option<Cycle> {
        while let Some(blocks) = self.work.pop() {
            let Some(&any) = blocks.first() else { continue };
            let part = self.part(any);
            let mut found = None;
            for cycle in self.cycles(cfg, &blocks, part) {
                let inside = self.parts + 1;
                self.parts = inside;
                cycle.iter().for_each(|b| self.part[b.index()] = inside);
                let is_entry = |b: &Block| cfg.preds(*b).iter().any(|&p| self.part(p) != inside);
                let mut entries: Vec<Block> = cycle.iter().copied().filter(is_entry).collect();
                if entries.len() > 1 && found.is_none() {
                    entries.sort_unstable();
                    found = Some(Cycle { blocks: cycle, entries });
                } else if entries.len() > 1 {
                    // Left for the next call.
                    self.work.push(cycle);
                } else {
                    let rest: Vec<Block> =
                        cycle.into_iter().filter(|b| !entries.contains(b)).collect();
                    entries.iter().for_each(|b| self.part[b.index()] = 0);
                    self.work.push(rest);
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The strongly connected components of a part that contain a cycle (Tarjan, 1972).
    fn cycles(&mut self, cfg: &Cfg, blocks: &[Block], part: u32) -> Vec<Vec<Block>> {
        self.number.resize(cfg.num_blocks().max(self.number.len()), 0);
        self.low.resize(self.number.len(), 0);
        blocks.iter().for_each(|b| self.number[b.index()] = 0);
        const DONE: u32 = u32::MAX;
        let mut out = Vec::new();
        let mut path: Vec<Block> = Vec::new();
        let mut calls: Vec<(Block, usize)> = Vec::new();
        for &root in blocks {
            if self.number[root.index()] != 0 {
                continue;
            }
            self.open(root, &mut path);
            calls.push((root, 0));
            while let Some(top) = calls.last_mut() {
                let b = top.0;
                let Some(&s) = cfg.succs(b).get(top.1) else {
                    calls.pop();
                    if let Some(&(caller, _)) = calls.last() {
                        let low = self.low[b.index()];
                        self.low[caller.index()] = self.low[caller.index()].min(low);
                    }
                    if self.low[b.index()] == self.number[b.index()] {
                        let at = path.iter().rposition(|&x| x == b).unwrap_or(0);
                        let component = path.split_off(at);
                        component.iter().for_each(|c| self.number[c.index()] = DONE);
                        if component.len() > 1 || cfg.succs(b).contains(&b) {
                            out.push(component);
                        }
                    }
                    continue;
                };
                top.1 += 1;
                if self.part(s) != part {
                    continue;
                }
                match self.number[s.index()] {
                    0 => {
                        self.open(s, &mut path);
                        calls.push((s, 0));
                    }
                    DONE => {}
                    n => self.low[b.index()] = self.low[b.index()].min(n),
                }
            }
        }
        out
    }

    fn open(&mut self, b: Block, path: &mut Vec<Block>) {
        self.numbers += 1;
        self.number[b.index()] = self.numbers;
        self.low[b.index()] = self.numbers;
        path.push(b);
    }
}
