//! [`Runtime`]: configuration, devices and kernels of a program. The C ABI uses one for the
//! process; tests make their own.

use super::buffer::Buffer;
use super::config::GpuConfig;
use super::context::{Context, Fence};
use super::cpu::{self, CpuDevice};
use super::device::Device;
use super::discovery::{DeviceSummary, Discovery, Driver};
use super::error::{GpuError, GpuResult};
use super::fallback::{launch_on_cpu, may_fall_back};
use super::host_device::{self, HostDevice, KernelExecutor};
use super::launch::{Arguments, LaunchSize, LoadedKernel};
use super::properties::{DeviceProperties, DriverKind};
use super::registry::{BlobProvider, RegisteredBlob, Registry};
use super::stream::{StreamDriver, Vendor};
use super::vulkan::VulkanDriver;
use super::webgpu::WebGpuDriver;
use magpie_types::kernel::KernelBlob;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

/// The GPU side of a program.
pub struct Runtime {
    registry: Registry,
    state: Mutex<State>,
}

struct State {
    config: GpuConfig,
    executor: Option<Arc<dyn KernelExecutor>>,
    /// Made at first use, so that the configuration can still change before.
    discovery: Option<Discovery>,
    /// The default device, while neither the configuration nor the kernels change: each launch of
    /// a program that does not name a device asks for it.
    default: Option<Arc<Context>>,
}

impl State {
    fn discovery(&mut self) -> &mut Discovery {
        let (config, executor) = (&self.config, &self.executor);
        self.discovery.get_or_insert_with(|| {
            Discovery::new(config.clone(), platform_drivers(config, executor.as_ref()))
        })
    }

    /// Forgets what was found, which is given back to be dropped without the lock.
    fn forget(&mut self) -> (Option<Discovery>, Option<Arc<Context>>) {
        (self.discovery.take(), self.default.take())
    }
}

/// The drivers in the order in which this platform prefers them.
fn platform_drivers(
    config: &GpuConfig,
    executor: Option<&Arc<dyn KernelExecutor>>,
) -> Vec<Box<dyn Driver>> {
    if config.mock {
        return vec![Box::new(MockDriver)];
    }
    let mut drivers: Vec<Box<dyn Driver>> = vec![
        #[cfg(target_os = "macos")]
        Box::new(super::metal::MetalDriver::new(config.hidden_features)),
        Box::new(StreamDriver::of_process(Vendor::Cuda)),
        Box::new(StreamDriver::of_process(Vendor::Hip)),
        Box::new(VulkanDriver::of_process(config.hidden_features)),
        Box::new(WebGpuDriver::of_process(config.hidden_features)),
        Box::new(CpuDriver { threads: config.cpu_threads }),
    ];
    if let Some(executor) = executor {
        drivers.push(Box::new(InterpDriver { executor: Arc::clone(executor) }));
    }
    drivers
}

struct CpuDriver {
    threads: Option<usize>,
}

impl Driver for CpuDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Cpu
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        Ok(vec![cpu::properties()])
    }

    fn open(&mut self, _adapter: usize) -> GpuResult<Box<dyn Device>> {
        Ok(Box::new(CpuDevice::new(self.threads)))
    }
}

struct InterpDriver {
    executor: Arc<dyn KernelExecutor>,
}

impl Driver for InterpDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Interp
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        Ok(vec![host_device::properties(DriverKind::Interp)])
    }

    fn open(&mut self, _adapter: usize) -> GpuResult<Box<dyn Device>> {
        Ok(Box::new(HostDevice::interpreter(Arc::clone(&self.executor))))
    }
}

struct MockDriver;

impl Driver for MockDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Mock
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        Ok(vec![host_device::properties(DriverKind::Mock)])
    }

    fn open(&mut self, _adapter: usize) -> GpuResult<Box<dyn Device>> {
        Ok(Box::new(HostDevice::mock()))
    }
}

impl Default for Runtime {
    fn default() -> Runtime {
        Runtime::new(GpuConfig::default())
    }
}

impl Runtime {
    /// A runtime of its own, without kernels.
    pub fn new(config: GpuConfig) -> Runtime {
        let state = State { config, executor: None, discovery: None, default: None };
        Runtime { registry: Registry::default(), state: Mutex::new(state) }
    }

    /// A runtime over other drivers than the platform's.
    #[cfg(test)]
    pub(crate) fn with_drivers(config: GpuConfig, drivers: Vec<Box<dyn Driver>>) -> Runtime {
        let runtime = Runtime::new(config.clone());
        runtime.state().discovery = Some(Discovery::new(config, drivers));
        runtime
    }

