//! The canonical form: idempotent, and the same program.

mod support;

use magpie_lang::{check_digest, format_module, format_module_with_meta, module_digest};
use support::dump::dump;
use support::*;

fn format(text: &str) -> String {
    format_module(&parse_ok(text), text).unwrap()
}

/// Formats, checks the laws, and gives the result.
fn checked(text: &str) -> String {
    let before = parse_ok(text);
    let once = format_module(&before, text).unwrap();
    let after = parse_ok(&once);
    assert_eq!(format_module(&after, &once).unwrap(), once, "not idempotent\n{text}");
    assert_eq!(dump(&after, &once), dump(&before, text), "not the same program\n{text}\n{once}");
    assert!(check_digest(&after, &once).is_none(), "wrong digest\n{once}");
    assert!(after.diagnostics.is_empty());
    once
}

/// The lines of a formatted module behind its header.
fn body_of(formatted: &str) -> &str {
    formatted.splitn(6, '\n').nth(5).unwrap()
}

#[test]
fn every_program_keeps_its_meaning() {
    let mut formatted = 0;
    for (name, text) in programs() {
        if !parse(&text).has_errors() {
            println!("{name}");
            checked(&text);
            formatted += 1;
        }
    }
    assert!(formatted > 100);
}

#[test]
fn modules_with_errors_are_not_formatted() {
    let text = function("  %x: i32 = i.add { lhs=%a rhs=%b }");
    let module = parse(&text);
    assert!(format_module(&module, &text).is_none());
    assert!(module_digest(&module, &text).is_none());
    assert!(check_digest(&module, &text).is_none());
}

#[test]
fn header() {
    let text = "; top\nmodule  a . b\nexports{TZ,@b,@a}imports { z.q, std.io::{TA,@println}, a.a } digest 00\n";
    let formatted = checked(text);
    let digest = module_digest(&parse_ok(text), text).unwrap();
    assert_eq!(
        formatted,
        format!(
            "; top\nmodule a.b\nexports {{ @a, @b, TZ }}\nimports {{ a.a, std.io::{{@println, TA}}, z.q }}\ndigest \"{digest}\"\n"
        )
    );
}

#[test]
fn the_digest_is_that_of_the_text_without_its_line() {
    let text = module("sig TF(i32) -> i32\n");
    let formatted = checked(&text);
    let (line, digest) = formatted
        .lines()
        .find_map(|line| Some((line, line.strip_prefix("digest \"")?.strip_suffix('"')?)))
        .unwrap();
    let without = formatted.replace(&format!("{line}\n"), "");
    assert_eq!(digest, blake3::hash(without.as_bytes()).to_hex().as_str());
}

#[test]
fn digests_are_checked_unless_they_are_placeholders() {
    let with = |digest: &str| {
        let text = format!("module m\nexports {{ }}\nimports {{ }}\ndigest {digest}\n");
        let module = parse_ok(&text);
        check_digest(&module, &text).map(|d| (d.code.as_str(), d.is_error()))
    };
    for placeholder in ["\"\"", "\"0\"", "0000", "\"0000000000000000\""] {
        assert_eq!(with(placeholder), None, "{placeholder}");
    }
    for wrong in ["\"1\"", "ab01", "12", "\"not hex\""] {
        assert_eq!(with(wrong), Some(("MPP0010", false)), "{wrong}");
    }
    let module = parse_ok("module m\nexports {}\nimports {}\ndigest \"\"");
    let digest = module_digest(&module, "module m\nexports {}\nimports {}\ndigest \"\"").unwrap();
    assert_eq!(with(&digest), None);
    assert_eq!(with(&format!("\"{}\"", digest.to_uppercase())), None);
}

