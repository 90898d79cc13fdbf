//! The kernels of the program, found by the FNV-1a hash of their stable id.

use super::context::Context;
use super::device::DeviceKernel;
use super::error::{ErrorKind, GpuError, GpuResult};
use super::launch::LoadedKernel;
use super::properties::{DeviceProperties, DriverKind};
use super::widen::device_stride;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelBlob, KernelLayout, ScalarTransport};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

/// Compiles kernels when a device first needs them.
pub trait BlobProvider: Send + Sync {
    /// Whether the kernel can be compiled for the back end. Asked when a device is chosen; must
    /// not compile.
    fn can_provide(&self, kernel: u64, backend: GpuBackend) -> bool;

    /// The kernel for a device; `None` when there is none for this back end.
    ///
    /// # Errors
    /// Why the kernel cannot be compiled; the program sees it as the launch's error.
    fn provide(
        &self,
        kernel: u64,
        backend: GpuBackend,
        device: &DeviceProperties,
    ) -> GpuResult<Option<KernelBlob>>;
}

/// A blob as it was registered: the back end's number, and what was read or why it could not be.
pub(crate) type RegisteredBlob = (u8, Result<KernelBlob, String>);

/// A registered kernel.
pub(crate) struct KernelEntry {
    hash: u64,
    name: Arc<str>,
    blobs: Vec<RegisteredBlob>,
    provider: Option<Arc<dyn BlobProvider>>,
    /// What devices have loaded, one entry a device.
    loaded: RwLock<Vec<Arc<LoadedKernel>>>,
}

impl KernelEntry {
    fn can_run_on(&self, backend: GpuBackend) -> bool {
        let registered = self.blobs.iter().any(|&(number, _)| number == backend as u8);
        registered || self.provider.as_ref().is_some_and(|p| p.can_provide(self.hash, backend))
    }

    /// The kernel on a device, loaded at the first call.
    fn on(&self, context: &Arc<Context>) -> GpuResult<Arc<LoadedKernel>> {
        let find = |loaded: &[Arc<LoadedKernel>]| {
            loaded.iter().find(|kernel| Arc::ptr_eq(kernel.context(), context)).cloned()
        };
        if let Some(kernel) = find(&self.loaded.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(kernel);
        }
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = find(&loaded) {
            return Ok(kernel);
        }
        let kernel = Arc::new(self.load(context)?);
        loaded.push(Arc::clone(&kernel));
        Ok(kernel)
    }

    fn load(&self, context: &Arc<Context>) -> GpuResult<LoadedKernel> {
        let properties = context.properties();
        let blob = match properties.driver.backend() {
            Some(backend) => self.blob_for(backend, properties)?,
            // The mock device takes what there is, to check arguments with.
            None => match self.blobs.iter().find_map(|(_, blob)| blob.as_ref().ok()) {
                Some(blob) => Cow::Borrowed(blob),
                None => return Ok(LoadedKernel::without_layout(context, &self.name)),
            },
        };
        let error = |kind, why: String| {
            let device = properties.label();
            context.error(kind, format!("kernel `{}` on {device}: {why}", self.name))
        };
        let layout = &blob.layout;
        layout.check().map_err(|why| error(ErrorKind::InvalidKernel, why))?;
        check_limits(layout, properties).map_err(|why| error(ErrorKind::ResourceExhausted, why))?;
        check_strides(layout, properties).map_err(|why| error(ErrorKind::InvalidKernel, why))?;
        let kernel: Box<dyn DeviceKernel> =
            context.device().load_kernel(&self.name, self.hash, &blob)?;
        Ok(LoadedKernel::new(context, &self.name, blob.into_owned(), kernel))
    }

