//! Host programs as text: lowered, compiled, run. The number they return is right and every object
//! they made is gone.

mod host_support;

use host_support::Process;
use magpie_codegen_cpu::compile_host;
use magpie_diag::FileId;
use magpie_mpir::passes::{Pipeline, lower_arc, lower_host};
use magpie_mpir::{Module, Stage, parse, print_module, verify_module};
use magpie_rt::object::live_objects;

fn read(text: &str) -> Module {
    parse(text, FileId(0)).unwrap_or_else(|errors| panic!("{text}\n{}", errors[0].message))
}

fn verify(m: &Module) {
    if let Err(errors) = verify_module(m, Stage::Core) {
        panic!("{}\n{}", errors[0].message, print_module(m));
    }
}

/// Runs `@main`, with and without the optimisation passes.
fn returns(expected: i64, text: &str) {
    for optimise in [false, true] {
        let mut m = read(text);
        verify(&m);
        lower_arc(&mut m);
        verify(&m);
        lower_host(&mut m, &|_| None);
        verify(&m);
        if optimise {
            Pipeline::new().optimize_host(&mut m);
            verify(&m);
        }
        let main = m.find_fn("@main").unwrap();
        let code = compile_host(&m, &[main], &mut Process(&m.types)).unwrap();
        let address = code.address(main).unwrap();
        let before = live_objects();
        // SAFETY: `@main` takes nothing and returns an i64; the code is kept until the end of the
        // loop body.
        let result = unsafe { std::mem::transmute::<*const u8, extern "C" fn() -> i64>(address)() };
        assert_eq!(result, expected, "optimised: {optimise}\n{text}\n{}", print_module(&m));
        assert_eq!(live_objects() - before, 0, "optimised: {optimise}, objects left\n{text}");
    }
}

