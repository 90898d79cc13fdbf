//! Pinned host memory that transfers go through.

use super::core::Core;
use super::memory::alloc_host;
use crate::gpu::error::GpuResult;
use crate::gpu::ring::Ring;
use crate::gpu::transfer_sizes::{readback_half, upload_size};
use std::ptr::NonNull;

/// A block of pinned memory.
struct Pinned(NonNull<u8>);

// SAFETY: it is an address; the owner decides who uses the memory when.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(core: &Core, size: usize) -> GpuResult<Pinned> {
        core.enter()?;
        let what = || {
            let label = core.adapter.properties.label();
            format!("cannot allocate {size} bytes for transfers with {label}")
        };
        alloc_host(core, size, 0, what).map(Pinned)
    }

    /// # Safety
    /// Nothing uses the memory any more.
    unsafe fn destroy(&self, core: &Core) {
        if core.enter().is_ok() {
            // SAFETY: forwarded from the caller.
            unsafe { (core.api.call.host_free)(self.0.as_ptr().cast()) };
        }
    }
}

/// The way to the device: a ring of pieces, each free again when its serial is done.
pub(super) struct Upload {
    memory: Pinned,
    ring: Ring,
    size: u64,
}

impl Upload {
    /// Memory for pieces of `piece` bytes.
    pub(super) fn new(core: &Core, piece: usize) -> GpuResult<Upload> {
        let size = upload_size(piece);
        let memory = Pinned::new(core, size as usize)?;
        Ok(Upload { memory, ring: Ring::new(size), size })
    }

    /// Whether pieces of `piece` bytes want more memory.
    pub(super) fn is_too_small(&self, piece: usize) -> bool {
        self.size < upload_size(piece)
    }

    /// Takes other memory, for pieces of `piece` bytes.
    ///
    /// # Safety
    /// No work reads a piece.
    pub(super) unsafe fn grow(&mut self, core: &Core, piece: usize) -> GpuResult<()> {
        let smaller = std::mem::replace(self, Upload::new(core, piece)?);
        // SAFETY: forwarded from the caller.
        unsafe { smaller.destroy(core) };
        Ok(())
    }

    /// Copies bytes into a piece that the work with this serial reads; `None` when there is no room
    /// before older work is done.
    pub(super) fn put(&mut self, src: &[u8], serial: u64) -> Option<*const u8> {
        let offset = self.ring.reserve(src.len() as u64, 64, serial)?;
        // SAFETY: the ring's places lie in the block, and no work reads this one yet.
        unsafe {
            let to = self.memory.0.as_ptr().add(offset as usize);
            to.copy_from_nonoverlapping(src.as_ptr(), src.len());
            Some(to)
        }
    }

    /// Frees the pieces of work up to `completed`.
    pub(super) fn release(&mut self, completed: u64) {
        self.ring.release(completed);
    }

    /// The serial that must be done before anything becomes free.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.ring.oldest()
    }

    /// # Safety
    /// No work reads the memory any more.
    pub(super) unsafe fn destroy(&self, core: &Core) {
        // SAFETY: forwarded from the caller.
        unsafe { self.memory.destroy(core) };
    }
}

/// The way back: two halves, one being filled by the device while the host empties the other. One
/// transfer has it at a time.
pub(super) struct Readback {
    memory: Pinned,
    half: usize,
}

impl Readback {
    /// Memory for transfers of `bytes` bytes.
    pub(super) fn new(core: &Core, bytes: usize) -> GpuResult<Readback> {
        let half = readback_half(bytes) as usize;
        Ok(Readback { memory: Pinned::new(core, 2 * half)?, half })
    }

    /// Whether transfers of `bytes` bytes want more memory.
    pub(super) fn is_too_small(&self, bytes: usize) -> bool {
        self.half < readback_half(bytes) as usize
    }

    /// Bytes that a half takes.
    pub(super) fn half_size(&self) -> usize {
        self.half
    }

    /// Where a half lies.
    pub(super) fn half(&self, which: usize) -> *mut u8 {
        // SAFETY: both halves lie in the block.
        unsafe { self.memory.0.as_ptr().add(which % 2 * self.half) }
    }

    /// Copies out what the device has written to a half.
    pub(super) fn read(&self, which: usize, dst: &mut [u8]) {
        let count = dst.len().min(self.half);
        // SAFETY: the half lies in the block, and the work that wrote it is done.
        unsafe { self.half(which).copy_to_nonoverlapping(dst.as_mut_ptr(), count) };
    }

    /// # Safety
    /// No work writes the memory any more.
    pub(super) unsafe fn destroy(&self, core: &Core) {
        // SAFETY: forwarded from the caller.
        unsafe { self.memory.destroy(core) };
    }
}
