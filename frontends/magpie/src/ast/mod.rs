//! The syntax of one module: flat pools, 4-byte ids, byte ranges.
//!
//! The law of this tree:
//! * Everything that repeats lives in a pool of [`Ast`] and is named by an id or by a [`Slice`];
//!   indexing the `Ast` with one gives the thing.
//! * Blocks, instructions and arguments stand in their pools in the order of the text, so that a
//!   function's blocks and a block's instructions are contiguous.
//! * Spelling variants are gone: a bare string is a `Str` constant, aliases of argument keys are
//!   replaced by the keys, the arguments of a regular operation stand in the order of its row in
//!   the operation table. What an instruction was written like is in the source text, by range.
//! * A tree from a text with errors has holes (empty names, missing terminators); only
//!   [`crate::ParsedModule::has_errors`] tells whether a tree is whole.

mod body;
mod decl;
mod op_table;
mod pool;
mod types;

pub use body::*;
pub use decl::*;
pub(crate) use op_table::MAX_KEYS;
pub use op_table::{ArgShape, AstOp, Key, Keys, OpRow, TypeArgs};
pub(crate) use pool::Pools;
pub use pool::{Ast, ConstId, FnRefId, Slice};
pub use types::{Modifier, TypeExpr, TypeExprId, TypeExprs, TypeUse};

use crate::interner::Symbol;

/// A half-open range of bytes of the module's text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl ByteRange {
    /// From the start of `self` to the end of `last`.
    pub fn to(self, last: ByteRange) -> ByteRange {
        ByteRange { start: self.start, end: last.end }
    }

    /// The text of the range.
    #[inline]
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

/// A name and where it is written. Sigils (`@`, `%`) belong to the range, not to the symbol.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The name, or a dotted path as one text.
    pub symbol: Symbol,
    /// Where.
    pub range: ByteRange,
}

/// A comment, from `;` to the last character that is not space.
#[derive(Clone, Copy, Debug)]
pub struct Comment {
    /// Where.
    pub range: ByteRange,
    /// Whether nothing but space stands before it on its line.
    pub own_line: bool,
}

impl Comment {
    /// Whether it documents the declaration that follows: `;;;` on a line of its own.
    pub fn is_doc(&self, text: &str) -> bool {
        self.own_line && self.range.of(text).starts_with(";;;")
    }
}

/// The four parts at the top of a module.
#[derive(Clone, Debug)]
pub struct Header {
    /// The module's dotted path.
    pub module: Name,
    /// The symbols that other modules may use.
    pub exports: Slice<Export>,
    /// The modules that this one names.
    pub imports: Slice<Import>,
    /// What stands after `digest`: the contents of the string or the hexadecimal digits.
    pub digest: Symbol,
    /// Where each part stands, its first word included, in the order of the fields above.
    pub parts: [ByteRange; 4],
}

/// The kinds of symbols that a module can export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportKind {
    /// `@name`: a function or a global.
    Function,
    /// `TName`: a type or a signature.
    Type,
}

/// A symbol in `exports` or in the braces of an import.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// Whether it is written `@name` or `TName`.
    pub kind: ExportKind,
    /// The name.
    pub name: Name,
}

/// One group of `imports`.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// The module's dotted path.
    pub path: Name,
    /// The symbols that may be used by their short names; `None` for a bare path.
    pub items: Option<Slice<Export>>,
}
