//! Definitions before uses.

use super::{Fault, Verifier};
use crate::analysis::{Cfg, Dominators};
use crate::{Block, Inst, Op, Value, ValueDef};

/// Where an instruction stands.
#[derive(Clone, Copy)]
struct Place {
    block: Block,
    /// Position in the block.
    at: u32,
}

impl Verifier<'_> {
    pub(super) fn check_dominance(&mut self, cfg: &Cfg) {
        let f = self.f;
        let dominators = Dominators::new(cfg);
        let mut places: Vec<Option<Place>> = vec![None; f.num_insts()];
        for block in f.block_ids() {
            for (at, &i) in f.block(block).insts.iter().enumerate() {
                places[i.index()] = Some(Place { block, at: at as u32 });
            }
        }
        // `at` is the position of the use; the end of a block is behind every position.
        let check = |v: Value, b: Block, at: u32| -> Option<Fault> {
            let ValueDef::Inst(def) = f.def(v) else { return None };
            let Some(place) = places[def.index()] else {
                return Some(Fault::structure(format!("no block defines {v:?}")));
            };
            let dominates = match place.block == b {
                true => place.at < at,
                false => !cfg.is_reachable(b) || dominators.dominates(place.block, b),
            };
            let message =
                || format!("the definition of {v:?} in {:?} does not dominate", place.block);
            (!dominates).then(|| Fault::structure(message()))
        };
        const END: u32 = u32::MAX;
        for b in f.block_ids() {
            if self.is_full() {
                return;
            }
            for (at, &i) in f.block(b).insts.iter().enumerate() {
                let fault = self.first_fault(i, |pred, v| match pred {
                    Some(pred) => check(v, pred, END),
                    None => check(v, b, at as u32),
                });
                if let Some(fault) = fault {
                    self.inst_fault(b, i, fault);
                }
            }
            let operand = f.block(b).term.operand();
            if let Some(fault) = operand.and_then(|v| check(v, b, END)) {
                self.block_fault(b, fault);
            }
        }
    }

    /// The first fault of an operand; the operand of a phi comes with its predecessor.
    fn first_fault(
        &self,
        i: Inst,
        check: impl Fn(Option<Block>, Value) -> Option<Fault>,
    ) -> Option<Fault> {
        if self.f.inst(i).op == Op::Phi {
            return self.f.phi_arms(i).find_map(|(pred, v)| check(Some(pred), v));
        }
        self.f.args(i).iter().find_map(|&v| check(None, v))
    }
}
