//! Kernels in text form, run by a headless Chromium: its own compiler for WGSL, its own WebGPU.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_wgsl::WgslEmitter;
use magpie_kernel_tests::files::{KernelFile, Launched, read_folder};
use magpie_kernel_tests::{bytes, narrow, widen};
use magpie_mpir::FnId;
use magpie_types::kernel::{DeviceFeatures, KernelBlob, KernelLayout, ScalarTransport};
use serde_json::{Value, json};
use support::chromium::browse;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = |n: usize| u8::from_str_radix(&text[n..n + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// The launch of a blob as the page does it.
fn kernel(blob: &KernelBlob, launched: &Launched) -> Value {
    let layout = &blob.layout;
    let mut bindings = Vec::new();
    for (b, content) in layout.buffers().zip(&launched.buffers) {
        let mut content = match b.host_stride == b.device_stride {
            true => content.clone(),
            false => widen(content, b.host_stride as usize),
        };
        // An empty buffer has memory for one element.
        content.resize(content.len().max(b.device_stride as usize), 0);
        let kind = if b.writes { "storage" } else { "read-only-storage" };
        bindings.push(json!({ "binding": b.binding, "type": kind, "content": hex(&content) }));
    }
    if let ScalarTransport::Uniform { binding } = layout.transport {
        let block = scalar_block(layout, launched);
        bindings.push(json!({ "binding": binding, "type": "uniform", "content": hex(&block) }));
    }
    let mut features = Vec::new();
    if layout.features.contains(DeviceFeatures::SUBGROUP) {
        features.push("subgroups");
    }
    if layout.features.contains(DeviceFeatures::FLOAT16) {
        features.push("shader-f16");
    }
    let code = std::str::from_utf8(bytes(&blob.code)).unwrap();
    let (entry, grid) = (&layout.entry, launched.size.grid);
    json!({ "code": code, "entry": entry, "grid": grid, "bindings": bindings, "features": features })
}

/// The scalars with the hidden lengths behind them.
fn scalar_block(layout: &KernelLayout, launched: &Launched) -> Vec<u8> {
    let mut block = launched.scalars.clone();
    block.resize(layout.block_size as usize, 0);
    for hidden in &layout.hidden {
        let (index, at) = (hidden.buffer as usize, hidden.offset as usize);
        let stride = layout.buffers().nth(index).unwrap().host_stride as usize;
        let length = (launched.buffers[index].len() / stride) as u32;
        block[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    block
}

#[test]
fn kernels_do_in_a_browser_what_the_interpreter_does() {
    let files: Vec<KernelFile> = read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels"));
    let mut blobs = Vec::new();
    for target in support::targets() {
        for file in files.iter().filter(|f| f.runs_on(&target.features.names())) {
            let blob = WgslEmitter { target }.emit(&file.module, FnId(0)).unwrap();
            blobs.push((file, file.arguments(&blob.layout), blob));
        }
    }
    let kernels: Vec<Value> = blobs.iter().map(|(_, l, blob)| kernel(blob, l)).collect();
    let Some(outcome) = browse(&Value::from(kernels)) else { return };
    assert!(outcome["error"].is_null(), "{}", outcome["error"]);
    let subgroup_size = outcome["subgroupSize"].as_u64().unwrap() as u32;
    let results = outcome["results"].as_array().unwrap();
    assert_eq!(results.len(), blobs.len());
    let mut ran = 0;
    for ((file, _, blob), result) in blobs.iter().zip(results) {
        if result["skipped"] == true {
            continue;
        }
        let what = format!("{} in a browser", file.path.display());
        assert!(result["error"].is_null(), "{what}: {}", result["error"]);
        let read = result["buffers"].as_array().unwrap().iter();
        let buffers: Vec<Vec<u8>> = read
            .zip(blob.layout.buffers())
            .zip(&file.arguments(&blob.layout).buffers)
            .map(|((text, b), before)| {
                let content = from_hex(text.as_str().unwrap());
                let mut content = match b.host_stride == b.device_stride {
                    true => content,
                    false => narrow(&content, b.host_stride as usize),
                };
                content.truncate(before.len());
                content
            })
            .collect();
        file.compare(&what, &blob.layout, subgroup_size, &buffers);
        ran += 1;
    }
    // Those of the target that every browser is.
    assert!(ran + 1 >= files.len(), "{ran} kernels ran");
}
