//! [`Replacements`]: values that stand for others.

use crate::{MpirFn, Value};

const NONE: u32 = u32::MAX;

/// A set of rules "use this value instead of that one". Rules may form chains, never cycles.
#[derive(Clone, Default, Debug)]
pub(super) struct Replacements {
    to: Vec<u32>,
    is_empty: bool,
}

impl Replacements {
    /// Forgets all rules and makes room for the values of a function.
    pub(super) fn start(&mut self, f: &MpirFn) {
        self.to.clear();
        self.to.resize(f.locals.len(), NONE);
        self.is_empty = true;
    }

    /// Uses of `from` become uses of `to`.
    pub(super) fn set(&mut self, from: Value, to: Value) {
        debug_assert_ne!(self.get(to), from);
        if from.index() >= self.to.len() {
            self.to.resize(from.index() + 1, NONE);
        }
        self.to[from.index()] = to.0;
        self.is_empty = false;
    }

    /// What to use for `v`.
    pub(super) fn get(&mut self, v: Value) -> Value {
        let mut at = v.index();
        loop {
            let Some(&next) = self.to.get(at).filter(|&&n| n != NONE) else {
                return Value::new(at);
            };
            // Shorten the way by one step on each visit.
            if let Some(&after) = self.to.get(next as usize).filter(|&&n| n != NONE) {
                self.to[at] = after;
            }
            at = next as usize;
        }
    }

    /// Whether no rule was made.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Applies the rules to the operands of an instruction.
    pub(super) fn resolve_args(&mut self, f: &mut MpirFn, i: crate::Inst) {
        if !self.is_empty {
            f.args_mut(i).iter_mut().for_each(|v| *v = self.get(*v));
        }
    }

    /// Applies the rules to every operand and terminator.
    pub(super) fn apply(&mut self, f: &mut MpirFn) {
        if self.is_empty {
            return;
        }
        for b in 0..f.blocks.len() {
            for n in 0..f.blocks[b].insts.len() {
                self.resolve_args(f, f.blocks[b].insts[n]);
            }
            if let Some(v) = f.blocks[b].term.operand_mut() {
                *v = self.get(*v);
            }
        }
    }
}
