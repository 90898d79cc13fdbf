//! Edges, and what is of host functions only among the terminators.

use super::Translator;
use super::signature::machine_prim;
use crate::terminators::Terminators;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::{Block, Value};
use magpie_types::{PrimType, fixed};

impl<'f> Terminators<'f> for Translator<'_, 'f, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'f> {
        &mut self.b
    }

    fn prim(&self, v: Value) -> PrimType {
        machine_prim(&self.module.types, self.f.ty(v))
    }

    fn decider(&mut self, v: Value) -> ir::Value {
        self.value(v)
    }

    fn leaves_loop(&self, from: Block, to: Block) -> bool {
        self.loops.innermost(from).is_some_and(|l| !self.loops.contains(l, to))
    }

    fn edge(&mut self, from: Block, to: Block) -> (ir::Block, Vec<BlockArg>) {
        let f = self.f;
        if self.rotated[to.index()] {
            let block = match self.entries.get(&(from, to)) {
                Some(&block) => block,
                None => {
                    let block = self.b.create_block();
                    self.entries.insert((from, to), block);
                    self.waiting.push((from, to));
                    block
                }
            };
            return (block, Vec::new());
        }
        let mut args = Vec::new();
        for phi in f.phis(to) {
            let Some(v) = f.phi_value(phi, from) else { continue };
            if self.is_of_vectors(phi) {
                args.extend(self.registers_for_phi(v).into_iter().map(BlockArg::Value));
            } else {
                args.push(BlockArg::Value(self.value(v)));
            }
        }
        // Every target of a reachable block is reachable.
        let block = self.blocks[to.index()].expect("targets of reachable blocks have blocks");
        (block, args)
    }

    fn ret(&mut self, v: Option<Value>) {
        match v {
            Some(v) if self.f.ret_ty != fixed::UNIT => {
                let values = match self.groups.get(&v) {
                    Some(values) => values.clone(),
                    None => vec![self.value(v)],
                };
                self.b.ins().return_(&values);
            }
            Some(_) | None => {
                self.b.ins().return_(&[]);
            }
        }
    }

    fn jump(&mut self, from: Block, to: Block) {
        if self.rotated[to.index()] {
            return self.head(from, to);
        }
        let (to, args) = self.edge(from, to);
        self.b.ins().jump(to, &args);
    }
}
