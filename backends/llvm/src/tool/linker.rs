//! `ld.lld`, which makes a code object for AMD GPUs of an object file.

use super::process::succeed;
use super::search::{Environment, ToolPaths, named_lld};
use super::{Target, ToolError, install};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A linker, which is looked for when it is first needed.
#[derive(Debug)]
pub struct Linker {
    tools: ToolPaths,
    env: Environment,
    found: OnceLock<Result<PathBuf, ToolError>>,
}

impl Linker {
    /// The linker that the manifest or `MAGPIE_LLD_PATH` names, else the `ld.lld` with the highest
    /// version in its name or folder.
    pub fn new(tools: &ToolPaths, env: Environment) -> Linker {
        Linker { tools: tools.clone(), env, found: OnceLock::new() }
    }

    /// Whether somebody named it, so that no other is to be used.
    pub fn is_named(&self) -> bool {
        named_lld(&self.tools, &self.env).is_some()
    }

    /// The program.
    ///
    /// # Errors
    /// There is none, or the one that was named is no file.
    pub fn path(&self) -> Result<&Path, ToolError> {
        let found = self.found.get_or_init(|| find(&self.tools, &self.env));
        found.as_deref().map_err(ToolError::clone)
    }

    /// Links one object to a shared object that a driver loads.
    ///
    /// # Errors
    /// There is no linker, or it fails, or the folder for temporary files does.
    pub fn link(&self, object: &[u8]) -> Result<Vec<u8>, ToolError> {
        let program = self.path()?;
        let failed = |what: &str, e: std::io::Error| {
            let message = format!("{what} failed: {e}");
            ToolError::failed(message, "", "check the folder for temporary files (TMPDIR)")
        };
        let folder = tempfile::tempdir().map_err(|e| failed("making a temporary folder", e))?;
        let (from, to) = (folder.path().join("kernel.o"), folder.path().join("kernel.hsaco"));
        std::fs::write(&from, object).map_err(|e| failed("writing a temporary file", e))?;
        let arguments = ["-shared", "--no-undefined", "-o"].map(Path::new);
        let arguments: Vec<String> = arguments
            .into_iter()
            .chain([to.as_path(), from.as_path()])
            .map(|p| p.to_string_lossy().into_owned())
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        succeed(program, &arguments, &[])?;
        std::fs::read(&to).map_err(|_| ToolError::nonsense(program, "code object"))
    }
}

fn find(tools: &ToolPaths, env: &Environment) -> Result<PathBuf, ToolError> {
    if let Some((path, by)) = named_lld(tools, env) {
        if path.is_file() {
            return Ok(path);
        }
        let why = format!("`{}` is no file", path.display());
        return Err(install::unsuitable(Target::Amdgpu, why, by));
    }
    let found = env.programs("ld.lld");
    // Stable: the first of equals is nearest in the order of the search.
    let newest = found.into_iter().rev().max_by_key(|p| number_in(p));
    newest.ok_or_else(|| install::no_linker(Vec::new()))
}

/// The version in `…/llvm-19/bin/ld.lld` or `ld.lld-19`; 0 without one.
fn number_in(path: &Path) -> u32 {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let number = |part: std::path::Component<'_>| {
        let name = part.as_os_str().to_str()?;
        let digits = name.strip_prefix("llvm-").or_else(|| name.strip_prefix("ld.lld-"))?;
        digits.parse().ok()
    };
    real.components().filter_map(number).next_back().unwrap_or(0)
}
