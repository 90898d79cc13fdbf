//! `magpie test`: every `@test_` function of a project, each in a process of its own.

use crate::device_config::device_word;
use crate::frontend::{self, Program};
use crate::kernels::Kernels;
use crate::project::{Project, display_name};
use crate::run;
use crate::session::{Session, Stop};
use crate::source_file;
use magpie_diag::{Code, Diagnostic, Span};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// How one test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestResult {
    /// Full name of the function.
    pub name: String,
    /// What its process wrote to standard error when it failed, with the exit code.
    pub failure: Option<String>,
}

/// How all tests ended, in their order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TestSummary {
    results: Vec<TestResult>,
    /// Tests whose names do not contain the filter.
    left_out: usize,
}

/// A test and the entry file through which it is reached.
struct Test {
    name: String,
    entry: PathBuf,
}

/// Runs the tests of the entry module's tree and of `tests/*.mp`, several at a time; `report` hears
/// of each in order.
///
/// # Errors
/// A module is refused.
pub fn test(
    session: &mut Session,
    filter: Option<&str>,
    report: &mut dyn FnMut(&TestResult),
) -> Result<TestSummary, Stop> {
    let project = Project::find(session)?;
    let mut tests = collect(session, &project)?;
    let all = tests.len();
    tests.retain(|test| filter.is_none_or(|text| test.name.contains(text)));
    let left_out = all - tests.len();
    let program = std::env::current_exe().map_err(|error| {
        let why = source_file::reason(&error);
        let message = format!("cannot find the program of this command: {why}");
        session.refuse(Code::MPL0007, message, "call it by its full path")
    })?;
    let flags = flags(session);
    let results = run_all(&program, &flags, &tests, session.options.threads(), report);
    Ok(TestSummary { results, left_out })
}

/// The tests of every entry file, each once.
fn collect(session: &mut Session, project: &Project) -> Result<Vec<Test>, Stop> {
    let mut entries = vec![project.entry.clone()];
    if project.has_manifest {
        entries.extend(test_files(session, &project.root.join("tests"))?);
    }
    let mut tests = Vec::new();
    let mut known = BTreeSet::new();
    let mut refused = false;
    for entry in entries {
        let program = match load(session, project, &entry) {
            Ok(program) => program,
            Err(Stop::Refused) => {
                refused = true;
                continue;
            }
            Err(stop) => return Err(stop),
        };
        for &id in &program.tests {
            let name = program.module.func(id).name.clone();
            if known.insert(name.clone()) {
                tests.push(Test { name, entry: entry.clone() });
            }
        }
    }
    if refused { Err(Stop::Refused) } else { Ok(tests) }
}

/// Compiles a program as far as its errors show.
fn load(session: &mut Session, project: &Project, entry: &Path) -> Result<Program, Stop> {
    let program = frontend::load_file(session, project, entry)?;
    Kernels::prepare(session, &program)?;
    Ok(program)
}

fn test_files(session: &mut Session, folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    let paths = entries.map_err(|error| {
        let (name, why) = (display_name(folder), source_file::reason(&error));
        let message = format!("cannot read the folder `{name}`: {why}");
        session.refuse(Code::MPP0001, message, "change its permissions")
    })?;
    let is_module = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "mp");
    let mut files: Vec<PathBuf> = paths.into_iter().filter(is_module).collect();
    files.sort();
    Ok(files)
}

/// The flags that the process of a test gets.
fn flags(session: &Session) -> Vec<String> {
    let mut flags = Vec::new();
    let options = &session.options;
    if let Some(profile) = &options.profile {
        flags.push(format!("--profile={profile}"));
    }
    if let Some(fallback) = options.gpu_fallback {
        let word = match fallback {
            crate::options::Fallback::None => "none",
            crate::options::Fallback::Cpu => "cpu",
        };
        flags.push(format!("--gpu-fallback={word}"));
    }
    flags.extend(options.device.map(|device| format!("--device={}", device_word(device))));
    flags
}

/// Runs tests in up to `jobs` processes at once and reports them in order.
fn run_all(
    program: &Path,
    flags: &[String],
    tests: &[Test],
    jobs: usize,
    report: &mut dyn FnMut(&TestResult),
) -> Vec<TestResult> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    let mut results: Vec<Option<TestResult>> = vec![None; tests.len()];
    let mut reported = 0;
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(tests.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(test) = tests.get(n) else { return };
                    if sender.send((n, run_one(program, flags, test))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (n, result) in receiver {
            results[n] = Some(result);
            while let Some(Some(result)) = results.get(reported) {
                report(result);
                reported += 1;
            }
        }
    });
    results.into_iter().flatten().collect()
}

fn run_one(program: &Path, flags: &[String], test: &Test) -> TestResult {
    let mut command = Command::new(program);
    command.arg("run-test").args(flags).arg("--").arg(&test.entry).arg(&test.name);
    let output = command.stdin(Stdio::null()).output();
    let failure = match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            Some(format!("{text}{}\n", output.status))
        }
        Err(error) => Some(format!("the process of the test cannot be started: {error}\n")),
    };
    TestResult { name: test.name.clone(), failure }
}

/// Runs one test in this process; gives its exit code.
///
/// # Errors
/// The module is refused, or has no such test.
pub fn run_test(session: &mut Session, name: &str) -> Result<u8, Stop> {
    let project = Project::find(session)?;
    let program = frontend::load(session, &project)?;
    let named = program.tests.iter().find(|&&id| program.module.func(id).name == name);
    let Some(&id) = named else {
        let message = format!("there is no test `{name}`");
        session.report(Diagnostic::new(Code::MPL0006, Span::NONE, message));
        return Err(Stop::Usage);
    };
    let test = run::prepare(session, &project, program, id, true)?;
    Ok(test.execute(Vec::new()))
}

impl TestResult {
    /// The line of the test, and what it wrote when it failed.
    pub fn text(&self) -> String {
        match &self.failure {
            None => format!("test {} ... ok\n", self.name),
            Some(failure) => {
                let lines: String = failure.lines().map(|line| format!("    {line}\n")).collect();
                format!("test {} ... FAILED\n{lines}", self.name)
            }
        }
    }
}

impl TestSummary {
    fn failed(&self) -> usize {
        self.results.iter().filter(|result| result.failure.is_some()).count()
    }

    /// The last line.
    pub fn text(&self) -> String {
        let (all, failed) = (self.results.len(), self.failed());
        let result = if failed == 0 { "ok" } else { "FAILED" };
        let passed = all - failed;
        format!("\n{result}: {passed} passed, {failed} failed, {} left out\n", self.left_out)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let result = |result: &TestResult| {
            json!({
                "failure": result.failure,
                "name": result.name,
                "ok": result.failure.is_none(),
            })
        };
        json!({
            "failed": self.failed(),
            "left_out": self.left_out,
            "passed": self.results.len() - self.failed(),
            "results": self.results.iter().map(result).collect::<Vec<Value>>(),
        })
    }
}
