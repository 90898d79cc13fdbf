//! The command line, as clap reads it.

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use magpie_driver::{DEFAULT_MAX_ERRORS, DEFAULT_OPT_LEVEL, Fallback, LogLevel, Options};
use magpie_rt::gpu::DeviceChoice;
use magpie_types::kernel::GpuBackend;
use std::ffi::OsString;
use std::path::PathBuf;

/// Compiles and runs programs whose kernels run on GPUs and on the CPU.
#[derive(Parser, Debug)]
#[command(
    name = "magpie",
    version,
    max_term_width = 100,
    after_help = "Exit codes: that of the program run; 101 a panic of the program; 1 a program \
                  refused; 2 wrong usage; 3 something missing from this machine."
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that may stand before or after the command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global flags")]
pub(crate) struct Global {
    /// The entry module; default: `[build] entry` of Magpie.toml
    #[arg(long, global = true, value_name = "FILE")]
    entry: Option<PathBuf>,
    /// What `build` writes, for example mpir,spv,spv-text
    #[arg(long, global = true, value_name = "LIST", value_delimiter = ',')]
    pub(crate) emit: Vec<String>,
    /// Form of results and diagnostics
    #[arg(long, global = true, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) output: OutputForm,
    /// dev, release, or one of [gpu.profiles.NAME]
    #[arg(long, global = true, value_name = "NAME")]
    profile: Option<String>,
    /// Where kernels run: auto, gpu, cpu, interp, a driver (cuda, hip, metal, vulkan, webgpu), or the
    /// number of a device
    /// [env: MAGPIE_DEVICE]
    #[arg(long, global = true, value_name = "DEVICE", value_parser = DeviceChoice::parse)]
    device: Option<DeviceChoice>,
    /// Whether kernels may run on the CPU when there is no GPU
    #[arg(long, global = true, value_name = "WHERE", value_enum)]
    gpu_fallback: Option<FallbackWord>,
    /// Back ends for which portable kernels are compiled besides their own:
    /// spv, msl, ptx, hip, wgsl
    #[arg(long, global = true, value_name = "LIST", value_delimiter = ',', value_parser = backend)]
    blobs: Vec<GpuBackend>,
    /// 0: host code that is compiled fast; 1, 2 and 3: host code that runs fast
    #[arg(long, global = true, value_name = "LEVEL", default_value_t = DEFAULT_OPT_LEVEL,
          value_parser = clap::value_parser!(u8).range(..=3))]
    opt_level: u8,
    /// The machine to build for; only this one
    #[arg(long, global = true, value_name = "TRIPLE")]
    target: Option<String>,
    /// Folder of compiled kernels [env: MAGPIE_CACHE_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Errors to show
    #[arg(long, global = true, value_name = "N", default_value_t = DEFAULT_MAX_ERRORS as u32,
          value_parser = clap::value_parser!(u32).range(1..))]
    max_errors: u32,
    /// Processes to run at once; default: one a core
    #[arg(short, long, global = true, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,
    /// Colour of messages
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    /// What is said besides results
    #[arg(long, global = true, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: LogWord,
    /// Say which device and cache entries are used, and how long stages take: --log-level info
    #[arg(short, long, global = true)]
    verbose: bool,
}

