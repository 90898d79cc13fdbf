//! [`Device`]: what a driver must do. Everything else is built on it once: checks, element
//! widening, reference counts, statistics, profiling.
//!
//! Operations on a device take effect in the order of the calls. Launches and device-side copies
//! may be queued; each belongs to a [`Serial`], and serials complete in order. A driver keeps
//! memory alive until the last serial that uses it has completed, so callers free at any time.

use super::buffer::Buffer;
use super::error::GpuResult;
use super::properties::DeviceProperties;
use magpie_types::kernel::KernelBlob;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A point in the order of a device's work. `Serial(0)` has always completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Serial(pub(crate) u64);

/// Where a program wants a buffer to live (GPU specification, section 9.3). A wish, not a demand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u32)]
pub enum MemoryHint {
    /// The runtime decides.
    #[default]
    Auto = 0,
    /// Memory of the device alone.
    DeviceLocal = 1,
    /// Memory that host and device both reach.
    Unified = 2,
    /// Host memory that suits transfers to the device.
    Staging = 3,
    /// Host memory that the CPU reads fast.
    Cached = 4,
}

impl MemoryHint {
    /// The hint of a number of the C ABI.
    pub fn from_u32(number: u32) -> Option<MemoryHint> {
        use MemoryHint::*;
        [Auto, DeviceLocal, Unified, Staging, Cached].into_iter().find(|&h| h as u32 == number)
    }
}

/// Memory of a device, as its driver describes it to itself. Nothing frees it by itself: it goes
/// back through [`Device::free`].
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    /// What the driver's interface names: a `VkBuffer`, an address.
    pub(crate) handle: u64,
    /// Bytes from the start of `handle`.
    pub(crate) offset: u64,
    /// Bytes that may be used; at least what was asked for.
    pub(crate) size: u64,
    /// Address of the first byte for the host, when the host can reach the memory.
    pub(crate) host: Option<NonNull<u8>>,
    /// The allocator's own note.
    pub(crate) slot: u64,
    /// Newest serial that uses the memory.
    pub(crate) last_use: AtomicU64,
    /// The driver's note of when the memory was last read: see its hazard tracking.
    pub(crate) read_mark: AtomicU64,
    /// The driver's note of when the memory was last written.
    pub(crate) write_mark: AtomicU64,
}

// SAFETY: `host` is the address of memory that belongs to this value alone; who may touch it when
// is governed by the device's order of work, not by the thread.
unsafe impl Send for DeviceMemory {}
// SAFETY: as above; shared access goes through the driver, which orders it.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Memory that nothing has used yet.
    pub(crate) fn new(handle: u64, offset: u64, size: u64) -> DeviceMemory {
        DeviceMemory {
            handle,
            offset,
            size,
            host: None,
            slot: 0,
            last_use: AtomicU64::new(0),
            read_mark: AtomicU64::new(0),
            write_mark: AtomicU64::new(0),
        }
    }
}

/// Asks a driver to measure an operation and to report it under this number.
pub(crate) type TimingToken = u64;

/// When a measured operation ran, in nanoseconds of [`super::clock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    pub(crate) token: TimingToken,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// A launch whose arguments have been checked against the kernel's layout.
pub(crate) struct Dispatch<'a> {
    /// Number of workgroups; none is 0.
    pub(crate) grid: [u32; 3],
    /// Invocations of a workgroup; none is 0.
    pub(crate) block: [u32; 3],
    /// Whether the body without bounds checks may run.
    pub(crate) unchecked: bool,
    /// One entry a buffer parameter, all of this device.
    pub(crate) buffers: &'a [Buffer],
    /// The scalar block with its hidden lengths, `KernelLayout::block_size` bytes.
    pub(crate) scalars: &'a [u8],
    /// Whether the caller waits for the result at once.
    pub(crate) blocking: bool,
    /// Measure the launch.
    pub(crate) timing: Option<TimingToken>,
}

/// A kernel that a device has taken. Dropping it gives back what the driver holds for it.
pub(crate) trait DeviceKernel: Send + Sync {
    /// Queues the launch. After the first launch with a workgroup size it allocates nothing.
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial>;
}

/// An opened device.
pub(crate) trait Device: Send + Sync {
    /// What the device is and offers.
    fn properties(&self) -> &DeviceProperties;

    /// Bytes that can still be allocated, as far as the driver knows.
    fn memory_available(&self) -> u64;

    /// At least `bytes` (≥ 1) bytes of undefined content, 64-byte aligned for the device.
    fn allocate(&self, bytes: u64, hint: MemoryHint) -> GpuResult<DeviceMemory>;

    /// Takes memory back once everything queued that uses it is done. Called once for each piece.
    fn free(&self, memory: &DeviceMemory);

    /// Writes `src` to `offset ..` of the memory. `src` may be reused when the call returns.
    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()>;

    /// Reads `offset ..` of the memory after all work queued before.
    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()>;

    /// Copies the first `bytes` bytes between two distinct pieces of memory of this device.
    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()>;

    /// Sets the first `bytes` bytes, rounded up to a multiple of 4, to zero.
    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()>;

    /// Takes a kernel, known by its name in messages and by its hash elsewhere.
    fn load_kernel(
        &self,
        name: &str,
        hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>>;

    /// The serial of the newest queued work.
    fn newest(&self) -> Serial;

    /// Waits until everything up to `serial` is done; `false` when the time ran out first. Faults
    /// of queued work come back here. Without a limit it waits for as long as it takes.
    fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool>;

    /// Moves the measurements of completed work to `out`.
    fn take_timings(&self, out: &mut Vec<Timing>);

    /// Writes what the driver keeps on disk for the next process. Never fails loudly: a cache that
    /// cannot be written costs time only.
    fn save_caches(&self) {}
}
