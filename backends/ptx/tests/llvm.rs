//! PTX by LLVM: assembled for architectures whose code differs, and compared with the reference
//! interpreter on a CUDA device when there is one.

mod support;

use magpie_codegen_llvm::tool::{Environment, Llvm, Target, ToolPaths};
use magpie_diag::{Code, Diagnostic, FileId, SourceMap, Span};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_ptx::{Codegen, PtxEmitter, PtxTarget};
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_kernel_tests::ops::{check_all, within_ulps};
use magpie_kernel_tests::{bytes, graphs, random};
use magpie_mpir::testing::{GraphShape, KernelConfig, has_exact_result};
use magpie_mpir::{FnId, parse_with_own_places};
use support::{assemble, assembler, by_llvm, cuda, llvm, target, targets_of};

const ARCHITECTURES: [u32; 3] = [70, 80, 90];

/// The files of the SPIR-V back end, which say what any target must do.
fn files() -> Vec<KernelFile> {
    read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels"))
}

fn subgroups() -> KernelConfig {
    KernelConfig { subgroups: true, ..KernelConfig::portable() }
}

fn each_architecture(check: impl Fn(&Llvm, u32)) {
    let Some(llvm) = llvm() else { return };
    ARCHITECTURES.iter().for_each(|&sm| check(&llvm, sm));
}

#[test]
fn kernels_are_assembled() {
    each_architecture(|llvm, sm| {
        let validate = assembler(sm);
        files().iter().for_each(|file| file.check(&by_llvm(llvm, sm, &validate, None)));
    });
}

#[test]
fn every_op_is_assembled() {
    each_architecture(|llvm, sm| {
        let validate = assembler(sm);
        check_all(&by_llvm(llvm, sm, &validate, None), |_, _, _| true);
    });
}

#[test]
fn random_kernels_are_assembled() {
    each_architecture(|llvm, sm| {
        let validate = assembler(sm);
        let subject = by_llvm(llvm, sm, &validate, None);
        let first = 10 * u64::from(sm);
        (first..first + 5).for_each(|seed| random::check(&subject, seed, &KernelConfig::all()));
        (first..first + 3).for_each(|seed| random::check(&subject, seed, &subgroups()));
        for (seed, nodes) in (first..first + 4).zip([4, 8, 16, 24]) {
            graphs::check(&subject, seed, GraphShape::Reducible, nodes);
            graphs::check(&subject, seed, GraphShape::Any, nodes);
        }
    });
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let (Some(gpu), Some(llvm)) = (cuda(), llvm()) else { return };
    for sm in targets_of(&gpu) {
        let subject = by_llvm(&llvm, sm, &|_, _| (), Some(&gpu));
        files().iter().for_each(|file| file.check(&subject));
        check_all(&subject, |case, operands, got| within_ulps(case, operands, got, 4.0));
        let exact = KernelConfig { ops: has_exact_result, ..KernelConfig::all() };
        (0..100).for_each(|seed| random::check(&subject, seed, &exact));
        (0..100).for_each(|seed| random::check(&subject, seed, &subgroups()));
        let nodes = |seed: u64| 4 + seed as usize % 24;
        (0..60).for_each(|seed| graphs::check(&subject, seed, GraphShape::Any, nodes(seed)));
    }
}

/// Architectures that came with newer versions of LLVM and of PTX; an older LLVM is asked for less.
#[test]
fn newer_architectures_are_assembled() {
    let Some(llvm) = llvm() else { return };
    for sm in [100, 103, 120, 121] {
        let validate = assembler(sm);
        files().iter().take(4).for_each(|file| {
            file.check(&by_llvm(&llvm, sm, &validate, None));
        });
    }
}

/// Arrays that are too large for static memory lie in one that the launch makes.
#[test]
fn large_shared_arrays_are_dynamic() {
    let Some(llvm) = llvm() else { return };
    let text = "gpu fn m.@k(%out: gpu.TBuffer<f32>) -> unit workgroup(64, 1, 1) {
entry:
  %i: u32 = gpu.thread_id dim=0
  %a: shared_array<9000, f32> = gpu.shared
  %b: shared_array<4000, f64> = gpu.shared
  gpu.buffer_store %a, %i, f32 0x3f800000
  gpu.buffer_store %b, %i, f64 0x3ff0000000000000
  gpu.barrier
  %j: u32 = i.xor %i, u32 1
  %x: f32 = gpu.buffer_load %a, %j
  %y: f64 = gpu.buffer_load %b, %j
  %z: f32 = cast %y
  %sum: f32 = f.add %x, %z
  gpu.buffer_store %out, %i, %sum
  ret
}
";
    let target = PtxTarget { shared_limit: 100 << 10, codegen: Codegen::Llvm, ..target(90) };
    let emitter = PtxEmitter { target, sources: None, llvm: Some(&llvm) };
    let blob = emitter.emit(&parse_with_own_places(text, FileId(0)).unwrap(), FnId(0)).unwrap();
    assert_eq!(blob.layout.shared_bytes, 36000 + 32000);
    let ptx = String::from_utf8(bytes(&blob.code).to_vec()).unwrap();
    assert!(ptx.contains(".extern .shared") && ptx.contains("36000"), "{ptx}");
    assembler(90)("a large shared array", ptx.as_bytes());
}

