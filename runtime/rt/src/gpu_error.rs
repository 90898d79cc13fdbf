//! `gpu.TError` objects (GPU specification, section 9.4).

use crate::memory::or_die;
use crate::object::{self, HEADER_SIZE, MpRtHeader};
use crate::string;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::fixed;
use std::mem::offset_of;
use std::ptr;

/// The payload: what follows the header in the C struct `MpRtGpuError`.
#[repr(C)]
pub struct GpuErrorFields {
    /// Discriminant of `gpu.ErrorKind`.
    pub kind: i32,
    /// `Str`: the back-end word.
    pub backend: *mut MpRtHeader,
    /// `Str`: what happened.
    pub message: *mut MpRtHeader,
    /// The vendor's error code.
    pub code: i32,
}

const _: () = {
    assert!(HEADER_SIZE + offset_of!(GpuErrorFields, kind) == 32);
    assert!(HEADER_SIZE + offset_of!(GpuErrorFields, backend) == 40);
    assert!(HEADER_SIZE + offset_of!(GpuErrorFields, message) == 48);
    assert!(HEADER_SIZE + offset_of!(GpuErrorFields, code) == 56);
};

static GPU_ERROR: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::GPU_ERROR,
    size_of::<GpuErrorFields>(),
    align_of::<GpuErrorFields>(),
    mp_rt_gpu_error_drop,
    c"gpu.TError",
);

/// Describes the objects.
pub(crate) fn info() -> &'static MpRtTypeInfo {
    &GPU_ERROR
}

/// A new error object with one strong count. `kind` is a discriminant of `gpu.ErrorKind`.
pub fn new_gpu_error(kind: i32, backend: &str, message: &str, code: i32) -> *mut MpRtHeader {
    let obj = or_die(object::try_alloc(&GPU_ERROR));
    let (backend, message) = (string::new_str(backend), string::new_str(message));
    let fields = GpuErrorFields { kind, backend, message, code };
    // SAFETY: the payload has the size and alignment of the fields.
    unsafe { object::payload_ptr(obj).cast::<GpuErrorFields>().write(fields) };
    obj
}

/// The fields of an error object.
///
/// # Safety
/// `err` is a live `gpu.TError` that stays alive during `'a`.
pub unsafe fn fields<'a>(err: *const MpRtHeader) -> &'a GpuErrorFields {
    // SAFETY: forwarded from the caller.
    unsafe { object::payload(err) }
}

/// Releases the two strings of a dying error object (GPU specification, section 4.3).
///
/// # Safety
/// `err` is a `gpu.TError` that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_gpu_error_drop(err: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller; the object owns a count of each string.
    unsafe {
        let fields = object::payload_mut::<GpuErrorFields>(err);
        object::release(std::mem::replace(&mut fields.backend, ptr::null_mut()));
        object::release(std::mem::replace(&mut fields.message, ptr::null_mut()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_kept_and_released() {
        let err = new_gpu_error(5, "spv", "buffer of 7 bytes", -3);
        // SAFETY: the object is live until its release.
        unsafe {
            assert_eq!((*err).type_id(), 33);
            let GpuErrorFields { kind, backend, message, code } = *fields(err);
            assert_eq!((kind, code), (5, -3));
            assert_eq!(string::as_str(backend), "spv");
            assert_eq!(string::as_str(message), "buffer of 7 bytes");
            object::retain(message);
            object::release(err);
            assert_eq!((*message).strong_count(), 1);
            object::release(message);
        }
    }
}
