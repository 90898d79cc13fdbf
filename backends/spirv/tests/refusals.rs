//! Kernels that cannot be SPIR-V, or not on the device: each is refused with a code, a place, the
//! reason and a way out.

mod support;

use magpie_diag::{Code, Diagnostic, FileId, SourceMap};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget, disassemble};
use magpie_kernel_tests::bytes;
use magpie_mpir::{FnId, Module, parse_with_own_places};
use magpie_types::kernel::DeviceFeatures;
use support::{validate, words};

fn module(text: &str) -> Module {
    parse_with_own_places(text, FileId(0)).unwrap()
}

fn refusal(text: &str, target: SpirvTarget) -> Diagnostic {
    let emitter = SpirvEmitter { target, sources: None };
    let mut errors = emitter.emit(&module(text), FnId(0)).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn check(text: &str, target: SpirvTarget, place: &str, reason: &str) {
    let d = refusal(text, target);
    assert_eq!(d.code, Code::MPG_SPV_1101);
    assert!(d.message.contains(reason), "{}", d.message);
    assert!(d.help.is_some());
    let at = d.primary.start as usize..d.primary.end as usize;
    assert!(text[at.clone()].contains(place), "{} at {}", d.message, &text[at]);
}

fn without(features: DeviceFeatures) -> SpirvTarget {
    let common = SpirvTarget::COMMON;
    SpirvTarget { features: common.features.minus(features), ..common }
}

#[test]
fn operations_that_spirv_lacks() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {
entry:
  %a: u32 = gpu.metal.simd_sum u32 1
  gpu.buffer_store %x, u32 0, %a
  ret
}
";
    check(text, SpirvTarget::COMMON, "simd_sum", "exists on msl only");
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {
entry:
  call fn=m.@f
  ret
}
device fn m.@f() -> unit {
entry:
  ret
}
";
    check(text, SpirvTarget::COMMON, "call", "recursive function is not available on spv");
}

#[test]
fn types_that_the_device_lacks() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<f64>) -> unit {
entry:
  %a: f64 = gpu.buffer_load %x, u32 0
  %b: f64 = f.add %a, %a
  gpu.buffer_store %x, u32 1, %b
  ret
}
";
    check(text, without(DeviceFeatures::FLOAT64), "m.@k", "does not offer: float64");
    let text = "value struct m.TPair { a: u8, b: u32 }
gpu fn m.@k(%x: gpu.TBuffer<m.TPair>) -> unit {
entry:
  gpu.leaf_store leaf=0 %x, u32 0, u8 1
  ret
}
";
    check(text, without(DeviceFeatures::STORAGE8), "m.@k", "does not offer: storage8");
}

#[test]
fn control_flow_beyond_the_limits_of_spirv() {
    let mut text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {\nentry:\n".to_string();
    text += "  %v: u32 = gpu.buffer_load %x, u32 0\n  switch %v";
    for case in 0..16_400 {
        text += &format!(", [{case}: b{}]", case % 3);
    }
    text += ", else end\nb0:\n  gpu.buffer_store %x, u32 1, %v\n  br end\n";
    text += "b1:\n  gpu.buffer_store %x, u32 2, %v\n  br end\n";
    text += "b2:\n  gpu.buffer_store %x, u32 3, %v\n  br end\nend:\n  ret\n}\n";
    check(&text, SpirvTarget::COMMON, "m.@k", "16400 cases; SPIR-V allows 16383");

    let depth = 1100;
    let mut text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {\nentry:\n".to_string();
    text += "  %v: u32 = gpu.buffer_load %x, u32 0\n  br h0\n";
    for n in 0..depth {
        let next = if n + 1 < depth { format!("h{}", n + 1) } else { "inner".to_string() };
        text +=
            &format!("h{n}:\n  %c{n}: bool = icmp.ugt %v, u32 {n}\n  cbr %c{n}, {next}, m{n}\n");
    }
    text += &format!("inner:\n  gpu.buffer_store %x, u32 0, %v\n  br m{}\n", depth - 1);
    for n in (0..depth).rev() {
        let next = if n > 0 { format!("m{}", n - 1) } else { "end".to_string() };
        text += &format!("m{n}:\n  gpu.buffer_store %x, u32 {n}, %v\n  br {next}\n");
    }
    text += "end:\n  ret\n}\n";
    check(&text, SpirvTarget::COMMON, "m.@k", "nested deeper than 1023");
}

#[test]
fn source_lines_are_optional() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {
entry:
  gpu.buffer_store %x, u32 0, u32 1
  ret
}
";
    let mut sources = SourceMap::new();
    sources.add("kernels/one.mp", text);
    for sources in [None, Some(&sources)] {
        let emitter = SpirvEmitter { target: SpirvTarget::COMMON, sources };
        let blob = emitter.emit(&module(text), FnId(0)).unwrap();
        validate("lines", bytes(&blob.code));
        let out = disassemble(&words(bytes(&blob.code))).unwrap();
        let has = |part: &str| out.contains(part);
        assert_eq!(has("OpString \"kernels/one.mp\""), sources.is_some(), "{out}");
        assert_eq!(has("OpLine") && has(" 3 3\n"), sources.is_some(), "{out}");
    }
}
