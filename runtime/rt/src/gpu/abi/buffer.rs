//! `mp_rt_gpu_buffer_*`: buffers and their transfers from and to arrays.

use super::{Payload, drop_payload, finish, finish_with_object, new_object, payload};
use crate::array;
use crate::gpu::buffer::{Buffer, Element};
use crate::gpu::context::Context;
use crate::gpu::device::MemoryHint;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::{TypeId, fixed};
use std::sync::Arc;

static BUFFER: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::GPU_BUFFER,
    size_of::<Buffer>(),
    align_of::<Buffer>(),
    drop_payload::<Buffer>,
    c"gpu.TBuffer",
);

impl Payload for Buffer {
    const INFO: &'static MpRtTypeInfo = &BUFFER;
    const NAME: &'static str = "gpu.TBuffer";
}

/// See [`magpie_types::abi::RtFn::GpuBufferNew`].
///
/// # Safety
/// `dev` is null or a live object; `out_buf` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_new_hinted(
    dev: *const MpRtHeader,
    elem_type_id: u32,
    elem_size: u32,
    len: u64,
    usage_flags: u32,
    hint: u32,
    out_buf: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        let make = || {
            // SAFETY: forwarded from the caller.
            let context = unsafe { payload::<Arc<Context>>(dev) }?;
            let Some(hint) = MemoryHint::from_u32(hint) else {
                let message = format!("unknown memory hint {hint}: hints are 0 to 4");
                return Err(context.error(ErrorKind::BufferError, message));
            };
            let element = Element { ty: TypeId(elem_type_id), size: elem_size };
            Buffer::new(context, element, len, usage_flags, hint).map(new_object)
        };
        // SAFETY: forwarded from the caller.
        unsafe { finish_with_object(make(), out_buf, out_err) }
    })
}

/// The older form of [`mp_rt_gpu_buffer_new_hinted`], without a hint.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_new(
    dev: *const MpRtHeader,
    elem_type_id: u32,
    elem_size: u64,
    len: u64,
    usage_flags: u32,
    out_buf: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // An element that does not fit in 32 bits is refused as one without bytes is.
    let elem_size = u32::try_from(elem_size).unwrap_or(0);
    let hint = MemoryHint::Auto as u32;
    // SAFETY: forwarded from the caller.
    unsafe {
        mp_rt_gpu_buffer_new_hinted(
            dev,
            elem_type_id,
            elem_size,
            len,
            usage_flags,
            hint,
            out_buf,
            out_err,
        )
    }
}

/// The bytes of an array argument.
///
/// # Safety
/// `arr` is null or a live object that nobody changes during `'a`.
unsafe fn array_bytes<'a>(arr: *const MpRtHeader) -> GpuResult<(u32, &'a [u8])> {
    // SAFETY: forwarded from the caller.
    let is_array = unsafe { arr.as_ref() }.is_some_and(|h| h.type_id() == fixed::ARRAY.0);
    if !is_array {
        let message = "expected an Array of elements";
        return Err(GpuError::new(ErrorKind::ValidationFailed, "", message));
    }
    // SAFETY: it is an array, as just checked.
    let (info, bytes) = unsafe { (array::element_info(arr), array::bytes(arr)) };
    if info.has_handles() {
        let message = "elements with handles to heap objects cannot be on a device";
        return Err(GpuError::new(ErrorKind::BufferError, "", message));
    }
    Ok((info.stride() as u32, bytes))
}

/// See [`magpie_types::abi::RtFn::GpuBufferFromArray`].
///
/// # Safety
/// `dev` and `arr` are null or live objects; `out_buf` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_from_array(
    dev: *const MpRtHeader,
    arr: *const MpRtHeader,
    elem_type_id: u32,
    usage_flags: u32,
    out_buf: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        let make = || {
            // SAFETY: forwarded from the caller.
            let (context, (size, bytes)) =
                unsafe { (payload::<Arc<Context>>(dev)?, array_bytes(arr)?) };
            let element = Element { ty: TypeId(elem_type_id), size };
            Buffer::from_bytes(context, element, bytes, usage_flags).map(new_object)
        };
        // SAFETY: forwarded from the caller.
        unsafe { finish_with_object(make(), out_buf, out_err) }
    })
}

