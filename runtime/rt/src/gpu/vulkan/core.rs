//! [`Core`]: the handles of an opened device that never change.

use super::adapter::Adapter;
use super::error::error;
use super::instance::{Instance, VulkanOptions};
use super::reports::Reports;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use ash::vk;
use std::ffi::CStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Device functions that this driver calls. The bindings panic when a missing one is called, so
/// their presence is checked when the device is opened.
const NEEDED: &[&CStr] = &[
    c"vkGetDeviceQueue",
    c"vkQueueSubmit2",
    c"vkDeviceWaitIdle",
    c"vkCreateSemaphore",
    c"vkDestroySemaphore",
    c"vkGetSemaphoreCounterValue",
    c"vkWaitSemaphores",
    c"vkCreateBuffer",
    c"vkDestroyBuffer",
    c"vkGetBufferMemoryRequirements",
    c"vkGetDeviceBufferMemoryRequirements",
    c"vkAllocateMemory",
    c"vkFreeMemory",
    c"vkBindBufferMemory",
    c"vkMapMemory",
    c"vkCreateCommandPool",
    c"vkDestroyCommandPool",
    c"vkResetCommandPool",
    c"vkAllocateCommandBuffers",
    c"vkBeginCommandBuffer",
    c"vkEndCommandBuffer",
    c"vkCmdPipelineBarrier2",
    c"vkCmdBindPipeline",
    c"vkCmdBindDescriptorSets",
    c"vkCmdPushConstants",
    c"vkCmdDispatch",
    c"vkCmdCopyBuffer",
    c"vkCmdFillBuffer",
    c"vkCmdResetQueryPool",
    c"vkCmdWriteTimestamp2",
    c"vkCreateQueryPool",
    c"vkDestroyQueryPool",
    c"vkGetQueryPoolResults",
    c"vkCreateDescriptorPool",
    c"vkDestroyDescriptorPool",
    c"vkResetDescriptorPool",
    c"vkAllocateDescriptorSets",
    c"vkCreateDescriptorSetLayout",
    c"vkDestroyDescriptorSetLayout",
    c"vkCreateDescriptorUpdateTemplate",
    c"vkDestroyDescriptorUpdateTemplate",
    c"vkUpdateDescriptorSetWithTemplate",
    c"vkCreatePipelineLayout",
    c"vkDestroyPipelineLayout",
    c"vkCreateShaderModule",
    c"vkDestroyShaderModule",
    c"vkCreateComputePipelines",
    c"vkDestroyPipeline",
    c"vkCreatePipelineCache",
    c"vkDestroyPipelineCache",
    c"vkGetPipelineCacheData",
    c"vkDestroyDevice",
];

/// Checks the functions of a new device. A device without them is left alone, since it may lack the
/// one that destroys it.
fn check_functions(instance: &Instance, adapter: &Adapter, device: &ash::Device) -> GpuResult<()> {
    let get = instance.raw().fp_v1_0().get_device_proc_addr;
    for name in NEEDED {
        // SAFETY: the device is valid and the name is a C string.
        if unsafe { get(device.handle(), name.as_ptr()) }.is_none() {
            let (name, label) = (name.to_string_lossy(), adapter.properties.label());
            let message = format!("the driver of {label} lacks the function {name}");
            return Err(error(ErrorKind::BackendUnavailable, message));
        }
    }
    Ok(())
}

/// An opened device. Everything made from it must be gone before it is dropped.
pub(super) struct Core {
    pub(super) device: ash::Device,
    /// Functions for pushing descriptors, where they are used.
    pub(super) push: Option<ash::khr::push_descriptor::Device>,
    /// Counts completed batches.
    pub(super) timeline: vk::Semaphore,
    pub(super) adapter: Adapter,
    instance: Arc<Instance>,
}

