//! Miri programs of `bench/miri`: loops on the host beside the same in Rust, and launches on an
//! NVIDIA GPU beside the driver's own.

pub(crate) mod command;
pub(crate) mod cuda;
mod driver;
mod rust;

use std::path::{Path, PathBuf};

use magpie_driver::{Options, Runnable, Session, prepare_run};
use magpie_rt::gpu::{DeviceChoice, DriverKind};
use magpie_rt::program_stack::with_program_stack;

use crate::harness::{Benchmark, Contender, Work};

/// The peer of the loops on the host.
const PEER: &str = "rust";

/// Loops on the host. What is counted is what the innermost loop does in all its rounds; both
/// contenders make their data themselves.
pub(crate) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "miri_host_sum",
        work: Work { amount: 262_144.0 * 100.0, unit: "element" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("sum.mi", rust::sum),
    },
    Benchmark {
        name: "miri_host_saxpy",
        work: Work { amount: 262_144.0 * 100.0, unit: "element" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("saxpy.mi", rust::saxpy),
    },
    Benchmark {
        name: "miri_host_sieve",
        work: Work { amount: 2e6, unit: "number" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("sieve.mi", rust::sieve),
    },
    Benchmark {
        name: "miri_host_matmul",
        work: Work { amount: 2.0 * 256.0 * 256.0 * 256.0, unit: "flop" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("matmul.mi", rust::matmul),
    },
    Benchmark {
        name: "miri_host_mandelbrot",
        work: Work { amount: 300.0 * 300.0, unit: "pixel" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("mandelbrot.mi", rust::mandelbrot),
    },
    Benchmark {
        name: "miri_host_text",
        work: Work { amount: 1_488_890.0, unit: "B" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("text.mi", rust::text),
    },
    Benchmark {
        name: "miri_host_structs",
        work: Work { amount: 64.0 * 64.0 * 100.0, unit: "body" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("structs.mi", rust::structs),
    },
    Benchmark {
        name: "miri_host_sort",
        work: Work { amount: 3000.0 * 2999.0 / 2.0, unit: "comparison" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("sort.mi", rust::sort),
    },
    Benchmark {
        name: "miri_host_words",
        work: Work { amount: 20_000.0, unit: "word" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("words.mi", rust::words),
    },
    Benchmark {
        name: "miri_host_counts",
        work: Work { amount: 200_000.0, unit: "number" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("counts.mi", rust::counts),
    },
    Benchmark {
        name: "miri_host_stack",
        work: Work { amount: 600_000.0, unit: "call" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("stack.mi", rust::stack),
    },
    Benchmark {
        name: "miri_host_methods",
        work: Work { amount: 1e6, unit: "call" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("methods.mi", rust::methods),
    },
    Benchmark {
        name: "miri_host_enums",
        work: Work { amount: 200_000.0, unit: "match" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("enums.mi", rust::enums),
    },
    Benchmark {
        name: "miri_host_options",
        work: Work { amount: 1.5e6, unit: "call" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("options.mi", rust::options),
    },
    Benchmark {
        name: "miri_host_parse",
        work: Work { amount: 50_000.0, unit: "number" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("parse.mi", rust::parse),
    },
    Benchmark {
        name: "miri_host_particles",
        work: Work { amount: 100_000.0, unit: "particle" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("particles.mi", rust::particles),
    },
    Benchmark {
        name: "miri_host_grid",
        work: Work { amount: 5.0 * 298.0 * 298.0, unit: "point" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("grid.mi", rust::grid),
    },
    Benchmark {
        name: "miri_host_chars",
        work: Work { amount: 425_000.0, unit: "character" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders("chars.mi", rust::chars),
    },
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
