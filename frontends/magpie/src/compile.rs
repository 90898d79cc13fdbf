//! The whole front end: the modules of a program → MPIR.

use crate::builtins::is_language_module;
use crate::lower::lower;
use crate::parser::ParsedModule;
use crate::resolve::Program;
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
    /// Errors about what may not stand in kernels where the module does not show it. They leave the
    /// module whole: the rules for kernels find the others of their kind in it.
    pub kernel_findings: Vec<Diagnostic>,
    /// Warnings about what the language allows, for those who ask.
    pub lints: Vec<Diagnostic>,
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
    let mut diagnostics = Vec::new();
    let mut modules = load_all(entry, load, &mut diagnostics);
    for module in &mut modules {
        diagnostics.append(&mut module.diagnostics);
    }
    let mut output = Output::default();
    // A text that is no module has holes where names and operands should be.
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let program = Program::new(modules, &mut diagnostics);
        let lowered = lower(&program, max_instances, &mut diagnostics);
        output.module = lowered.module;
        output.main = lowered.main;
        output.kernels = lowered.kernels;
        output.tests = lowered.tests;
        output.kernel_findings = lowered.kernel_findings;
        // A function is lowered for each side and each list of type arguments.
        output.lints = lowered.lints;
        sort_diagnostics(&mut output.lints);
        output.lints.dedup();
    }
    sort_diagnostics(&mut diagnostics);
    output.diagnostics = diagnostics;
    output
}

/// The entry and every module that it names, directly or through others, in the order of discovery.
fn load_all(
    entry: ParsedModule,
    load: &mut dyn FnMut(&str) -> Option<ParsedModule>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<ParsedModule> {
    let mut asked: FxHashSet<String> = FxHashSet::default();
    asked.insert(entry.name(entry.ast.header.module.symbol).to_string());
    let mut modules = vec![entry];
    let mut next = 0;
    while let Some(module) = modules.get(next) {
        next += 1;
        for path in named_modules(module) {
            if is_language_module(&path) || !asked.insert(path.clone()) {
                continue;
            }
            let Some(module) = load(&path) else { continue };
            let header = module.ast.header.module;
            let found = module.name(header.symbol);
            if found != path && !module.has_errors() {
                let message = format!("this file is read as module `{path}`, but says `{found}`");
                diagnostics.push(
                    Diagnostic::new(Code::MPS0002, module.span(header.range), message)
                        .with_help(format!("write `module {path}`, or move the file")),
                );
            }
            modules.push(module);
        }
    }
    modules
}

/// The dotted paths of modules that a module names: in its imports, and before functions and types.
fn named_modules(module: &ParsedModule) -> Vec<String> {
    let ast = &module.ast;
    let imports = ast[ast.header.imports].iter().map(|import| module.name(import.path.symbol));
    let functions = ast.pools.fn_refs.iter().filter_map(|fn_ref| Some(module.name(fn_ref.path?)));
    let types =
        ast.types.iter().filter_map(|(_, ty)| Some(module.name(ty.path).rsplit_once('.')?.0));
    let mut paths = Vec::new();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    for path in imports.chain(functions).chain(types) {
        if seen.insert(path) {
            paths.push(path.to_string());
        }
    }
    paths
}
