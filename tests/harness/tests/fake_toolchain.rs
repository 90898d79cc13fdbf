//! The harness driven by a toolchain that understands a toy language: one command a line.

use std::path::Path;
use std::sync::Arc;

use magpie_diag::{Code, Severity};
use magpie_tests::{
    Device, Discovered, Finding, Outcome, RunRequest, RunResult, Settings, Toolchain, discover,
    example_cases, execute, trials,
};

/// `print TEXT`, `exit N`, `on DEVICE TEXT`, `args`, `touch FILE`, `fault CODE`, `broken`.
struct Fake {
    missing: Vec<Device>,
}

impl Toolchain for Fake {
    fn missing(&self, device: Device) -> Option<String> {
        self.missing.contains(&device).then(|| format!("a {} device", device.name()))
    }

    fn run(&self, request: &RunRequest<'_>) -> Result<RunResult, String> {
        assert!(std::fs::read_dir(request.working_dir).unwrap().next().is_none());
        let mut result =
            RunResult { exit_code: 0, stdout: Vec::new(), stderr: "chatter".to_owned() };
        for line in std::fs::read_to_string(request.path).unwrap().lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "print" => result.stdout.extend(format!("{rest}\n").bytes()),
                "on" if rest.starts_with(request.device.name()) => {
                    result.stdout.extend(b"special\n");
                }
                "args" => {
                    result.stdout.extend(format!("{}\n", request.args.join("|")).bytes());
                }
                "exit" => result.exit_code = rest.parse().unwrap(),
                "touch" => std::fs::write(request.working_dir.join(rest), "").unwrap(),
                "broken" => return Err("cannot compile".to_owned()),
                _ => {}
            }
        }
        Ok(result)
    }

    fn check(&self, path: &Path) -> Result<Vec<Finding>, String> {
        let text = std::fs::read_to_string(path).unwrap();
        let faults = text.lines().enumerate().filter_map(|(index, line)| {
            let code = Code::parse(line.strip_prefix("fault ")?.split(' ').next()?)?;
            Some(Finding {
                severity: code.severity(),
                code,
                line: Some(index as u32 + 1),
                message: "a fault".to_owned(),
            })
        });
        Ok(faults.collect())
    }

    fn pass(&self, names: &[String], text: &str) -> Result<String, String> {
        let mut text: String =
            text.lines().filter(|l| !l.starts_with(';')).map(|l| format!("{l}\n")).collect();
        for name in names {
            text = match name.as_str() {
                "upper" => text.to_uppercase(),
                "double" => text.repeat(2),
                _ => return Err(format!("unknown pass `{name}`")),
            };
        }
        Ok(text)
    }

    fn emit(&self, target: &str, path: &Path) -> Result<String, String> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("print "));
        Ok(lines.map(|line| format!("{target} %1 = {line}\n")).collect())
    }
}

const ALL: Fake = Fake { missing: Vec::new() };
const AT_HOME: Settings = Settings { require_devices: false, update: false };
const UPDATE: Settings = Settings { require_devices: false, update: true };

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, text) in files {
            std::fs::write(folder.0.path().join(name), text).unwrap();
        }
        folder
    }

    fn discover(&self) -> Discovered {
        let found = discover(self.0.path(), Vec::new());
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        found
    }

    /// The outcome of the one test in the folder.
    fn outcome(&self, toolchain: &Fake, settings: Settings) -> Outcome {
        let found = self.discover();
        assert_eq!(found.cases.len(), 1);
        execute(&found.cases[0], None, toolchain, settings)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }
}

