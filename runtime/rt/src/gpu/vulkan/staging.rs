//! Host memory that the device reads and writes: the way of transfers and of uniform blocks.

use super::core::Core;
use super::error::error;
use super::memory::{Block, Pools};
use crate::gpu::device::MemoryHint;
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::ring::Ring;
use ash::vk;
use std::ptr::NonNull;

/// Size of the memory for the way to the device.
const UPLOAD_SIZE: u64 = 32 << 20;

/// Bytes of a transfer to the device that are copied and submitted at a time: while the device
/// fetches some, the host copies the next ones.
pub(super) const UPLOAD_PIECE: usize = 4 << 20;

/// Size of one of the two halves of the memory for the way back.
pub(super) const READBACK_HALF: u64 = 8 << 20;

/// A block that stays mapped.
struct Mapped {
    block: Block,
    host: NonNull<u8>,
}

// SAFETY: the mapping is an address; the owner decides who uses it when.
unsafe impl Send for Mapped {}

impl Mapped {
    fn new(core: &Core, pools: &Pools, size: u64, hint: MemoryHint) -> GpuResult<Mapped> {
        let label = core.adapter.properties.label();
        let unusable = |what: &str| {
            let message = format!("{label}: its memory for transfers {what}");
            error(ErrorKind::OutOfMemory, message)
        };
        let memory_type = pools.memory_type(&core.adapter, hint);
        let memory_type = memory_type.ok_or_else(|| unusable("does not exist"))?;
        let block = Block::new(&core.device, size, memory_type, true).map_err(|code| {
            core.failure(code, &format!("cannot allocate {size} bytes for transfers"))
        })?;
        match block.host {
            Some(host) => Ok(Mapped { block, host }),
            None => {
                // SAFETY: the block is new and nothing uses it.
                unsafe { block.destroy(&core.device) };
                Err(unusable("cannot be mapped"))
            }
        }
    }
}

/// The way to the device: a ring of pieces, each free again when its batch is done.
pub(super) struct Upload {
    mapped: Mapped,
    ring: Ring,
}

/// Where a piece lies for the device.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) buffer: vk::Buffer,
    pub(super) offset: u64,
}

impl Upload {
    pub(super) fn new(core: &Core, pools: &Pools) -> GpuResult<Upload> {
        let mapped = Mapped::new(core, pools, UPLOAD_SIZE, MemoryHint::Staging)?;
        Ok(Upload { mapped, ring: Ring::new(UPLOAD_SIZE) })
    }

    /// Copies bytes into a piece for the batch with this serial, which has not been submitted;
    /// `None` when there is no room before older batches are done.
    pub(super) fn put(&mut self, src: &[u8], align: u64, serial: u64) -> Option<Piece> {
        let offset = self.ring.reserve(src.len() as u64, align, serial)?;
        // SAFETY: the ring's places lie in the mapped block, and no batch uses this one yet.
        unsafe {
            let to = self.mapped.host.as_ptr().add(offset as usize);
            to.copy_from_nonoverlapping(src.as_ptr(), src.len());
        }
        Some(Piece { buffer: self.mapped.block.buffer, offset })
    }

    /// Frees the pieces of batches up to `completed`.
    pub(super) fn release(&mut self, completed: u64) {
        self.ring.release(completed);
    }

    /// The batch that must be done before anything becomes free.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.ring.oldest()
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// The device is idle and no piece is used afterwards.
    pub(super) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller.
        unsafe { self.mapped.block.destroy(device) };
    }
}

/// The way back: two halves, one being filled by the device while the host empties the other. One
/// transfer has it at a time.
pub(super) struct Readback {
    mapped: Mapped,
}

impl Readback {
    pub(super) fn new(core: &Core, pools: &Pools) -> GpuResult<Readback> {
        let mapped = Mapped::new(core, pools, 2 * READBACK_HALF, MemoryHint::Cached)?;
        Ok(Readback { mapped })
    }

    /// Where a half lies for the device.
    pub(super) fn half(&self, which: usize) -> Piece {
        let offset = (which % 2) as u64 * READBACK_HALF;
        Piece { buffer: self.mapped.block.buffer, offset }
    }

    /// Copies out what the device has written to a half.
    pub(super) fn read(&self, which: usize, dst: &mut [u8]) {
        let count = dst.len().min(READBACK_HALF as usize);
        // SAFETY: the half lies in the mapped block, and the batch that wrote it is done.
        unsafe {
            let from = self.mapped.host.as_ptr().add(self.half(which).offset as usize);
            from.copy_to_nonoverlapping(dst.as_mut_ptr(), count);
        }
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// The device is idle and no half is used afterwards.
    pub(super) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller.
        unsafe { self.mapped.block.destroy(device) };
    }
}
