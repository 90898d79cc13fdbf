//! Kernel → blob, one file a back end of this build.

mod bodies;
mod cpu;
mod interp;
mod spv;

use crate::cache::Cache;
use crate::kernels::Kernels;
use magpie_diag::Diagnostic;
use magpie_mpir::FnId;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelBlob};

pub(crate) use interp::Interpreter;
pub(crate) use spv::COMMON_FEATURES;

/// The back ends that this build can compile kernels for.
pub(crate) const BACKENDS: [GpuBackend; 3] = [GpuBackend::Spv, GpuBackend::Cpu, GpuBackend::Interp];

/// Compiles a kernel for a back end and a device with these features. `None` when this build has no
/// such back end.
///
/// # Errors
/// Why the target cannot run the kernel.
pub(crate) fn compile(
    kernels: &Kernels,
    id: FnId,
    backend: GpuBackend,
    features: DeviceFeatures,
    cache: &Cache,
) -> Result<Option<KernelBlob>, Vec<Diagnostic>> {
    match backend {
        GpuBackend::Cpu => cpu::compile(kernels, id).map(Some),
        GpuBackend::Interp => Ok(Some(interp::compile(kernels, id))),
        GpuBackend::Spv => spv::compile(kernels, id, features, cache).map(Some),
        GpuBackend::Msl | GpuBackend::Ptx | GpuBackend::Hip | GpuBackend::Wgsl => Ok(None),
    }
}
