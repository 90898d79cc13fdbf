//! The Metal device behind [`Device`].

use super::adapter::Adapter;
use super::error::{BACKEND, error};
use super::kernel::MetalKernel;
use super::memory::{Buffer, Pool};
use super::progress::Progress;
use super::queue::{Piece, Queue};
use crate::gpu::device::{Device, DeviceKernel, DeviceMemory, MemoryHint, Serial, Timing};
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::host_memory;
use crate::gpu::properties::DeviceProperties;
use magpie_types::kernel::KernelBlob;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLDevice, MTLResourceOptions};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a staged transfer that are under way at a time.
const PIECE: usize = 16 << 20;

/// An opened device; kernels hold it too.
pub(super) struct Inner {
    adapter: Adapter,
    queue: Mutex<Queue>,
    pool: Mutex<Pool>,
    progress: Arc<Progress>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(super) fn device(&self) -> &ProtocolObject<dyn MTLDevice> {
        &self.adapter.device
    }

    pub(super) fn label(&self) -> String {
        self.adapter.properties.label()
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    fn wait_for(&self, serial: u64, limit: Option<Duration>) -> GpuResult<bool> {
        self.queue().commit_up_to(serial);
        self.progress.wait(serial, limit)
    }

    /// Waits until no queued work uses the memory.
    fn settle(&self, memory: &DeviceMemory) -> GpuResult<()> {
        self.wait_for(memory.last_use.load(Ordering::Relaxed), None).map(drop)
    }

    /// Memory that the host reaches, for one piece of a transfer.
    fn staging(&self, bytes: usize) -> GpuResult<Retained<Buffer>> {
        let options = MTLResourceOptions::StorageModeShared;
        self.adapter.device.newBufferWithLength_options(bytes, options).ok_or_else(|| {
            let message = format!("no {bytes} bytes for a transfer on {}", self.label());
            error(ErrorKind::OutOfMemory, message)
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let newest = {
            let mut queue = self.queue();
            queue.commit();
            queue.newest()
        };
        // A device that fails to finish has nothing running any more.
        let _ = self.progress.wait(newest, None);
    }
}

/// A Metal device.
pub(super) struct MetalDevice(Arc<Inner>);

impl MetalDevice {
    /// Opens a device.
    pub(super) fn open(adapter: &Adapter) -> GpuResult<MetalDevice> {
        let progress = Arc::new(Progress::default());
        let queue = Mutex::new(Queue::new(adapter, &progress)?);
        let pool = Mutex::new(Pool::new());
        Ok(MetalDevice(Arc::new(Inner { adapter: adapter.clone(), queue, pool, progress })))
    }
}

impl Device for MetalDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.0.adapter.properties
    }

    fn memory_available(&self) -> u64 {
        let device = self.0.device();
        device.recommendedMaxWorkingSetSize().saturating_sub(device.currentAllocatedSize() as u64)
    }

    fn allocate(&self, bytes: u64, hint: MemoryHint) -> GpuResult<DeviceMemory> {
        self.0.progress.check()?;
        let completed = self.0.progress.completed();
        lock(&self.0.pool).allocate(&self.0.adapter, bytes, hint, completed)
    }

    fn free(&self, memory: &DeviceMemory) {
        lock(&self.0.pool).free(memory);
    }

    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        if dst.host.is_some() {
            self.0.settle(dst)?;
            return host_memory::write(BACKEND, dst, offset, src);
        }
        for (n, part) in src.chunks(PIECE).enumerate() {
            let staging = self.0.staging(part.len())?;
            // SAFETY: the new buffer has as many bytes as the part.
            unsafe {
                let to = staging.contents().cast::<u8>().as_ptr();
                to.copy_from_nonoverlapping(part.as_ptr(), part.len());
            }
            let from = Piece { buffer: &staging, offset: 0 };
            let to = Piece::of(dst, offset + (n * PIECE) as u64);
            let mut queue = self.0.queue();
            let serial = queue.copy(from, to, part.len() as u64)?;
            dst.last_use.store(serial, Ordering::Relaxed);
            if src.len() > PIECE {
                queue.commit();
            }
        }
        Ok(())
    }

    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        if src.host.is_some() {
            self.0.settle(src)?;
            return host_memory::read(BACKEND, src, offset, dst);
        }
        for (n, part) in dst.chunks_mut(PIECE).enumerate() {
            let staging = self.0.staging(part.len())?;
            let from = Piece::of(src, offset + (n * PIECE) as u64);
            let to = Piece { buffer: &staging, offset: 0 };
            let serial = self.0.queue().copy(from, to, part.len() as u64)?;
            src.last_use.store(serial, Ordering::Relaxed);
            self.0.wait_for(serial, None)?;
            // SAFETY: the buffer has as many bytes as the part, and the copy is done.
            unsafe {
                let from = staging.contents().cast::<u8>().as_ptr();
                from.copy_to_nonoverlapping(part.as_mut_ptr(), part.len());
            }
        }
        Ok(())
    }

    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        let serial = self.0.queue().copy(Piece::of(src, 0), Piece::of(dst, 0), bytes)?;
        src.last_use.store(serial, Ordering::Relaxed);
        dst.last_use.store(serial, Ordering::Relaxed);
        Ok(())
    }

    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        if dst.host.is_some() {
            self.0.settle(dst)?;
            return host_memory::fill_zero(BACKEND, dst, bytes);
        }
        self.0.queue().fill_zero(dst, bytes.next_multiple_of(4))
    }

    fn load_kernel(
        &self,
        name: &str,
        _hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>> {
        Ok(Box::new(MetalKernel::new(&self.0, name, blob)?))
    }

    fn newest(&self) -> Serial {
        Serial(self.0.queue().newest())
    }

    fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        self.0.wait_for(serial.0, limit)
    }

    fn take_timings(&self, out: &mut Vec<Timing>) {
        self.0.progress.take_timings(out);
    }
}
