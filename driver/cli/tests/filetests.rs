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
    vulkan: OnceLock<Option<String>>,
}

impl Magpie {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_magpie"));
        command.args(args).env_remove("MAGPIE_DEVICE");
        command.env("MAGPIE_CACHE_DIR", env!("CARGO_TARGET_TMPDIR"));
        command
    }
}

impl Toolchain for Magpie {
    fn missing(&self, device: Device) -> Option<String> {
        if device != Device::Vulkan {
            return None;
        }
        let probe = || {
            let mut command = self.command(&["devices", "--output", "json"]);
            let output = run_process(&mut command, LIMITS).ok()?;
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
            let devices = report["devices"]["list"].as_array()?;
            let is_vulkan = |d: &serde_json::Value| {
                d["drivers"].as_array().is_some_and(|all| all.iter().any(|d| d == "vulkan"))
            };
            devices.iter().any(is_vulkan).then_some(())
        };
        let missing = || probe().is_none().then(|| "a Vulkan device".to_string());
        self.vulkan.get_or_init(missing).clone()
    }

    fn run(&self, request: &RunRequest<'_>) -> Result<RunResult, String> {
        let flags: &[&str] = match request.device {
            Device::Interp => &["--device", "interp"],
            Device::Cpu => &["--device", "cpu"],
            Device::Vulkan => &["--device", "vulkan"],
            Device::Absent => &["--gpu-fallback", "none"],
        };
        let mut command = self.command(&["run"]);
        command.args(flags).arg(request.path).arg("--").args(request.args);
        command.current_dir(request.working_dir);
        if request.device == Device::Absent {
            // Without a driver to load there is no GPU, whatever the machine.
            command.env("VK_DRIVER_FILES", "/nothing").env("VK_ICD_FILENAMES", "/nothing");
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
        if target != "spv" {
            return Err(format!("this build emits spv, not {target}"));
        }
        // Artifacts lie beside the program, so it is built as a copy.
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let copy = dir.path().join(path.file_name().unwrap_or_default());
        std::fs::copy(path, &copy).map_err(|error| error.to_string())?;
        let mut command = self.command(&["build", "--emit", "spv,spv-text"]);
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
        files("spvasm").into_iter().map(read).collect()
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
