//! Outside tools.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

/// Says that a test cannot run; in CI that is a failure.
pub fn skip(what: &str) {
    println!("skipped: needs {what}");
    assert!(std::env::var_os("CI").is_none(), "{what} is missing");
}

/// Runs a tool on its standard input; gives its output, or its message when it refuses. `None` when
/// there is no such tool.
pub fn run_tool(
    name: impl AsRef<OsStr>,
    arguments: &[&str],
    input: &[u8],
) -> Option<Result<Vec<u8>, String>> {
    let spawned = Command::new(&name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        skip(&name.as_ref().to_string_lossy());
        return None;
    };
    let mut stdin = child.stdin.take()?;
    // A tool that refuses its input early closes it.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().ok()?;
    match output.status.success() {
        true => Some(Ok(output.stdout)),
        false => Some(Err(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// Writes a shell script that can be run at once. Another process writes it: a file that is open for
/// writing in this one, or in what another thread has just forked, cannot be run.
#[cfg(unix)]
pub fn write_script(path: &std::path::Path, text: &str) {
    let new = path.with_extension("new");
    let write = "cat > \"$0\" && chmod +x \"$0\" && mv \"$0\" \"$1\"";
    let arguments = ["-c".as_ref(), write.as_ref(), new.as_os_str(), path.as_os_str()];
    let mut child =
        Command::new("sh").args(arguments).stdin(Stdio::piped()).spawn().expect("a shell");
    let mut stdin = child.stdin.take().expect("its standard input");
    stdin.write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).expect("a script");
    drop(stdin);
    assert!(child.wait().expect("a shell").success());
}
