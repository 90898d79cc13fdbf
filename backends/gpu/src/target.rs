//! [`TargetLimits`]: the sizes that a kernel of a target must keep to, whatever the device.

use magpie_types::kernel::GpuBackend;

/// Limits that are checked when a kernel is compiled (GPU specification, sections 2.5, 5.3, 5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetLimits {
    /// Invocations of a workgroup in each dimension.
    pub workgroup_dims: [u32; 3],
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Buffers of a kernel.
    pub buffers: u32,
}

impl TargetLimits {
    /// The limits of a target.
    pub fn of(target: GpuBackend) -> TargetLimits {
        let (workgroup_dims, workgroup_size, shared_bytes, buffers) = match target {
            GpuBackend::Spv => ([1024; 3], 1024, 48 << 10, u32::MAX),
            GpuBackend::Msl => ([1024; 3], 1024, 32 << 10, u32::MAX),
            GpuBackend::Ptx => ([1024; 3], 1024, 48 << 10, u32::MAX),
            GpuBackend::Hip => ([1024; 3], 1024, 64 << 10, u32::MAX),
            GpuBackend::Wgsl => ([256, 256, 64], 256, 16 << 10, 8),
            GpuBackend::Cpu | GpuBackend::Interp => ([1024; 3], 1024, u32::MAX, u32::MAX),
        };
        TargetLimits { workgroup_dims, workgroup_size, shared_bytes, buffers }
    }
}
