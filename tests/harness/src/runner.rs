//! From test files to results.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::case::{Case, Test, split_after};
use crate::compare::{difference, limited, normalized};
use crate::directive::AFTER;
use crate::discover::{Discovered, discover};
use crate::example::{check_example, example_cases};
use crate::expectation::{ExpectedRun, compare_findings};
use crate::pattern::{Check, check_text};
use crate::toolchain::{Device, RunRequest, Toolchain};

/// How to treat what is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// A missing device fails a test instead of skipping it.
    pub require_devices: bool,
    /// Expectations of `pass` and snapshot tests are rewritten.
    pub update: bool,
}

impl Settings {
    /// `CI` set to anything but nothing or `false` requires devices; `MAGPIE_UPDATE=1` updates.
    pub fn from_env() -> Settings {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        let update = std::env::var_os("MAGPIE_UPDATE").is_some_and(|value| value == "1");
        Settings { require_devices: ci, update }
    }
}

/// How a test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// As expected, or the expectation was rewritten.
    Passed,
    /// Not run, for this reason.
    Skipped(String),
    /// What went wrong, for people.
    Failed(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Outcome {
        result.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    }
}

/// Runs all tests below `root` and the examples of `magpie explain` as the program's command line asks, as `cargo test` expects it.
pub fn main(root: &Path, toolchain: impl Toolchain + 'static) -> ExitCode {
    let arguments = Arguments::from_args();
    let discovered = discover(root, example_cases());
    let trials = trials(discovered, Arc::new(toolchain), Settings::from_env());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// One trial for each test, and for each device of a `run` test; a failing one for each problem.
pub fn trials(
    discovered: Discovered,
    toolchain: Arc<dyn Toolchain>,
    settings: Settings,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, problem) in discovered.problems {
        trials.push(Trial::test(name, move || Err(Failed::from(problem))));
    }
    for case in discovered.cases.into_iter().map(Arc::new) {
        let devices: Vec<Option<Device>> = match &case.test {
            Test::Run { devices, .. } => devices.iter().copied().map(Some).collect(),
            Test::Check { .. } | Test::Pass { .. } | Test::Emit { .. } | Test::Example { .. } => {
                vec![None]
            }
        };
        for device in devices {
            let suffix = device.map_or_else(String::new, |device| format!("@{}", device.name()));
            let name = format!("{}{suffix}", case.name);
            let (case, toolchain) = (Arc::clone(&case), Arc::clone(&toolchain));
            trials.push(Trial::ignorable_test(name, move || {
                match execute(&case, device, toolchain.as_ref(), settings) {
                    Outcome::Passed => Ok(Completion::Completed),
                    Outcome::Skipped(reason) => Ok(Completion::ignored_with(reason)),
                    Outcome::Failed(message) => Err(Failed::from(message)),
                }
            }));
        }
    }
    trials
}

/// Runs one test. A `run` test without a device runs on each of its own, to the first failure.
pub fn execute(
    case: &Case,
    device: Option<Device>,
    toolchain: &dyn Toolchain,
    settings: Settings,
) -> Outcome {
    if let Some(reason) = &case.wait {
        return Outcome::Skipped(format!("waits: {reason}"));
    }
    match &case.test {
        Test::Run { devices, args, expected } => {
            let chosen: Vec<Device> = device.map_or_else(|| devices.clone(), |device| vec![device]);
            let mut outcome = Outcome::Passed;
            for device in chosen {
                let next = match toolchain.missing(device) {
                    Some(what) if settings.require_devices && !device.is_optional() => {
                        Outcome::Failed(format!("needs {what}, which must be there when CI is set"))
                    }
                    Some(what) => Outcome::Skipped(format!("skipped: needs {what}")),
                    None => run(case, device, args, expected, toolchain).into(),
                };
                outcome = match (outcome, next) {
                    (Outcome::Skipped(reason), Outcome::Passed) => Outcome::Skipped(reason),
                    (_, next) => next,
                };
                if matches!(outcome, Outcome::Failed(_)) {
                    break;
                }
            }
            outcome
        }
        Test::Check { expected } => toolchain
            .check(&case.path)
            .and_then(|reported| compare_findings(expected, &reported))
            .into(),
        Test::Pass { names, input, expected } => toolchain
            .pass(names, input)
            .and_then(|actual| pass(case, expected.as_deref(), &actual, settings))
            .into(),
        Test::Emit { target, checks, snapshot } => toolchain
            .emit(target, &case.path)
            .and_then(|text| emit(checks, snapshot.as_deref(), &text, settings))
            .into(),
        Test::Example { code, example } => {
            empty_dir().and_then(|dir| check_example(*code, example, dir.path(), toolchain)).into()
        }
    }
}

