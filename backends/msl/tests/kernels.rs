//! Kernels in text form, on the CPU and compared with the reference interpreter; what their source
//! looks like.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_msl::{MslEmitter, MslTarget, MslVersion};
use magpie_kernel_tests::bytes;
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_mpir::FnId;
use support::on_cpu;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels");
const OF_SPIRV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels");

fn emit(file: &KernelFile) -> Option<String> {
    let emitter = MslEmitter { target: MslTarget::COMMON };
    let blob = emitter.emit(&file.module, FnId(0)).ok()?;
    Some(String::from_utf8(bytes(&blob.code).to_vec()).unwrap())
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let files = read_folder(FOLDER);
    for version in [MslVersion::V2_4, MslVersion::V3_1] {
        on_cpu(MslTarget { version }, false, |subject| files.iter().for_each(|f| f.check(subject)));
    }
}

#[test]
fn kernels_of_another_back_end_do_too() {
    let (known, refused): (Vec<_>, Vec<_>) =
        read_folder(OF_SPIRV).into_iter().partition(|file| emit(file).is_some());
    on_cpu(MslTarget::COMMON, false, |subject| known.iter().for_each(|f| f.check(subject)));
    // 64-bit atomics, a loop with two entries, and f64.
    let names: Vec<_> = refused.iter().filter_map(|f| f.path.file_stem()?.to_str()).collect();
    let expected =
        ["atomics", "irreducible", "outside", "small_scalars", "structs", "uniform_block"];
    assert!(names.iter().all(|n| expected.contains(n)), "{names:?}");
}

#[test]
fn sources_say_what_the_files_expect() {
    for file in read_folder(FOLDER) {
        file.check_text(&emit(&file).unwrap());
    }
}

#[test]
fn bf16_is_bfloat_where_the_language_has_it() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<bf16>) -> unit {
entry:
  %a: bf16 = gpu.buffer_load [unchecked] %x, u32 0
  %b: bf16 = f.mul %a, %a
  gpu.buffer_store [unchecked] %x, u32 0, %b
  ret
}
";
    let module = magpie_mpir::parse(text, magpie_diag::FileId(0)).unwrap();
    for (architecture, native) in [("msl2.4", false), ("msl3.1", true), ("", false)] {
        let target = MslTarget::for_architecture(architecture);
        let blob = MslEmitter { target }.emit(&module, FnId(0)).unwrap();
        let source = std::str::from_utf8(bytes(&blob.code)).unwrap();
        assert_eq!(source.contains("as_type<ushort>(bfloat("), native, "{source}");
        assert_eq!(source.contains("float(as_type<bfloat>("), native, "{source}");
    }
}

/// A whole source.
#[test]
fn the_source_of_a_reduction() {
    let file = read_folder(FOLDER).into_iter().find(|f| f.path.ends_with("reduction.mpir"));
    let source = emit(&file.unwrap()).unwrap();
    assert_eq!(source, include_str!("golden/reduction.metal"));
}
