//! [`Liveness`]: which values are needed where blocks begin and end.
//!
//! Each use is walked backwards to its definition (Boissinot and others, 2011), so the cost is the
//! size of the result.

use super::{Cfg, Positions};
use crate::{Block, MpirFn, Op, Value};

/// The live values at the borders of blocks, without constants.
///
/// A phi reads its operands at the end of the predecessors and defines its result at the beginning
/// of its block; parameters are defined at the beginning of the entry. So neither is live in there.
#[derive(Clone, Default, Debug)]
pub struct Liveness {
    live_in: Lists,
    live_out: Lists,
    positions: Positions,
    uses: Vec<Use>,
    use_start: Vec<u32>,
    work: Vec<Block>,
}

/// A use of a value, seen from the block that needs it.
#[derive(Clone, Copy, Default, Debug)]
struct Use {
    block: u32,
    at_end: bool,
}

/// One list of values a block.
#[derive(Clone, Default, Debug)]
struct Lists {
    pairs: Vec<(Block, Value)>,
    last: Vec<u32>,
    start: Vec<u32>,
    values: Vec<Value>,
}

impl Lists {
    fn clear(&mut self, blocks: usize) {
        self.pairs.clear();
        self.last.clear();
        self.last.resize(blocks, u32::MAX);
    }

    /// Adds a value to a block; whether it was not there. Values come in ascending order.
    fn add(&mut self, b: Block, v: Value) -> bool {
        let new = std::mem::replace(&mut self.last[b.index()], v.0) != v.0;
        if new {
            self.pairs.push((b, v));
        }
        new
    }

    fn finish(&mut self) {
        let blocks = self.last.len();
        self.start.clear();
        self.start.resize(blocks + 1, 0);
        for (b, _) in &self.pairs {
            self.start[b.index() + 1] += 1;
        }
        for b in 0..blocks {
            self.start[b + 1] += self.start[b];
        }
        self.values.clear();
        self.values.resize(self.pairs.len(), Value(0));
        for &(b, v) in &self.pairs {
            let slot = &mut self.start[b.index()];
            self.values[*slot as usize] = v;
            *slot += 1;
        }
        self.start.copy_within(0..blocks, 1);
        self.start[0] = 0;
    }

    fn of(&self, b: Block) -> &[Value] {
        &self.values[self.start[b.index()] as usize..self.start[b.index() + 1] as usize]
    }
}

impl Liveness {
    /// The live values of a function.
    pub fn new(f: &MpirFn, cfg: &Cfg) -> Liveness {
        let mut l = Liveness::default();
        l.compute(f, cfg);
        l
    }

    /// Recomputes the live values, reusing memory.
    pub fn compute(&mut self, f: &MpirFn, cfg: &Cfg) {
        self.positions.compute(f);
        self.collect_uses(f, cfg);
        self.live_in.clear(f.blocks.len());
        self.live_out.clear(f.blocks.len());
        for v in (0..f.locals.len()).map(Value::new) {
            let range = self.use_start[v.index()] as usize..self.use_start[v.index() + 1] as usize;
            if range.is_empty() {
                continue;
            }
            let Some(def) = self.positions.def_block(f, v) else { continue };
            for n in range {
                let Use { block, at_end } = self.uses[n];
                let b = Block(block);
                if (!at_end || self.live_out.add(b, v)) && b != def && self.live_in.add(b, v) {
                    self.work.push(b);
                }
                while let Some(b) = self.work.pop() {
                    for &p in cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)) {
                        if self.live_out.add(p, v) && p != def && self.live_in.add(p, v) {
                            self.work.push(p);
                        }
                    }
                }
            }
        }
        self.live_in.finish();
        self.live_out.finish();
    }

    fn collect_uses(&mut self, f: &MpirFn, cfg: &Cfg) {
        self.use_start.clear();
        self.use_start.resize(f.locals.len() + 1, 0);
        let start = &mut self.use_start;
        let mut count = 0;
        for_each_use(f, cfg, |v, _| {
            start[v.index() + 1] += 1;
            count += 1;
        });
        for n in 0..f.locals.len() {
            start[n + 1] += start[n];
        }
        self.uses.clear();
        self.uses.resize(count, Use::default());
        let uses = &mut self.uses;
        for_each_use(f, cfg, |v, u| {
            uses[start[v.index()] as usize] = u;
            start[v.index()] += 1;
        });
        start.copy_within(0..f.locals.len(), 1);
        start[0] = 0;
    }

    /// The values defined before a block and needed in it or behind it, by ascending id.
    pub fn live_in(&self, b: Block) -> &[Value] {
        self.live_in.of(b)
    }

    /// The values needed behind a block, by phis of its successors too, by ascending id.
    pub fn live_out(&self, b: Block) -> &[Value] {
        self.live_out.of(b)
    }
}

fn for_each_use(f: &MpirFn, cfg: &Cfg, mut visit: impl FnMut(Value, Use)) {
    for &b in cfg.rpo() {
        let block = f.block(b);
        for &i in &block.insts {
            if f.inst(i).op == Op::Phi {
                for (p, v) in f.phi_arms(i).filter(|&(p, _)| cfg.is_reachable(p)) {
                    visit(v, Use { block: p.0, at_end: true });
                }
            } else {
                for &v in f.args(i) {
                    visit(v, Use { block: b.0, at_end: false });
                }
            }
        }
        if let Some(v) = block.term.operand() {
            visit(v, Use { block: b.0, at_end: false });
        }
    }
}
