//! Host functions → machine code of this process.

use crate::frontend::Program;
use crate::host_runtime::ProcessRuntime;
use crate::session::{Session, Stop};
use magpie_codegen_cpu::{HostCode, compile_host};
use magpie_diag::{Code, Diagnostic};
use magpie_mpir::FnId;
use magpie_mpir::passes::{Pipeline, lower_arc, lower_host};
use magpie_rt::program_stack::with_program_stack;
use magpie_types::fixed;

/// A host function in memory that takes nothing: `@main` or a test.
pub(crate) struct HostFn {
    address: *const u8,
    result: HostResult,
    /// Keeps the code in memory.
    _code: HostCode,
}

/// What such a function gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HostResult {
    Unit,
    I32,
    I64,
}

impl HostFn {
    /// Calls the function; `unit` counts as 0. A panic ends the process.
    pub(crate) fn call(&self) -> i64 {
        let (address, result) = (self.address as usize, self.result);
        // SAFETY: the address is that of a compiled function without parameters and with this
        // result, and `_code` keeps it in memory until the call is over.
        with_program_stack(move || unsafe { call(address, result) })
    }
}

/// # Safety
/// The address is that of a function without parameters and with this result.
unsafe fn call(address: usize, result: HostResult) -> i64 {
    // SAFETY: forwarded from the caller.
    unsafe {
        match result {
            HostResult::Unit => {
                std::mem::transmute::<usize, extern "C" fn()>(address)();
                0
            }
            HostResult::I32 => {
                std::mem::transmute::<usize, extern "C" fn() -> i32>(address)().into()
            }
            HostResult::I64 => std::mem::transmute::<usize, extern "C" fn() -> i64>(address)(),
        }
    }
}

/// Compiles a host function that takes nothing, and everything it calls.
///
/// # Errors
/// The code generator fails, which is a fault of the compiler.
pub(crate) fn compile(
    session: &mut Session,
    mut program: Program,
    root: FnId,
) -> Result<HostFn, Stop> {
    let is_fast = session.options.opt_level > 0;
    let module = &mut program.module;
    session.time("host passes", |session| {
        if is_fast {
            Pipeline::new().optimize_ownership(module);
        }
        lower_arc(module);
        lower_host(module, &|span| session.sources.describe(span));
        if is_fast {
            Pipeline::new().optimize_host(module);
        }
    });
    let f = module.func(root);
    let result = match f.ret_ty {
        fixed::I64 => HostResult::I64,
        fixed::I32 => HostResult::I32,
        _ => HostResult::Unit,
    };
    let code = session.time("machine code", |session| {
        let mut runtime = ProcessRuntime::new(&module.types, &session.sources);
        let code = compile_host(module, &[root], &mut runtime).map_err(|e| e.to_string())?;
        let address = code.address(root).ok_or("the function was not compiled")?;
        Ok(HostFn { address, result, _code: code })
    });
    code.map_err(|why: String| {
        session.report(
            Diagnostic::new(Code::MPT2050, f.span, format!("`{}`: {why}", f.name))
                .with_help("this is a fault of the compiler: please report it with the program"),
        );
        Stop::Refused
    })
}
