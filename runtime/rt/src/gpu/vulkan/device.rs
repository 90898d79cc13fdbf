//! The Vulkan device behind [`Device`].

use super::adapter::Adapter;
use super::core::Core;
use super::instance::{Instance, VulkanOptions};
use super::kernel::VulkanKernel;
use super::memory::Pools;
use super::pipeline_cache::PipelineCache;
use super::queue::Queue;
use super::staging::{Readback, Upload};
use crate::gpu::device::{Device, DeviceKernel, DeviceMemory, MemoryHint, Serial, Timing};
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::host_memory;
use crate::gpu::properties::DeviceProperties;
use crate::gpu::transfer_sizes::UPLOAD_PIECE;
use magpie_types::kernel::KernelBlob;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::BACKEND;

/// An opened device; kernels hold it too.
pub(super) struct Inner {
    queue: Mutex<Queue>,
    pools: Mutex<Pools>,
    /// Made by the first transfer that needs it.
    readback: Mutex<Option<Readback>>,
    cache: PipelineCache,
    core: Core,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn cache(&self) -> &PipelineCache {
        &self.cache
    }

    /// The queue, when neither the device nor the validation layer has something to say.
    pub(super) fn queue(&self) -> GpuResult<MutexGuard<'_, Queue>> {
        self.core.reports().check()?;
        let queue = lock(&self.queue);
        queue.check()?;
        Ok(queue)
    }

    /// Makes the staging memory for the way to the device, for pieces of `piece` bytes.
    pub(super) fn prepare_uploads(&self, piece: usize) -> GpuResult<()> {
        let mut queue = self.queue()?;
        if queue.upload.is_none() {
            queue.upload = Some(Upload::new(&self.core, &lock(&self.pools), piece)?);
        }
        Ok(())
    }

    /// Submits work up to `serial` and waits for it.
    pub(super) fn wait_for(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        self.queue()?.submit_up_to(&self.core, serial.0)?;
        let nanoseconds =
            limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let waited = match serial {
            Serial(0) => Ok(true),
            Serial(serial) => self.core.wait_for(serial, nanoseconds),
        };
        let done = waited.map_err(|failure| match failure.kind {
            ErrorKind::DeviceLost => lock(&self.queue).fail(failure),
            _ => failure,
        })?;
        self.core.reports().check()?;
        if done {
            lock(&self.pools).collect(&self.core.adapter, &self.core.device, serial.0);
        }
        Ok(done)
    }

    /// Waits until no queued work uses the memory.
    fn settle(&self, memory: &DeviceMemory) -> GpuResult<()> {
        self.wait_for(Serial(memory.last_use.load(Ordering::Relaxed)), None).map(drop)
    }

    /// Reads memory that the host cannot reach, in pieces: while the host copies one out of
    /// staging memory, the device writes the next.
    fn download_staged(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        let mut readback = lock(&self.readback);
        if readback.as_ref().is_none_or(|readback| readback.is_too_small(dst.len())) {
            let larger = Readback::new(&self.core, &lock(&self.pools), dst.len())?;
            if let Some(smaller) = readback.replace(larger) {
                // A transfer that failed may have left work behind.
                let newest = lock(&self.queue).newest();
                self.wait_for(Serial(newest), None)?;
                // SAFETY: no batch uses the memory any more.
                unsafe { smaller.destroy(&self.core.device) };
            }
        }
        let Some(readback) = readback.as_ref() else { return Ok(()) };
        let half = readback.half_size();
        let mut under_way: Option<(usize, u64, &mut [u8])> = None;
        let finish = |piece: Option<(usize, u64, &mut [u8])>| -> GpuResult<()> {
            let Some((which, serial, part)) = piece else { return Ok(()) };
            self.wait_for(Serial(serial), None)?;
            readback.read(which, part);
            Ok(())
        };
        for (which, part) in dst.chunks_mut(half).enumerate() {
            let at = offset + (which * half) as u64;
            let (to, bytes) = (readback.half(which), part.len() as u64);
            let serial = self.queue()?.download(&self.core, src, at, to, bytes)?;
            finish(under_way.replace((which, serial, part)))?;
        }
        finish(under_way)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.cache.save(&self.core.device);
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        let pools = self.pools.get_mut().unwrap_or_else(PoisonError::into_inner);
        let readback = self.readback.get_mut().unwrap_or_else(PoisonError::into_inner);
        let device = &self.core.device;
        // SAFETY: nobody else has the device any more, and it is idle or lost before anything is
        // destroyed.
        unsafe {
            let _ = queue.submit(&self.core);
            let _ = device.device_wait_idle();
            queue.destroy(device);
            if let Some(readback) = readback.take() {
                readback.destroy(device);
            }
            pools.destroy(device);
            self.cache.destroy(device);
        }
    }
}