    /// The registered blob when the device can run it, else one from the provider.
    fn blob_for(
        &self,
        backend: GpuBackend,
        properties: &DeviceProperties,
    ) -> GpuResult<Cow<'_, KernelBlob>> {
        let error = |kind, why: String| {
            let device = properties.label();
            let message = format!("kernel `{}` on {device}: {why}", self.name);
            GpuError::new(kind, backend.name(), message)
        };
        let registered = self.blobs.iter().find(|&&(number, _)| number == backend as u8);
        let refusal = match registered {
            Some((_, Ok(blob))) => {
                let missing = blob.layout.features.minus(properties.features);
                if missing == DeviceFeatures::default() {
                    return Ok(Cow::Borrowed(blob));
                }
                let names = missing.names().join(", ");
                error(ErrorKind::Unsupported, format!("the device lacks {names}"))
            }
            Some((_, Err(why))) => error(ErrorKind::InvalidKernel, why.clone()),
            None => error(ErrorKind::InvalidKernel, self.lacking(backend)),
        };
        let Some(provider) = &self.provider else { return Err(refusal) };
        let Some(blob) = provider.provide(self.hash, backend, properties)? else {
            return Err(refusal);
        };
        let missing = blob.layout.features.minus(properties.features);
        if missing != DeviceFeatures::default() {
            let names = missing.names().join(", ");
            return Err(error(ErrorKind::Unsupported, format!("the device lacks {names}")));
        }
        Ok(Cow::Owned(blob))
    }

    fn lacking(&self, backend: GpuBackend) -> String {
        let word = |&(number, _): &RegisteredBlob| {
            GpuBackend::from_u8(number).map_or_else(|| number.to_string(), |b| b.name().to_string())
        };
        let have: Vec<String> = self.blobs.iter().map(word).collect();
        let have = if have.is_empty() { "none".to_string() } else { have.join(", ") };
        format!("it has no {} blob (it has: {have})", backend.name())
    }
}

fn check_limits(layout: &KernelLayout, properties: &DeviceProperties) -> Result<(), String> {
    let limits = &properties.limits;
    let exceeded = |what: &str, needed: u64, limit: u32| {
        let message = || format!("it needs {needed} {what}; the device offers {limit}");
        if needed > u64::from(limit) { Err(message()) } else { Ok(()) }
    };
    exceeded("buffers", layout.num_buffers() as u64, limits.buffers)?;
    exceeded("bytes of shared memory", u64::from(layout.shared_bytes), limits.shared_bytes)?;
    let block = u64::from(layout.block_size);
    match layout.transport {
        ScalarTransport::PushConstants => {
            exceeded("bytes of push constants", block, limits.push_constant_bytes)
        }
        ScalarTransport::Uniform { .. } => {
            exceeded("bytes of a uniform block", block, limits.uniform_bytes)
        }
        ScalarTransport::None | ScalarTransport::Arguments => Ok(()),
    }
}

fn check_strides(layout: &KernelLayout, properties: &DeviceProperties) -> Result<(), String> {
    for buffer in layout.buffers() {
        let stored = device_stride(properties.features, buffer.elem, buffer.host_stride);
        if stored != buffer.device_stride {
            return Err(format!(
                "it expects elements of buffer {} every {} bytes; the device stores them every \
                 {stored}",
                buffer.index, buffer.device_stride
            ));
        }
    }
    Ok(())
}

/// All kernels of a program.
#[derive(Default)]
pub(crate) struct Registry {
    kernels: RwLock<FxHashMap<u64, Arc<KernelEntry>>>,
}

impl Registry {
    /// Adds a kernel, or replaces the one with the same hash.
    pub(crate) fn register(
        &self,
        hash: u64,
        name: &str,
        blobs: Vec<RegisteredBlob>,
        provider: Option<Arc<dyn BlobProvider>>,
    ) {
        let name = Arc::from(name);
        let entry = KernelEntry { hash, name, blobs, provider, loaded: RwLock::default() };
        let mut kernels = self.kernels.write().unwrap_or_else(PoisonError::into_inner);
        kernels.insert(hash, Arc::new(entry));
    }

    /// Whether every kernel has a blob for the driver's back end, or can get one.
    pub(crate) fn all_run_on(&self, driver: DriverKind) -> bool {
        let kernels = self.kernels.read().unwrap_or_else(PoisonError::into_inner);
        let Some(backend) = driver.backend() else { return true };
        kernels.values().all(|kernel| kernel.can_run_on(backend))
    }

    /// A kernel, loaded on a device.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidKernel`] when it is unknown or has no blob for the device,
    /// [`ErrorKind::Unsupported`] when the device lacks a feature, and what the provider and the
    /// driver say.
    pub(crate) fn kernel(&self, context: &Arc<Context>, hash: u64) -> GpuResult<Arc<LoadedKernel>> {
        let kernels = self.kernels.read().unwrap_or_else(PoisonError::into_inner);
        let entry = kernels.get(&hash).cloned();
        drop(kernels);
        match entry {
            Some(entry) => entry.on(context),
            None if context.properties().driver == DriverKind::Mock => {
                Ok(Arc::new(LoadedKernel::without_layout(context, "unregistered kernel")))
            }
            None => {
                let message = format!("no kernel with hash {hash:#018x} is registered");
                Err(context.error(ErrorKind::InvalidKernel, message))
            }
        }
    }

    /// Forgets all kernels. Launches that are queued still run.
    pub(crate) fn clear(&self) {
        self.kernels.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
