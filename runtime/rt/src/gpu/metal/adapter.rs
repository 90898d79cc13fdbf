//! The devices of Metal, and the driver as discovery sees it.

use super::device::MetalDevice;
use super::error::error;
use crate::gpu::device::Device;
use crate::gpu::discovery::Driver;
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::properties::{DeviceLimits, DeviceProperties, DeviceType, DriverKind};
use magpie_types::kernel::DeviceFeatures;
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::ns_string;
use objc2_metal::{
    MTLComputePipelineState, MTLCopyAllDevices, MTLDevice, MTLDeviceLocation, MTLGPUFamily,
    MTLLibrary,
};

/// Argument slots of a kernel.
const SLOTS: u32 = 31;

/// A device.
#[derive(Clone)]
pub(super) struct Adapter {
    pub(super) device: Retained<ProtocolObject<dyn MTLDevice>>,
    pub(super) properties: DeviceProperties,
    /// Whether host and device share their memory.
    pub(super) unified_memory: bool,
}

/// The driver.
#[derive(Default)]
pub(crate) struct MetalDriver {
    hidden_features: DeviceFeatures,
    found: Vec<Adapter>,
}

impl MetalDriver {
    /// The driver, whose devices pretend to lack features.
    pub(crate) fn new(hidden_features: DeviceFeatures) -> MetalDriver {
        MetalDriver { hidden_features, found: Vec::new() }
    }
}

impl Driver for MetalDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Metal
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        let mut found: Vec<Adapter> = autoreleasepool(|_| {
            MTLCopyAllDevices().to_vec().into_iter().map(Adapter::new).collect()
        });
        if found.is_empty() {
            let message = "Metal offers no device";
            return Err(error(ErrorKind::BackendUnavailable, message));
        }
        found.sort_by_key(|adapter| adapter.properties.device_type);
        for adapter in &mut found {
            let features = &mut adapter.properties.features;
            *features = features.minus(self.hidden_features);
        }
        self.found = found;
        Ok(self.found.iter().map(|adapter| adapter.properties.clone()).collect())
    }

    fn open(&mut self, adapter: usize) -> GpuResult<Box<dyn Device>> {
        let Some(adapter) = self.found.get(adapter) else {
            let message = format!("Metal has no device {adapter}");
            return Err(error(ErrorKind::BackendUnavailable, message));
        };
        Ok(Box::new(MetalDevice::open(adapter)?))
    }
}

impl Adapter {
    fn new(device: Retained<ProtocolObject<dyn MTLDevice>>) -> Adapter {
        let unified_memory = device.hasUnifiedMemory();
        let threads = device.maxThreadsPerThreadgroup();
        let size = [threads.width, threads.height, threads.depth].map(saturated);
        let is_built_in = device.location() == MTLDeviceLocation::BuiltIn;
        let device_type = match (unified_memory, is_built_in && device.isLowPower()) {
            (false, false) => DeviceType::Discrete,
            (true, _) | (false, true) => DeviceType::Integrated,
        };
        let properties = DeviceProperties {
            name: device.name().to_string(),
            driver: DriverKind::Metal,
            driver_info: "Metal".to_string(),
            device_type,
            architecture: language().to_string(),
            uuid: None,
            pci: None,
            features: features(&device),
            limits: DeviceLimits {
                workgroup_size: size,
                workgroup_invocations: size[0],
                workgroup_count: [u32::MAX; 3],
                shared_bytes: saturated(device.maxThreadgroupMemoryLength()),
                buffers: SLOTS,
                buffer_bytes: device.maxBufferLength() as u64,
                push_constant_bytes: 0,
                // What `setBytes` takes.
                uniform_bytes: 4096,
            },
            subgroup_size: simd_width(&device),
            memory_total: device.recommendedMaxWorkingSetSize(),
        };
        Adapter { device, properties, unified_memory }
    }
}

/// The newest version of the language that the system's compiler takes, of those that make a
/// difference.
fn language() -> &'static str {
    match objc2::available!(macos = 14.0) {
        true => "msl3.1",
        false => "msl2.4",
    }
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn features(device: &ProtocolObject<dyn MTLDevice>) -> DeviceFeatures {
    let mut features = DeviceFeatures::INT8
        | DeviceFeatures::INT16
        | DeviceFeatures::INT64
        | DeviceFeatures::FLOAT16
        | DeviceFeatures::STORAGE8
        | DeviceFeatures::STORAGE16
        | DeviceFeatures::SCALAR8
        | DeviceFeatures::SCALAR16
        // In loops around a compare-and-swap.
        | DeviceFeatures::ATOMIC_FLOAT32_ADD
        | DeviceFeatures::ATOMIC_FLOAT32_MINMAX;
    // Reductions and shuffles of SIMD groups.
    if device.supportsFamily(MTLGPUFamily::Apple7) || device.supportsFamily(MTLGPUFamily::Mac2) {
        features |= DeviceFeatures::SUBGROUP;
    }
    features
}

/// Invocations of a SIMD group: 32 on Apple's devices, else as the pipeline of a kernel tells.
fn simd_width(device: &ProtocolObject<dyn MTLDevice>) -> u32 {
    const APPLE: u32 = 32;
    if device.supportsFamily(MTLGPUFamily::Apple1) {
        return APPLE;
    }
    let source = ns_string!("kernel void width() {}");
    let library = device.newLibraryWithSource_options_error(source, None).ok();
    let function = library.and_then(|l| l.newFunctionWithName(ns_string!("width")));
    let pipeline = function.and_then(|f| device.newComputePipelineStateWithFunction_error(&f).ok());
    pipeline.map_or(APPLE, |p| saturated(p.threadExecutionWidth()))
}
