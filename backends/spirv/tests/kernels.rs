//! Kernels in text form, validated, run on the device and compared with the reference interpreter;
//! their disassembly compared with what the files expect, and assembled again.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget, disassemble};
use magpie_kernel_tests::bytes;
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_mpir::FnId;
use magpie_types::kernel::DeviceFeatures;
use support::{SMALL, assemble, on_device, target_of, vulkan, without, words};

fn files() -> Vec<KernelFile> {
    read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels"))
}

/// The disassembly of a file's kernel for devices of every kind.
fn text_of(file: &KernelFile) -> String {
    let emitter = SpirvEmitter { target: SpirvTarget::COMMON, sources: None };
    let blob = emitter.emit(&file.module, FnId(0)).unwrap();
    disassemble(&words(bytes(&blob.code))).unwrap()
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let Some(gpu) = vulkan() else { return };
    let all = target_of(&gpu);
    let targets = [
        all,
        without(all, DeviceFeatures::ATOMIC_FLOAT32_ADD | DeviceFeatures::ATOMIC_FLOAT32_MINMAX),
        without(all, SMALL),
        without(all, DeviceFeatures::STORAGE8 | DeviceFeatures::STORAGE16),
        SpirvTarget { push_constant_bytes: 0, ..all },
    ];
    for target in targets {
        let subject = on_device(&gpu, target);
        let files = files();
        let runs = files.iter().filter(|file| file.runs_on(&target.features.names()));
        runs.for_each(|file| file.check(&subject));
    }
}

#[test]
fn modules_say_what_the_files_expect() {
    for file in files() {
        file.check_text(&text_of(&file));
    }
}

#[test]
fn text_can_be_assembled_again() {
    for file in files() {
        let text = text_of(&file);
        let Some(assembled) = assemble(&text) else { return };
        // Ids that have a name get other numbers, so the texts are compared.
        let again = disassemble(&words(&assembled)).unwrap();
        let body = |text: &str| text.split_once('\n').unwrap().1.to_string();
        assert_eq!(body(&again), body(&text), "{}", file.path.display());
    }
}
