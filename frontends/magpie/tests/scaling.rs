//! Large programs of many shapes: compiling takes time in proportion to their size.

mod support;

use magpie_lang::compile;
use std::time::{Duration, Instant};
use support::*;

/// Functions around a body, with what the bodies use.
fn program(decls: &str) -> String {
    module(&format!(
        "heap struct TBox {{\n  field v: i64\n}}\n
fn @take(%b: TBox) -> unit {{\nbb0:\n  ret\n}}\n
fn @look(%b: borrow TBox) -> unit {{\nbb0:\n  ret\n}}\n
fn @fails() -> TResult<TBox, Str> {{\nbb0:\n  %r: TResult<TBox, Str> = enum.new<Err> {{ e=\"x\" }}\n  ret %r\n}}\n
{decls}
fn @main() -> unit {{\nbb0:\n  ret\n}}\n"
    ))
}

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect()
}

type Shape = (&'static str, fn(usize) -> String);

const SHAPES: &[Shape] = &[
    ("host instructions", |n| {
        let body = lines(n, |i| format!("  %x{i}: i32 = i.add {{ lhs=%a, rhs=const.i32 {i} }}\n"));
        program(&format!("fn @f(%a: i32) -> unit {{\nbb0:\n{body}  ret\n}}\n"))
    }),
    ("values that live long", |n| {
        let make = lines(n, |i| format!("  %b{i}: TBox = new TBox {{ v=const.i64 {i} }}\n"));
        let take = lines(n, |i| format!("  call_void @take {{ b=%b{i} }}\n"));
        program(&format!("fn @f() -> unit {{\nbb0:\n{make}  br bb1\nbb1:\n{take}  ret\n}}\n"))
    }),
    ("blocks with borrows", |n| {
        let body = lines(n, |i| {
            format!(
                "bb{i}:\n  %r{i}: borrow TBox = borrow.shared {{ v=%b }}\n  call_void @look {{ b=%r{i} }}\n  br bb{}\n",
                i + 1
            )
        });
        program(&format!(
            "fn @f(%b: TBox) -> unit {{\n{body}bb{n}:\n  call_void @take {{ b=%b }}\n  ret\n}}\n"
        ))
    }),
    ("a value given away on many paths", |n| {
        let cases = lines(n, |i| format!("    case {i} -> bb{}\n", i + 1));
        let arms = lines(n, |i| format!("bb{}:\n  call_void @take {{ b=%b }}\n  ret\n", i + 1));
        program(&format!(
            "fn @f(%b: TBox, %k: i32) -> unit {{\nbb0:\n  switch %k {{\n{cases}  }} else bb1\n{arms}}}\n"
        ))
    }),
    ("arms of a phi", |n| {
        let cases = lines(n, |i| format!("    case {i} -> bb{}\n", i + 1));
        let blocks = lines(n, |i| format!("bb{}:\n  br bb_end\n", i + 1));
        let arms: Vec<String> = (1..=n).map(|i| format!("[bb{i}: const.i32 {i}]")).collect();
        program(&format!(
            "fn @f(%k: i32) -> i32 {{\nbb0:\n  switch %k {{\n{cases}  }} else bb1\n{blocks}bb_end:\n  %p: i32 = phi {{ {} }}\n  ret %p\n}}\n",
            arms.join(", ")
        ))
    }),
    ("tries in one block", |n| {
        let body = lines(n, |i| {
            format!(
                "  %r{i}: TResult<TBox, Str> = call @fails {{ }}\n  %b{i}: TBox = try %r{i} bb_err\n"
            )
        });
        let arms: Vec<String> = (0..n).map(|i| format!("[bb0: %r{i}.err]")).collect();
        program(&format!(
            "fn @f() -> unit {{\nbb0:\n{body}  ret\nbb_err:\n  %e: Str = phi {}\n  panic {{ msg=%e }}\n  ret\n}}\n",
            arms.join(" ")
        ))
    }),
    ("functions that call", |n| {
        program(&lines(n, |i| {
            format!(
                "fn @f{i}(%b: TBox) -> unit {{\nbb0:\n  call_void @look {{ b=%b }}\n  ret\n}}\n"
            )
        }))
    }),
    ("structs", |n| {
        program(&lines(n, |i| {
            format!("value struct TS{i} {{\n  field a: i32\n  field b: f32\n}}\n")
        }))
    }),
    ("instances of a generic function", |n| {
        let types = lines(n, |i| format!("heap struct TS{i} {{\n  field a: i32\n}}\n"));
        let calls = lines(n, |i| format!("  call_void @g<TS{i}> {{ x=const.i32 1 }}\n"));
        program(&format!(
            "{types}fn @g<T: type>(%x: i32) -> unit {{\nbb0:\n  ret\n}}\nfn @f() -> unit {{\nbb0:\n{calls}  ret\n}}\n"
        ))
    }),
    ("parameters and arguments", |n| {
        let params: Vec<String> = (0..n).map(|i| format!("%p{i}: i32")).collect();
        let args: Vec<String> = (0..n).rev().map(|i| format!("p{i}=const.i32 1")).collect();
        program(&format!(
            "fn @g({}) -> unit {{\nbb0:\n  ret\n}}\nfn @f() -> unit {{\nbb0:\n  call_void @g {{ {} }}\n  ret\n}}\n",
            params.join(", "),
            args.join(", ")
        ))
    }),
    ("names that mean nothing", |n| {
        let body = lines(n, |i| format!("  %x{i}: i32 = i.add {{ lhs=%y{i}, rhs=%z{i} }}\n"));
        program(&format!("fn @f() -> unit {{\nbb0:\n{body}  ret\n}}\n"))
    }),
    ("moved values", |n| {
        let body = lines(n, |i| {
            format!(
                "  %b{i}: TBox = new TBox {{ v=const.i64 1 }}\n  call_void @take {{ b=%b{i} }}\n  call_void @take {{ b=%b{i} }}\n"
            )
        });
        program(&format!("fn @f() -> unit {{\nbb0:\n{body}  ret\n}}\n"))
    }),
    ("unreachable blocks", |n| {
        let blocks = lines(n, |i| format!("bb{}:\n  br bb{}\n", i + 1, i % n + 1));
        program(&format!("fn @f() -> unit {{\nbb0:\n  ret\n{blocks}}}\n"))
    }),
];

fn time(text: &str) -> Duration {
    let runs = (0..3).map(|_| {
        let module = parse_ok(text);
        let start = Instant::now();
        std::hint::black_box(compile(module, &mut |_| None, u32::MAX));
        start.elapsed()
    });
    runs.min().unwrap()
}

#[test]
fn time_is_linear() {
    for (name, shape) in SHAPES {
        let small = time(&shape(500));
        let large = time(&shape(16_000));
        // 32 times the text; quadratic would be 1,024 times the time.
        let limit = small * 200 + Duration::from_millis(50);
        println!("{name}: {small:?}, {large:?}");
        assert!(large < limit, "{name}: {small:?} for 500, {large:?} for 16,000");
    }
}
