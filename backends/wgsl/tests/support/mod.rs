//! What the tests share: naga, Chrome's checker in a browser, and a WebGPU device.

// Each test file uses a part of it.
#![allow(dead_code)]

pub(crate) mod chromium;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_wgsl::{WgslEmitter, WgslTarget};
use magpie_kernel_tests::{Gpu, Subject};
use magpie_rt::gpu::{DriverKind, LaunchSize};
use magpie_types::kernel::DeviceFeatures;
use std::sync::Mutex;

/// The dialect of naga and wgpu-native: without the lines that only Chrome knows.
fn native_dialect(text: &str) -> String {
    let lines = text.lines().filter(|l| !l.contains("enable subgroups;"));
    lines.filter(|l| !l.starts_with("diagnostic(")).map(|l| format!("{l}\n")).collect()
}

/// Panics with naga's message when it refuses a module.
fn validate_with_naga(what: &str, text: &str) {
    let text = native_dialect(text);
    let module = naga::front::wgsl::parse_str(&text)
        .unwrap_or_else(|e| panic!("{what}: {}\n{text}", e.emit_to_string(&text)));
    let capabilities = naga::valid::Capabilities::all();
    let mut validator =
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
    validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
    if let Err(e) = validator.validate(&module) {
        panic!("{what}: {}\n{text}", e.emit_to_string(&text));
    }
}

/// The modules that a test made, with what they are.
static MODULES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The opinion of naga; the module is kept for [`accepted_by_tint`].
pub(crate) fn validate(what: &str, code: &[u8]) {
    let text = std::str::from_utf8(code).unwrap();
    validate_with_naga(what, text);
    MODULES.lock().unwrap().push((what.to_string(), text.to_string()));
}

/// Chrome's opinion of the modules that were checked so far.
pub(crate) fn accepted_by_tint() {
    let modules = std::mem::take(&mut *MODULES.lock().unwrap());
    assert!(!modules.is_empty());
    chromium::accepts(&modules);
}

/// Targets that are compiled for differently.
pub(crate) fn targets() -> [WgslTarget; 2] {
    let all = DeviceFeatures::FLOAT16 | DeviceFeatures::SUBGROUP;
    [WgslTarget::COMMON, WgslTarget { features: all }]
}

/// A target, checked only.
pub(crate) fn checked(target: WgslTarget) -> Subject<'static, WgslEmitter> {
    let name = format!("{:?}", target.features.names());
    Subject { name, compiler: WgslEmitter { target }, validate: &validate, gpu: None }
}

/// A target on a device.
pub(crate) fn on_device(gpu: &Gpu, target: WgslTarget) -> Subject<'_, WgslEmitter> {
    Subject { gpu: Some(gpu), validate: &|_, _| (), ..checked(target) }
}

/// A WebGPU device.
pub(crate) fn webgpu() -> Option<Gpu> {
    let gpu = Gpu::open(DriverKind::WebGpu)?;
    if !gpu.properties().features.contains(DeviceFeatures::SUBGROUP) {
        return Some(gpu);
    }
    // Adapters tell the sizes of subgroups that they may have, not the one that they have.
    let text = "gpu fn m.@size(%out: gpu.TBuffer<u32>) -> unit workgroup(64, 1, 1) {
entry:
  %n: u32 = gpu.subgroup.size
  gpu.buffer_store %out, u32 0, %n
  ret
}
";
    let module = magpie_mpir::parse_with_own_places(text, magpie_diag::FileId(0)).unwrap();
    let emitter = WgslEmitter { target: WgslTarget::COMMON };
    let blob = emitter.emit(&module, magpie_mpir::FnId(0)).unwrap();
    let mut out = [vec![0; 4]];
    gpu.run(&blob, &mut out, &[], LaunchSize { grid: [1; 3], block: [64, 1, 1] });
    let size = u32::from_le_bytes(out[0][..].try_into().unwrap());
    Gpu::translated(DriverKind::WebGpu, size, Box::new(|blob| blob))
}

/// The targets that a device can run.
pub(crate) fn targets_of(gpu: &Gpu) -> impl Iterator<Item = WgslTarget> {
    let features = gpu.properties().features;
    targets().into_iter().filter(move |t| features.contains(t.features))
}
