//! `cargo xtask test`: set-up, formatting, lints and all tests.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::setup::setup;
use crate::step::{Failure, cargo, run};
use crate::{root, target_dir};

/// Runs every step, stops at the first failure and prints the time of each.
pub(crate) fn test() -> Result<(), Failure> {
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let result = steps(&mut times);
    println!("\nTime of each step:");
    for (name, time) in &times {
        println!("  {:>7.1} s  {name}", time.as_secs_f64());
    }
    result
}

fn steps(times: &mut Vec<(&'static str, Duration)>) -> Result<(), Failure> {
    let mut timed = |name: &'static str, step: &mut dyn FnMut() -> Result<(), Failure>| {
        println!("\n== {name}");
        let start = Instant::now();
        let result = step();
        times.push((name, start.elapsed()));
        result
    };
    timed("cargo xtask setup", &mut setup)?;
    timed("cargo fmt", &mut || run("cargo fmt", cargo().args(["fmt", "--all", "--check"])))?;
    timed("cargo clippy", &mut || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run("cargo clippy", cargo().args(arguments))
    })?;
    timed("cargo clippy for macOS", &mut clippy_for_macos)?;
    timed("cargo test", &mut || {
        let mut command = cargo();
        command.args(["test", "--workspace"]);
        set_environment(&mut command)?;
        run("cargo test", &mut command)
    })
}

/// Checks the types of the Metal driver. Where its target cannot be had, that is said.
fn clippy_for_macos() -> Result<(), Failure> {
    const TARGET: &str = "aarch64-apple-darwin";
    let mut rustup = Command::new("rustup");
    let added = rustup.current_dir(root()).args(["target", "add", TARGET]).output();
    if !added.is_ok_and(|output| output.status.success()) {
        println!("skipped: needs the Rust target {TARGET}, and `rustup target add` has none");
        return Ok(());
    }
    let arguments = ["clippy", "-p", "magpie_rt", "--lib", "--tests", "--target", TARGET];
    // Without this feature a C compiler for macOS would be needed.
    let features = ["--features", "blake3/pure", "--", "-D", "warnings"];
    run("cargo clippy", cargo().args(arguments).args(features))
}

fn set_environment(command: &mut Command) -> Result<(), Failure> {
    // The tools are installed now, so a device that a test misses is a failure, not a skipped test.
    if std::env::var_os("CI").is_none() {
        command.env("CI", "1");
    }
    // Vulkan loaders complain without the folder.
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if !runtime_dir.is_some_and(|dir| dir.is_dir()) {
        let dir = target_dir().join("xdg-runtime");
        std::fs::create_dir_all(&dir).map_err(|error| {
            Failure::new(format!("cannot make the folder {}: {error}", dir.display()))
        })?;
        command.env("XDG_RUNTIME_DIR", dir);
    }
    Ok(())
}
