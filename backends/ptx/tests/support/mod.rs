//! What the tests share: NVIDIA's assembler, and a CUDA device when there is one.

// Each test file uses a part of it.
#![allow(dead_code)]

use magpie_codegen_llvm::tool::{Environment, Llvm, Target, ToolPaths};
use magpie_gpu_ptx::{Codegen, PtxEmitter, PtxTarget};
use magpie_kernel_tests::{Gpu, Subject, skip};
use magpie_rt::gpu::DriverKind;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The assembler: of the workspace's tools, of `MAGPIE_PTXAS`, or of the path.
fn ptxas() -> OsString {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/cuda/bin/ptxas");
    if tools.exists() {
        return tools.into();
    }
    std::env::var_os("MAGPIE_PTXAS").unwrap_or_else(|| "ptxas".into())
}

/// Panics with the assembler's message when it refuses a module.
pub(crate) fn assemble(what: &str, text: &str, architecture: u32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.ptx");
    std::fs::write(&path, text).unwrap();
    let output = Command::new(ptxas())
        .arg(format!("-arch=sm_{architecture}"))
        // What is tested is the text; optimising it takes most of the time.
        .arg("-O0")
        .arg("-o")
        .arg(folder.path().join("kernel.cubin"))
        .arg(&path)
        .output();
    let Ok(output) = output else { return skip("ptxas") };
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {message}\n{text}");
}

/// The target of an architecture.
pub(crate) fn target(sm: u32) -> PtxTarget {
    PtxTarget { sm, ..PtxTarget::DEFAULT }
}

/// The direct writer for an architecture, checked by the assembler, without a device.
pub(crate) fn assembled<'a>(
    sm: u32,
    validate: &'a dyn Fn(&str, &[u8]),
) -> Subject<'a, PtxEmitter<'a>> {
    let compiler = PtxEmitter { target: target(sm), sources: None, llvm: None };
    Subject { name: format!("sm_{sm}"), compiler, validate, gpu: None }
}

/// The assembler's opinion of a module for an architecture.
pub(crate) fn assembler(sm: u32) -> impl Fn(&str, &[u8]) {
    move |what, code| assemble(what, std::str::from_utf8(code).unwrap(), sm)
}

/// A CUDA device. Where there is none, its tests say so, also in CI: there it is no missing tool.
pub(crate) fn cuda() -> Option<Gpu> {
    let gpu = Gpu::find(DriverKind::Cuda);
    if gpu.is_none() {
        println!("skipped: needs a CUDA device");
    }
    gpu
}

/// The compute capability of the device.
pub(crate) fn capability(gpu: &Gpu) -> u32 {
    let architecture = &gpu.properties().architecture;
    architecture.strip_prefix("sm_").and_then(|n| n.parse().ok()).unwrap()
}

/// Architectures whose code differs, that a device can run.
pub(crate) fn targets_of(gpu: &Gpu) -> impl Iterator<Item = u32> {
    let newest = capability(gpu);
    [70, 80, 90].into_iter().filter(move |&sm| sm <= newest)
}

/// The direct writer for an architecture on a device, which assembles what it gets itself.
pub(crate) fn on_device(gpu: &Gpu, sm: u32) -> Subject<'_, PtxEmitter<'_>> {
    let compiler = PtxEmitter { target: target(sm), sources: None, llvm: None };
    Subject { name: format!("sm_{sm}"), compiler, validate: &|_, _| (), gpu: Some(gpu) }
}

/// An LLVM with the NVPTX target.
pub(crate) fn llvm() -> Option<Llvm> {
    let llvm = Llvm::find(Target::Nvptx, &ToolPaths::default(), &Environment::of_process());
    if llvm.is_err() {
        skip("LLVM with NVPTX");
    }
    llvm.ok()
}

/// The PTX of an LLVM for an architecture, checked by the assembler, and run where there is a device.
pub(crate) fn by_llvm<'a>(
    llvm: &'a Llvm,
    sm: u32,
    validate: &'a dyn Fn(&str, &[u8]),
    gpu: Option<&'a Gpu>,
) -> Subject<'a, PtxEmitter<'a>> {
    let target = PtxTarget { codegen: Codegen::Llvm, ..target(sm) };
    let compiler = PtxEmitter { target, sources: None, llvm: Some(llvm) };
    Subject { name: format!("sm_{sm} by LLVM {}", llvm.version()), compiler, validate, gpu }
}
