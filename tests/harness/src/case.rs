//! A test file, read: what is to happen and what is expected.

use std::path::{Path, PathBuf};

use magpie_diag::{Code, Example, Severity};

use crate::directive::{self, AFTER, Directives, Kind};
use crate::expectation::{ExpectedFinding, ExpectedRun, parse_error_file, parse_marks};
use crate::pattern::Check;
use crate::toolchain::Device;

/// A test file with everything needed to run it.
#[derive(Debug)]
pub struct Case {
    /// Its path below the root folder, without extension and with `/` between folders.
    pub name: String,
    /// The file itself; empty for a test that is none.
    pub path: PathBuf,
    /// Why it cannot be run yet.
    pub wait: Option<String>,
    pub(crate) test: Test,
    /// Files beside the source that hold its expectation.
    pub(crate) siblings: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Test {
    Run {
        devices: Vec<Device>,
        args: Vec<String>,
        expected: ExpectedRun,
    },
    Check {
        expected: Vec<ExpectedFinding>,
    },
    Pass {
        names: Vec<String>,
        input: String,
        /// `None` before the first update.
        expected: Option<String>,
    },
    Emit {
        target: String,
        checks: Vec<Check>,
        /// Compared with the whole text, unless the file is content with patterns.
        snapshot: Option<PathBuf>,
    },
    Example {
        code: Code,
        example: Example,
    },
}

impl Case {
    /// Reads a source file and the files beside it. `Ok(None)` is a file that other tests use.
    pub(crate) fn load(name: String, path: &Path) -> Result<Option<Case>, String> {
        let bytes = read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut directives = directive::parse(&text)?;
        let wait = directives.wait.take();
        let beside = |extension: &str| {
            let sibling = path.with_extension(extension);
            sibling.is_file().then_some(sibling)
        };
        let (expected_file, error_file) = (beside("expected"), beside("error"));
        let kind = match (directives.kind.take(), &expected_file, &error_file) {
            (Some(kind), ..) => kind,
            (None, Some(_), None) => Kind::Run,
            (None, None, Some(_)) => Kind::Check,
            (None, Some(_), Some(_)) => {
                return Err("both `.expected` and `.error` stand beside it".into());
            }
            (None, None, None) => {
                return Err("says nothing about itself: it has no comment `; test: KIND` and \
                            neither `.expected` nor `.error` beside it"
                    .into());
            }
        };
        let mut siblings = Vec::new();
        let test = match kind {
            Kind::Support => return Ok(None),
            Kind::Run => {
                siblings.extend(expected_file.clone());
                run_test(directives, &text, expected_file.as_deref())?
            }
            Kind::Error | Kind::Check => {
                siblings.extend(error_file.clone());
                check_test(&kind, &text, error_file.as_deref())?
            }
            Kind::Pass(names) => {
                let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
                let (input, expected) = split_after(&text);
                Test::Pass { names, input: input.to_owned(), expected: expected.map(str::to_owned) }
            }
            Kind::Emit(target) => {
                let snapshot = path.with_extension(format!("{target}.snapshot"));
                let wanted = snapshot.is_file() || directives.checks.is_empty();
                let snapshot = wanted.then_some(snapshot);
                siblings.extend(snapshot.clone());
                Test::Emit { target, checks: directives.checks, snapshot }
            }
        };
        Ok(Some(Case { name, path: path.to_owned(), wait, test, siblings }))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn in_file(path: &Path, error: String) -> String {
    format!("{}: {error}", path.file_name().unwrap_or(path.as_os_str()).display())
}

fn run_test(
    directives: Directives,
    text: &str,
    expected_file: Option<&Path>,
) -> Result<Test, String> {
    let Directives { exit, stdout, args, devices, .. } = directives;
    let expected = match expected_file {
        Some(_) if exit.is_some() || stdout.is_some() => {
            return Err("`exit:` or `stdout:` and a `.expected` file: one of them is enough".into());
        }
        Some(path) => ExpectedRun::parse(&read(path)?).map_err(|error| in_file(path, error))?,
        None if exit.is_none() && stdout.is_none() => {
            return Err("a run that expects nothing: add `.expected`, `exit:` or `stdout:`".into());
        }
        None => {
            ExpectedRun { exit: exit.unwrap_or(0), stdout: stdout.unwrap_or_default().into_bytes() }
        }
    };
    // Without this word a program touches no device, so one run says it all.
    let uses_devices = text.contains("gpu");
    let devices = devices
        .unwrap_or_else(|| if uses_devices { Device::MATRIX.to_vec() } else { vec![Device::Cpu] });
    Ok(Test::Run { devices, args, expected })
}

fn check_test(kind: &Kind, text: &str, error_file: Option<&Path>) -> Result<Test, String> {
    let marks = parse_marks(text)?;
    let expected = match error_file {
        Some(_) if !marks.is_empty() => {
            return Err("`;~` comments and a `.error` file: one of them is enough".into());
        }
        Some(path) => {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            parse_error_file(&text).map_err(|error| in_file(path, error))?
        }
        None => marks,
    };
    let expects_error = expected.iter().any(|finding| finding.severity == Severity::Error);
    if *kind == Kind::Error && !expects_error {
        return Err("a `test: error` must expect an error; `test: check` is for the rest".into());
    }
    Ok(Test::Check { expected })
}

/// The text before the separator and the text below it.
pub(crate) fn split_after(text: &str) -> (&str, Option<&str>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == AFTER {
            return (&text[..start], Some(&text[start + line.len()..]));
        }
        start += line.len();
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(files: &[(&str, &str)]) -> Result<Option<Case>, String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Case::load("t".into(), &dir.path().join("t.mp"))
    }

    fn test(files: &[(&str, &str)]) -> Test {
        load(files).unwrap().unwrap().test
    }

    #[test]
    fn siblings_decide_without_directives() {
        let run = test(&[("t.mp", "; hello: a gpu program"), ("t.expected", "exit: 3\n---\nx\n")]);
        let Test::Run { devices, args, expected } = run else { panic!("{run:?}") };
        assert_eq!((devices.as_slice(), args.len()), (Device::MATRIX, 0));
        assert_eq!((expected.exit, expected.stdout), (3, b"x\n".to_vec()));

        let check = test(&[("t.mp", ""), ("t.error", "error MPT2014 3\n")]);
        assert!(matches!(check, Test::Check { expected } if expected.len() == 1));
        let silent = test(&[("t.mp", ""), ("t.error", "")]);
        assert!(matches!(silent, Test::Check { expected } if expected.is_empty()));
    }

    #[test]
    fn host_programs_run_once() {
        let run = test(&[("t.mp", "; test: run\n; exit: 1\n")]);
        let Test::Run { devices, expected, .. } = run else { panic!("{run:?}") };
        assert_eq!(devices, [Device::Cpu]);
        assert_eq!(expected, ExpectedRun { exit: 1, stdout: Vec::new() });
    }

    #[test]
    fn marks_are_expectations() {
        let check = test(&[("t.mp", "; test: error\nx ;~ error MPT2014\n")]);
        assert!(matches!(check, Test::Check { expected } if expected[0].line == 2));
    }

    #[test]
    fn text_below_the_separator_is_expected() {
        assert_eq!(split_after("a\n; after:\nb\n"), ("a\n", Some("b\n")));
        assert_eq!(split_after("a\n"), ("a\n", None));
        let pass = test(&[("t.mp", "; test: pass dce\na\n; after:\nb\n")]);
        let Test::Pass { names, input, expected } = pass else { panic!("{pass:?}") };
        assert_eq!((names, input.as_str()), (vec!["dce".into()], "; test: pass dce\na\n"));
        assert_eq!(expected.as_deref(), Some("b\n"));
    }

    #[test]
    fn snapshots_are_optional_beside_patterns() {
        let snapshot = |files| match test(files) {
            Test::Emit { snapshot, .. } => snapshot.is_some(),
            other => panic!("{other:?}"),
        };
        assert!(snapshot(&[("t.mp", "; test: emit spv\n")]));
        assert!(!snapshot(&[("t.mp", "; test: emit spv\n; check: x\n")]));
        assert!(snapshot(&[("t.mp", "; test: emit spv\n; check: x\n"), ("t.spv.snapshot", "")]));
    }

    #[test]
    fn support_files_are_no_tests() {
        assert!(load(&[("t.mp", "; test: support\n")]).unwrap().is_none());
    }

    #[test]
    fn mistakes_are_refused() {
        for (files, message) in [
            (&[("t.mp", "module a\n")][..], "says nothing about itself"),
            (&[("t.mp", ""), ("t.expected", "exit: 0\n---\n"), ("t.error", "")], "both"),
            (&[("t.mp", ""), ("t.expected", "0\n")], "t.expected: line 1"),
            (&[("t.mp", ""), ("t.error", "MPT2014\n")], "t.error: line 1"),
            (&[("t.mp", "; test: run\n")], "a run that expects nothing"),
            (&[("t.mp", "; test: run\n; exit: 1\n"), ("t.expected", "exit: 0\n---\n")], "`exit:`"),
            (&[("t.mp", "; test: error\n")], "a `test: error` must"),
            (&[("t.mp", "; test: error\n;~ warning MPL2011\n")], "a `test: error` must"),
            (&[("t.mp", "; test: error\n;~ error MPT2014\n"), ("t.error", "")], "`;~` comments"),
            (&[], "cannot read"),
        ] {
            let error = load(files).unwrap_err();
            assert!(error.starts_with(message), "{files:?}: {error}");
        }
    }
}
