//! libLLVM in this process, through its C API.

use super::search::Environment;
use super::version::Version;
use super::{Job, Output, Target, ToolError, files_like, install};
use crate::flavor::MIN_LLVM;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

type Ref = *mut c_void;

/// The help that goes with a libLLVM that fails.
const FAILED_HELP: &str = "set MAGPIE_LIBLLVM_PATH=off to use `llc` instead, or to the path of \
                           another libLLVM; or report it with the program";

macro_rules! api {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that are called, under their C names.
        #[allow(non_snake_case)]
        struct Api { $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)* }

        impl Api {
            /// Looks all functions up; the name of the first that is missing else.
            ///
            /// # Safety
            /// The library is LLVM's, of a version with these signatures.
            unsafe fn load(library: &libloading::Library) -> Result<Api, &'static str> {
                // SAFETY: the caller vouches for the signatures; the library stays loaded.
                unsafe {
                    Ok(Api { $($name: *library
                        .get(concat!(stringify!($name), "\0"))
                        .map_err(|_| stringify!($name))?,)* })
                }
            }
        }
    };
}

api! {
    LLVMGetVersion: fn(*mut c_uint, *mut c_uint, *mut c_uint);
    LLVMInstallFatalErrorHandler: fn(extern "C" fn(*const c_char));
    LLVMContextCreate: fn() -> Ref;
    LLVMContextDispose: fn(Ref);
    LLVMContextSetDiagnosticHandler: fn(Ref, extern "C" fn(Ref, *mut c_void), *mut c_void);
    LLVMGetDiagInfoDescription: fn(Ref) -> *mut c_char;
    LLVMGetDiagInfoSeverity: fn(Ref) -> c_int;
    LLVMCreateMemoryBufferWithMemoryRangeCopy: fn(*const c_char, usize, *const c_char) -> Ref;
    LLVMParseIRInContext: fn(Ref, Ref, *mut Ref, *mut *mut c_char) -> c_int;
    LLVMDisposeModule: fn(Ref);
    LLVMDisposeMessage: fn(*mut c_char);
    LLVMVerifyModule: fn(Ref, c_int, *mut *mut c_char) -> c_int;
    LLVMGetTargetFromTriple: fn(*const c_char, *mut Ref, *mut *mut c_char) -> c_int;
    LLVMCreateTargetMachine: fn(Ref, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Ref;
    LLVMDisposeTargetMachine: fn(Ref);
    LLVMCreateTargetDataLayout: fn(Ref) -> Ref;
    LLVMDisposeTargetData: fn(Ref);
    LLVMSetModuleDataLayout: fn(Ref, Ref);
    LLVMCreatePassBuilderOptions: fn() -> Ref;
    LLVMDisposePassBuilderOptions: fn(Ref);
    LLVMRunPasses: fn(Ref, *const c_char, Ref, Ref) -> Ref;
    LLVMGetErrorMessage: fn(Ref) -> *mut c_char;
    LLVMDisposeErrorMessage: fn(*mut c_char);
    LLVMTargetMachineEmitToMemoryBuffer: fn(Ref, Ref, c_int, *mut *mut c_char, *mut Ref) -> c_int;
    LLVMGetBufferStart: fn(Ref) -> *const c_char;
    LLVMGetBufferSize: fn(Ref) -> usize;
    LLVMDisposeMemoryBuffer: fn(Ref);
}

/// Values of C enumerations.
const LEVEL_AGGRESSIVE: c_int = 3;
const RELOC_PIC: c_int = 2;
const CODE_MODEL_DEFAULT: c_int = 0;
const VERIFY_RETURN_STATUS: c_int = 2;
const SEVERITY_ERROR: c_int = 0;
const FILE_ASSEMBLY: c_int = 0;
const FILE_OBJECT: c_int = 1;

/// A loaded libLLVM. It is never unloaded: LLVM registers things for the life of the process.
pub(super) struct Library {
    api: Api,
    handle: libloading::Library,
    path: PathBuf,
    version: Version,
    /// Targets that were initialised.
    targets: Mutex<Vec<Target>>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "libLLVM {} at {}", self.version, self.path.display())
    }
}

