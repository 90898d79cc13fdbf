//! What a compiler must offer so that the harness can test it.

use std::fmt;
use std::path::Path;

use magpie_diag::{Code, Severity};

/// Where the kernels of a program run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Device {
    /// The reference interpreter.
    Interp,
    /// The CPU device.
    Cpu,
    /// A Vulkan device; a software one will do.
    Vulkan,
    /// A WebGPU device; a software one will do.
    WebGpu,
    /// An NVIDIA GPU by CUDA, where there is one.
    Cuda,
    /// No device: none is visible and the CPU is no fallback.
    Absent,
}

impl Device {
    /// The devices on which a program runs unless it names its own. All must give the same output.
    pub const MATRIX: &[Device] =
        &[Device::Interp, Device::Cpu, Device::Vulkan, Device::WebGpu, Device::Cuda];

    /// The name in test names and in `devices:`.
    pub fn name(self) -> &'static str {
        match self {
            Device::Interp => "interp",
            Device::Cpu => "cpu",
            Device::Vulkan => "vulkan",
            Device::WebGpu => "webgpu",
            Device::Cuda => "cuda",
            Device::Absent => "none",
        }
    }

    /// The device of a name.
    pub fn parse(name: &str) -> Option<Device> {
        let all = Device::MATRIX.iter().copied().chain([Device::Absent]);
        all.into_iter().find(|device| device.name() == name)
    }

    /// Whether a machine without it can run the tests: it cannot be installed.
    pub fn is_optional(self) -> bool {
        self == Device::Cuda
    }
}

/// One run of a program.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'a> {
    /// The program, as an absolute path.
    pub path: &'a Path,
    /// Where kernels run. Other devices must not be used, not even when this one fails.
    pub device: Device,
    /// What follows `--` on the command line.
    pub args: &'a [String],
    /// An empty folder to run in.
    pub working_dir: &'a Path,
}

/// How a program ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunResult {
    /// The exit code of the process.
    pub exit_code: i32,
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error; shown when the test fails, never compared.
    pub stderr: String,
}

/// A diagnostic as the compiler reported it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Its code.
    pub code: Code,
    /// The line of its primary span, from 1; `None` without source.
    pub line: Option<u32>,
    /// Its message; shown when the test fails, never compared.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.severity.name(), self.code)?;
        match self.line {
            Some(line) => write!(f, "at line {line}: {}", self.message),
            None => write!(f, "without source: {}", self.message),
        }
    }
}

/// The compiler under test. An `Err` is a failure of the test, with its reason.
pub trait Toolchain: Send + Sync {
    /// What is missing for a device to be used here, such as `a Vulkan driver`.
    fn missing(&self, device: Device) -> Option<String>;

    /// Compiles and runs a program.
    fn run(&self, request: &RunRequest<'_>) -> Result<RunResult, String>;

    /// Compiles a program (or reads and verifies `.mpir` text) for every target it names and
    /// returns all diagnostics.
    fn check(&self, path: &Path) -> Result<Vec<Finding>, String>;

    /// Runs passes over MPIR text, in order, and prints the result.
    fn pass(&self, names: &[String], text: &str) -> Result<String, String>;

    /// Emits a program for a target, as text (SPIR-V: disassembled), after the target's own
    /// validator has accepted it.
    fn emit(&self, target: &str, path: &Path) -> Result<String, String>;
}