#[test]
fn declarations() {
    let text = module(
        r#"heap struct TP<T:type,U : hash>{field x:i32,field  y: Map< Str ,shared TQ >}
heap enum TE{variant A{field a:i32 field b:f64},variant B{}}
value struct TV { }
global @LIMIT:i64=const.i64 0x10
sig TF(borrow Str,i32)->TResult<unit,gpu.TError>
impl eq for TP<i32,i32>=a.b.@same
extern "c" module libm{fn @cos(%x:f64)->f64 fn @get()->rawptr<u8> attrs{returns="owned" x="\u{41}"}}
async fn @f<T:type>(%a:T)->T meta{cost{ops=3}effects{io}uses{std.io.@println,TP}}{bb0: ret %a}
unsafe gpu fn @k(%o:gpu.TBuffer<u32>)->unit requires(recursion,hip.wave64) workgroup(1,2,0x3) target(hip){bb0: ret}
"#,
    );
    assert_eq!(
        body_of(&checked(&text)),
        r#"heap struct TP<T: type, U: hash> {
  field x: i32
  field y: Map<Str, shared TQ>
}

heap enum TE {
  variant A { field a: i32, field b: f64 }
  variant B { }
}

value struct TV {
}

global @LIMIT: i64 = const.i64 16

sig TF(borrow Str, i32) -> TResult<unit, gpu.TError>

impl eq for TP<i32, i32> = a.b.@same

extern "c" module libm {
  fn @cos(%x: f64) -> f64
  fn @get() -> rawptr<u8> attrs { returns="owned" x="A" }
}

async fn @f<T: type>(%a: T) -> T meta { uses { std.io.@println, TP } effects { io } cost { ops=3 } } {
  bb0:
    ret %a
}

unsafe gpu fn @k(%o: gpu.TBuffer<u32>) -> unit target(hip) workgroup(1, 2, 3) requires(recursion, hip.wave64) {
  bb0:
    ret
}
"#
    );
}

/// The canonical form of instructions of a function.
#[track_caller]
fn assert_instrs(instrs: &str, canonical: &[&str]) {
    let text = function(instrs);
    let formatted = checked(&text);
    let lines: Vec<_> = body_of(&formatted).lines().collect();
    let lines: Vec<_> =
        lines[2..lines.len() - 2].iter().map(|line| line.strip_prefix("    ").unwrap()).collect();
    assert_eq!(lines, canonical);
}

#[test]
fn base_forms_replace_the_others() {
    assert_instrs(
        r#"
        %a: i32 = i.add { b=%y, a=%x }
        %b: f32 = f.fma { c=%z, b=%y, a=%x }
        std.io.@println { s="text" }
        %c: i64 = m.@f<i32> { args=[%a, @g] }
        call @g { }
        %d: TR = gpu.launch { kernel=@k, device=%d, args=[%a], fallback=cpu, grid=[%x,%y,%z], block=[%x,%y,%z] }
        %e: TResult<i32, Str> = enum.new<TResult, 1> { v=%s }
        %f: TResult<i32, Str> = enum.new<TResult, 0> { x=%s }
        %g: TOption<i32> = enum.new<TOption, 0> { }
        %h: TOption<i32> = enum.new<TOther, 3> { z=%a, b=%b }
        %i: Array<i32> = arr.new { v1=%b, v0=%a, v2=%c }
        %j: Array<i32> = arr.new<i32> { cap=const.u64 0x10 }
        %k: ptr = gpu.shared<256, f32>
        %l: ptr = gpu.local<@N, f32>
        %m: ptr = gpu.local<N, f32>
        gpu.barrier { }
        %n: Map<i32, i32> = map.new<i32, i32>
        %o: TP = new TP { y=%a, x=%b }
        %p: TCallable<TF> = callable.capture @scale { factor=%a }
        %q: i32 = call.indirect %p { args=[%a] }
        call.indirect %p { z=%a, b=%b }
        %r: i32 = select { then=%a, else=%b, cond=%c }
        %s: i32 = suspend.call %c { }
        %t: i32 = gpu . host . @f<> { }
        %u: rawptr<i64> = ptr.null<i64>
        "#,
        &[
            "%a: i32 = i.add { lhs=%x, rhs=%y }",
            "%b: f32 = f.fma { a=%x, b=%y, c=%z }",
            "call_void std.io.@println { s=const.Str \"text\" }",
            "%c: i64 = call m.@f<i32> { args=[%a, @g] }",
            "call_void @g { }",
            "%d: TR = gpu.launch { args=[%a], block=[%x, %y, %z], device=%d, fallback=cpu, grid=[%x, %y, %z], kernel=@k }",
            "%e: TResult<i32, Str> = enum.new<Err> { e=%s }",
            "%f: TResult<i32, Str> = enum.new<Ok> { v=%s }",
            "%g: TOption<i32> = enum.new<None> { }",
            "%h: TOption<i32> = enum.new<TOther, 3> { z=%a, b=%b }",
            "%i: Array<i32> = arr.new { v0=%a, v1=%b, v2=%c }",
            "%j: Array<i32> = arr.new<i32> { cap=const.u64 16 }",
            "%k: ptr = gpu.shared<256, f32>",
            "%l: ptr = gpu.local<@N, f32>",
            "%m: ptr = gpu.local<@N, f32>",
            "gpu.barrier",
            "%n: Map<i32, i32> = map.new<i32, i32> { }",
            "%o: TP = new TP { x=%b, y=%a }",
            "%p: TCallable<TF> = callable.capture @scale { factor=%a }",
            "%q: i32 = call.indirect %p { args=[%a] }",
            "call_void.indirect %p { z=%a, b=%b }",
            "%r: i32 = select { cond=%c, else=%b, then=%a }",
            "%s: i32 = suspend.call %c { }",
            "%t: i32 = call gpu.host.@f { }",
            "%u: rawptr<i64> = ptr.null<i64>",
        ],
    );
}

