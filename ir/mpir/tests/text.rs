//! The text form: what is read prints back, what is wrong is reported at its place.

use magpie_diag::{FileId, SourceMap};
use magpie_mpir::{Const, ImmKind, Module, Op, module_eq, parse, print_module};

const FILE: FileId = FileId(0);

fn read(text: &str) -> Module {
    parse(text, FILE).unwrap_or_else(|errors| panic!("{}", describe(text, &errors)))
}

fn describe(text: &str, errors: &[magpie_diag::Diagnostic]) -> String {
    let mut files = SourceMap::new();
    files.add("test.mpir", text);
    let line = |d: &magpie_diag::Diagnostic| {
        format!("{}: {}", files.describe(d.primary).unwrap_or_default(), d.message)
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads, prints and reads again; the two modules and the two texts are the same.
fn round_trip(text: &str) -> String {
    let first = read(text);
    let printed = print_module(&first);
    let second = read(&printed);
    assert!(module_eq(&first, &second), "{printed}");
    assert_eq!(print_module(&second), printed);
    printed
}

#[test]
fn canonical_text_prints_back_unchanged() {
    let text = r#"file 0 "src/main.mp"
file 1 "a \"b\"\u{7}.mp"
value struct demo.TPair { x: f32, y: f32 }
heap struct demo.TNode { next: TOption<demo.TNode>, "odd name": Str }
value struct "demo.TBox<i32>" { v: i32 }
value struct borrow { v: i32 }
heap enum demo.TShape { Circle { r: f64, c: demo.TPair }, Empty }
value enum demo.TColour { Red, Green }
sig demo.TPick(i32, TCallable<demo.TOther>) -> bool
sig demo.TOther() -> unit

gpu fn demo.@scale(%0 x: gpu.TBuffer<f32> !0:10-20, %1 n: u32) -> unit head !0:1-9 target(ptx) !0:21-30 workgroup(16, 16, 1) !0:31-40 requires(subgroups, cuda.tensor_cores, "a b") !0:41-50 sid("F:23R834YQS8") !0:1-50 {
bb0:
  %2: u32 = gpu.global_id dim=1 !0:120-145
  %3: bool = icmp.ult %2, %1 !1:3-3
  %4: shared_array<256, f32> = gpu.shared
  cbr %3, bb1, bb2 !0:150-160
bb1:
  %5: f32 = gpu.buffer_load [unchecked] %0, %2
  %6: f32 = f.mul [contract nsz] %5, f32 0x40000000
  %7: f32 = f.add [fast] %6, f32 0x7fc00000
  gpu.buffer_store %0, %2, %7
  br bb2
bb2:
  %8: i8 = phi [bb0: i8 -1], [bb1: i8 127]
  switch %8, [255: bb2], [3: bb2], else bb3
bb3:
  gpu.barrier
  ret
}

unsafe gpu fn @raw() -> unit target(spv) workgroup(64, 1, 1) {
bb0:
  unreachable
}

device fn @helper.device(%0: vec<f16, 3>) -> vec<f16, 3> {
bb0:
  %1: f16 = vec.extract lane=2 %0
  %2: vec<f16, 3> = vec.insert lane=0 vec<f16, 3> zero, %1
  ret %2
}

async fn demo.@main(%0 "1": borrow Map<Str, shared demo.TNode>, %1 name: "borrow") -> TResult<"demo.TBox<i32>", gpu.TError> {
bb0:
  %2: Str = call fn="odd fn" Str "line\nend\t\"quote\" \\ \r\0 é"
  %3: TCallable<demo.TPick> = callable.capture fn=demo.@main bits=3 %0, %1
  %4: Array<i32> = arr.from i32 -2147483648, i32 7
  arr.sort ord=@helper.device %4
  %5: Map<i32, bool> = map.new hash=@raw
  %6: Map<i32, bool> = map.new eq=@raw
  rt.call rt=mp_rt_println %2
  ret TResult<"demo.TBox<i32>", gpu.TError> zero
}

fn "odd fn"(%0: Str) -> Str {
bb0:
  ret %0
}

lowhost fn @low(%0: rawptr<u8>) -> u64 {
bb0:
  %1: rawptr<u8> = stack.slot size=24 align=8
  mem.store offset=-8 %1, rawptr<u8> "main.mp:1:2"
  %2: rawptr<u8> = typeinfo.addr type=demo.TNode object=1
  %3: rawptr<u8> = typeinfo.addr type=Array<TOption<Str>>
  %4: rawptr<u8> = fn.addr fn=@low
  rt.raw rt=mp_rt_release %0
  %5: u64 = mem.load offset=32 %0
  ret %5
}
"#;
    assert_eq!(round_trip(text), text);
}

#[test]
fn hand_written_text_may_leave_things_out() {
    let printed = round_trip(
        "; a comment
        gpu fn @k(%x: gpu.TBuffer<f32>, %n: u32) {
        start: ; another
          %i: u32 = gpu.global_id dim=0
          %inside: bool = icmp.ult %i, %n
          cbr %inside, body, done
        body:
          gpu.buffer_store %x,
            %i, f32 1.5
          br done
        done:
          ret
        }",
    );
    let expected =
        "gpu fn @k(%0 x: gpu.TBuffer<f32>, %1 n: u32) -> unit target(spv) workgroup(64, 1, 1) {
bb0:
  %2: u32 = gpu.global_id dim=0
  %3: bool = icmp.ult %2, %1
  cbr %3, bb1, bb2
bb1:
  gpu.buffer_store %0, %2, f32 0x3fc00000
  br bb2
bb2:
  ret
}
";
    assert_eq!(printed, expected);
}

#[test]
fn numbers_in_every_notation() {
    let cases = [
        ("i8 -128", "i8 -128"),
        ("i8 255", "i8 -1"),
        ("u64 0xffffffffffffffff", "u64 18446744073709551615"),
        ("u64 -1", "u64 18446744073709551615"),
        ("i64 -9223372036854775808", "i64 -9223372036854775808"),
        ("f32 0.1", "f32 0x3dcccccd"),
        ("f32 -2", "f32 0xc0000000"),
        ("f32 1e-45", "f32 0x00000001"),
        ("f64 1.5e+3", "f64 0x4097700000000000"),
        ("f16 65519.9", "f16 0x7bff"),
        ("bf16 1", "bf16 0x3f80"),
        ("bool true", "bool true"),
        ("i32 zero", "i32 0"),
        ("bool zero", "bool false"),
        ("gpu.MemoryHint 3", "gpu.MemoryHint 3"),
    ];
    for (written, printed) in cases {
        let ty = written.split(' ').next().unwrap_or_default();
        let text = round_trip(&format!("fn @f() -> {ty} {{\nbb0:\n  ret {written}\n}}\n"));
        assert!(text.contains(&format!("  ret {printed}\n")), "{written}: {text}");
    }
}

#[test]
fn every_op_round_trips() {
    let mut body = String::new();
    for &op in Op::ALL {
        if op == Op::Phi {
            continue;
        }
        body.push_str("  %r");
        body.push_str(&format!("{}: i32 = {}", op as u8, op.name()));
        for part in op.info().immediate.parts() {
            let value = match part.kind {
                ImmKind::Number => "2",
                ImmKind::Signed => "-9",
                ImmKind::Func | ImmKind::OptionalFunc => "@f",
                ImmKind::Rt => "mp_rt_hash_str",
                ImmKind::Type => "TOption<shared Str>",
            };
            body.push_str(&format!(" {}={value}", part.key));
        }
        body.push_str(" %a, i32 4 !0:7-9\n");
    }
    let text = round_trip(&format!("fn @f(%a: i32) {{\nbb0:\n{body}  ret\n}}\n"));
    assert_eq!(text.matches("!0:7-9").count(), Op::ALL.len() - 1);
}

#[test]
fn places_may_come_from_the_text() {
    let text = "fn @f(%a: i32) -> i32 {\nbb0:\n  %b: i32 = i.add %a, %a ; twice\n  ret %b\n}\n";
    let m = magpie_mpir::parse_with_own_places(text, FILE).unwrap();
    let f = &m.fns[0];
    let inst = f.inst(f.blocks[0].insts[0]).span;
    assert_eq!(&text[inst.start as usize..inst.end as usize], "%b: i32 = i.add %a, %a");
    let term = f.blocks[0].term_span;
    assert_eq!(&text[term.start as usize..term.end as usize], "ret %b");
    let param = f.param_spans[0];
    assert_eq!(&text[param.start as usize..param.end as usize], "%a: i32");
}

#[test]
fn equality_sees_every_difference() {
    let text = |body: &str| {
        format!("value struct m.TP {{ x: i32 }}\nfn @f(%0 a: i32) -> i32 {{\nbb0:\n{body}\n}}\n")
    };
    let base = read(&text("%1: i32 = i.add %0, i32 1\nret %1"));
    for other in [
        "%1: i32 = i.sub %0, i32 1\nret %1",
        "%1: i32 = i.add %0, i32 2\nret %1",
        "%1: i32 = i.add i32 1, %0\nret %1",
        "%1: i32 = i.add [nsz] %0, i32 1\nret %1",
        "%1: i32 = i.add %0, i32 1 !0:1-2\nret %1",
        "%1: i32 = i.add %0, i32 1\nret %0",
        "%1: u32 = i.add %0, i32 1\nret %1",
        "%1: i32 = i.add %0, i32 1\nbr bb1\nbb1:\nret %1",
    ] {
        assert!(!module_eq(&base, &read(&text(other))), "{other}");
    }
    // The order in which types and texts were interned does not matter.
    let mut m = read(&text("%1: i32 = i.add %0, i32 1\nret %1"));
    m.intern_str("unused");
    assert!(module_eq(&base, &m));
    assert!(m.fns[0].locals.iter().any(|l| l.def == magpie_mpir::ValueDef::Const(Const::Bits(1))));
}

#[test]
fn deep_nesting_and_long_lists_are_refused_or_read() {
    let deep = format!("fn @f(%a: {}i32) {{ bb0: ret }}", "Array<".repeat(100_000));
    assert!(parse(&deep, FILE).is_err());
    let brackets = "{".repeat(100_000) + &"[".repeat(100_000);
    assert!(parse(&brackets, FILE).is_err());
    let errors = parse(&"fn ".repeat(100_000), FILE).unwrap_err();
    assert!(errors.len() <= 60);
}

#[test]
fn large_functions_take_linear_time() {
    // Quadratic behaviour would take minutes here.
    let mut text = String::from("fn @f(%a: i32) -> i32 {\nbb0:\n  %v0: i32 = i.add %a, %a\n");
    for n in 1..200_000 {
        text.push_str(&format!("  %v{n}: i32 = i.add %v{}, i32 {n}\n", n - 1));
        if n % 4 == 0 {
            text.push_str(&format!("  br b{n}\nb{n}:\n"));
        }
    }
    text.push_str("  ret %v199999\n}\n");
    let m = read(&text);
    assert_eq!(m.fns[0].live_inst_count(), 200_000);
    assert!(print_module(&m).len() > text.len() / 2);
}
