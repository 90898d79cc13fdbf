//! `std.os`: arguments, environment, working directory, exit.

use crate::array;
use crate::io;
use crate::object::MpRtHeader;
use crate::panic::{die, guarded};
use crate::string::{self, as_str};
use crate::typeinfo::MpRtTypeInfo;
use std::ptr;
use std::sync::{Mutex, PoisonError};

static PROGRAM_ARGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Sets what `std.os.@args` gives: the program's arguments, without its own name.
pub fn set_program_args(args: Vec<String>) {
    *PROGRAM_ARGS.lock().unwrap_or_else(PoisonError::into_inner) = args;
}

/// See [`magpie_types::abi::RtFn::OsArgs`].
///
/// # Safety
/// `info` describes `Str` as an element and lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_os_args(info: *const MpRtTypeInfo) -> *mut MpRtHeader {
    guarded(|| {
        let args = PROGRAM_ARGS.lock().unwrap_or_else(PoisonError::into_inner);
        let handles: Vec<_> = args.iter().map(|arg| string::new_str(arg)).collect();
        // SAFETY: forwarded from the caller.
        array::from_handles(unsafe { &*info }, &handles)
    })
}

/// See [`magpie_types::abi::RtFn::OsEnvVar`].
///
/// # Safety
/// `name` is a live `Str`, `out` storage for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_os_env_var(
    name: *const MpRtHeader,
    out: *mut *mut MpRtHeader,
) -> bool {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        let name = unsafe { as_str(name) };
        let value = std::env::var_os(name).map(|value| match value.to_str() {
            Some(text) => string::new_str(text),
            None => die(format_args!("the environment variable {name:?} is not valid UTF-8")),
        });
        // SAFETY: forwarded from the caller.
        unsafe { out.write(value.unwrap_or(ptr::null_mut())) };
        value.is_some()
    })
}

/// See [`magpie_types::abi::RtFn::OsExit`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_os_exit(code: i32) -> ! {
    guarded(|| {
        io::flush_stdout();
        std::process::exit(code)
    })
}

/// See [`magpie_types::abi::RtFn::OsCwd`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_os_cwd() -> *mut MpRtHeader {
    guarded(|| match std::env::current_dir() {
        Ok(path) => match path.to_str() {
            Some(text) => string::new_str(text),
            None => die(format_args!("the path of the working directory is not valid UTF-8")),
        },
        Err(error) => die(format_args!("the working directory cannot be found: {error}")),
    })
}