#[test]
fn long_lists_of_elements_keep_their_order() {
    let elements: Vec<_> = (0..12).map(|i| format!("v{i}=const.i32 {i}")).collect();
    let mut shuffled = elements.clone();
    shuffled.reverse();
    assert_instrs(
        &format!("%a: Array<i32> = arr.new {{ {} }}", shuffled.join(", ")),
        &[&format!("%a: Array<i32> = arr.new {{ {} }}", elements.join(", "))],
    );
}

#[test]
fn constants_have_their_shortest_exact_form() {
    assert_instrs(
        r#"
        %a: i32 = const.i32 -0x7f
        %b: i32 = const.i32 -0
        %c: f32 = const.f32 1
        %d: f32 = const.f32 0.10000000000000000000001
        %e: f64 = const.f64 1e21
        %f: f64 = const.f64 -0
        %g: f16 = const.f16 0.333333
        %h: bf16 = const.bf16 3.14159f32
        %i: bf16 = const.bf16 3.14159bf16
        %j: f64 = const.f64 123456789012345678901234567890123456789012345678901234567890
        %k: f32 = const.f32 1e99
        %l: i32 = const.i32 1.50
        %m: Str = const.Str "\u{3bb}\"\n\u{7}"
        %n: bool = const.bool true
        %o: unit = const.unit unit
        %p: f32 = const . f32 16777217
        "#,
        &[
            "%a: i32 = const.i32 -127",
            "%b: i32 = const.i32 0",
            "%c: f32 = const.f32 1.0",
            "%d: f32 = const.f32 0.1",
            "%e: f64 = const.f64 1e21",
            "%f: f64 = const.f64 -0.0",
            "%g: f16 = const.f16 0.3333",
            "%h: bf16 = const.bf16 3.14159f32",
            "%i: bf16 = const.bf16 3.14",
            "%j: f64 = const.f64 1.2345678901234567e59",
            "%k: f32 = const.f32 1e99",
            "%l: i32 = const.i32 1.50",
            "%m: Str = const.Str \"λ\\\"\\n\\u{7}\"",
            "%n: bool = const.bool true",
            "%o: unit = const.unit unit",
            "%p: f32 = const.f32 16777216.0",
        ],
    );
}

#[test]
fn arguments_of_this_modules_functions_follow_the_parameters() {
    let text = module(
        "fn @f(%z: i32, %a: i32) -> i32 { bb0: ret %z }
fn @main() -> unit { bb0:
  @f { a=%x, z=%y }
  %r: i32 = try test.m.@f { a=%x, z=%y }
  %c: TCallable<TF> = callable.capture @f { a=%x }
  other.@f { b=%x, a=%y }
  @f { nonsense=%x, a=%y }
  ret }",
    );
    let formatted = checked(&text);
    let lines: Vec<_> = formatted.lines().map(str::trim).collect();
    assert!(lines.contains(&"call_void @f { z=%y, a=%x }"));
    assert!(lines.contains(&"%r: i32 = try test.m.@f { z=%y, a=%x }"));
    assert!(lines.contains(&"%c: TCallable<TF> = callable.capture @f { a=%x }"));
    assert!(lines.contains(&"call_void other.@f { b=%x, a=%y }"));
    assert!(lines.contains(&"call_void @f { nonsense=%x, a=%y }"));
}

#[test]
fn variants_by_number_get_their_names() {
    let text = module(
        "heap enum TE { variant A { } variant B { field z: i32 field a: i32 } }
fn @main() -> unit { bb0:
  %x: TE = enum.new<TE, 1> { v=%p, w=%q }
  %y: TE = enum.new<TE, 0> { }
  ret }",
    );
    let formatted = format(&text);
    assert!(formatted.contains("%x: TE = enum.new<B> { a=%q, z=%p }"), "{formatted}");
    assert!(formatted.contains("%y: TE = enum.new<A> { }"), "{formatted}");
}

