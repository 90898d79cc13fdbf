//! Kernels that cannot be WGSL, or not on the device: each is refused with a code, a place, the reason
//! and a way out.

mod support;

use magpie_diag::{Code, FileId};
use magpie_gpu::BackendEmitter;
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_wgsl::{WgslEmitter, WgslTarget};
use magpie_kernel_tests::bytes;
use magpie_mpir::{FnId, Module, parse_with_own_places};
use magpie_types::kernel::{DeviceFeatures, GpuBackend};
use support::validate;

fn module(text: &str) -> Module {
    parse_with_own_places(text, FileId(0)).unwrap()
}

fn check_code(text: &str, target: WgslTarget, code: Code, place: &str, reason: &str) {
    let emitter = WgslEmitter { target };
    let mut errors = emitter.emit(&module(text), FnId(0)).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let d = errors.remove(0);
    assert_eq!(d.code, code, "{}", d.message);
    assert!(d.message.contains(reason), "{}", d.message);
    assert!(d.help.is_some());
    let at = d.primary.start as usize..d.primary.end as usize;
    assert!(text[at.clone()].contains(place), "{} at {}", d.message, &text[at]);
}

fn check(text: &str, place: &str, reason: &str) {
    check_code(text, WgslTarget::COMMON, Code::MPG_WGSL_1101, place, reason);
}

/// A kernel with a buffer of words and some instructions.
fn kernel(body: &str) -> String {
    format!("gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {{\nentry:\n{body}  ret\n}}\n")
}

#[test]
fn operations_that_wgsl_lacks() {
    let store = "  gpu.buffer_store %x, u32 0, %a\n";
    let simd = format!("  %a: u32 = gpu.metal.simd_sum u32 1\n{store}");
    check(&kernel(&simd), "simd_sum", "exists on msl only");
    let call = "  call fn=m.@f\n";
    let callee = "device fn m.@f() -> unit {\nentry:\n  ret\n}\n";
    check(&format!("{}{callee}", kernel(call)), "call", "recursive function");
    let small = "gpu fn m.@k(%x: gpu.TBuffer<f16>) -> unit {
entry:
  %a: f16 = gpu.atomic.exchange %x, u32 0, f16 0x3c00
  ret
}
";
    check(small, "exchange", "words only");
}

#[test]
fn types_that_wgsl_lacks() {
    for ty in ["i64", "u64", "f64"] {
        let parameter =
            format!("gpu fn m.@k(%x: gpu.TBuffer<{ty}>) -> unit {{\nentry:\n  ret\n}}\n");
        check(&parameter, "%x", &format!("parameter `x`: wgsl has no `{ty}`"));
        let inside = kernel(&format!("  %a: {ty} = cast u32 1\n"));
        check(&inside, "cast", &format!("`cast`: wgsl has no `{ty}`"));
    }
    let nested = "value struct m.TPair { a: u32, b: f64 }
gpu fn m.@k(%p: m.TPair) -> unit {
entry:
  ret
}
";
    check(nested, "%p", "wgsl has no `f64`");
}

/// Its first half can be had, but not its whole.
#[test]
fn whole_ballots() {
    let text = kernel(
        "  %c: bool = icmp.eq u32 1, u32 2
  %a: u64 = gpu.subgroup.ballot %c
  %b: u64 = i.add %a, %a
  %d: u32 = cast %b
  gpu.buffer_store %x, u32 0, %d
",
    );
    let emitter = WgslEmitter { target: WgslTarget::COMMON };
    let errors = emitter.emit(&module(&text), FnId(0)).unwrap_err();
    assert!(errors[0].message.contains("ballot` gives a `u64`"), "{errors:?}");
    assert!(errors[0].help.as_ref().unwrap().contains("cast it"), "{errors:?}");
    assert!(errors.iter().all(|d| d.code == Code::MPG_WGSL_1101), "{errors:?}");
}

#[test]
fn devices_without_subgroups() {
    let text = kernel("  %a: u32 = gpu.subgroup.size\n  gpu.buffer_store %x, u32 0, %a\n");
    let target = WgslTarget { features: DeviceFeatures::default() };
    check_code(&text, target, Code::MPG_WGSL_1101, "m.@k", "does not offer: subgroups");
}

