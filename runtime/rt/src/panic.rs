//! How a program dies: output flushed, one line on standard error, exit code 101.

use crate::object::MpRtHeader;
use crate::{io, string};
use magpie_types::abi::PanicKind;
use std::any::Any;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exit code of a panic (language reference, section 8.15).
pub const PANIC_EXIT_CODE: i32 = 101;

/// Ends the program with the line `panic: <message>`.
#[cold]
pub fn die(message: fmt::Arguments<'_>) -> ! {
    io::flush_before_death();
    let line = format!("panic: {message}\n");
    // Nobody is left to tell when standard error is gone.
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(PANIC_EXIT_CODE)
}

/// Runs the body of a C function. A Rust panic in it, which is an error of the runtime, becomes a
/// [`die`], because unwinding into compiled code is undefined.
#[inline]
pub fn guarded<R>(body: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => die_of_rust_panic(&*payload),
    }
}

#[cold]
fn die_of_rust_panic(payload: &(dyn Any + Send)) -> ! {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "of unknown kind",
    };
    die(format_args!("error inside the runtime: {text}"))
}

/// See [`magpie_types::abi::RtFn::Panic`].
///
/// # Safety
/// `msg` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_panic(msg: *const MpRtHeader) -> ! {
    // SAFETY: the caller passes a live `Str`.
    let text = unsafe { string::as_str(msg) };
    die(format_args!("{text}"))
}

/// See [`magpie_types::abi::RtFn::PanicBuiltin`].
///
/// # Safety
/// `place` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_panic_builtin(kind: i32, place: *const c_char, a: i64, b: i64) -> ! {
    let place = match place.is_null() {
        true => String::new(),
        // SAFETY: the caller passes a C string.
        false => format!(" at {}", unsafe { CStr::from_ptr(place) }.to_string_lossy()),
    };
    match PanicKind::ALL.into_iter().find(|&k| k as i32 == kind) {
        Some(PanicKind::Overflow) => {
            die(format_args!("integer overflow{place}: the result does not fit its type"))
        }
        Some(PanicKind::DivisionByZero) => die(format_args!("division by zero{place}")),
        Some(PanicKind::IndexOutOfBounds) => {
            die(format_args!("index out of bounds{place}: the index is {a}, the length is {b}"))
        }
        Some(PanicKind::MissingKey) => {
            die(format_args!("missing key{place}: the map has no such key"))
        }
        Some(PanicKind::WrongVariant) => {
            die(format_args!("wrong variant{place}: the payload asked for is not the active one"))
        }
        Some(PanicKind::Unreachable) => die(format_args!("`unreachable` was reached{place}")),
        None => die(format_args!("unknown built-in panic {kind}{place}")),
    }
}
