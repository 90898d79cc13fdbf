//! Regions, carried values, lanes.

use super::support::{Case, execute};
use super::{as_u32s, f32s, interpret, run, u32s};
use magpie_diag::FileId;
use magpie_interp::Argument;
use magpie_mpir::{FnId, parse};

#[test]
fn one_region_with_a_guard() {
    let text = "
gpu fn t.@scale(%x: gpu.TBuffer<u32>, %n: u32, %k: u32) workgroup(8, 1, 1) {
bb0:
  %g: u32 = gpu.global_id dim=0
  %c: bool = icmp.ult %g, %n
  cbr %c, bb1, bb2
bb1:
  %v: u32 = gpu.buffer_load [unchecked] %x, %g
  %w: u32 = i.mul %v, %k
  gpu.buffer_store [unchecked] %x, %g, %w
  br bb2
bb2:
  ret
}
";
    let scalars = [20u32.to_le_bytes(), 3u32.to_le_bytes()].concat();
    let input: Vec<u32> = (0..20).collect();
    let out = run(text, [3, 1, 1], [8, 1, 1], &[u32s(&input)], &scalars);
    assert_eq!(as_u32s(&out[0]), (0..20).map(|v| v * 3).collect::<Vec<_>>());
}

#[test]
fn ids_in_three_dimensions() {
    let text = "
gpu fn t.@ids(%o: gpu.TBuffer<u32>) workgroup(2, 3, 2) {
bb0:
  %x: u32 = gpu.global_id dim=0
  %y: u32 = gpu.global_id dim=1
  %z: u32 = gpu.global_id dim=2
  %sx: u32 = gpu.workgroup_size dim=0
  %nx: u32 = gpu.num_workgroups dim=0
  %w: u32 = i.mul %sx, %nx
  %sy: u32 = gpu.workgroup_size dim=1
  %ny: u32 = gpu.num_workgroups dim=1
  %h: u32 = i.mul %sy, %ny
  %a: u32 = i.mul %z, %h
  %b: u32 = i.add %a, %y
  %c: u32 = i.mul %b, %w
  %i: u32 = i.add %c, %x
  %ty: u32 = gpu.thread_id dim=1
  %gz: u32 = gpu.workgroup_id dim=2
  %p: u32 = i.mul %ty, u32 100
  %q: u32 = i.add %p, %gz
  %r: u32 = i.mul %q, u32 1000
  %v: u32 = i.add %r, %i
  gpu.buffer_store [unchecked] %o, %i, %v
  ret
}
";
    run(text, [2, 2, 2], [2, 3, 2], &[u32s(&[0; 96])], &[]);
}

