//! What `write_conflicts` says of kernels that people write. That it never says what is not so is
//! tested by `write_conflicts_hold.rs`.

use magpie_diag::FileId;
use magpie_mpir::analysis::{LaunchDomain, WriteAnswer, write_conflicts};
use magpie_mpir::{Stage, parse, verify_module};

/// The answers for the stores of a kernel, in order.
fn answers(workgroup: [u32; 3], grid: Option<[u32; 3]>, body: &str) -> Vec<String> {
    let [x, y, z] = workgroup;
    let text = format!(
        "gpu fn t.@k(%o: gpu.TBuffer<u32>, %d: gpu.TBuffer<u32>, %n: u32, %m: u32) -> unit \
         workgroup({x}, {y}, {z}) {{\nbb0:\n{body}\n}}\n"
    );
    let module = parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify_module(&module, Stage::Core).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let f = &module.fns[0];
    let found = write_conflicts(f, &module.types, LaunchDomain { workgroup, grid });
    let described = found.iter().map(|s| match s.answer {
        WriteAnswer::Unique => "unique".to_owned(),
        WriteAnswer::Unknown => "unknown".to_owned(),
        WriteAnswer::Collision(c) => {
            let domain = LaunchDomain { workgroup, grid };
            let id = |i: magpie_mpir::analysis::Invocation| {
                [0, 1, 2].map(|d| i.global(domain, d).to_string()).join(",")
            };
            let element = c.element.map_or("?".to_owned(), |e| e.to_string());
            let same = if c.is_same_value { " same" } else { "" };
            format!("{} and {} at {element}{same}", id(c.first), id(c.second))
        }
    });
    described.collect()
}

/// Launches of one dimension with 64 invocations a workgroup.
fn of_line(body: &str) -> Vec<String> {
    answers([64, 1, 1], None, &format!("%i: u32 = gpu.global_id dim=0\n{body}\nret"))
}

/// An index computed from `%i`, the global id.
fn of_index(computed: &str) -> String {
    let body = format!("{computed}\ngpu.buffer_store %o, %x, %i");
    of_line(&body).remove(0)
}

#[test]
fn ids_with_factors_and_offsets() {
    assert_eq!(of_line("gpu.buffer_store %o, %i, %i"), ["unique"]);
    assert_eq!(of_index("%a: u32 = i.mul %i, u32 3\n%x: u32 = i.add %a, u32 1"), "unique");
    assert_eq!(of_index("%x: u32 = i.add %i, %n"), "unique");
    assert_eq!(of_index("%x: u32 = i.sub %i, u32 1"), "unique");
    assert_eq!(of_index("%x: u32 = i.sub %n, %i"), "unique");
    assert_eq!(of_index("%x: u32 = i.shl %i, u32 2"), "unique");
    assert_eq!(of_index("%x: u64 = cast %i"), "unique");
    assert_eq!(of_index("%x: i32 = cast %i"), "unique");
}

#[test]
fn factors_that_wrap() {
    assert_eq!(of_index("%x: u32 = i.shl %i, u32 31"), "0,0,0 and 2,0,0 at 0");
    // 2^26 invocations would have to be there.
    assert_eq!(of_index("%x: u32 = i.shl %i, u32 26"), "unknown");
    assert_eq!(of_index("%a: u8 = cast %i\n%x: u32 = cast %a"), "unknown");
}