#[test]
fn programs() {
    // Numbers, loops, aggregates as results and phis.
    returns(
        832040 + 3,
        "value struct m.TPair { x: i64, y: i64 }
        fn @step(%p: m.TPair) -> m.TPair {
        e:
          %x: i64 = struct.get field=0 %p
          %y: i64 = struct.get field=1 %p
          %s: i64 = i.add.trap %x, %y
          %q: m.TPair = struct.new %y, %s
          ret %q
        }
        fn @main() -> i64 {
        e:
          %start: m.TPair = struct.new i64 0, i64 1
          br head
        head:
          %i: i32 = phi [e: i32 0], [body: %next]
          %p: m.TPair = phi [e: %start], [body: %q]
          %more: bool = icmp.slt %i, i32 30
          cbr %more, body, done
        body:
          %q: m.TPair = call fn=@step %p
          %next: i32 = i.add.trap %i, i32 1
          br head
        done:
          %x: i64 = struct.get field=0 %p
          %r: i64 = i.add %x, i64 3
          ret %r
        }",
    );
    // Strings: both operands of a concatenation are given away, literals are not counted.
    returns(
        1123,
        "fn @main() -> i64 {
        e:
          %ab: Str = rt.call rt=mp_rt_str_concat Str \"ab\", Str \"cd\"
          %more: Str = rt.call rt=mp_rt_str_concat %ab, Str \"1123\"
          %n: i64 = rt.call rt=mp_rt_str_len %more
          %tail: Str = rt.call rt=mp_rt_str_slice %more, i64 4, %n
          %parsed: TResult<i64, Str> = rt.call rt=mp_rt_str_parse_i64 %tail
          %ok: bool = enum.is variant=0 %parsed
          cbr %ok, good, bad
        good:
          %v: i64 = enum.payload variant=0 %parsed
          ret %v
        bad:
          %why: Str = enum.payload variant=1 %parsed
          %len: i64 = rt.call rt=mp_rt_str_len %why
          ret %len
        }",
    );
    // An error is an object too.
    returns(
        1,
        "fn @main() -> i64 {
        e:
          %parsed: TResult<i64, Str> = rt.call rt=mp_rt_str_parse_i64 Str \"no\"
          %env: TOption<Str> = rt.call rt=mp_rt_os_env_var Str \"MAGPIE_NO_SUCH_VARIABLE\"
          %tag: i32 = enum.tag %env
          %t: i64 = cast %tag
          %bad: bool = enum.is variant=1 %parsed
          %b: i64 = cast %bad
          %r: i64 = i.add %t, %b
          ret %r
        }",
    );
    // Heap structs: fields replaced, views, options of objects in objects.
    returns(
        2 + 5 + 100,
        "value struct m.TPair { x: u8, y: i64 }
        heap struct m.TNode { name: Str, pair: m.TPair, next: TOption<m.TNode> }
        fn @name_len(%n: borrow m.TNode) -> i64 {
        e:
          %name: borrow Str = getfield field=0 %n
          %len: i64 = rt.call rt=mp_rt_str_len %name
          ret %len
        }
        fn @main() -> i64 {
        e:
          %pair: m.TPair = struct.new u8 1, i64 100
          %name: Str = rt.call rt=mp_rt_str_concat Str \"in\", Str \"ner\"
          %inner: m.TNode = new %name, %pair, TOption<m.TNode> zero
          %some: TOption<m.TNode> = enum.new variant=1 %inner
          %long: Str = rt.call rt=mp_rt_str_concat Str \"out\", Str \"er\"
          %outer: m.TNode = new %long, %pair, %some
          %view: mutborrow m.TNode = borrow.mut %outer
          %short: Str = rt.call rt=mp_rt_str_concat Str \"o\", Str \"u\"
          setfield field=0 %view, %short
          %a: i64 = call fn=@name_len %outer
          %next: borrow TOption<m.TNode> = getfield field=2 %outer
          %there: borrow m.TNode = enum.payload variant=1 %next
          %b: i64 = call fn=@name_len %there
          %p: m.TPair = getfield field=1 %there
          %c: i64 = struct.get field=1 %p
          %ab: i64 = i.add %a, %b
          %abc: i64 = i.add %ab, %c
          ret %abc
        }",
    );
    // Enums on the heap: a field outlives the enum it is moved out of.
    returns(
        4 + 9 + 1,
        "heap enum m.TShape { Circle { r: f64 }, Named { name: Str, size: i64, other: Str }, Empty }
        fn @main() -> i64 {
        e:
          %name: Str = rt.call rt=mp_rt_str_concat Str \"na\", Str \"me\"
          %other: Str = rt.call rt=mp_rt_str_concat Str \"oth\", Str \"er\"
          %s: m.TShape = enum.new variant=1 %name, i64 9, %other
          %view: borrow m.TShape = borrow.shared %s
          %size: i64 = enum.payload variant=1 field=1 %view
          %text: Str = enum.payload variant=1 %s
          %len: i64 = rt.call rt=mp_rt_str_len %text
          %e: m.TShape = enum.new variant=2
          %empty: bool = enum.is variant=2 %e
          %one: i64 = cast %empty
          %a: i64 = i.add %size, %len
          %b: i64 = i.add %a, %one
          ret %b
        }",
    );
    arrays();
    maps();
    callables();
    handles();
    conventions();
}

