//! The front end of Miri, the language in which residency is an attribute of the binding: source
//! text → MPIR.
//!
//! The stages, in order: [`lex`] makes tokens, [`parse`] trees, [`program`] the table of
//! declarations; [`lower`] checks types and residency and writes MPIR while it goes. [`residency`]
//! says which functions take device-resident arguments, [`writes`] which writes of kernels are
//! accepted by their syntax. `std/` holds the part of the library that is written in Miri.
//!
//! The law: any text gives diagnostics, never a panic; what is not supported is refused.

mod ast;
mod cost;
mod lex;
mod lower;
mod modules;
mod needs_device;
mod parse;
mod program;
mod receivers;
mod residency;
mod shadowing;
mod ty;
mod walk;
mod writes;

pub use cost::{Cost, CostClass};
use magpie_diag::{Code, Diagnostic, FileId, sort_diagnostics};
use magpie_mpir::{FnId, Module};
pub use modules::Source;

/// The library that is written in Miri. Its file belongs to the sources of a build, so that places
/// in it have a name.
pub const LIBRARY: &str = include_str!("../std/collections.mi");

/// The name of the library's file.
pub const LIBRARY_NAME: &str = "system/collections.mi";

/// A compiled program, or what is wrong with it.
#[derive(Debug, Default)]
pub struct Output {
    /// Every function. When `diagnostics` hold an error: the kernels without one and what they call,
    /// to be checked; the other functions are empty.
    pub module: Module,
    /// What the program starts with.
    pub main: Option<FnId>,
    /// Every kernel that is launched, of those that are there.
    pub kernels: Vec<FnId>,
    /// Kernels that nothing launches: they are checked like others, and not emitted.
    pub unlaunched: Vec<FnId>,
    /// Writes of kernels that the syntactic rule does not accept: errors, unless an analysis of the
    /// kernel proves that no other invocation writes the same element. Each stands at the place of
    /// its store.
    pub doubtful_writes: Vec<Diagnostic>,
    /// What lines cost besides host work, in the order of the program.
    pub costs: Vec<Cost>,
    /// Errors and warnings, sorted.
    pub diagnostics: Vec<Diagnostic>,
}

/// What is wrong with the text of a file, whatever it means.
pub fn syntax_errors(file: FileId, text: &str) -> Vec<Diagnostic> {
    let (mut ast, mut names) = (ast::Ast::default(), ast::Interner::default());
    parse::parse(file, text, &mut ast, &mut names).1
}

/// Compiles a program. `library` is the file of [`LIBRARY`]; `read` gives the text of a module of
/// the program by its path, `a/b` for `use local.a.b`, if there is one.
pub fn compile(
    entry: &Source,
    library: FileId,
    read: &mut dyn FnMut(&str) -> Option<Source>,
) -> Output {
    let mut ast = ast::Ast::default();
    let mut names = ast::Interner::default();
    let mut diagnostics = Vec::new();
    let mut loader = modules::Loader::new(&mut ast, &mut names, &mut diagnostics, read);
    loader.add(library, "", LIBRARY);
    loader.add(entry.file, "", &entry.text);
    let (files, sources) = (loader.files, loader.sources);
    let mut output = Output::default();
    // A text with holes would be reported twice. Names that are declared twice leave none.
    let is_hole = |d: &Diagnostic| d.is_error() && d.code != Code::MIR0208;
    if !diagnostics.iter().any(is_hole) {
        let program = program::Program::new(ast, names, files, &mut diagnostics);
        shadowing::warn(&program, &mut diagnostics);
        let mut places = lower::Places::default();
        places.add(library, LIBRARY_NAME, LIBRARY);
        for source in sources.iter().chain([entry]) {
            places.add(source.file, &source.name, &source.text);
        }
        let lowered = lower::lower(&program, &places, &mut diagnostics);
        output.module = lowered.module;
        output.main = lowered.main;
        output.kernels = lowered.kernels;
        output.costs = lowered.costs;
        output.unlaunched = lowered.unlaunched;
        output.doubtful_writes = lowered.doubtful_writes;
        sort_diagnostics(&mut output.doubtful_writes);
    }
    sort_diagnostics(&mut diagnostics);
    output.diagnostics = diagnostics;
    output
}