fn run(
    case: &Case,
    device: Device,
    args: &[String],
    expected: &ExpectedRun,
    toolchain: &dyn Toolchain,
) -> Result<(), String> {
    let dir = empty_dir()?;
    let request = RunRequest { path: &case.path, device, args, working_dir: dir.path() };
    let result = toolchain.run(&request)?;
    let mut problems = Vec::new();
    if result.exit_code != expected.exit {
        problems.push(format!("exit code {}, expected {}", result.exit_code, expected.exit));
    }
    if result.stdout != expected.stdout {
        let difference = difference(&expected.stdout, &result.stdout);
        problems.push(format!("standard output differs:\n{difference}"));
    }
    if problems.is_empty() {
        return Ok(());
    }
    if !result.stderr.is_empty() {
        problems.push(format!("standard error:\n{}", limited(&result.stderr)));
    }
    Err(problems.join("\n"))
}

fn pass(
    case: &Case,
    expected: Option<&str>,
    actual: &str,
    settings: Settings,
) -> Result<(), String> {
    let actual = normalized(actual);
    let wanted = expected.map(normalized);
    if wanted.as_ref() == Some(&actual) {
        return Ok(());
    }
    if settings.update {
        let text = std::fs::read_to_string(&case.path);
        let text = text.map_err(|error| format!("cannot read the test: {error}"))?;
        let (before, _) = split_after(&text);
        let line_end = if before.ends_with('\n') { "" } else { "\n" };
        return write_whole(&case.path, &format!("{before}{line_end}{AFTER}\n{actual}"));
    }
    match wanted {
        Some(wanted) => Err(format!(
            "the text after the passes differs:\n{}\nMAGPIE_UPDATE=1 accepts it",
            difference(wanted.as_bytes(), actual.as_bytes())
        )),
        None => Err(format!(
            "nothing is expected yet: there is no line `{AFTER}`; MAGPIE_UPDATE=1 writes it"
        )),
    }
}

fn emit(
    checks: &[Check],
    snapshot: Option<&Path>,
    text: &str,
    settings: Settings,
) -> Result<(), String> {
    check_text(checks, text)?;
    let Some(path) = snapshot else { return Ok(()) };
    let actual = normalized(text);
    let wanted = match std::fs::read_to_string(path) {
        Ok(wanted) => Some(wanted),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    if wanted.as_deref().map(normalized).as_ref() == Some(&actual) {
        return Ok(());
    }
    if settings.update {
        return write_whole(path, &actual);
    }
    match wanted {
        Some(wanted) => Err(format!(
            "the emitted text differs from {}:\n{}\nMAGPIE_UPDATE=1 accepts it",
            path.display(),
            difference(wanted.as_bytes(), actual.as_bytes())
        )),
        None => Err(format!(
            "nothing is expected yet: there are no patterns and no {}; MAGPIE_UPDATE=1 writes it",
            path.display()
        )),
    }
}

fn empty_dir() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("cannot make a folder: {error}"))
}

/// Replaces a file by a temporary one that is renamed when complete.
fn write_whole(path: &Path, text: &str) -> Result<(), String> {
    let partial = path.with_extension("partial");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        // Nothing to remove when it could not be made.
        std::fs::remove_file(&partial).ok();
        format!("cannot write {}: {error}", path.display())
    })
}