fn failure(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(message) => message,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[test]
fn a_run_is_compared_on_every_device() {
    let text = "; prose about the gpu\nprint a\nargs\ntouch file\nexit 3\n";
    let folder = Folder::new(&[("t.mp", text), ("t.expected", "exit: 3\n---\na\n\n")]);
    assert_eq!(folder.outcome(&ALL, AT_HOME), Outcome::Passed);

    let differs = format!("{text}on vulkan\n");
    let folder = Folder::new(&[("t.mp", &differs), ("t.expected", "exit: 4\n---\na\n\n")]);
    let message = failure(folder.outcome(&ALL, AT_HOME));
    assert!(
        message.starts_with("exit code 3, expected 4\nstandard error:\n  chatter"),
        "{message}"
    );

    let folder = Folder::new(&[("t.mp", &differs), ("t.expected", "exit: 3\n---\na\n\n")]);
    let message = failure(folder.outcome(&ALL, AT_HOME));
    assert!(
        message.contains("standard output differs") && message.contains("+special"),
        "{message}"
    );
    let found = folder.discover();
    let on = |device| execute(&found.cases[0], Some(device), &ALL, AT_HOME);
    assert_eq!(on(Device::Cpu), Outcome::Passed);
    assert!(matches!(on(Device::Vulkan), Outcome::Failed(_)));
}

#[test]
fn arguments_and_devices_are_handed_on() {
    let text = "; test: run\n; args: -n 5\n; devices: none\n; stdout: -n|5\n; stdout: special\nargs\non none\n";
    let folder = Folder::new(&[("t.mp", text)]);
    assert_eq!(folder.outcome(&ALL, AT_HOME), Outcome::Passed);
}

#[test]
fn a_missing_device_is_said_and_fails_in_ci() {
    let folder = Folder::new(&[("t.mp", "; gpu\n"), ("t.expected", "exit: 0\n---\n")]);
    let fake = Fake { missing: vec![Device::Vulkan] };
    let skipped = Outcome::Skipped("skipped: needs a vulkan device".to_owned());
    assert_eq!(folder.outcome(&fake, AT_HOME), skipped);
    let in_ci = Settings { require_devices: true, ..AT_HOME };
    assert!(failure(folder.outcome(&fake, in_ci)).starts_with("needs a vulkan device"));
    // A GPU cannot be installed.
    let fake = Fake { missing: vec![Device::Cuda] };
    let skipped = Outcome::Skipped("skipped: needs a cuda device".to_owned());
    assert_eq!(folder.outcome(&fake, in_ci), skipped);
}

#[test]
fn a_program_that_does_not_compile_fails() {
    let folder = Folder::new(&[("t.mp", "broken\n"), ("t.expected", "exit: 1\n---\n")]);
    assert_eq!(failure(folder.outcome(&ALL, AT_HOME)), "cannot compile");
}

#[test]
fn diagnostics_are_compared() {
    let text = "; test: error\nfault MPT2014 ;~ error MPT2014\nfault MPG_CORE_1404\n";
    assert_eq!(Folder::new(&[("t.mp", text)]).outcome(&ALL, AT_HOME), Outcome::Passed);
    let folder = Folder::new(&[("t.mp", "fault MPT2014\n"), ("t.error", "")]);
    assert!(failure(folder.outcome(&ALL, AT_HOME)).starts_with("unexpected: error MPT2014"));
    let folder = Folder::new(&[("t.mp", "\n"), ("t.error", "error MPT2014 1\n")]);
    assert!(failure(folder.outcome(&ALL, AT_HOME)).starts_with("missing:    error MPT2014"));
    assert_eq!(Code::MPG_CORE_1404.severity(), Severity::Info);
}

#[test]
fn passes_are_compared_and_updated() {
    let good = "; test: pass upper, double\na\n; after:\nA\nA\n";
    assert_eq!(Folder::new(&[("t.mpir", good)]).outcome(&ALL, AT_HOME), Outcome::Passed);

    let folder = Folder::new(&[("t.mpir", "; test: pass upper\na\n; after:\nb\n")]);
    let message = failure(folder.outcome(&ALL, AT_HOME));
    assert!(message.contains("  -b\n  +A") && message.contains("MAGPIE_UPDATE=1"), "{message}");
    assert_eq!(folder.outcome(&ALL, UPDATE), Outcome::Passed);
    assert_eq!(folder.read("t.mpir"), "; test: pass upper\na\n; after:\nA\n");
    assert_eq!(folder.outcome(&ALL, AT_HOME), Outcome::Passed);

    let folder = Folder::new(&[("t.mpir", "; test: pass upper\na")]);
    assert!(failure(folder.outcome(&ALL, AT_HOME)).contains("nothing is expected yet"));
    assert_eq!(folder.outcome(&ALL, UPDATE), Outcome::Passed);
    assert_eq!(folder.read("t.mpir"), "; test: pass upper\na\n; after:\nA\n");

    let folder = Folder::new(&[("t.mpir", "; test: pass lower\na\n; after:\na\n")]);
    assert_eq!(failure(folder.outcome(&ALL, UPDATE)), "unknown pass `lower`");
}

#[test]
fn emitted_text_is_matched_and_updated() {
    let text = "; test: emit spv\n; check: $x = one\n; next: spv $x = two\n; not: three\nprint one\nprint two\n";
    assert_eq!(Folder::new(&[("t.mp", text)]).outcome(&ALL, AT_HOME), Outcome::Passed);
    let folder = Folder::new(&[("t.mp", &format!("{text}print three\n"))]);
    assert!(failure(folder.outcome(&ALL, UPDATE)).contains("forbids `three`"));

    let folder = Folder::new(&[("t.mp", "; test: emit spv\nprint one\n")]);
    assert!(failure(folder.outcome(&ALL, AT_HOME)).contains("nothing is expected yet"));
    assert_eq!(folder.outcome(&ALL, UPDATE), Outcome::Passed);
    assert_eq!(folder.read("t.spv.snapshot"), "spv %1 = one\n");
    assert_eq!(folder.outcome(&ALL, AT_HOME), Outcome::Passed);
    std::fs::write(folder.0.path().join("t.spv.snapshot"), "spv %1 = two\n").unwrap();
    assert!(failure(folder.outcome(&ALL, AT_HOME)).contains("  -spv %1 = two\n  +spv %1 = one"));
}

#[test]
fn waiting_is_said() {
    let folder = Folder::new(&[("t.mp", "; test: check\n; wait: the linker\nfault MPT2014\n")]);
    assert_eq!(folder.outcome(&ALL, AT_HOME), Outcome::Skipped("waits: the linker".to_owned()));
}

#[test]
fn trials_are_named_by_file_and_device_and_problems_fail() {
    let folder = Folder::new(&[
        ("device.mp", "; gpu\n"),
        ("device.expected", "exit: 0\n---\n"),
        ("host.mp", "exit 1\n"),
        ("host.expected", "exit: 0\n---\n"),
        ("later.mp", "; test: check\n; wait: x\n"),
        ("mute.mp", ""),
    ]);
    let found = discover(folder.0.path(), Vec::new());
    let fake = Arc::new(Fake { missing: vec![Device::Vulkan] });
    let trials = trials(found, fake, AT_HOME);
    let names: Vec<&str> = trials.iter().map(|trial| trial.name()).collect();
    assert_eq!(
        names,
        [
            "mute.mp",
            "device@interp",
            "device@cpu",
            "device@vulkan",
            "device@webgpu",
            "device@cuda",
            "host@cpu",
            "later"
        ]
    );
    let log = folder.0.path().join("log").display().to_string();
    let arguments = libtest_mimic::Arguments { logfile: Some(log), ..Default::default() };
    let conclusion = libtest_mimic::run(&arguments, trials);
    assert_eq!((conclusion.num_passed, conclusion.num_ignored, conclusion.num_failed), (4, 2, 2));
    let log = folder.read("log");
    for reason in ["skipped: needs a vulkan device", "waits: x", "says nothing about itself"] {
        assert!(log.contains(reason), "{log}");
    }
}

/// Reports one code for the wrong examples, another for the right ones.
struct Examples {
    wrong: Option<Code>,
    right: Option<Code>,
}

impl Toolchain for Examples {
    fn missing(&self, _: Device) -> Option<String> {
        None
    }

    fn run(&self, _: &RunRequest<'_>) -> Result<RunResult, String> {
        Err("examples are not run".to_owned())
    }

    fn check(&self, path: &Path) -> Result<Vec<Finding>, String> {
        let text = std::fs::read_to_string(path).unwrap();
        let is_wrong = Code::MPT2014.example().is_some_and(|example| example.wrong == text);
        let code = if is_wrong { self.wrong } else { self.right };
        let finding = |code: Code| Finding {
            severity: code.severity(),
            code,
            line: None,
            message: "m".into(),
        };
        Ok(code.map(finding).into_iter().collect())
    }

    fn pass(&self, _: &[String], _: &str) -> Result<String, String> {
        Err("examples have no passes".to_owned())
    }

    fn emit(&self, _: &str, _: &Path) -> Result<String, String> {
        Err("examples are not emitted".to_owned())
    }
}

#[test]
fn examples_must_raise_their_code_and_their_repairs_must_not() {
    let cases = example_cases();
    let case = cases.iter().find(|case| case.name == "explain/MPT2014").unwrap();
    let outcome = |wrong, right| execute(case, None, &Examples { wrong, right }, AT_HOME);
    let (own, other) = (Some(Code::MPT2014), Some(Code::MPP0002));
    assert_eq!(outcome(own, None), Outcome::Passed);
    assert_eq!(outcome(own, Some(Code::MPT2050)), Outcome::Passed);
    assert_eq!(outcome(own, Some(Code::MPL2011)), Outcome::Passed);
    assert!(failure(outcome(other, None)).contains("does not raise MPT2014:\n  error MPP0002"));
    assert!(failure(outcome(None, None)).contains("nothing reported"));
    assert!(failure(outcome(own, own)).contains("is not right"));
    assert!(failure(outcome(own, other)).contains("is not right"));
}

#[test]
fn every_file_of_this_project_says_what_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../filetests");
    let found = discover(&root, example_cases());
    assert!(found.problems.is_empty(), "{:#?}", found.problems);
    assert!(found.cases.len() > 100);
}
