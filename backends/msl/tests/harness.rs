//! What the tests' `metal_stdlib` and compiler flags find: sources that Metal would refuse, or whose
//! meaning is undefined, fail.

mod support;

use magpie_types::fixed;
use magpie_types::kernel::{
    BlobCode, BufferParam, DeviceFeatures, GpuBackend, KernelBlob, KernelLayout, ParamLayout,
    ScalarTransport,
};
use std::panic::catch_unwind;
use support::run_source;

/// A kernel over one buffer of words, in 64 invocations; its result, or what was wrong with it.
/// `None` without a compiler.
fn run(body: &str) -> Option<Result<Vec<u32>, String>> {
    let source = format!(
        "#include <metal_stdlib>
using namespace metal;
kernel void k(
    device uint* x [[buffer(0)]],
    uint3 tid [[thread_position_in_threadgroup]])
{{
{body}
}}
"
    );
    let buffer = BufferParam {
        index: 0,
        binding: 0,
        elem: fixed::U32,
        host_stride: 4,
        device_stride: 4,
        writes: true,
    };
    let layout = KernelLayout {
        entry: "k".to_string(),
        params: vec![ParamLayout::Buffer(buffer)],
        scalar_size: 0,
        hidden: Vec::new(),
        block_size: 0,
        transport: ScalarTransport::None,
        workgroup: [64, 1, 1],
        fixed_workgroup: false,
        shared_bytes: 0,
        features: DeviceFeatures::default(),
        preconditions: Vec::new(),
        prints: Vec::new(),
    };
    let code = BlobCode::Bytes(source.into_bytes());
    let blob = KernelBlob { backend: GpuBackend::Msl, layout, code, unchecked: None };
    let outcome = catch_unwind(|| {
        let mut buffers = vec![(0..64u32).flat_map(u32::to_le_bytes).collect()];
        run_source(&blob, &mut buffers, [64, 1, 1]).then(|| {
            let words = buffers[0].as_chunks::<4>().0.iter();
            words.map(|&w| u32::from_le_bytes(w)).collect()
        })
    });
    match outcome {
        Ok(result) => result.map(Ok),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            Some(Err(message.unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string())))
        }
    }
}

fn check(body: &str, wrong: &str) {
    let Some(outcome) = run(body) else { return };
    let message = outcome.expect_err(body);
    assert!(message.contains(wrong), "{message}");
}

#[test]
fn a_source_that_is_right_runs() {
    let Some(outcome) = run("    threadgroup uint s[64];
    s[tid.x] = x[tid.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[tid.x] = s[63u - tid.x] + simd_sum(1u);") else {
        return;
    };
    let expected: Vec<u32> = (0..64).rev().map(|n| n + 32).collect();
    assert_eq!(outcome, Ok(expected));
}

#[test]
fn undefined_arithmetic_is_reported() {
    let undefined = "arithmetic that C++ leaves undefined";
    check("    x[0] = uint(int(x[63]) + 2147483647);", undefined);
    check("    x[0] = 1u << (x[63] + 1u);", undefined);
    check("    x[0] = uint(float(x[63]) * 1e10f);", undefined);
}

#[test]
fn a_barrier_that_some_do_not_reach_is_reported() {
    let body = "    if (tid.x < 5u) { threadgroup_barrier(mem_flags::mem_device); }";
    check(body, "a barrier that not all invocations reach");
}

#[test]
fn pointers_and_names_that_metal_does_not_have_do_not_compile() {
    for (body, wrong) in [
        (
            "    threadgroup uint s[64];\n    device uint* p = s;\n    x[0] = p[0];",
            "cannot initialize a variable of type 'device uint *'",
        ),
        ("    atomic_fetch_add_explicit(&x[0], 1u, memory_order_relaxed);", "is not a structure"),
        ("    x[0] = uint(simd_sum(1ul));", "no matching function"),
        ("    x[0] = as_type<uint>(1ul);", "different sizes"),
    ] {
        check(body, wrong);
    }
}
