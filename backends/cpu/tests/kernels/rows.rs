//! Rows of all lengths: known and not, with guards that are known and not, in one or several groups
//! of lanes.

use super::{as_u32s, f32s, run, u32s};

/// Numbers that tell positions apart.
fn numbers(len: u32) -> Vec<u32> {
    (0..len).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

#[test]
fn rows_of_every_length() {
    // Each invocation reads what its neighbour wrote.
    for size in (1..=20).chain([31, 33, 64, 67]) {
        let text = format!(
            "
gpu fn t.@turn(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup({size}, 2, 1) {{
bb0:
  %s: shared_array<{both}, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %y: u32 = gpu.thread_id dim=1
  %w: u32 = gpu.workgroup_id dim=0
  %row: u32 = i.mul %y, u32 {size}
  %slot: u32 = i.add %row, %t
  %base: u32 = i.mul %w, u32 {both}
  %g: u32 = i.add %base, %slot
  %v: u32 = gpu.buffer_load [unchecked] %x, %g
  gpu.buffer_store [unchecked] %s, %slot, %v
  gpu.barrier
  %next: u32 = i.add %slot, u32 1
  %in: bool = icmp.ult %next, u32 {both}
  %j: u32 = select %in, %next, u32 0
  %n: u32 = gpu.buffer_load [unchecked] %s, %j
  %m: u32 = gpu.buffer_load [unchecked] %s, %slot
  %r: u32 = i.sub %n, %m
  gpu.buffer_store [unchecked] %o, %g, %r
  ret
}}
",
            both = 2 * size
        );
        let both = 2 * size;
        let x = numbers(3 * both);
        let zeros = vec![0; x.len()];
        let out = run(&text, [3, 1, 1], [size, 2, 1], &[u32s(&x), u32s(&zeros)], &[]);
        let expected: Vec<u32> = (0..3 * both)
            .map(|g| {
                let next = g / both * both + (g + 1) % both;
                x[next as usize].wrapping_sub(x[g as usize])
            })
            .collect();
        assert_eq!(as_u32s(&out[1]), expected, "{size}");
    }
}

/// A sum in shared memory: of `len` numbers the upper half is added to the lower, round by round,
/// until one is left.
fn tree(len: u32, size: u32) -> String {
    format!(
        "
gpu fn t.@sum(%x: gpu.TBuffer<f32>, %o: gpu.TBuffer<f32>) workgroup({size}, 1, 1) {{
bb0:
  %s: shared_array<{len}, f32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %w: u32 = gpu.workgroup_id dim=0
  %base: u32 = i.mul %w, u32 {len}
  %in: bool = icmp.ult %t, u32 {len}
  cbr %in, bb1, bb2
bb1:
  %g: u32 = i.add %base, %t
  %v: f32 = gpu.buffer_load [unchecked] %x, %g
  gpu.buffer_store [unchecked] %s, %t, %v
  br bb2
bb2:
  gpu.barrier
  br bb3
bb3:
  %n: u32 = phi [bb2: u32 {len}], [bb6: %half]
  %more: bool = icmp.ugt %n, u32 1
  cbr %more, bb4, bb7
bb4:
  %n1: u32 = i.add %n, u32 1
  %half: u32 = i.lshr %n1, u32 1
  %j: u32 = i.add %t, %half
  %active: bool = icmp.ult %j, %n
  cbr %active, bb5, bb6
bb5:
  %a: f32 = gpu.buffer_load [unchecked] %s, %t
  %b: f32 = gpu.buffer_load [unchecked] %s, %j
  %sum: f32 = f.add %a, %b
  gpu.buffer_store [unchecked] %s, %t, %sum
  br bb6
bb6:
  gpu.barrier
  br bb3
bb7:
  %first: bool = icmp.eq %t, u32 0
  cbr %first, bb8, bb9
bb8:
  %all: f32 = gpu.buffer_load [unchecked] %s, u32 0
  gpu.buffer_store [unchecked] %o, %w, %all
  br bb9
bb9:
  ret
}}
"
    )
}

#[test]
fn tree_sums_of_every_length() {
    // Whole numbers: the order of additions does not matter.
    for (len, size) in
        [(1, 1), (2, 2), (3, 4), (7, 7), (16, 16), (37, 64), (96, 96), (100, 128), (256, 256)]
    {
        let x: Vec<f32> = (0..2 * len).map(|i| (i * 7 % 31) as f32).collect();
        let out = run(&tree(len, size), [2, 1, 1], [size, 1, 1], &[f32s(&x), f32s(&[0.0; 2])], &[]);
        let sums = x.chunks(len as usize).map(|half| half.iter().sum::<f32>().to_bits());
        assert_eq!(as_u32s(&out[1]), sums.collect::<Vec<u32>>(), "{len}");
    }
}

#[test]
fn a_guard_that_a_loop_with_barriers_changes() {
    // The numbers that are left in the last round do not fill a row.
    let text = "
gpu fn t.@rounds(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>, %n: u32) workgroup(16, 2, 1) {
bb0:
  %s: shared_array<32, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %y: u32 = gpu.thread_id dim=1
  %row: u32 = i.mul %y, u32 16
  %slot: u32 = i.add %row, %t
  %other: u32 = i.xor %slot, u32 5
  br bb1
bb1:
  %k: u32 = phi [bb0: u32 0], [bb5: %k1]
  %acc: u32 = phi [bb0: u32 1], [bb5: %acc1]
  %more: bool = icmp.ult %k, %n
  cbr %more, bb2, bb6
bb2:
  %i: u32 = i.add %k, %t
  %in: bool = icmp.ult %i, %n
  cbr %in, bb3, bb4
bb3:
  %p: u32 = i.add %i, %y
  %v: u32 = gpu.buffer_load [unchecked] %x, %p
  br bb4
bb4:
  %e: u32 = phi [bb2: u32 7], [bb3: %v]
  gpu.buffer_store [unchecked] %s, %slot, %e
  gpu.barrier
  br bb5
bb5:
  %u: u32 = gpu.buffer_load [unchecked] %s, %other
  %m: u32 = i.mul %acc, u32 3
  %acc1: u32 = i.add %m, %u
  %k1: u32 = i.add %k, u32 16
  gpu.barrier
  br bb1
bb6:
  gpu.buffer_store [unchecked] %o, %slot, %acc
  ret
}
";
    for n in [0u32, 1, 15, 16, 17, 37, 48, 63] {
        let x = numbers(65);
        let out = run(text, [1; 3], [16, 2, 1], &[u32s(&x), u32s(&[0; 32])], &n.to_le_bytes());
        let expected: Vec<u32> = (0..32u32)
            .map(|slot| {
                let (y, t) = ((slot ^ 5) / 16, (slot ^ 5) % 16);
                (0..n).step_by(16).fold(1u32, |acc, k| {
                    let e = if k + t < n { x[(k + t + y) as usize] } else { 7 };
                    acc.wrapping_mul(3).wrapping_add(e)
                })
            })
            .collect();
        assert_eq!(as_u32s(&out[1]), expected, "{n}");
    }
}

#[test]
fn barriers_in_loops_inside_of_loops() {
    // A prefix sum by doubling distances, several times, between two arrays.
    let text = "
gpu fn t.@scan(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(40, 1, 1) {
bb0:
  %a: shared_array<40, u32> = gpu.shared
  %b: shared_array<40, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %v: u32 = gpu.buffer_load [unchecked] %x, %t
  gpu.buffer_store [unchecked] %a, %t, %v
  gpu.barrier
  br outer
outer:
  %r: u32 = phi [bb0: u32 0], [again: %r1]
  %go: bool = icmp.ult %r, u32 3
  cbr %go, start, end
start:
  br inner
inner:
  %d: u32 = phi [start: u32 1], [copied: %d1]
  %on: bool = icmp.ult %d, u32 40
  cbr %on, step, again
step:
  %far: bool = icmp.uge %t, %d
  cbr %far, add, keep
add:
  %p: u32 = i.sub %t, %d
  %e: u32 = gpu.buffer_load [unchecked] %a, %p
  %f: u32 = gpu.buffer_load [unchecked] %a, %t
  %s: u32 = i.add %e, %f
  gpu.buffer_store [unchecked] %b, %t, %s
  br stored
keep:
  %h: u32 = gpu.buffer_load [unchecked] %a, %t
  gpu.buffer_store [unchecked] %b, %t, %h
  br stored
stored:
  gpu.barrier
  %c: u32 = gpu.buffer_load [unchecked] %b, %t
  gpu.buffer_store [unchecked] %a, %t, %c
  gpu.barrier
  br copied
copied:
  %d1: u32 = i.shl %d, u32 1
  br inner
again:
  %r1: u32 = i.add %r, u32 1
  br outer
end:
  %w: u32 = gpu.buffer_load [unchecked] %a, %t
  gpu.buffer_store [unchecked] %o, %t, %w
  ret
}
";
    let x = numbers(40);
    let out = run(text, [1; 3], [40, 1, 1], &[u32s(&x), u32s(&[0; 40])], &[]);
    let mut expected = x;
    for _ in 0..3 {
        let mut sum = 0u32;
        for e in &mut expected {
            sum = sum.wrapping_add(*e);
            *e = sum;
        }
    }
    assert_eq!(as_u32s(&out[1]), expected);
}

#[test]
fn what_is_the_same_for_a_row_but_not_for_all() {
    // Of the row, kept over a barrier, and read by every group of lanes.
    let text = "
gpu fn t.@rows(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(32, 3, 1) {
bb0:
  %t: u32 = gpu.thread_id dim=0
  %y: u32 = gpu.thread_id dim=1
  %v: u32 = gpu.buffer_load [unchecked] %x, %y
  %g: u32 = i.mul %y, u32 32
  %slot: u32 = i.add %g, %t
  gpu.barrier
  %m: u32 = i.mul %v, %t
  gpu.buffer_store [unchecked] %o, %slot, %m
  ret
}
";
    let out = run(text, [1; 3], [32, 3, 1], &[u32s(&[5, 11, 1 << 20]), u32s(&[0; 96])], &[]);
    let expected = [5u32, 11, 1 << 20].into_iter().flat_map(|v| (0..32).map(move |t| v * t));
    assert_eq!(as_u32s(&out[1]), expected.collect::<Vec<u32>>());
}

#[test]
fn uneven_conditions_between_barriers() {
    // Every third invocation, those above what was read, and a guard that wraps at zero.
    let text = "
gpu fn t.@uneven(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(36, 1, 1) {
bb0:
  %s: shared_array<36, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %v: u32 = gpu.buffer_load [unchecked] %x, %t
  gpu.buffer_store [unchecked] %s, %t, %v
  gpu.barrier
  br bb1
bb1:
  %k: u32 = phi [bb0: u32 0], [bb7: %k1]
  %more: bool = icmp.ult %k, u32 3
  cbr %more, bb2, bb8
bb2:
  %rem: u32 = i.urem %t, u32 3
  %mine: bool = icmp.eq %rem, %k
  cbr %mine, bb3, bb4
bb3:
  %a: u32 = gpu.buffer_load [unchecked] %s, %t
  %a1: u32 = i.add %a, u32 1000
  gpu.buffer_store [unchecked] %s, %t, %a1
  br bb4
bb4:
  gpu.barrier
  %before: u32 = i.sub %t, u32 2
  %inner: bool = icmp.ult %before, u32 31
  cbr %inner, bb5, bb6
bb5:
  %p: u32 = i.add %t, u32 1
  %b: u32 = gpu.buffer_load [unchecked] %s, %before
  %c: u32 = gpu.buffer_load [unchecked] %s, %p
  %big: bool = icmp.ugt %b, %c
  %d: u32 = select %big, %b, %c
  br bb6
bb6:
  %e: u32 = phi [bb4: u32 3], [bb5: %d]
  gpu.barrier
  gpu.buffer_store [unchecked] %s, %t, %e
  gpu.barrier
  br bb7
bb7:
  %k1: u32 = i.add %k, u32 1
  br bb1
bb8:
  %r: u32 = gpu.buffer_load [unchecked] %s, %t
  gpu.buffer_store [unchecked] %o, %t, %r
  ret
}
";
    let x = numbers(36);
    let out = run(text, [1; 3], [36, 1, 1], &[u32s(&x), u32s(&[0; 36])], &[]);
    let mut s = x;
    for k in 0..3 {
        for t in (0..36).filter(|t| t % 3 == k) {
            s[t] = s[t].wrapping_add(1000);
        }
        let next = |t: usize| if (2..33).contains(&t) { s[t - 2].max(s[t + 1]) } else { 3 };
        s = (0..36).map(next).collect();
    }
    assert_eq!(as_u32s(&out[1]), s);
}
