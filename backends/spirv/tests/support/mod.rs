//! What the tests share: the validator, the assembler, and a Vulkan device.

// Each test file uses a part of it.
#![allow(dead_code)]

use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_kernel_tests::{Gpu, Subject, run_tool};
use magpie_rt::gpu::DriverKind;
use magpie_types::kernel::DeviceFeatures;

/// The words of a module.
pub(crate) fn words(module: &[u8]) -> Vec<u32> {
    module.as_chunks::<4>().0.iter().map(|&w| u32::from_le_bytes(w)).collect()
}

/// Panics with the validator's message when it refuses a module.
pub(crate) fn validate(what: &str, module: &[u8]) {
    let arguments = ["--target-env", "vulkan1.3", "-"];
    if let Some(Err(message)) = run_tool("spirv-val", &arguments, module) {
        panic!("{what}: {message}");
    }
}

/// The module of an assembly text; `None` when there is no assembler.
pub(crate) fn assemble(text: &str) -> Option<Vec<u8>> {
    let arguments = ["--target-env", "vulkan1.3", "--preserve-numeric-ids", "-o", "-", "-"];
    match run_tool("spirv-as", &arguments, text.as_bytes())? {
        Ok(module) => Some(module),
        Err(message) => panic!("{message}\n{text}"),
    }
}

/// The first Vulkan device, if there is one.
pub(crate) fn vulkan() -> Option<Gpu> {
    Gpu::open(DriverKind::Vulkan)
}

/// A device as a compilation target.
pub(crate) fn target_of(gpu: &Gpu) -> SpirvTarget {
    let properties = gpu.properties();
    SpirvTarget {
        features: properties.features,
        push_constant_bytes: properties.limits.push_constant_bytes,
    }
}

/// The target without some features.
pub(crate) fn without(target: SpirvTarget, features: DeviceFeatures) -> SpirvTarget {
    SpirvTarget { features: target.features.minus(features), ..target }
}

/// Arithmetic in 8 and 16 bits.
pub(crate) const SMALL: DeviceFeatures =
    DeviceFeatures(DeviceFeatures::INT8.0 | DeviceFeatures::INT16.0 | DeviceFeatures::FLOAT16.0);

/// A target on a device.
pub(crate) fn on_device(gpu: &Gpu, target: SpirvTarget) -> Subject<'_, SpirvEmitter<'_>> {
    let compiler = SpirvEmitter { target, sources: None };
    let name = format!("a device with {:?}", target.features.names());
    Subject { name, compiler, validate: &validate, gpu: Some(gpu) }
}
