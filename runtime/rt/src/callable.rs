//! `TCallable`: a code address and the values it captured.

use crate::object::{self, HEADER_SIZE, MpRtHeader};
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::abi::object_layout;
use std::ffi::c_void;

const _: () = assert!(object_layout::CALLABLE_CODE as usize == HEADER_SIZE);

/// See [`magpie_types::abi::RtFn::CallableNew`]. The captures are zero until the caller fills them.
///
/// # Safety
/// `info` describes a payload of at least 8 bytes whose first 8 hold no handle, and lives as long
/// as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_callable_new(
    info: *const MpRtTypeInfo,
    code: *const c_void,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller; the payload starts with the code address.
    unsafe {
        let obj = object::mp_rt_alloc(info);
        object::payload_ptr(obj).cast::<*const c_void>().write(code);
        obj
    }
}