/// LLVM has one instruction for them that orders zeros; older ones need a few.
#[test]
fn extrema_are_one_instruction() {
    let Some(llvm) = llvm().filter(|llvm| llvm.version().major >= 22) else { return };
    let text = "gpu fn m.@k(%x: gpu.TBuffer<f32>) -> unit {
entry:
  %a: f32 = gpu.buffer_load [unchecked] %x, u32 0
  %b: f32 = gpu.buffer_load [unchecked] %x, u32 1
  %c: f32 = f.max %a, %b
  %d: f32 = f.min %c, %a
  gpu.buffer_store [unchecked] %x, u32 1, %d
  ret
}
";
    let target = PtxTarget { codegen: Codegen::Llvm, ..target(70) };
    let emitter = PtxEmitter { target, sources: None, llvm: Some(&llvm) };
    let blob = emitter.emit(&parse_with_own_places(text, FileId(0)).unwrap(), FnId(0)).unwrap();
    let ptx = String::from_utf8(bytes(&blob.code).to_vec()).unwrap();
    assert!(ptx.contains("max.f32") && ptx.contains("min.f32") && !ptx.contains("selp"), "{ptx}");
}

/// In the kernel's file and in another one, as the direct writer has them.
#[test]
fn locations_are_those_of_the_source() {
    let Some(llvm) = llvm() else { return };
    let text = "gpu fn m.@k(%x: gpu.TBuffer<f32>) -> unit {
entry:
  %v: f32 = gpu.buffer_load [unchecked] %x, u32 0
  %s: f32 = f.add %v, %v
  gpu.buffer_store [unchecked] %x, u32 1, %s
  ret
}
";
    let mut sources = SourceMap::default();
    let file = sources.add("a \"b\"/é.mpir", text.to_string());
    let other = sources.add("other.mi", "\n\nhere".to_string());
    let mut module = parse_with_own_places(text, file).unwrap();
    let f = &mut module.fns[0];
    let add = f.blocks[0].insts[1];
    f.inst_mut(add).span = Span { file: other, start: 2, end: 6 };
    let target = PtxTarget { codegen: Codegen::Llvm, ..target(70) };
    let emit = |sources| {
        let emitter = PtxEmitter { target, sources, llvm: Some(&llvm) };
        let blob = emitter.emit(&module, FnId(0)).unwrap();
        String::from_utf8(bytes(&blob.code).to_vec()).unwrap()
    };
    let ptx = emit(Some(&sources));
    assert!(ptx.contains("a _b_/\\303\\251.mpir\"") && ptx.contains("other.mi\""), "{ptx}");
    let (at, add) = (ptx.find("\t.loc\t2 3 1").unwrap(), ptx.find("add.rn.f32").unwrap());
    assert!(at < add && ptx[at..add].matches(".loc").count() == 1, "{ptx}");
    assert!(ptx.contains("\t.loc\t1 3 "), "{ptx}");
    assemble("locations", &ptx, 70);
    assert!(!emit(None).contains(".loc"));
}

const EMPTY: &str = "gpu fn m.@k() -> unit workgroup(64, 1, 1) {
entry:
  ret
}
";

fn refused(codegen: Codegen, llvm: Option<&Llvm>) -> Diagnostic {
    let target = PtxTarget { codegen, ..PtxTarget::DEFAULT };
    let emitter = PtxEmitter { target, sources: None, llvm };
    let module = parse_with_own_places(EMPTY, FileId(0)).unwrap();
    let found = emitter.emit(&module, FnId(0)).unwrap_err();
    let [d] = <[Diagnostic; 1]>::try_from(found).unwrap();
    d
}

#[test]
fn llvm_only_without_an_llvm_says_how_to_install_it() {
    let d = refused(Codegen::Llvm, None);
    assert_eq!(d.code, Code::MPG_CORE_1301);
    assert!(d.help.as_ref().is_some_and(|h| h.contains("install")), "{d:?}");
}

#[cfg(unix)]
#[test]
fn an_llvm_that_fails_is_told_with_what_it_said() {
    use magpie_kernel_tests::write_script;
    let folder = tempfile::tempdir().unwrap();
    let refused_by = |work: &str| {
        let path = folder.path().join("llc");
        let about = "if [ \"$1\" = --version ]; then printf 'LLVM version 19.1.7\\n nvptx64 - x\\n'; \
                     exit 0; fi";
        write_script(&path, &format!("{about}\n{work}"));
        let tools = ToolPaths { llc: Some(path), lld: None };
        let llvm = Llvm::find(Target::Nvptx, &tools, &Environment::default()).unwrap();
        refused(Codegen::Auto, Some(&llvm))
    };
    let d = refused_by("echo 'Cannot select' >&2; exit 1");
    assert_eq!(d.code, Code::MPG_PTX_2002);
    assert!(d.notes[0].contains("Cannot select"), "{d:?}");
    assert!(d.help.as_ref().is_some_and(|h| h.contains("direct")), "{d:?}");
    let d = refused_by("cat >/dev/null; echo Hello");
    assert!(d.message.contains("no PTX with an entry `k`"), "{d:?}");
}
