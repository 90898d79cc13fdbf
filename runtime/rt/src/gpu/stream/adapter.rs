//! The devices of an interface and what they are.

use super::Vendor;
use super::api::{Api, Code};
use super::{cuda, hip};
use crate::gpu::error::GpuResult;
use crate::gpu::properties::{DeviceLimits, DeviceProperties, DeviceType, PciAddress};
use magpie_types::kernel::DeviceFeatures;
use std::ffi::{CStr, c_char, c_int};

/// Bytes that HIP's structure of properties may have, in this version or another.
const PROPERTIES_BYTES: usize = 16 << 10;

/// Bytes of arguments that a kernel may have.
const ARGUMENT_BYTES: u32 = 4096;

/// The numbers of an interface's attributes.
pub(super) struct Attributes {
    pub(super) invocations: c_int,
    pub(super) block: [c_int; 3],
    pub(super) grid: [c_int; 3],
    pub(super) shared: c_int,
    /// Shared memory that kernels get when they ask for it.
    pub(super) shared_opt_in: Option<c_int>,
    pub(super) subgroup: c_int,
    pub(super) integrated: c_int,
    pub(super) pci_domain: c_int,
    pub(super) pci_bus: c_int,
    pub(super) pci_device: c_int,
    /// Compute capability, major and minor.
    pub(super) capability: [c_int; 2],
    pub(super) memory_pools: c_int,
}

impl Attributes {
    fn of(vendor: Vendor) -> &'static Attributes {
        match vendor {
            Vendor::Cuda => &cuda::ATTRIBUTES,
            Vendor::Hip => &hip::ATTRIBUTES,
        }
    }
}

/// A device that can be opened.
#[derive(Clone)]
pub(super) struct Adapter {
    /// The interface's own handle.
    pub(super) device: c_int,
    pub(super) properties: DeviceProperties,
    /// Whether it allocates in the order of a stream.
    pub(super) has_pools: bool,
}

/// All devices, in the interface's order.
pub(super) fn adapters(api: &Api) -> GpuResult<Vec<Adapter>> {
    let mut count = 0;
    // SAFETY: the place lives through the call.
    let code = unsafe { (api.call.device_count)(&raw mut count) };
    if cuda::is_no_device(code) {
        return Ok(Vec::new());
    }
    api.check(code, || format!("cannot count the devices of {}", api.vendor.name()))?;
    (0..count).map(|number| adapter(api, number)).collect()
}

fn adapter(api: &Api, number: c_int) -> GpuResult<Adapter> {
    let ask = |code: Code, what: &str| api.check(code, || format!("device {number}: no {what}"));
    let (mut device, mut name, mut memory) = (0, [0 as c_char; 256], 0usize);
    // SAFETY: the places live through the calls and have the sizes that are told.
    unsafe {
        ask((api.call.device_get)(&raw mut device, number), "handle")?;
        let bytes = name.len() as c_int - 1;
        ask((api.call.device_name)(name.as_mut_ptr(), bytes, device), "name")?;
        ask((api.call.device_total_memory)(&raw mut memory, device), "memory size")?;
    }
    // SAFETY: the last byte is still NUL.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let attribute = |attribute: c_int| {
        let mut value = 0;
        // SAFETY: the place lives through the call.
        let code = unsafe { (api.call.device_attribute)(&raw mut value, attribute, device) };
        ask(code, &format!("attribute {attribute}")).map(|()| value.max(0) as u32)
    };
    let numbers = Attributes::of(api.vendor);
    let [mut block, mut grid] = [[0; 3]; 2];
    for dim in 0..3 {
        block[dim] = attribute(numbers.block[dim])?;
        grid[dim] = attribute(numbers.grid[dim])?;
    }
    let opt_in = numbers.shared_opt_in.and_then(|n| attribute(n).ok()).unwrap_or(0);
    let limits = DeviceLimits {
        workgroup_size: block,
        workgroup_invocations: attribute(numbers.invocations)?,
        workgroup_count: grid,
        shared_bytes: attribute(numbers.shared)?.max(opt_in),
        buffers: ARGUMENT_BYTES / 8,
        buffer_bytes: memory as u64,
        push_constant_bytes: 0,
        uniform_bytes: ARGUMENT_BYTES,
    };
    let capability = [attribute(numbers.capability[0])?, attribute(numbers.capability[1])?];
    let integrated = attribute(numbers.integrated)? != 0;
    let pci = PciAddress {
        domain: attribute(numbers.pci_domain)?,
        bus: attribute(numbers.pci_bus)?,
        device: attribute(numbers.pci_device)?,
        function: 0,
    };
    let properties = DeviceProperties {
        name,
        driver: api.vendor.driver(),
        driver_info: driver_info(api),
        architecture: architecture(api, device, capability),
        device_type: if integrated { DeviceType::Integrated } else { DeviceType::Discrete },
        uuid: uuid(api, device),
        pci: Some(pci),
        features: FEATURES,
        limits,
        subgroup_size: attribute(numbers.subgroup)?.max(1),
        memory_total: memory as u64,
    };
    // Old libraries do not know the question.
    let has_pools = attribute(numbers.memory_pools).is_ok_and(|yes| yes != 0);
    Ok(Adapter { device, properties, has_pools })
}

/// What kernels may use: everything that has a name and is not about Vulkan's promises.
const FEATURES: DeviceFeatures = DeviceFeatures(
    DeviceFeatures::INT8.0
        | DeviceFeatures::INT16.0
        | DeviceFeatures::INT64.0
        | DeviceFeatures::FLOAT16.0
        | DeviceFeatures::FLOAT64.0
        | DeviceFeatures::STORAGE8.0
        | DeviceFeatures::STORAGE16.0
        | DeviceFeatures::SCALAR8.0
        | DeviceFeatures::SCALAR16.0
        | DeviceFeatures::ATOMIC_INT64.0
        | DeviceFeatures::ATOMIC_FLOAT32_ADD.0
        | DeviceFeatures::ATOMIC_FLOAT64_ADD.0
        | DeviceFeatures::ATOMIC_FLOAT32_MINMAX.0
        | DeviceFeatures::SUBGROUP.0,
);

fn uuid(api: &Api, device: c_int) -> Option<[u8; 16]> {
    let mut uuid = [0; 16];
    // SAFETY: the place has the 16 bytes of a UUID.
    let code = unsafe { api.uuid?(&raw mut uuid, device) };
    (code == 0 && uuid != [0; 16]).then_some(uuid)
}

/// The version of the interface: `CUDA 12.9`.
fn driver_info(api: &Api) -> String {
    let (name, version) = (api.vendor.name(), api.version);
    match api.vendor {
        Vendor::Cuda => format!("{name} {}.{}", version / 1000, version % 1000 / 10),
        Vendor::Hip => format!("{name} {}.{}", version / 10_000_000, version / 100_000 % 100),
    }
}

/// What code is made for; empty when the interface does not say.
fn architecture(api: &Api, device: c_int, [major, minor]: [u32; 2]) -> String {
    match api.vendor {
        Vendor::Cuda => format!("sm_{major}{minor}"),
        Vendor::Hip => hip_architecture(api, device).unwrap_or_default(),
    }
}

fn hip_architecture(api: &Api, device: c_int) -> Option<String> {
    let mut properties = vec![0u64; PROPERTIES_BYTES / 8];
    // SAFETY: the structure is smaller in every version.
    let code = unsafe { api.properties?(properties.as_mut_ptr().cast(), device) };
    let bytes: Vec<u8> = properties.iter().flat_map(|word| word.to_ne_bytes()).collect();
    (code == 0).then(|| hip::architecture(&bytes)).flatten()
}
