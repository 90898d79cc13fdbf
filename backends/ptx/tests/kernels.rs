//! Kernels in text form: assembled, compared with the reference interpreter on a CUDA device when
//! there is one, and their text with what the files expect.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_ptx::PtxEmitter;
use magpie_kernel_tests::bytes;
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_mpir::FnId;
use support::{assembled, assembler, cuda, on_device, target, targets_of};

fn own_files() -> Vec<KernelFile> {
    read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels"))
}

/// The files of this crate and those of the SPIR-V back end, which say what any target must do.
fn files() -> Vec<KernelFile> {
    let mut files = own_files();
    files.extend(read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels")));
    files
}

#[test]
fn kernels_are_assembled() {
    for sm in [70, 80, 90] {
        let validate = assembler(sm);
        files().iter().for_each(|file| file.check(&assembled(sm, &validate)));
    }
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let Some(gpu) = cuda() else { return };
    for sm in targets_of(&gpu) {
        files().iter().for_each(|file| file.check(&on_device(&gpu, sm)));
    }
}

#[test]
fn texts_are_what_the_files_expect() {
    for file in own_files() {
        let emitter = PtxEmitter { target: target(70), sources: None, llvm: None };
        let blob = emitter.emit(&file.module, FnId(0)).unwrap();
        file.check_text(std::str::from_utf8(bytes(&blob.code)).unwrap());
    }
}
