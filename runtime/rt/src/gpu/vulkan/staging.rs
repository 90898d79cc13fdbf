//! Host memory that the device reads and writes: the way of transfers and of uniform blocks.

use super::core::Core;
use super::error::error;
use super::memory::{Block, Pools};
use crate::gpu::device::MemoryHint;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu::ring::Ring;
use crate::gpu::transfer_sizes::{readback_half, upload_size};
use ash::vk;
use std::ptr::NonNull;

/// A block that stays mapped.
struct Mapped {
    block: Block,
    host: NonNull<u8>,
}

// SAFETY: the mapping is an address; the owner decides who uses it when.
unsafe impl Send for Mapped {}

impl Mapped {
    fn new(core: &Core, size: u64, memory_type: u32) -> GpuResult<Mapped> {
        let block = Block::new(&core.device, size, memory_type, true).map_err(|code| {
            core.failure(code, &format!("cannot allocate {size} bytes for transfers"))
        })?;
        match block.host {
            Some(host) => Ok(Mapped { block, host }),
            None => {
                // SAFETY: the block is new and nothing uses it.
                unsafe { block.destroy(&core.device) };
                Err(unusable(core, "cannot be mapped"))
            }
        }
    }
}

fn unusable(core: &Core, what: &str) -> GpuError {
    let label = core.adapter.properties.label();
    error(ErrorKind::OutOfMemory, format!("{label}: its memory for transfers {what}"))
}

/// The memory type of transfers in one direction.
fn memory_type(core: &Core, pools: &Pools, hint: MemoryHint) -> GpuResult<u32> {
    let found = pools.memory_type(&core.adapter, hint);
    found.ok_or_else(|| unusable(core, "does not exist"))
}

/// The way to the device: a ring of pieces, each free again when its batch is done.
pub(super) struct Upload {
    mapped: Mapped,
    ring: Ring,
    size: u64,
    memory_type: u32,
}

/// Where a piece lies for the device.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) buffer: vk::Buffer,
    pub(super) offset: u64,
}

impl Upload {
    /// Memory for pieces of `piece` bytes.
    pub(super) fn new(core: &Core, pools: &Pools, piece: usize) -> GpuResult<Upload> {
        let memory_type = memory_type(core, pools, MemoryHint::Staging)?;
        Upload::of_type(core, memory_type, piece)
    }

    fn of_type(core: &Core, memory_type: u32, piece: usize) -> GpuResult<Upload> {
        let size = upload_size(piece);
        let mapped = Mapped::new(core, size, memory_type)?;
        Ok(Upload { mapped, ring: Ring::new(size), size, memory_type })
    }

    /// Whether pieces of `piece` bytes want more memory.
    pub(super) fn is_too_small(&self, piece: usize) -> bool {
        self.size < upload_size(piece)
    }

    /// Takes other memory, for pieces of `piece` bytes.
    ///
    /// # Safety
    /// No batch uses a piece.
    pub(super) unsafe fn grow(&mut self, core: &Core, piece: usize) -> GpuResult<()> {
        let larger = Upload::of_type(core, self.memory_type, piece)?;
        let smaller = std::mem::replace(self, larger);
        // SAFETY: forwarded from the caller.
        unsafe { smaller.destroy(&core.device) };
        Ok(())
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
    /// No batch uses a piece, now or afterwards.
    pub(super) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller.
        unsafe { self.mapped.block.destroy(device) };
    }
}

/// The way back: two halves, one being filled by the device while the host empties the other. One
/// transfer has it at a time.
pub(super) struct Readback {
    mapped: Mapped,
    half: u64,
}

impl Readback {
    /// Memory for transfers of `bytes` bytes.
    pub(super) fn new(core: &Core, pools: &Pools, bytes: usize) -> GpuResult<Readback> {
        let half = readback_half(bytes);
        let memory_type = memory_type(core, pools, MemoryHint::Cached)?;
        Ok(Readback { mapped: Mapped::new(core, 2 * half, memory_type)?, half })
    }

    /// Whether transfers of `bytes` bytes want more memory.
    pub(super) fn is_too_small(&self, bytes: usize) -> bool {
        self.half < readback_half(bytes)
    }

    /// Bytes that a half takes.
    pub(super) fn half_size(&self) -> usize {
        self.half as usize
    }

    /// Where a half lies for the device.
    pub(super) fn half(&self, which: usize) -> Piece {
        let offset = (which % 2) as u64 * self.half;
        Piece { buffer: self.mapped.block.buffer, offset }
    }

    /// Copies out what the device has written to a half.
    pub(super) fn read(&self, which: usize, dst: &mut [u8]) {
        let count = dst.len().min(self.half_size());
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
