//! Memory of a device. It is taken and given back in the order of the stream: what is freed may be
//! given out at once, because whatever uses it next comes later.
//!
//! Where the interface has such a pool it is used, and told to keep what it has; elsewhere freed
//! pieces are kept here, by size.

use super::api::{Handle, StreamPool};
use super::core::Core;
use crate::gpu::device::{DeviceMemory, MemoryHint};
use crate::gpu::error::{ErrorKind, GpuResult};
use rustc_hash::FxHashMap;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Sizes are multiples of it.
const GRANULE: u64 = 256;

/// From this size on pieces of our own pool are given back when they are freed.
const LARGE: u64 = 64 << 20;

/// Pinned memory that the device reaches too: the same number in both interfaces.
const HOST_MAPPED: u32 = 2;

/// Pool attributes, the same in both interfaces.
const RELEASE_THRESHOLD: i32 = 4;
const RESERVED_BYTES: i32 = 5;
const USED_BYTES: i32 = 7;

/// What [`DeviceMemory::slot`] says about a piece.
const DEVICE: u64 = 0;
const PINNED: u64 = 1;

/// The allocator of a device.
pub(super) struct Allocator {
    /// The interface's pool, when it is used.
    pool: Option<Handle>,
    /// Freed pieces of our own pool, by size.
    spare: FxHashMap<u64, Vec<u64>>,
    /// Freed pinned memory and the serial that uses it last.
    pending: Vec<(u64, usize)>,
}

impl Allocator {
    pub(super) fn new(core: &Core, own_pool: bool) -> Allocator {
        let pool = match &core.api.pool {
            Some(pool) if core.adapter.has_pools && !own_pool => start_pool(core, pool),
            _ => None,
        };
        Allocator { pool, spare: FxHashMap::default(), pending: Vec::new() }
    }

    /// At least `bytes` bytes.
    pub(super) fn allocate(
        &mut self,
        core: &Core,
        bytes: u64,
        hint: MemoryHint,
    ) -> GpuResult<DeviceMemory> {
        core.enter()?;
        let what = || {
            let label = core.adapter.properties.label();
            format!("cannot allocate {bytes} bytes for a buffer on {label}")
        };
        let size = bytes.max(1).checked_next_multiple_of(GRANULE);
        let Some(size) = size.filter(|&s| usize::try_from(s).is_ok()) else {
            return Err(super::error::error(core.api.vendor, ErrorKind::OutOfMemory, what()));
        };
        match hint {
            MemoryHint::Staging | MemoryHint::Cached => pinned(core, size, what),
            MemoryHint::Auto | MemoryHint::DeviceLocal | MemoryHint::Unified => {
                let address = match (&core.api.pool, self.pool) {
                    (Some(pool), Some(_)) => in_order(core, pool, size, what)?,
                    _ => self.own(core, size, what)?,
                };
                Ok(DeviceMemory::new(address, 0, size))
            }
        }
    }

    /// A piece of our own pool.
    fn own(&mut self, core: &Core, size: u64, what: impl Fn() -> String) -> GpuResult<u64> {
        if let Some(address) = self.spare.get_mut(&size).and_then(Vec::pop) {
            return Ok(address);
        }
        let alloc = || {
            let mut address = 0;
            // SAFETY: the device is current, the place lives through the call.
            let code = unsafe { (core.api.call.alloc)(&raw mut address, size as usize) };
            core.check(code, &what).map(|()| address)
        };
        match alloc() {
            Err(error) if error.kind == ErrorKind::OutOfMemory && !self.spare.is_empty() => {
                self.give_back(core);
                alloc()
            }
            other => other,
        }
    }

    /// Takes memory back in the order of the stream; `completed` is the newest serial that is done.
    pub(super) fn free(&mut self, core: &Core, memory: &DeviceMemory, completed: u64) {
        if memory.slot == PINNED {
            let host = memory.host.map_or(0, |host| host.as_ptr() as usize);
            self.pending.push((memory.last_use.load(std::sync::atomic::Ordering::Relaxed), host));
            self.collect(core, completed);
            return;
        }
        if core.enter().is_err() {
            return;
        }
        match (&core.api.pool, self.pool) {
            // SAFETY: the piece is of this pool, and nobody names it any more.
            (Some(pool), Some(_)) => unsafe {
                (pool.free)(memory.handle, core.stream);
            },
            // SAFETY: as above; the function waits for work that uses the piece.
            _ if memory.size >= LARGE => unsafe {
                (core.api.call.free)(memory.handle);
            },
            _ => self.spare.entry(memory.size).or_default().push(memory.handle),
        }
    }

