//! What the tests share: the validator, a Vulkan device, and launches on it.

// Each test file uses a part of it.
#![allow(dead_code)]

use magpie_gpu_spirv::SpirvTarget;
use magpie_rt::gpu::{
    Buffer, Context, DeviceChoice, DriverKind, Element, GpuConfig, LaunchSize, Runtime,
};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, KernelBlob, ParamLayout};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Says that a test cannot run; in CI that is a failure.
fn skip(what: &str) {
    println!("skipped: needs {what}");
    assert!(std::env::var_os("CI").is_none(), "{what} is missing");
}

/// The bytes of a blob's code.
pub(crate) fn bytes(code: &BlobCode) -> &[u8] {
    match code {
        BlobCode::Bytes(bytes) => bytes,
        BlobCode::Host(_) => panic!("a host kernel"),
    }
}

/// The words of a module.
pub(crate) fn words(module: &[u8]) -> Vec<u32> {
    module.as_chunks::<4>().0.iter().map(|&w| u32::from_le_bytes(w)).collect()
}

/// Runs a tool of SPIR-V on its standard input; gives its output, or its message when it refuses.
/// `None` when there is no such tool.
fn tool(name: &str, arguments: &[&str], input: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let spawned = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        skip(name);
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    // A tool that refuses its input early closes it.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    match output.status.success() {
        true => Some(Ok(output.stdout)),
        false => Some(Err(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// Panics with the validator's message when it refuses a module.
pub(crate) fn validate(what: &str, module: &[u8]) {
    if let Some(Err(message)) = tool("spirv-val", &["--target-env", "vulkan1.3", "-"], module) {
        panic!("{what}: {message}");
    }
}

/// The module of an assembly text; `None` when there is no assembler.
pub(crate) fn assemble(text: &str) -> Option<Vec<u8>> {
    let arguments = ["--target-env", "vulkan1.3", "--preserve-numeric-ids", "-o", "-", "-"];
    match tool("spirv-as", &arguments, text.as_bytes())? {
        Ok(module) => Some(module),
        Err(message) => panic!("{message}\n{text}"),
    }
}

/// A Vulkan device.
pub(crate) struct Gpu {
    runtime: Runtime,
    context: Arc<Context>,
}

impl Gpu {
    /// The first Vulkan device, if there is one.
    pub(crate) fn open() -> Option<Gpu> {
        let device = DeviceChoice::Driver(DriverKind::Vulkan);
        let runtime = Runtime::new(GpuConfig { device, ..GpuConfig::default() });
        match runtime.device(0) {
            Ok(context) => Some(Gpu { runtime, context }),
            Err(_) => {
                skip("a Vulkan device");
                None
            }
        }
    }

    /// The device as a compilation target.
    pub(crate) fn target(&self) -> SpirvTarget {
        let properties = self.context.properties();
        SpirvTarget {
            features: properties.features,
            push_constant_bytes: properties.limits.push_constant_bytes,
        }
    }

    /// Invocations of a subgroup.
    pub(crate) fn subgroup_size(&self) -> u32 {
        self.context.properties().subgroup_size
    }

    /// Runs a kernel on one buffer a parameter, given in host layout.
    pub(crate) fn run(
        &self,
        blob: &KernelBlob,
        buffers: &mut [Vec<u8>],
        scalars: &[u8],
        size: LaunchSize,
    ) {
        let named: Vec<usize> = (0..buffers.len()).collect();
        self.run_named(blob, buffers, &named, scalars, size);
    }

    /// Runs a kernel whose buffer parameters name buffers by number; several may name one.
    ///
    /// The blob may be for a device that lacks small elements: they are widened here then, since
    /// the device at hand has them.
    pub(crate) fn run_named(
        &self,
        blob: &KernelBlob,
        buffers: &mut [Vec<u8>],
        named: &[usize],
        scalars: &[u8],
        size: LaunchSize,
    ) {
        let mut blob = blob.clone();
        let mut uploaded: Vec<Option<(Buffer, Option<usize>)>> = vec![None; buffers.len()];
        let params = blob.layout.params.iter_mut().filter_map(|p| match p {
            ParamLayout::Buffer(b) => Some(b),
            ParamLayout::Scalar { .. } => None,
        });
        for (b, &n) in params.zip(named) {
            let small = (b.host_stride != b.device_stride).then_some(b.host_stride as usize);
            if small.is_some() {
                (b.elem, b.host_stride) = (fixed::U32, b.device_stride);
            }
            if uploaded[n].is_none() {
                let element = Element { ty: b.elem, size: b.host_stride };
                let bytes = small.map_or_else(|| buffers[n].clone(), |s| widen(&buffers[n], s));
                let buffer = Buffer::from_bytes(&self.context, element, &bytes, 0).unwrap();
                uploaded[n] = Some((buffer, small));
            }
        }
        self.runtime.register_kernel(1, "test", vec![blob], None);
        let arguments: Vec<&Buffer> =
            named.iter().map(|&n| &uploaded[n].as_ref().unwrap().0).collect();
        self.runtime.launch(&self.context, 1, size, &arguments, scalars).unwrap();
        for (uploaded, bytes) in uploaded.iter().zip(buffers) {
            if let Some((buffer, small)) = uploaded {
                let read = buffer.read_all().unwrap();
                *bytes = small.map_or(read.clone(), |s| narrow(&read, s));
            }
        }
    }
}

fn widen(bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(size).flat_map(|e| [e, &[0, 0, 0, 0][size..]].concat()).collect()
}

fn narrow(bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(4).flat_map(|word| &word[..size]).copied().collect()
}
