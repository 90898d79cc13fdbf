//! The C ABI of the devices: `mp_rt_gpu_*`.
//!
//! A thin layer, one file an area. Fallible functions return 0, or -1 and an owned `gpu.TError`
//! through `out_err` (null on success). Handles are checked: null or an object of another type is
//! [`ErrorKind::ValidationFailed`], not undefined. Functions that cannot fail give 0 or an empty
//! text for such a handle.

mod buffer;
mod device;
mod error;
mod launch;
mod profile;
mod registry;
mod resident;
mod telemetry;

use super::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu_error::new_gpu_error;
use crate::memory::or_die;
use crate::object::{self, MpRtHeader};
use crate::symbols::Entry;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::abi::RtFn;
use std::ptr;

pub use registry::{
    MpRtGpuHostKernel, MpRtGpuKernelBlob, MpRtGpuKernelEntry, MpRtGpuParam,
    mp_rt_gpu_register_kernels,
};

/// A Rust value that is the payload of a heap object.
trait Payload: Sized + 'static {
    /// Describes the object.
    const INFO: &'static MpRtTypeInfo;
    /// The type name in messages.
    const NAME: &'static str;
}

/// Drops the payload of a dying object.
///
/// # Safety
/// `obj` is an object with a payload of type `T` that nobody else uses.
unsafe extern "C" fn drop_payload<T: Payload>(obj: *mut MpRtHeader) {
    crate::panic::guarded(|| {
        // SAFETY: forwarded from the caller; the payload is dropped once.
        unsafe { object::payload_ptr(obj).cast::<T>().drop_in_place() }
    });
}

/// A new object with one strong count.
fn new_object<T: Payload>(value: T) -> *mut MpRtHeader {
    let obj = or_die(object::try_alloc(T::INFO));
    // SAFETY: the info of `T` has its size and alignment.
    unsafe { object::payload_ptr(obj).cast::<T>().write(value) };
    obj
}

/// The payload of a handle.
///
/// # Safety
/// `obj` is null or a live object that stays alive during `'a`.
unsafe fn payload<'a, T: Payload>(obj: *const MpRtHeader) -> GpuResult<&'a T> {
    // SAFETY: forwarded from the caller.
    let header = unsafe { obj.as_ref() };
    match header.map(MpRtHeader::type_id) {
        // SAFETY: objects with this id are made by `new_object::<T>` alone.
        Some(id) if id == T::INFO.type_id => Ok(unsafe { object::payload(obj) }),
        found => {
            let found = found.map_or("null".to_string(), |id| format!("an object of type {id}"));
            let message = format!("expected a {}, got {found}", T::NAME);
            Err(GpuError::new(ErrorKind::ValidationFailed, "", message))
        }
    }
}

