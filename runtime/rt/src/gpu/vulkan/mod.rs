//! The Vulkan driver.
use crate::gpu::device::Device;
use crate::gpu::discovery::Driver;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu::properties::{DeviceProperties, DriverKind};

#[derive(Default)]
pub(crate) struct VulkanDriver;
impl Driver for VulkanDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Vulkan
    }
    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        Err(GpuError::new(ErrorKind::BackendUnavailable, "spv", ""))
    }
    fn open(&mut self, _: usize) -> GpuResult<Box<dyn Device>> {
        Err(GpuError::new(ErrorKind::BackendUnavailable, "spv", ""))
    }
}
