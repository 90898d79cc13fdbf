//! The queue of a device: encodes work into command buffers and commits them.
//!
//! Serial `n` is the work of the `n`-th command buffer. Metal tracks hazards between buffers itself
//! and keeps what a command buffer uses alive until it is done.

use super::adapter::Adapter;
use super::error::{error, launch_failure};
use super::memory::{Buffer, buffer_of};
use super::progress::Progress;
use crate::gpu::clock::now_ns;
use crate::gpu::device::{DeviceMemory, Timing, TimingToken};
use crate::gpu::error::{ErrorKind, GpuResult};
use block2::RcBlock;
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSRange;
use objc2_metal::{
    MTLBlitCommandEncoder, MTLCommandBuffer, MTLCommandBufferStatus, MTLCommandEncoder,
    MTLCommandQueue, MTLComputeCommandEncoder, MTLDevice,
};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Launches of a command buffer at most; a full one is committed.
const MAX_LAUNCHES: u32 = 256;

pub(super) type ComputeEncoder = ProtocolObject<dyn MTLComputeCommandEncoder>;
type BlitEncoder = ProtocolObject<dyn MTLBlitCommandEncoder>;
type CommandBuffer = ProtocolObject<dyn MTLCommandBuffer>;

/// The state of encoding and submission.
pub(super) struct Queue {
    handle: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    open: Option<Open>,
    committed: u64,
    progress: Arc<Progress>,
    label: String,
}

/// The command buffer under construction.
struct Open {
    buffer: Retained<CommandBuffer>,
    encoder: Encoder,
    launches: u32,
    timing: Option<TimingToken>,
    newest_kernel: Option<Arc<str>>,
}

enum Encoder {
    None,
    Compute(Retained<ComputeEncoder>),
    Blit(Retained<BlitEncoder>),
}

// SAFETY: command buffers and encoders may be used on any thread, by one at a time; the queue is
// behind a lock.
unsafe impl Send for Queue {}

/// Where a transfer begins.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) buffer: &'a Buffer,
    pub(super) offset: u64,
}

impl<'a> Piece<'a> {
    /// A place in a piece of memory.
    pub(super) fn of(memory: &'a DeviceMemory, offset: u64) -> Piece<'a> {
        Piece { buffer: buffer_of(memory), offset: memory.offset + offset }
    }
}

impl Queue {
    pub(super) fn new(adapter: &Adapter, progress: &Arc<Progress>) -> GpuResult<Queue> {
        let label = adapter.properties.label();
        let handle = adapter.device.newCommandQueue();
        let handle = handle.ok_or_else(|| {
            error(ErrorKind::DriverError, format!("cannot make a command queue on {label}"))
        })?;
        let progress = Arc::clone(progress);
        Ok(Queue { handle, open: None, committed: 0, progress, label })
    }

    /// The serial of the newest encoded work.
    pub(super) fn newest(&self) -> u64 {
        self.committed + u64::from(self.open.is_some())
    }

    /// The open command buffer; opens one if there is none. Waits while too many are under way.
    fn open(&mut self) -> GpuResult<&mut Open> {
        self.progress.check()?;
        if self.open.is_none() {
            let buffer = autoreleasepool(|_| self.handle.commandBuffer());
            let buffer = buffer.ok_or_else(|| self.exhausted("command buffer"))?;
            self.open = Some(Open {
                buffer,
                encoder: Encoder::None,
                launches: 0,
                timing: None,
                newest_kernel: None,
            });
        }
        match &mut self.open {
            Some(open) => Ok(open),
            None => Err(error(ErrorKind::DriverError, "no command buffer is open")),
        }
    }

    fn exhausted(&self, what: &str) -> crate::gpu::error::GpuError {
        error(ErrorKind::ResourceExhausted, format!("cannot make a {what} on {}", self.label))
    }

    fn compute(&mut self) -> GpuResult<Retained<ComputeEncoder>> {
        let open = self.open()?;
        if let Encoder::Compute(encoder) = &open.encoder {
            return Ok(encoder.clone());
        }
        open.end_encoding();
        let encoder = autoreleasepool(|_| open.buffer.computeCommandEncoder());
        let Some(encoder) = encoder else { return Err(self.exhausted("compute encoder")) };
        self.open()?.encoder = Encoder::Compute(encoder.clone());
        Ok(encoder)
    }

