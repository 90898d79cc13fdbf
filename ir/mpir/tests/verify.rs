//! The verifier: what it accepts, what it refuses and how it says so.

use magpie_diag::{Diagnostic, FileId};
use magpie_mpir::{Block, Module, Op, Stage, Terminator, Value, parse, verify_module};

fn read(text: &str) -> Module {
    parse(text, FileId(0)).unwrap_or_else(|e| panic!("{text}\n{}", e[0].message))
}

fn errors(m: &Module, stage: Stage) -> Vec<Diagnostic> {
    verify_module(m, stage).err().unwrap_or_default()
}

fn accept(text: &str) {
    let found = errors(&read(text), Stage::Core);
    assert!(found.is_empty(), "{text}\n{}", found[0].message);
}

/// The module is refused with an error of the code whose message has the fragment.
fn refuse(text: &str, code: &str, fragment: &str) {
    let found = errors(&read(text), Stage::Core);
    let hit = found.iter().any(|d| d.code.as_str() == code && d.message.contains(fragment));
    let all: Vec<_> = found.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    assert!(hit, "{text}\nexpected {code} {fragment}, found {all:#?}");
}

const TYPES: &str = "
value struct m.TPair { x: f32, y: i32 }
heap struct m.TNode { n: i32, name: Str, next: TOption<m.TNode>, both: m.TPair, link: shared m.TNode }
heap enum m.TShape { Circle { r: f64 }, Named { name: Str, size: i32 }, Empty }
value enum m.TColour { Red, Green }
sig m.TUnary(i32) -> i32
sig m.TFold(i64, i32) -> i64
sig m.TTest(i32) -> bool
sig m.TVisit(borrow Str) -> unit
fn @inc(%x: i32) -> i32 {
b:
  ret %x
}
fn @hash(%x: borrow m.TNode) -> u64 {
b:
  ret u64 1
}
fn @eq(%x: borrow m.TNode, %y: borrow m.TNode) -> bool {
b:
  ret bool true
}
fn @ord(%x: m.TPair, %y: borrow m.TPair) -> i32 {
b:
  ret i32 0
}
lowhost fn @low(%x: i32) -> i32 {
b:
  ret %x
}
device fn @dev(%x: i32, %b: gpu.TBuffer<f32>) -> i32 {
b:
  ret %x
}
gpu fn @kernel(%b: gpu.TBuffer<f32>, %n: u32, %p: m.TPair) {
b:
  ret
}
";

fn with(head: &str, body: &str) -> String {
    format!("{TYPES}\n{head} {{\nentry:\n{body}\n}}\n")
}

const KERNEL: &str = "gpu fn @t(%i: i32, %u: u32, %l: i64, %f: f32, %h: f16, %d: f64, %c: bool, \
     %b: gpu.TBuffer<f32>, %bi: gpu.TBuffer<i32>, %bp: gpu.TBuffer<m.TPair>, %p: m.TPair, \
     %v: vec<f32, 3>, %vi: vec<i32, 3>, %vb: vec<bool, 3>)";
const HOST: &str = "fn @t(%i: i32, %u: u32, %l: i64, %c: bool, %s: Str, %bs: borrow Str, \
     %a: Array<i32>, %ba: borrow Array<i32>, %as: Array<Str>, %m: Map<Str, i32>, \
     %n: m.TNode, %bn: borrow m.TNode, %mn: mutborrow m.TNode, %sn: shared m.TNode, \
     %wn: weak m.TNode, %e: m.TShape, %be: borrow m.TShape, %o: TOption<Str>, %p: m.TPair, \
     %dev: gpu.TDevice, %buf: gpu.TBuffer<f32>, %bbuf: borrow gpu.TBuffer<f32>, \
     %ses: gpu.TProfileSession, %un: TCallable<m.TUnary>, %fold: TCallable<m.TFold>, \
     %test: TCallable<m.TTest>, %visit: TCallable<m.TVisit>, %col: m.TColour, %r: rawptr<i32>)";
const LOW: &str = "lowhost fn @t(%p: rawptr<u8>, %i: i32, %l: i64, %s: Str, %f: f64)";

