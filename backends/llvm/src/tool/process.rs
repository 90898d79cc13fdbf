//! `llc` and `opt` as processes.

use super::search::Environment;
use super::version::Version;
use super::{Job, Output, Target, ToolError, install};
use crate::flavor::MIN_LLVM;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A tool that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The help that goes with a tool that fails.
const FAILED_HELP: &str = "this LLVM may be too old or broken: name another in [gpu.tools] or \
                           MAGPIE_LLC_PATH, or report it with the program";

/// An `llc`, and the `opt` beside it when there is one.
#[derive(Debug)]
pub(super) struct Tools {
    llc: PathBuf,
    opt: Option<PathBuf>,
    version: Version,
}

impl Tools {
    /// The `llc` that somebody named.
    pub(super) fn named(llc: &Path, named_by: &str, target: Target) -> Result<Tools, ToolError> {
        let version =
            check(llc, target).map_err(|why| install::unsuitable(target, why, named_by))?;
        Ok(Tools::of(llc.to_path_buf(), version))
    }

    /// The newest `llc` with the target; adds why others will not do.
    pub(super) fn find(
        target: Target,
        env: &Environment,
        rejected: &mut Vec<String>,
    ) -> Option<Tools> {
        let mut best: Option<(Version, PathBuf)> = None;
        for llc in env.programs("llc") {
            match check(&llc, target) {
                // The first of equals is nearest in the order of the search.
                Ok(version) if best.as_ref().is_none_or(|b| version > b.0) => {
                    best = Some((version, llc));
                }
                Ok(_) => {}
                Err(why) => rejected.push(why),
            }
        }
        best.map(|(version, llc)| Tools::of(llc, version))
    }

    fn of(llc: PathBuf, version: Version) -> Tools {
        let opt = llc.file_name().and_then(|n| n.to_str()).and_then(|name| {
            let opt = llc.with_file_name(format!("opt{}", name.strip_prefix("llc")?));
            opt.is_file().then_some(opt)
        });
        Tools { llc, opt, version }
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn llc(&self) -> &Path {
        &self.llc
    }

    /// Optimises and generates code. Without an `opt` only what `llc` itself does is done.
    pub(super) fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, ToolError> {
        let arguments = [
            format!("-march={}", job.triple.split('-').next().unwrap_or_default()),
            format!("-mcpu={}", job.cpu),
            format!("-mattr={}", job.features),
            "-O3".to_string(),
            "-o".to_string(),
            "-".to_string(),
            "-".to_string(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut module = job.ir.as_bytes().to_vec();
        if let Some(opt) = &self.opt {
            module = succeed(opt, &arguments, &module)?;
        }
        let kind = match job.output {
            Output::Assembly => "-filetype=asm",
            Output::Object => "-filetype=obj",
        };
        succeed(&self.llc, &[&[kind], &arguments[..]].concat(), &module)
    }
}

/// The version of an `llc` that is new enough and has the target, else why it does not do.
fn check(llc: &Path, target: Target) -> Result<Version, String> {
    let file = llc.display();
    let done = run(llc, &["--version"], &[]).map_err(|e| e.message)?;
    let text = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() {
        return Err(format!("`{file} --version` failed: {}", done.status));
    }
    let Some(version) = Version::printed(&text) else {
        return Err(format!("`{file}` is no LLVM tool: it tells no LLVM version"));
    };
    if version.major < MIN_LLVM {
        return Err(format!("`{file}` is LLVM {version}, older than {MIN_LLVM}"));
    }
    if !text.lines().any(|l| l.split_whitespace().next() == Some(target.word())) {
        return Err(format!("`{file}` (LLVM {version}) has no {} target", target.name()));
    }
    Ok(version)
}

/// What a program did.
pub(super) struct Done {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// The standard output of a program that ended well.
///
/// # Errors
/// It cannot be run, hangs, crashes or fails: with what it said.
pub fn succeed(program: &Path, args: &[&str], input: &[u8]) -> Result<Vec<u8>, ToolError> {
    let done = run(program, args, input)?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let message = format!("`{}` failed: {}", program.display(), done.status);
    Err(ToolError::failed(message, &String::from_utf8_lossy(&done.stderr), FAILED_HELP))
}

/// Runs a program on an input.
pub(super) fn run(program: &Path, args: &[&str], input: &[u8]) -> Result<Done, ToolError> {
    let failed = |what: &str, e: std::io::Error| {
        let message = format!("`{}` {what}: {e}", program.display());
        ToolError::failed(message, "", FAILED_HELP)
    };
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed("cannot be run", e))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A tool that refuses its input early closes it.
            let _ = stdin.map(|mut s| s.write_all(input));
        });
        let stdout = scope.spawn(move || read_all(stdout));
        let stderr = scope.spawn(move || read_all(stderr));
        let status = wait(&mut child);
        let (stdout, stderr) = (stdout.join(), stderr.join());
        match status {
            Ok(Some(status)) => Ok(Done {
                status,
                stdout: stdout.unwrap_or_default(),
                stderr: stderr.unwrap_or_default(),
            }),
            Ok(None) => {
                let seconds = PATIENCE.as_secs();
                let message = format!("`{}` did not end in {seconds} seconds", program.display());
                Err(ToolError::failed(message, "", FAILED_HELP))
            }
            Err(e) => Err(failed("cannot be waited for", e)),
        }
    })
}

fn read_all(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before a fault is all there is.
    let _ = stream.map(|mut s| s.read_to_end(&mut bytes));
    bytes
}

/// Waits for a process; one that hangs is ended, and gives `None`.
fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}