/// Every library that was loaded.
static LOADED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

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
        for path in candidates(env) {
            match Library::open(&path, target) {
                Ok(library) => return Ok(Some(library)),
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
        let mut loaded = LOADED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
        unsafe { (api.LLVMInstallFatalErrorHandler)(report_fatal) };
        let version = Version { major, minor, patch };
        Ok(Library { api, handle, path: path.into(), version, targets: Mutex::default() })
    }

    /// Makes a target known to the library, once.
    fn initialize(&self, target: Target) -> Result<(), String> {
        let mut done = self.targets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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

    /// Optimises a module and generates its code.
    pub(super) fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, ToolError> {
        // SAFETY: a new context, which the guard disposes of after everything made in it.
        let context = unsafe { (self.api.LLVMContextCreate)() };
        let _context = Guard(context, self.api.LLVMContextDispose);
        let said = Said { api: &self.api, errors: RefCell::default() };
        // SAFETY: `said` lives as long as anything runs in the context.
        unsafe {
            let said = (&raw const said).cast_mut().cast();
            (self.api.LLVMContextSetDiagnosticHandler)(context, collect, said);
        }
        RUNNING.set(self.name());
        let code = self.compile_in(context, job);
        let errors = said.errors.borrow().join("\n");
        match code {
            Ok(code) if errors.is_empty() => Ok(code),
            Ok(_) => Err(self.failed("refused the module", &errors)),
            Err(mut e) => {
                e.notes.extend(Some(errors).filter(|e| !e.is_empty()));
                Err(e)
            }
        }
    }

    fn compile_in(&self, context: Ref, job: &Job<'_>) -> Result<Vec<u8>, ToolError> {
        let api = &self.api;
        let text = |s: &str| CString::new(s).map_err(|_| self.failed("got a zero byte", s));
        let (triple, cpu, features) = (text(job.triple)?, text(job.cpu)?, text(job.features)?);
        let mut message: *mut c_char = std::ptr::null_mut();

        let (mut module, name) = (std::ptr::null_mut(), c"kernel");
        // SAFETY: the text is copied; the parser takes the buffer over; on success there is a
        // module, else a message.
        let failed = unsafe {
            let buffer = (api.LLVMCreateMemoryBufferWithMemoryRangeCopy)(
                job.ir.as_ptr().cast(),
                job.ir.len(),
                name.as_ptr(),
            );
            (api.LLVMParseIRInContext)(context, buffer, &mut module, &mut message)
        };
        if failed != 0 {
            return Err(self.failed("cannot read the module", &self.take(message)));
        }
        let _module = Guard(module, api.LLVMDisposeModule);

        let mut target = std::ptr::null_mut();
        // SAFETY: strings that end in a zero, and two places to write to.
        let failed =
            unsafe { (api.LLVMGetTargetFromTriple)(triple.as_ptr(), &mut target, &mut message) };
        if failed != 0 {
            return Err(self.failed("does not know the target", &self.take(message)));
        }
        // SAFETY: the target was found just now.
        let machine = unsafe {
            (api.LLVMCreateTargetMachine)(
                target,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                LEVEL_AGGRESSIVE,
                RELOC_PIC,
                CODE_MODEL_DEFAULT,
            )
        };
        if machine.is_null() {
            return Err(self.failed("cannot generate code for the target", job.cpu));
        }
        let _machine = Guard(machine, api.LLVMDisposeTargetMachine);
        // SAFETY: module and machine live; the module copies the layout.
        let failed = unsafe {
            let data = (api.LLVMCreateTargetDataLayout)(machine);
            (api.LLVMSetModuleDataLayout)(module, data);
            (api.LLVMDisposeTargetData)(data);
            message = std::ptr::null_mut();
            (api.LLVMVerifyModule)(module, VERIFY_RETURN_STATUS, &mut message)
        };
        let said = self.take(message);
        if failed != 0 {
            return Err(self.failed("found the module malformed", &said));
        }

        // SAFETY: options that the guard disposes of.
        let options = unsafe { (api.LLVMCreatePassBuilderOptions)() };
        let _options = Guard(options, api.LLVMDisposePassBuilderOptions);
        let passes = c"default<O3>";
        // SAFETY: all three live; an error is taken over by asking for its message.
        unsafe {
            let error = (api.LLVMRunPasses)(module, passes.as_ptr(), machine, options);
            if !error.is_null() {
                let text = (api.LLVMGetErrorMessage)(error);
                let said = CStr::from_ptr(text).to_string_lossy().into_owned();
                (api.LLVMDisposeErrorMessage)(text);
                return Err(self.failed("cannot optimise the module", &said));
            }
        }

        let kind = match job.output {
            Output::Assembly => FILE_ASSEMBLY,
            Output::Object => FILE_OBJECT,
        };
        let mut buffer = std::ptr::null_mut();
        // SAFETY: on success there is a buffer, else a message.
        let failed = unsafe {
            (api.LLVMTargetMachineEmitToMemoryBuffer)(
                machine,
                module,
                kind,
                &mut message,
                &mut buffer,
            )
        };
        if failed != 0 {
            return Err(self.failed("cannot generate code", &self.take(message)));
        }
        let _buffer = Guard(buffer, api.LLVMDisposeMemoryBuffer);
        // SAFETY: the buffer has that many bytes and lives.
        Ok(unsafe {
            let start = (api.LLVMGetBufferStart)(buffer).cast::<u8>();
            std::slice::from_raw_parts(start, (api.LLVMGetBufferSize)(buffer)).to_vec()
        })
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

/// Something of LLVM's with the function that disposes of it.
struct Guard(Ref, unsafe extern "C" fn(Ref));

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: made by LLVM, and disposed of once.
        unsafe { (self.1)(self.0) };
    }
}

/// Errors that LLVM reports while it runs. Without a handler it would end the process.
struct Said<'a> {
    api: &'a Api,
    errors: RefCell<Vec<String>>,
}

extern "C" fn collect(info: Ref, said: *mut c_void) {
    // SAFETY: the pointer that was given with this handler.
    let said = unsafe { &*said.cast::<Said<'_>>() };
    // SAFETY: a diagnostic that lives during the call; its description is ours to free.
    unsafe {
        if (said.api.LLVMGetDiagInfoSeverity)(info) != SEVERITY_ERROR {
            return;
        }
        let text = (said.api.LLVMGetDiagInfoDescription)(info);
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        said.errors.borrow_mut().push(owned);
        (said.api.LLVMDisposeMessage)(text);
    }
}

thread_local! {
    /// The library that this thread is in.
    static RUNNING: RefCell<String> = const { RefCell::new(String::new()) };
}

/// LLVM cannot go on, and ends the process when this returns: what remains is to say so.
extern "C" fn report_fatal(reason: *const c_char) {
    // SAFETY: LLVM gives a text that ends in a zero.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy();
    let library = RUNNING.with_borrow(String::clone);
    eprintln!("error: {library} failed and ends this process: {reason}\nhelp: {FAILED_HELP}");
}

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
