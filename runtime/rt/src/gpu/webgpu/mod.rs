//! The WebGPU driver, over wgpu-native's C interface.
//!
//! The library is opened at run time: the one that `MAGPIE_WGPU_LIBRARY` names, else the tools of
//! the workspace for programs that cargo runs, else where the system's loader looks. `instance` finds
//! adapters, `core` opens a device and keeps its work in order, `device` holds memory, `kernel` what
//! runs.
//!
//! Every buffer of the runtime is a buffer of the library. Launches are recorded into one compute pass,
//! which goes out when it is full, when something else is queued behind it, or when somebody waits.

mod api;
mod core;
mod device;
mod error;
mod instance;
mod kernel;
#[cfg(test)]
mod tests;

use super::device::Device;
use super::discovery::Driver;
use super::error::{ErrorKind, GpuResult};
use super::properties::{DeviceProperties, DriverKind};
use device::WebGpuDevice;
use error::error;
use instance::{Adapter, Instance, adapters, candidates};
use magpie_types::kernel::DeviceFeatures;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The driver as discovery sees it.
pub(crate) struct WebGpuDriver {
    /// The library to open instead of the usual ones, with an instance of its own.
    library: Option<PathBuf>,
    /// What devices pretend to lack.
    hidden_features: DeviceFeatures,
    adapters: Vec<Adapter>,
}

impl WebGpuDriver {
    /// The driver with the library of the process.
    pub(crate) fn of_process(hidden_features: DeviceFeatures) -> WebGpuDriver {
        WebGpuDriver { library: None, hidden_features, adapters: Vec::new() }
    }

    /// The driver with another library.
    #[cfg(test)]
    pub(crate) fn with_library(library: PathBuf) -> WebGpuDriver {
        WebGpuDriver {
            library: Some(library),
            ..WebGpuDriver::of_process(DeviceFeatures::default())
        }
    }

    fn instance(&self) -> GpuResult<Arc<Instance>> {
        // It stays, because drivers below do not like to be unloaded and loaded again.
        static SHARED: Mutex<Option<Arc<Instance>>> = Mutex::new(None);
        if let Some(library) = &self.library {
            return Ok(Arc::new(Instance::open(std::slice::from_ref(library))?));
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = &*shared {
            return Ok(Arc::clone(instance));
        }
        let instance = Arc::new(Instance::open(&candidates())?);
        *shared = Some(Arc::clone(&instance));
        Ok(instance)
    }
}

impl Driver for WebGpuDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::WebGpu
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        self.adapters = adapters(&self.instance()?)?;
        for adapter in &mut self.adapters {
            let features = &mut adapter.properties.features;
            *features = features.minus(self.hidden_features);
        }
        Ok(self.adapters.iter().map(|a| a.properties.clone()).collect())
    }

    fn open(&mut self, adapter: usize) -> GpuResult<Box<dyn Device>> {
        let Some(adapter) = self.adapters.get(adapter) else {
            let message = format!("WebGPU has no device {adapter}");
            return Err(error(ErrorKind::BackendUnavailable, message));
        };
        Ok(Box::new(WebGpuDevice::open(adapter)?))
    }
}
