//! [`PassContext`]: memory that the passes share.

use super::gvn::Numbering;
use super::parts::Parts;
use super::replacements::Replacements;
use super::sccp::Propagation;
use crate::analysis::guards::Guards;
use crate::analysis::{Cfg, ClassSet, Dominators, Loops, MemoryClasses, Positions, Ranges, Uses};
use crate::{Block, Inst, MpirFn, Value};

/// Working memory of the passes. One context serves any number of functions, one after the other;
/// nothing in it is meaningful between two passes.
#[derive(Clone, Default, Debug)]
pub struct PassContext {
    pub(super) cfg: Cfg,
    pub(super) dom: Dominators,
    pub(super) loops: Loops,
    pub(super) positions: Positions,
    pub(super) uses: Uses,
    pub(super) memory: MemoryClasses,
    pub(super) loop_writes: Vec<ClassSet>,
    pub(super) guards: Guards,
    pub(super) numbering: Numbering,
    pub(super) parts: Parts,
    pub(super) propagation: Propagation,
    pub(super) ranges: Ranges,
    pub(super) replacements: Replacements,
    pub(super) insts: Vec<Inst>,
    pub(super) values: Vec<Value>,
    pub(super) marks: Vec<bool>,
    pub(super) numbers: Vec<u32>,
    pub(super) counts: Vec<u32>,
    pub(super) blocks: Vec<Block>,
}

impl PassContext {
    /// An empty context.
    pub fn new() -> PassContext {
        PassContext::default()
    }

    /// Computes the graph of a function, its dominators and its loops.
    pub(super) fn find_loops(&mut self, f: &MpirFn) {
        self.cfg.compute(f);
        self.dom.compute(&self.cfg);
        self.loops.compute(&self.cfg, &self.dom);
    }
}

/// Empties a list and gives it `len` equal entries.
pub(super) fn refill<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}
