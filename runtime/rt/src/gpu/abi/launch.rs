//! `mp_rt_gpu_launch_*` and `mp_rt_gpu_fence_wait`.

use super::{Payload, drop_payload, finish, finish_with, finish_with_object, new_object, payload};
use crate::gpu::buffer::Buffer;
use crate::gpu::context::{Context, Fence};
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::fallback::launch_on_cpu;
use crate::gpu::launch::{Arguments, LaunchSize, LoadedKernel};
use crate::gpu::runtime::Runtime;
use crate::object::MpRtHeader;
use crate::panic::guarded;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::fixed;
use std::sync::Arc;
use std::time::Duration;

static FENCE: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::GPU_FENCE,
    size_of::<Fence>(),
    align_of::<Fence>(),
    drop_payload::<Fence>,
    c"gpu.TFence",
);

impl Payload for Fence {
    const INFO: &'static MpRtTypeInfo = &FENCE;
    const NAME: &'static str = "gpu.TFence";
}

/// A launch as the C ABI describes it.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) device: *const MpRtHeader,
    pub(super) kernel: u64,
    pub(super) size: LaunchSize,
    /// 8 bytes a buffer, then the scalar block.
    pub(super) args: *const u8,
    pub(super) args_len: u64,
}

impl Request {
    /// # Safety
    /// The device is null or a live object.
    pub(super) unsafe fn context<'a>(&self) -> GpuResult<&'a Arc<Context>> {
        // SAFETY: forwarded from the caller.
        unsafe { payload::<Arc<Context>>(self.device) }
    }

    /// The argument block, taken apart for a kernel with `buffers` buffer parameters.
    ///
    /// # Safety
    /// `args` has `args_len` bytes, and the handles in it are null or live objects.
    unsafe fn arguments(&self, kernel: &LoadedKernel, buffers: usize) -> GpuResult<Arguments> {
        let context = kernel.context();
        let bytes: &[u8] = match usize::try_from(self.args_len) {
            Ok(len) if len > 0 && !self.args.is_null() => {
                // SAFETY: forwarded from the caller.
                unsafe { std::slice::from_raw_parts(self.args, len) }
            }
            _ => &[],
        };
        let Some((handles, scalars)) = bytes.split_at_checked(buffers * 8) else {
            let message = format!(
                "launch: an argument block of {} bytes; the kernel has {buffers} buffer parameters \
                 of 8 bytes",
                self.args_len
            );
            return Err(context.error(ErrorKind::LaunchFailed, message));
        };
        let mut arguments = kernel.arguments();
        for &handle in handles.as_chunks::<8>().0 {
            let address = u64::from_ne_bytes(handle) as usize;
            let object = std::ptr::with_exposed_provenance::<MpRtHeader>(address);
            // SAFETY: forwarded from the caller.
            let buffer = unsafe { payload::<Buffer>(object) }?;
            arguments.buffers.push(buffer.clone());
        }
        arguments.scalars.extend_from_slice(scalars);
        Ok(arguments)
    }

    /// The kernel on the device of the request, with its arguments.
    ///
    /// # Safety
    /// As [`Request::context`] and [`Request::arguments`].
    unsafe fn prepare(&self) -> GpuResult<(Arc<LoadedKernel>, Arguments)> {
        // SAFETY: forwarded from the caller.
        let context = unsafe { self.context() }?;
        let kernel = Runtime::global().kernel(context, self.kernel)?;
        let arguments = match kernel.layout().map(|layout| layout.num_arguments()) {
            // SAFETY: forwarded from the caller.
            Some(buffers) => unsafe { self.arguments(&kernel, buffers) }?,
            None => Arguments::default(),
        };
        Ok((kernel, arguments))
    }

    /// Launches and waits.
    ///
    /// # Safety
    /// As [`Request::prepare`].
    pub(super) unsafe fn launch(&self) -> GpuResult<()> {
        // SAFETY: forwarded from the caller.
        let (kernel, arguments) = unsafe { self.prepare() }?;
        kernel.launch(self.size, arguments)
    }

    /// Launches and waits, on the CPU device when the device cannot run the kernel.
    ///
    /// # Safety
    /// As [`Request::prepare`].
    unsafe fn launch_with_fallback(&self) -> GpuResult<()> {
        // SAFETY: forwarded from the caller.
        let Err(refusal) = (unsafe { self.launch() }) else { return Ok(()) };
        let kernel = Runtime::global().cpu_kernel_after(refusal, self.kernel)?;
        let buffers = kernel.layout().map_or(0, |layout| layout.num_arguments());
        // SAFETY: forwarded from the caller.
        let arguments = unsafe { self.arguments(&kernel, buffers) }?;
        launch_on_cpu(&kernel, self.size, arguments)
    }

    /// Queues the launch.
    ///
    /// # Safety
    /// As [`Request::prepare`].
    unsafe fn queue(&self) -> GpuResult<Fence> {
        // SAFETY: forwarded from the caller.
        let (kernel, arguments) = unsafe { self.prepare() }?;
        kernel.queue(self.size, arguments)
    }
}

/// See [`magpie_types::abi::RtFn::GpuLaunchSync`].
///
/// # Safety
/// `dev` is null or a live object, `args` has `args_len` bytes of which the handles are null or
/// live objects, `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_launch_sync(
    dev: *const MpRtHeader,
    kernel: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    args: *const u8,
    args_len: u64,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let size = LaunchSize { grid: [gx, gy, gz], block: [bx, by, bz] };
    let request = Request { device: dev, kernel, size, args, args_len };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish(request.launch(), out_err) })
}

/// See [`magpie_types::abi::RtFn::GpuLaunchSyncFallback`].
///
/// # Safety
/// As [`mp_rt_gpu_launch_sync`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_launch_sync_fallback(
    dev: *const MpRtHeader,
    kernel: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    args: *const u8,
    args_len: u64,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let size = LaunchSize { grid: [gx, gy, gz], block: [bx, by, bz] };
    let request = Request { device: dev, kernel, size, args, args_len };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish(request.launch_with_fallback(), out_err) })
}

/// See [`magpie_types::abi::RtFn::GpuLaunchAsync`].
///
/// # Safety
/// As [`mp_rt_gpu_launch_sync`]; `out_fence` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_launch_async(
    dev: *const MpRtHeader,
    kernel: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    args: *const u8,
    args_len: u64,
    out_fence: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let size = LaunchSize { grid: [gx, gy, gz], block: [bx, by, bz] };
    let request = Request { device: dev, kernel, size, args, args_len };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish_with_object(request.queue().map(new_object), out_fence, out_err) })
}

/// See [`magpie_types::abi::RtFn::GpuFenceWait`].
///
/// # Safety
/// `fence` is null or a live object; `out_done` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_fence_wait(
    fence: *const MpRtHeader,
    timeout_ms: u64,
    out_done: *mut bool,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let fence = payload::<Fence>(fence);
            let done = fence.and_then(|f| f.wait(Some(Duration::from_millis(timeout_ms))));
            finish_with(done, false, out_done, out_err)
        }
    })
}