/// A new array with elements `first .. first + len` of a buffer.
fn to_array(
    buffer: &Buffer,
    first: u64,
    len: u64,
    info: &'static MpRtTypeInfo,
) -> GpuResult<*mut MpRtHeader> {
    let error = |kind, message: String| buffer.context().error(kind, message);
    if info.has_handles() || info.stride() != buffer.element().size as usize {
        let (element, stored) = (info.stride(), buffer.element().size);
        let message =
            format!("read of elements of {element} bytes from a buffer with elements of {stored}");
        return Err(error(ErrorKind::BufferError, message));
    }
    // The range is checked first, so that a wrong one does not ask for memory.
    if first.checked_add(len).is_none_or(|end| end > buffer.len()) {
        let message = format!(
            "read of a buffer: {len} elements from element {first} leave its {} elements",
            buffer.len()
        );
        return Err(error(ErrorKind::BufferError, message));
    }
    let array = usize::try_from(len).ok().and_then(|n| array::try_new_zeroed(info, n).ok());
    let Some(array) = array else {
        let message = format!("no host memory for an array of {len} elements of a buffer");
        return Err(error(ErrorKind::OutOfMemory, message));
    };
    // SAFETY: the array is new, without handles, and ours alone.
    let read = buffer.read(first, unsafe { array::bytes_mut(array) });
    match read {
        Ok(()) => Ok(array),
        Err(error) => {
            // SAFETY: nobody else has the array.
            unsafe { object::release(array) };
            Err(error)
        }
    }
}

/// See [`magpie_types::abi::RtFn::GpuBufferToArray`].
///
/// # Safety
/// `buf` is null or a live object; `info` describes an element and lives as long as the process;
/// `out_arr` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_to_array(
    buf: *const MpRtHeader,
    info: *const MpRtTypeInfo,
    out_arr: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let array =
                payload::<Buffer>(buf).and_then(|b| to_array(b, 0, b.len(), element_info(info)?));
            finish_with_object(array, out_arr, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuBufferRead`].
///
/// # Safety
/// As [`mp_rt_gpu_buffer_to_array`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_read(
    buf: *const MpRtHeader,
    offset: u64,
    len: u64,
    info: *const MpRtTypeInfo,
    out_arr: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let array =
                payload::<Buffer>(buf).and_then(|b| to_array(b, offset, len, element_info(info)?));
            finish_with_object(array, out_arr, out_err)
        }
    })
}

/// # Safety
/// `info` is null or describes an element and lives as long as the process.
unsafe fn element_info(info: *const MpRtTypeInfo) -> GpuResult<&'static MpRtTypeInfo> {
    // SAFETY: forwarded from the caller.
    unsafe { info.as_ref() }.ok_or_else(|| {
        let message = "expected the type info of the elements, got null";
        GpuError::new(ErrorKind::ValidationFailed, "", message)
    })
}

/// See [`magpie_types::abi::RtFn::GpuBufferLen`]. 0 for a handle that is no buffer.
///
/// # Safety
/// `buf` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_len(buf: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { payload::<Buffer>(buf) }.map_or(0, Buffer::len))
}

/// See [`magpie_types::abi::RtFn::GpuBufferCopy`].
///
/// # Safety
/// `src` and `dst` are null or live objects; `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_copy(
    src: *const MpRtHeader,
    dst: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let copied =
                payload::<Buffer>(src).and_then(|src| src.copy_to(payload::<Buffer>(dst)?));
            finish(copied, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuBufferWrite`].
///
/// # Safety
/// `buf` and `src` are null or live objects; `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_buffer_write(
    buf: *const MpRtHeader,
    offset: u64,
    src: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let write = || {
        // SAFETY: forwarded from the caller.
        let (buffer, (size, bytes)) = unsafe { (payload::<Buffer>(buf)?, array_bytes(src)?) };
        let stored = buffer.element().size;
        if size != stored {
            let message = format!(
                "write of elements of {size} bytes to a buffer with elements of {stored} bytes"
            );
            return Err(buffer.context().error(ErrorKind::BufferError, message));
        }
        buffer.write(offset, bytes)
    };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish(write(), out_err) })
}