    /// The one that the C ABI uses.
    pub fn global() -> &'static Runtime {
        static GLOBAL: OnceLock<Runtime> = OnceLock::new();
        GLOBAL.get_or_init(Runtime::default)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the configuration. Devices that are looked up afterwards obey it; handles that exist
    /// stay valid.
    pub fn configure(&self, config: GpuConfig) {
        let mut state = self.state();
        state.config = config;
        let found = state.forget();
        drop(state);
        drop(found);
    }

    /// Offers the `interp` device, whose kernels `executor` runs.
    pub fn set_executor(&self, executor: Arc<dyn KernelExecutor>) {
        let mut state = self.state();
        state.executor = Some(executor);
        let found = state.forget();
        drop(state);
        drop(found);
    }

    /// Adds a kernel, or replaces the one with the same hash. `hash` is the FNV-1a hash of its
    /// stable id; `name` is for messages and traces; `provider` compiles blobs that are missing.
    pub fn register_kernel(
        &self,
        hash: u64,
        name: &str,
        blobs: Vec<KernelBlob>,
        provider: Option<Arc<dyn BlobProvider>>,
    ) {
        let blobs = blobs.into_iter().map(|blob| (blob.backend as u8, Ok(blob))).collect();
        self.registry.register(hash, name, blobs, provider);
        self.forget_default();
    }

    pub(crate) fn register_read_kernel(&self, hash: u64, name: &str, blobs: Vec<RegisteredBlob>) {
        self.registry.register(hash, name, blobs, None);
        self.forget_default();
    }

    /// What the default device is may depend on the kernels.
    fn forget_default(&self) {
        let before = self.state().default.take();
        drop(before);
    }

    /// Forgets kernels and devices. Handles that exist stay valid.
    pub fn reset(&self) {
        self.registry.clear();
        let found = self.state().forget();
        drop(found);
    }

    /// Number of devices that the program sees.
    pub fn device_count(&self) -> u32 {
        self.state().discovery().count() as u32
    }

    /// Every device of every driver, for listings; also what unusable drivers say.
    pub fn devices(&self) -> (Vec<DeviceSummary>, Vec<GpuError>) {
        let mut state = self.state();
        let discovery = state.discovery();
        (discovery.summaries(), discovery.failures())
    }

    /// The device that a program gets when it does not ask for one.
    ///
    /// # Errors
    /// [`super::ErrorKind::BackendUnavailable`] that says what was found and how to get a device.
    pub fn default_device(&self) -> GpuResult<Arc<Context>> {
        let mut state = self.state();
        if let Some(device) = &state.default {
            return Ok(Arc::clone(device));
        }
        let runs = |driver| self.registry.all_run_on(driver);
        let device = state.discovery().default_device(runs)?;
        state.default = Some(Arc::clone(&device));
        drop(state);
        self.save_caches_at_exit();
        Ok(device)
    }

    /// The device with a number among those that the program sees.
    ///
    /// # Errors
    /// [`super::ErrorKind::BackendUnavailable`] when there are fewer.
    pub fn device(&self, number: u32) -> GpuResult<Arc<Context>> {
        let runs = |driver| self.registry.all_run_on(driver);
        let device = self.state().discovery().device(number, runs)?;
        self.save_caches_at_exit();
        Ok(device)
    }

