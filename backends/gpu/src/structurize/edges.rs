//! Splitting edges of a control-flow graph, many at a time.

use magpie_mpir::analysis::Cfg;
use magpie_mpir::{Block, MpirFn, Terminator};
use rustc_hash::FxHashMap;

/// Puts an empty block on every edge for which `wanted` holds. Returns the new blocks with their
/// edges, in block order.
pub(super) fn split_edges(
    f: &mut MpirFn,
    cfg: &Cfg,
    mut wanted: impl FnMut(Block, Block) -> bool,
) -> Vec<(Block, Block, Block)> {
    let mut new = Vec::new();
    let mut renamed: FxHashMap<(Block, Block), Block> = FxHashMap::default();
    let mut targets: FxHashMap<Block, Block> = FxHashMap::default();
    for &from in cfg.rpo() {
        targets.clear();
        for &to in cfg.succs(from) {
            if wanted(from, to) {
                let middle = f.add_block();
                let span = f.block(from).term_span;
                f.block_mut(middle).term = Terminator::Br(to);
                f.block_mut(middle).term_span = span;
                targets.insert(to, middle);
                renamed.insert((from, to), middle);
                new.push((from, middle, to));
            }
        }
        if !targets.is_empty() {
            f.block_mut(from).term.map_targets(|t| targets.get(&t).copied().unwrap_or(t));
        }
    }
    rename_predecessors(f, &renamed);
    new
}

/// Renames predecessors in phis: key (old predecessor, block).
pub(super) fn rename_predecessors(f: &mut MpirFn, renamed: &FxHashMap<(Block, Block), Block>) {
    let mut blocks: Vec<Block> = renamed.keys().map(|&(_, to)| to).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for b in blocks {
        let phis: Vec<_> = f.phis(b).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |p| renamed.get(&(p, b)).copied().unwrap_or(p));
        }
    }
}
