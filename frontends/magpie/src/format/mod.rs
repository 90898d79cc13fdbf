//! Syntax tree → canonical source text.
//!
//! Canonical text has one item a line: header parts at the margin, members and labels at two
//! spaces, instructions at four. Exports and imports are sorted, blocks are numbered `bb0 … bbN`
//! in the order of the text, the keys of operations are in alphabetical order, the named
//! arguments of calls of built-in functions and of this module's in the order of the parameters
//! (those of other modules stay as written), and every spelling variant is replaced by the base
//! form.
//! Formatting canonical text gives the same text.
//!
//! Comments are kept: on the line of an item, or on lines of their own before it. A comment from
//! the middle of an item moves before it; one from the middle of a head that ends in `{` moves
//! behind that head, so that it does not become the documentation of the declaration.

mod body;
mod comments;
mod decl;
mod meta;
mod value;

use crate::ast::*;
use crate::interner::Symbol;
use crate::parser::ParsedModule;
use rustc_hash::FxHashMap;

/// The canonical text of a module, with its true digest in it; `None` when the module has errors.
/// `text` is what the module was parsed from.
pub fn format_module(module: &ParsedModule, text: &str) -> Option<String> {
    canonical(module, text).map(|canonical| canonical.text)
}

/// As [`format_module`], with a complete `meta` block for every function: what was written in it
/// stays, and it lists the functions that the body names (`uses`) and what kinds of effects those
/// have (`effects`: `io`, `gpu`).
pub fn format_module_with_meta(module: &ParsedModule, text: &str) -> Option<String> {
    if module.has_errors() {
        return None;
    }
    let mut printer = Printer::new(module, text);
    printer.completes_meta = true;
    printer.module();
    Some(printer.finish().text)
}

/// A module's canonical text.
pub(crate) struct Canonical {
    pub(crate) text: String,
    /// The digest that the text contains.
    pub(crate) digest: String,
}

pub(crate) fn canonical(module: &ParsedModule, text: &str) -> Option<Canonical> {
    if module.has_errors() {
        return None;
    }
    let mut printer = Printer::new(module, text);
    printer.module();
    Some(printer.finish())
}

const DIGEST_LEN: usize = 2 * blake3::OUT_LEN;

struct Printer<'m> {
    module: &'m ParsedModule,
    ast: &'m Ast,
    text: &'m str,
    out: String,
    /// How many comments have been written.
    comments_done: usize,
    /// Where the line with the digest stands in `out`.
    digest_line: std::ops::Range<usize>,
    functions: FxHashMap<Symbol, &'m FnDecl>,
    enums: FxHashMap<Symbol, Slice<Variant>>,
    /// The paths of the modules from which functions are imported, by the functions' names.
    imported: FxHashMap<Symbol, Symbol>,
    /// Whether `meta` blocks are added and completed.
    completes_meta: bool,
    /// The numbers of the current function's labels; empty when they stay as written.
    labels: FxHashMap<Symbol, usize>,
}

impl<'m> Printer<'m> {
    fn new(module: &'m ParsedModule, text: &'m str) -> Printer<'m> {
        let mut functions = FxHashMap::default();
        let mut enums = FxHashMap::default();
        for decl in &module.ast.decls {
            match &decl.kind {
                DeclKind::Fn(function) => {
                    functions.entry(function.name.symbol).or_insert(function);
                }
                DeclKind::Type(TypeDecl { name, kind: TypeDeclKind::Enum(variants), .. }) => {
                    enums.entry(name.symbol).or_insert(*variants);
                }
                DeclKind::Type(TypeDecl { kind: TypeDeclKind::Struct(_), .. })
                | DeclKind::Extern(_)
                | DeclKind::Global(_)
                | DeclKind::Impl(_)
                | DeclKind::Sig(_) => {}
            }
        }
        let mut imported = FxHashMap::default();
        for import in &module.ast[module.ast.header.imports] {
            for item in import.items.into_iter().flat_map(|items| &module.ast[items]) {
                if item.kind == ExportKind::Function {
                    imported.entry(item.name.symbol).or_insert(import.path.symbol);
                }
            }
        }
        Printer {
            module,
            ast: &module.ast,
            text,
            out: String::with_capacity(text.len()),
            comments_done: 0,
            digest_line: 0..0,
            functions,
            enums,
            imported,
            completes_meta: false,
            labels: FxHashMap::default(),
        }
    }

    /// Puts the true digest into its line.
    fn finish(mut self) -> Canonical {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.out.as_bytes()[..self.digest_line.start]);
        hasher.update(&self.out.as_bytes()[self.digest_line.end..]);
        let digest = hasher.finalize().to_hex().to_string();
        let start = self.digest_line.start + "digest \"".len();
        self.out.replace_range(start..start + DIGEST_LEN, &digest);
        Canonical { text: self.out, digest }
    }

    fn name(&self, symbol: Symbol) -> &'m str {
        self.module.interner.resolve(symbol)
    }

    /// Writes `entries` with `separator` between them.
    fn separated<T: Copy>(
        &mut self,
        entries: &[T],
        separator: &str,
        mut write: impl FnMut(&mut Self, T),
    ) {
        for (i, &entry) in entries.iter().enumerate() {
            if i > 0 {
                self.out.push_str(separator);
            }
            write(self, entry);
        }
    }

    /// Writes `{ a, b }`, or `{ }`.
    fn braced<T: Copy>(&mut self, entries: &[T], write: impl FnMut(&mut Self, T)) {
        if entries.is_empty() {
            self.out.push_str("{ }");
            return;
        }
        self.out.push_str("{ ");
        self.separated(entries, ", ", write);
        self.out.push_str(" }");
    }
}