    /// The words of all back ends that reach the hardware of a device.
    pub fn backends_of(&self, context: &Arc<Context>) -> Vec<&'static str> {
        let drivers = self.state().discovery().drivers_of(context);
        if drivers.is_empty() {
            return vec![context.properties().driver.backend_name()];
        }
        drivers.into_iter().map(DriverKind::backend_name).collect()
    }

    /// A kernel, loaded on a device.
    pub(crate) fn kernel(&self, context: &Arc<Context>, hash: u64) -> GpuResult<Arc<LoadedKernel>> {
        self.registry.kernel(context, hash)
    }

    fn prepare(
        &self,
        context: &Arc<Context>,
        hash: u64,
        buffers: &[&Buffer],
        scalars: &[u8],
    ) -> GpuResult<(Arc<LoadedKernel>, Arguments)> {
        let kernel = self.kernel(context, hash)?;
        let mut arguments = kernel.arguments();
        arguments.buffers.extend(buffers.iter().copied().cloned());
        arguments.scalars.extend_from_slice(scalars);
        Ok((kernel, arguments))
    }

    /// Launches a kernel and waits for it. `scalars` is the scalar block.
    ///
    /// # Errors
    /// When the kernel cannot run on the device, the sizes or arguments are wrong, the launch
    /// failed, or one that was queued before did.
    pub fn launch(
        &self,
        context: &Arc<Context>,
        hash: u64,
        size: LaunchSize,
        buffers: &[&Buffer],
        scalars: &[u8],
    ) -> GpuResult<()> {
        let (kernel, arguments) = self.prepare(context, hash, buffers, scalars)?;
        kernel.launch(size, arguments)
    }

    /// Queues a launch. A fault of it comes back from the next call that waits.
    ///
    /// # Errors
    /// As [`Runtime::launch`], as far as they are known before the kernel runs.
    pub fn launch_async(
        &self,
        context: &Arc<Context>,
        hash: u64,
        size: LaunchSize,
        buffers: &[&Buffer],
        scalars: &[u8],
    ) -> GpuResult<Fence> {
        let (kernel, arguments) = self.prepare(context, hash, buffers, scalars)?;
        kernel.queue(size, arguments)
    }

    /// The kernel on the CPU device, for a launch that its own device refused with `refusal`.
    ///
    /// # Errors
    /// `refusal` when it does not say that the device cannot run the kernel; both reasons when the
    /// CPU device cannot run it either.
    pub(crate) fn cpu_kernel_after(
        &self,
        refusal: GpuError,
        hash: u64,
    ) -> GpuResult<Arc<LoadedKernel>> {
        if !may_fall_back(&refusal) {
            return Err(refusal);
        }
        let cpu = self.state().discovery().cpu_device();
        match cpu.and_then(|cpu| self.kernel(&cpu, hash)) {
            Ok(kernel) => Ok(kernel),
            Err(error) => {
                let message = format!("{}; nor on the CPU: {}", refusal.message, error.message);
                Err(GpuError { message, ..refusal })
            }
        }
    }

    /// Launches a kernel and waits for it, on the CPU device when its own cannot run it.
    ///
    /// # Errors
    /// As [`Runtime::launch`].
    pub fn launch_with_fallback(
        &self,
        context: &Arc<Context>,
        hash: u64,
        size: LaunchSize,
        buffers: &[&Buffer],
        scalars: &[u8],
    ) -> GpuResult<()> {
        let Err(refusal) = self.launch(context, hash, size, buffers, scalars) else {
            return Ok(());
        };
        let kernel = self.cpu_kernel_after(refusal, hash)?;
        let buffers = buffers.iter().copied().cloned().collect();
        launch_on_cpu(&kernel, size, Arguments { buffers, scalars: scalars.to_vec() })
    }

    /// Waits for what is queued on every device that was opened: a driver need not bear that a
    /// process ends in the middle of it.
    ///
    /// # Errors
    /// The first fault that nobody has been told of.
    pub fn finish(&self) -> GpuResult<()> {
        let opened: Vec<Arc<Context>> = match &self.state().discovery {
            Some(discovery) => discovery.opened().cloned().collect(),
            None => Vec::new(),
        };
        opened.iter().try_for_each(|context| context.synchronize())
    }

    /// Writes what drivers keep on disk. The process's own runtime does it when the process ends.
    pub fn save_caches(&self) {
        // Nobody who holds the lock at the end of the process can be waited for.
        let Ok(state) = self.state.try_lock() else { return };
        let opened: Vec<Arc<Context>> = match &state.discovery {
            Some(discovery) => discovery.opened().cloned().collect(),
            None => Vec::new(),
        };
        drop(state);
        opened.iter().for_each(|context| context.device().save_caches());
    }

    /// To be called when a device has been opened: what runs at the end of the process runs in
    /// reverse order, so the caches are read before drivers clean up after themselves.
    fn save_caches_at_exit(&self) {
        static ONCE: Once = Once::new();
        if std::ptr::eq(self, Runtime::global()) {
            // SAFETY: the handler is a function of this program.
            ONCE.call_once(|| unsafe {
                atexit(save_caches_of_process);
            });
        }
    }
}

unsafe extern "C" {
    /// Of the C library: calls the handler when the process ends normally.
    fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
}

extern "C" fn save_caches_of_process() {
    // Nothing can be done about a failure here.
    let _ = std::panic::catch_unwind(|| Runtime::global().save_caches());
}
