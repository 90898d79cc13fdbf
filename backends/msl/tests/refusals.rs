//! Kernels that Metal cannot run: each is refused with a code, a place, the reason and a way out.

use magpie_diag::{Code, Diagnostic, FileId};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_msl::{MslEmitter, MslTarget};
use magpie_mpir::{FnId, parse_with_own_places};

fn refusals(text: &str) -> Vec<Diagnostic> {
    let module = parse_with_own_places(text, FileId(0)).unwrap();
    MslEmitter { target: MslTarget::COMMON }.emit(&module, FnId(0)).unwrap_err()
}

fn check(text: &str, code: Code, place: &str, reason: &str) {
    let found = refusals(text);
    let [d] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(d.code, code, "{}", d.message);
    assert!(d.message.contains(reason), "{}", d.message);
    assert!(d.help.is_some());
    let at = d.primary.start as usize..d.primary.end as usize;
    assert!(text[at.clone()].contains(place), "{} at {}", d.message, &text[at]);
}

/// A kernel with parameters and a body.
fn kernel(parameters: &str, body: &str) -> String {
    format!("gpu fn m.@k({parameters}) -> unit {{\nentry:\n{body}  ret\n}}\n")
}

#[test]
fn operations_that_metal_lacks() {
    let text =
        kernel("%x: gpu.TBuffer<u64>", "  %a: u64 = gpu.atomic.add [unchecked] %x, u32 0, u64 1\n");
    check(&text, Code::MPG_MSL_1101, "gpu.atomic.add", "of 64 bits");
    let text = kernel("%x: gpu.TBuffer<u32>", "  call fn=m.@f\n")
        + "device fn m.@f() -> unit {\nentry:\n  ret\n}\n";
    check(&text, Code::MPG_MSL_1101, "call", "recursive function");
}

#[test]
fn numbers_that_metal_lacks() {
    let text = kernel(
        "%x: gpu.TBuffer<f64>",
        "  %a: f64 = gpu.buffer_load %x, u32 0\n  gpu.buffer_store %x, u32 1, %a\n",
    );
    check(&text, Code::MPG_CORE_1200, "%x", "parameter `x`: msl has no `f64`");
    let text = kernel(
        "%x: gpu.TBuffer<f32>",
        "  %a: f32 = gpu.buffer_load %x, u32 0\n  %b: f64 = cast %a\n  %c: f64 = f.add %b, %b\n",
    );
    check(&text, Code::MPG_CORE_1200, "cast", "msl has no `f64`");
}

#[test]
fn too_many_arguments() {
    let parameters: Vec<String> = (0..32).map(|n| format!("%p{n}: u32")).collect();
    let text = kernel(&parameters.join(", "), "");
    check(&text, Code::MPG_MSL_1101, "m.@k", "has 32 arguments");
    assert!(refusals(&text)[0].help.as_ref().unwrap().contains("value struct"));
}

#[test]
fn loops_with_two_entries() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>, %n: u32) -> unit {
entry:
  %c: bool = icmp.ult %n, u32 5
  cbr %c, a, b
a:
  gpu.buffer_store %x, u32 0, %n
  %d: bool = icmp.ult %n, u32 9
  cbr %d, b, end
b:
  gpu.buffer_store %x, u32 1, %n
  %e: bool = icmp.ult %n, u32 7
  cbr %e, a, end
end:
  ret
}
";
    check(text, Code::MPG_MSL_1001, "", "irreducible control flow");
}

#[test]
fn control_flow_beyond_what_the_compiler_takes() {
    let depth = 300;
    let mut text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {\nentry:\n".to_string();
    text += "  %v: u32 = gpu.buffer_load %x, u32 0\n  br h0\n";
    for n in 0..depth {
        let next = if n + 1 < depth { format!("h{}", n + 1) } else { "inner".to_string() };
        text += &format!("h{n}:\n  %c{n}: bool = icmp.ugt %v, u32 {n}\n");
        text += &format!("  cbr %c{n}, {next}, m{n}\n");
    }
    text += &format!("inner:\n  gpu.buffer_store %x, u32 0, %v\n  br m{}\n", depth - 1);
    for n in (0..depth).rev() {
        let next = if n > 0 { format!("m{}", n - 1) } else { "end".to_string() };
        text += &format!("m{n}:\n  gpu.buffer_store %x, u32 {n}, %v\n  br {next}\n");
    }
    text += "end:\n  ret\n}\n";
    check(&text, Code::MPG_MSL_1101, "m.@k", "nested deeper than 200");
}
