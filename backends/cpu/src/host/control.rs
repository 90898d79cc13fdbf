//! Edges and terminators.

use super::Translator;
use crate::pure::constant;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, TrapCode};
use magpie_mpir::{Block, Terminator};
use magpie_types::fixed;

impl Translator<'_, '_, '_> {
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

    pub(super) fn terminator(&mut self, block: Block) {
        let f = self.f;
        match &f.block(block).term {
            Terminator::Ret(v) => match v {
                Some(v) if f.ret_ty != fixed::UNIT => {
                    let values = match self.groups.get(v) {
                        Some(values) => values.clone(),
                        None => vec![self.value(*v)],
                    };
                    self.b.ins().return_(&values);
                }
                Some(_) | None => {
                    self.b.ins().return_(&[]);
                }
            },
            Terminator::Br(to) if self.rotated[to.index()] => self.head(block, *to),
            Terminator::Br(to) => {
                let (to, args) = self.edge(block, *to);
                self.b.ins().jump(to, &args);
            }
            Terminator::Cbr { cond, then, else_ } => {
                let cond = self.value(*cond);
                let (then, then_args) = self.edge(block, *then);
                let (else_, else_args) = self.edge(block, *else_);
                self.b.ins().brif(cond, then, &then_args, else_, &else_args);
            }
            Terminator::Switch { value, cases, default } => {
                let p = self.prim(*value);
                let v = self.value(*value);
                for &(bits, to) in cases {
                    let c = constant(&mut self.b, p, bits);
                    let equal = self.b.ins().icmp(IntCC::Equal, v, c);
                    let (to, args) = self.edge(block, to);
                    let next = self.b.create_block();
                    self.b.ins().brif(equal, to, &args, next, &[]);
                    self.b.switch_to_block(next);
                }
                let (to, args) = self.edge(block, *default);
                self.b.ins().jump(to, &args);
            }
            Terminator::Unreachable => {
                self.b.ins().trap(TrapCode::unwrap_user(2));
            }
        }
    }
}
