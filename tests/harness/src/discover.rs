//! Finding the tests below a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::case::Case;

/// Extensions of source files; each must be a test or belong to one.
const SOURCES: &[&str] = &["mp", "mi", "mpir"];
/// Extensions of files that hold expectations; each must belong to a source.
const EXPECTATIONS: &[&str] = &["expected", "error", "snapshot"];
/// The list of files that wait: `NAME: REASON`, with `#` before comments.
const WAITING: &str = "waiting.txt";

/// All tests below a folder.
#[derive(Debug, Default)]
pub struct Discovered {
    /// In the order of their names.
    pub cases: Vec<Case>,
    /// What is wrong with a file, by its path below the folder. Each must fail the run.
    pub problems: BTreeMap<String, String>,
}

/// Reads every test file below `root`, and adds cases that are no files of it.
pub fn discover(root: &Path, further: Vec<Case>) -> Discovered {
    let mut found = Discovered { cases: further, ..Discovered::default() };
    let mut files = BTreeSet::new();
    collect(root, &mut files, &mut found.problems);
    let mut waiting = read_waiting(root, &mut found.problems);
    let mut claimed = BTreeSet::new();
    for path in files.iter().filter(|path| has_extension(path, SOURCES)) {
        let name = name_of(root, &path.with_extension(""));
        match Case::load(name, path) {
            Ok(Some(case)) => {
                claimed.extend(case.siblings.iter().cloned());
                found.cases.push(case);
            }
            Ok(None) => {}
            Err(problem) => {
                // What stands beside it is not to blame.
                claimed.extend(EXPECTATIONS.iter().map(|extension| path.with_extension(extension)));
                found.problems.insert(name_of(root, path), problem);
            }
        }
    }
    for path in files.iter().filter(|path| has_extension(path, EXPECTATIONS)) {
        if !claimed.contains(path) {
            let problem = "no test beside it uses this expectation".to_owned();
            found.problems.insert(name_of(root, path), problem);
        }
    }
    for case in &mut found.cases {
        if let Some(reason) = waiting.remove(&case.name) {
            case.wait.get_or_insert(reason);
        }
    }
    for name in waiting.into_keys() {
        found.problems.insert(format!("{WAITING}: {name}"), "there is no such test".to_owned());
    }
    found.cases.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn collect(dir: &Path, files: &mut BTreeSet<PathBuf>, problems: &mut BTreeMap<String, String>) {
    let mut folders = vec![dir.to_owned()];
    while let Some(dir) = folders.pop() {
        let entries =
            std::fs::read_dir(&dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                problems.insert(dir.display().to_string(), format!("cannot read it: {error}"));
                continue;
            }
        };
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => {
                    files.insert(entry.path());
                }
                Err(error) => {
                    let path = entry.path().display().to_string();
                    problems.insert(path, format!("cannot read it: {error}"));
                }
            }
        }
    }
}

fn read_waiting(root: &Path, problems: &mut BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut waiting = BTreeMap::new();
    let path = root.join(WAITING);
    if !path.exists() {
        return waiting;
    }
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            problems.insert(WAITING.to_owned(), format!("cannot read it: {error}"));
            return waiting;
        }
    };
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(':') {
            Some((name, reason)) if !name.trim().is_empty() && !reason.trim().is_empty() => {
                waiting.insert(name.trim().to_owned(), reason.trim().to_owned());
            }
            _ => {
                let place = format!("{WAITING}: line {}", index + 1);
                problems.insert(place, "must be `NAME: REASON`".to_owned());
            }
        }
    }
    waiting
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e))
}

/// The path below the root, with `/` between folders.
fn name_of(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn tests_are_found_in_order_with_their_reasons_to_wait() {
        let dir = folder(&[
            ("b/two.mp", "; test: check\n; wait: own reason\n"),
            ("a.mp", ""),
            ("a.expected", "exit: 0\n---\n"),
            ("b/one.mpir", "; test: check\n"),
            ("b/helper.mp", "; test: support\n"),
            ("b/data.pgm", "P5"),
            ("waiting.txt", "# none of these\n\nb/two: list reason\nb/one: other reason\n"),
        ]);
        let found = discover(dir.path(), Vec::new());
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        let cases: Vec<(&str, Option<&str>)> =
            found.cases.iter().map(|case| (case.name.as_str(), case.wait.as_deref())).collect();
        assert_eq!(
            cases,
            [("a", None), ("b/one", Some("other reason")), ("b/two", Some("own reason"))]
        );
    }

    #[test]
    fn nothing_is_overlooked() {
        let dir = folder(&[
            ("mute.mp", "module a\n"),
            ("gone.expected", "exit: 0\n---\n"),
            ("bad.mp", ""),
            ("bad.error", "x"),
            ("fine.mp", "; test: check\n"),
            ("fine.expected", "exit: 0\n---\n"),
            ("waiting.txt", "nobody: reason\nfine\n"),
        ]);
        let found = discover(dir.path(), Vec::new());
        let problems: Vec<&str> = found.problems.keys().map(String::as_str).collect();
        assert_eq!(
            problems,
            [
                "bad.mp",
                "fine.expected",
                "gone.expected",
                "mute.mp",
                "waiting.txt: line 2",
                "waiting.txt: nobody"
            ]
        );
        let missing = discover(&dir.path().join("missing"), Vec::new());
        assert_eq!((missing.cases.len(), missing.problems.len()), (0, 1));
    }
}