#[test]
fn surface_modules_may_hold_what_the_language_refuses() {
    let text = with(
        "gpu fn @t(%a: Array<i32>, %x: i128)",
        "  %1: m.TNode = new i32 1, Str \"n\", TOption<m.TNode> zero, m.TPair zero, shared m.TNode zero
  %2: i32 = arr.get %a, i32 0
  ret",
    );
    assert_eq!(errors(&read(&text), Stage::Surface).len(), 0);
    refuse(&text, "MPS0032", "`Array<i32>` is no type of device code");
    // Ill-typed is ill-typed at any stage.
    let text = with("gpu fn @t(%a: Array<i32>)", "  %1: f32 = arr.get %a, i32 0\n  ret");
    assert_eq!(errors(&read(&text), Stage::Surface).len(), 1);
}

#[test]
fn ill_typed_instructions() {
    let cases = [
        (KERNEL, "%1: i32 = i.add %i, %u", "operand 1 has type `u32`, expected `i32`"),
        (KERNEL, "%1: u32 = i.add %i, %i", "the result has type `u32`, expected `i32`"),
        (KERNEL, "%1: i32 = i.add %i", "it has 1 operands, expected 2"),
        (KERNEL, "%1: f32 = i.add %f, %f", "expected an integer or a vector"),
        (KERNEL, "%1: i32 = i.shl %c, %c", "operand 0 has type `bool`"),
        (KERNEL, "%1: i32 = icmp.eq %i, %i", "expected `bool`"),
        (KERNEL, "%1: bool = icmp.eq %vi, %vi", "expected `vec<bool, 3>`"),
        (KERNEL, "%1: bool = cast %f", "no conversion from `f32` to `bool`"),
        (KERNEL, "%1: vec<f32, 3> = cast %f", "like the operand"),
        (KERNEL, "%1: i64 = bits.cast %f", "do not have the same width"),
        (KERNEL, "%1: f32 = select %i, %f, %f", "`bool`, or a vector of `bool`"),
        (KERNEL, "%1: f32 = select %vb, %f, %f", "`bool`, or a vector of `bool`"),
        (KERNEL, "%1: gpu.TBuffer<f32> = select %c, %b, %b", "are not merged"),
        (KERNEL, "%1: vec<f32, 3> = vec.new %f, %f", "2 operands, expected 3"),
        (KERNEL, "%1: vec<i32, 3> = vec.cross %vi, %vi", "a vector of floats"),
        (KERNEL, "%1: vec<f32, 2> = vec.cross vec<f32, 2> zero, vec<f32, 2> zero", "3 components"),
        (KERNEL, "%1: i32 = vec.dot %vi, %vi", "a vector of floats"),
        (KERNEL, "%1: bool = vec.all %v", "a vector of `bool`"),
        (KERNEL, "%1: m.TPair = struct.new %i, %f", "operand 0"),
        (KERNEL, "%1: i32 = struct.get field=0 %p", "expected `f32`"),
        (KERNEL, "%1: i32 = gpu.global_id dim=0", "expected `u32`"),
        (KERNEL, "%1: i32 = gpu.buffer_load %b, %i", "expected `f32`"),
        (KERNEL, "%1: f32 = gpu.buffer_load %b, %f", "operand 1 has type `f32`, expected `u32`"),
        (KERNEL, "%1: f32 = gpu.buffer_load %f, %i", "a buffer, a shared or a local array"),
        (KERNEL, "gpu.buffer_store %b, %i, %i", "operand 2"),
        (KERNEL, "%1: f32 = gpu.atomic.and %b, %i, %f", "elements of `i32 u32 i64 u64`"),
        (KERNEL, "%1: m.TPair = gpu.atomic.add %bp, %i, %p", "elements of"),
        (KERNEL, "%1: i32 = gpu.subgroup.ballot %c", "expected `u64`"),
        (KERNEL, "%1: bool = gpu.subgroup.sum %c", "a number"),
        (KERNEL, "%1: i64 = gpu.buffer_len %b", "`u32` or `u64`"),
        (KERNEL, "gpu.print %p", "a scalar or a constant text"),
        (HOST, "%1: i32 = call fn=@inc %u", "operand 0 has type `u32`"),
        (HOST, "%1: i64 = rt.call rt=mp_rt_str_len %i", "passed as Ptr"),
        (HOST, "%1: Str = rt.call rt=mp_rt_fs_read_text %s", "StatusOut(Ptr)"),
        (HOST, "%1: Str = rt.call rt=mp_rt_str_concat %s, %bs", "a value to be given away"),
        (HOST, "%1: TResult<Str, Str> = rt.call rt=mp_rt_fs_read_bytes %s", "element type"),
        (HOST, "%1: i32 = call.indirect %i, %i", "a callable"),
        (HOST, "%1: TCallable<m.TUnary> = callable.capture fn=@inc bits=1 %i", "parameters left"),
        (HOST, "%1: TCallable<m.TTest> = callable.capture fn=@eq bits=1 %bn", "can be stored"),
        (HOST, "%1: borrow Str = borrow.shared %a", "a view of `Array<i32>`"),
        (HOST, "%1: mutborrow Str = borrow.mut %bs", "viewed so"),
        (HOST, "%1: shared i32 = arc.share %i", "an owned heap object"),
        (HOST, "%1: Str = getfield field=1 %n", "a view of `Str`"),
        (HOST, "setfield field=0 %bn, %i", "that may be changed"),
        (HOST, "%1: Str = arr.get %as, %i", "a view of `Str`"),
        (HOST, "arr.push %ba, %i", "operand 0 has type `borrow Array<i32>`, expected an array"),
        (HOST, "arr.sort %as2", "needs `ord=`"),
        (HOST, "%1: Map<m.TPair, i32> = map.new", "needs `hash=`"),
        (HOST, "%1: Map<m.TNode, i32> = map.new hash=@eq eq=@eq", "does not take 1 values"),
        (HOST, "map.set %m, %bs, %i", "operand 1 has type `borrow Str`, expected `Str`"),
        (HOST, "%1: Str = select %c, %s, %s", "whose values are copied"),
        (HOST, "%1: borrow Str = select %c, %bs, %bs", "views are not merged"),
        (HOST, "%1: Str = enum.payload variant=1 field=1 %e", "expected `i32`"),
        (
            HOST,
            "%1: TResult<unit, gpu.TError> = gpu.launch fn=@kernel %dev, u32 1, u32 1, u32 1, u32 1, u32 1, u32 1, %buf, %u",
            "9 operands, expected 10",
        ),
        (
            HOST,
            "%1: TResult<unit, gpu.TError> = gpu.launch fn=@kernel %dev, u32 1, u32 1, u32 1, u32 1, u32 1, u32 1, %buf, %i, %p",
            "operand 8 has type `i32`, expected `u32`",
        ),
        (LOW, "mem.store %i, %i", "an address"),
        (LOW, "%1: i32 = rt.raw rt=mp_rt_str_len %s", "mp_rt_str_len"),
        (LOW, "%1: rawptr<u8> = ptr.add %p, %i", "expected `i64`"),
    ];
    for (head, line, fragment) in cases {
        let line = line.replace("%as2", "Array<m.TPair> zero");
        let end = if line.contains("panic") { "unreachable" } else { "ret" };
        refuse(&with(head, &format!("  {line}\n  {end}")), "MPS0031", fragment);
    }
}

