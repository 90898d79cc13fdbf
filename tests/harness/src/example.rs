//! The examples of `magpie explain`: the wrong one must raise its code, the right one must compile.

use std::path::{Path, PathBuf};

use magpie_diag::{Code, Example, Severity};

use crate::case::{Case, Test};
use crate::toolchain::{Finding, Toolchain};

/// One test for each code whose example is a program, named `explain/CODE`.
pub fn example_cases() -> Vec<Case> {
    let case = |code: Code| {
        Some(Case {
            name: format!("explain/{code}"),
            path: PathBuf::new(),
            wait: None,
            test: Test::Example { code, example: code.example()? },
            siblings: Vec::new(),
        })
    };
    Code::all().filter_map(case).collect()
}

pub(crate) fn check_example(
    code: Code,
    example: &Example,
    dir: &Path,
    toolchain: &dyn Toolchain,
) -> Result<(), String> {
    let check = |name: &str, text: &str| {
        let path = dir.join(format!("{name}.{}", example.language));
        std::fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        toolchain.check(&path).map_err(|error| format!("the {name} example: {error}"))
    };
    let wrong = check("wrong", example.wrong)?;
    if !wrong.iter().any(|finding| finding.code == code) {
        return Err(format!("the wrong example does not raise {code}:\n{}", list(&wrong)));
    }
    let right = check("right", example.right)?;
    // Some repairs use features that this release only recognises.
    let is_fault = |finding: &Finding| {
        finding.code == code
            || (finding.severity == Severity::Error && finding.code != Code::MPT2050)
    };
    if right.iter().any(is_fault) {
        return Err(format!("the right example is not right:\n{}", list(&right)));
    }
    Ok(())
}

fn list(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "  (nothing reported)".to_owned();
    }
    let lines: Vec<String> = findings.iter().map(|finding| format!("  {finding}")).collect();
    lines.join("\n")
}
