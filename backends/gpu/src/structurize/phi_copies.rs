//! Phi elimination for targets that print text: assignments at the ends of blocks.

use super::StructuredBody;
use super::edges::split_edges;
use magpie_mpir::analysis::Cfg;
use magpie_mpir::{Block, Inst, MpirFn, Value};
use magpie_types::TypeId;
use rustc_hash::FxHashMap;

/// An assignment to the variable of a phi, or through a temporary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhiCopy {
    /// The phi's variable takes a value. `source` may be another phi's variable.
    Assign {
        /// The result of the phi.
        phi: Value,
        #[allow(missing_docs)]
        source: Value,
    },
    /// A temporary takes the value of a phi's variable that is about to be overwritten.
    Save {
        /// Position in [`PhiCopies::temporaries`].
        temporary: u32,
        #[allow(missing_docs)]
        phi: Value,
    },
    /// The phi's variable takes the value of a temporary.
    Restore {
        #[allow(missing_docs)]
        phi: Value,
        /// Position in [`PhiCopies::temporaries`].
        temporary: u32,
    },
}

/// What to do at the end of each block, in this order, so that all phis of the next block change
/// at once.
#[derive(Clone, Debug, Default)]
pub struct PhiCopies {
    /// The types of the temporaries.
    pub temporaries: Vec<TypeId>,
    copies: Vec<PhiCopy>,
    ends: Vec<u32>,
}

impl PhiCopies {
    /// The copies at the end of a block.
    pub fn at(&self, b: Block) -> &[PhiCopy] {
        let end = |n: usize| self.ends.get(n).map_or(0, |&e| e as usize);
        let start = b.index().checked_sub(1).map_or(0, end);
        &self.copies[start..end(b.index()).max(start)]
    }
}

/// The copies for a structured function. Undefined arms need none.
pub fn phi_copies(f: &MpirFn, body: &StructuredBody) -> PhiCopies {
    copies(f, |phi, pred| body.is_undefined(phi, pred))
}

/// The copies for a function that keeps its control-flow graph: edges from a block with several
/// successors to phis get a block of their own.
pub fn edge_copies(f: &mut MpirFn) -> PhiCopies {
    let cfg = Cfg::new(f);
    let has_phis: Vec<bool> = f.block_ids().map(|b| f.phis(b).next().is_some()).collect();
    split_edges(f, &cfg, |from, to| cfg.succs(from).len() > 1 && has_phis[to.index()]);
    copies(f, |_, _| false)
}

fn copies(f: &MpirFn, is_undefined: impl Fn(Inst, Block) -> bool) -> PhiCopies {
    let mut all: Vec<(Block, Value, Value)> = Vec::new();
    for b in f.block_ids() {
        for phi in f.phis(b) {
            if let Some(result) = f.inst(phi).result() {
                let arms = f
                    .phi_arms(phi)
                    .filter(|&(pred, source)| source != result && !is_undefined(phi, pred));
                all.extend(arms.map(|(pred, source)| (pred, result, source)));
            }
        }
    }
    // A block that leads to phis has one successor, so its copies belong to one block.
    all.sort_by_key(|&(pred, ..)| pred);
    let mut out = PhiCopies::default();
    let mut temporary_of: FxHashMap<TypeId, u32> = FxHashMap::default();
    for copies in all.chunk_by(|a, b| a.0 == b.0) {
        out.ends.resize(copies[0].0.index(), out.copies.len() as u32);
        order(f, copies, &mut temporary_of, &mut out);
    }
    out.ends.resize(f.blocks.len(), out.copies.len() as u32);
    out
}

/// Puts copies that happen at once into an order: a variable is overwritten when nobody reads it
/// any more; of a cycle, one value goes through a temporary.
fn order(
    f: &MpirFn,
    copies: &[(Block, Value, Value)],
    temporary_of: &mut FxHashMap<TypeId, u32>,
    out: &mut PhiCopies,
) {
    let position: FxHashMap<Value, usize> =
        copies.iter().enumerate().map(|(n, &(_, phi, _))| (phi, n)).collect();
    let mut readers = vec![0u32; copies.len()];
    for (_, _, source) in copies {
        if let Some(&n) = position.get(source) {
            readers[n] += 1;
        }
    }
    let mut is_done = vec![false; copies.len()];
    // Sources that were saved.
    let mut saved: FxHashMap<Value, u32> = FxHashMap::default();
    let mut ready: Vec<usize> = (0..copies.len()).rev().filter(|&n| readers[n] == 0).collect();
    let mut start = 0;
    loop {
        while let Some(n) = ready.pop() {
            is_done[n] = true;
            let (_, phi, source) = copies[n];
            out.copies.push(match saved.get(&source) {
                Some(&temporary) => PhiCopy::Restore { phi, temporary },
                None => PhiCopy::Assign { phi, source },
            });
            if let Some(&read) = position.get(&source)
                && !saved.contains_key(&source)
            {
                readers[read] -= 1;
                if readers[read] == 0 {
                    ready.push(read);
                }
            }
        }
        while start < copies.len() && is_done[start] {
            start += 1;
        }
        if start == copies.len() {
            return;
        }
        // What is left are cycles in which each variable has one reader.
        let phi = copies[start].1;
        let temporary = *temporary_of.entry(f.ty(phi)).or_insert_with(|| {
            out.temporaries.push(f.ty(phi));
            out.temporaries.len() as u32 - 1
        });
        out.copies.push(PhiCopy::Save { temporary, phi });
        saved.insert(phi, temporary);
        readers[start] = 0;
        ready.push(start);
    }
}
