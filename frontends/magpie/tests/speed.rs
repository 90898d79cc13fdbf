//! How long parsing takes. Run in a release build:
//! `cargo test --release -p magpie_lang --test speed -- --ignored --nocapture`

mod support;

use magpie_lang::{compile, format_module};
use std::fmt::Write;
use std::time::{Duration, Instant};
use support::*;

/// What lexing and parsing may take for an instruction of a large kernel.
const PARSE_LIMIT: Duration = Duration::from_nanos(500);

/// What names, types and lowering to MPIR may take for an instruction of a large kernel.
const COMPILE_LIMIT: Duration = Duration::from_nanos(350);

/// A kernel of about `count` instructions of the usual kinds.
fn kernel(count: usize) -> String {
    let mut text = module(
        "gpu fn @k(%in: gpu.TBuffer<f32>, %out: gpu.TBuffer<f32>, %n: u32) -> unit target(spv) workgroup(64, 1, 1) {
bb0:
  %gid: u32 = gpu.global_id { dim=const.u32 0 }
  %x0: f32 = const.f32 1.5
  br bb1
bb1:
",
    );
    for i in 0..count / 8 {
        // Writing to a `String` does not fail.
        let _ = write!(
            text,
            "  %i{i}: u32 = i.add {{ lhs=%gid, rhs=const.u32 {i} }}
  %b{i}: f32 = gpu.buffer_load<f32> {{ buf=%in, idx=%i{i} }}
  %m{i}: f32 = f.mul {{ lhs=%b{i}, rhs=%x{i} }}
  %s{i}: f32 = f.add {{ lhs=%m{i}, rhs=const.f32 0.25 }}
  %x{next}: f32 = f.sub {{ lhs=%s{i}, rhs=%b{i} }}
  gpu.buffer_store<f32> {{ buf=%out, idx=%i{i}, v=%x{next} }}
  %c{i}: bool = icmp.ult {{ lhs=%i{i}, rhs=%n }}
  cbr %c{i} bb{block} bb{block}
bb{block}:
",
            next = i + 1,
            block = i + 2
        );
    }
    text.push_str("  ret\n}\n\nfn @main() -> unit {\nbb0:\n  ret\n}\n");
    text
}

#[test]
#[ignore = "measures time"]
fn parsing_is_fast() {
    for count in [50, 5_000, 50_000, 500_000] {
        let text = kernel(count);
        let runs = (1_000_000 / count).clamp(5, 1000);
        let mut parse_time = Duration::MAX;
        let mut format_time = Duration::MAX;
        for _ in 0..runs {
            let start = Instant::now();
            let module = parse(&text);
            parse_time = parse_time.min(start.elapsed());
            assert!(!module.has_errors());
            let start = Instant::now();
            assert!(format_module(&module, &text).is_some());
            format_time = format_time.min(start.elapsed());
        }
        let per_instr = parse_time / count as u32;
        println!(
            "{count} instructions, {} bytes: parse {parse_time:?} ({per_instr:?} each, {:.0} MB/s), format {:?} each",
            text.len(),
            text.len() as f64 / parse_time.as_secs_f64() / 1e6,
            format_time / count as u32,
        );
        if (5_000..=50_000).contains(&count) {
            assert!(per_instr < PARSE_LIMIT, "{per_instr:?} for an instruction");
        }
    }
}

#[test]
#[ignore = "measures time"]
fn compiling_is_fast() {
    for count in [50, 5_000, 50_000, 500_000] {
        let module = parse_ok(&kernel(count));
        let runs = (1_000_000 / count).clamp(5, 1000);
        let mut time = Duration::MAX;
        for _ in 0..runs {
            let module = module.clone();
            let start = Instant::now();
            let output = compile(module, &mut |_| None, 10);
            time = time.min(start.elapsed());
            assert!(output.diagnostics.is_empty(), "{:?}", output.diagnostics[0]);
        }
        let per_instr = time / count as u32;
        println!("{count} instructions: {time:?} ({per_instr:?} each)");
        if (5_000..=50_000).contains(&count) {
            assert!(per_instr < COMPILE_LIMIT, "{per_instr:?} for an instruction");
        }
    }
}
