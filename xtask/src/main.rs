//! Developer tasks: `cargo xtask setup | test | bench | dist | photo`.

mod dist;
mod photo;
mod setup;
mod step;
mod test;
mod wheels;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::step::{Failure, cargo, run};

/// Sets up, tests, measures and packs the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the tools that the tests need (Debian and Ubuntu)
    Setup,
    /// Run `setup`, then formatting, lints and all tests
    Test,
    /// Run the benchmarks whose name contains FILTER
    Bench {
        /// Passed to the benchmark program; `--help` lists what it takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FILTER")]
        args: Vec<String>,
    },
    /// Pack the release binary, README, LICENSE and examples
    Dist,
    /// Draw the picture that the examples filter
    Photo,
}

fn main() -> ExitCode {
    let result = match Args::parse().task {
        Task::Setup => setup::setup(),
        Task::Test => test::test(),
        Task::Bench { args } => bench(args),
        Task::Dist => dist::dist(),
        Task::Photo => photo::photo(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { message, code }) => {
            eprintln!("xtask: {message}");
            ExitCode::from(code)
        }
    }
}

/// Some benchmarks run the command, so it is built too.
fn bench(args: Vec<String>) -> Result<(), Failure> {
    let mut build = cargo();
    run("bench", build.args(["build", "--release", "--quiet", "--package", "magpie_cli"]))?;
    let mut bench = cargo();
    bench.args(["run", "--release", "--quiet", "--package", "magpie_bench", "--"]);
    run("bench", bench.args(args))
}

/// The root of the workspace.
fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Where cargo builds; `CARGO_TARGET_DIR` moves it.
fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}
