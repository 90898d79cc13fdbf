//! libLLVM in this process, through its C API.

mod api;
mod compile;
mod machine;

use super::search::Environment;
use super::version::Version;
use super::{Target, ToolError, files_like, install};
use crate::flavor::MIN_LLVM;
use api::Api;
use machine::Machines;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The help that goes with a libLLVM that fails.
const FAILED_HELP: &str = "set MAGPIE_LIBLLVM_PATH=off to use `llc` instead, or to the path of \
                           another libLLVM; or report it with the program";

/// A loaded libLLVM. It is never unloaded: LLVM registers things for the life of the process.
pub(super) struct Library {
    api: Api,
    handle: libloading::Library,
    path: PathBuf,
    version: Version,
    /// Targets that were initialised.
    targets: Mutex<Vec<Target>>,
    machines: Machines,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "libLLVM {} at {}", self.version, self.path.display())
    }
}

/// Every library that was loaded.
static LOADED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// What a search came to. It holds for the life of the process, as libraries stay.
struct Found {
    target: Target,
    places: Vec<PathBuf>,
    library: &'static Library,
}

static FOUND: Mutex<Vec<Found>> = Mutex::new(Vec::new());

impl Library {
    /// The newest libLLVM with the target, if there is one; adds why others will not do.
    pub(super) fn find(
        target: Target,
        env: &Environment,
        rejected: &mut Vec<String>,
    ) -> Result<Option<&'static Library>, ToolError> {
        if env.forbids_library() {
            return Ok(None);
        }
        if let Some(named) = &env.libllvm {
            let library = Library::open(Path::new(named), target)
                .map_err(|why| install::unsuitable(target, why, "MAGPIE_LIBLLVM_PATH"))?;
            return Ok(Some(library));
        }
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(f) = found.iter().find(|f| f.target == target && f.places == env.library_places)
        {
            return Ok(Some(f.library));
        }
        for path in candidates(env) {
            match Library::open(&path, target) {
                Ok(library) => {
                    found.push(Found { target, places: env.library_places.clone(), library });
                    return Ok(Some(library));
                }
                Err(why) => rejected.push(why),
            }
        }
        Ok(None)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Loads a library, or finds it among those that are loaded, and initialises the target.
    fn open(path: &Path, target: Target) -> Result<&'static Library, String> {
        let file = path.display();
        let real = path.canonicalize().map_err(|e| format!("`{file}`: {e}"))?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let library = match loaded.iter().find(|l| l.path == real) {
            Some(library) => library,
            None => {
                let library = Library::load(&real)?;
                loaded.push(Box::leak(Box::new(library)));
                loaded[loaded.len() - 1]
            }
        };
        if library.version.major < MIN_LLVM {
            let version = library.version;
            return Err(format!("`{file}` is LLVM {version}, older than {MIN_LLVM}"));
        }
        library.initialize(target)?;
        Ok(library)
    }

    fn load(path: &Path) -> Result<Library, String> {
        let file = path.display();
        keep_memory();
        // SAFETY: LLVM's initialisers only register things of its own.
        let handle = unsafe { libloading::Library::new(path) }
            .map_err(|e| format!("`{file}` cannot be loaded: {e}"))?;
        // SAFETY: the C API of LLVM is stable from the version on that has these names; a library
        // that is not LLVM's has none of them.
        let api = unsafe { Api::load(&handle) }.map_err(|name| {
            format!("`{file}` lacks `{name}`: it is no LLVM {MIN_LLVM} or newer")
        })?;
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: three places to write to.
        unsafe { (api.LLVMGetVersion)(&mut major, &mut minor, &mut patch) };
        // SAFETY: the handler is a function that stays.
        unsafe { (api.LLVMInstallFatalErrorHandler)(compile::report_fatal) };
        let version = Version { major, minor, patch };
        let (path, targets) = (path.into(), Mutex::default());
        Ok(Library { api, handle, path, version, targets, machines: Machines::default() })
    }

    /// Makes a target known to the library, once.
    fn initialize(&self, target: Target) -> Result<(), String> {
        let mut done = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if done.contains(&target) {
            return Ok(());
        }
        for part in ["TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"] {
            // NVPTX cannot parse its assembly, which nothing needs.
            if (target, part) == (Target::Nvptx, "AsmParser") {
                continue;
            }
            let name = format!("LLVMInitialize{}{part}\0", target.name());
            // SAFETY: these functions take nothing and give nothing.
            let initialize = unsafe { self.handle.get::<unsafe extern "C" fn()>(&name) };
            let initialize = initialize.map_err(|_| {
                let (file, version) = (self.path.display(), self.version);
                format!("`{file}` (LLVM {version}) has no {} target", target.name())
            })?;
            // SAFETY: as above; the lock keeps others from doing the same at once.
            unsafe { initialize() };
        }
        done.push(target);
        Ok(())
    }

    fn failed(&self, what: &str, said: &str) -> ToolError {
        ToolError::failed(format!("{} {what}", self.name()), said, FAILED_HELP)
    }

    /// Version and file, for messages.
    fn name(&self) -> String {
        format!("LLVM {} (`{}`)", self.version, self.path.display())
    }

    /// A message of LLVM, which is then freed.
    fn take(&self, message: *mut c_char) -> String {
        if message.is_null() {
            return String::new();
        }
        // SAFETY: a message ends in a zero and is ours to free.
        unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.api.LLVMDisposeMessage)(message);
            text
        }
    }
}

/// LLVM takes some megabytes for each function and frees them. The C library of Linux gives them back
/// to the system each time, and gets them again page by page, which took a fifth of a compilation: it
/// is to keep some.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory() {
    const KEPT: std::ffi::c_int = 64 << 20;
    // SAFETY: this only sets limits of the allocator.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT / 2);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_memory() {}

/// Files that may be libLLVM, the newest first; each once.
fn candidates(env: &Environment) -> Vec<PathBuf> {
    let mut found: Vec<(Option<Version>, PathBuf)> = Vec::new();
    for folder in &env.library_places {
        for file in files_like(folder, &["libLLVM.so.", "libLLVM-", "libLLVM.dylib"]) {
            let Ok(real) = file.canonicalize() else { continue };
            let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let version = Version::of_library(name);
            let is_old = version.is_some_and(|v| v.major < MIN_LLVM);
            // `libLLVM-C.so` and static parts have no version.
            let is_library = version.is_some() || name == "libLLVM.dylib";
            if is_library && !is_old && !found.iter().any(|(_, known)| *known == real) {
                found.push((version, real));
            }
        }
    }
    // Stable: among equals the order of the folders.
    found.sort_by_key(|f| std::cmp::Reverse(f.0));
    found.into_iter().map(|(_, path)| path).collect()
}
