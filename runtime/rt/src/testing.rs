//! Helpers of the unit tests.

use crate::live;
use std::process::{Command, Output, Stdio};

/// Runs the body of a test and checks that it freed every object that it made on this thread.
pub(crate) fn without_leaks(body: impl FnOnce()) {
    let before = live::of_this_thread();
    body();
    assert_eq!(live::of_this_thread() - before, 0, "objects that were not freed");
}

const CHILD: &str = "MAGPIE_RT_TEST_CHILD";

/// Processes that run one case each of the calling test, whose full name is `test`, and exit with
/// 0. What they print stands behind the lines that the test harness prints.
pub(crate) fn children(test: &str, cases: &[fn()]) -> Vec<Command> {
    if let Ok(case) = std::env::var(CHILD) {
        cases[case.parse::<usize>().unwrap()]();
        std::process::exit(0);
    }
    let exe = std::env::current_exe().unwrap();
    let command = |case: usize| {
        let mut command = Command::new(&exe);
        command.args([test, "--exact", "--nocapture"]).env(CHILD, case.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    (0..cases.len()).map(command).collect()
}

/// Runs [`children`] and gives exit code, standard output and standard error of each.
pub(crate) fn outputs(test: &str, cases: &[fn()]) -> Vec<(Option<i32>, String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let run = |mut command: Command| {
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), text(stdout), text(stderr))
    };
    children(test, cases).into_iter().map(run).collect()
}
