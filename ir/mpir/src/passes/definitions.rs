//! Values that several blocks define now, because code was copied.

use super::PassContext;
use crate::analysis::User;
use crate::{Block, Builder, MpirFn, Op, Value};
use rustc_hash::FxHashMap;

/// By value of copied code: the blocks that define it now, and as what; its own block first.
#[derive(Default)]
pub(super) struct Definitions {
    of: FxHashMap<Value, Vec<(Block, Value)>>,
}

impl Definitions {
    /// Remembers what a value of the block `home` is in another block.
    pub(super) fn add(&mut self, v: Value, home: Block, block: Block, copy: Value) {
        self.of.entry(v).or_insert_with(|| vec![(home, v)]).push((block, copy));
    }

    /// Makes phis for the values where their definitions meet. `keeps(home, at)` says whether those
    /// who read a value of the block `home` in block `at` go on with that value.
    pub(super) fn join(
        self,
        f: &mut MpirFn,
        ctx: &mut PassContext,
        keeps: impl Fn(Block, Block) -> bool,
    ) {
        let PassContext { uses, positions, .. } = ctx;
        uses.compute(f);
        positions.compute(f);
        let mut split: Vec<(Value, Vec<(Block, Value)>)> = self.of.into_iter().collect();
        split.sort_unstable_by_key(|s| s.0);
        let mut b = Builder::resume(f);
        let mut changes: Vec<(User, Value)> = Vec::new();
        for (v, definitions) in &split {
            let home = definitions[0].0;
            let mut variable = None;
            for &user in uses.of(*v) {
                let at = match user {
                    User::Inst(i, n) if b.func().inst(i).op == Op::Phi => {
                        let arm = b.func().phi_arms(i).nth(n as usize);
                        arm.map(|arm| arm.0)
                    }
                    User::Inst(i, _) => positions.block(i),
                    User::Terminator(at) => Some(at),
                };
                let Some(at) = at.filter(|&at| !keeps(home, at)) else { continue };
                let variable = *variable.get_or_insert_with(|| {
                    let variable = b.declare(b.ty(*v));
                    for &(block, value) in definitions {
                        b.switch_to(block);
                        b.write(variable, value);
                    }
                    variable
                });
                b.switch_to(at);
                changes.push((user, b.read(variable)));
            }
        }
        for &(user, v) in &changes {
            match user {
                User::Inst(i, n) => b.func().args_mut(i)[n as usize] = v,
                User::Terminator(at) => {
                    if let Some(operand) = b.func().block_mut(at).term.operand_mut() {
                        *operand = v;
                    }
                }
            }
        }
        b.finish();
    }
}
