//! Where tools are looked for.

use super::files_like;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Tools that the manifest names (`[gpu.tools]`).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ToolPaths {
    /// `llc`.
    pub llc: Option<PathBuf>,
    /// `lld`, the linker.
    pub lld: Option<PathBuf>,
}

/// What of the process's surroundings decides about tools.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Environment {
    /// `MAGPIE_LLC_PATH`.
    pub llc: Option<PathBuf>,
    /// `MAGPIE_LLD_PATH`.
    pub lld: Option<PathBuf>,
    /// `MAGPIE_LIBLLVM_PATH`: a file, or `off`.
    pub libllvm: Option<OsString>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Folders of the platform that may have LLVM's programs.
    pub program_places: Vec<PathBuf>,
    /// Folders that may have libLLVM.
    pub library_places: Vec<PathBuf>,
}

impl Environment {
    /// The surroundings of this process.
    pub fn of_process() -> Environment {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let path = var("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
        let mut library_places: Vec<PathBuf> =
            var("LD_LIBRARY_PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
        library_places.extend(platform_libraries());
        Environment {
            llc: var("MAGPIE_LLC_PATH").map(PathBuf::from),
            lld: var("MAGPIE_LLD_PATH").map(PathBuf::from),
            libllvm: var("MAGPIE_LIBLLVM_PATH"),
            path,
            program_places: platform_programs(),
            library_places,
        }
    }

    /// Whether libLLVM is not to be loaded.
    pub(super) fn forbids_library(&self) -> bool {
        self.libllvm.as_deref() == Some(OsStr::new("off"))
    }

    /// Programs with a name, or with that name, a dash and a version: beside `clang`, in the path,
    /// in the places of the platform. Each file once.
    pub(super) fn programs(&self, name: &str) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let clang = self.path.iter().map(|p| p.join("clang")).find(|p| p.is_file());
        if let Some(real) = clang.and_then(|c| c.canonicalize().ok()) {
            folders.extend(real.parent().map(Path::to_path_buf));
        }
        folders.extend(self.path.iter().cloned());
        folders.extend(self.program_places.iter().cloned());
        let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
        for folder in folders {
            for file in files_like(&folder, &[name]) {
                if !is_program(&file, name) {
                    continue;
                }
                let Ok(real) = file.canonicalize() else { continue };
                if real.is_file() && !found.iter().any(|(_, known)| *known == real) {
                    found.push((file, real));
                }
            }
        }
        found.into_iter().map(|(file, _)| file).collect()
    }
}

/// Whether a file is called `name` or `name-19`.
fn is_program(file: &Path, name: &str) -> bool {
    let file = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let file = file.strip_suffix(".exe").unwrap_or(file);
    let Some(rest) = file.strip_prefix(name) else { return false };
    match rest.strip_prefix('-') {
        Some(version) => !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()),
        None => rest.is_empty(),
    }
}

/// The `llc` that was named, with who named it.
pub(super) fn named_llc(tools: &ToolPaths, env: &Environment) -> Option<(PathBuf, &'static str)> {
    let manifest = tools.llc.clone().map(|p| (p, "`llc` under [gpu.tools]"));
    manifest.or_else(|| Some((env.llc.clone()?, "MAGPIE_LLC_PATH")))
}

/// The linker that was named, with who named it.
pub(super) fn named_lld(tools: &ToolPaths, env: &Environment) -> Option<(PathBuf, &'static str)> {
    let manifest = tools.lld.clone().map(|p| (p, "`lld` under [gpu.tools]"));
    manifest.or_else(|| Some((env.lld.clone()?, "MAGPIE_LLD_PATH")))
}

/// Folders `llvm-*` of Debian.
fn debian_folders() -> Vec<PathBuf> {
    files_like(Path::new("/usr/lib"), &["llvm-"])
}

fn platform_programs() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    if cfg!(target_os = "macos") {
        places.extend(["/opt/homebrew/opt/llvm/bin", "/usr/local/opt/llvm/bin"].map(PathBuf::from));
        places.extend(["/opt/homebrew/opt/lld/bin", "/usr/local/opt/lld/bin"].map(PathBuf::from));
    } else {
        places.extend(debian_folders().iter().map(|f| f.join("bin")));
        places.push("/opt/rocm/llvm/bin".into());
    }
    places
}

fn platform_libraries() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    if cfg!(target_os = "macos") {
        places.extend(["/opt/homebrew/opt/llvm/lib", "/usr/local/opt/llvm/lib"].map(PathBuf::from));
    } else {
        let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        places.extend([&multiarch, "/usr/lib64", "/usr/lib", "/usr/local/lib"].map(PathBuf::from));
        places.extend(debian_folders().iter().map(|f| f.join("lib")));
        places.push("/opt/rocm/llvm/lib".into());
    }
    places
}