#[test]
fn quotients_and_remainders() {
    assert_eq!(of_index("%x: u32 = i.udiv %i, u32 2"), "0,0,0 and 1,0,0 at 0");
    assert_eq!(of_index("%x: u32 = i.urem %i, u32 16"), "0,0,0 and 16,0,0 at 0");
    assert_eq!(of_index("%x: u32 = i.and %i, u32 15"), "0,0,0 and 16,0,0 at 0");
    assert_eq!(of_index("%x: u32 = i.lshr %i, u32 1"), "0,0,0 and 1,0,0 at 0");
    // The first workgroup has no two.
    assert_eq!(of_index("%x: u32 = i.urem %i, u32 128"), "unknown");
    let split = "%q: u32 = i.udiv %i, u32 4\n%r: u32 = i.urem %i, u32 4\n";
    assert_eq!(
        of_index(&format!("{split}%a: u32 = i.mul %q, u32 4\n%x: u32 = i.add %a, %r")),
        "unique"
    );
    assert_eq!(
        of_index(&format!("{split}%a: u32 = i.mul %q, u32 5\n%x: u32 = i.add %a, %r")),
        "unique"
    );
    assert_eq!(
        of_index(&format!("{split}%a: u32 = i.mul %q, u32 3\n%x: u32 = i.add %a, %r")),
        "3,0,0 and 4,0,0 at 3"
    );
    // Transposed in blocks of 4 × 4.
    assert_eq!(
        of_index(
            "%q: u32 = i.lshr %i, u32 4
             %c: u32 = i.and %i, u32 3
             %s: u32 = i.lshr %i, u32 2
             %r: u32 = i.and %s, u32 3
             %a: u32 = i.shl %q, u32 4
             %b: u32 = i.shl %c, u32 2
             %d1: u32 = i.or %a, %b
             %x: u32 = i.or %d1, %r"
        ),
        "unique"
    );
}

#[test]
fn known_launches_are_counted_out() {
    let remainder = "%i: u32 = gpu.global_id dim=0
        %x: u32 = i.urem %i, u32 128
        gpu.buffer_store %o, %x, %i
        ret";
    assert_eq!(answers([64, 1, 1], Some([2, 1, 1]), remainder), ["unique"]);
    assert_eq!(answers([64, 1, 1], Some([3, 1, 1]), remainder), ["0,0,0 and 128,0,0 at 0"]);
    // Not affine.
    let flipped = "%i: u32 = gpu.global_id dim=0
        %x: u32 = i.xor %i, u32 5
        gpu.buffer_store %o, %x, %i
        ret";
    assert_eq!(answers([64, 1, 1], Some([2, 1, 1]), flipped), ["unique"]);
    assert_eq!(answers([64, 1, 1], None, flipped), ["unknown"]);
}

#[test]
fn constants() {
    let body = "gpu.buffer_store %o, u32 0, u32 7\nret";
    assert_eq!(answers([64, 1, 1], None, body), ["0,0,0 and 1,0,0 at 0 same"]);
    assert_eq!(answers([1, 1, 1], None, body), ["unknown"]);
    assert_eq!(answers([1, 1, 1], Some([1, 1, 1]), body), ["unique"]);
    assert_eq!(answers([1, 1, 1], Some([1, 2, 1]), body), ["0,0,0 and 0,1,0 at 0 same"]);
    assert_eq!(of_line("gpu.buffer_store %o, %n, %i"), ["0,0,0 and 1,0,0 at ?"]);
    // It writes nothing.
    assert_eq!(of_line("gpu.buffer_store %o, u32 4294967295, %i"), ["unknown"]);
}

#[test]
fn guards_pin_ids() {
    let guarded = |condition: &str, store: &str| {
        of_line(&format!(
            "{condition}
             cbr %c, bb1, bb2
             bb1:
             {store}
             br bb2
             bb2:"
        ))
    };
    let zero = "gpu.buffer_store %o, u32 0, %i";
    assert_eq!(guarded("%c: bool = icmp.eq %i, u32 0", zero), ["unique"]);
    assert_eq!(guarded("%c: bool = icmp.eq %i, %n", zero), ["unique"]);
    assert_eq!(guarded("%c: bool = icmp.ult %i, u32 1", zero), ["unique"]);
    assert_eq!(guarded("%c: bool = icmp.ult %i, u32 2", zero), ["0,0,0 and 1,0,0 at 0"]);
    // One invocation may be all there is.
    assert_eq!(guarded("%c: bool = icmp.ult %i, %n", zero), ["unknown"]);
    // This separates nobody.
    assert_eq!(guarded("%c: bool = icmp.ult %m, %n", zero), ["0,0,0 and 1,0,0 at 0"]);
    let loaded = "%v: u32 = gpu.buffer_load %d, %i\n%c: bool = icmp.ult %v, %n";
    assert_eq!(guarded(loaded, zero), ["unknown"]);
    assert_eq!(guarded(loaded, "gpu.buffer_store %o, %i, %i"), ["unique"]);
    let rest = "%r: u32 = i.urem %i, u32 16\n%q: u32 = i.udiv %i, u32 16\n";
    let one_of_16 = format!("{rest}%c: bool = icmp.eq %r, u32 0");
    assert_eq!(guarded(&one_of_16, "gpu.buffer_store %o, %q, %i"), ["unique"]);
}

