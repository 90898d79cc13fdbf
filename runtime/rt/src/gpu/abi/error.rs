//! `mp_rt_gpu_error_*`: error objects.

use crate::gpu_error::{fields, new_gpu_error};
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use magpie_types::fixed;
use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::ptr;

/// See [`magpie_types::abi::RtFn::GpuErrorNew`]. The texts are C strings or null.
///
/// # Safety
/// `backend` and `message` are null or end in a NUL byte.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_error_new(
    kind: i32,
    backend: *const c_char,
    message: *const c_char,
    code: i32,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    let text = |text: *const c_char| unsafe {
        if text.is_null() { Cow::Borrowed("") } else { CStr::from_ptr(text).to_string_lossy() }
    };
    guarded(|| new_gpu_error(kind, &text(backend), &text(message), code))
}

/// Whether the handle is of an error object.
unsafe fn is_error(err: *const MpRtHeader) -> bool {
    // SAFETY: the caller passes null or a live object.
    unsafe { err.as_ref() }.is_some_and(|header| header.type_id() == fixed::GPU_ERROR.0)
}

/// See [`magpie_types::abi::RtFn::GpuErrorKind`]. -1 for a handle that is no error.
///
/// # Safety
/// `err` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_error_kind(err: *const MpRtHeader) -> i32 {
    // SAFETY: forwarded from the caller.
    unsafe { if is_error(err) { fields(err).kind } else { -1 } }
}

/// See [`magpie_types::abi::RtFn::GpuErrorCode`]. 0 for a handle that is no error.
///
/// # Safety
/// `err` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_error_code(err: *const MpRtHeader) -> i32 {
    // SAFETY: forwarded from the caller.
    unsafe { if is_error(err) { fields(err).code } else { 0 } }
}

/// See [`magpie_types::abi::RtFn::GpuErrorMessage`]. Owned; null for a handle that is no error.
///
/// # Safety
/// `err` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_error_message(err: *const MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { if is_error(err) { retained(fields(err).message) } else { ptr::null_mut() } }
}

/// See [`magpie_types::abi::RtFn::GpuErrorBackend`]. Owned; null for a handle that is no error.
///
/// # Safety
/// `err` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_error_backend(err: *const MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { if is_error(err) { retained(fields(err).backend) } else { ptr::null_mut() } }
}

unsafe fn retained(text: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: the text is live: its error object holds a count.
    unsafe { object::retain(text) };
    text
}
