//! How fallible C functions give back their `TResult`: 0 and a value, or -1 and an owned error.

use crate::object::{self, MpRtHeader};
use crate::string;
use std::ptr;

/// Ends a function of [`magpie_types::abi::AbiReturn::StatusOut`] whose error is a `Str`. On
/// failure `out` receives `nothing`, the zero of its type.
///
/// # Safety
/// `out` can be written to; `out_err` is null or can be written to.
pub(crate) unsafe fn value<T: Copy>(
    result: Result<T, String>,
    nothing: T,
    out: *mut T,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    unsafe {
        out.write(*result.as_ref().unwrap_or(&nothing));
        unit(result.map(|_| ()), out_err)
    }
}

/// Ends a function of [`magpie_types::abi::AbiReturn::Status`] whose error is a `Str`.
///
/// # Safety
/// `out_err` is null or can be written to.
pub(crate) unsafe fn unit(result: Result<(), String>, out_err: *mut *mut MpRtHeader) -> i32 {
    let (error, status) = match result {
        Ok(()) => (ptr::null_mut(), 0),
        Err(message) => (string::new_str(&message), -1),
    };
    // SAFETY: forwarded from the caller; the error is ours when nobody takes it.
    unsafe {
        if out_err.is_null() {
            object::release(error);
        } else {
            out_err.write(error);
        }
    }
    status
}
