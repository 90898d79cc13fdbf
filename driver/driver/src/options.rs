//! What the command line and the environment ask for.

use magpie_rt::gpu::DeviceChoice;
use magpie_types::kernel::GpuBackend;
use std::path::PathBuf;

/// Whether kernels may run on the CPU when there is no GPU: `--gpu-fallback`, `[gpu] fallback`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// No device is an error that the program sees.
    None,
    /// The CPU device counts as a device.
    Cpu,
}

/// How much is said on standard error: `--log-level`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum LogLevel {
    /// Errors only.
    Error,
    /// Warnings too.
    #[default]
    Warn,
    /// Also which device, which cache entries, and how long stages take.
    Info,
    /// All that there is; today what [`LogLevel::Info`] says.
    Debug,
    /// As [`LogLevel::Debug`].
    Trace,
}

/// The global flags.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The command's name, for reports.
    pub command: &'static str,
    /// `--entry FILE`, or the file that the command was given.
    pub entry: Option<PathBuf>,
    /// `--profile NAME`.
    pub profile: Option<String>,
    /// `--out FILE`: where `build` writes the executable.
    pub out: Option<PathBuf>,
    /// `--opt-level`: 0 for host code that is made fast, else host code that runs fast. Kernels are
    /// the same in both.
    pub opt_level: u8,
    /// `--target TRIPLE`.
    pub target: Option<String>,
    /// `--max-errors N`: errors that are shown.
    pub max_errors: usize,
    /// `--jobs N`: threads that compile and processes that test at once; `None` for one a core.
    pub jobs: Option<usize>,
    /// `--cache-dir DIR` or `MAGPIE_CACHE_DIR`.
    pub cache_dir: Option<PathBuf>,
    /// `--gpu-fallback`.
    pub gpu_fallback: Option<Fallback>,
    /// `--device` or `MAGPIE_DEVICE`.
    pub device: Option<DeviceChoice>,
    /// `--blobs LIST`: back ends whose blobs portable kernels get besides that of their target.
    pub blobs: Vec<GpuBackend>,
    /// `--log-level`; `-v` asks for [`LogLevel::Info`].
    pub log_level: LogLevel,
}

impl Options {
    /// The default of every flag.
    pub fn new(command: &'static str) -> Options {
        Options {
            command,
            entry: None,
            profile: None,
            out: None,
            opt_level: DEFAULT_OPT_LEVEL,
            target: None,
            max_errors: DEFAULT_MAX_ERRORS,
            jobs: None,
            cache_dir: None,
            gpu_fallback: None,
            device: None,
            blobs: Vec::new(),
            log_level: LogLevel::default(),
        }
    }

    /// Whether what is done is said.
    pub fn is_verbose(&self) -> bool {
        self.log_level >= LogLevel::Info
    }

    /// How much is done at the same time: `--jobs`, or the cores of the machine.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cores).max(1)
    }
}

/// Host code runs fast unless `--opt-level` says otherwise.
pub const DEFAULT_OPT_LEVEL: u8 = 2;

/// Errors shown unless `--max-errors` says otherwise.
pub const DEFAULT_MAX_ERRORS: usize = 20;
