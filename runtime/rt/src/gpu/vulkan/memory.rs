//! Memory of a Vulkan device: blocks with one `VkBuffer` each, from which buffers take ranges.
//!
//! A block belongs to a memory type. Small buffers share blocks; a large one has a block of its
//! own. The more memory is in use, the larger new blocks are, because drivers limit their number.
//! Blocks that become empty are given back, except a small one a type, so that a program that
//! allocates in a loop does not ask the driver each time.

use super::adapter::{Adapter, local_heaps};
use super::error::{error, failure};
use super::free_ranges::FreeRanges;
use crate::gpu::device::{DeviceMemory, MemoryHint};
use crate::gpu::error::{ErrorKind, GpuResult};
use ash::vk::{self, Handle};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Size of the first shared blocks.
const BLOCK: u64 = 64 << 20;

/// Size of shared blocks when much memory is in use.
const MAX_BLOCK: u64 = 1 << 30;

/// What a block's buffer may be used for.
const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// A piece of device memory with the buffer that covers it.
pub(super) struct Block {
    pub(super) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where the host sees it.
    pub(super) host: Option<NonNull<u8>>,
    size: u64,
}

// SAFETY: the mapping is an address; who uses it when is decided above.
unsafe impl Send for Block {}

impl Block {
    /// Allocates a block of a memory type; mapped if the host can reach it and `mapped` asks.
    pub(super) fn new(
        device: &ash::Device,
        size: u64,
        memory_type: u32,
        mapped: bool,
    ) -> Result<Block, vk::Result> {
        let info = vk::BufferCreateInfo::default().size(size).usage(USAGE);
        // SAFETY: the device is valid; what was made before a failure is destroyed.
        unsafe {
            let buffer = device.create_buffer(&info, None)?;
            let mut block = Block { buffer, memory: vk::DeviceMemory::null(), host: None, size };
            match block.back(device, memory_type, mapped) {
                Ok(()) => Ok(block),
                Err(code) => {
                    block.destroy(device);
                    Err(code)
                }
            }
        }
    }

    /// Gives the buffer its memory.
    unsafe fn back(
        &mut self,
        device: &ash::Device,
        memory_type: u32,
        mapped: bool,
    ) -> Result<(), vk::Result> {
        // SAFETY: the buffer is new, and the memory type is one that it may have.
        unsafe {
            let requirements = device.get_buffer_memory_requirements(self.buffer);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(requirements.size)
                .memory_type_index(memory_type);
            self.memory = device.allocate_memory(&info, None)?;
            device.bind_buffer_memory(self.buffer, self.memory, 0)?;
            if mapped {
                let flags = vk::MemoryMapFlags::empty();
                let address = device.map_memory(self.memory, 0, vk::WHOLE_SIZE, flags)?;
                self.host = NonNull::new(address.cast());
            }
        }
        Ok(())
    }

    /// Gives the block back.
    ///
    /// # Safety
    /// Nothing uses the block any more, and it is not destroyed twice.
    pub(super) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller; null handles are ignored, mapped memory is unmapped.
        unsafe {
            device.destroy_buffer(self.buffer, None);
            device.free_memory(self.memory, None);
        }
    }
}

/// A block with the ranges that are free in it.
struct Shared {
    block: Block,
    free: FreeRanges,
}

/// The blocks of one memory type.
#[derive(Default)]
struct Pool {
    /// A place is used again when its block is gone.
    blocks: Vec<Option<Shared>>,
    /// Where room was found last.
    cursor: usize,
}

/// Memory that is freed when a serial has completed. Ordered by the serial.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    serial: u64,
    slot: u64,
    offset: u64,
    size: u64,
}

/// All memory of a device.
pub(super) struct Pools {
    pools: Vec<Pool>,
    pending: BinaryHeap<Reverse<Pending>>,
    /// Bytes of all blocks, by heap.
    in_use: [u64; vk::MAX_MEMORY_HEAPS],
    granule: u64,
    /// Bits of the memory types that buffers may have.
    allowed: u32,
    map: bool,
}

