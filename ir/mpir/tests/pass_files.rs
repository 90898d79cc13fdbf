//! The file tests of the passes, run on this crate alone.

use magpie_mpir::{Stage, parse, passes::run_named_pass, print_module, verify_module};
use magpie_tests::{
    Device, Finding, Outcome, RunRequest, RunResult, Settings, Toolchain, discover, execute,
};
use std::path::Path;

/// A compiler that can do nothing but run passes.
struct Passes;

impl Toolchain for Passes {
    fn missing(&self, _: Device) -> Option<String> {
        Some("more than this crate".to_owned())
    }

    fn run(&self, _: &RunRequest<'_>) -> Result<RunResult, String> {
        Err("this folder is for tests of passes".to_owned())
    }

    fn check(&self, _: &Path) -> Result<Vec<Finding>, String> {
        Err("this folder is for tests of passes".to_owned())
    }

    fn pass(&self, names: &[String], text: &str) -> Result<String, String> {
        let first = |faults: Vec<magpie_diag::Diagnostic>| faults[0].message.clone();
        let mut module = parse(text, magpie_diag::FileId(0)).map_err(first)?;
        verify_module(&module, Stage::Core).map_err(first)?;
        for name in names {
            run_named_pass(&mut module, name)?;
            verify_module(&module, Stage::Core)
                .map_err(|faults| format!("{name}: {}", first(faults)))?;
        }
        Ok(print_module(&module))
    }

    fn emit(&self, _: &str, _: &Path) -> Result<String, String> {
        Err("this folder is for tests of passes".to_owned())
    }
}

#[test]
fn passes_do_what_their_files_say() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/filetests/passes");
    let found = discover(Path::new(root), Vec::new());
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert!(!found.cases.is_empty());
    let failures: Vec<String> = found
        .cases
        .iter()
        .filter_map(|case| match execute(case, None, &Passes, Settings::from_env()) {
            Outcome::Passed => None,
            Outcome::Skipped(why) | Outcome::Failed(why) => Some(format!("{}: {why}", case.name)),
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
