//! Running a program as one step of a task.

use std::process::Command;

use crate::root;

/// Why a task ended early, with the exit code to end with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: u8,
}

impl Failure {
    /// Exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 1 }
    }

    /// Something is missing from the machine: exit code 3.
    pub(crate) fn missing(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 3 }
    }
}

/// The cargo that runs this program, started in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command with the terminal of this program. The failure names the step and has the exit
/// code of the command.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| {
        let program = command.get_program().display();
        Failure::missing(format!("{name}: cannot start `{program}`: {error}"))
    })?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure { message: format!("{name} failed: {status}"), code })
}

/// The standard output of a command that must succeed.
pub(crate) fn output(name: &str, command: &mut Command) -> Result<String, Failure> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .map_err(|error| Failure::missing(format!("{name}: cannot start `{program}`: {error}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("{name} failed: {}: {}", output.status, stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_is_passed_on() {
        let failure = run("step", Command::new("sh").args(["-c", "exit 7"])).unwrap_err();
        assert_eq!((failure.code, failure.message.contains("step failed")), (7, true));
        assert!(run("step", Command::new("sh").args(["-c", "exit 0"])).is_ok());
    }

    #[test]
    fn missing_program_is_exit_code_3() {
        let failure = run("step", &mut Command::new("no-such-program-here")).unwrap_err();
        assert_eq!(failure.code, 3);
        assert!(failure.message.contains("no-such-program-here"), "{}", failure.message);
    }

    #[test]
    fn output_is_text() {
        assert_eq!(output("echo", Command::new("echo").arg("a b")).unwrap(), "a b\n");
        let failure = output("x", Command::new("sh").args(["-c", "echo no >&2; exit 2"]));
        assert!(failure.unwrap_err().message.ends_with("no"));
    }
}