#[test]
fn rows_and_columns() {
    let image = |guard: &str| {
        let body = format!(
            "%x: u32 = gpu.global_id dim=0
             %y: u32 = gpu.global_id dim=1
             %row: u32 = i.mul %y, %n
             %at: u32 = i.add %row, %x
             {guard}
             cbr %c, bb1, bb2
             bb1:
             gpu.buffer_store %o, %at, %x
             br bb2
             bb2:
             ret"
        );
        answers([8, 8, 1], None, &body).remove(0)
    };
    assert_eq!(image("%c: bool = icmp.ult %x, %n"), "unique");
    // Rows may overlap.
    assert_eq!(image("%c: bool = icmp.ult %x, %m"), "unknown");
    assert_eq!(
        image("%a: bool = icmp.ult %y, %m\n%b: bool = icmp.ult %x, %n\n%c: bool = i.and %a, %b"),
        "unique"
    );
    // The border is left out.
    let inner = "%less: u32 = i.sub %n, u32 1
        %a: bool = icmp.ugt %x, u32 0
        %b: bool = icmp.slt %x, %less
        %c: bool = i.and %a, %b";
    assert_eq!(image(inner), "unique");
    let line = "%x: u32 = gpu.global_id dim=0\ngpu.buffer_store %o, %x, %x\nret";
    assert_eq!(answers([8, 8, 1], None, line), ["0,0,0 and 0,1,0 at 0 same"]);
    let ids = "%x: u32 = gpu.thread_id dim=0
        %y: u32 = gpu.thread_id dim=1
        %g: u32 = gpu.workgroup_id dim=0
        %row: u32 = i.mul %y, u32 8
        %at: u32 = i.add %row, %x
        %first: u32 = i.mul %g, u32 64
        %z: u32 = i.add %first, %at
        gpu.buffer_store %o, %z, %x
        ret";
    assert_eq!(answers([8, 8, 1], None, ids), ["unique"]);
    assert_eq!(answers([8, 8, 1], None, &ids.replace("u32 64", "u32 63")), ["unknown"]);
}

#[test]
fn three_dimensions() {
    let body = "%x: u32 = gpu.global_id dim=0
        %y: u32 = gpu.global_id dim=1
        %z: u32 = gpu.global_id dim=2
        %a: bool = icmp.ult %x, %n
        cbr %a, bb1, bb3
        bb1:
        %b: bool = icmp.ult %y, %m
        cbr %b, bb2, bb3
        bb2:
        %plane: u32 = i.mul %z, %m
        %row: u32 = i.add %plane, %y
        %first: u32 = i.mul %row, %n
        %at: u32 = i.add %first, %x
        gpu.buffer_store %o, %at, %x
        br bb3
        bb3:
        ret";
    assert_eq!(answers([4, 4, 4], None, body), ["unique"]);
    let swapped =
        body.replace("i.mul %z, %m", "i.mul %z, %n").replace("i.mul %row, %n", "i.mul %row, %m");
    assert_eq!(answers([4, 4, 4], None, &swapped), ["unknown"]);
}