fn arrays() {
    returns(
        10 + 3 + 7 + 1 + 2 + 40,
        "fn @main() -> i64 {
        e:
          %a: Array<i64> = arr.new i32 0
          arr.push %a, i64 30
          arr.push %a, i64 10
          arr.push %a, i64 20
          arr.sort %a
          %first: i64 = arr.get %a, u8 0
          %n: i64 = arr.len %a
          arr.set %a, i32 1, i64 7
          %second: i64 = arr.get %a, i64 1
          %has: bool = arr.contains %a, i64 30
          %h: i64 = cast %has
          %s: Array<i64> = arr.slice %a, i32 1, i32 3
          %len: i64 = arr.len %s
          %p: TOption<i64> = arr.pop %a
          %last: i64 = enum.payload variant=1 %p
          %q: TOption<i64> = arr.pop %s
          %q2: TOption<i64> = arr.pop %s
          %none: TOption<i64> = arr.pop %s
          %tag: i32 = enum.tag %none
          %t: i64 = cast %tag
          %ten: i64 = i.add %last, i64 10
          %1: i64 = i.add %first, %n
          %2: i64 = i.add %1, %second
          %3: i64 = i.add %2, %h
          %4: i64 = i.add %3, %len
          %5: i64 = i.add %4, %ten
          %6: i64 = i.add %5, %t
          ret %6
        }",
    );
    returns(
        3 + 1 + 5 + 2 + 1,
        "value struct m.TPair { x: u8, y: i64 }
        fn @by_y(%a: m.TPair, %b: borrow m.TPair) -> i32 {
        e:
          %y: i64 = struct.get field=1 %a
          %z: i64 = getfield field=1 %b
          %less: bool = icmp.slt %y, %z
          %r: i32 = select %less, i32 -1, i32 1
          ret %r
        }
        fn @main() -> i64 {
        e:
          %abc: Str = rt.call rt=mp_rt_str_concat Str \"ab\", Str \"c\"
          %a: Array<Str> = arr.from %abc, Str \"x\", Str \"hello\"
          %view: borrow Str = arr.get %a, i32 0
          %len: i64 = rt.call rt=mp_rt_str_len %view
          %new: Str = rt.call rt=mp_rt_str_concat Str \"y\", Str \"\"
          arr.set %a, i32 0, %new
          %has: bool = arr.contains %a, Str \"y\"
          %h: i64 = cast %has
          arr.sort %a
          %least: borrow Str = arr.get %a, i32 0
          %hello: i64 = rt.call rt=mp_rt_str_len %least
          %p: m.TPair = struct.new u8 2, i64 9
          %q: m.TPair = struct.new u8 1, i64 3
          %pairs: Array<m.TPair> = arr.from %p, %q
          arr.sort ord=@by_y %pairs
          %big: m.TPair = arr.get %pairs, i32 1
          %x: u8 = struct.get field=0 %big
          %two: i64 = cast %x
          %o: TOption<Str> = enum.new variant=1 Str \"in an option\"
          %fresh: Str = rt.call rt=mp_rt_str_concat Str \"a\", Str \"b\"
          %r: TOption<Str> = enum.new variant=1 %fresh
          %options: Array<TOption<Str>> = arr.from %o, TOption<Str> zero
          arr.set %options, i32 1, %r
          %ov: borrow TOption<Str> = arr.get %options, i32 1
          %is: bool = enum.is variant=1 %ov
          %one: i64 = cast %is
          %1: i64 = i.add %len, %h
          %2: i64 = i.add %1, %hello
          %3: i64 = i.add %2, %two
          %4: i64 = i.add %3, %one
          ret %4
        }",
    );
}

fn maps() {
    returns(
        2 + 20 + 1 + 30 + 1,
        "fn @main() -> i64 {
        e:
          %m: Map<Str, i64> = map.new
          %k: Str = rt.call rt=mp_rt_str_concat Str \"k\", Str \"1\"
          map.set %m, %k, i64 10
          map.set %m, Str \"k1\", i64 20
          map.set %m, Str \"k2\", i64 30
          %n: i64 = map.len %m
          %v: i64 = map.get_ref %m, Str \"k1\"
          %missing: TOption<i64> = map.get %m, Str \"k3\"
          %gone: bool = enum.is variant=0 %missing
          %g: i64 = cast %gone
          %d: TOption<i64> = map.delete %m, Str \"k2\"
          %dv: i64 = enum.payload variant=1 %d
          %keys: Array<Str> = map.keys %m
          %kn: i64 = arr.len %keys
          %1: i64 = i.add %n, %v
          %2: i64 = i.add %1, %g
          %3: i64 = i.add %2, %dv
          %4: i64 = i.add %3, %kn
          ret %4
        }",
    );
    returns(
        5 + 1 + 5,
        "heap struct m.TKey { n: i64, name: Str }
        fn @hash(%k: borrow m.TKey) -> u64 {
        e:
          %n: i64 = getfield field=0 %k
          %h: u64 = cast %n
          ret %h
        }
        fn @eq(%a: borrow m.TKey, %b: borrow m.TKey) -> bool {
        e:
          %n: i64 = getfield field=0 %a
          %k: i64 = getfield field=0 %b
          %r: bool = icmp.eq %n, %k
          ret %r
        }
        fn @key(%n: i64) -> m.TKey {
        e:
          %name: Str = rt.call rt=mp_rt_str_concat Str \"key\", Str \"!\"
          %k: m.TKey = new %n, %name
          ret %k
        }
        fn @main() -> i64 {
        e:
          %m: Map<m.TKey, TOption<Str>> = map.new hash=@hash eq=@eq
          %k: m.TKey = call fn=@key i64 1
          %s: Str = rt.call rt=mp_rt_str_concat Str \"va\", Str \"lue\"
          %o: TOption<Str> = enum.new variant=1 %s
          map.set %m, %k, %o
          %again: m.TKey = call fn=@key i64 1
          %view: borrow TOption<Str> = map.get_ref %m, %again
          %text: borrow Str = enum.payload variant=1 %view
          %len: i64 = rt.call rt=mp_rt_str_len %text
          %copy: TOption<TOption<Str>> = map.get %m, %again
          %inner: TOption<Str> = enum.payload variant=1 %copy
          %str: Str = enum.payload variant=1 %inner
          %len2: i64 = rt.call rt=mp_rt_str_len %str
          map.set %m, %again, TOption<Str> zero
          %last: m.TKey = call fn=@key i64 1
          map.delete_void %m, %last
          map.delete_void %m, %last
          %n: i64 = map.len %m
          %has: bool = map.contains_key %m, %last
          %h: i64 = cast %has
          %1: i64 = i.add %len, %len2
          %2: i64 = i.add %1, %n
          %3: i64 = i.add %2, %h
          %4: i64 = i.add %3, i64 1
          ret %4
        }",
    );
}