impl Core {
    /// Opens a device with the features that kernels may need.
    pub(super) fn open(
        instance: &Arc<Instance>,
        adapter: &Adapter,
        options: &VulkanOptions,
    ) -> GpuResult<Core> {
        let mut features = adapter.features.wanted();
        let mut extensions = features.extensions();
        let pushes = adapter.max_push_descriptors > 0 && !options.no_push_descriptors;
        if pushes {
            extensions.push(ash::khr::push_descriptor::NAME);
        }
        if adapter.has_memory_budget {
            extensions.push(ash::ext::memory_budget::NAME);
        }
        if adapter.is_portability_subset {
            extensions.push(ash::khr::portability_subset::NAME);
        }
        let names: Vec<_> = extensions.iter().map(|name| name.as_ptr()).collect();
        let queue = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(adapter.queue_family)
            .queue_priorities(&[1.0])];
        let device = features.chain(|chain| {
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queue)
                .enabled_extension_names(&names)
                .push_next(chain);
            // SAFETY: the physical device is of the instance; features and extensions are offered.
            unsafe { instance.raw().create_device(adapter.physical, &info, None) }
        });
        let device = device.map_err(|code| adapter.failure(code, "cannot open the device"))?;
        check_functions(instance, adapter, &device)?;
        let mut core = Core {
            device,
            push: None,
            timeline: vk::Semaphore::null(),
            adapter: adapter.clone(),
            instance: Arc::clone(instance),
        };
        core.timeline = core.new_timeline()?;
        if pushes {
            let functions = ash::khr::push_descriptor::Device::new(instance.raw(), &core.device);
            core.push = Some(functions);
        }
        Ok(core)
    }

    fn new_timeline(&self) -> GpuResult<vk::Semaphore> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default()
            .semaphore_type(vk::SemaphoreType::TIMELINE)
            .initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is valid.
        unsafe { self.device.create_semaphore(&info, None) }
            .map_err(|code| self.failure(code, "cannot make a semaphore"))
    }

    /// What the validation layer has reported.
    pub(super) fn reports(&self) -> &Reports {
        self.instance.reports()
    }

    /// An error about this device.
    pub(super) fn failure(&self, code: vk::Result, what: &str) -> GpuError {
        self.adapter.failure(code, what)
    }

    /// The newest batch that is done.
    pub(super) fn completed(&self) -> GpuResult<u64> {
        // SAFETY: the semaphore is a timeline of the device.
        unsafe { self.device.get_semaphore_counter_value(self.timeline) }
            .map_err(|code| self.failure(code, "cannot ask for finished work"))
    }

    /// Waits for a submitted batch for at most `nanoseconds`; `false` when it is not done by then.
    pub(super) fn wait_for(&self, serial: u64, nanoseconds: u64) -> GpuResult<bool> {
        if self.spin_for(serial)? {
            return Ok(true);
        }
        let (semaphores, values) = ([self.timeline], [serial]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the semaphore is a timeline of the device.
        match unsafe { self.device.wait_semaphores(&info, nanoseconds) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(code) => Err(self.failure(code, "waiting for queued work")),
        }
    }

    /// Looks for the end of a batch for a short time, because a sleeping thread wakes up late.
    /// Devices that run on the host's cores need them for the work.
    fn spin_for(&self, serial: u64) -> GpuResult<bool> {
        const SPIN: Duration = Duration::from_micros(50);
        let is_hardware = self.adapter.properties.device_type.is_hardware();
        let start = Instant::now();
        loop {
            if self.completed()? >= serial {
                return Ok(true);
            }
            if !is_hardware || start.elapsed() > SPIN {
                return Ok(false);
            }
            std::hint::spin_loop();
        }
    }

    /// Bytes of the device's own memory that the driver says can still be had, if it says so.
    pub(super) fn memory_budget(&self) -> Option<u64> {
        if !self.adapter.has_memory_budget {
            return None;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut chain = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        let physical = self.adapter.physical;
        // SAFETY: the extension that defines the structure is offered.
        unsafe { self.instance.raw().get_physical_device_memory_properties2(physical, &mut chain) };
        let heaps = super::adapter::local_heaps(&self.adapter.memory);
        let left =
            |index: usize| budget.heap_budget[index].saturating_sub(budget.heap_usage[index]);
        Some(heaps.map(|(index, _)| left(index)).sum())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: everything made from the device is gone; a null semaphore is ignored.
        unsafe {
            self.device.destroy_semaphore(self.timeline, None);
            self.device.destroy_device(None);
        }
    }
}