#[test]
fn control_flow() {
    let text = module(
        "fn @main(%n: i32) -> i32 {
bb7: br bb_loop
bb_loop:
  %i: i32 = phi [bb7: const.i32 0] [bb2: %r.err], [bb2: %j.ok]
  %k: i32 = phi i32 [bb7: %n], [bb2: %n]
  switch %i { case 0->bb2 case -3 -> bb9 case true -> bb2 } else bb9
bb2: %x: i32 = try %r bb_loop cbr %c bb_loop bb9
bb9: unreachable }",
    );
    assert_eq!(
        body_of(&checked(&text)),
        "fn @main(%n: i32) -> i32 {
  bb0:
    br bb1
  bb1:
    %i: i32 = phi i32 { [bb0: const.i32 0], [bb2: %r.err], [bb2: %j.ok] }
    %k: i32 = phi i32 { [bb0: %n], [bb2: %n] }
    switch %i {
      case 0 -> bb2
      case -3 -> bb3
      case true -> bb2
    } else bb3
  bb2:
    %x: i32 = try %r bb1
    cbr %c bb1 bb3
  bb3:
    unreachable
}
"
    );
}

#[test]
fn labels_that_cannot_be_numbered_stay() {
    let text = module(
        "fn @main() -> unit { bb5: br bb0 bb_x: ret }\nfn @g() -> unit { bb5: br bb5 bb5: ret }",
    );
    let formatted = checked(&text);
    for label in ["bb5:", "br bb0", "bb_x:", "br bb5"] {
        assert!(formatted.contains(label), "{formatted}");
    }
}

#[test]
fn unsafe_groups() {
    let text = function(
        "unsafe { ; one
  ; two
  %p: rawptr<i32> = ptr.null<i32> unsafe { %q: i32 = ptr.load<i32> { p=%p } } } ; three
  ; four
  unsafe{%r: i32 = ptr.load<i32> { p=%p }
  ; five
  }",
    );
    assert_eq!(
        body_of(&checked(&text)),
        "fn @main() -> unit {
  bb0:
    unsafe {  ; one
      ; two
      %p: rawptr<i32> = ptr.null<i32>
      %q: i32 = ptr.load<i32> { p=%p }
    }  ; three
    ; four
    unsafe {
      %r: i32 = ptr.load<i32> { p=%p }
      ; five
    }
    ret
}
"
    );
}

#[test]
fn comments() {
    let text = "; licence

; about

module m ; the module
; before exports
exports { @main, ; in exports
  TX }
imports { }
digest \"\" ; the digest
; directly below

;;; documents TX
; and so does this, more or less

value struct TX { ; the struct
  field a: i32, ; the field
  ; before b
  field b: i32
  ; at the end
} ; closed
;;; documents main
fn @main( ; head
  %a: i32) -> unit { ; entry
; before the label
bb0: ; the label
  ; before x
  %x: i32 = i.add { lhs=%a, ; inside
    rhs=%a } ; behind
  switch %x { ; the switch
    ; before the case
    case 1 -> bb1 ; the case
    ; after the case
  } else bb1 ; the default
  ; before bb1
bb1:
  ret ; done
  ; last
}

; the end
; of the file";
    let formatted = checked(text);
    let digest = module_digest(&parse_ok(text), text).unwrap();
    assert_eq!(
        formatted.replace(&digest, "…"),
        "; licence

; about

module m  ; the module
; before exports
; in exports
exports { @main, TX }
imports { }
digest \"…\"  ; the digest

; directly below

;;; documents TX
; and so does this, more or less

value struct TX {  ; the struct
  field a: i32  ; the field
  ; before b
  field b: i32
  ; at the end
}  ; closed

;;; documents main
fn @main(%a: i32) -> unit {  ; entry
  ; head
  ; before the label
  bb0:  ; the label
    ; before x
    ; inside
    %x: i32 = i.add { lhs=%a, rhs=%a }  ; behind
    switch %x {  ; the switch
      ; before the case
      case 1 -> bb1  ; the case
      ; after the case
    } else bb1  ; the default
  ; before bb1
  bb1:
    ret  ; done
    ; last
}

; the end
; of the file
"
    );
}

