//! `mp_rt_gpu_device_*`: the list of devices and what they offer.

use super::{Payload, drop_payload, finish, finish_with_object, new_object, payload};
use crate::array::new_str_array;
use crate::gpu::context::Context;
use crate::gpu::runtime::Runtime;
use crate::object::MpRtHeader;
use crate::panic::guarded;
use crate::string::new_str;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::fixed;
use std::sync::Arc;

static DEVICE: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::GPU_DEVICE,
    size_of::<Arc<Context>>(),
    align_of::<Arc<Context>>(),
    drop_payload::<Arc<Context>>,
    c"gpu.TDevice",
);

impl Payload for Arc<Context> {
    const INFO: &'static MpRtTypeInfo = &DEVICE;
    const NAME: &'static str = "gpu.TDevice";
}

/// A number that a device knows; 0 for a handle that is no device.
///
/// # Safety
/// `dev` is null or a live object.
unsafe fn number<N: Default>(dev: *const MpRtHeader, get: impl FnOnce(&Context) -> N) -> N {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { payload::<Arc<Context>>(dev) }.map_or(N::default(), |c| get(c)))
}

/// See [`magpie_types::abi::RtFn::GpuDeviceCount`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_device_count_unified() -> u32 {
    guarded(|| Runtime::global().device_count())
}

/// The older name of [`mp_rt_gpu_device_count_unified`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_device_count() -> u32 {
    mp_rt_gpu_device_count_unified()
}

/// See [`magpie_types::abi::RtFn::GpuDeviceDefault`].
///
/// # Safety
/// `out_dev` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_default_unified(
    out_dev: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        let device = Runtime::global().default_device().map(new_object);
        // SAFETY: forwarded from the caller.
        unsafe { finish_with_object(device, out_dev, out_err) }
    })
}

/// The older name of [`mp_rt_gpu_device_default_unified`].
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_default(
    out_dev: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    unsafe { mp_rt_gpu_device_default_unified(out_dev, out_err) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceByIndex`].
///
/// # Safety
/// `out_dev` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_by_index(
    idx: u32,
    out_dev: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        let device = Runtime::global().device(idx).map(new_object);
        // SAFETY: forwarded from the caller.
        unsafe { finish_with_object(device, out_dev, out_err) }
    })
}

/// See [`magpie_types::abi::RtFn::GpuDeviceName`]. An owned `Str`.
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_name(dev: *const MpRtHeader) -> *mut MpRtHeader {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        let context = unsafe { payload::<Arc<Context>>(dev) };
        new_str(context.map_or("", |c| &c.properties().name))
    })
}

/// See [`magpie_types::abi::RtFn::GpuDeviceBackends`]. An owned `Array<Str>`.
///
/// # Safety
/// `dev` is null or a live object; `out_arr` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_backends(
    dev: *const MpRtHeader,
    out_arr: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let context = payload::<Arc<Context>>(dev);
            let names = context.map(|c| new_str_array(&Runtime::global().backends_of(c)));
            finish_with_object(names, out_arr, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuDeviceMaxWorkgroupSize`].
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_max_workgroup_size(dev: *const MpRtHeader) -> u32 {
    // SAFETY: forwarded from the caller.
    unsafe { number(dev, |c| c.properties().limits.workgroup_invocations) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceMaxSharedBytes`].
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_max_shared_bytes(dev: *const MpRtHeader) -> u32 {
    // SAFETY: forwarded from the caller.
    unsafe { number(dev, |c| c.properties().limits.shared_bytes) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceMaxBuffers`].
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_max_buffers(dev: *const MpRtHeader) -> u32 {
    // SAFETY: forwarded from the caller.
    unsafe { number(dev, |c| c.properties().limits.buffers) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceWarpSize`].
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_warp_size(dev: *const MpRtHeader) -> u32 {
    // SAFETY: forwarded from the caller.
    unsafe { number(dev, |c| c.properties().subgroup_size) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceMemoryTotal`]. In bytes.
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_memory_total(dev: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    unsafe { number(dev, |c| c.properties().memory_total) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceMemoryAvailable`]. In bytes.
///
/// # Safety
/// `dev` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_memory_available(dev: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    unsafe { number(dev, Context::memory_available) }
}

/// See [`magpie_types::abi::RtFn::GpuDeviceSync`].
///
/// # Safety
/// `dev` is null or a live object; `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_sync(
    dev: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        finish(payload::<Arc<Context>>(dev).and_then(|c| c.synchronize()), out_err)
    })
}