/// `--output`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
pub(crate) enum OutputForm {
    /// For people
    #[default]
    Text,
    /// One object
    Json,
    /// One object a line
    Jsonl,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
enum LogWord {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogWord> for LogLevel {
    fn from(word: LogWord) -> LogLevel {
        match word {
            LogWord::Error => LogLevel::Error,
            LogWord::Warn => LogLevel::Warn,
            LogWord::Info => LogLevel::Info,
            LogWord::Debug => LogLevel::Debug,
            LogWord::Trace => LogLevel::Trace,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum FallbackWord {
    None,
    Cpu,
}

fn backend(word: &str) -> Result<GpuBackend, String> {
    let known = GpuBackend::TARGETS;
    known
        .into_iter()
        .find(|backend| backend.name() == word)
        .ok_or_else(|| format!("the back ends are {}", known.map(GpuBackend::name).join(", ")))
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Make a project in a new folder
    New {
        /// The folder; its name becomes that of the package
        name: PathBuf,
    },
    /// Compile, and write what --emit asks for
    Build {
        /// The entry module
        file: Option<PathBuf>,
        /// Where the executable goes; default: below the project's `target` folder
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The same as --profile release
        #[arg(long, conflicts_with = "profile")]
        release: bool,
    },
    /// Report what is wrong with a program
    Check {
        /// The entry module
        file: Option<PathBuf>,
    },
    /// Compile and run a program
    Run {
        /// The entry module
        file: Option<PathBuf>,
        /// Arguments of the program
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Run the functions whose names start with @test_
    Test {
        /// The entry module
        file: Option<PathBuf>,
        /// Only tests whose names contain this text
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
    },
    /// Write source files in their canonical form
    Fmt {
        /// Files, or folders to search; default: the project's modules
        files: Vec<PathBuf>,
        /// Change nothing; exit with 1 if a file would change
        #[arg(long)]
        check: bool,
        /// Add or complete `meta` blocks
        #[arg(long)]
        fix_meta: bool,
    },
    /// Report what is suspicious in a program, digests included
    Lint {
        /// The entry module
        file: Option<PathBuf>,
    },
    /// Print a Miri program with what each line costs
    Cost {
        /// The program
        file: Option<PathBuf>,
    },
    /// List the devices that can run kernels
    Devices,
    /// Say what a diagnostic code means
    Explain {
        /// For example MPT2014
        code: String,
    },
    /// Look for everything that this command can use
    Doctor,
    /// Report syntax errors of one module
    Parse {
        /// The module
        file: PathBuf,
    },
    /// Work on MPIR text
    Mpir {
        #[command(subcommand)]
        command: MpirCommand,
    },
    /// Run one test in this process
    #[command(hide = true)]
    RunTest {
        /// The entry module of the test
        file: PathBuf,
        /// Full name of the function
        name: String,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum MpirCommand {
    /// Check the structure of a module
    Verify {
        /// The `.mpir` file
        file: PathBuf,
    },
}

impl Command {
    /// The name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::New { .. } => "new",
            Command::Build { .. } => "build",
            Command::Check { .. } => "check",
            Command::Run { .. } => "run",
            Command::Test { .. } | Command::RunTest { .. } => "test",
            Command::Fmt { .. } => "fmt",
            Command::Lint { .. } => "lint",
            Command::Cost { .. } => "cost",
            Command::Devices => "devices",
            Command::Explain { .. } => "explain",
            Command::Doctor => "doctor",
            Command::Parse { .. } => "parse",
            Command::Mpir { .. } => "mpir",
        }
    }

    /// The file given, which means the same as `--entry FILE`.
    fn file(&self) -> Option<&PathBuf> {
        match self {
            Command::Build { file, .. }
            | Command::Check { file }
            | Command::Run { file, .. }
            | Command::Test { file, .. }
            | Command::Lint { file }
            | Command::Cost { file } => file.as_ref(),
            Command::Parse { file }
            | Command::RunTest { file, .. }
            | Command::Mpir { command: MpirCommand::Verify { file } } => Some(file),
            Command::New { .. }
            | Command::Fmt { .. }
            | Command::Devices
            | Command::Explain { .. }
            | Command::Doctor => None,
        }
    }
}

impl CommandLine {
    /// What the driver is asked for: flags, then the environment.
    ///
    /// # Errors
    /// What is wrong with a variable of the environment.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let Global { entry, profile, device, gpu_fallback, blobs, target, .. } = &self.global;
        let device = match device {
            Some(device) => Some(*device),
            None => device_from_environment()?,
        };
        let cache_dir = self.global.cache_dir.clone();
        let cache_dir = cache_dir.or_else(|| variable("MAGPIE_CACHE_DIR").map(PathBuf::from));
        Ok(Options {
            command: self.command.name(),
            entry: self.command.file().or(entry.as_ref()).cloned(),
            profile: match self.command {
                Command::Build { release: true, .. } => Some("release".to_string()),
                _ => profile.clone(),
            },
            out: match &self.command {
                Command::Build { out, .. } => out.clone(),
                _ => None,
            },
            opt_level: self.global.opt_level,
            target: target.clone(),
            max_errors: self.global.max_errors as usize,
            jobs: self.global.jobs.map(|n| n as usize),
            cache_dir,
            gpu_fallback: gpu_fallback.map(|word| match word {
                FallbackWord::None => Fallback::None,
                FallbackWord::Cpu => Fallback::Cpu,
            }),
            device,
            blobs: blobs.clone(),
            log_level: match self.global.verbose {
                true => LogLevel::Info.max(self.global.log_level.into()),
                false => self.global.log_level.into(),
            },
        })
    }
}

fn device_from_environment() -> Result<Option<DeviceChoice>, String> {
    let Some(value) = variable("MAGPIE_DEVICE") else { return Ok(None) };
    let word = value.to_string_lossy();
    DeviceChoice::parse(&word).map(Some).map_err(|why| format!("MAGPIE_DEVICE: {why}"))
}

/// A variable of the environment that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn global_flags_stand_before_or_after_the_command() {
        let lines = [
            "magpie --output json --device cpu -v --max-errors 3 run a.mp -- -x --device",
            "magpie run --output json --device cpu -v --max-errors 3 a.mp -- -x --device",
            "magpie --device cpu run a.mp --output=json -v --max-errors=3 -- -x --device",
        ];
        for line in lines {
            let parsed = CommandLine::try_parse_from(line.split(' ')).unwrap();
            let options = parsed.options().unwrap();
            assert_eq!(options.device, DeviceChoice::parse("cpu").ok(), "{line}");
            assert_eq!((options.max_errors, options.log_level), (3, LogLevel::Info), "{line}");
            assert_eq!(options.entry, Some("a.mp".into()));
            assert_eq!(parsed.global.output, OutputForm::Json);
            let Command::Run { args, .. } = parsed.command else { panic!("{line}") };
            assert_eq!(args, ["-x", "--device"]);
        }
    }

    #[test]
    fn a_file_is_an_entry() {
        let entry = |line: &str| {
            let parsed = CommandLine::try_parse_from(line.split(' ')).unwrap();
            parsed.options().unwrap().entry
        };
        assert_eq!(entry("magpie build --entry b.mp"), Some("b.mp".into()));
        assert_eq!(entry("magpie check a.mp --entry b.mp"), Some("a.mp".into()));
        assert_eq!(entry("magpie lint"), None);
    }
}