#[test]
fn several_stores() {
    let two = |factor: u32, offset: u32| {
        of_line(&format!(
            "%a: u32 = i.mul %i, u32 {factor}
             %b: u32 = i.add %a, u32 {offset}
             gpu.buffer_store %o, %a, %i
             gpu.buffer_store %o, %b, %i"
        ))
    };
    assert_eq!(two(2, 1), ["unique", "unique"]);
    assert_eq!(two(3, 2), ["unique", "unique"]);
    assert_eq!(two(1, 1), ["1,0,0 and 0,0,0 at 1", "0,0,0 and 1,0,0 at 1"]);
    assert_eq!(two(2, 2), ["1,0,0 and 0,0,0 at 2", "0,0,0 and 1,0,0 at 2"]);
    // The halves of a buffer.
    let halves = "%c: bool = icmp.ult %i, %n
        cbr %c, bb1, bb2
        bb1:
        %b: u32 = i.add %i, %n
        gpu.buffer_store %o, %i, %i
        gpu.buffer_store %o, %b, %i
        br bb2
        bb2:";
    assert_eq!(of_line(halves), ["unique", "unique"]);
    // On either side of a branch.
    let either = "%c: bool = icmp.ult %i, %n
        cbr %c, bb1, bb2
        bb1:
        gpu.buffer_store %o, %i, u32 1
        br bb3
        bb2:
        gpu.buffer_store %o, %i, u32 2
        br bb3
        bb3:";
    assert_eq!(of_line(either), ["unique", "unique"]);
    // What guards one of them says nothing of the other.
    let one_guarded = "%c: bool = icmp.ult %i, u32 1
        cbr %c, bb1, bb2
        bb1:
        gpu.buffer_store %o, u32 2, %i
        br bb2
        bb2:
        gpu.buffer_store %o, %i, %i";
    assert_eq!(of_line(one_guarded), ["0,0,0 and 2,0,0 at 2", "2,0,0 and 0,0,0 at 2"]);
    // Two buffers.
    let other = "gpu.buffer_store %o, %i, %i\ngpu.buffer_store %d, u32 0, %i";
    assert_eq!(of_line(other), ["unique", "0,0,0 and 1,0,0 at 0"]);
}

/// A loop that counts `%j` from a start by a step while it is less than a bound.
fn counted(start: &str, step: &str, bound: &str, body: &str) -> String {
    format!(
        "br bb1
        bb1:
        %j: u32 = phi [bb0: {start}], [bb2: %next]
        %more: bool = icmp.ult %j, {bound}
        cbr %more, bb2, bb3
        bb2:
        {body}
        %next: u32 = i.add %j, {step}
        br bb1
        bb3:"
    )
}

#[test]
fn loops() {
    let all = counted("u32 0", "u32 1", "%n", "gpu.buffer_store %o, %j, %i");
    assert_eq!(of_line(&all), ["0,0,0 and 1,0,0 at 0"]);
    let own = "%a: u32 = i.mul %i, u32 16\n%b: u32 = i.add %a, %j\ngpu.buffer_store %o, %b, %i";
    assert_eq!(of_line(&counted("u32 0", "u32 1", "u32 16", own)), ["unique"]);
    assert_eq!(of_line(&counted("u32 3", "u32 1", "u32 19", own)), ["unique"]);
    assert_eq!(of_line(&counted("u32 0", "u32 1", "u32 17", own)), ["unknown"]);
    let own = own.replace("u32 16", "%n");
    assert_eq!(of_line(&counted("u32 0", "u32 1", "%n", &own)), ["unique"]);
    assert_eq!(of_line(&counted("u32 0", "u32 1", "%m", &own)), ["unknown"]);
    // A column: all rounds of an invocation, then the next.
    let column = "%a: u32 = i.mul %j, %n\n%b: u32 = i.add %a, %i\ngpu.buffer_store %o, %b, %i";
    let guarded = format!(
        "%c: bool = icmp.ult %i, %n\ncbr %c, bb4, bb3\nbb4:\n{}",
        counted("u32 0", "u32 1", "%m", column).replace("bb0:", "bb4:")
    );
    assert_eq!(of_line(&guarded), ["unique"]);
}

#[test]
fn several_loops() {
    // Rounds of two loops pull the index to opposite sides: together no further than one of them.
    let store = "%a: u32 = i.mul %i, u32 16\n%b: u32 = i.add %a, %j\ngpu.buffer_store %o, %b, %i";
    let second = |bound: &str| {
        let text = counted("u32 0", "u32 1", bound, &store.replace("%b", "%f").replace("%a", "%e"));
        [("%j", "%l"), ("%more", "%again"), ("%next", "%then")]
            .into_iter()
            .fold(text, |text, (from, to)| text.replace(from, to))
            .replace("bb3", "bb6")
            .replace("bb2", "bb5")
            .replace("bb1", "bb4")
            .replace("bb0", "bb3")
    };
    let first = counted("u32 0", "u32 1", "u32 16", store);
    assert_eq!(of_line(&format!("{first}\n{}", second("u32 16"))), ["unique", "unique"]);
    assert_eq!(of_line(&format!("{first}\n{}", second("u32 17"))), ["unknown", "unknown"]);
}