#[test]
fn broken_structure() {
    let cases = [
        (KERNEL, "%1: i32 = call fn=@inc %i\n ret", "another domain"),
        (KERNEL, "call fn=@kernel %b, %u, %p\n ret", "can only be launched"),
        (KERNEL, "%1: i32 = arr.get %i, %i\n ret", "`arr.get` stands only in host code"),
        (HOST, "%1: u32 = gpu.global_id dim=0\n ret", "stands only in device code"),
        (
            HOST,
            "%1: rawptr<u8> = stack.slot size=8 align=8\n ret",
            "stands only in lowered host code",
        ),
        (LOW, "%1: i32 = arr.len %s\n ret", "stands only in host code that is not lowered"),
        (KERNEL, "%1: f32 = vec.extract lane=3 %v\n ret", "`lane=3`, but there are 3"),
        (KERNEL, "%1: f32 = f.add [unchecked] %f, %f\n ret", "accesses of device memory"),
        (
            KERNEL,
            "%2: m.TPair = struct.new %f, %i\n %1: f32 = leaf.get leaf=0 %2\n ret",
            "parameter",
        ),
        (KERNEL, "br entry", "the first block has no predecessors"),
        (KERNEL, "switch %i, [1: next], [1: next], else next\nnext:\n ret", "case 1 stands twice"),
        (KERNEL, "%2: i32 = i.add %1, %i\n %1: i32 = i.add %i, %i\n ret", "does not dominate"),
        (
            KERNEL,
            "cbr %c, a, z\na:\n %1: i32 = i.add %i, %i\n br z\nz:\n %2: i32 = i.add %1, %i\n ret",
            "the definition of %",
        ),
        (
            KERNEL,
            "cbr %c, a, z\na:\n br z\nz:\n %1: i32 = phi [a: %i]\n ret",
            "predecessor bb0 has no arm",
        ),
        (
            KERNEL,
            "br a\na:\n %1: i32 = phi [entry: %i], [z: %i]\n br z\nz:\n ret",
            "2 arms for 1 predecessors",
        ),
        (KERNEL, "br a\na:\n %1: i32 = phi [entry: %i], [entry: %i]\n ret", "has two arms"),
        (KERNEL, "br a\na:\n gpu.barrier\n %1: i32 = phi [entry: %i]\n ret", "phis come before"),
        (HOST, "%1: i32 = call fn=@inc bits=1 %i\n ret", "mean nothing"),
        (HOST, "%1: m.TShape = enum.new variant=3\n ret", "`variant=3`, but there are 3"),
        (LOW, "%1: rawptr<u8> = stack.slot size=0 align=8\n ret", "1 byte"),
        (LOW, "%1: rawptr<u8> = stack.slot size=8 align=3\n ret", "power of two"),
        (LOW, "%1: rawptr<u8> = typeinfo.addr type=Str object=1\n ret", "no description"),
        (LOW, "%1: rawptr<u8> = fn.addr fn=@inc\n ret", "no lowered host function"),
        (
            LOW,
            "%1: m.TPair = struct.new f32 zero, i32 1\n mem.store rawptr<u8> zero, %1\n ret",
            "takes single values",
        ),
        (LOW, "%1: m.TPair = mem.load rawptr<u8> zero\n ret", "gives one value"),
        ("lowhost fn @t(%p: m.TPair)", "ret", "is several values"),
        ("lowhost fn @t(%p: TOption<i32>)", "ret", "has no aggregates"),
        ("fn @t(%p: i128)", "ret", "`i128` is not supported"),
        ("fn @t(%p: vec<f32, 4>)", "ret", "type of device code"),
        ("gpu fn @t(%p: unit)", "ret", "parameter 0 has type `unit`"),
        ("gpu fn @t() -> i32", "ret i32 1", "a kernel returns `unit`"),
        ("gpu fn @t() workgroup(64, 0, 1)", "ret", "workgroup size is at least 1"),
    ];
    for (head, body, fragment) in cases {
        refuse(&with(head, body), "MPS0032", fragment);
    }
    refuse(&with(KERNEL, "%1: u32 = gpu.global_id dim=3\n ret"), "MPS0001", "`dim=3`");
    for (body, fragment) in [
        ("ret %i", "`ret` of a `unit` function"),
        ("cbr %i, a, a\na:\n ret", "expected `bool`"),
        ("switch %f, else a\na:\n ret", "`switch` of a value of type `f32`"),
        ("br a\na:\n %1: i32 = phi [entry: %u]\n ret", "the arm of bb0 has type `u32`"),
    ] {
        refuse(&with(KERNEL, body), "MPS0031", fragment);
    }
}

