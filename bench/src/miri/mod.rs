//! Miri programs of `bench/miri`: loops on the host beside the same in Rust, and launches on an
//! NVIDIA GPU beside the driver's own.

pub(crate) mod command;
pub(crate) mod cuda;
mod driver;
mod rust;
mod rust_calls;
mod rust_loops;
mod rust_objects;
mod rust_texts;
mod rust_values;

use std::path::{Path, PathBuf};

use magpie_driver::{Options, Runnable, Session, prepare_run};
use magpie_rt::gpu::{DeviceChoice, DriverKind};
use magpie_rt::program_stack::with_program_stack;

use crate::harness::{Benchmark, Contender, Work};

/// The peer of the loops on the host.
const PEER: &str = "rust";

/// A row of the table: `bench/miri/NAME.mi` beside a function in Rust.
macro_rules! host {
    ($name:ident, $amount:expr, $unit:literal, $peer:path) => {
        Benchmark {
            name: concat!("miri_host_", stringify!($name)),
            work: Work { amount: $amount, unit: $unit },
            peer: PEER,
            tolerance: 0.0,
            contenders: |_| contenders(concat!(stringify!($name), ".mi"), $peer),
        }
    };
}

/// The elements of most lists.
const LIST: f64 = 262_144.0;

/// Loops on the host. What is counted is what the innermost loop does in all its rounds; both
/// contenders make their data themselves.
pub(crate) const BENCHMARKS: &[Benchmark] = &[
    host!(sum, LIST * 100.0, "element", rust::sum),
    host!(saxpy, LIST * 100.0, "element", rust::saxpy),
    host!(sieve, 2e6, "number", rust::sieve),
    host!(matmul, 2.0 * 256.0 * 256.0 * 256.0, "flop", rust::matmul),
    host!(mandelbrot, 300.0 * 300.0, "pixel", rust::mandelbrot),
    host!(text, 1_488_890.0, "B", rust::text),
    host!(structs, 64.0 * 64.0 * 100.0, "body", rust::structs),
    host!(sort, 3000.0 * 2999.0 / 2.0, "comparison", rust::sort),
    host!(dot, LIST * 100.0, "element", rust_loops::dot),
    host!(prefix, LIST * 100.0, "element", rust_loops::prefix),
    host!(largest, LIST * 100.0, "element", rust_loops::largest),
    host!(count, LIST * 100.0, "element", rust_loops::count),
    host!(clamp, LIST * 50.0, "element", rust_loops::clamp),
    host!(histogram, LIST * 20.0, "element", rust_loops::histogram),
    host!(stencil, 510.0 * 510.0 * 40.0, "point", rust_loops::stencil),
    host!(points, 1e5 * 100.0, "point", rust_loops::points),
    host!(calls, LIST * 50.0, "element", rust_loops::calls),
    host!(fibonacci, 7_049_155.0, "call", rust_loops::fibonacci),
    host!(collatz, 3e5, "number", rust_loops::collatz),
    host!(words, 20_000.0, "word", rust::words),
    host!(counts, 200_000.0, "number", rust::counts),
    host!(stack, 600_000.0, "call", rust::stack),
    host!(methods, 1e6, "call", rust::methods),
    host!(enums, 200_000.0, "match", rust::enums),
    host!(options, 1.5e6, "call", rust::options),
    host!(life, 1.6e6, "cell", rust_loops::life),
    host!(recursion, 1.0, "run", rust_calls::recursion),
    host!(tuples, 2e4, "round", rust_calls::tuples),
    host!(parse, 50_000.0, "number", rust::parse),
    host!(particles, 100_000.0, "particle", rust::particles),
    host!(grid, 5.0 * 298.0 * 298.0, "point", rust::grid),
    host!(pipeline, 1e7, "element", rust_values::pipeline),
    host!(closures, 2e6, "call", rust_values::closures),
    host!(variants, 2e6, "match", rust_values::variants),
    host!(copies, 5e5, "copy", rust_values::copies),
    host!(queues, 8e6, "call", rust_objects::queues),
    host!(people, 2e5, "struct", rust_objects::people),
    host!(search, 10.0 * 40_000.0, "cell", rust_objects::search),
    host!(events, 100.0, "round", rust_objects::events),
    host!(heaps, 4e5, "call", rust_objects::heaps),
    host!(chars, 430_000.0, "character", rust_texts::chars),
    host!(tokens, 45_000.0, "token", rust_texts::tokens),
    host!(brackets, 600_000.0, "character", rust_texts::brackets),
    host!(letters, 430_000.0, "character", rust_texts::letters),
    host!(backwards, 430_000.0, "character", rust_texts::backwards),
    host!(occurrences, 8.0 * 430_000.0, "character", rust_texts::occurrences),
    host!(cipher, 430_000.0, "character", rust_texts::cipher),
    host!(charlist, 430_000.0, "character", rust_texts::charlist),
    host!(rows, 90_000.0, "place", rust_texts::rows),
    host!(positions, 430_000.0, "character", rust_texts::positions),
    host!(stackmachine, 60_001.0, "token", rust_texts::stackmachine),
];

fn contenders(program: &str, peer: fn() -> f64) -> Vec<Box<dyn Contender>> {
    let peer = Peer { run: peer, result: f64::NAN };
    vec![Box::new(peer), Box::new(Program::new("miri", program, DriverKind::Cpu))]
}

/// The same in Rust.
struct Peer {
    run: fn() -> f64,
    result: f64,
}

impl Contender for Peer {
    fn name(&self) -> &str {
        PEER
    }

    fn run(&mut self) {
        // A program gets a thread of its own; so does its peer.
        let run = self.run;
        self.result = with_program_stack(run);
    }

    fn checksum(&self) -> f64 {
        self.result
    }
}

/// A Miri program that writes its result, a number, to the file it is told.
struct Program {
    name: &'static str,
    main: Runnable,
    result: PathBuf,
}

impl Program {
    /// # Panics
    /// When the program does not compile or the device is missing: then there is nothing to measure.
    fn new(name: &'static str, program: &str, device: DriverKind) -> Program {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("miri").join(program);
        let mut session = Session::new(Options {
            entry: Some(file),
            device: Some(DeviceChoice::Driver(device)),
            ..Options::new("bench")
        });
        let main = prepare_run(&mut session);
        let main = main.unwrap_or_else(|_| panic!("{program}: {:?}", session.take_findings()));
        let result = format!("magpie-bench-{}-{program}.txt", std::process::id());
        Program { name, main, result: std::env::temp_dir().join(result) }
    }
}

impl Contender for Program {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        self.main.call(vec![self.result.to_string_lossy().into_owned()]);
    }

    fn checksum(&self) -> f64 {
        let text = std::fs::read_to_string(&self.result).unwrap_or_else(|error| panic!("{error}"));
        text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A file left in the temporary folder does no harm.
        std::fs::remove_file(&self.result).ok();
    }
}
