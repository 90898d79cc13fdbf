//! The device behind [`Device`].

use super::StreamOptions;
use super::adapter::Adapter;
use super::api::Api;
use super::core::Core;
use super::cubin::Cubins;
use super::kernel::StreamKernel;
use super::memory::Allocator;
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

/// An opened device; kernels hold it too.
pub(super) struct Inner {
    queue: Mutex<Queue>,
    allocator: Mutex<Allocator>,
    /// Made by the first transfer that needs it.
    readback: Mutex<Option<Readback>>,
    pub(super) cubins: Cubins,
    // Last: what is above is gone when the stream and the context are given back.
    pub(super) core: Core,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// The queue, with the device current and at work.
    pub(super) fn queue(&self) -> GpuResult<MutexGuard<'_, Queue>> {
        self.core.enter()?;
        Ok(lock(&self.queue))
    }

    /// Waits for work up to `serial`.
    pub(super) fn wait_for(&self, serial: u64, limit: Option<Duration>) -> GpuResult<bool> {
        let target = self.queue()?.target(&self.core, serial)?;
        let Some(target) = target else { return Ok(true) };
        // Others may queue meanwhile.
        let is_done = target.wait(&self.core, limit)?;
        if is_done {
            lock(&self.queue).done(target.serial());
            lock(&self.allocator).collect(&self.core, target.serial());
        }
        Ok(is_done)
    }

    /// Waits until no queued work uses the memory.
    fn settle(&self, memory: &DeviceMemory) -> GpuResult<()> {
        self.wait_for(memory.last_use.load(Ordering::Relaxed), None).map(drop)
    }

    fn upload_piece(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        let core = &self.core;
        loop {
            let mut queue = self.queue()?;
            let serial = queue.next();
            let upload = match &mut queue.upload {
                Some(upload) => upload,
                none => none.insert(Upload::new(core, src.len())?),
            };
            if upload.is_too_small(src.len()) {
                // A copy that failed leaves a piece behind that nothing reads.
                if let Some(oldest) = upload.oldest().filter(|&oldest| oldest < serial) {
                    drop(queue);
                    self.wait_for(oldest, None)?;
                    continue;
                }
                // SAFETY: the ring has no piece that work reads.
                unsafe { upload.grow(core, src.len()) }?;
            }
            let (staged, oldest) = (upload.put(src, serial), upload.oldest());
            let Some(staged) = staged else {
                drop(queue);
                self.wait_for(oldest.unwrap_or(0), None)?;
                continue;
            };
            let to = dst.handle + dst.offset + offset;
            // SAFETY: both places have the bytes; the staged ones stay until the work is done.
            let code = unsafe {
                (core.api.call.copy_to_device)(to, staged.cast(), src.len(), core.stream)
            };
            core.check(code, || {
                let label = core.adapter.properties.label();
                format!("cannot write {} bytes to a buffer on {label}", src.len())
            })?;
            dst.last_use.store(queue.queued(), Ordering::Relaxed);
            if src.len() == UPLOAD_PIECE {
                queue.mark(core)?;
            }
            return Ok(());
        }
    }

    /// Reads memory in pieces: while the host copies one out of pinned memory, the device writes
    /// the next.
    fn download_staged(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        let mut readback = lock(&self.readback);
        if readback.as_ref().is_none_or(|readback| readback.is_too_small(dst.len())) {
            let larger = Readback::new(&self.core, dst.len())?;
            if let Some(smaller) = readback.replace(larger) {
                // A transfer that failed may have left work behind.
                let newest = lock(&self.queue).next() - 1;
                self.wait_for(newest, None)?;
                // SAFETY: no work writes the memory any more.
                unsafe { smaller.destroy(&self.core) };
            }
        }
        let Some(readback) = readback.as_ref() else { return Ok(()) };
        let half = readback.half_size();
        let mut under_way: Option<(usize, u64, &mut [u8])> = None;
        let finish = |piece: Option<(usize, u64, &mut [u8])>| -> GpuResult<()> {
            let Some((which, serial, part)) = piece else { return Ok(()) };
            self.wait_for(serial, None)?;
            readback.read(which, part);
            Ok(())
        };
        for (which, part) in dst.chunks_mut(half).enumerate() {
            let from = src.handle + src.offset + offset + (which * half) as u64;
            let serial = self.download_piece(from, readback.half(which), part.len())?;
            finish(under_way.replace((which, serial, part)))?;
        }
        finish(under_way)
    }

    fn download_piece(&self, from: u64, to: *mut u8, bytes: usize) -> GpuResult<u64> {
        let (core, mut queue) = (&self.core, self.queue()?);
        // SAFETY: both places have the bytes; the pinned ones are ours until the work is done.
        let code = unsafe { (core.api.call.copy_to_host)(to.cast(), from, bytes, core.stream) };
        core.check(code, || {
            let label = core.adapter.properties.label();
            format!("cannot read {bytes} bytes of a buffer on {label}")
        })?;
        let serial = queue.queued();
        queue.mark(core)?;
        Ok(serial)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let core = &self.core;
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        let allocator = self.allocator.get_mut().unwrap_or_else(PoisonError::into_inner);
        let readback = self.readback.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nobody else has the device any more, and it is idle or lost before anything is
        // destroyed.
        unsafe {
            if core.enter().is_ok() {
                (core.api.call.stream_synchronize)(core.stream);
            }
            queue.destroy(core);
            if let Some(readback) = readback.take() {
                readback.destroy(core);
            }
        }
        allocator.destroy(core);
    }
}

