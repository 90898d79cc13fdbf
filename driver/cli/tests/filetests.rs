//! The project's file tests (`tests/filetests`) and the examples of `magpie explain`, with the built
//! command as the compiler.

use magpie_diag::{Code, Severity};
use magpie_mpir::passes::run_named_pass;
use magpie_mpir::verify::{Stage, verify_module};
use magpie_mpir::{parse, print_module};
use magpie_tests::{Device, Finding, Limits, RunRequest, RunResult, Toolchain, run_process};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::time::Duration;

/// What a test may use.
const LIMITS: Limits = Limits { time: Duration::from_secs(120), output: 64 << 20 };

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    magpie_tests::main(&root, Magpie::default())
}

/// The built command.
#[derive(Default)]
struct Magpie {
    /// The drivers that have devices here.
    drivers: OnceLock<Vec<String>>,
}

impl Magpie {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_magpie"));
        command.args(args).env_remove("MAGPIE_DEVICE");
        command.env("MAGPIE_CACHE_DIR", env!("CARGO_TARGET_TMPDIR"));
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/wgpu-native");
        if std::env::var_os("MAGPIE_WGPU_LIBRARY").is_none() {
            command.env("MAGPIE_WGPU_LIBRARY", library.join("libwgpu_native.so"));
        }
        command
    }

    fn drivers_here(&self) -> Option<Vec<String>> {
        let mut command = self.command(&["devices", "--output", "json"]);
        let output = run_process(&mut command, LIMITS).ok()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let devices = report["devices"]["list"].as_array()?;
        let drivers = devices.iter().filter_map(|device| device["drivers"].as_array()).flatten();
        Some(drivers.filter_map(|driver| driver.as_str().map(str::to_string)).collect())
    }
}

impl Toolchain for Magpie {
    fn missing(&self, device: Device) -> Option<String> {
        let name = match device {
            Device::Interp | Device::Cpu | Device::Absent => return None,
            Device::Vulkan | Device::WebGpu | Device::Cuda => device.name(),
        };
        let there = self.drivers.get_or_init(|| self.drivers_here().unwrap_or_default());
        (!there.iter().any(|driver| driver == name)).then(|| format!("a {name} device"))
    }

    fn run(&self, request: &RunRequest<'_>) -> Result<RunResult, String> {
        let flags: &[&str] = match request.device {
            // The reference: kernels are interpreted, and no pass has touched host code.
            Device::Interp => &["--device", "interp", "--opt-level", "0"],
            Device::Cpu => &["--device", "cpu"],
            Device::Vulkan => &["--device", "vulkan"],
            Device::WebGpu => &["--device", "webgpu"],
            Device::Cuda => &["--device", "cuda"],
            Device::Absent => &["--gpu-fallback", "none"],
        };
        let mut command = self.command(&["run"]);
        command.args(flags).arg(request.path).arg("--").args(request.args);
        command.current_dir(request.working_dir);
        if request.device == Device::Absent {
            // Without a driver to load there is no GPU, whatever the machine.
            command.env("VK_DRIVER_FILES", "/nothing").env("VK_ICD_FILENAMES", "/nothing");
            command.env("CUDA_VISIBLE_DEVICES", "").env("HIP_VISIBLE_DEVICES", "");
            command.env("MAGPIE_WGPU_LIBRARY", "/nothing");
        }
        let output = run_process(&mut command, LIMITS)?;
        Ok(RunResult {
            exit_code: output.exit_code,
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn check(&self, path: &Path) -> Result<Vec<Finding>, String> {
        // `lint` is `check` with the digests compared.
        let mut command = self.command(&["lint", "--output", "json", "--max-errors", "1000"]);
        let output = run_process(command.arg(path), LIMITS)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {stderr}"))?;
        let diagnostics = report["diagnostics"].as_array().ok_or("a report without diagnostics")?;
        diagnostics.iter().map(finding).collect::<Option<_>>().ok_or_else(|| report.to_string())
    }

    fn pass(&self, names: &[String], text: &str) -> Result<String, String> {
        let file = magpie_diag::FileId(0);
        let describe = |errors: Vec<magpie_diag::Diagnostic>| {
            let messages: Vec<String> = errors.into_iter().map(|d| d.message).collect();
            messages.join("\n")
        };
        let mut module = parse(text, file).map_err(describe)?;
        for name in names {
            verify_module(&module, Stage::Surface).map_err(describe)?;
            run_named_pass(&mut module, name)?;
        }
        verify_module(&module, Stage::Surface).map_err(describe)?;
        Ok(print_module(&module))
    }

    fn emit(&self, target: &str, path: &Path) -> Result<String, String> {
        let (names, text) = match target {
            "spv" => ("spv,spv-text", "spvasm"),
            "msl" => ("msl", "metal"),
            "ptx" => ("ptx", "ptx"),
            "wgsl" => ("wgsl", "wgsl"),
            _ => return Err(format!("spv, msl, ptx and wgsl have text, not {target}")),
        };
        // Artifacts lie beside the program, so it is built as a copy.
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let copy = dir.path().join(path.file_name().unwrap_or_default());
        std::fs::copy(path, &copy).map_err(|error| error.to_string())?;
        // The PTX writer that is there on every machine.
        let manifest = "[gpu.ptx]\ncodegen = \"direct\"\n";
        std::fs::write(dir.path().join("Magpie.toml"), manifest).map_err(|e| e.to_string())?;
        let mut command = self.command(&["build", "--emit", names]);
        let output = run_process(command.arg(&copy).current_dir(dir.path()), LIMITS)?;
        if output.exit_code != 0 {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let written = String::from_utf8_lossy(&output.stdout).into_owned();
        let files = |extension: &str| -> Vec<PathBuf> {
            let named = written.lines().map(|name| dir.path().join(name));
            named.filter(|path| path.extension().is_some_and(|e| e == extension)).collect()
        };
        for module in files("spv") {
            validate(&module)?;
        }
        let read = |path: PathBuf| std::fs::read_to_string(path).map_err(|error| error.to_string());
        files(text).into_iter().map(read).collect()
    }
}

/// The target's own validator must accept a module.
fn validate(module: &Path) -> Result<(), String> {
    let mut command = Command::new("spirv-val");
    let output = run_process(command.args(["--target-env", "vulkan1.3"]).arg(module), LIMITS)?;
    match output.exit_code {
        0 => Ok(()),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A diagnostic of the command's report.
fn finding(diagnostic: &serde_json::Value) -> Option<Finding> {
    let severity = diagnostic["severity"].as_str()?;
    let severities = [Severity::Error, Severity::Warning, Severity::Info, Severity::Hint];
    Some(Finding {
        severity: severities.into_iter().find(|s| s.name() == severity)?,
        code: Code::parse(diagnostic["code"].as_str()?)?,
        line: diagnostic["primary_span"]["line"].as_u64().map(|line| line as u32),
        message: diagnostic["message"].as_str()?.to_string(),
    })
}