fn callables() {
    returns(
        3 + 4 + 7 + 3 + 4 + 7,
        "value struct m.TPair { x: u8, y: i64 }
        sig m.TOne(i64) -> m.TPair
        fn @target(%s: Str, %n: i64, %v: borrow Str, %p: m.TPair, %q: borrow m.TPair) -> m.TPair {
        e:
          %a: i64 = rt.call rt=mp_rt_str_len %s
          %b: i64 = rt.call rt=mp_rt_str_len %v
          %c: i64 = struct.get field=1 %p
          %d: i64 = getfield field=1 %q
          %zero: i64 = i.sub %c, %d
          %ab: i64 = i.add %a, %b
          %abz: i64 = i.add %ab, %zero
          %all: i64 = i.add %abz, %n
          %r: m.TPair = struct.new u8 0, %all
          ret %r
        }
        fn @main() -> i64 {
        e:
          %s: Str = rt.call rt=mp_rt_str_concat Str \"ab\", Str \"c\"
          %v: Str = rt.call rt=mp_rt_str_concat Str \"ab\", Str \"cd\"
          %p: m.TPair = struct.new u8 1, i64 50
          %c: TCallable<m.TOne> = callable.capture fn=@target bits=29 %s, %v, %p, %p
          %one: m.TPair = call.indirect %c, i64 7
          %two: m.TPair = call.indirect %c, i64 7
          %x: i64 = struct.get field=1 %one
          %y: i64 = struct.get field=1 %two
          %r: i64 = i.add %x, %y
          ret %r
        }",
    );
    returns(
        2 + 6 + 4 + 100,
        "sig m.TMap(i64) -> Str
        sig m.TTest(borrow Str) -> bool
        sig m.TFold(TOption<i64>, i64) -> TOption<i64>
        sig m.TVisit(borrow Str) -> unit
        fn @text(%n: i64) -> Str {
        e:
          %small: bool = icmp.slt %n, i64 10
          cbr %small, short, long
        short:
          %a: Str = rt.call rt=mp_rt_str_concat Str \"s\", Str \"\"
          ret %a
        long:
          %b: Str = rt.call rt=mp_rt_str_concat Str \"lon\", Str \"g\"
          ret %b
        }
        fn @is_long(%s: borrow Str) -> bool {
        e:
          %n: i64 = rt.call rt=mp_rt_str_len %s
          %r: bool = icmp.sgt %n, i64 1
          ret %r
        }
        fn @add(%so_far: TOption<i64>, %n: i64) -> TOption<i64> {
        e:
          %is: bool = enum.is variant=1 %so_far
          cbr %is, some, none
        some:
          %v: i64 = enum.payload variant=1 %so_far
          %sum: i64 = i.add %v, %n
          %r: TOption<i64> = enum.new variant=1 %sum
          ret %r
        none:
          %f: TOption<i64> = enum.new variant=1 %n
          ret %f
        }
        fn @count(%counts: mutborrow Array<i64>, %s: borrow Str) {
        e:
          %n: i64 = rt.call rt=mp_rt_str_len %s
          arr.push %counts, %n
          ret
        }
        fn @main() -> i64 {
        e:
          %a: Array<i64> = arr.from i64 1, i64 1, i64 98
          %map: TCallable<m.TMap> = callable.capture fn=@text
          %test: TCallable<m.TTest> = callable.capture fn=@is_long
          %fold: TCallable<m.TFold> = callable.capture fn=@add
          %texts: Array<Str> = arr.map %a, %map
          %long: Array<Str> = arr.filter %texts, %test
          %sum: TOption<i64> = arr.reduce %a, TOption<i64> zero, %fold
          %total: i64 = enum.payload variant=1 %sum
          %seen: Array<i64> = arr.new i32 0
          %counts: Array<i64> = arr.new i32 4
          %visit: TCallable<m.TVisit> = callable.capture fn=@count bits=1 %counts
          arr.foreach %texts, %visit
          %x: borrow Str = arr.get %long, i32 0
          %len: i64 = rt.call rt=mp_rt_str_len %x
          %n: i64 = arr.len %long
          %one: i64 = i.add %n, i64 1
          %1: i64 = i.add %total, %len
          %2: i64 = i.add %1, %one
          %3: i64 = i.add %2, i64 6
          ret %3
        }",
    );
}

