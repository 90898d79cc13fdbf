//! Benchmarks, run by `cargo xtask bench [FILTER]`.
//!
//! Each benchmark is a race: its contenders take turns in one process, so that the ratio to the
//! peer holds even when the machine is slow or busy. Times of different runs are not comparable.

mod compile;
mod cuda;
mod harness;
mod kernels;
mod loops;
mod miri;
mod peers;
mod report;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::harness::{Benchmark, Budget, race};

/// Every benchmark. A new one is a row here. Those that need what a machine may lack come only when
/// they are named.
const BENCHMARKS: &[&[Benchmark]] = &[
    loops::BENCHMARKS,
    miri::BENCHMARKS,
    miri::command::BENCHMARKS,
    compile::BENCHMARKS,
    cuda::BENCHMARKS,
    miri::cuda::BENCHMARKS,
];

/// Measures contenders side by side and prints the ratio to a peer.
#[derive(Parser)]
struct Args {
    /// Run the benchmark of this name, or those whose name contains this text; all when left out
    filter: Option<String>,
    /// List the names and stop
    #[arg(long)]
    list: bool,
    /// Threads that every contender may use [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Seconds of measuring for each contender of a benchmark
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    time: f64,
    /// Also write the results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Args {
    /// Whether a benchmark is to run. The ones that need a GPU come only when they are named.
    fn wants(&self, name: &str) -> bool {
        let is_named = |benchmark: &Benchmark| Some(benchmark.name) == self.filter.as_deref();
        match &self.filter {
            Some(filter) if BENCHMARKS.iter().copied().flatten().any(is_named) => name == filter,
            Some(filter) => {
                name.contains(filter.as_str())
                    && (filter.starts_with(cuda::PREFIX) || !name.starts_with(cuda::PREFIX))
            }
            None => !name.starts_with(cuda::PREFIX),
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 3600.0 => Ok(value),
        _ => Err("must be a number of seconds, more than 0 and at most 3600".into()),
    }
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen: Vec<&Benchmark> = BENCHMARKS
        .iter()
        .copied()
        .flatten()
        .filter(|benchmark| args.list || args.wants(benchmark.name))
        .collect();
    if args.list {
        for benchmark in chosen {
            println!("{}", benchmark.name);
        }
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        eprintln!("no benchmark has this text in its name; `--list` shows them all");
        return ExitCode::from(2);
    }
    let threads = args.threads.map_or_else(all_threads, NonZeroUsize::get);
    let budget = Budget { time: Duration::from_secs_f64(args.time), min_rounds: 5 };

    println!("{}", report::machine(threads));
    let mut races = Vec::new();
    for benchmark in chosen {
        match race(benchmark, threads, budget) {
            Ok(race) => {
                print!("{}", report::table(&race));
                races.push(race);
            }
            Err(message) => {
                eprintln!("{message}");
                return ExitCode::FAILURE;
            }
        }
    }
    if let Some(path) = &args.json
        && let Err(error) = report::write_json(path, &races, threads)
    {
        eprintln!("cannot write {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// One for each core.
fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
