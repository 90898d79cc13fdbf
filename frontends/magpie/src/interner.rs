//! Identifiers and string contents as 4-byte symbols.

use crate::hash_index::HashIndex;
use crate::symbols;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::LazyLock;

/// A text of the module: an identifier without its `@` or `%`, a dotted path, or the contents of
/// a string. Two symbols of one interner are equal exactly when their texts are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(NonZeroU32);

impl Symbol {
    pub(crate) const fn from_index(index: u32) -> Symbol {
        match NonZeroU32::new(index + 1) {
            Some(n) => Symbol(n),
            None => panic!("symbol index out of range"),
        }
    }

    /// The position in the interner: dense from 0, so that it can index a side table.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Owns the texts of a module. Every interner starts with the words of the language, so that
/// these have fixed symbols (see [`crate::symbols`]).
#[derive(Clone, Debug)]
pub struct Interner {
    text: String,
    /// Where each text ends in `text`; it starts where the one before it ends.
    ends: Vec<u32>,
    index: HashIndex,
}

static PREDEFINED: LazyLock<Interner> = LazyLock::new(|| {
    let mut interner =
        Interner { text: String::new(), ends: Vec::new(), index: HashIndex::default() };
    for (position, word) in symbols::predefined().enumerate() {
        let symbol = interner.intern(word);
        assert_eq!(symbol.index(), position, "`{word}` is predefined twice");
    }
    interner
});

impl Interner {
    /// An interner that holds the words of the language and nothing else.
    pub fn new() -> Interner {
        PREDEFINED.clone()
    }

    /// The symbol of `text`.
    pub fn intern(&mut self, text: &str) -> Symbol {
        let hash = hash(text);
        let id = match self.index.find(hash, |id| self.bytes_of(id) == text.as_bytes()) {
            Some(id) => id,
            None => {
                self.text.push_str(text);
                self.ends.push(self.text.len() as u32);
                self.index.insert(hash)
            }
        };
        Symbol::from_index(id)
    }

    /// The symbol of `text` when the module contains it.
    pub fn lookup(&self, text: &str) -> Option<Symbol> {
        let found = self.index.find(hash(text), |id| self.bytes_of(id) == text.as_bytes());
        found.map(Symbol::from_index)
    }

    /// The text of a symbol of this interner.
    pub fn resolve(&self, symbol: Symbol) -> &str {
        &self.text[self.range_of(symbol.index())]
    }

    /// How many symbols there are; [`Symbol::index`] is below it.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the words of the language are always there.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn bytes_of(&self, id: u32) -> &[u8] {
        &self.text.as_bytes()[self.range_of(id as usize)]
    }

    fn range_of(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start as usize..self.ends[index] as usize
    }
}

impl Default for Interner {
    fn default() -> Self {
        Interner::new()
    }
}

fn hash(text: &str) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_text_same_symbol() {
        let mut interner = Interner::new();
        let a = interner.intern("alpha");
        let b = interner.intern("beta");
        let empty = interner.intern("");
        assert_eq!(interner.intern("alpha"), a);
        assert_ne!(a, b);
        assert_eq!(interner.resolve(a), "alpha");
        assert_eq!(interner.resolve(b), "beta");
        assert_eq!(interner.resolve(empty), "");
        assert_eq!(interner.lookup("beta"), Some(b));
        assert_eq!(interner.lookup("gamma"), None);
    }
}