fn handles() {
    returns(
        7 + 1 + 1,
        "heap struct m.TNode { n: i64, up: weak m.TNode, link: TOption<shared m.TNode> }
        fn @main() -> i64 {
        e:
          %leaf: m.TNode = new i64 7, weak m.TNode zero, TOption<shared m.TNode> zero
          %s: shared m.TNode = arc.share %leaf
          %w: weak m.TNode = arc.weak_downgrade %s
          %copy: shared m.TNode = arc.clone_shared %s
          %link: TOption<shared m.TNode> = enum.new variant=1 %copy
          %w2: weak m.TNode = arc.clone_weak %w
          %top: m.TNode = new i64 1, %w2, %link
          %view: borrow TOption<shared m.TNode> = getfield field=2 %top
          %up: weak m.TNode = getfield field=1 %top
          %alive: TOption<shared m.TNode> = arc.weak_upgrade %up
          %strong: shared m.TNode = enum.payload variant=1 %alive
          %seven: i64 = getfield field=0 %strong
          br next
        next:
          %again: TOption<shared m.TNode> = arc.weak_upgrade %w
          %tag: i32 = enum.tag %again
          %t: i64 = cast %tag
          br last
        last:
          %gone: m.TNode = new i64 0, weak m.TNode zero, TOption<shared m.TNode> zero
          %g: shared m.TNode = arc.share %gone
          %gw: weak m.TNode = arc.weak_downgrade %g
          br end
        end:
          %dead: TOption<shared m.TNode> = arc.weak_upgrade %gw
          %dt: i32 = enum.tag %dead
          %d: i64 = cast %dt
          %1: i64 = i.add %seven, %t
          %2: i64 = i.add %1, %d
          %n: i64 = getfield field=0 %top
          %3: i64 = i.add %2, %n
          ret %3
        }",
    );
}

