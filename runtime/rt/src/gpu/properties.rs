//! What a device is and what it offers, read once.

use magpie_types::kernel::{DeviceFeatures, GpuBackend};

/// A driver of this runtime, or one that the platform order has a place for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DriverKind {
    /// NVIDIA's driver, for PTX.
    Cuda,
    /// AMD's driver, for HSACO.
    Hip,
    /// Apple's interface, for MSL.
    Metal,
    /// Any Vulkan driver, for SPIR-V.
    Vulkan,
    /// A WebGPU library, for WGSL.
    WebGpu,
    /// Machine code on the host's cores.
    Cpu,
    /// The reference interpreter.
    Interp,
    /// A device whose launches do nothing.
    Mock,
}

impl DriverKind {
    /// The name of the driver: `cuda hip metal vulkan webgpu cpu interp mock`.
    pub fn name(self) -> &'static str {
        match self {
            DriverKind::Cuda => "cuda",
            DriverKind::Hip => "hip",
            DriverKind::Metal => "metal",
            DriverKind::Vulkan => "vulkan",
            DriverKind::WebGpu => "webgpu",
            DriverKind::Cpu => "cpu",
            DriverKind::Interp => "interp",
            DriverKind::Mock => "mock",
        }
    }

    /// The back end whose blobs the driver takes; the mock device takes none.
    pub fn backend(self) -> Option<GpuBackend> {
        match self {
            DriverKind::Cuda => Some(GpuBackend::Ptx),
            DriverKind::Hip => Some(GpuBackend::Hip),
            DriverKind::Metal => Some(GpuBackend::Msl),
            DriverKind::Vulkan => Some(GpuBackend::Spv),
            DriverKind::WebGpu => Some(GpuBackend::Wgsl),
            DriverKind::Cpu => Some(GpuBackend::Cpu),
            DriverKind::Interp => Some(GpuBackend::Interp),
            DriverKind::Mock => None,
        }
    }

    /// The word that errors and `device_backends` use: the back end's, or `mock`.
    pub fn backend_name(self) -> &'static str {
        self.backend().map_or("mock", GpuBackend::name)
    }

    /// The driver of a driver name or back-end word.
    pub fn from_name(name: &str) -> Option<DriverKind> {
        const ALL: [DriverKind; 8] = [
            DriverKind::Cuda,
            DriverKind::Hip,
            DriverKind::Metal,
            DriverKind::Vulkan,
            DriverKind::WebGpu,
            DriverKind::Cpu,
            DriverKind::Interp,
            DriverKind::Mock,
        ];
        ALL.into_iter().find(|d| d.name() == name || d.backend_name() == name)
    }

    /// The driver that runs blobs of a back end.
    pub fn of_backend(backend: GpuBackend) -> DriverKind {
        match backend {
            GpuBackend::Spv => DriverKind::Vulkan,
            GpuBackend::Msl => DriverKind::Metal,
            GpuBackend::Ptx => DriverKind::Cuda,
            GpuBackend::Hip => DriverKind::Hip,
            GpuBackend::Wgsl => DriverKind::WebGpu,
            GpuBackend::Cpu => DriverKind::Cpu,
            GpuBackend::Interp => DriverKind::Interp,
        }
    }
}

/// What kind of hardware a device is, in the order in which a driver prefers them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeviceType {
    /// A card with its own memory.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// Hardware of another kind.
    Other,
    /// A GPU interface implemented on the CPU: listed, never chosen unless named.
    Software,
    /// The host's own cores: the CPU device, the interpreter, the mock device.
    Host,
}

impl DeviceType {
    /// The word in device listings.
    pub fn name(self) -> &'static str {
        match self {
            DeviceType::Discrete => "discrete",
            DeviceType::Integrated => "integrated",
            DeviceType::Virtual => "virtual",
            DeviceType::Other => "other",
            DeviceType::Software => "software",
            DeviceType::Host => "host",
        }
    }

    /// Whether it is a GPU and not a program on the CPU.
    pub fn is_hardware(self) -> bool {
        match self {
            DeviceType::Discrete
            | DeviceType::Integrated
            | DeviceType::Virtual
            | DeviceType::Other => true,
            DeviceType::Software | DeviceType::Host => false,
        }
    }
}

/// Where a card sits, to recognise it under two drivers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PciAddress {
    #[allow(missing_docs)]
    pub domain: u32,
    #[allow(missing_docs)]
    pub bus: u32,
    #[allow(missing_docs)]
    pub device: u32,
    #[allow(missing_docs)]
    pub function: u32,
}

/// What a launch or a buffer may not exceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceLimits {
    /// Invocations of a workgroup in each dimension.
    pub workgroup_size: [u32; 3],
    /// Invocations of a workgroup in all dimensions together.
    pub workgroup_invocations: u32,
    /// Workgroups of a launch in each dimension.
    pub workgroup_count: [u32; 3],
    /// Shared memory of a workgroup in bytes.
    pub shared_bytes: u32,
    /// Buffer parameters of a kernel.
    pub buffers: u32,
    /// Bytes of a buffer that a kernel can see.
    pub buffer_bytes: u64,
    /// Bytes of push constants; 0 where there are none.
    pub push_constant_bytes: u32,
    /// Bytes of a uniform block.
    pub uniform_bytes: u32,
}

/// What a device is and offers.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceProperties {
    /// The device's own name.
    pub name: String,
    /// The driver that opens it.
    pub driver: DriverKind,
    /// Name and version of the vendor's driver, for listings; may be empty.
    pub driver_info: String,
    /// What code for the device is made for: `sm_90`, `gfx90a`. Empty where code is portable.
    pub architecture: String,
    /// The kind of hardware.
    pub device_type: DeviceType,
    /// Identifies the hardware across drivers.
    pub uuid: Option<[u8; 16]>,
    /// Identifies the hardware across drivers.
    pub pci: Option<PciAddress>,
    /// What kernels may use.
    pub features: DeviceFeatures,
    /// What launches may not exceed.
    pub limits: DeviceLimits,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// Memory of the device in bytes.
    pub memory_total: u64,
}

impl DeviceProperties {
    /// Whether another driver describes the same hardware: by its UUID, else by where it sits, and by
    /// its name when WebGPU, which tells neither, is one of the two.
    pub(crate) fn is_same_hardware(&self, other: &DeviceProperties) -> bool {
        let is_webgpu = |p: &DeviceProperties| p.driver == DriverKind::WebGpu;
        if is_webgpu(self) || is_webgpu(other) {
            return self.name == other.name && self.device_type == other.device_type;
        }
        let same_uuid = self.uuid.is_some() && self.uuid == other.uuid;
        let same_pci = self.pci.is_some() && self.pci == other.pci;
        same_uuid || same_pci
    }

    /// `NAME (driver)`: how messages call the device.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.driver.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_found_by_name_and_by_back_end() {
        for backend in GpuBackend::ALL {
            let driver = DriverKind::of_backend(backend);
            assert_eq!(driver.backend(), Some(backend));
            assert_eq!(DriverKind::from_name(driver.name()), Some(driver));
            assert_eq!(DriverKind::from_name(backend.name()), Some(driver));
        }
        assert_eq!(DriverKind::from_name("mock"), Some(DriverKind::Mock));
        assert_eq!(DriverKind::from_name("opencl"), None);
    }
}
