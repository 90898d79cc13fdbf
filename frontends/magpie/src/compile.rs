//! The whole front end: the modules of a program → MPIR.

use crate::parser::ParsedModule;
use magpie_diag::{Code, Diagnostic, sort_diagnostics};
use magpie_mpir::{FnId, Module};
use rustc_hash::FxHashSet;

/// A compiled program, or what is wrong with it.
#[derive(Debug, Default)]
pub struct Output {
    /// Every function, instances of generic ones included. Not to be used when `diagnostics` hold
    /// an error.
    pub module: Module,
    /// `@main` of the entry module.
    pub main: Option<FnId>,
    /// Every `gpu fn`, in the order in which modules were loaded and functions are written.
    pub kernels: Vec<FnId>,
    /// Every function without parameters and result whose name starts with `test_`, in that order.
    pub tests: Vec<FnId>,
    /// Errors and warnings of every stage that ran, sorted.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a program from its entry module.
///
/// `load` finds and parses the module of a dotted path; it is asked once a path, never for the
/// modules of the language itself (`std`, `gpu`, `mlx`), and answers `None` when there is no such
/// module. `max_instances` bounds the copies of generic functions and types (`MPL2020`).
pub fn compile(
    entry: ParsedModule,
    load: &mut dyn FnMut(&str) -> Option<ParsedModule>,
    max_instances: u32,
) -> Output {
    let _ = max_instances;
    let modules = load_all(entry, load);
    let mut diagnostics: Vec<Diagnostic> =
        modules.iter().flat_map(|module| module.diagnostics.iter().cloned()).collect();
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let [name, ..] = modules[0].ast.header.parts;
        diagnostics.push(
            Diagnostic::new(
                Code::MPT2050,
                modules[0].span(name),
                "this build reads `.mp` modules but does not compile them yet",
            )
            .with_help("`magpie fmt` and `magpie parse` work; `.mpir` programs run"),
        );
    }
    sort_diagnostics(&mut diagnostics);
    Output { diagnostics, ..Output::default() }
}

/// The entry and every module that imports reach, in the order of discovery.
fn load_all(
    entry: ParsedModule,
    load: &mut dyn FnMut(&str) -> Option<ParsedModule>,
) -> Vec<ParsedModule> {
    let mut asked: FxHashSet<String> = FxHashSet::default();
    asked.insert(entry.name(entry.ast.header.module.symbol).to_string());
    let mut modules = vec![entry];
    let mut next = 0;
    while let Some(module) = modules.get(next) {
        next += 1;
        let imports = module.ast[module.ast.header.imports].iter();
        let paths: Vec<String> =
            imports.map(|import| module.name(import.path.symbol).to_string()).collect();
        for path in paths {
            if !is_builtin(&path) && asked.insert(path.clone()) {
                modules.extend(load(&path));
            }
        }
    }
    modules
}

fn is_builtin(path: &str) -> bool {
    matches!(path.split('.').next(), Some("std" | "gpu" | "mlx"))
}
