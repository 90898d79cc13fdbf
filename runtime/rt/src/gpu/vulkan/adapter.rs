//! A physical device: everything about it that is asked once.

use super::error::{error, failure};
use super::features::Features;
use super::instance::{Instance, c_name};
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu::properties::{DeviceLimits, DeviceProperties, DeviceType, DriverKind, PciAddress};
use ash::vk;
use std::ffi::CStr;

/// Buffers that a kernel may have, however many more the driver allows: the size of a batch's
/// descriptor pool.
pub(super) const MAX_BUFFERS: u32 = 1024;

/// A physical device with what the driver needs to know beside its public properties.
#[derive(Clone)]
pub(super) struct Adapter {
    pub(super) physical: vk::PhysicalDevice,
    pub(super) properties: DeviceProperties,
    pub(super) features: Features,
    pub(super) queue_family: u32,
    /// Meaningful bits of a timestamp; 0 when the queue has none.
    pub(super) timestamp_bits: u32,
    /// Nanoseconds of a timestamp's unit.
    pub(super) timestamp_period: f64,
    pub(super) memory: vk::PhysicalDeviceMemoryProperties,
    /// Whether host and device share their memory.
    pub(super) unified_memory: bool,
    pub(super) storage_alignment: u64,
    pub(super) uniform_alignment: u64,
    pub(super) max_allocation: u64,
    pub(super) max_buffer: u64,
    /// Descriptors that can be pushed; 0 without the extension.
    pub(super) max_push_descriptors: u32,
    pub(super) has_memory_budget: bool,
    pub(super) is_portability_subset: bool,
    pub(super) cache_uuid: [u8; 16],
}

/// The devices of an instance, preferred kinds first.
///
/// # Errors
/// [`ErrorKind::BackendUnavailable`] when there is none that can be used, and why.
pub(super) fn adapters(instance: &Instance) -> GpuResult<Vec<Adapter>> {
    // SAFETY: the instance is valid.
    let physical = unsafe { instance.raw().enumerate_physical_devices() }
        .map_err(|code| failure(code, "cannot list the devices of Vulkan"))?;
    let (mut usable, mut refusals) = (Vec::new(), Vec::new());
    for device in physical {
        match Adapter::new(instance, device) {
            Ok(adapter) => usable.push(adapter),
            Err(refusal) => refusals.push(refusal.message),
        }
    }
    if usable.is_empty() {
        let message = match refusals.as_slice() {
            [] => "Vulkan is installed but no driver offers a device".to_string(),
            refusals => format!("Vulkan has no usable device: {}", refusals.join("; ")),
        };
        return Err(error(ErrorKind::BackendUnavailable, message));
    }
    usable.sort_by_key(|adapter| adapter.properties.device_type);
    Ok(usable)
}

impl Adapter {
    fn new(instance: &Instance, physical: vk::PhysicalDevice) -> GpuResult<Adapter> {
        // SAFETY: the physical device is of this instance.
        let base = unsafe { instance.raw().get_physical_device_properties(physical) };
        let name = c_name(&base.device_name).to_string_lossy().into_owned();
        let refused = |why: &str| error(ErrorKind::BackendUnavailable, format!("{name}: {why}"));
        if base.api_version < vk::API_VERSION_1_3 {
            let (major, minor) =
                (vk::api_version_major(base.api_version), vk::api_version_minor(base.api_version));
            return Err(refused(&format!("offers Vulkan {major}.{minor}; 1.3 is needed")));
        }
        // SAFETY: as above.
        let extensions = unsafe { instance.raw().enumerate_device_extension_properties(physical) }
            .map_err(|code| failure(code, &format!("{name}: cannot list its extensions")))?;
        let has = |name: &CStr| extensions.iter().any(|e| c_name(&e.extension_name) == name);
        let features = Features::offered(instance, physical, has);
        if let Some(missing) = features.missing() {
            return Err(refused(&format!("lacks the feature {missing}")));
        }
        let (queue_family, timestamp_bits) = queue_family(instance, physical)
            .ok_or_else(|| refused("has no queue for compute work"))?;
        Ok(Adapter::describe(instance, physical, features, has, queue_family, timestamp_bits))
    }

