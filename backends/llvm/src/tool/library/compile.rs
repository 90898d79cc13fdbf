//! From a module as text to code, in a libLLVM of this process.

use super::api::{Api, Guard, Ref};
use super::machine::Machine;
use super::{FAILED_HELP, Library};
use crate::tool::{Job, Output, ToolError};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Values of C enumerations.
const VERIFY_RETURN_STATUS: c_int = 2;
const SEVERITY_ERROR: c_int = 0;
const FILE_ASSEMBLY: c_int = 0;
const FILE_OBJECT: c_int = 1;

impl Library {
    /// Optimises a module and generates its code.
    pub(in crate::tool) fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, ToolError> {
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
        let machine = self.machine(job)?;
        let code = self.compile_in(context, &machine, job);
        let errors = said.errors.borrow().join("\n");
        match code {
            Ok(code) if errors.is_empty() => {
                self.machines.keep(machine);
                Ok(code)
            }
            Ok(_) => Err(self.failed("refused the module", &errors)),
            Err(mut e) => {
                e.notes.extend(Some(errors).filter(|e| !e.is_empty()));
                Err(e)
            }
        }
    }

    fn compile_in(
        &self,
        context: Ref,
        machine: &Machine,
        job: &Job<'_>,
    ) -> Result<Vec<u8>, ToolError> {
        let (api, machine) = (&self.api, machine.handle.0);
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

        self.optimize(module, machine, job.triple)?;

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
}

/// The passes of `-O3` for one function after the other. Kernels come closed and optimised: what `-O3`
/// has for calls between functions finds nothing in them and takes longer than these passes do. As in
/// `-O3`, what one round of `instcombine` leaves to do is no fault.
const PASSES: &str = "function(\
    sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,tailcallelim,\
    loop-mssa(loop-rotate,licm),loop(indvars,loop-unroll-full),\
    gvn,sccp,bdce,instcombine<no-verify-fixpoint>,correlated-propagation,dse,loop-unroll<O3>,\
    infer-alignment,slp-vectorizer,instcombine<no-verify-fixpoint>,simplifycfg)";

/// The passes with those that `-O3` has for one target: NVIDIA's bounds the ids by the workgroup size,
/// AMD's tells the code generator which implicit arguments a kernel leaves alone.
fn passes(triple: &str) -> String {
    match triple.starts_with("amdgcn") {
        true => format!("{PASSES},amdgpu-attributor"),
        false => format!("function(nvvm-intr-range),{PASSES}"),
    }
}

impl Library {
    /// Runs the passes. Their names are no part of the C API: a version that does not know one does
    /// all of `-O3`.
    fn optimize(&self, module: Ref, machine: Ref, triple: &str) -> Result<(), ToolError> {
        let api = &self.api;
        // SAFETY: options that the guard disposes of.
        let options = unsafe { (api.LLVMCreatePassBuilderOptions)() };
        let _options = Guard(options, api.LLVMDisposePassBuilderOptions);
        let run = |passes: &str| {
            let text = CString::new(passes).map_err(|_| "a zero byte".to_string())?;
            // SAFETY: all three live; an error is taken over by asking for its message.
            unsafe {
                let error = (api.LLVMRunPasses)(module, text.as_ptr(), machine, options);
                if error.is_null() {
                    return Ok(());
                }
                let text = (api.LLVMGetErrorMessage)(error);
                let said = CStr::from_ptr(text).to_string_lossy().into_owned();
                (api.LLVMDisposeErrorMessage)(text);
                Err(said)
            }
        };
        // Names are looked up before anything runs.
        let done = run(&passes(triple)).or_else(|_| run("default<O3>"));
        done.map_err(|said| self.failed("cannot optimise the module", &said))
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
pub(super) extern "C" fn report_fatal(reason: *const c_char) {
    // SAFETY: LLVM gives a text that ends in a zero.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy();
    let library = RUNNING.with_borrow(String::clone);
    eprintln!("error: {library} failed and ends this process: {reason}\nhelp: {FAILED_HELP}");
}
