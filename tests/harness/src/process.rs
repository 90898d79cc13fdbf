//! Running a program that may misbehave: with a limit of time and of output.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a program may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From start to end.
    pub time: Duration,
    /// Bytes of standard output, and as many of standard error.
    pub output: u64,
}

/// What a program left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessOutput {
    /// The exit code.
    pub exit_code: i32,
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error.
    pub stderr: Vec<u8>,
}

/// Runs a command without input. Fails when it cannot be started, is ended by a signal, or passes a
/// limit, in which case it is killed.
pub fn run_process(command: &mut Command, limits: Limits) -> Result<ProcessOutput, String> {
    let program = command.get_program().display().to_string();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| format!("cannot start `{program}`: {error}"))?;
    let deadline = Instant::now() + limits.time;
    let result = collect(&mut child, limits, deadline);
    if result.is_err() {
        // It may have ended meanwhile; then there is nothing to kill.
        child.kill().ok();
    }
    let status = child.wait().map_err(|error| format!("cannot wait for `{program}`: {error}"))?;
    let (stdout, stderr) = result.map_err(|reason| format!("`{program}` was killed: {reason}"))?;
    let exit_code = status.code().ok_or_else(|| {
        format!("`{program}` ended by {status}: {}", String::from_utf8_lossy(&stderr).trim_end())
    })?;
    Ok(ProcessOutput { exit_code, stdout, stderr })
}

/// Reads both streams to their ends, and waits until the program has ended too.
fn collect(
    child: &mut Child,
    limits: Limits,
    deadline: Instant,
) -> Result<(Vec<u8>, Vec<u8>), String> {
    let stdout = read_aside(child.stdout.take(), limits.output);
    let stderr = read_aside(child.stderr.take(), limits.output);
    let wait = |stream: Receiver<Option<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        match stream.recv_timeout(left) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(format!("it wrote more than {} bytes", limits.output)),
            Err(RecvTimeoutError::Timeout) => Err(format!("it ran for {:?}", limits.time)),
            Err(RecvTimeoutError::Disconnected) => Err("its output could not be read".to_owned()),
        }
    };
    let output = (wait(stdout)?, wait(stderr)?);
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if Instant::now() >= deadline {
            return Err(format!("it ran for {:?}", limits.time));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(output)
}

/// Reads a stream on its own thread; sends `None` when it is longer than the limit.
fn read_aside(stream: Option<impl Read + Send + 'static>, limit: u64) -> Receiver<Option<Vec<u8>>> {
    let (sender, receiver) = channel();
    if let Some(stream) = stream {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if stream.take(limit + 1).read_to_end(&mut bytes).is_ok() {
                // Nobody listens any more when the other stream has already failed.
                sender.send((bytes.len() as u64 <= limit).then_some(bytes)).ok();
            }
        });
    }
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str, ms: u64) -> Result<ProcessOutput, String> {
        let limits = Limits { time: Duration::from_millis(ms), output: 1000 };
        run_process(Command::new("sh").args(["-c", script]), limits)
    }

    #[test]
    fn output_and_exit_code() {
        let output = sh("echo out; echo err >&2; exit 7", 10_000).unwrap();
        assert_eq!(
            (output.exit_code, output.stdout, output.stderr),
            (7, b"out\n".into(), b"err\n".into())
        );
        assert!(sh("cat; exit 0", 10_000).unwrap().stdout.is_empty());
    }

    #[test]
    fn limits_hold() {
        let start = Instant::now();
        assert!(sh("sleep 60", 50).unwrap_err().contains("it ran for 50ms"));
        assert!(sh("exec >&- 2>&-; sleep 60", 50).unwrap_err().contains("it ran for 50ms"));
        assert!(
            sh("while :; do echo 0123456789; done", 20_000).unwrap_err().contains("1000 bytes")
        );
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn signals_and_missing_programs() {
        assert!(sh("kill -9 $$", 10_000).unwrap_err().contains("signal: 9"));
        let limits = Limits { time: Duration::from_secs(1), output: 1 };
        assert!(
            run_process(&mut Command::new("no-such-program"), limits)
                .unwrap_err()
                .contains("cannot start")
        );
    }
}
