//! The driver on a real WebGPU library. Without one the tests say `skipped: needs wgpu-native`, and
//! fail where `CI` is set.

mod driver;
mod library;

use super::WebGpuDriver;
use crate::gpu::discovery::Driver;
use crate::gpu::runtime::Runtime;
use crate::gpu::tests::conformance::Subject;
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, SPIN, layout, only, signature};
use crate::gpu::{DriverKind, GpuError};
use magpie_types::kernel::{BlobCode, DeviceFeatures, GpuBackend, KernelBlob};
use std::sync::OnceLock;

/// The WGSL blob of a kernel of these tests.
fn wgsl_blob(kernel: u64) -> KernelBlob {
    let (_, params) = signature(kernel);
    let layout = layout("main", params, GpuBackend::Wgsl);
    let (bindings, body) = match kernel {
        SCALE => (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
             struct Scalars { factor: u32, @size(12) a: u32, len: u32 }
             @group(0) @binding(1) var<uniform> scalars: Scalars;",
            "if (i < scalars.len) { data[i] = data[i] * scalars.factor + 1u; }",
        ),
        NEXT => (
            "@group(0) @binding(0) var<storage, read> src: array<u32>;
             @group(0) @binding(1) var<storage, read_write> dst: array<u32>;
             struct Scalars { src_len: u32, dst_len: u32 }
             @group(0) @binding(2) var<uniform> scalars: Scalars;",
            "if (i < scalars.src_len && i < scalars.dst_len) { dst[i] = src[i] + 1u; }",
        ),
        EMPTY => ("", "_ = i;"),
        _ => (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
             struct Scalars { rounds: u32, @size(12) a: u32, len: u32 }
             @group(0) @binding(1) var<uniform> scalars: Scalars;",
            "if (i < scalars.len) {
                 for (var round = 0u; round < scalars.rounds; round++) { data[i] += round; }
             }",
        ),
    };
    let text = format!(
        "{bindings}
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             let i = id.x;
             {body}
         }}"
    );
    let code = BlobCode::Bytes(text.into_bytes());
    KernelBlob { backend: GpuBackend::Wgsl, layout, code, unchecked: None }
}

/// A device with all kernels; `None` when there is none.
fn subject() -> Option<Subject> {
    static MISSING: OnceLock<Option<GpuError>> = OnceLock::new();
    let none = DeviceFeatures::default();
    let missing = MISSING.get_or_init(|| WebGpuDriver::of_process(none).adapters().err());
    if let Some(reason) = missing {
        assert!(std::env::var_os("CI").is_none(), "needs wgpu-native: {reason}");
        println!("skipped: needs wgpu-native ({reason})");
        return None;
    }
    let driver: Box<dyn Driver> = Box::new(WebGpuDriver::of_process(none));
    let runtime = Runtime::with_drivers(only(DriverKind::WebGpu), vec![driver]);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        runtime.register_kernel(kernel, signature(kernel).0, vec![wgsl_blob(kernel)], None);
    }
    Some(Subject::new(runtime))
}