    /// Frees pinned memory whose last use is done.
    pub(super) fn collect(&mut self, core: &Core, completed: u64) {
        if self.pending.iter().any(|p| p.0 <= completed) && core.enter().is_ok() {
            self.pending.retain(|&(serial, host)| {
                let is_used = serial > completed;
                if !is_used {
                    // SAFETY: the memory is pinned, and nothing uses it any more.
                    unsafe { (core.api.call.host_free)(host as *mut c_void) };
                }
                is_used
            });
        }
    }

    /// Gives spare pieces back to the interface.
    fn give_back(&mut self, core: &Core) {
        for address in self.spare.drain().flat_map(|(_, addresses)| addresses) {
            // SAFETY: nobody names the piece; the function waits for work that uses it.
            unsafe { (core.api.call.free)(address) };
        }
    }

    /// Gives everything back. All work is done.
    pub(super) fn destroy(&mut self, core: &Core) {
        if core.enter().is_ok() {
            self.give_back(core);
        }
        self.collect(core, u64::MAX);
    }

    /// Bytes that can still be allocated.
    pub(super) fn available(&self, core: &Core) -> u64 {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: the places live through the call.
        let known = core.enter().is_ok()
            && unsafe { (core.api.call.memory_info)(&raw mut free, &raw mut total) } == 0;
        let spare = self.spare.iter().map(|(size, pieces)| size * pieces.len() as u64);
        let kept = spare.sum::<u64>() + self.unused_in_pool(core);
        if known { (free as u64).saturating_add(kept) } else { 0 }
    }

    /// What the interface's pool holds for later.
    fn unused_in_pool(&self, core: &Core) -> u64 {
        let (Some(pool), Some(handle)) = (&core.api.pool, self.pool) else { return 0 };
        let read = |attribute| {
            let mut value = 0u64;
            // SAFETY: these attributes are 64-bit numbers.
            let code = unsafe { (pool.get)(handle, attribute, (&raw mut value).cast()) };
            if code == 0 { value } else { 0 }
        };
        read(RESERVED_BYTES).saturating_sub(read(USED_BYTES))
    }
}

/// The device's pool, told to keep what is freed.
fn start_pool(core: &Core, pool: &StreamPool) -> Option<Handle> {
    core.enter().ok()?;
    let (mut handle, mut threshold) = (0, u64::MAX);
    // SAFETY: the places live through the calls; the threshold is a 64-bit number.
    let is_told = unsafe {
        (pool.of_device)(&raw mut handle, core.adapter.device) == 0
            && (pool.set)(handle, RELEASE_THRESHOLD, (&raw mut threshold).cast()) == 0
    };
    is_told.then_some(handle)
}

fn in_order(
    core: &Core,
    pool: &StreamPool,
    size: u64,
    what: impl FnOnce() -> String,
) -> GpuResult<u64> {
    let mut address = 0;
    // SAFETY: the device is current, the place lives through the call.
    let code = unsafe { (pool.alloc)(&raw mut address, size as usize, core.stream) };
    core.check(code, what).map(|()| address)
}

/// Host memory that the device reaches.
fn pinned(core: &Core, size: u64, what: impl Fn() -> String) -> GpuResult<DeviceMemory> {
    let host = alloc_host(core, size as usize, HOST_MAPPED, &what)?;
    let mut address = 0;
    // SAFETY: the memory was just allocated so that the device can reach it.
    let code =
        unsafe { (core.api.call.host_device_address)(&raw mut address, host.as_ptr().cast(), 0) };
    if let Err(error) = core.check(code, what) {
        // SAFETY: nothing uses the memory.
        unsafe { (core.api.call.host_free)(host.as_ptr().cast()) };
        return Err(error);
    }
    let mut memory = DeviceMemory::new(address, 0, size);
    (memory.host, memory.slot) = (Some(host), PINNED);
    Ok(memory)
}

/// Pinned host memory.
pub(super) fn alloc_host(
    core: &Core,
    size: usize,
    flags: u32,
    what: impl FnOnce() -> String,
) -> GpuResult<NonNull<u8>> {
    let mut host = std::ptr::null_mut();
    // SAFETY: the device is current, the place lives through the call.
    let code = unsafe { (core.api.call.host_alloc)(&raw mut host, size, flags) };
    core.check(code, what)?;
    NonNull::new(host.cast()).ok_or_else(|| {
        let message = format!("{size} bytes of pinned memory have no address");
        super::error::error(core.api.vendor, ErrorKind::OutOfMemory, message)
    })
}

const _: () = assert!(DEVICE == 0, "what `DeviceMemory::new` says");
