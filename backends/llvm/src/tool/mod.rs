//! The LLVM of the machine: found, checked, and run.
//!
//! An explicitly named `llc` (manifest, then `MAGPIE_LLC_PATH`) is used and nothing else. Otherwise
//! libLLVM is loaded into the process when there is one (`MAGPIE_LIBLLVM_PATH` names it, `off`
//! forbids it); otherwise `llc` and `opt` run as processes: beside the `clang` in the path, in the
//! path, in the places of the platform. Among several the newest that has the target wins.

mod error;
mod install;
mod library;
mod linker;
mod process;
mod search;
mod version;

pub use error::ToolError;
pub use linker::Linker;
pub use process::succeed as run_tool;
pub use search::{Environment, ToolPaths};
pub use version::Version;

use library::Library;
use process::Tools;
use std::path::{Path, PathBuf};

/// A code generator that an LLVM may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// NVIDIA GPUs.
    Nvptx,
    /// AMD GPUs.
    Amdgpu,
}

impl Target {
    /// The name that LLVM's functions have in them.
    pub fn name(self) -> &'static str {
        match self {
            Target::Nvptx => "NVPTX",
            Target::Amdgpu => "AMDGPU",
        }
    }

    /// The word under "Registered Targets" of `llc --version`.
    fn word(self) -> &'static str {
        match self {
            Target::Nvptx => "nvptx64",
            Target::Amdgpu => "amdgcn",
        }
    }
}

/// What a module becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Text for an assembler.
    Assembly,
    /// An ELF object.
    Object,
}

/// A module and what it is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The module as text.
    pub ir: &'a str,
    /// Its target triple.
    pub triple: &'a str,
    /// The processor: `sm_70`, `gfx90a`.
    pub cpu: &'a str,
    /// Features of the processor: `+ptx65`.
    pub features: &'a str,
    #[allow(missing_docs)]
    pub output: Output,
}

/// An LLVM that has a target.
#[derive(Debug)]
pub struct Llvm {
    engine: Engine,
    version: Version,
}

#[derive(Debug)]
enum Engine {
    Library(&'static Library),
    Tools(Tools),
}

impl Llvm {
    /// Finds the LLVM to use for a target.
    ///
    /// # Errors
    /// There is none, or one that was named explicitly does not do: with what was looked at, and
    /// how to install one.
    pub fn find(target: Target, tools: &ToolPaths, env: &Environment) -> Result<Llvm, ToolError> {
        if let Some((named, by)) = search::named_llc(tools, env) {
            let tools = Tools::named(&named, by, target)?;
            return Ok(Llvm { version: tools.version(), engine: Engine::Tools(tools) });
        }
        let mut rejected = Vec::new();
        if let Some(library) = Library::find(target, env, &mut rejected)? {
            return Ok(Llvm { version: library.version(), engine: Engine::Library(library) });
        }
        match Tools::find(target, env, &mut rejected) {
            Some(tools) => Ok(Llvm { version: tools.version(), engine: Engine::Tools(tools) }),
            None => Err(install::not_found(target, rejected)),
        }
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The library or program.
    pub fn path(&self) -> &Path {
        match &self.engine {
            Engine::Library(library) => library.path(),
            Engine::Tools(tools) => tools.llc(),
        }
    }

    /// Whether it runs inside this process.
    pub fn is_in_process(&self) -> bool {
        matches!(self.engine, Engine::Library(_))
    }

    /// Optimises a module (`-O3`) and generates its code.
    ///
    /// # Errors
    /// LLVM refuses the module, fails, or gives something else.
    pub fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, ToolError> {
        let code = match &self.engine {
            Engine::Library(library) => library.compile(job)?,
            Engine::Tools(tools) => tools.compile(job)?,
        };
        let is_code = match job.output {
            Output::Assembly => code.is_ascii() && code.iter().any(|b| !b.is_ascii_whitespace()),
            Output::Object => code.starts_with(b"\x7fELF"),
        };
        match is_code {
            true => Ok(code),
            false => Err(ToolError::nonsense(self.path(), "code")),
        }
    }
}

/// The files in a folder whose name begins with one of the prefixes, in the order of their names.
fn files_like(folder: &Path, prefixes: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| {
            let name = p.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            prefixes.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect();
    found.sort();
    found
}
