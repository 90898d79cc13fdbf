//! [`Context`]: an opened device with the account of its memory and its recorder.

use super::device::{Device, Serial};
use super::error::{ErrorKind, GpuError, GpuResult};
use super::profile::recorder::Recorder;
use super::properties::DeviceProperties;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// An opened device. Buffers, loaded kernels and fences keep it open.
pub struct Context {
    device: Box<dyn Device>,
    wait_limit: Option<Duration>,
    pub(crate) account: MemoryAccount,
    pub(crate) recorder: Recorder,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Context").field(&self.properties().label()).finish()
    }
}

impl Context {
    pub(crate) fn new(device: Box<dyn Device>, wait_limit: Option<Duration>) -> Arc<Context> {
        let (account, recorder) = (MemoryAccount::default(), Recorder::default());
        Arc::new(Context { device, wait_limit, account, recorder })
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// What the device is and offers.
    pub fn properties(&self) -> &DeviceProperties {
        self.device.properties()
    }

    /// Bytes that can still be allocated; never more than the total.
    pub fn memory_available(&self) -> u64 {
        self.device.memory_available().min(self.properties().memory_total)
    }

    /// What the program has allocated on the device so far.
    pub fn memory_stats(&self) -> MemoryStats {
        MemoryStats {
            allocated_bytes: self.account.allocated.load(Ordering::Relaxed),
            peak_allocated_bytes: self.account.peak.load(Ordering::Relaxed),
            num_allocations: self.account.allocations.load(Ordering::Relaxed),
            num_frees: self.account.frees.load(Ordering::Relaxed),
            device_total_bytes: self.properties().memory_total,
            device_available_bytes: self.memory_available(),
        }
    }

    /// An error in this device's driver.
    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> GpuError {
        GpuError::new(kind, self.properties().driver.backend_name(), message)
    }

    /// Waits for all work queued so far.
    ///
    /// # Errors
    /// The first fault of queued work, or [`ErrorKind::TimeoutExpired`] past
    /// [`super::config::GpuConfig::wait_limit`].
    pub fn synchronize(&self) -> GpuResult<()> {
        self.settle(self.device.newest())
    }

    /// Waits for `serial` within the configured limit.
    pub(crate) fn settle(&self, serial: Serial) -> GpuResult<()> {
        if self.device.wait(serial, self.wait_limit)? {
            return Ok(());
        }
        let limit = self.wait_limit.unwrap_or_default().as_secs_f64();
        let device = self.properties().label();
        let message = format!("work on {device} was not done after {limit} s");
        Err(self.error(ErrorKind::TimeoutExpired, message))
    }

    /// Before an operation that blocks without a limit of its own: applies the configured one.
    pub(crate) fn settle_if_limited(&self) -> GpuResult<()> {
        if self.wait_limit.is_some() { self.synchronize() } else { Ok(()) }
    }
}

/// A point in a device's work that can be waited for.
#[derive(Clone, Debug)]
pub struct Fence {
    context: Arc<Context>,
    serial: Serial,
}

impl Fence {
    pub(crate) fn new(context: Arc<Context>, serial: Serial) -> Fence {
        Fence { context, serial }
    }

    /// Whether the work was done within `timeout`; `None` waits for as long as it takes.
    ///
    /// # Errors
    /// The first fault of queued work.
    pub fn wait(&self, timeout: Option<Duration>) -> GpuResult<bool> {
        // A deadline that the clock cannot represent is no deadline.
        let timeout = timeout.filter(|&t| Instant::now().checked_add(t).is_some());
        self.context.device.wait(self.serial, timeout)
    }
}

/// Memory use of a device by this program (GPU specification, section 11.3). In bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct MemoryStats {
    pub allocated_bytes: u64,
    pub peak_allocated_bytes: u64,
    pub num_allocations: u64,
    pub num_frees: u64,
    pub device_total_bytes: u64,
    pub device_available_bytes: u64,
}

/// Counts what buffers hold.
#[derive(Default)]
pub(crate) struct MemoryAccount {
    allocated: AtomicU64,
    peak: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
}

impl MemoryAccount {
    pub(crate) fn allocated(&self, bytes: u64) {
        let now = self.allocated.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
        self.allocations.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn freed(&self, bytes: u64) {
        self.allocated.fetch_sub(bytes, Ordering::Relaxed);
        self.frees.fetch_add(1, Ordering::Relaxed);
    }
}
