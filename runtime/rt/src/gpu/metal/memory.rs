//! Buffers as memory. The handle of a piece of memory is the address of its `MTLBuffer`, of which
//! it holds one count.

use super::adapter::Adapter;
use super::error::error;
use super::recycler::Recycler;
use crate::gpu::device::{DeviceMemory, MemoryHint};
use crate::gpu::error::{ErrorKind, GpuResult};
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLDevice, MTLResourceOptions};
use std::sync::atomic::Ordering;

pub(super) type Buffer = ProtocolObject<dyn MTLBuffer>;

/// The memory of a device.
pub(super) struct Pool {
    freed: Recycler<Retained<Buffer>>,
}

// SAFETY: Metal's buffers may be used and released on any thread.
unsafe impl Send for Pool {}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool { freed: Recycler::new() }
    }

    /// At least `bytes` bytes; `completed` is the newest work that is done.
    pub(super) fn allocate(
        &mut self,
        adapter: &Adapter,
        bytes: u64,
        hint: MemoryHint,
        completed: u64,
    ) -> GpuResult<DeviceMemory> {
        let label = adapter.properties.label();
        let limit = adapter.properties.limits.buffer_bytes;
        let size = Recycler::<()>::rounded(bytes).map(|size| size.min(limit).max(bytes));
        let Some(size) = size.filter(|&size| size <= limit) else {
            let message =
                format!("cannot allocate {bytes} bytes on {label}: it allows {limit} at a time");
            return Err(error(ErrorKind::OutOfMemory, message));
        };
        let is_private =
            !adapter.unified_memory && matches!(hint, MemoryHint::Auto | MemoryHint::DeviceLocal);
        let options = match is_private {
            true => MTLResourceOptions::StorageModePrivate,
            false => MTLResourceOptions::StorageModeShared,
        };
        let kind = u64::from(is_private);
        let buffer = match self.freed.take(size, kind, completed) {
            Some(buffer) => buffer,
            None => self.make(adapter, size, options).ok_or_else(|| {
                let device = &adapter.device;
                let (used, total) =
                    (device.currentAllocatedSize(), device.recommendedMaxWorkingSetSize());
                let message = format!(
                    "cannot allocate {bytes} bytes on {label} ({used} of {total} bytes are in use)"
                );
                error(ErrorKind::OutOfMemory, message)
            })?,
        };
        let host = (!is_private).then(|| buffer.contents().cast());
        let handle = Retained::into_raw(buffer) as u64;
        let mut memory = DeviceMemory::new(handle, 0, size);
        memory.host = host;
        memory.slot = kind;
        Ok(memory)
    }

    fn make(
        &mut self,
        adapter: &Adapter,
        size: u64,
        options: MTLResourceOptions,
    ) -> Option<Retained<Buffer>> {
        let length = usize::try_from(size).ok()?;
        adapter.device.newBufferWithLength_options(length, options).or_else(|| {
            // What is kept may be what is missing.
            self.freed.drain().for_each(drop);
            adapter.device.newBufferWithLength_options(length, options)
        })
    }

    /// Takes memory back. Command buffers that use it keep it alive.
    pub(super) fn free(&mut self, memory: &DeviceMemory) {
        // SAFETY: the handle is the address of a buffer with a count that belongs to the memory,
        // and memory comes back once.
        let buffer = unsafe { Retained::from_raw(memory.handle as *mut Buffer) };
        if let Some(buffer) = buffer {
            let last_use = memory.last_use.load(Ordering::Relaxed);
            drop(self.freed.put(memory.size, memory.slot, last_use, buffer));
        }
    }
}

/// The buffer of a piece of memory.
pub(super) fn buffer_of(memory: &DeviceMemory) -> &Buffer {
    // SAFETY: the handle is the address of a buffer that lives as long as the memory.
    unsafe { &*(memory.handle as *const Buffer) }
}
