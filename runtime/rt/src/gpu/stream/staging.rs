//! Pinned host memory that transfers go through.

use super::core::Core;
use super::memory::alloc_host;
use crate::gpu::error::GpuResult;
use crate::gpu::ring::Ring;
use std::ptr::NonNull;

/// Size of the memory for the way to the device.
const UPLOAD_SIZE: u64 = 32 << 20;

/// Bytes of a transfer to the device that are copied at a time: while the device fetches some, the
/// host copies the next ones.
pub(super) const UPLOAD_PIECE: usize = 4 << 20;

/// Size of one of the two halves of the memory for the way back.
pub(super) const READBACK_HALF: usize = 8 << 20;

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
}

impl Upload {
    pub(super) fn new(core: &Core) -> GpuResult<Upload> {
        let memory = Pinned::new(core, UPLOAD_SIZE as usize)?;
        Ok(Upload { memory, ring: Ring::new(UPLOAD_SIZE) })
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
pub(super) struct Readback(Pinned);

impl Readback {
    pub(super) fn new(core: &Core) -> GpuResult<Readback> {
        Ok(Readback(Pinned::new(core, 2 * READBACK_HALF)?))
    }

    /// Where a half lies.
    pub(super) fn half(&self, which: usize) -> *mut u8 {
        // SAFETY: both halves lie in the block.
        unsafe { self.0.0.as_ptr().add(which % 2 * READBACK_HALF) }
    }

    /// Copies out what the device has written to a half.
    pub(super) fn read(&self, which: usize, dst: &mut [u8]) {
        let count = dst.len().min(READBACK_HALF);
        // SAFETY: the half lies in the block, and the work that wrote it is done.
        unsafe { self.half(which).copy_to_nonoverlapping(dst.as_mut_ptr(), count) };
    }

    /// # Safety
    /// No work writes the memory any more.
    pub(super) unsafe fn destroy(&self, core: &Core) {
        // SAFETY: forwarded from the caller.
        unsafe { self.0.destroy(core) };
    }
}
