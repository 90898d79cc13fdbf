//! The file tests of the reader and the verifier, run on this crate alone.

use magpie_diag::{FileId, SourceMap};
use magpie_mpir::{Stage, parse_with_own_places, verify_module};
use magpie_tests::{
    Device, Finding, Outcome, RunRequest, RunResult, Settings, Toolchain, discover, execute,
};
use std::path::Path;

/// A compiler that can do nothing but read and verify.
struct Reader;

const ELSEWHERE: &str = "this folder is for tests of the reader and the verifier";

impl Toolchain for Reader {
    fn missing(&self, _: Device) -> Option<String> {
        Some("more than this crate".to_owned())
    }

    fn run(&self, _: &RunRequest<'_>) -> Result<RunResult, String> {
        Err(ELSEWHERE.to_owned())
    }

    fn check(&self, path: &Path) -> Result<Vec<Finding>, String> {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let errors = parse_with_own_places(&text, FileId(0))
            .and_then(|m| verify_module(&m, Stage::Core))
            .err()
            .unwrap_or_default();
        let mut sources = SourceMap::new();
        sources.add(path.display().to_string(), text);
        let finding = |d: magpie_diag::Diagnostic| Finding {
            severity: d.severity,
            code: d.code,
            line: sources.file(d.primary.file).map(|f| f.line_col(d.primary.start).line),
            message: d.message,
        };
        Ok(errors.into_iter().map(finding).collect())
    }

    fn pass(&self, _: &[String], _: &str) -> Result<String, String> {
        Err(ELSEWHERE.to_owned())
    }

    fn emit(&self, _: &str, _: &Path) -> Result<String, String> {
        Err(ELSEWHERE.to_owned())
    }
}

#[test]
fn reading_and_verifying() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/filetests/mpir");
    let found = discover(Path::new(root), Vec::new());
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert!(!found.cases.is_empty());
    let failures: Vec<String> = found
        .cases
        .iter()
        .filter_map(|case| match execute(case, None, &Reader, Settings::from_env()) {
            Outcome::Passed => None,
            Outcome::Skipped(why) | Outcome::Failed(why) => Some(format!("{}: {why}", case.name)),
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
