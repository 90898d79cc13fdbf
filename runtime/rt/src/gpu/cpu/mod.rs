//! The CPU device: kernels as machine code of this process, workgroups spread over all cores.

mod pool;
mod queue;

use super::device::{Device, DeviceKernel, DeviceMemory, Dispatch, MemoryHint, Serial, Timing};
use super::error::{ErrorKind, GpuError, GpuResult};
use super::host_memory::{self, MemoryInfo};
use super::properties::{DeviceLimits, DeviceProperties, DeviceType, DriverKind};
use magpie_types::kernel::{
    BlobCode, DeviceFeatures, HOST_SUBGROUP_SIZE, HostBuffer, HostKernel, HostKernelFn, KernelBlob,
};
use queue::{Engine, ScalarChunk};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const BACKEND: &str = "cpu";

/// What kernels on the host may use and launches may not exceed.
pub(crate) const HOST_LIMITS: DeviceLimits = DeviceLimits {
    workgroup_size: [1024; 3],
    workgroup_invocations: 1024,
    workgroup_count: [u32::MAX; 3],
    shared_bytes: 256 << 10,
    buffers: 1024,
    buffer_bytes: u64::MAX,
    push_constant_bytes: 0,
    uniform_bytes: 64 << 10,
};

/// The host's cores as a device.
pub(crate) struct CpuDevice {
    properties: DeviceProperties,
    engine: Arc<Engine>,
}

/// The properties of the CPU device, known without opening it.
pub(crate) fn properties() -> DeviceProperties {
    DeviceProperties {
        name: processor_name(),
        driver: DriverKind::Cpu,
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

fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| format!("{} CPU", std::env::consts::ARCH), |(_, m)| m.trim().to_string())
}

impl CpuDevice {
    /// Starts the device with `threads` threads, by default one a core.
    pub(crate) fn new(threads: Option<usize>) -> CpuDevice {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let engine = Arc::new(Engine::new(threads.unwrap_or(cores)));
        let mut properties = properties();
        properties.driver_info = format!("{} threads", engine.lanes());
        CpuDevice { properties, engine }
    }

    fn settle(&self, memory: &DeviceMemory) -> GpuResult<()> {
        self.engine.wait(Serial(memory.last_use.load(Ordering::Relaxed)), None).map(drop)
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

impl Device for CpuDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn memory_available(&self) -> u64 {
        MemoryInfo::read().map_or(0, |info| info.available)
    }

    fn allocate(&self, bytes: u64, _hint: MemoryHint) -> GpuResult<DeviceMemory> {
        host_memory::allocate(BACKEND, bytes)
    }

    fn free(&self, memory: &DeviceMemory) {
        if let Some(host) = memory.host {
            self.engine.free(host, memory.size, memory.last_use.load(Ordering::Relaxed));
        }
    }

    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        self.settle(dst)?;
        host_memory::write(BACKEND, dst, offset, src)
    }

    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        self.settle(src)?;
        host_memory::read(BACKEND, src, offset, dst)
    }

    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        self.settle(src)?;
        self.settle(dst)?;
        host_memory::copy(BACKEND, src, dst, bytes)
    }

    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        self.settle(dst)?;
        host_memory::fill_zero(BACKEND, dst, bytes)
    }

    fn load_kernel(
        &self,
        name: &str,
        _hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>> {
        let checked = host_code(name, &blob.code)?;
        let unchecked =
            blob.unchecked.as_ref().map_or(Ok(checked), |code| host_code(name, code))?;
        let engine = Arc::clone(&self.engine);
        let shared_bytes = blob.layout.shared_bytes;
        Ok(Box::new(CpuKernel { engine, checked, unchecked, shared_bytes }))
    }

    fn newest(&self) -> Serial {
        self.engine.newest()
    }

    fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        self.engine.wait(serial, limit)
    }

    fn take_timings(&self, out: &mut Vec<Timing>) {
        self.engine.take_timings(out);
    }
}

/// One body of a kernel.
#[derive(Clone, Copy)]
struct Body {
    entry: HostKernelFn,
    frame_bytes: u32,
}

fn host_code(name: &str, code: &BlobCode) -> GpuResult<Body> {
    let HostKernel { entry, frame_bytes } = match code {
        BlobCode::Host(kernel) if kernel.entry != 0 => *kernel,
        BlobCode::Host(_) | BlobCode::Bytes(_) => {
            let message =
                format!("kernel `{name}`: its CPU blob holds no function of this process");
            return Err(GpuError::new(ErrorKind::InvalidKernel, BACKEND, message));
        }
    };
    // SAFETY: whoever registered the kernel promises that the address, which is not null, is that
    // of a function with this signature (`HostKernel::entry`).
    let entry = unsafe { std::mem::transmute::<usize, HostKernelFn>(entry) };
    Ok(Body { entry, frame_bytes })
}

struct CpuKernel {
    engine: Arc<Engine>,
    checked: Body,
    unchecked: Body,
    shared_bytes: u32,
}

impl DeviceKernel for CpuKernel {
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial> {
        let body = if dispatch.unchecked { self.unchecked } else { self.checked };
        let invocations: u64 = dispatch.block.iter().map(|&n| u64::from(n)).product();
        let shared = u64::from(self.shared_bytes).next_multiple_of(64);
        let mut launch = self.engine.spare();
        launch.entry = Some(body.entry);
        launch.grid = dispatch.grid;
        launch.block = dispatch.block;
        launch.groups = dispatch.grid.iter().map(|&n| u64::from(n)).product();
        launch.scratch_bytes = shared + u64::from(body.frame_bytes) * invocations;
        launch.timing = dispatch.timing;
        launch.scalars.clear();
        launch.scalars.extend(dispatch.scalars.chunks(16).map(|bytes| {
            let mut chunk = [0; 16];
            chunk[..bytes.len()].copy_from_slice(bytes);
            ScalarChunk(chunk)
        }));
        launch.buffers.clear();
        launch.buffers.extend(dispatch.buffers.iter().map(|buffer| HostBuffer {
            data: buffer.memory().host.map_or(std::ptr::null_mut(), NonNull::as_ptr),
            len: buffer.len(),
        }));
        let serial = self.engine.launch(launch, dispatch.blocking)?;
        for buffer in dispatch.buffers {
            buffer.memory().last_use.fetch_max(serial.0, Ordering::Relaxed);
        }
        Ok(serial)
    }
}
