//! What texts look like: large shared memory, source locations, names, switches.

mod support;

use magpie_diag::{FileId, SourceMap};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_ptx::{PtxEmitter, PtxTarget};
use magpie_kernel_tests::bytes;
use magpie_mpir::{FnId, Module, parse_with_own_places};
use support::{assemble, target};

fn emit(module: &Module, target: PtxTarget, sources: Option<&SourceMap>) -> String {
    let emitter = PtxEmitter { target, sources, llvm: None };
    let blob = emitter.emit(module, FnId(0)).unwrap();
    String::from_utf8(bytes(&blob.code).to_vec()).unwrap()
}

#[test]
fn large_shared_memory_is_dynamic() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<f32>) -> unit {
entry:
  %small: shared_array<3, u8> = gpu.shared
  %large: shared_array<16384, f32> = gpu.shared
  %i: u32 = gpu.thread_id dim=0
  %b: u8 = gpu.buffer_load [unchecked] %small, u32 1
  %v: f32 = gpu.buffer_load [unchecked] %large, %i
  %n: f32 = cast %b
  %s: f32 = f.add %v, %n
  gpu.buffer_store %x, %i, %s
  ret
}
";
    let module = parse_with_own_places(text, FileId(0)).unwrap();
    for sm in [70, 80, 90] {
        let text = emit(&module, PtxTarget { shared_limit: 96 << 10, ..target(sm) }, None);
        assert!(text.contains(".extern .shared .align 16 .b8 _dynamic_shared[];"), "{text}");
        // Behind the one with the larger alignment.
        assert!(text.contains("[_dynamic_shared+65537]"), "{text}");
        assemble("dynamic shared memory", &text, sm);
    }
}

#[test]
fn locations_are_those_of_the_source() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<f32>) -> unit {
entry:
  %v: f32 = gpu.buffer_load [unchecked] %x, u32 0
  %s: f32 = f.add %v, %v
  gpu.buffer_store [unchecked] %x, u32 1, %s
  ret
}
";
    let mut sources = SourceMap::default();
    let file = sources.add("a \"b\".mpir", text.to_string());
    let module = parse_with_own_places(text, file).unwrap();
    let text = emit(&module, target(70), Some(&sources));
    assert!(text.contains(".file 1 \"a _b_.mpir\""), "{text}");
    let (at, add) = (text.find("\t.loc 1 4 ").unwrap(), text.find("add.rn.f32").unwrap());
    assert!(at < add && text[at..add].matches(".loc").count() == 1, "{text}");
    assemble("locations", &text, 70);
    assert!(!emit(&module, target(70), None).contains(".loc"));
}

/// PTX reserves the names of its instructions and special registers; entries may have them.
#[test]
fn kernels_may_be_called_like_instructions() {
    for name in ["add", "bar", "mov", "ret", "tid", "reg", "entry", "shared0", "WARP_SZ", "B0"] {
        let text = format!(
            "gpu fn m.@{name}(%x: gpu.TBuffer<u32>) -> unit {{
entry:
  %s: shared_array<4, u32> = gpu.shared
  %v: u32 = gpu.buffer_load [unchecked] %s, u32 0
  %n: u32 = gpu.subgroup.size
  %w: u32 = i.add %v, %n
  gpu.buffer_store [unchecked] %x, u32 0, %w
  ret
}}
"
        );
        let module = parse_with_own_places(&text, FileId(0)).unwrap();
        assemble(name, &emit(&module, target(70), None), 70);
    }
}

/// A switch over many values goes to its case by halving.
#[test]
fn large_switches_are_halved() {
    let cases: Vec<String> = (0..50).map(|n| format!("[{}: c{n}]", n * 7)).collect();
    let blocks: Vec<String> = (0..50)
        .map(|n| format!("c{n}:\n  gpu.buffer_store [unchecked] %x, %v, u32 {n}\n  br done\n"))
        .collect();
    let text = format!(
        "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {{
entry:
  %v: u32 = gpu.buffer_load [unchecked] %x, u32 0
  switch %v, {}, else done
{}done:
  ret
}}
",
        cases.join(", "),
        blocks.concat()
    );
    let module = parse_with_own_places(&text, FileId(0)).unwrap();
    let text = emit(&module, target(70), None);
    assert!(text.contains("setp.ge.u32"), "{text}");
    assemble("a switch", &text, 70);
}
