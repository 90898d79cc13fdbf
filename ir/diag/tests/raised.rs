//! Every code of GPUs is raised by a test: it stands in one, or its explanation has an example, which
//! the file tests hold against the compiler.

use magpie_diag::Code;
use std::path::{Path, PathBuf};

/// What only the package for MLX raises.
const OTHERS: &str = "MPG_MLX_";

fn is_test(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "tests.rs")
}

/// The texts of tests below a folder, and of the parts of files that are tests.
fn texts(folder: &Path, out: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    for path in paths {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                texts(&path, out);
            }
        } else if !path.ends_with("diag/tests/raised.rs")
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            match text.split_once("\nmod tests {\n") {
                _ if is_test(&path) => out.push(text),
                Some((_, tests)) => out.push(tests.to_string()),
                None => {}
            }
        }
    }
}

#[test]
fn every_code_of_gpus_is_raised() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["backends", "driver", "frontends", "ir", "runtime", "tests"] {
        texts(&root.join(folder), &mut all);
    }
    assert!(all.len() > 100, "the tests are not where they were");
    let is_raised = |code: Code| {
        code.example().is_some() || all.iter().any(|text| text.contains(code.as_str()))
    };
    let missing: Vec<Code> = Code::all()
        .filter(|code| code.as_str().starts_with("MPG_") && !code.as_str().starts_with(OTHERS))
        .filter(|&code| !is_raised(code))
        .collect();
    assert!(missing.is_empty(), "no test raises {missing:?}");
}