#[test]
fn comments_in_odd_places_are_kept() {
    // A comment between every two tokens of a program with every kind of item.
    let text = module(
        r#"heap enum TE { variant A { field a: i32 } variant B { } }
value struct TV<T: type> { field x: T }
global @G: i32 = const.i32 1
sig TF ( i32 , i32 ) -> i32
impl eq for TV<i32> = a.@f
extern "c" module x { fn @f ( %a : i32 ) -> i32 attrs { returns="x" } }
gpu fn @k ( %a : i32 ) -> unit target ( spv ) workgroup ( 1 , 1 , 1 ) meta { uses { @f } } {
bb0 :
  unsafe { %p : rawptr<i32> = ptr.null < i32 > }
  %x : i32 = phi i32 { [ bb0 : %a . err ] , [ bb0 : const.i32 1 ] }
  m . @f < i32 > { args = [ %a , "s" ] }
  switch %x { case 1 -> bb0 } else bb1
bb1 :
  ret %x
}"#,
    );
    let mut lexed: Vec<String> = Vec::new();
    for line in text.lines() {
        lexed.extend(line.split(' ').filter(|word| !word.is_empty()).map(str::to_string));
    }
    // One comment at a time, then all at once.
    for i in 0..=lexed.len() {
        let mut commented = lexed.clone();
        commented.insert(i, ";;; here\n".to_string());
        let once = format(&commented.join(" "));
        assert!(once.contains(";;; here"), "{once}");
        assert_eq!(format(&once), once);
    }
    let all: String =
        lexed.iter().enumerate().map(|(i, word)| format!("{word} ; c{i}\n")).collect();
    let once = checked(&all);
    assert_eq!(once.matches("; c").count(), lexed.len());
}

#[test]
fn carriage_returns_and_a_byte_order_mark_vanish() {
    let text = format!("\u{feff}{}", function("  ; c").replace('\n', "\r\n"));
    let formatted = checked(&text);
    assert!(!formatted.contains(['\r', '\u{feff}']));
}

#[test]
fn arguments_of_built_in_functions_are_in_the_order_of_the_parameters() {
    let text = "module test.m
exports { @main }
imports { std.test::{@assert_eq} }
digest \"\"

fn @main() -> unit {
bb0:
  call_void @assert_eq { msg=\"m\", rhs=%b, lhs=%a }
  std.math.@pow_f32 { b=%y, a=%x }
  call_void std.math.@nothing { b=%y, a=%x }
  gpu.profile.@launch_profiled { args=[], kernel=@k, dev=%d, block=[%x, %x, %x], grid=[%x, %x, %x], session=%s }
  ret
}
";
    let formatted = checked(text);
    for line in [
        "call_void @assert_eq { lhs=%a, rhs=%b, msg=const.Str \"m\" }",
        "call_void std.math.@pow_f32 { a=%x, b=%y }",
        "call_void std.math.@nothing { b=%y, a=%x }",
        "call_void gpu.profile.@launch_profiled { session=%s, dev=%d, kernel=@k, grid=[%x, %x, %x], block=[%x, %x, %x], args=[] }",
    ] {
        assert!(formatted.contains(line), "{line}\n{formatted}");
    }
}

#[test]
fn meta_blocks_are_completed() {
    let text = "module test.m
exports { @main }
imports { std.io::{@println} }
digest \"\"

gpu fn @k() -> unit target(spv) {
bb0:
  ret
}

fn @main() -> unit meta { uses { std.math.@abs_i32, TThing } effects { custom } cost { n=1 } } {
bb0:
  call_void @println { s=\"x\" }
  %r: TResult<unit, gpu.TError> = gpu.launch { device=%d, kernel=@k, grid=[%x, %x, %x], block=[%x, %x, %x], args=[] }
  %c: TCallable<TF> = callable.capture @main { }
  %a: i32 = try other.module.@f { }
  ret
}
";
    let module = parse_ok(text);
    let completed = format_module_with_meta(&module, text).unwrap();
    let head = "fn @main() -> unit meta { uses { std.math.@abs_i32, TThing, @k, @main, other.module.@f, std.io.@println } effects { custom, gpu, io } cost { n=1 } } {";
    assert!(completed.contains(head), "{completed}");
    assert!(completed.contains("gpu fn @k() -> unit target(spv) {"), "{completed}");
    let again = parse_ok(&completed);
    assert_eq!(format_module_with_meta(&again, &completed).as_ref(), Some(&completed));
    assert_eq!(format_module(&again, &completed).as_ref(), Some(&completed));
    assert!(check_digest(&again, &completed).is_none());
}
