//! The names of a function: values and labels, by symbol.

use crate::ast::ByteRange;
use crate::interner::Symbol;
use magpie_mpir::{Block, Value};

/// What is known of a value name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub(super) name: Symbol,
    /// The instruction or the parameter that defines it.
    pub(super) range: ByteRange,
    /// The block that defines it; the entry for parameters.
    pub(super) block: Block,
    pub(super) state: LocalState,
}

/// How far the definition of a name has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LocalState {
    /// Its instruction has not been lowered.
    Pending,
    Value(Value),
    /// An error about it has been reported.
    Poisoned,
}

/// A map from the symbols of a module to numbers, emptied in constant time.
#[derive(Debug, Default)]
pub(super) struct SymbolMap {
    /// Round and number.
    slots: Vec<(u32, u32)>,
    round: u32,
}

impl SymbolMap {
    /// Empties the map; symbols are below `symbols`.
    pub(super) fn start(&mut self, symbols: usize) {
        self.round += 1;
        if self.slots.len() < symbols {
            self.slots.resize(symbols, (0, 0));
        }
    }

    #[inline]
    pub(super) fn get(&self, symbol: Symbol) -> Option<u32> {
        let (round, number) = self.slots[symbol.index()];
        (round == self.round).then_some(number)
    }

    pub(super) fn insert(&mut self, symbol: Symbol, number: u32) {
        self.slots[symbol.index()] = (self.round, number);
    }
}
