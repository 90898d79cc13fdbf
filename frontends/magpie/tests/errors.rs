//! What is refused: each error once, with its code, its line and a way out.

mod support;

use support::*;

/// The diagnostics of a text, as `CODE line`; each must say how to repair it.
#[track_caller]
fn assert_errors(text: &str, expected: &[&str]) {
    let module = parse(text);
    let messages = messages(&module, text).join("\n");
    assert!(!messages.contains("NO HELP"), "{messages}\n{text}");
    assert_eq!(codes(text), expected, "\n{messages}\n{text}");
}

/// The errors of one function's instructions; the first line is 8.
#[track_caller]
fn assert_instr_errors(instrs: &str, expected: &[&str]) {
    assert_errors(&function(instrs), expected);
}

/// The only message of a text.
#[track_caller]
fn message(text: &str) -> String {
    let messages = messages(&parse(text), text);
    assert_eq!(messages.len(), 1, "{messages:?}\n{text}");
    messages.into_iter().next().unwrap()
}

#[track_caller]
fn assert_message(instrs: &str, parts: &[&str]) {
    let message = message(&function(instrs));
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn programs_of_the_file_tests() {
    for (name, text) in programs() {
        let expected: &[&str] = match name.as_str() {
            "e40_syntax" => &["MPP0002 10"],
            "e55_missing_terminator" => &["MPP0002 11"],
            "syntax" => &["MPP0002 15", "MPP0002 22", "MPP0002 24", "MPT2001 31", "MPP0002 32"],
            _ => &[],
        };
        assert_eq!(codes(&text), expected, "{name}");
    }
}

#[test]
fn bad_characters() {
    assert_instr_errors("  %x: i32 = const.i32 1 $", &["MPP0001 8"]);
    assert_instr_errors("  %x: i32 = $ const.i32 1\n  %y: i32 = ? 1", &["MPP0001 8", "MPP0001 9"]);
    assert_instr_errors("  // no comment at all", &["MPP0001 8"]);
    assert_instr_errors("  % x: i32 = const.i32 1", &["MPP0001 8"]);
    assert_instr_errors("  %x: i32 = i.add { lhs=\u{2212}1, rhs=%y }", &["MPP0001 8"]);
    assert_instr_errors("  panic { msg=“curly” }", &["MPP0001 8"]);
    assert_message("  %x: i32 = 1 # 2", &["expected an operation", "`1`"]);
    assert_message("  # comment", &["unexpected character `#`", "start with `;`"]);
}

#[test]
fn strings() {
    assert_instr_errors("  panic { msg=\"open }\n  %x: i32 = foo", &["MPP0002 8", "MPP0002 9"]);
    assert_instr_errors(r#"  panic { msg="\q and \u{d800}" }"#, &["MPP0002 8"]);
    assert_message(r#"  panic { msg="\q" }"#, &["`\\q` is not an escape", "\\u{HEX}"]);
    assert_message(r#"  panic { msg="\u{110000}" }"#, &["`\\u{110000}`", "Unicode"]);
    assert_message("  panic { msg=\"abc\n", &["does not end on its line"]);
}

#[test]
fn numbers() {
    let wide = "9".repeat(60);
    assert_instr_errors(&format!("  %x: i64 = const.i64 {wide}"), &["MPT2015 8"]);
    assert_instr_errors(&format!("  %x: f32 = const.f32 {wide}"), &[]);
    assert_instr_errors(&format!("  %x: f32 = const.f32 0x{wide}"), &["MPT2015 8"]);
    assert_instr_errors("  %x: i64 = const.i64 0x", &["MPP0002 8"]);
    assert_instr_errors("  %x: i64 = const.i64 12abc", &["MPP0002 8"]);
    assert_instr_errors("  %x: i64 = const.i64", &["MPP0002 8"]);
    assert_instr_errors("  %x: ptr = gpu.shared<-1, f32>", &["MPP0002 8"]);
    assert_instr_errors("  %x: ptr = gpu.shared<1.5, f32>", &["MPP0002 8"]);
    assert_instr_errors("  %x: ptr = gpu.shared<99999999999, f32>", &[]);
    assert_instr_errors(&format!("  %x: ptr = gpu.shared<{wide}, f32>"), &["MPP0002 8"]);
    let clause = |size: &str| {
        module(&format!("gpu fn @k() -> unit\n target(spv)\n workgroup({size})\n{{ bb0: ret }}"))
    };
    assert_errors(&clause("-1, 1, 1"), &["MPG_CORE_1302 8"]);
    assert_errors(&clause("1, 99999999999, 1"), &["MPG_CORE_1302 8"]);
    assert_errors(&clause("1, 1"), &["MPP0002 8"]);
    assert_errors(&clause("x, 1, 1"), &["MPP0002 8"]);
}

#[test]
fn header() {
    let after = "fn @main() -> unit { bb0: ret }\n";
    let error =
        |header: &str, expected: &[&str]| assert_errors(&format!("{header}\n{after}"), expected);
    error("module m\nexports { }\nimports { }\ndigest 0", &[]);
    error("exports { }\nmodule m\nimports { }\ndigest 0", &["MPP0002 1"]);
    error("module m\nimports { }\nexports { }\ndigest 0", &["MPP0002 2"]);
    error("module m\nexports { }\nimports { }", &["MPP0002 4"]);
    error("module m\nexports { }\nexports { }\nimports { }\ndigest 0", &["MPP0002 3"]);
    error("module m\nexports { }\nimports { }\ndigest", &["MPP0002 4"]);
    error("module m\nexports { }\nimports { }\ndigest xyz", &["MPP0002 4"]);
    error("module\nexports { }\nimports { }\ndigest 0", &["MPP0002 1"]);
    error("module fn\nexports { }\nimports { }\ndigest 0", &["MPP0002 1"]);
    error("module fn.gpu\nexports { }\nimports { }\ndigest 0", &[]);
    error("module m\nexports { @a @b }\nimports { }\ndigest 0", &["MPP0002 2"]);
    error("module m\nexports { @a, }\nimports { }\ndigest 0", &["MPP0002 2"]);
    error("module m\nexports { main }\nimports { }\ndigest 0", &["MPP0002 2"]);
    error("module m\nexports { }\nimports { a::{x}, b }\ndigest 0", &["MPP0002 3"]);
    error("", &["MPP0002 2"]);
    assert_errors("", &["MPP0002 1"]);
    assert_errors("hello world, this is no program", &["MPP0002 1"]);
    assert_errors("; nothing but a comment\n", &["MPP0002 2"]);
}

#[test]
fn one_error_a_line_and_no_cascades() {
    assert_instr_errors(
        "  %a: i32 = i.add { lhs=%x rhs=%y }
  %b: i32 = i.add { lhs=%x, rhs= }
  %c: i32 i.add { lhs=%x, rhs=%y }
  %d i32 = i.add { lhs=%x, rhs=%y }
  %e: i32 = nonsense { a=%x, b=[%y, %z] }
  %f: i32 = i.add { lhs=%x, rhs=%y
  %g: i32 = i.add lhs=%x, rhs=%y }
  %h: i32 = i.add { lhs=%x, rhs=%y }
  ) ) ( [
  %i: Array<i32 = arr.new { v0=%x }
  %j: = i.add { lhs=%x, rhs=%y }
  call @f
  call f { }
  br bb0 bb1",
        &[
            "MPP0002 8",
            "MPP0002 9",
            "MPP0002 10",
            "MPP0002 11",
            "MPP0002 12",
            "MPP0002 13",
            "MPP0002 14",
            "MPP0002 16",
            "MPP0002 17",
            "MPP0002 18",
            "MPP0002 19",
            "MPP0002 20",
            "MPP0002 21",
        ],
    );
}

#[test]
fn errors_in_arguments_over_several_lines() {
    let launch =
        |args: &str| format!("  %r: TR = gpu.launch {{\n{args}\n  }}\n  %x: i32 = const.i32 1");
    let good = "    device=%d,\n    kernel=@k,\n    grid=[%x, %x, %x],\n    block=[%x, %x, %x],\n    args=[%a]";
    assert_instr_errors(&launch(good), &[]);
    assert_instr_errors(&launch(&good.replace("%d,", "%d")), &["MPP0002 9"]);
    assert_instr_errors(&launch(&good.replace("=@k", "@k")), &["MPP0002 10"]);
    assert_instr_errors(&launch(&good.replace("grid=[%x, ", "grid=[%x ")), &["MPP0002 11"]);
    assert_instr_errors(&launch(&good.replace("kernel=@k", "kernel=%k")), &["MPP0002 8"]);
    assert_instr_errors(&launch(&good.replace("kernel", "colonel")), &["MPP0002 8"]);
    assert_instr_errors(&launch(&good.replace("grid=[%x, ", "grid=[")), &["MPP0002 8"]);
    assert_instr_errors(&launch(&good.replace("args=[%a]", "args=%a")), &["MPP0002 8"]);
    assert_instr_errors(&launch(&good.replace("args=[%a]", "args=[@f]")), &["MPS0016 8"]);
    assert_instr_errors(
        &launch(&good.replace("args=[%a]", "args=[%a], fallback=gpu")),
        &["MPP0002 8"],
    );
    assert_instr_errors(&launch(&good.replace("device=%d,", "")), &["MPP0002 8"]);
}

#[test]
fn arguments_of_operations() {
    assert_message(
        "  %x: i32 = i.add { lhs=%a, rsh=%b }",
        &["8:13", "`i.add` has no argument `rsh`", "did you mean `rhs`?", "takes `lhs` and `rhs`"],
    );
    assert_message(
        "  %x: i32 = i.add { lhs=%a }",
        &["`i.add` needs `rhs`", "takes `lhs` and `rhs`"],
    );
    assert_message("  %x: i32 = i.add", &["needs `lhs`, `rhs`"]);
    assert_message("  %x: i32 = i.add { lhs=%a, b=%b }", &["mixes the spellings `lhs` and `b`"]);
    assert_message("  %x: i32 = i.add { a=%a, a=%b }", &["`a` is given twice"]);
    assert_message("  %x: i32 = i.add { lhs=%a, a=%b }", &["`a` is given twice"]);
    assert_message("  %x: i32 = i.add { lhs=%a, rhs=%b, c=%c, d=%d }", &["has no argument `c`"]);
    assert_message("  %x: i32 = i.add { lhs=1, rhs=%b }", &["expected a value", "const.i32 1"]);
    assert_message("  %x: f32 = f.add { lhs=1.5, rhs=%b }", &["const.f32 1.5"]);
    assert_message("  %x: i32 = i.add { lhs=foo, rhs=%b }", &["`lhs` takes a value"]);
    assert_message("  %x: i32 = i.add { lhs=[%a], rhs=%b }", &["`lhs` takes a value"]);
    assert_message("  %x: i32 = i.add { lhs: %a, rhs=%b }", &["expected `=`", "`key=value`"]);
    assert_message(
        "  %x: i32 = i.add { lhs=%a, rhs=%b, }",
        &["a comma cannot stand before `}`", "remove"],
    );
    assert_message("  gpu.barrier { x=%a }", &["takes no arguments"]);
    assert_message("  %x: i32 = getfield { obj=%a, field=%f }", &["`field` takes a name"]);
    assert_message("  %x: i32 = enum.payload<A> { v=%a, fild=x }", &["`field` (optional)"]);
    assert_message("  %x: Array<i32> = arr.new<i32> { }", &["`arr.new` needs `cap`"]);
    assert_message(
        "  %x: Array<i32> = arr.new { v0=%a, v2=%b }",
        &["`v2` is not the next element", "without gaps"],
    );
    assert_message(
        "  %x: Array<i32> = arr.new { v0=%a, v0=%b }",
        &["`v0` is not the next element"],
    );
    assert_message("  %x: Array<i32> = arr.new { v00=%a }", &["no argument `v00`"]);
    assert_message("  %x: Array<i32> = arr.new { v0=x }", &["`v0` takes a value"]);
    assert_message(
        "  call @f { a=%a, b=%b, c=%c, d=%d, e=%e, f=%f, g=%g, h=%h, i=%i, a=%j }",
        &["`a` is given twice"],
    );
    assert_message("  @f { x=foo }", &["`x` takes a value", "`%name`"]);
    assert_instr_errors("  @f { x=@g, y=[%a], z=[@h] }", &[]);
    assert_instr_errors("  %x: Array<i32> = arr.map { arr=%a, fn=@f }", &["MPS0016 8"]);
    assert_instr_errors("  %x: TP = new TP { a=@f }", &["MPS0016 8"]);
    assert_instr_errors("  %x: i32 = call.indirect %f { args=[@f] }", &["MPS0016 8"]);
    assert_instr_errors("  %x: i32 = call.indirect %f { args=[%f, %g] }", &[]);
}

#[test]
fn type_arguments_of_operations() {
    for good in [
        "%x: i32 = cast<i64, i32> { v=%a }",
        "%x: ptr = gpu.shared<16, f32>",
        "%x: ptr = gpu.shared<@N, f32>",
        "%x: ptr = gpu.shared<a.b.@N, f32>",
        "%x: TE = enum.new<A> { }",
        "%x: TE = enum.new<TE, 0> { }",
        "%x: i32 = mlx.nn.@relu<f32, i32> { x=%a }",
        "%x: i32 = gpu.metal.imageblock { a=%a, b=x }",
        "%x: i32 = gpu.metal.tile_memory<i32>",
    ] {
        assert_instr_errors(&format!("  {good}"), &[]);
    }
    for (bad, part) in [
        ("%x: i32 = cast<i64> { v=%a }", "`,`"),
        ("%x: i32 = cast<i64, i32, i8> { v=%a }", "with two types"),
        ("%x: i32 = cast { v=%a }", "with two types"),
        ("%x: i32 = i.add<i32> { lhs=%a, rhs=%b }", "without `<` and `>`"),
        ("%x: f32 = gpu.buffer_load { buf=%a, idx=%b }", "with one type"),
        ("%x: ptr = gpu.shared<f32>", "`,`"),
        ("%x: ptr = gpu.shared", "a length and a type"),
        ("%x: TE = enum.is { v=%a }", "the name of a variant"),
        ("%x: TE = enum.is<a.b> { v=%a }", "the name of a variant"),
        ("%x: TE = enum.new<Array<i32>> { v=%a }", "`enum.new<Type, N>`"),
        ("%x: TE = enum.new<TE, A> { v=%a }", "the number of a variant"),
        ("%x: TE = enum.new { v=%a }", "`enum.new<Variant>`"),
    ] {
        assert_message(&format!("  {bad}"), &[part]);
    }
}

#[test]
fn unknown_operations() {
    assert_message(
        "  %x: i32 = i.ad { lhs=%a, rhs=%b }",
        &["unknown operation `i.ad`", "did you mean `i.add`?"],
    );
    assert_message(
        "  %x: f32 = gpu.bufer_load<f32> { buf=%a, idx=%b }",
        &["did you mean `gpu.buffer_load`?"],
    );
    assert_message("  helper { x=%a }", &["unknown operation `helper`", "call @helper"]);
    assert_message("  retrun %x", &["unknown operation `retrun`"]);
    assert_message("  %x: i32 = ret", &["`ret` ends a block and has no result"]);
    assert_message("  %x: i32 = %y", &["expected an operation"]);
    assert_message("  %x: i32 = call_void @f { }", &["`call_void` has no result", "write `call`"]);
    assert_message(
        "  %x = i.add { lhs=%a, rhs=%b }",
        &["expected `:` and a type", "`%name: T = operation`"],
    );
    assert_message("  call @f", &["expected the arguments of the call", "`{ }`"]);
}

#[test]
fn phis_and_tries() {
    for good in [
        "phi i32 { [bb0: %a], [bb1: %b] }",
        "phi i32 { [bb0: %a] [bb1: %b] }",
        "phi { [bb0: %a.ok], [bb1: %b.err] }",
        "phi i32 [bb0: %a] [bb1: const.i32 1]",
        "phi [bb0: %a.err], [bb0: %b . err]",
        "try %r bb_err",
        "try @f { a=%x }",
        "try a.b.@f<i32> { }",
    ] {
        assert_instr_errors(&format!("  %x: i32 = {good}"), &[]);
    }
    for bad in [
        "phi i32 { }",
        "phi i32",
        "phi i32 { [bb0: %a], }",
        "phi i32 { [bb0 %a] }",
        "phi i32 { [entry: %a] }",
        "phi i32 { [bb0: %a.error] }",
        "phi i32 { [bb0: const.i32 1.err] }",
        "phi i32 { [bb0: %a]",
        "phi i32 { [bb0: \"s\"] }",
        "try %r",
        "try %r err",
        "try f { }",
        "try @f",
    ] {
        assert_instr_errors(&format!("  %x: i32 = {bad}"), &["MPP0002 8"]);
    }
}

#[test]
fn blocks() {
    let error = |body: &str, expected: &[&str]| {
        assert_errors(
            &module(&format!(
                "fn @main() -> unit {{\n{body}\n}}\nfn @g() -> unit {{ bb0: ret }}\n"
            )),
            expected,
        );
    };
    error("bb0:\n  ret", &[]);
    error("", &["MPP0002 6"]);
    error("bb0:", &["MPP0002 8"]);
    error("bb0:\nbb1:\n  ret", &["MPP0002 8"]);
    error("bb0:\n  %x: i32 = const.i32 1\nbb1:\n  gpu.barrier", &["MPP0002 9", "MPP0002 11"]);
    error("  ret", &["MPP0002 7"]);
    error("entry:\n  ret", &["MPP0002 7"]);
    error("bb0\n  ret", &["MPP0002 7"]);
    error("bb0:\n  ret\n  gpu.barrier\n  gpu.barrier\nbb1:\n  ret", &["MPP0002 9"]);
    error("bb0:\n  ret\n  %x: i32 = const.i32 1", &["MPP0002 9"]);
    error("bb0:\n  ret 5", &["MPP0002 8"]);
    error("bb0:\n  ret foo", &["MPP0002 8"]);
    error("bb0:\n  br", &["MPP0002 8"]);
    error("bb0:\n  br next", &["MPP0002 8"]);
    error("bb0:\n  cbr %c bb0", &["MPP0002 8"]);
    error("bb0:\n  switch %x { case 0 -> bb0 }", &["MPP0002 8"]);
    error("bb0:\n  switch %x {\n    case 0 bb0\n  } else bb0", &["MPP0002 9"]);
    error("bb0:\n  switch %x { default -> bb0 } else bb0", &["MPP0002 8"]);
    error("bb0:\n  unsafe { }\n  ret", &["MPP0002 8"]);
    error("bb0:\n  unsafe {\n    gpu.barrier\n  ret", &["MPP0002 8"]);
    error("bb0:\n  unsafe {\n    gpu.barrier\n    ret\n  }", &["MPP0002 8"]);
    error("bb0:\n  unsafe {\n    gpu.barrier\nbb1:\n  ret", &["MPP0002 8"]);
    error("bb0:\n  br.@f { }\n  ret.x.@f { }\n  ret", &[]);
}

#[test]
fn bodies_that_are_not_closed() {
    assert_errors(
        &module("fn @f() -> unit {\nbb0:\n  ret\n\nfn @g() -> unit {\nbb0:\n  ret x\n}\n"),
        &["MPP0002 8", "MPP0002 12"],
    );
    assert_errors(&module("fn @f() -> unit {\nbb0:\n  gpu.barrier\n"), &["MPP0002 8"]);
    assert_errors(&module("fn @f() -> unit {"), &["MPP0002 6"]);
    assert_errors(&module("fn @f() -> unit {\nbb0:\n  %x: i32 = i.add { lhs=%a,"), &["MPP0002 8"]);
    assert_errors(
        &module("fn @f() -> unit {\nbb0:\n  ret\n}\n}\nsig TF() -> i32"),
        &["MPP0002 10"],
    );
    assert_errors(
        &module(
            "fn @f() -> unit {\nbb0:\n  %x: i32 = i.neg { } }\n  ret\n}\nsig TF() -> i32 sig T() -> i32",
        ),
        &["MPP0002 8", "MPP0002 11"],
    );
}

#[test]
fn declarations() {
    let error = |decl: &str, expected: &[&str]| {
        assert_errors(
            &module(&format!("{decl}\nfn @after() -> unit {{\nbb0:\n  ret\n}}\n")),
            expected,
        );
    };
    error("fun @f() -> unit { bb0: ret }", &["MPP0002 6"]);
    error("fn f() -> unit { bb0: ret }", &["MPP0002 6"]);
    error("fn @f(%a) -> unit { bb0: ret }", &["MPP0002 6"]);
    error("fn @f(a: i32) -> unit { bb0: ret }", &["MPP0002 6"]);
    error("fn @f(%a: i32 %b: i32) -> unit { bb0: ret }", &["MPP0002 6"]);
    error("fn @f(%a: i32,) -> unit { bb0: ret }", &["MPP0002 6"]);
    error("fn @f() { bb0: ret }", &["MPP0002 6"]);
    error("fn @f() -> unit\nbb0:\n  ret\n}", &["MPP0002 6"]);
    error(
        "fn @f() -> unit { bb0: retrun }\nfn @g( -> unit {\nbb0:\n  oops\n  ret\n}",
        &["MPP0002 6", "MPP0002 7", "MPP0002 9"],
    );
    error("async gpu fn @f() -> unit target(spv) { bb0: ret }", &["MPP0002 6"]);
    error("gpu fn @f() -> unit { bb0: ret }", &["MPP0002 6"]);
    error("gpu fn @f(\n) -> unit\nworkgroup(1, 1, 1) { bb0: ret }", &["MPP0002 6"]);
    error("gpu fn @f() -> unit target(spv) target(spv) { bb0: ret }", &["MPP0002 6"]);
    error("gpu fn @f() -> unit target(spv) requires() { bb0: ret }", &["MPP0002 6"]);
    error("gpu fn @f() -> unit target(spv) requires(a, b.c,) { bb0: ret }", &["MPP0002 6"]);
    error("fn @f() -> unit target(spv) { bb0: ret }", &["MPP0002 6"]);
    error("fn @f() -> unit meta { used { } } { bb0: ret }", &["MPP0002 6"]);
    error("fn @f() -> unit meta { cost { a=b } } { bb0: ret }", &["MPP0002 6"]);
    error("fn @f() -> unit meta { uses { }\nuses { @f } } { bb0: ret }", &["MPP0002 7"]);
    error("heap struct Point { }", &["MPP0002 6"]);
    error("heap TP { }", &["MPP0002 6"]);
    error(
        "heap struct TP {\n  field x i32\n  field y: i32\n  z: i32\n  field: i32\n}",
        &["MPP0002 7", "MPP0002 9", "MPP0002 10"],
    );
    error("heap struct TP {\n  field x: i32\n", &["MPP0002 7"]);
    error(
        "heap enum TE {\n  variant A\n  variant fn { }\n  variant B { x: i32 }\n  variant C { }\n}",
        &["MPP0002 7", "MPP0002 8", "MPP0002 9"],
    );
    error("heap struct TP<T> { }", &["MPP0002 6"]);
    error("heap struct TP<T: any> { }", &["MPP0002 6"]);
    error("heap struct TP<fn: type> { }", &["MPP0002 6"]);
    error("global LIMIT: i64 = const.i64 1", &["MPP0002 6"]);
    error("global @LIMIT: i64 = 1", &["MPP0002 6"]);
    error("sig F() -> i32", &["MPP0002 6"]);
    error("sig TF(%a: i32) -> i32", &["MPP0002 6"]);
    error("impl show for i32 = @f", &["MPP0002 6"]);
    error("impl hash i32 = @f", &["MPP0002 6"]);
    error("impl hash for i32 = f", &["MPP0002 6"]);
    error("extern c module m { }", &["MPP0002 6"]);
    error("extern \"c\" module async { }", &["MPP0002 6"]);
    error(
        "extern \"c\" module m {\n  fn f() -> i32\n  fn @g() -> i32 attrs { returns=owned }\n  @h() -> i32\n}",
        &["MPP0002 7", "MPP0002 8"],
    );
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("{}i32{}", "Array<".repeat(depth), ">".repeat(depth));
    assert_instr_errors(&format!("  %x: {} = call @f {{ }}", nested(60)), &[]);
    assert_instr_errors(
        &format!("  %x: {} = call @f {{ }}\n  oops", nested(70)),
        &["MPP0003 8", "MPP0002 9"],
    );
}

#[test]
fn reserved_words_are_names_where_a_sigil_or_a_dot_tells() {
    assert_errors(
        &module(
            "value struct TV { field module: i32 field fn: i32 }
fn @fn(%module: i32, %gpu: i32) -> i32 {
bb0:
  %float: i32 = const.i32 1
  %x: i32 = gpu.host.module.@async { fn=%module, else=%gpu }
  %y: i32 = getfield { obj=%v, field=module }
  %z: i32 = gpu.@unsafe { }
  fn.@f { }
  ret %x
}",
        ),
        &[],
    );
}

#[test]
fn garbage_has_few_errors() {
    let text = "$ % ^ & @ ! ~\n".repeat(100_000);
    let module = parse(&text);
    assert!(module.diagnostics.len() <= 1000);
    let text = function(&"  oops\n".repeat(100_000));
    assert_eq!(parse(&text).diagnostics.len(), 1000);
}

#[test]
fn spans_of_missing_things_end_the_line_before() {
    let text = function("  %x: i32 = i.add { lhs=%a, rhs=%b\n  %y: i32 = const.i32 1");
    let message = message(&text);
    let expected = "8:35 MPP0002 expected `,` or `}` before the end of the line";
    assert!(message.starts_with(expected), "{message}");
}