/// Views whose content travels by value, in calls by name and through callables.
fn conventions() {
    // A value, a text and an array, changed in a recursion; and one of them through a callable, whose
    // target is also called by name.
    returns(
        5 + 10 + 4 + 7 + 3,
        "value struct m.TState { n: i64, name: Str, list: Array<i64> }
        value struct m.TCell { v: i64 }
        sig m.TChange(mutborrow m.TCell, i64) -> TOption<i64>
        fn @grow(%s: mutborrow m.TState, %times: i64) -> unit {
        e:
          %more: bool = icmp.sgt %times, i64 0
          cbr %more, again, done
        again:
          %n: i64 = getfield field=0 %s
          %m: i64 = i.add %n, i64 1
          setfield field=0 %s, %m
          %name: Str = rt.call rt=mp_rt_str_concat Str \"n\", Str \"ame\"
          setfield field=1 %s, %name
          %list: mutborrow Array<i64> = field.place field=2 %s
          arr.push %list, i64 2
          %less: i64 = i.sub %times, i64 1
          call fn=@grow %s, %less
          br done
        done:
          ret
        }
        fn @change(%c: mutborrow m.TCell, %by: i64) -> TOption<i64> {
        e:
          %v: i64 = getfield field=0 %c
          %w: i64 = i.add %v, %by
          setfield field=0 %c, %w
          %r: TOption<i64> = enum.new variant=1 %v
          ret %r
        }
        fn @main() -> i64 {
        e:
          %list: Array<i64> = arr.new i32 0
          %name: Str = rt.call rt=mp_rt_str_concat Str \"o\", Str \"ld\"
          %view: mutborrow m.TState = borrow.mut m.TState zero
          setfield field=1 %view, %name
          setfield field=2 %view, %list
          call fn=@grow %view, i64 5
          %n: i64 = getfield field=0 %view
          %new: borrow Str = getfield field=1 %view
          %len: i64 = rt.call rt=mp_rt_str_len %new
          %items: borrow Array<i64> = getfield field=2 %view
          %count: i64 = arr.len %items
          %double: i64 = i.mul %count, i64 2
          setfield field=1 %view, Str zero
          setfield field=2 %view, Array<i64> zero
          %c: m.TCell = struct.new i64 0
          %cell: mutborrow m.TCell = borrow.mut %c
          %call: TCallable<m.TChange> = callable.capture fn=@change bits=0
          %0: TOption<i64> = call.indirect %call, %cell, i64 3
          %before: TOption<i64> = call fn=@change %cell, i64 4
          %b: i64 = enum.payload variant=1 %before
          %after: i64 = getfield field=0 %cell
          %1: i64 = i.add %n, %len
          %2: i64 = i.add %1, %double
          %3: i64 = i.add %2, %b
          %4: i64 = i.add %3, %after
          ret %4
        }",
    );
    // More leaves than a call gives back as values: a result that is stored, and beside a result of
    // seven a view of two that stays an address.
    returns(
        9 + 8 + 7 + 2,
        "value struct m.TNine { a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64, i: i64 }
        value struct m.TSeven { a: i64, b: i8, c: bool, d: f64, e: f32, f: i64, g: i64 }
        value struct m.TTwo { x: i64, y: i64 }
        fn @nine(%n: i64) -> m.TNine {
        e:
          %1: i64 = i.sub %n, i64 1
          %r: m.TNine = struct.new i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, %1, %n
          ret %r
        }
        fn @seven(%two: mutborrow m.TTwo, %n: i64) -> m.TSeven {
        e:
          %y: i64 = getfield field=1 %two
          %more: i64 = i.add %y, i64 1
          setfield field=1 %two, %more
          %stop: bool = icmp.sle %n, i64 0
          cbr %stop, done, again
        again:
          %less: i64 = i.sub %n, i64 1
          %r: m.TSeven = call fn=@seven %two, %less
          ret %r
        done:
          %s: m.TSeven = struct.new i64 1, i8 2, bool true, f64 0x4010000000000000, f32 0x40a00000, i64 6, i64 7
          ret %s
        }
        fn @main() -> i64 {
        e:
          %nine: m.TNine = call fn=@nine i64 9
          %i: i64 = struct.get field=8 %nine
          %h: i64 = struct.get field=7 %nine
          %t: m.TTwo = struct.new i64 0, i64 0
          %two: mutborrow m.TTwo = borrow.mut %t
          %seven: m.TSeven = call fn=@seven %two, i64 1
          %g: i64 = struct.get field=6 %seven
          %y: i64 = getfield field=1 %two
          %1: i64 = i.add %i, %h
          %2: i64 = i.add %1, %g
          %3: i64 = i.add %2, %y
          ret %3
        }",
    );
}