/// Ends a function without a result.
///
/// # Safety
/// `out_err` is null or can be written to.
unsafe fn finish(result: GpuResult<()>, out_err: *mut *mut MpRtHeader) -> i32 {
    let (error, status) = match result {
        Ok(()) => (ptr::null_mut(), 0),
        Err(e) => (new_gpu_error(e.kind as i32, e.backend, &e.message, e.code), -1),
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

/// Ends a function with a result; on failure `out` receives `nothing`.
///
/// # Safety
/// `out` and `out_err` are null or can be written to. Nobody takes an object when `out` is null.
unsafe fn finish_with<T: Copy>(
    result: GpuResult<T>,
    nothing: T,
    out: *mut T,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    unsafe {
        if !out.is_null() {
            out.write(*result.as_ref().unwrap_or(&nothing));
        }
        finish(result.map(drop), out_err)
    }
}

/// Ends a function whose result is an object.
///
/// # Safety
/// `out` and `out_err` are null or can be written to.
unsafe fn finish_with_object(
    result: GpuResult<*mut MpRtHeader>,
    out: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller; the object is ours when nobody takes it.
    unsafe {
        if out.is_null() {
            object::release(*result.as_ref().unwrap_or(&ptr::null_mut()));
        }
        finish_with(result, ptr::null_mut(), out, out_err)
    }
}

/// A device function of the ABI; `None` for all other rows.
pub(crate) fn entry(f: RtFn) -> Option<Entry> {
    Some(match f {
        RtFn::GpuInit => Entry::of0(registry::mp_rt_gpu_init),
        RtFn::GpuErrorNew => Entry::of4(error::mp_rt_gpu_error_new),
        RtFn::GpuErrorKind => Entry::of1(error::mp_rt_gpu_error_kind),
        RtFn::GpuErrorMessage => Entry::of1(error::mp_rt_gpu_error_message),
        RtFn::GpuErrorBackend => Entry::of1(error::mp_rt_gpu_error_backend),
        RtFn::GpuErrorCode => Entry::of1(error::mp_rt_gpu_error_code),
        RtFn::GpuDeviceCount => Entry::of0(device::mp_rt_gpu_device_count_unified),
        RtFn::GpuDeviceDefault => Entry::of2(device::mp_rt_gpu_device_default_unified),
        RtFn::GpuDeviceByIndex => Entry::of3(device::mp_rt_gpu_device_by_index),
        RtFn::GpuDeviceName => Entry::of1(device::mp_rt_gpu_device_name),
        RtFn::GpuDeviceBackends => Entry::of3(device::mp_rt_gpu_device_backends),
        RtFn::GpuDeviceMaxWorkgroupSize => Entry::of1(device::mp_rt_gpu_device_max_workgroup_size),
        RtFn::GpuDeviceMaxSharedBytes => Entry::of1(device::mp_rt_gpu_device_max_shared_bytes),
        RtFn::GpuDeviceMaxBuffers => Entry::of1(device::mp_rt_gpu_device_max_buffers),
        RtFn::GpuDeviceWarpSize => Entry::of1(device::mp_rt_gpu_device_warp_size),
        RtFn::GpuDeviceMemoryTotal => Entry::of1(device::mp_rt_gpu_device_memory_total),
        RtFn::GpuDeviceMemoryAvailable => Entry::of1(device::mp_rt_gpu_device_memory_available),
        RtFn::GpuDeviceSync => Entry::of2(device::mp_rt_gpu_device_sync),
        RtFn::GpuBufferNew => Entry::of8(buffer::mp_rt_gpu_buffer_new_hinted),
        RtFn::GpuBufferFromArray => Entry::of6(buffer::mp_rt_gpu_buffer_from_array),
        RtFn::GpuBufferToArray => Entry::of4(buffer::mp_rt_gpu_buffer_to_array),
        RtFn::GpuBufferLen => Entry::of1(buffer::mp_rt_gpu_buffer_len),
        RtFn::GpuBufferCopy => Entry::of3(buffer::mp_rt_gpu_buffer_copy),
        RtFn::GpuBufferWrite => Entry::of4(buffer::mp_rt_gpu_buffer_write),
        RtFn::GpuBufferRead => Entry::of6(buffer::mp_rt_gpu_buffer_read),
        RtFn::GpuLaunchSync => Entry::of11(launch::mp_rt_gpu_launch_sync),
        RtFn::GpuLaunchSyncFallback => Entry::of11(launch::mp_rt_gpu_launch_sync_fallback),
        RtFn::GpuLaunchAsync => Entry::of12(launch::mp_rt_gpu_launch_async),
        RtFn::GpuFenceWait => Entry::of4(launch::mp_rt_gpu_fence_wait),
        RtFn::GpuProfileBegin => Entry::of3(profile::mp_rt_gpu_profile_begin),
        RtFn::GpuProfileEnd => Entry::of3(profile::mp_rt_gpu_profile_end),
        RtFn::GpuProfileMarkBegin => Entry::of3(profile::mp_rt_gpu_profile_mark_begin),
        RtFn::GpuProfileMarkEnd => Entry::of3(profile::mp_rt_gpu_profile_mark_end),
        RtFn::GpuProfileExportChrome => Entry::of3(profile::mp_rt_gpu_profile_export_chrome),
        RtFn::GpuProfileAvailableCounters => {
            Entry::of3(profile::mp_rt_gpu_profile_available_counters)
        }
        RtFn::GpuProfileEnableCounters => Entry::of3(profile::mp_rt_gpu_profile_enable_counters),
        RtFn::GpuProfileReadCounters => Entry::of3(profile::mp_rt_gpu_profile_read_counters),
        RtFn::GpuProfileMemoryStats => Entry::of3(profile::mp_rt_gpu_profile_memory_stats),
        RtFn::GpuProfileLaunch => Entry::of12(profile::mp_rt_gpu_profile_launch),
        RtFn::GpuResidentNew => Entry::of2(resident::mp_rt_gpu_resident_new),
        RtFn::GpuResidentPart => Entry::of2(resident::mp_rt_gpu_resident_part),
        RtFn::GpuResidentZeros => Entry::of3(resident::mp_rt_gpu_resident_zeros),
        RtFn::GpuResidentCell => Entry::of2(resident::mp_rt_gpu_resident_cell),
        RtFn::GpuResidentScratch => Entry::of3(resident::mp_rt_gpu_resident_scratch),
        RtFn::GpuResidentBuffer => Entry::of2(resident::mp_rt_gpu_resident_buffer),
        RtFn::GpuResidentRead => Entry::of5(resident::mp_rt_gpu_resident_read),
        RtFn::GpuResidentAssign => Entry::of3(resident::mp_rt_gpu_resident_assign),
        RtFn::GpuResidentUnfit => Entry::of3(resident::mp_rt_gpu_resident_unfit),
        RtFn::GpuResidentRestore => Entry::of3(resident::mp_rt_gpu_resident_restore),
        RtFn::GpuResidentLen => Entry::of1(resident::mp_rt_gpu_resident_len),
        RtFn::GpuDeviceOrStop => Entry::of1(resident::mp_rt_gpu_device_or_stop),
        RtFn::GpuIsAvailable => Entry::of0(resident::mp_rt_gpu_is_available),
        RtFn::GpuStop => Entry::never2(resident::mp_rt_gpu_stop),
        RtFn::GpuTelemetryReset => Entry::of0(telemetry::mp_rt_gpu_telemetry_reset),
        RtFn::GpuTelemetryLaunch => Entry::of0(telemetry::mp_rt_gpu_telemetry_launch),
        RtFn::GpuTelemetry => Entry::of1(telemetry::mp_rt_gpu_telemetry),
        RtFn::Alloc
        | RtFn::Retain
        | RtFn::Release
        | RtFn::WeakDowngrade
        | RtFn::WeakUpgrade
        | RtFn::WeakRetain
        | RtFn::WeakRelease
        | RtFn::RetainValue
        | RtFn::ReleaseValue
        | RtFn::Panic
        | RtFn::PanicBuiltin
        | RtFn::StrConcat
        | RtFn::StrLen
        | RtFn::StrEq
        | RtFn::StrCompare
        | RtFn::StrSlice
        | RtFn::StrBytes
        | RtFn::StrParseI64
        | RtFn::StrParseU64
        | RtFn::StrParseF64
        | RtFn::StrParseBool
        | RtFn::SbNew
        | RtFn::SbAppendStr
        | RtFn::SbAppendI64
        | RtFn::SbAppendU64
        | RtFn::SbAppendF64
        | RtFn::SbAppendBool
        | RtFn::SbBuild
        | RtFn::ArrNew
        | RtFn::ArrZeroed
        | RtFn::ArrPush
        | RtFn::ArrGrow
        | RtFn::ArrPop
        | RtFn::ArrSlice
        | RtFn::ArrMove
        | RtFn::ArrReverse
        | RtFn::ArrContains
        | RtFn::ArrSort
        | RtFn::MapNew
        | RtFn::MapSet
        | RtFn::MapGet
        | RtFn::MapDelete
        | RtFn::MapLen
        | RtFn::MapKeys
        | RtFn::MapValues
        | RtFn::CallableNew
        | RtFn::Print
        | RtFn::Println
        | RtFn::EndLine
        | RtFn::Eprintln
        | RtFn::PrintlnI64
        | RtFn::PrintlnU64
        | RtFn::PrintlnF64
        | RtFn::PrintlnBool
        | RtFn::Readln
        | RtFn::NowNs
        | RtFn::SleepMs
        | RtFn::OsArgs
        | RtFn::OsEnvVar
        | RtFn::OsExit
        | RtFn::OsCwd
        | RtFn::FsReadBytes
        | RtFn::FsWriteBytes
        | RtFn::FsReadText
        | RtFn::FsWriteText
        | RtFn::HashStr
        | RtFn::HashI64
        | RtFn::MathF64
        | RtFn::HandleClone
        | RtFn::HandleUnique
        | RtFn::StrAppend
        | RtFn::StrAppendI64
        | RtFn::StrAppendU64
        | RtFn::StrAppendFloat
        | RtFn::StrAppendBool
        | RtFn::StrTransform
        | RtFn::StrFind
        | RtFn::StrCount
        | RtFn::StrCharAt
        | RtFn::StrCharFrom
        | RtFn::StrContains
        | RtFn::StrToI64
        | RtFn::StrToF64
        | RtFn::StrCodeAt
        | RtFn::StrCodeFrom
        | RtFn::StrCode
        | RtFn::CodeText
        | RtFn::CodeLen
        | RtFn::CodeToI64
        | RtFn::CodeTransform
        | RtFn::StrAppendCode
        | RtFn::StrContainsCode
        | RtFn::Eprint
        | RtFn::MathF32 => return None,
    })
}
