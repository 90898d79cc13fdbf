//! The driver on a real device: built on macOS only, and only type-checked elsewhere.

use super::MetalDriver;
use crate::gpu::discovery::Driver;
use crate::gpu::runtime::Runtime;
use crate::gpu::tests::conformance::Subject;
use crate::gpu::tests::support::{
    EMPTY, NEXT, SCALE, SPIN, bytes, layout, line, only, signature, word, words,
};
use crate::gpu::{Buffer, Element, ErrorKind};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, DeviceFeatures, GpuBackend, HiddenLength, KernelBlob};

const U32: Element = Element { ty: fixed::U32, size: 4 };

/// A kernel of `support` in MSL.
fn msl(kernel: u64) -> String {
    let (name, _) = signature(kernel);
    let (parameters, body) = match kernel {
        SCALE => (
            "device uint* data [[buffer(0)]], constant uint& factor [[buffer(1)]],
             constant ulong* lengths [[buffer(2)]],",
            "if (i < lengths[0]) data[i] = data[i] * factor + 1u;",
        ),
        NEXT => (
            "MAY_ALIAS const device uint* in [[buffer(0)]], MAY_ALIAS device uint* out [[buffer(1)]],
             constant ulong* lengths [[buffer(2)]],",
            "if (i < lengths[0] && i < lengths[1]) out[i] = in[i] + 1u;",
        ),
        EMPTY => ("", ""),
        _ => (
            "device uint* data [[buffer(0)]], constant uint& rounds [[buffer(1)]],
             constant ulong* lengths [[buffer(2)]],",
            "volatile device uint* place = &data[i];
             if (i < lengths[0]) for (uint n = 0; n < rounds; n++) *place = *place + n;",
        ),
    };
    format!(
        "#include <metal_stdlib>
using namespace metal;
#ifndef MAY_ALIAS
#define MAY_ALIAS
#endif
kernel void {name}({parameters} uint3 gid [[thread_position_in_grid]]) {{
    uint i = gid.x;
    {body}
}}
"
    )
}

fn blob(kernel: u64) -> KernelBlob {
    let (name, params) = signature(kernel);
    let mut layout = layout(name, params, GpuBackend::Msl);
    let start = layout.scalar_size;
    let lengths = 0..layout.num_buffers() as u32;
    let hidden = |buffer| HiddenLength { buffer, offset: start + 8 * buffer, size: 8 };
    layout.hidden = lengths.map(hidden).collect();
    layout.block_size = (start + 8 * layout.hidden.len() as u32).next_multiple_of(16);
    if !layout.hidden.is_empty() {
        layout.transport = magpie_types::kernel::ScalarTransport::Arguments;
    }
    let code = BlobCode::Bytes(msl(kernel).into_bytes());
    KernelBlob { backend: GpuBackend::Msl, layout, code, unchecked: None }
}

/// A runtime over Metal's devices with all kernels; `None` where there is no device.
fn runtime() -> Option<Runtime> {
    let mut driver = MetalDriver::new(DeviceFeatures::default());
    if driver.adapters().is_err() {
        println!("skipped: needs a Metal device");
        return None;
    }
    let config = only(crate::gpu::DriverKind::Metal);
    let runtime = Runtime::with_drivers(config, vec![Box::new(driver)]);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        runtime.register_kernel(kernel, signature(kernel).0, vec![blob(kernel)], None);
    }
    Some(runtime)
}

#[test]
fn conformance() {
    let Some(runtime) = runtime() else { return };
    Subject::new(runtime).check_all();
}

#[test]
fn sources_that_do_not_compile_are_refused() {
    let Some(runtime) = runtime() else { return };
    let mut blob = blob(SCALE);
    blob.code = BlobCode::Bytes(b"kernel void scale(nonsense) {}".to_vec());
    runtime.register_kernel(77, "broken", vec![blob], None);
    let context = runtime.default_device().unwrap();
    let data = Buffer::from_bytes(&context, U32, &bytes(&[1, 2, 3]), 0).unwrap();
    let error = runtime.launch(&context, 77, line(1), &[&data], &word(1)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::CompilationFailed);
    assert!(error.message.contains("`broken`"), "{error}");
    runtime.launch(&context, SCALE, line(1), &[&data], &word(2)).unwrap();
    assert_eq!(words(&data.read_all().unwrap()), [3, 5, 7]);
}