impl Pools {
    /// No memory yet. `map` tells whether memory that the host can reach is mapped.
    pub(super) fn new(adapter: &Adapter, device: &ash::Device, map: bool) -> Pools {
        let info = vk::BufferCreateInfo::default().size(BLOCK).usage(USAGE);
        let info = vk::DeviceBufferMemoryRequirements::default().create_info(&info);
        let mut requirements = vk::MemoryRequirements2::default();
        // SAFETY: the device is valid; the function is part of version 1.3.
        unsafe { device.get_device_buffer_memory_requirements(&info, &mut requirements) };
        let requirements = requirements.memory_requirements;
        let granule = adapter
            .storage_alignment
            .max(adapter.uniform_alignment)
            .max(requirements.alignment)
            .max(64)
            .next_power_of_two();
        Pools {
            pools: adapter.memory.memory_types_as_slice().iter().map(|_| Pool::default()).collect(),
            pending: BinaryHeap::new(),
            in_use: [0; vk::MAX_MEMORY_HEAPS],
            granule,
            allowed: requirements.memory_type_bits,
            map,
        }
    }

    /// The memory type for a hint: the first that has all wished properties, giving up wishes
    /// from the last one on.
    pub(super) fn memory_type(&self, adapter: &Adapter, hint: MemoryHint) -> Option<u32> {
        const LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
        const HOST: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
            vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
                | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
        );
        const CACHED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_CACHED;
        let wishes: &[vk::MemoryPropertyFlags] = match hint {
            MemoryHint::Auto | MemoryHint::DeviceLocal if adapter.unified_memory => {
                &[LOCAL, HOST, CACHED]
            }
            MemoryHint::Auto | MemoryHint::DeviceLocal => &[LOCAL],
            MemoryHint::Unified => &[HOST, LOCAL, CACHED],
            MemoryHint::Staging | MemoryHint::Cached => &[HOST, CACHED],
        };
        let types = adapter.memory.memory_types_as_slice();
        let allowed = |index: usize| self.allowed >> index & 1 == 1;
        let find = |wanted: vk::MemoryPropertyFlags| {
            let mut indices = (0..types.len()).filter(|&i| allowed(i));
            indices.find(|&i| types[i].property_flags.contains(wanted))
        };
        let some = |count: usize| {
            wishes[..count].iter().fold(vk::MemoryPropertyFlags::empty(), |a, &b| a | b)
        };
        (0..=wishes.len()).rev().find_map(|count| find(some(count))).map(|index| index as u32)
    }

    /// Bytes that can still be allocated in the device's own memory.
    pub(super) fn available(&self, adapter: &Adapter) -> u64 {
        let heaps = local_heaps(&adapter.memory);
        heaps.map(|(index, heap)| heap.size.saturating_sub(self.in_use[index])).sum()
    }

    /// Takes memory for a buffer.
    pub(super) fn allocate(
        &mut self,
        adapter: &Adapter,
        device: &ash::Device,
        bytes: u64,
        hint: MemoryHint,
    ) -> GpuResult<DeviceMemory> {
        let label = adapter.properties.label();
        let Some(memory_type) = self.memory_type(adapter, hint) else {
            let message = format!("{label} has no memory for buffers");
            return Err(error(ErrorKind::OutOfMemory, message));
        };
        let limit = adapter.max_allocation.min(adapter.max_buffer);
        let rounded = FreeRanges::rounded(bytes, self.granule).filter(|&size| size <= limit);
        let Some(size) = rounded else {
            let message =
                format!("cannot allocate {bytes} bytes on {label}: it allows {limit} at a time");
            return Err(error(ErrorKind::OutOfMemory, message));
        };
        let heap = adapter.memory.memory_types[memory_type as usize].heap_index as usize;
        let shared = (self.in_use[heap] / 8).clamp(BLOCK, MAX_BLOCK);
        let shared = shared.min(adapter.memory.memory_heaps[heap].size / 16).min(limit);
        let is_large = size > shared / 4;
        if !is_large && let Some(memory) = self.take(memory_type, size) {
            return Ok(memory);
        }
        let mut made = Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        if !is_large {
            made = self.add_block(adapter, device, shared, memory_type);
        }
        if made.is_err() {
            made = self.add_block(adapter, device, size, memory_type);
        }
        if let Some(memory) = self.take(memory_type, size) {
            return Ok(memory);
        }
        let code = made.err().unwrap_or(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let (used, total) = (self.in_use[heap], adapter.memory.memory_heaps[heap].size);
        let what = format!(
            "cannot allocate {bytes} bytes on {label} ({used} of {total} bytes are in use by this \
             program)"
        );
        Err(failure(code, &what))
    }

    /// Takes a range from a block that has room.
    fn take(&mut self, memory_type: u32, size: u64) -> Option<DeviceMemory> {
        let pool = self.pools.get_mut(memory_type as usize)?;
        for index in (pool.cursor..pool.blocks.len()).chain(0..pool.cursor) {
            let Some(Some(shared)) = pool.blocks.get_mut(index) else { continue };
            let Some(offset) = shared.free.allocate(size) else { continue };
            let mut memory = DeviceMemory::new(shared.block.buffer.as_raw(), offset, size);
            // SAFETY: the range lies in the mapped block.
            memory.host = shared.block.host.map(|host| unsafe { host.add(offset as usize) });
            memory.slot = u64::from(memory_type) << 32 | index as u64;
            pool.cursor = index;
            return Some(memory);
        }
        None
    }

    fn add_block(
        &mut self,
        adapter: &Adapter,
        device: &ash::Device,
        size: u64,
        memory_type: u32,
    ) -> Result<(), vk::Result> {
        let kind = adapter.memory.memory_types[memory_type as usize];
        let coherent =
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let mapped = self.map && kind.property_flags.contains(coherent);
        let heap = kind.heap_index as usize;
        // Drivers may promise more than there is, and take it from other programs.
        if self.in_use[heap] + size > adapter.memory.memory_heaps[heap].size {
            return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        let block = Block::new(device, size, memory_type, mapped)?;
        self.in_use[heap] += size;
        let shared = Some(Shared { block, free: FreeRanges::new(size, self.granule) });
        let blocks = &mut self.pools[memory_type as usize].blocks;
        match blocks.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = shared,
            None => blocks.push(shared),
        }
        Ok(())
    }

    /// Frees memory when its last use has completed.
    pub(super) fn free(
        &mut self,
        adapter: &Adapter,
        device: &ash::Device,
        memory: &DeviceMemory,
        completed: u64,
    ) {
        let serial = memory.last_use.load(Ordering::Relaxed);
        let DeviceMemory { slot, offset, size, .. } = *memory;
        self.pending.push(Reverse(Pending { serial, slot, offset, size }));
        self.collect(adapter, device, completed);
    }

    /// Whether memory waits for queued work.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Gives back pending memory whose last use has completed.
    pub(super) fn collect(&mut self, adapter: &Adapter, device: &ash::Device, completed: u64) {
        while self.pending.peek().is_some_and(|Reverse(p)| p.serial <= completed) {
            let Some(Reverse(Pending { slot, offset, size, .. })) = self.pending.pop() else {
                break;
            };
            let (memory_type, index) =
                ((slot >> 32) as usize, (slot & u64::from(u32::MAX)) as usize);
            let blocks = &mut self.pools[memory_type].blocks;
            if let Some(shared) = &mut blocks[index] {
                shared.free.free(offset, size);
            }
            let empty = |place: &Option<Shared>| {
                place.as_ref().is_some_and(|s| s.free.is_all_free() && s.block.size <= BLOCK)
            };
            let is_empty = blocks[index].as_ref().is_some_and(|s| s.free.is_all_free());
            let keep = empty(&blocks[index]) && blocks.iter().filter(|p| empty(p)).count() == 1;
            if is_empty
                && !keep
                && let Some(shared) = blocks[index].take()
            {
                let heap = adapter.memory.memory_types[memory_type].heap_index;
                self.in_use[heap as usize] -= shared.block.size;
                // SAFETY: nothing is allocated in the block and its last use has completed.
                unsafe { shared.block.destroy(device) };
            }
        }
    }

    /// Gives everything back.
    ///
    /// # Safety
    /// The device is idle and no memory of it is used afterwards.
    pub(super) unsafe fn destroy(&mut self, device: &ash::Device) {
        for shared in self.pools.iter_mut().flat_map(|pool| pool.blocks.drain(..)).flatten() {
            // SAFETY: forwarded from the caller.
            unsafe { shared.block.destroy(device) };
        }
    }
}
