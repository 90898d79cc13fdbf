//! Kernels as SPIR-V.

use crate::cache::{Cache, Key};
use crate::kernels::Kernels;
use magpie_diag::Diagnostic;
use magpie_gpu::layout::{LayoutRules, ScalarRule, compute_layout};
use magpie_gpu_spirv::emit_words;
use magpie_mpir::passes::IndexWidth;
use magpie_mpir::{FnId, print_fn};
use magpie_types::kernel::{BlobCode, DeviceFeatures, GpuBackend, KernelBlob};

/// The features of the device that artifacts are made for, when no device is known: what Vulkan 1.3
/// drivers of graphics cards have in common.
pub(crate) const ASSUMED_FEATURES: DeviceFeatures = DeviceFeatures(u32::MAX);

/// Push constants that every Vulkan device has, in bytes.
const PUSH_CONSTANTS: u32 = 128;

/// Compiles a kernel, or takes it from the cache.
pub(super) fn compile(
    kernels: &Kernels,
    id: FnId,
    features: DeviceFeatures,
    cache: &Cache,
) -> Result<KernelBlob, Vec<Diagnostic>> {
    let name = kernels.name(id);
    let key = Key::new(&print_fn(&kernels.module, kernels.func(id)), GpuBackend::Spv, features);
    if let Some(blob) = cache.get(key, name) {
        return Ok(blob);
    }
    let blob = emit(kernels, id, features)?;
    cache.put(key, name, &blob);
    Ok(blob)
}

fn emit(
    kernels: &Kernels,
    id: FnId,
    features: DeviceFeatures,
) -> Result<KernelBlob, Vec<Diagnostic>> {
    let types = &kernels.module.types;
    let rules = LayoutRules {
        scalars: ScalarRule::PushConstants { limit: PUSH_CONSTANTS },
        storage8: features.contains(DeviceFeatures::STORAGE8),
        storage16: features.contains(DeviceFeatures::STORAGE16),
        hidden_length: 4,
        fixed_workgroup: false,
    };
    let mut layout = compute_layout(kernels.func(id), types, &rules);
    let words = kernels.with_optimized(id, |module, kernel, pipeline| {
        let mut body = kernel.clone();
        pipeline.lower_bounds_checks(module, &mut body, IndexWidth::Bits32);
        emit_words(&body, types, &layout, features, Some(&kernels.sources))
    });
    let (words, needed) = words.map_err(|error| vec![*error])?;
    layout.features = needed;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let code = BlobCode::Bytes(bytes);
    Ok(KernelBlob { backend: GpuBackend::Spv, layout, code, unchecked: None })
}