#[test]
fn irreducible_control_flow() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {
entry:
  %v: u32 = gpu.buffer_load %x, u32 0
  %c: bool = icmp.eq %v, u32 0
  cbr %c, a, b
a:
  gpu.buffer_store %x, u32 1, %v
  br b
b:
  gpu.buffer_store %x, u32 2, %v
  %d: bool = icmp.eq %v, u32 1
  cbr %d, a, end
end:
  ret
}
";
    check_code(text, WgslTarget::COMMON, Code::MPG_WGSL_1001, "", "irreducible");
}

#[test]
fn nesting_beyond_the_limit() {
    let depth = 130;
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
    check(&text, "m.@k", "nested deeper than 127");
}

#[test]
fn switches_beyond_the_limit() {
    let mut text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {\nentry:\n".to_string();
    text += "  %v: u32 = gpu.buffer_load %x, u32 0\n  switch %v";
    for case in 0..16_400 {
        text += &format!(", [{case}: b{}]", case % 3);
    }
    text += ", else end\nb0:\n  gpu.buffer_store %x, u32 1, %v\n  br end\n";
    text += "b1:\n  gpu.buffer_store %x, u32 2, %v\n  br end\n";
    text += "b2:\n  gpu.buffer_store %x, u32 3, %v\n  br end\nend:\n  ret\n}\n";
    check(&text, "m.@k", "cases or more; WGSL allows 16383");
}

#[test]
fn private_arrays_beyond_the_limit() {
    let array = |len: u32| {
        kernel(&format!(
            "  %l: local_array<{len}, u32> = gpu.local
  %i: u32 = gpu.global_id dim=0
  gpu.buffer_store %l, %i, u32 1
  %a: u32 = gpu.buffer_load %l, u32 3
  gpu.buffer_store %x, %i, %a
"
        ))
    };
    check(&array(2049), "m.@k", "take 8196 bytes; wgsl allows 8192");
    let blob = WgslEmitter { target: WgslTarget::COMMON }.emit(&module(&array(2048)), FnId(0));
    validate("a private array", bytes(&blob.unwrap().code));
}

#[test]
fn loops_without_an_end_are_loops() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {
entry:
  br head
head:
  %i: u32 = phi [entry: u32 0], [head: %j]
  %j: u32 = i.add %i, u32 1
  gpu.buffer_store %x, %j, %i
  br head
}
";
    let blob = WgslEmitter { target: WgslTarget::COMMON }.emit(&module(text), FnId(0)).unwrap();
    validate("a loop without an end", bytes(&blob.code));
}

#[test]
fn words_of_the_language_are_no_names() {
    let text = "gpu fn m.@k(%loop: gpu.TBuffer<u32>, %global_id: gpu.TBuffer<u32>, %f32: u32, %_: u32, %v1: u32, %zero: f32, %exact: f32, %len_loop: u32, %word_0: u8, %Element1: f32) -> unit {
entry:
  %i: u32 = gpu.global_id dim=0
  %a: u32 = gpu.buffer_load %loop, %i
  %b: u32 = i.add %a, %f32
  %c: u32 = i.add %b, %_
  %d: u32 = i.mul %c, %v1
  %e: f32 = cast %d
  %s: f32 = f.add %zero, %e
  %t0: f32 = f.mul %s, %zero
  %t1: f32 = f.add %t0, %exact
  %t2: f32 = f.min %t1, %Element1
  %o: u32 = cast %word_0
  %p: u32 = i.add %o, %len_loop
  %q: f32 = cast %p
  %t: f32 = f.add %t2, %q
  %u: f32 = f.sub %t, %e
  %w: u32 = bits.cast %u
  gpu.buffer_store %global_id, %i, %w
  ret
}
";
    let blob = WgslEmitter { target: WgslTarget::COMMON }.emit(&module(text), FnId(0)).unwrap();
    validate("names", bytes(&blob.code));
}

#[test]
fn the_emitter_offers_what_every_back_end_does() {
    let emitter = WgslEmitter { target: WgslTarget::COMMON };
    let module = module(&kernel("  gpu.buffer_store %x, u32 0, u32 1\n"));
    let kernel = module.func(FnId(0));
    assert_eq!(emitter.backend_id(), GpuBackend::Wgsl);
    assert_eq!(emitter.artifact_extension(), "wgsl");
    emitter.validate_kernel(kernel, &module.types).unwrap();
    let layout = emitter.compute_layout(kernel, &module.types).unwrap();
    assert!(layout.fixed_workgroup);
    layout.check().unwrap();
    let code = emitter.emit_kernel(kernel, &module.types, &layout).unwrap();
    assert!(code == emitter.emit(&module, FnId(0)).unwrap().code);
}