#[test]
fn types_that_would_explode() {
    refuse(
        "value struct TA { a: TB }\nvalue struct TB { a: TOption<TA> }",
        "MPS0032",
        "contain itself",
    );
    let mut chain = String::from("value struct T0 { a: f32 }\n");
    for n in 1..5000 {
        chain.push_str(&format!("value struct T{n} {{ a: T{}, b: unit }}\n", n - 1));
    }
    refuse(&chain, "MPS0032", "nests more than");
    let mut doubling = String::from("value struct T0 { a: unit }\n");
    for n in 1..60 {
        doubling.push_str(&format!("value struct T{n} {{ a: T{0}, b: T{0} }}\n", n - 1));
    }
    refuse(&doubling, "MPS0032", "members in all");
    refuse("value enum TA { B { x: i32 } }", "MPS0032", "has a variant with fields");
    // A heap struct may refer to itself.
    accept("heap struct TA { a: TA, b: TOption<TA> }");
}

#[test]
fn modules_made_by_hand() {
    let base = read(&with(KERNEL, "%1: i32 = i.add %i, %i\n %2: i32 = i.sub %1, %i\n ret"));
    let last = base.fns.len() - 1;
    type Change = fn(&mut magpie_mpir::MpirFn);
    let changes: [(&str, Change); 10] = [
        ("the result of", |f| {
            let i = f.blocks[0].insts[0];
            f.inst_mut(i).ty = magpie_types::fixed::U32;
        }),
        ("does not exist", |f| {
            let i = f.blocks[0].insts[0];
            f.args_mut(i)[0] = Value(9999);
        }),
        ("stands in two places", |f| {
            let i = f.blocks[0].insts[0];
            f.blocks[0].insts.push(i);
        }),
        ("no block defines", |f| _ = f.blocks[0].insts.remove(0)),
        ("does not exist", |f| f.blocks[0].term = Terminator::Br(Block(7))),
        ("at least one block", |f| f.blocks.clear()),
        ("is not the value", |f| f.params[0].0 = Value(1)),
        ("names and places", |f| _ = f.param_names.pop()),
        ("bits that the op does not use", |f| {
            let i = f.blocks[0].insts[0];
            f.inst_mut(i).imm = 1;
        }),
        ("names nothing", |f| {
            let i = f.blocks[0].insts[0];
            let args = f.args(i).to_vec();
            f.rewrite(i, Op::Call, &args, 77);
        }),
    ];
    for (fragment, change) in changes {
        let mut m = base.clone();
        change(&mut m.fns[last]);
        let found = errors(&m, Stage::Core);
        assert!(found.iter().any(|d| d.message.contains(fragment)), "{fragment}: {found:#?}");
    }
}