    fn blit(&mut self) -> GpuResult<Retained<BlitEncoder>> {
        let open = self.open()?;
        if let Encoder::Blit(encoder) = &open.encoder {
            return Ok(encoder.clone());
        }
        open.end_encoding();
        let encoder = autoreleasepool(|_| open.buffer.blitCommandEncoder());
        let Some(encoder) = encoder else { return Err(self.exhausted("blit encoder")) };
        self.open()?.encoder = Encoder::Blit(encoder.clone());
        Ok(encoder)
    }

    /// Commits the open command buffer, if any.
    pub(super) fn commit(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        open.end_encoding();
        self.committed += 1;
        let (serial, progress) = (self.committed, Arc::clone(&self.progress));
        let (token, label) = (open.timing, self.label.clone());
        let kernel = open.newest_kernel.take();
        let handler = RcBlock::new(move |buffer: NonNull<CommandBuffer>| {
            // SAFETY: Metal passes the command buffer that is done.
            let buffer = unsafe { buffer.as_ref() };
            progress.finish(serial, outcome(buffer, token, kernel.as_deref(), &label));
        });
        // SAFETY: the block takes what Metal passes; Metal copies it.
        unsafe { open.buffer.addCompletedHandler(RcBlock::as_ptr(&handler)) };
        open.buffer.commit();
    }

    /// Commits work up to `serial`.
    pub(super) fn commit_up_to(&mut self, serial: u64) {
        if serial > self.committed {
            self.commit();
        }
    }

    /// Encodes a copy between two pieces; the serial of it.
    pub(super) fn copy(&mut self, from: Piece<'_>, to: Piece<'_>, bytes: u64) -> GpuResult<u64> {
        let encoder = self.blit()?;
        // SAFETY: both pieces have the bytes and do not overlap.
        unsafe {
            encoder.copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size(
                from.buffer,
                from.offset as usize,
                to.buffer,
                to.offset as usize,
                bytes as usize,
            );
        }
        Ok(self.newest())
    }

    /// Encodes the zeroing of the first `bytes` bytes.
    pub(super) fn fill_zero(&mut self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        let encoder = self.blit()?;
        let range = NSRange::new(dst.offset as usize, bytes as usize);
        encoder.fillBuffer_range_value(buffer_of(dst), range, 0);
        dst.last_use.store(self.newest(), Ordering::Relaxed);
        Ok(())
    }

    /// Encodes a launch, which `encode` writes. A measured one has a command buffer of its own.
    pub(super) fn launch(
        &mut self,
        kernel: &Arc<str>,
        timing: Option<TimingToken>,
        blocking: bool,
        encode: impl FnOnce(&ComputeEncoder),
    ) -> GpuResult<u64> {
        if timing.is_some() {
            self.commit();
        }
        let encoder = self.compute()?;
        encode(&encoder);
        let serial = self.newest();
        let open = self.open()?;
        open.launches += 1;
        open.timing = timing;
        open.newest_kernel = Some(Arc::clone(kernel));
        let is_full = open.launches >= MAX_LAUNCHES;
        let is_idle = !blocking && self.progress.completed() == self.committed;
        if timing.is_some() || is_full || is_idle {
            self.commit();
        }
        Ok(serial)
    }
}

impl Open {
    fn end_encoding(&mut self) {
        match std::mem::replace(&mut self.encoder, Encoder::None) {
            Encoder::None => {}
            Encoder::Compute(encoder) => encoder.endEncoding(),
            Encoder::Blit(encoder) => encoder.endEncoding(),
        }
    }
}

/// How a command buffer went, and when it ran.
fn outcome(
    buffer: &CommandBuffer,
    token: Option<TimingToken>,
    kernel: Option<&str>,
    label: &str,
) -> GpuResult<Option<Timing>> {
    if buffer.status() == MTLCommandBufferStatus::Error
        && let Some(reported) = buffer.error()
    {
        let of = kernel.map_or(String::new(), |k| format!("; the newest launch was of `{k}`"));
        return Err(launch_failure(&format!("work on {label} failed{of}"), &reported));
    }
    Ok(token.map(|token| {
        // Both times are seconds of the clock that stands while the machine sleeps.
        let (uptime, now) = (uptime_ns(), now_ns());
        let host_ns =
            |seconds: f64| now.saturating_sub(uptime.saturating_sub((seconds * 1e9) as u64));
        let (start_ns, end_ns) = (host_ns(buffer.GPUStartTime()), host_ns(buffer.GPUEndTime()));
        Timing { token, start_ns, end_ns: end_ns.max(start_ns) }
    }))
}

/// Nanoseconds that the machine has run without sleeping.
fn uptime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written; this clock exists on every macOS.
    unsafe { libc::clock_gettime(libc::CLOCK_UPTIME_RAW, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
