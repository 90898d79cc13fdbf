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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outputs, without_leaks};
    use crate::{object, typeinfo};

    #[test]
    fn arguments_are_those_that_were_set() {
        without_leaks(|| {
            set_program_args(vec!["in.pgm".to_string(), "ä b".to_string()]);
            // SAFETY: the array is live until its release.
            unsafe {
                let args = mp_rt_os_args(&typeinfo::STR);
                let texts: Vec<_> = array::handles(args).iter().map(|&s| as_str(s)).collect();
                assert_eq!(texts, ["in.pgm", "ä b"]);
                object::release(args);
            }
        });
    }

    #[test]
    fn variables_may_be_missing() {
        without_leaks(|| {
            let names = ["PATH", "MAGPIE_NOT_SET", "", "a=b", "nul\0"];
            let found = names.map(|name| {
                let name = string::new_str(name);
                let mut out = ptr::dangling_mut();
                // SAFETY: name and value are live until released.
                unsafe {
                    let found = mp_rt_os_env_var(name, &mut out);
                    assert_eq!(found, !out.is_null());
                    object::release(name);
                    object::release(out);
                    found
                }
            });
            assert_eq!(found, [true, false, false, false, false]);
        });
    }

    #[test]
    fn exit_flushes_and_passes_its_code_on() {
        let cases: [fn(); 2] = [
            || {
                io::mp_rt_println_i64(5);
                mp_rt_os_exit(3)
            },
            || {
                let cwd = mp_rt_os_cwd();
                // SAFETY: the string is live.
                unsafe { io::mp_rt_print(cwd) };
                mp_rt_os_exit(256 + 7)
            },
        ];
        let outputs = outputs("os::tests::exit_flushes_and_passes_its_code_on", &cases);
        assert_eq!((outputs[0].0, outputs[1].0), (Some(3), Some(7)));
        assert!(outputs[0].1.ends_with("\n5\n"));
        let cwd = std::env::current_dir().unwrap();
        assert!(outputs[1].1.ends_with(cwd.to_str().unwrap()));
    }
}
