//! [`Positions`]: where instructions and values stand.

use crate::{Block, Inst, MpirFn, Value, ValueDef};

/// The block of each instruction.
#[derive(Clone, Default, Debug)]
pub struct Positions {
    block: Vec<u32>,
}

impl Positions {
    /// The positions in a function.
    pub fn new(f: &MpirFn) -> Positions {
        let mut p = Positions::default();
        p.compute(f);
        p
    }

    /// Recomputes the positions, reusing memory.
    pub fn compute(&mut self, f: &MpirFn) {
        self.block.clear();
        self.block.resize(f.num_insts(), u32::MAX);
        for (b, block) in f.blocks.iter().enumerate() {
            for i in &block.insts {
                self.block[i.index()] = b as u32;
            }
        }
    }

    /// The block that lists an instruction.
    pub fn block(&self, i: Inst) -> Option<Block> {
        self.block.get(i.index()).filter(|&&b| b != u32::MAX).map(|&b| Block(b))
    }

    /// Records that an instruction was put into a block.
    pub fn set(&mut self, i: Inst, b: Block) {
        if i.index() >= self.block.len() {
            self.block.resize(i.index() + 1, u32::MAX);
        }
        self.block[i.index()] = b.0;
    }

    /// The block in which a value begins to exist: the entry for a parameter, `None` for a constant.
    pub fn def_block(&self, f: &MpirFn, v: Value) -> Option<Block> {
        match f.def(v) {
            ValueDef::Param(_) => Some(Block(0)),
            ValueDef::Inst(i) => self.block(i),
            ValueDef::Const(_) => None,
        }
    }
}
