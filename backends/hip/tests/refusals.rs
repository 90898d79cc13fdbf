//! What HIP refuses, at which place in the source, and with which way out. No LLVM is needed: those
//! that take part are scripts.

#![cfg(unix)]

use magpie_codegen_llvm::tool::{Environment, Linker, Llvm, Target, ToolPaths};
use magpie_diag::{Code, Diagnostic, FileId};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_hip::{HipEmitter, HipTarget};
use magpie_kernel_tests::write_script;
use magpie_mpir::{FnId, parse_with_own_places};
use std::path::PathBuf;

/// A toolchain of scripts.
struct Scripts {
    folder: tempfile::TempDir,
}

impl Scripts {
    fn new() -> Scripts {
        Scripts { folder: tempfile::tempdir().unwrap() }
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        write_script(&path, text);
        path
    }

    /// Compiles a kernel for a processor with an `llc` and a linker that do `llc` and `lld`.
    fn emit(&self, text: &str, processor: &str, llc: &str, lld: &str) -> Vec<Diagnostic> {
        let about = "if [ \"$1\" = --version ]; then printf 'LLVM version 16.0.6\\n amdgcn - x\\n'; \
                     exit 0; fi\n";
        let tools = ToolPaths {
            llc: Some(self.script("llc", &format!("{about}{llc}"))),
            lld: Some(self.script("ld.lld", lld)),
        };
        let env = Environment::default();
        let llvm = Llvm::find(Target::Amdgpu, &tools, &env).unwrap();
        let linker = Linker::new(&tools, env);
        let target = HipTarget::new(processor).unwrap();
        let emitter = HipEmitter { target: &target, sources: None, llvm: &llvm, linker: &linker };
        let module = parse_with_own_places(text, FileId(0)).unwrap();
        emitter.emit(&module, FnId(0)).unwrap_err()
    }
}

/// An object file, as far as anybody looks before linking.
const OBJECT: &str = "cat >/dev/null; printf '\\177ELF'";

const EMPTY: &str = "gpu fn m.@k() -> unit workgroup(64, 1, 1) {
entry:
  ret
}
";

fn only(found: Vec<Diagnostic>, code: Code, message: &str, help: &str) -> Diagnostic {
    let [d] = <[Diagnostic; 1]>::try_from(found).unwrap();
    assert_eq!(d.code, code, "{d:?}");
    assert!(d.message.contains(message), "{d:?}");
    assert!(d.help.as_ref().is_some_and(|h| h.contains(help)), "{d:?}");
    d
}

/// The text at the place of a finding.
fn place<'a>(text: &'a str, d: &Diagnostic) -> &'a str {
    &text[d.primary.start as usize..d.primary.end as usize]
}

#[test]
fn prints_of_recursive_functions_are_refused_where_they_stand() {
    let text = "gpu fn m.@k() -> unit workgroup(64, 1, 1) {
entry:
  call fn=m.@f
  ret
}
device fn m.@f() -> unit {
entry:
  gpu.print u32 1
  call fn=m.@f
  ret
}
";
    let found = Scripts::new().emit(text, "gfx1030", OBJECT, "");
    let d = only(found, Code::MPG_HIP_1101, "not available on hip", "as a loop");
    assert!(place(text, &d).contains("gpu.print"), "{:?}", place(text, &d));
}

#[test]
fn too_much_shared_memory_is_refused_with_both_numbers() {
    let text = "gpu fn m.@k(%out: gpu.TBuffer<f32>) -> unit workgroup(64, 1, 1) {
entry:
  %tile: shared_array<16385, f32> = gpu.shared
  %x: f32 = gpu.buffer_load [unchecked] %tile, u32 0
  gpu.buffer_store %out, u32 0, %x
  ret
}
";
    let found = Scripts::new().emit(text, "gfx1030", OBJECT, "");
    let d = only(found, Code::MPG_HIP_2001, "65540", "smaller");
    assert!(d.message.contains("65536") && place(text, &d).contains("@k"), "{d:?}");
}

#[test]
fn wide_wavefronts_are_refused_where_there_are_none() {
    let text = EMPTY.replace(" {\n", " requires(hip.wave64) {\n");
    let found = Scripts::new().emit(&text, "gfx1100", OBJECT, "");
    let d = only(found, Code::MPG_CORE_1200, "gfx1100 have 32 lanes", "gfx90a");
    assert!(place(&text, &d).contains("hip.wave64"), "{:?}", place(&text, &d));
    let found = Scripts::new().emit(&text, "gfx90a", "exit 1", "");
    only(found, Code::MPG_HIP_2002, "llc` failed", "[gpu.tools]");
}

#[test]
fn an_llvm_that_does_not_know_the_processor_is_told() {
    let found = Scripts::new().emit(EMPTY, "gfx942", OBJECT, "");
    only(found, Code::MPG_HIP_2002, "does not know gfx942", "LLVM 17");
}

#[test]
fn tools_that_fail_are_told_with_what_they_said() {
    let scripts = Scripts::new();
    let found = scripts.emit(EMPTY, "gfx90a", "echo 'Cannot select' >&2; exit 1", "");
    let d = only(found, Code::MPG_HIP_2002, "llc` failed", "[gpu.tools]");
    assert!(d.notes[0].contains("Cannot select"), "{d:?}");
    let found = scripts.emit(EMPTY, "gfx90a", OBJECT, "echo 'bad object' >&2; exit 1");
    let d = only(found, Code::MPG_HIP_2002, "ld.lld` failed", "[gpu.tools]");
    assert!(d.notes[0].contains("bad object"), "{d:?}");
}

#[test]
fn a_code_object_that_is_none_is_refused() {
    let scripts = Scripts::new();
    for (lld, why) in [("echo Hello > $4", "no ELF file"), ("cp /bin/sh $4", "machine")] {
        let found = scripts.emit(EMPTY, "gfx90a", OBJECT, lld);
        only(found, Code::MPG_HIP_2002, why, "another version");
    }
}
