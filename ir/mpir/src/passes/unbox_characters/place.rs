//! Where the text of a character is made for the uses that need it.

use crate::analysis::{Cfg, Dominators, Loops};
use crate::{Block, MpirFn};

/// The graph of a function.
pub(super) struct Places {
    dom: Dominators,
    loops: Loops,
}

impl Places {
    pub(super) fn new(f: &MpirFn) -> Places {
        let cfg = Cfg::new(f);
        let dom = Dominators::new(&cfg);
        let loops = Loops::new(&cfg, &dom);
        Places { dom, loops }
    }

    /// The closest block that dominates two.
    pub(super) fn common(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            let deeper = if self.dom.depth(a) >= self.dom.depth(b) { &mut a } else { &mut b };
            match self.dom.idom(*deeper) {
                Some(up) => *deeper = up,
                None => break,
            }
        }
        a
    }

    /// The closest block that dominates `b` and is in no loop that `def`, which dominates it too,
    /// is outside of.
    pub(super) fn outside_loops(&self, mut b: Block, def: Block) -> Block {
        while let Some(l) = self.loops.innermost(b).filter(|&l| !self.loops.contains(l, def)) {
            match self.dom.idom(self.loops.header(l)) {
                Some(up) => b = up,
                None => break,
            }
        }
        b
    }
}
