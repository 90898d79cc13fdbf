//! What a user waits for: the command on a small program, and the checks of a long one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use magpie_driver::{Options, Session, check};

use crate::harness::{Benchmark, Contender, Work};

const START: &str = "magpie --version";
const DRIVER: &str = "asking for the device";
const CHECK: &str = "magpie check";

/// Lines of the program that is checked.
const LINES: usize = 2000;

pub(crate) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "miri_run_cpu",
        work: Work { amount: 1.0, unit: "run" },
        peer: START,
        tolerance: 0.0,
        contenders: |_| {
            let version = Process { name: START, args: vec!["--version".into()] };
            vec![Box::new(version), Box::new(run("magpie run add.mi", "add.mi", "cpu"))]
        },
    },
    // What is left when the start of the driver is taken off.
    Benchmark {
        name: "miri_run_vulkan",
        work: Work { amount: 1.0, unit: "run" },
        peer: DRIVER,
        tolerance: 0.0,
        contenders: |_| {
            let driver = run(DRIVER, "device.mi", "vulkan");
            vec![Box::new(driver), Box::new(run("magpie run add.mi", "add.mi", "vulkan"))]
        },
    },
    Benchmark {
        name: "miri_check",
        work: Work { amount: LINES as f64, unit: "line" },
        peer: CHECK,
        tolerance: 0.0,
        contenders: |_| vec![Box::new(Check::new())],
    },
];

/// A call of the command that was built with this program.
struct Process {
    name: &'static str,
    args: Vec<String>,
}

fn run(name: &'static str, program: &str, device: &str) -> Process {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("miri").join(program);
    let file = file.to_string_lossy().into_owned();
    Process { name, args: vec!["run".into(), "--device".into(), device.into(), file] }
}

/// The command beside this program.
fn magpie() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let magpie = here.with_file_name(format!("magpie{}", std::env::consts::EXE_SUFFIX));
    assert!(magpie.exists(), "build the command first: `cargo build --release`");
    magpie
}

impl Contender for Process {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        let status = Command::new(magpie()).args(&self.args).stdout(Stdio::null()).status();
        let status = status.unwrap_or_else(|error| panic!("{error}"));
        assert!(status.success(), "{:?} fails", self.args);
    }

    fn checksum(&self) -> f64 {
        // A call that fails is told by `run`.
        0.0
    }
}

/// The checks of a program in this process, from reading the file on.
struct Check {
    file: PathBuf,
    findings: usize,
}

impl Check {
    fn new() -> Check {
        let file = std::env::temp_dir().join(format!("magpie-bench-{}.mi", std::process::id()));
        std::fs::write(&file, program()).unwrap_or_else(|error| panic!("{error}"));
        Check { file, findings: 0 }
    }
}

impl Contender for Check {
    fn name(&self) -> &str {
        CHECK
    }

    fn run(&mut self) {
        let options = Options { entry: Some(self.file.clone()), ..Options::new("bench") };
        let mut session = Session::new(options);
        // Whether it is refused is told by the findings.
        check(&mut session).ok();
        self.findings = session.take_findings().shown.len();
        assert!(self.findings == 0, "the program has faults");
    }

    fn checksum(&self) -> f64 {
        self.findings as f64
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        // A file left in the temporary folder does no harm.
        std::fs::remove_file(&self.file).ok();
    }
}

/// A program of structs, functions of the host, and kernels.
fn program() -> String {
    let mut text = String::new();
    let mut calls = String::new();
    for n in 0..LINES / 20 {
        text += &format!(
            "struct Pair{n}
    left int
    right f32

fn make{n}(k int) Pair{n}: Pair{n}(k + {n}, (k as f32) * 0.5)

fn step{n}(x f32) f32: x * {n}.5 + 1.0 if x < 10.0 else x

fn work{n}(size int) f32
    let right = make{n}(size).right
    gpu var data = Array<f32, 64>()
    forall i in 0..64
        data[i] = step{n}(i as f32) + right
    let back = data
    var total f32 = 0.0
    for x in back
        total += x
    total

"
        );
        calls += &format!("    total += work{n}({n})\n");
    }
    text + "fn main()\n    var total f32 = 0.0\n" + &calls + "    println(f\"{total}\")\n"
}