#[test]
fn tree_reduction_with_barriers_in_a_uniform_loop() {
    let text = "
gpu fn t.@sum(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(16, 1, 1) {
bb0:
  %s: shared_array<16, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %g: u32 = gpu.global_id dim=0
  %v: u32 = gpu.buffer_load [unchecked] %x, %g
  gpu.buffer_store [unchecked] %s, %t, %v
  gpu.barrier
  br bb1
bb1:
  %h: u32 = phi [bb0: u32 8], [bb4: %h2]
  %more: bool = icmp.ugt %h, u32 0
  cbr %more, bb2, bb5
bb2:
  %c: bool = icmp.ult %t, %h
  cbr %c, bb3, bb4
bb3:
  %a: u32 = gpu.buffer_load [unchecked] %s, %t
  %j: u32 = i.add %t, %h
  %b: u32 = gpu.buffer_load [unchecked] %s, %j
  %sum: u32 = i.add %a, %b
  gpu.buffer_store [unchecked] %s, %t, %sum
  br bb4
bb4:
  gpu.barrier
  %h2: u32 = i.lshr %h, u32 1
  br bb1
bb5:
  %z: bool = icmp.eq %t, u32 0
  cbr %z, bb6, bb7
bb6:
  %r: u32 = gpu.buffer_load [unchecked] %s, u32 0
  %w: u32 = gpu.workgroup_id dim=0
  gpu.buffer_store [unchecked] %o, %w, %r
  br bb7
bb7:
  ret
}
";
    let input: Vec<u32> = (0..64).map(|i| i * i).collect();
    let out = run(text, [4, 1, 1], [16, 1, 1], &[u32s(&input), u32s(&[0; 4])], &[]);
    let sums: Vec<u32> = input.chunks(16).map(|c| c.iter().sum()).collect();
    assert_eq!(as_u32s(&out[1]), sums);
}

#[test]
fn carried_values_and_accumulators() {
    // Varying accumulator over a uniform loop with barriers; a uniform counter with an internal
    // loop in the same region.
    let text = "
gpu fn t.@mix(%o: gpu.TBuffer<u32>, %n: u32) workgroup(8, 2, 1) {
bb0:
  %s: shared_array<16, u32> = gpu.shared
  %x: u32 = gpu.thread_id dim=0
  %y: u32 = gpu.thread_id dim=1
  %r: u32 = i.mul %y, u32 8
  %t: u32 = i.add %r, %x
  %seed: u32 = i.mul %t, u32 2654435761
  %hash: u32 = i.lshr %seed, u32 7
  %q: u32 = i.urem %hash, u32 13
  br bb1
bb1:
  %k: u32 = phi [bb0: u32 0], [bb5: %k2]
  %acc: u32 = phi [bb0: %q], [bb5: %acc3]
  %swap: u32 = phi [bb0: %hash], [bb5: %acc]
  %more: bool = icmp.ult %k, %n
  cbr %more, bb2, bb6
bb2:
  gpu.buffer_store [unchecked] %s, %t, %acc
  gpu.barrier
  br bb3
bb3:
  %i: u32 = phi [bb2: u32 0], [bb4: %i2]
  %acc1: u32 = phi [bb2: %acc], [bb4: %acc2]
  %go: bool = icmp.ult %i, %q
  cbr %go, bb4, bb5
bb4:
  %u: u32 = i.add %i, %t
  %m: u32 = i.and %u, u32 15
  %e: u32 = gpu.buffer_load [unchecked] %s, %m
  %acc2: u32 = i.add %acc1, %e
  %i2: u32 = i.add %i, u32 1
  br bb3
bb5:
  %acc3: u32 = i.xor %acc1, %swap
  gpu.barrier
  %k2: u32 = i.add %k, u32 1
  br bb1
bb6:
  gpu.buffer_store [unchecked] %o, %t, %acc
  ret
}
";
    run(text, [1, 1, 1], [8, 2, 1], &[u32s(&[0; 16])], &5u32.to_le_bytes());
}

#[test]
fn barriers_under_a_uniform_branch_and_a_divergent_one_behind() {
    let text = "
gpu fn t.@paths(%o: gpu.TBuffer<u32>, %n: u32) workgroup(8, 1, 1) {
bb0:
  %s: shared_array<8, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  gpu.buffer_store [unchecked] %s, %t, %t
  %w: u32 = gpu.workgroup_id dim=0
  %even: u32 = i.and %w, u32 1
  %c: bool = icmp.eq %even, u32 0
  cbr %c, bb1, bb2
bb1:
  gpu.barrier
  %j: u32 = i.xor %t, u32 7
  %a: u32 = gpu.buffer_load [unchecked] %s, %j
  br bb5
bb2:
  %odd: u32 = i.and %t, u32 1
  %d: bool = icmp.eq %odd, u32 1
  cbr %d, bb3, bb4
bb3:
  br bb5
bb4:
  br bb6
bb5:
  %p: u32 = phi [bb1: %a], [bb3: u32 100]
  %p2: u32 = i.add %p, u32 1
  br bb6
bb6:
  %v: u32 = phi [bb4: u32 7], [bb5: %p2]
  %g: u32 = gpu.global_id dim=0
  gpu.buffer_store [unchecked] %o, %g, %v
  ret
}
";
    run(text, [4, 1, 1], [8, 1, 1], &[u32s(&[0; 32])], &0u32.to_le_bytes());
}

#[test]
fn atomics_private_arrays_and_structs() {
    let text = "
value struct t.TP { a: u8, b: f32, c: u16 }
gpu fn t.@k(%h: gpu.TBuffer<u32>, %f: gpu.TBuffer<f32>, %p: gpu.TBuffer<t.TP>, %q: t.TP) workgroup(32, 1, 1) {
bb0:
  %s: shared_array<4, i32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %bin: u32 = i.and %t, u32 3
  %one: bool = icmp.ult %t, u32 4
  cbr %one, bb1, bb2
bb1:
  gpu.buffer_store [unchecked] %s, %t, i32 -5
  br bb2
bb2:
  gpu.barrier
  %old: u32 = gpu.atomic.add [unchecked] %h, %bin, %t
  %ti: i32 = cast %t
  %m: i32 = gpu.atomic.max [unchecked] %s, %bin, %ti
  %tf: f32 = cast %t
  %fo: f32 = gpu.atomic.add [unchecked] %f, u32 0, %tf
  %x: u32 = gpu.atomic.cas [unchecked] %h, u32 4, u32 0, u32 9
  %l: local_array<5, u16> = gpu.local
  %tb: u16 = cast %t
  gpu.buffer_store [unchecked] %l, u32 3, %tb
  gpu.barrier
  %z: u16 = gpu.buffer_load [unchecked] %l, u32 2
  %y: u16 = gpu.buffer_load [unchecked] %l, u32 3
  %yz: u16 = i.add %y, %z
  %c: bool = icmp.ult %t, u32 2
  cbr %c, bb3, bb4
bb3:
  %pb: f32 = leaf.get leaf=1 %q
  %ob: f32 = gpu.leaf_load [unchecked] leaf=1 %p, %t
  %nb: f32 = f.add %pb, %ob
  gpu.leaf_store [unchecked] leaf=1 %p, %t, %nb
  gpu.leaf_store [unchecked] leaf=2 %p, %t, %yz
  %sv: i32 = gpu.buffer_load [unchecked] %s, %t
  %su: u32 = bits.cast %sv
  %at: u32 = i.add %t, u32 5
  gpu.buffer_store [unchecked] %h, %at, %su
  br bb4
bb4:
  ret
}
";
    let p = (vec![1u8; 24], 2);
    let mut q = vec![9, 0, 0, 0];
    q.extend(1.5f32.to_le_bytes());
    q.extend([7, 0, 0, 0]);
    run(text, [1, 1, 1], [32, 1, 1], &[u32s(&[0; 8]), f32s(&[0.5]), p], &q);
}

#[test]
fn lanes_with_borders_gathers_and_masks() {
    // Interior guard that wraps at x = 0, a vertical neighbour, a gathered element, 8-bit
    // elements, a select on a varying condition and a uniform loop with a varying phi.
    let text = "
gpu fn t.@blur(%x: gpu.TBuffer<f32>, %o: gpu.TBuffer<f32>, %b: gpu.TBuffer<u8>, %w: u32, %h: u32) workgroup(16, 2, 1) {
bb0:
  %gx: u32 = gpu.global_id dim=0
  %gy: u32 = gpu.global_id dim=1
  %lx: u32 = i.sub %gx, u32 1
  %ly: u32 = i.sub %gy, u32 1
  %w2: u32 = i.sub %w, u32 2
  %h2: u32 = i.sub %h, u32 2
  %cx: bool = icmp.ult %lx, %w2
  %cy: bool = icmp.ugt %h2, %ly
  %c: bool = i.and %cy, %cx
  cbr %c, bb1, bb4
bb1:
  %row: u32 = i.mul %gy, %w
  %at: u32 = i.add %row, %gx
  %mid: f32 = gpu.buffer_load [unchecked] %x, %at
  br bb2
bb2:
  %k: u32 = phi [bb1: u32 0], [bb2: %k2]
  %acc: f32 = phi [bb1: %mid], [bb2: %acc2]
  %off: u32 = i.add %lx, %k
  %i: u32 = i.add %row, %off
  %v: f32 = gpu.buffer_load [unchecked] %x, %i
  %v2: f32 = f.mul %v, f32 0x3f000000
  %acc2: f32 = f.add %acc, %v2
  %k2: u32 = i.add %k, u32 1
  %more: bool = icmp.ult %k2, u32 3
  cbr %more, bb2, bb3
bb3:
  %sq: u32 = i.mul %gx, %gx
  %m: u32 = i.and %sq, u32 15
  %g: f32 = gpu.buffer_load [unchecked] %x, %m
  %byte: u8 = gpu.buffer_load [unchecked] %b, %at
  %byte2: u8 = i.mul %byte, u8 3
  gpu.buffer_store [unchecked] %b, %at, %byte2
  %bf: f32 = cast %byte2
  %odd: u32 = i.and %gx, u32 1
  %is: bool = icmp.eq %odd, u32 1
  %big: bool = fcmp.ogt %acc2, %g
  %both: bool = i.xor %is, %big
  %sel: f32 = select %both, %acc2, %bf
  %root: f32 = f.sqrt %sel
  %cut: f32 = f.min %root, f32 0x41200000
  %n: i32 = cast %cut
  %nf: f32 = cast %n
  %sum: f32 = f.add %nf, %root
  gpu.buffer_store [unchecked] %o, %at, %sum
  br bb4
bb4:
  ret
}
";
    let (w, h) = (29u32, 7u32);
    let x: Vec<f32> = (0..w * h).map(|i| (i * 37 % 101) as f32 - 20.5).collect();
    let bytes: Vec<u8> = (0..w * h).map(|i| (i * 11) as u8).collect();
    let len = bytes.len() as u64;
    let scalars = [w.to_le_bytes(), h.to_le_bytes()].concat();
    let zeros = vec![0.0; (w * h) as usize];
    run(text, [2, 4, 1], [16, 2, 1], &[f32s(&x), f32s(&zeros), (bytes, len)], &scalars);
}

#[test]
fn lanes_inside_a_border_that_runs_one_by_one() {
    let text = "
gpu fn t.@edge(%x: gpu.TBuffer<f32>, %o: gpu.TBuffer<f32>, %w: u32) workgroup(32, 1, 1) {
bb0:
  %g: u32 = gpu.global_id dim=0
  %in: bool = icmp.ult %g, %w
  cbr %in, bb1, bb5
bb1:
  %l: u32 = i.sub %g, u32 1
  %w2: u32 = i.sub %w, u32 2
  %inner: bool = icmp.ult %l, %w2
  cbr %inner, bb2, bb3
bb2:
  %r: u32 = i.add %g, u32 1
  %a: f32 = gpu.buffer_load [unchecked] %x, %l
  %b: f32 = gpu.buffer_load [unchecked] %x, %r
  %s: f32 = f.add %a, %b
  br bb4
bb3:
  %c: f32 = gpu.buffer_load [unchecked] %x, %g
  %d: f32 = f.neg %c
  br bb4
bb4:
  %v: f32 = phi [bb2: %s], [bb3: %d]
  %v2: f32 = f.mul %v, f32 0x40400000
  gpu.buffer_store [unchecked] %o, %g, %v2
  br bb5
bb5:
  ret
}
";
    for w in [1u32, 2, 3, 5, 31, 32, 33, 70, 96] {
        let x: Vec<f32> = (0..w).map(|i| i as f32 * 1.25 - 3.0).collect();
        let zeros = vec![0.0; w as usize];
        run(text, [3, 1, 1], [32, 1, 1], &[f32s(&x), f32s(&zeros)], &w.to_le_bytes());
    }
}

#[test]
fn clamped_indices_run_in_lanes_where_they_grow() {
    // The neighbours of an element, those beyond the ends replaced by the ends; written with
    // selects, with minima and maxima, and so that the index wraps before it is clamped.
    let text = "
gpu fn t.@near(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>, %n: u32) workgroup(16, 1, 1) {
bb0:
  %g: u32 = gpu.global_id dim=0
  %c: bool = icmp.ult %g, %n
  cbr %c, bb1, bb4
bb1:
  %last: u32 = i.sub %n, u32 1
  %early: bool = icmp.ult %g, u32 2
  %m2: u32 = i.sub %g, u32 2
  %a: u32 = select %early, u32 0, %m2
  %p3: u32 = i.add %g, u32 3
  %b: u32 = i.umin %last, %p3
  %m1: u32 = i.sub %g, u32 1
  %wrapped: u32 = i.umin %m1, %last
  %d: u32 = i.umax %g, u32 5
  %e: u32 = i.umin %d, %last
  %va: u32 = gpu.buffer_load [unchecked] %x, %a
  %vb: u32 = gpu.buffer_load [unchecked] %x, %b
  %vw: u32 = gpu.buffer_load [unchecked] %x, %wrapped
  %ve: u32 = gpu.buffer_load [unchecked] %x, %e
  %s1: u32 = i.mul %va, u32 3
  %s2: u32 = i.mul %vb, u32 5
  %s3: u32 = i.mul %vw, u32 7
  %s4: u32 = i.add %s1, %s2
  %s5: u32 = i.add %s3, %ve
  %s: u32 = i.xor %s4, %s5
  gpu.buffer_store [unchecked] %o, %g, %s
  %third: bool = icmp.eq %g, u32 3
  cbr %third, bb2, bb3
bb2:
  gpu.buffer_store [unchecked] %o, %g, %b
  br bb3
bb3:
  br bb4
bb4:
  ret
}
";
    for n in [1u32, 2, 3, 5, 7, 8, 15, 16, 17, 31, 40] {
        let input: Vec<u32> = (0..n).map(|i| i * i + 11).collect();
        let output = vec![0; n as usize];
        run(text, [3, 1, 1], [16, 1, 1], &[u32s(&input), u32s(&output)], &n.to_le_bytes());
    }
}

#[test]
fn a_branch_on_a_value_that_another_region_computed() {
    let text = "
gpu fn t.@late(%x: gpu.TBuffer<f32>, %o: gpu.TBuffer<u32>) workgroup(16, 1, 1) {
bb0:
  %s: shared_array<16, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %v: f32 = gpu.buffer_load [unchecked] %x, %t
  %c: bool = fcmp.ogt %v, f32 0x3f000000
  gpu.buffer_store [unchecked] %s, %t, %t
  gpu.barrier
  cbr %c, bb1, bb2
bb1:
  %j: u32 = i.xor %t, u32 1
  %n: u32 = gpu.buffer_load [unchecked] %s, %j
  gpu.buffer_store [unchecked] %o, %t, %n
  br bb2
bb2:
  ret
}
";
    let x: Vec<f32> = (0..16).map(|i| if i % 3 == 0 { 1.0 } else { 0.25 }).collect();
    let out = run(text, [1; 3], [16, 1, 1], &[f32s(&x), u32s(&[99; 16])], &[]);
    let expected = (0..16).map(|i| if i % 3 == 0 { i ^ 1 } else { 99 });
    assert_eq!(as_u32s(&out[1]), expected.collect::<Vec<u32>>());
}

#[test]
fn many_loads_see_what_was_written_before_them() {
    // Loads of what is the same for a row, of what changes from round to round, and of what the
    // invocation itself overwrites.
    let mut text = String::from(
        "
gpu fn t.@rounds(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(16, 2, 1) {
bb0:
  %s: shared_array<32, u32> = gpu.shared
  %t: u32 = gpu.thread_id dim=0
  %y: u32 = gpu.thread_id dim=1
  %row: u32 = i.mul %y, u32 16
  %slot: u32 = i.add %row, %t
  br bb1
bb1:
  %r: u32 = phi [bb0: u32 0], [bb3: %rn]
  %acc: u32 = phi [bb0: u32 1], [bb3: %a9]
  %more: bool = icmp.ult %r, u32 3
  cbr %more, bb2, bb4
bb2:
  %p: u32 = i.mul %slot, %acc
  gpu.buffer_store [unchecked] %s, %slot, %p
  gpu.barrier
  br bb3
bb3:
  %a0: u32 = i.add %acc, u32 7
",
    );
    for k in 0..9 {
        let line = format!(
            "  %i{k}: u32 = i.add %row, u32 {k}\n  %v{k}: u32 = gpu.buffer_load [unchecked] %s, %i{k}\n  \
             %m{k}: u32 = i.mul %a{k}, u32 3\n  %a{}: u32 = i.add %m{k}, %v{k}\n",
            k + 1
        );
        text.push_str(&line);
    }
    text.push_str(
        "  gpu.barrier
  %rn: u32 = i.add %r, u32 1
  br bb1
bb4:
  %base: u32 = i.mul %slot, u32 8
",
    );
    text.push_str("  %b0: u32 = i.add %acc, u32 0\n");
    for k in 0..8 {
        let line = format!(
            "  %j{k}: u32 = i.add %base, u32 {k}\n  %w{k}: u32 = gpu.buffer_load [unchecked] %x, %j{k}\n  \
             %n{k}: u32 = i.mul %b{k}, u32 5\n  %b{}: u32 = i.add %n{k}, %w{k}\n",
            k + 1
        );
        text.push_str(&line);
    }
    text.push_str("  gpu.buffer_store [unchecked] %o, %j3, %b8\n  ret\n}\n");
    let x: Vec<u32> = (0..256).map(|i| i * 11 + 5).collect();
    let apart = run(&text, [1; 3], [16, 2, 1], &[u32s(&x), u32s(&[0; 256])], &[]);
    assert_ne!(as_u32s(&apart[1]), [0; 256]);
    // The same with both parameters one buffer.
    let module = parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    let arguments = [Argument::Buffer(0), Argument::Buffer(0)];
    let buffers = [u32s(&x).0];
    let case = Case { grid: [1; 3], block: [16, 2, 1], arguments: &arguments, buffers: &buffers };
    let kernel = FnId(0);
    assert_eq!(execute(&module, kernel, &case), interpret(&module, kernel, &case));
}

#[test]
fn vectors_in_buffers_and_parameters() {
    let text = "
value struct t.TPart { a: f32, b: vec<f32, 2> }
gpu fn t.@vectors(%x: gpu.TBuffer<vec<f32, 4>>, %p: gpu.TBuffer<t.TPart>, %o: gpu.TBuffer<vec<f32, 4>>, %k: vec<f32, 4>) workgroup(4, 1, 1) {
bb0:
  %i: u32 = gpu.global_id dim=0
  %v: vec<f32, 4> = gpu.buffer_load [unchecked] %x, %i
  %v0: f32 = vec.extract lane=0 %v
  %v1: f32 = vec.extract lane=1 %v
  %v2: f32 = vec.extract lane=2 %v
  %v3: f32 = vec.extract lane=3 %v
  %k3: f32 = vec.extract lane=3 %k
  %b: vec<f32, 2> = gpu.leaf_load [unchecked] leaf=1 %p, %i
  %b0: f32 = vec.extract lane=0 %b
  %b1: f32 = vec.extract lane=1 %b
  %s: f32 = f.add %v1, %b1
  %t: f32 = f.mul %v3, %k3
  %r: vec<f32, 4> = vec.new %s, %v0, %t, %b0
  gpu.buffer_store [unchecked] %o, %i, %r
  %c: vec<f32, 2> = vec.new %v2, %v3
  gpu.leaf_store [unchecked] leaf=1 %p, %i, %c
  gpu.buffer_store [unchecked] %x, %i, %k
  ret
}
";
    let floats = |n: usize, from: f32| (0..n).map(|i| from + i as f32).collect::<Vec<f32>>();
    let scalars: Vec<u8> = [0.5f32, 1.5, 2.5, 3.5].iter().flat_map(|k| k.to_le_bytes()).collect();
    let stride = 16;
    let parts = floats(8 * stride / 4, 100.0);
    let buffers = [f32s(&floats(32, 1.0)), f32s(&parts), f32s(&[0.0; 32])];
    run(text, [2, 1, 1], [4, 1, 1], &buffers, &scalars);
}