    fn describe(
        instance: &Instance,
        physical: vk::PhysicalDevice,
        features: Features,
        has: impl Fn(&CStr) -> bool,
        queue_family: u32,
        timestamp_bits: u32,
    ) -> Adapter {
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut floats = vk::PhysicalDeviceFloatControlsProperties::default();
        let mut subgroups = vk::PhysicalDeviceSubgroupProperties::default();
        let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
        let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let (has_push, has_pci) =
            (has(ash::khr::push_descriptor::NAME), has(ash::ext::pci_bus_info::NAME));
        let mut chain = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut ids)
            .push_next(&mut driver)
            .push_next(&mut floats)
            .push_next(&mut subgroups)
            .push_next(&mut maintenance3)
            .push_next(&mut maintenance4);
        if has_push {
            chain = chain.push_next(&mut push);
        }
        if has_pci {
            chain = chain.push_next(&mut pci);
        }
        // SAFETY: the chain holds structures that version 1.3 and the extensions define.
        unsafe { instance.raw().get_physical_device_properties2(physical, &mut chain) };
        let base = chain.properties;
        let limits = base.limits;
        // SAFETY: the physical device is of this instance.
        let memory = unsafe { instance.raw().get_physical_device_memory_properties(physical) };
        let device_type = device_type(base.device_type);
        let version = base.api_version;
        let driver_info = format!(
            "{} {}, Vulkan {}.{}.{}",
            c_name(&driver.driver_name).to_string_lossy(),
            c_name(&driver.driver_info).to_string_lossy(),
            vk::api_version_major(version),
            vk::api_version_minor(version),
            vk::api_version_patch(version),
        );
        let buffers = limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers)
            .min(MAX_BUFFERS);
        let properties = DeviceProperties {
            name: c_name(&base.device_name).to_string_lossy().into_owned(),
            driver: DriverKind::Vulkan,
            driver_info,
            architecture: String::new(),
            device_type,
            uuid: Some(ids.device_uuid),
            pci: has_pci.then_some(PciAddress {
                domain: pci.pci_domain,
                bus: pci.pci_bus,
                device: pci.pci_device,
                function: pci.pci_function,
            }),
            features: features.for_kernels(&floats, &subgroups),
            limits: DeviceLimits {
                workgroup_size: limits.max_compute_work_group_size,
                workgroup_invocations: limits.max_compute_work_group_invocations,
                workgroup_count: limits.max_compute_work_group_count,
                shared_bytes: limits.max_compute_shared_memory_size,
                buffers,
                buffer_bytes: u64::from(limits.max_storage_buffer_range),
                push_constant_bytes: limits.max_push_constants_size,
                uniform_bytes: limits.max_uniform_buffer_range,
            },
            subgroup_size: subgroups.subgroup_size,
            memory_total: local_heaps(&memory).map(|(_, heap)| heap.size).sum(),
        };
        Adapter {
            physical,
            properties,
            features,
            queue_family,
            timestamp_bits,
            timestamp_period: f64::from(limits.timestamp_period),
            memory,
            unified_memory: matches!(device_type, DeviceType::Integrated | DeviceType::Software),
            storage_alignment: limits.min_storage_buffer_offset_alignment.max(1),
            uniform_alignment: limits.min_uniform_buffer_offset_alignment.max(1),
            max_allocation: maintenance3.max_memory_allocation_size,
            max_buffer: maintenance4.max_buffer_size,
            max_push_descriptors: push.max_push_descriptors,
            has_memory_budget: has(ash::ext::memory_budget::NAME),
            is_portability_subset: has(ash::khr::portability_subset::NAME),
            cache_uuid: base.pipeline_cache_uuid,
        }
    }

    /// An error about this device.
    pub(super) fn failure(&self, code: vk::Result, what: &str) -> GpuError {
        failure(code, &format!("{what} on {}", self.properties.label()))
    }
}

/// The heaps of the device's own memory.
pub(super) fn local_heaps(
    memory: &vk::PhysicalDeviceMemoryProperties,
) -> impl Iterator<Item = (usize, vk::MemoryHeap)> + '_ {
    let heaps = memory.memory_heaps_as_slice().iter().copied().enumerate();
    heaps.filter(|(_, heap)| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
}

fn device_type(device_type: vk::PhysicalDeviceType) -> DeviceType {
    match device_type {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceType::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceType::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceType::Virtual,
        vk::PhysicalDeviceType::CPU => DeviceType::Software,
        _ => DeviceType::Other,
    }
}

/// The first queue family for compute work, one with timestamps if there is any.
fn queue_family(instance: &Instance, physical: vk::PhysicalDevice) -> Option<(u32, u32)> {
    // SAFETY: the physical device is of this instance.
    let families = unsafe { instance.raw().get_physical_device_queue_family_properties(physical) };
    let compute = families.iter().enumerate().filter_map(|(index, family)| {
        let usable = family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0;
        usable.then_some((index as u32, family.timestamp_valid_bits))
    });
    compute.min_by_key(|&(_, timestamp_bits)| timestamp_bits == 0)
}
