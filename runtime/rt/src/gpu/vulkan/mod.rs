//! The Vulkan driver.
//!
//! The library is opened at run time. `instance` and `adapter` find devices, `core` opens one;
//! `memory` and `staging` hold its memory, `queue` and `batch` its work, `kernel` what it runs.
//! With `MAGPIE_VK_VALIDATE=1` the validation layer checks every call, and what it reports is an
//! error of the next one.

mod adapter;
mod batch;
mod core;
mod device;
mod device_clock;
mod error;
mod features;
mod free_ranges;
mod instance;
mod kernel;
mod memory;
mod pipeline_cache;
mod queue;
mod reports;
mod spirv;
mod staging;
#[cfg(test)]
mod tests;

use super::device::Device;
use super::discovery::Driver;
use super::error::{ErrorKind, GpuResult};
use super::properties::{DeviceProperties, DriverKind};
use adapter::{Adapter, adapters};
use device::VulkanDevice;
use error::error;
use instance::Instance;
use magpie_types::kernel::DeviceFeatures;
use std::sync::{Arc, Mutex, PoisonError};

use instance::VulkanOptions;

/// The driver as discovery sees it.
pub(crate) struct VulkanDriver {
    options: VulkanOptions,
    /// Whether the instance is the one of the process.
    is_shared: bool,
    /// The instance with its devices, when it was started.
    started: Option<(Arc<Instance>, Vec<Adapter>)>,
}

impl VulkanDriver {
    /// The driver with an instance of its own.
    #[cfg(test)]
    pub(crate) fn new(options: VulkanOptions) -> VulkanDriver {
        VulkanDriver { options, is_shared: false, started: None }
    }

    /// The driver as the environment asks for it. Its instance is started once in a process and
    /// stays, because drivers do not like to be unloaded and loaded again.
    pub(crate) fn of_process(hidden_features: DeviceFeatures) -> VulkanDriver {
        let options = VulkanOptions::from_environment(hidden_features);
        VulkanDriver { options, is_shared: true, started: None }
    }

    fn instance(&self) -> GpuResult<Arc<Instance>> {
        static SHARED: Mutex<Option<Arc<Instance>>> = Mutex::new(None);
        if !self.is_shared {
            return Ok(Arc::new(Instance::new(&self.options)?));
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            *shared = Some(Arc::new(Instance::new(&self.options)?));
        }
        shared.clone().ok_or_else(|| error(ErrorKind::BackendUnavailable, "Vulkan did not start"))
    }
}

impl Driver for VulkanDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Vulkan
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        let instance = self.instance()?;
        let mut adapters = adapters(&instance)?;
        for adapter in &mut adapters {
            let features = &mut adapter.properties.features;
            *features = features.minus(self.options.hidden_features);
        }
        let properties = adapters.iter().map(|adapter| adapter.properties.clone()).collect();
        self.started = Some((instance, adapters));
        Ok(properties)
    }

    fn open(&mut self, adapter: usize) -> GpuResult<Box<dyn Device>> {
        let started = self.started.as_ref();
        let found = started.and_then(|(instance, list)| Some((instance, list.get(adapter)?)));
        let Some((instance, adapter)) = found else {
            let message = format!("Vulkan has no device {adapter}");
            return Err(error(ErrorKind::BackendUnavailable, message));
        };
        Ok(Box::new(VulkanDevice::open(instance, adapter, &self.options)?))
    }
}