#[test]
fn transposed_within_bounds() {
    let transposed = |limit: u32| {
        let body = format!(
            "%c: bool = icmp.ult %i, u32 {limit}
             cbr %c, bb1, bb2
             bb1:
             %y: u32 = i.udiv %i, u32 5
             %x: u32 = i.urem %i, u32 5
             %a: u32 = i.mul %x, u32 3
             %b: u32 = i.add %a, %y
             gpu.buffer_store %o, %b, %i
             br bb2
             bb2:"
        );
        of_line(&body)
    };
    assert_eq!(transposed(15), ["unique"]);
    assert_eq!(transposed(16), ["1,0,0 and 15,0,0 at 3"]);
}

#[test]
fn strides_of_the_whole_launch() {
    let stride = |size: u32| {
        let body = counted("%i", "%step", "%n", "gpu.buffer_store %o, %j, %i");
        of_line(&format!(
            "%g: u32 = gpu.num_workgroups dim=0\n%step: u32 = i.mul %g, u32 {size}\n{body}"
        ))
    };
    assert_eq!(stride(64), ["unique"]);
    assert_eq!(stride(32), ["unknown"]);
    let declared = counted("%i", "%step", "%n", "gpu.buffer_store %o, %j, %i");
    let sizes = "%g: u32 = gpu.num_workgroups dim=0
        %s: u32 = gpu.workgroup_size dim=0
        %step: u32 = i.mul %g, %s\n";
    assert_eq!(of_line(&format!("{sizes}{declared}")), ["unique"]);
}

/// A kernel with a shared array of 64 elements.
fn of_shared(body: &str) -> Vec<String> {
    let body = format!(
        "%s: shared_array<64, u32> = gpu.shared\n%t: u32 = gpu.thread_id dim=0\n{body}\nret"
    );
    answers([64, 1, 1], None, &body)
}

#[test]
fn shared_arrays() {
    let store = "gpu.buffer_store %s, %t, %t";
    assert_eq!(of_shared(store), ["unique"]);
    assert_eq!(of_shared("gpu.buffer_store %s, u32 0, %t"), ["0,0,0 and 1,0,0 at 0"]);
    // Beyond the end there is nothing to write.
    assert_eq!(of_shared("gpu.buffer_store %s, u32 64, %t"), ["unknown"]);
    let mirrored = "%r: u32 = i.xor %t, u32 63\ngpu.buffer_store %s, %r, %t";
    assert_eq!(of_shared(mirrored), ["unique"]);
    assert_eq!(of_shared(&format!("{store}\ngpu.barrier\n{mirrored}")), ["unique", "unique"]);
    assert_eq!(
        of_shared(&format!("{store}\n{mirrored}")),
        ["63,0,0 and 0,0,0 at 63", "0,0,0 and 63,0,0 at 63"]
    );
    // A tree.
    let tree = "br bb1
        bb1:
        %half: u32 = phi [bb0: u32 32], [bb4: %less]
        %more: bool = icmp.ugt %half, u32 0
        cbr %more, bb2, bb5
        bb2:
        %in: bool = icmp.ult %t, %half
        cbr %in, bb3, bb4
        bb3:
        gpu.buffer_store %s, %t, %t
        br bb4
        bb4:
        gpu.barrier
        %less: u32 = i.lshr %half, u32 1
        br bb1
        bb5:";
    assert_eq!(of_shared(tree), ["unique"]);
}

#[test]
fn atomics_and_memory() {
    assert_eq!(of_line("%a: u32 = gpu.atomic.add %o, u32 0, u32 1"), Vec::<String>::new());
    let scattered = "%v: u32 = gpu.buffer_load %d, %i\ngpu.buffer_store %o, %v, %i";
    assert_eq!(of_line(scattered), ["unknown"]);
    // A load at the same index may give different values.
    let loaded = "%v: u32 = gpu.buffer_load %d, u32 0\ngpu.buffer_store %o, %v, %i";
    assert_eq!(of_line(loaded), ["unknown"]);
    let counter = "%a: u32 = gpu.atomic.add %d, u32 0, u32 1\ngpu.buffer_store %o, %a, %i";
    assert_eq!(of_line(counter), ["unknown"]);
    let private = "%p: local_array<4, u32> = gpu.local\ngpu.buffer_store %p, u32 0, %i";
    assert_eq!(of_line(private), Vec::<String>::new());
}