/// A device of CUDA or HIP.
pub(super) struct StreamDevice(Arc<Inner>);

impl StreamDevice {
    /// Opens an adapter.
    pub(super) fn open(
        api: &Arc<Api>,
        adapter: &Adapter,
        options: &StreamOptions,
    ) -> GpuResult<StreamDevice> {
        let core = Core::open(api, adapter)?;
        Ok(StreamDevice(Arc::new(Inner {
            queue: Mutex::new(Queue::new()),
            allocator: Mutex::new(Allocator::new(&core, options.own_pool)),
            readback: Mutex::new(None),
            cubins: Cubins::new(options.cache_folder.as_deref(), adapter, api.version),
            core,
        })))
    }
}

impl Device for StreamDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.0.core.adapter.properties
    }

    fn memory_available(&self) -> u64 {
        lock(&self.0.allocator).available(&self.0.core)
    }

    fn allocate(&self, bytes: u64, hint: MemoryHint) -> GpuResult<DeviceMemory> {
        let Inner { core, allocator, .. } = &*self.0;
        match lock(allocator).allocate(core, bytes, hint) {
            Err(error) if error.kind == ErrorKind::OutOfMemory => {}
            other => return other,
        }
        // Memory may be waiting for work that is queued.
        self.0.wait_for(self.newest().0, None)?;
        lock(allocator).allocate(core, bytes, hint)
    }

    fn free(&self, memory: &DeviceMemory) {
        let completed = lock(&self.0.queue).completed();
        lock(&self.0.allocator).free(&self.0.core, memory, completed);
    }

    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        if dst.host.is_some() {
            self.0.settle(dst)?;
            return host_memory::write(self.0.core.api.vendor.backend(), dst, offset, src);
        }
        for (n, part) in src.chunks(UPLOAD_PIECE).enumerate() {
            self.0.upload_piece(dst, offset + (n * UPLOAD_PIECE) as u64, part)?;
        }
        Ok(())
    }

    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        if src.host.is_some() {
            self.0.settle(src)?;
            return host_memory::read(self.0.core.api.vendor.backend(), src, offset, dst);
        }
        self.0.download_staged(src, offset, dst)
    }

    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        let (core, mut queue) = (&self.0.core, self.0.queue()?);
        let (to, from) = (dst.handle + dst.offset, src.handle + src.offset);
        // SAFETY: both pieces have the bytes and are distinct.
        let code = unsafe { (core.api.call.copy_on_device)(to, from, bytes as usize, core.stream) };
        core.check(code, || {
            let label = core.adapter.properties.label();
            format!("cannot copy {bytes} bytes between buffers on {label}")
        })?;
        let serial = queue.queued();
        src.last_use.store(serial, Ordering::Relaxed);
        dst.last_use.store(serial, Ordering::Relaxed);
        Ok(())
    }

    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        if dst.host.is_some() {
            self.0.settle(dst)?;
            return host_memory::fill_zero(self.0.core.api.vendor.backend(), dst, bytes);
        }
        let (core, mut queue) = (&self.0.core, self.0.queue()?);
        let words = bytes.div_ceil(4) as usize;
        // SAFETY: sizes of memory are multiples of 4.
        let code =
            unsafe { (core.api.call.fill_words)(dst.handle + dst.offset, 0, words, core.stream) };
        core.check(code, || {
            let label = core.adapter.properties.label();
            format!("cannot clear {bytes} bytes of a buffer on {label}")
        })?;
        dst.last_use.store(queue.queued(), Ordering::Relaxed);
        Ok(())
    }

    fn load_kernel(
        &self,
        name: &str,
        _hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>> {
        Ok(Box::new(StreamKernel::new(&self.0, name, blob)?))
    }

    fn newest(&self) -> Serial {
        Serial(lock(&self.0.queue).newest())
    }

    fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        self.0.wait_for(serial.0, limit)
    }

    fn take_timings(&self, out: &mut Vec<Timing>) {
        if let Ok(mut queue) = self.0.queue()
            && queue.poll(&self.0.core).is_ok()
        {
            queue.take_timings(&self.0.core, out);
        }
    }
}
