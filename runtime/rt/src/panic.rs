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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::outputs;
    use std::ptr;

    fn builtin(kind: i32, place: Option<&CStr>) -> ! {
        // SAFETY: the place is null or a C string.
        unsafe { mp_rt_panic_builtin(kind, place.map_or(ptr::null(), CStr::as_ptr), -1, 3) }
    }

    #[test]
    fn every_panic_is_one_line_and_exit_code_101() {
        let cases: [fn(); 9] = [
            // SAFETY: the message is a live string.
            || unsafe { mp_rt_panic(string::new_str("three")) },
            || builtin(0, Some(c"a.mp:7:3")),
            || builtin(1, None),
            || builtin(2, Some(c"a.mp:9:1")),
            || builtin(3, None),
            || builtin(4, None),
            || builtin(5, None),
            || builtin(6, None),
            || guarded(|| std::panic::resume_unwind(Box::new("broken"))),
        ];
        let messages = [
            "three",
            "integer overflow at a.mp:7:3: the result does not fit its type",
            "division by zero",
            "index out of bounds at a.mp:9:1: the index is -1, the length is 3",
            "missing key: the map has no such key",
            "wrong variant: the payload asked for is not the active one",
            "`unreachable` was reached",
            "unknown built-in panic 6",
            "error inside the runtime: broken",
        ];
        let outputs = outputs("panic::tests::every_panic_is_one_line_and_exit_code_101", &cases);
        for ((code, _, stderr), message) in outputs.iter().zip(messages) {
            assert_eq!((*code, &**stderr), (Some(101), &*format!("panic: {message}\n")));
        }
    }

    #[test]
    fn what_was_printed_before_is_kept() {
        let cases: [fn(); 1] = [|| {
            io::mp_rt_println_i64(42);
            die(format_args!("end"));
        }];
        let outputs = outputs("panic::tests::what_was_printed_before_is_kept", &cases);
        assert!(outputs[0].1.ends_with("\n42\n"), "{:?}", outputs[0]);
    }
}
