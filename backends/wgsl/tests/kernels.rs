//! Kernels in text form: checked by naga and by tint, compared with the reference interpreter on a
//! WebGPU device, and their text with what the files expect.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_wgsl::{WgslEmitter, WgslTarget};
use magpie_kernel_tests::bytes;
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_mpir::FnId;
use support::{accepted_by_tint, checked, on_device, targets, targets_of, webgpu};

fn own_files() -> Vec<KernelFile> {
    read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels"))
}

/// The files of this crate, and those of the SPIR-V back end that use what WGSL has, as far as a
/// target can run them.
fn files_for(target: WgslTarget) -> Vec<KernelFile> {
    const OTHERS: [&str; 7] =
        ["fast", "grid", "loops", "private_array", "reduction", "structured", "zeros"];
    let mut files = own_files();
    let others = read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels"));
    let is_known =
        |f: &KernelFile| OTHERS.iter().any(|name| f.path.file_stem() == Some(name.as_ref()));
    files.extend(others.into_iter().filter(is_known));
    files.retain(|file| file.runs_on(&target.features.names()));
    files
}

#[test]
fn kernels_are_accepted() {
    for target in targets() {
        files_for(target).iter().for_each(|file| file.check(&checked(target)));
    }
    accepted_by_tint();
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let Some(gpu) = webgpu() else { return };
    for target in targets_of(&gpu) {
        files_for(target).iter().for_each(|file| file.check(&on_device(&gpu, target)));
    }
}

#[test]
fn texts_are_what_the_files_expect() {
    let [_, target] = targets();
    for file in own_files() {
        let blob = WgslEmitter { target }.emit(&file.module, FnId(0)).unwrap();
        file.check_text(std::str::from_utf8(bytes(&blob.code)).unwrap());
    }
}
