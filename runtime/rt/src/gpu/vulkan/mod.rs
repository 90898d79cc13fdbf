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
mod ring;
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
use std::sync::Arc;

pub(crate) use instance::VulkanOptions;

/// The driver as discovery sees it.
pub(crate) struct VulkanDriver {
    options: VulkanOptions,
    /// The instance with its devices, when it was started.
    started: Option<(Arc<Instance>, Vec<Adapter>)>,
}

impl VulkanDriver {
    pub(crate) fn new(options: VulkanOptions) -> VulkanDriver {
        VulkanDriver { options, started: None }
    }
}

impl Driver for VulkanDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Vulkan
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        let instance = Arc::new(Instance::new(&self.options)?);
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