/// A Vulkan device.
pub(super) struct VulkanDevice(Arc<Inner>);

impl VulkanDevice {
    /// Opens an adapter.
    pub(super) fn open(
        instance: &Arc<Instance>,
        adapter: &Adapter,
        options: &VulkanOptions,
    ) -> GpuResult<VulkanDevice> {
        let core = Core::open(instance, adapter, options)?;
        let pools = Pools::new(adapter, &core.device, !options.no_mapped_memory);
        let cache = PipelineCache::new(&core.device, adapter, options.cache_folder.as_deref());
        let queue = Mutex::new(Queue::new(&core));
        let readback = Mutex::new(None);
        let inner = Inner { queue, pools: Mutex::new(pools), readback, cache, core };
        instance.reports().check()?;
        Ok(VulkanDevice(Arc::new(inner)))
    }
}

impl Device for VulkanDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.0.core.adapter.properties
    }

    fn memory_available(&self) -> u64 {
        let core = &self.0.core;
        core.memory_budget().unwrap_or_else(|| lock(&self.0.pools).available(&core.adapter))
    }

    fn allocate(&self, bytes: u64, hint: MemoryHint) -> GpuResult<DeviceMemory> {
        let Inner { core, pools, .. } = &*self.0;
        core.reports().check()?;
        let allocate = || lock(pools).allocate(&core.adapter, &core.device, bytes, hint);
        match allocate() {
            Err(error) if error.kind == ErrorKind::OutOfMemory && lock(pools).has_pending() => {
                // Memory may be waiting for work that is queued.
                self.0.wait_for(self.newest(), None)?;
                allocate()
            }
            other => other,
        }
    }

    fn free(&self, memory: &DeviceMemory) {
        let Inner { core, pools, .. } = &*self.0;
        // When the device does not answer, memory stays until it is closed.
        let completed = core.completed().unwrap_or(0);
        lock(pools).free(&core.adapter, &core.device, memory, completed);
    }

    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        if dst.host.is_some() {
            self.0.settle(dst)?;
            return host_memory::write(BACKEND, dst, offset, src);
        }
        self.0.prepare_uploads(src.len().min(UPLOAD_PIECE))?;
        for (n, part) in src.chunks(UPLOAD_PIECE).enumerate() {
            let at = offset + (n * UPLOAD_PIECE) as u64;
            let mut queue = self.0.queue()?;
            queue.upload(&self.0.core, dst, at, part)?;
            if src.len() > UPLOAD_PIECE {
                queue.submit(&self.0.core)?;
            }
        }
        Ok(())
    }

    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        if src.host.is_some() {
            self.0.settle(src)?;
            return host_memory::read(BACKEND, src, offset, dst);
        }
        self.0.download_staged(src, offset, dst)
    }

    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        self.0.queue()?.copy(&self.0.core, src, dst, bytes)
    }

    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        if dst.host.is_some() {
            self.0.settle(dst)?;
            return host_memory::fill_zero(BACKEND, dst, bytes);
        }
        self.0.queue()?.fill_zero(&self.0.core, dst, bytes.next_multiple_of(4))
    }

    fn load_kernel(
        &self,
        name: &str,
        _hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>> {
        let kernel = VulkanKernel::new(&self.0, name, blob)?;
        self.0.core.reports().check()?;
        Ok(Box::new(kernel))
    }

    fn newest(&self) -> Serial {
        Serial(lock(&self.0.queue).newest())
    }

    fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        self.0.wait_for(serial, limit)
    }

    fn take_timings(&self, out: &mut Vec<Timing>) {
        lock(&self.0.queue).take_timings(&self.0.core, out);
    }

    fn save_caches(&self) {
        self.0.cache.save(&self.0.core.device);
    }
}