#[test]
fn types_and_texts_that_do_not_exist() {
    let nowhere = magpie_types::TypeId(7777);
    let base = read(&with(HOST, "%1: i32 = call fn=@inc %i\n ret"));
    let mut m = base.clone();
    m.fns[0].params[0].1 = nowhere;
    assert!(errors(&m, Stage::Core)[0].message.contains("type 7777 does not exist"));
    let mut m = base.clone();
    m.types.intern(magpie_types::TypeKind::Array(nowhere));
    assert!(errors(&m, Stage::Core)[0].message.contains("type 7777 does not exist"));
    let mut m = base.clone();
    let f = m.fns.last_mut().unwrap();
    f.locals[0].def = magpie_mpir::ValueDef::Const(magpie_mpir::Const::Str(magpie_mpir::StrId(99)));
    assert!(errors(&m, Stage::Core).iter().any(|d| d.message.contains("has the payload")));
}

#[test]
fn several_errors_in_one_run() {
    let body = "%1: i32 = i.add %i, %u\n".to_string()
        + "%2: u32 = gpu.global_id dim=5\n %3: f32 = f.add %i, %f\n ret";
    assert_eq!(errors(&read(&with(KERNEL, &body)), Stage::Core).len(), 3);
    let many = (0..1000).map(|n| format!(" %{n}: i32 = i.add %i, %u\n")).collect::<String>();
    assert_eq!(errors(&read(&with(KERNEL, &(many + " ret"))), Stage::Core).len(), 50);
}

#[test]
fn large_functions_take_linear_time() {
    let mut body = String::new();
    for n in 0..100_000 {
        let before = if n == 0 { "%i".to_string() } else { format!("%v{}", n - 1) };
        body.push_str(&format!("  %v{n}: i32 = i.add {before}, i32 {n}\n"));
        if n % 3 == 0 {
            body.push_str(&format!("  cbr %c, b{n}, x\nb{n}:\n"));
        }
    }
    body.push_str("  br x\nx:\n  ret");
    accept(&with(KERNEL, &body));
}

#[test]
fn vectors_of_the_host_fill_registers() {
    let refused = |head: &str, body: &str, fragment: &str| {
        let text = format!("lowhost fn @f({head} {{\nb:\n{body}  ret\n}}\n");
        let found = errors(&read(&text), Stage::Core);
        assert!(found.iter().any(|d| d.message.contains(fragment)), "{text}\n{found:?}");
    };
    refused("%x: i32)", "  %1: vec<i32, 2> = vec.splat %x\n", "does not fill registers");
    refused("%x: vec<i32, 4>)", "", "is a vector of host code");
    accept("lowhost fn @f(%x: i32) {\nb:\n  %1: vec<i32, 8> = vec.splat %x\n  ret\n}\n");
    let device = "device fn @f(%x: vec<i32, 8>) {\nb:\n  ret\n}\n";
    let found = errors(&read(device), Stage::Core);
    assert!(found[0].message.contains("no type of device code"), "{found:?}");
}
