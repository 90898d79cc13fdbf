//! Kernels that cannot be PTX: each is refused with a code, a place, the reason and a way out.

use magpie_diag::{Code, Diagnostic, FileId, Severity};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_ptx::{PtxEmitter, PtxTarget, capability_warning};
use magpie_mpir::{FnId, parse_with_own_places};

fn refusals(text: &str, target: PtxTarget) -> Vec<Diagnostic> {
    let module = parse_with_own_places(text, FileId(0)).unwrap();
    let emitter = PtxEmitter { target, sources: None, llvm: None };
    emitter.emit(&module, FnId(0)).unwrap_err()
}

fn refusal(text: &str, target: PtxTarget) -> Diagnostic {
    let mut errors = refusals(text, target);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn check(text: &str, code: Code, place: &str, reason: &str) {
    let d = refusal(text, PtxTarget::DEFAULT);
    assert_eq!(d.code, code);
    assert!(d.message.contains(reason), "{}", d.message);
    assert!(d.help.is_some());
    let at = d.primary.start as usize..d.primary.end as usize;
    assert!(text[at.clone()].contains(place), "{} at {}", d.message, &text[at]);
}

#[test]
fn operations_that_ptx_lacks() {
    let code = Code::MPG_PTX_1101;
    let text = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {
entry:
  %a: u32 = gpu.metal.simd_sum u32 1
  gpu.buffer_store %x, u32 0, %a
  ret
}
";
    check(text, code, "simd_sum", "exists on msl only");
}

#[test]
fn what_recursive_functions_cannot_do() {
    let module = |params: &str, args: &str, body: &str| {
        format!(
            "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit {{
entry:
  call fn=m.@f {args}
  ret
}}
device fn m.@f({params}) -> unit {{
entry:
  {body}
  call fn=m.@f {args}
  ret
}}
"
        )
    };
    let code = Code::MPG_PTX_1101;
    check(&module("", "", "gpu.barrier"), code, "gpu.barrier", "in the recursive function `@f`");
    let shared = "%s: shared_array<8, f32> = gpu.shared";
    check(&module("", "", shared), code, "gpu.shared", "in the recursive function `@f`");
    let text = module("%h: bf16", "bf16 0", "gpu.print u32 1");
    let found = refusals(&text, PtxTarget::DEFAULT);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].message.contains("`gpu.print` in a recursive function is not available on ptx"),
        "{found:?}"
    );
    assert!(found[1].message.contains("cannot take or give `bf16` on ptx"), "{found:?}");
}

/// 16384 floats.
const LARGE: &str = "gpu fn m.@k(%x: gpu.TBuffer<f32>) -> unit {
entry:
  %s: shared_array<16384, f32> = gpu.shared
  %i: u32 = gpu.thread_id dim=0
  %v: f32 = gpu.buffer_load %s, %i
  gpu.buffer_store %x, %i, %v
  ret
}
";

#[test]
fn more_shared_memory_than_is_allowed() {
    check(LARGE, Code::MPG_PTX_2001, "m.@k", "65536 bytes of shared memory; the limit is 49152");
    let target = PtxTarget { shared_limit: 65535, ..PtxTarget::DEFAULT };
    assert!(refusal(LARGE, target).message.contains("the limit is 65535"));
}

#[test]
fn emulated_arithmetic_is_told() {
    let text = "gpu fn m.@k(%x: gpu.TBuffer<bf16>) -> unit {
entry:
  %a: bf16 = gpu.buffer_load %x, u32 0
  %b: bf16 = f.add %a, %a
  %c: bf16 = f.mul %b, %a
  gpu.buffer_store %x, u32 0, %c
  ret
}
";
    let warning = |text: &str, sm| {
        let module = parse_with_own_places(text, FileId(0)).unwrap();
        let target = PtxTarget { sm, ..PtxTarget::DEFAULT };
        capability_warning(&module.fns[0], &module.types, &target)
    };
    let d = warning(text, 70).unwrap();
    assert_eq!((d.code, d.severity), (Code::MPG_PTX_2003, Severity::Warning));
    assert!(d.message.contains("sm_70") && d.help.as_ref().unwrap().contains("sm_90"), "{d:?}");
    assert!(text[d.primary.start as usize..d.primary.end as usize].contains("f.add"), "{d:?}");
    assert_eq!(warning(text, 90), None);
    // What is only moved is no matter.
    let moved: Vec<&str> = text.lines().filter(|l| !l.contains("f.")).collect();
    let moved = moved.join("\n").replace("%c", "%a") + "\n";
    assert_eq!(warning(&moved, 70), None);
    assert_eq!(warning(&text.replace("bf16", "f32"), 70), None);
}
