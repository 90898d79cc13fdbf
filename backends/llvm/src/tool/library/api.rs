//! The part of LLVM's C API that is used.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Something of LLVM's.
pub(super) type Ref = *mut c_void;

macro_rules! api {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that are called, under their C names.
        #[allow(non_snake_case)]
        pub(super) struct Api { $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)* }

        impl Api {
            /// Looks all functions up; the name of the first that is missing else.
            ///
            /// # Safety
            /// The library is LLVM's, of a version with these signatures.
            pub(super) unsafe fn load(library: &libloading::Library) -> Result<Api, &'static str> {
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

/// Something of LLVM's with the function that disposes of it.
pub(super) struct Guard(pub(super) Ref, pub(super) unsafe extern "C" fn(Ref));

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: made by LLVM, and disposed of once.
        unsafe { (self.1)(self.0) };
    }
}
