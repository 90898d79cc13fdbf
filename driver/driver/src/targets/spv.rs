//! Kernels as SPIR-V.

use super::bodies::{Bodies, bodies};
use crate::cache::{Cache, Key};
use crate::kernels::Kernels;
use magpie_diag::Diagnostic;
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_mpir::FnId;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelBlob};

/// The features of the devices that artifacts are made for.
pub(crate) const COMMON_FEATURES: DeviceFeatures = SpirvTarget::COMMON.features;

/// Compiles a kernel, or takes it from the cache.
pub(super) fn compile(
    kernels: &Kernels,
    id: FnId,
    features: DeviceFeatures,
    cache: &Cache,
) -> Result<KernelBlob, Vec<Diagnostic>> {
    let name = kernels.name(id);
    let key = Key::new(&kernels.canonical_text(id), GpuBackend::Spv, features);
    if let Some(blob) = cache.get(key, name) {
        return Ok(blob);
    }
    let target = SpirvTarget { features, ..SpirvTarget::COMMON };
    let emitter = SpirvEmitter { target, sources: Some(&kernels.sources) };
    let blob = kernels.with_optimized(id, |module, pipeline| {
        let Bodies { robust, unchecked } = bodies(module, module.func(id), pipeline);
        emitter.emit_bodies(&robust, unchecked.as_ref(), &module.types)
    })?;
    cache.put(key, name, &blob);
    Ok(blob)
}
