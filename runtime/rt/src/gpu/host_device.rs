//! Devices whose memory is host memory and whose launches run, if at all, in the call: the
//! reference interpreter ([`KernelExecutor`]) and the mock device.

use super::clock::now_ns;
use super::cpu::HOST_LIMITS;
use super::device::{Device, DeviceKernel, DeviceMemory, Dispatch, MemoryHint, Serial, Timing};
use super::error::GpuResult;
use super::host_memory::{self, MemoryInfo};
use super::properties::{DeviceProperties, DeviceType, DriverKind};
use magpie_types::kernel::{
    DeviceFeatures, HOST_SUBGROUP_SIZE, HostBuffer, KernelBlob, KernelLayout,
};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs kernels for the `interp` device. The compiler's reference interpreter is one.
pub trait KernelExecutor: Send + Sync {
    /// Runs a whole launch and returns when it is done.
    ///
    /// # Errors
    /// What the kernel or its execution did wrong; the program sees it as the launch's error.
    fn launch(&self, launch: &ExecutorLaunch<'_>) -> GpuResult<()>;
}

/// A launch as an executor sees it. The arguments have been checked against the layout.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorLaunch<'a> {
    /// FNV-1a hash of the kernel's stable id.
    pub kernel: u64,
    /// The layout in the kernel's `interp` blob.
    pub layout: &'a KernelLayout,
    /// Number of workgroups; none is 0.
    pub grid: [u32; 3],
    /// Invocations of a workgroup; none is 0.
    pub block: [u32; 3],
    /// One entry a buffer parameter, elements as in host arrays. Nothing else touches the memory
    /// during the call; entries may be the same buffer.
    pub buffers: &'a [HostBuffer],
    /// The scalar block.
    pub scalars: &'a [u8],
}

/// What a launch on host memory does.
#[derive(Clone)]
pub(crate) enum Action {
    /// The executor runs it.
    Execute(Arc<dyn KernelExecutor>),
    /// Nothing.
    Ignore,
}

/// A device of host memory.
pub(crate) struct HostDevice {
    properties: DeviceProperties,
    action: Action,
    timings: Arc<Mutex<Vec<Timing>>>,
}

/// Properties of the interpreter or the mock device.
pub(crate) fn properties(driver: DriverKind) -> DeviceProperties {
    let name = match driver {
        DriverKind::Mock => "mock",
        _ => "reference interpreter",
    };
    DeviceProperties {
        name: name.to_string(),
        driver,
        driver_info: String::new(),
        architecture: String::new(),
        device_type: DeviceType::Host,
        uuid: None,
        pci: None,
        features: DeviceFeatures(u32::MAX),
        limits: HOST_LIMITS,
        subgroup_size: HOST_SUBGROUP_SIZE,
        memory_total: MemoryInfo::read().map_or(0, |info| info.total),
    }
}

impl HostDevice {
    /// The device whose kernels the executor runs.
    pub(crate) fn interpreter(executor: Arc<dyn KernelExecutor>) -> HostDevice {
        HostDevice::new(DriverKind::Interp, Action::Execute(executor))
    }

    /// The device whose launches do nothing (GPU specification, section 15).
    pub(crate) fn mock() -> HostDevice {
        HostDevice::new(DriverKind::Mock, Action::Ignore)
    }

    fn new(driver: DriverKind, action: Action) -> HostDevice {
        HostDevice { properties: properties(driver), action, timings: Arc::default() }
    }

    fn backend(&self) -> &'static str {
        self.properties.driver.backend_name()
    }
}

impl Device for HostDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn memory_available(&self) -> u64 {
        MemoryInfo::read().map_or(0, |info| info.available)
    }

    fn allocate(&self, bytes: u64, _hint: MemoryHint) -> GpuResult<DeviceMemory> {
        host_memory::allocate(self.backend(), bytes)
    }

    fn free(&self, memory: &DeviceMemory) {
        if let Some(host) = memory.host {
            // SAFETY: the piece came from `allocate`; launches are done when they return.
            unsafe { host_memory::free(host, memory.size) };
        }
    }

    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        host_memory::write(self.backend(), dst, offset, src)
    }

    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        host_memory::read(self.backend(), src, offset, dst)
    }

    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        host_memory::copy(self.backend(), src, dst, bytes)
    }

    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        host_memory::fill_zero(self.backend(), dst, bytes)
    }

    fn load_kernel(
        &self,
        _name: &str,
        hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>> {
        Ok(Box::new(HostKernel {
            action: self.action.clone(),
            kernel: hash,
            layout: blob.layout.clone(),
            arguments: Mutex::new(Arguments(Vec::new())),
            timings: Arc::clone(&self.timings),
        }))
    }

    fn newest(&self) -> Serial {
        Serial(0)
    }

    fn wait(&self, _serial: Serial, _limit: Option<Duration>) -> GpuResult<bool> {
        Ok(true)
    }

    fn take_timings(&self, out: &mut Vec<Timing>) {
        out.append(&mut self.timings.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Buffer arguments, kept for their memory.
struct Arguments(Vec<HostBuffer>);

// SAFETY: the addresses are used during a launch only, under the lock that holds them.
unsafe impl Send for Arguments {}

struct HostKernel {
    action: Action,
    kernel: u64,
    layout: KernelLayout,
    arguments: Mutex<Arguments>,
    timings: Arc<Mutex<Vec<Timing>>>,
}

impl DeviceKernel for HostKernel {
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial> {
        let start_ns = dispatch.timing.map(|_| now_ns());
        if let Action::Execute(executor) = &self.action {
            let mut arguments = self.arguments.lock().unwrap_or_else(PoisonError::into_inner);
            arguments.0.clear();
            arguments.0.extend(dispatch.buffers.iter().map(|buffer| HostBuffer {
                data: buffer.memory().host.map_or(std::ptr::null_mut(), NonNull::as_ptr),
                len: buffer.len(),
            }));
            executor.launch(&ExecutorLaunch {
                kernel: self.kernel,
                layout: &self.layout,
                grid: dispatch.grid,
                block: dispatch.block,
                buffers: &arguments.0,
                scalars: &dispatch.scalars[..self.layout.scalar_size as usize],
            })?;
        }
        if let (Some(token), Some(start_ns)) = (dispatch.timing, start_ns) {
            let timing = Timing { token, start_ns, end_ns: now_ns() };
            self.timings.lock().unwrap_or_else(PoisonError::into_inner).push(timing);
        }
        Ok(Serial(0))
    }
}
