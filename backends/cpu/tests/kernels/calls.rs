//! Recursive functions that a kernel calls.

use super::{as_u32s, run, u32s};

#[test]
fn functions_that_call_each_other() {
    // With buffers, arrays, booleans, the ids of the invocation, behind a barrier and in a loop.
    let text = "
device fn t.@even(%n: u32, %b: gpu.TBuffer<u32>, %up: bool) -> u32 {
bb0:
  %z: bool = icmp.eq %n, u32 0
  cbr %z, bb1, bb2
bb1:
  %t: u32 = gpu.thread_id dim=0
  %w: u32 = gpu.workgroup_id dim=0
  %s: u32 = i.shl %w, u32 8
  %id: u32 = i.add %s, %t
  ret %id
bb2:
  %m: u32 = i.sub %n, u32 1
  %a: local_array<4, u32> = gpu.local
  %at: u32 = i.and %n, u32 3
  gpu.buffer_store [unchecked] %a, %at, %n
  %r: u32 = call fn=t.@odd %m, %b, %up
  %k: u32 = gpu.buffer_load [unchecked] %a, %at
  %i: u32 = i.and %k, u32 7
  %x: u32 = gpu.buffer_load [unchecked] %b, %i
  %p: u32 = i.mul %r, u32 3
  %q: u32 = i.add %p, %x
  ret %q
}
device fn t.@odd(%n: u32, %b: gpu.TBuffer<u32>, %up: bool) -> u32 {
bb0:
  %z: bool = icmp.eq %n, u32 0
  cbr %z, bb1, bb2
bb1:
  %one: u32 = cast %up
  ret %one
bb2:
  %m: u32 = i.sub %n, u32 1
  %down: bool = i.xor %up, bool true
  %r: u32 = call fn=t.@even %m, %b, %down
  ret %r
}
gpu fn t.@k(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(8, 1, 1) requires(recursion) {
bb0:
  %g: u32 = gpu.global_id dim=0
  %t: u32 = gpu.thread_id dim=0
  %s: shared_array<8, u32> = gpu.shared
  %c: bool = icmp.ult %t, u32 3
  %v: u32 = call fn=t.@even %g, %x, %c
  gpu.buffer_store [unchecked] %s, %t, %v
  gpu.barrier
  br bb1
bb1:
  %i: u32 = phi [bb0: u32 0], [bb1: %i1]
  %sum: u32 = phi [bb0: %v], [bb1: %sum1]
  %j: u32 = i.xor %t, %i
  %e: u32 = gpu.buffer_load [unchecked] %s, %j
  %n: u32 = i.and %e, u32 15
  %f: u32 = call fn=t.@odd %n, %x, %c
  %sum1: u32 = i.add %sum, %f
  %i1: u32 = i.add %i, u32 1
  %more: bool = icmp.ult %i1, u32 3
  cbr %more, bb1, bb2
bb2:
  gpu.buffer_store [unchecked] %o, %g, %sum1
  ret
}
";
    let x: Vec<u32> = (0..8).map(|i| i * i + 1).collect();
    let out = run(text, [3, 1, 1], [8, 1, 1], &[u32s(&x), u32s(&[0; 24])], &[]);
    // `run` has compared with the interpreter; this is what makes it worth it.
    assert!(as_u32s(&out[1]).windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn calls_of_many_levels() {
    let text = "
device fn t.@sum(%n: u64) -> u64 {
bb0:
  %z: bool = icmp.eq %n, u64 0
  cbr %z, bb1, bb2
bb1:
  ret u64 0
bb2:
  %m: u64 = i.sub %n, u64 1
  %r: u64 = call fn=t.@sum %m
  %s: u64 = i.add %r, %n
  ret %s
}
gpu fn t.@k(%o: gpu.TBuffer<u32>) workgroup(4, 1, 1) requires(recursion) {
bb0:
  %t: u32 = gpu.thread_id dim=0
  %n: u32 = i.mul %t, u32 1000
  %w: u64 = cast %n
  %s: u64 = call fn=t.@sum %w
  %r: u32 = cast %s
  gpu.buffer_store [unchecked] %o, %t, %r
  ret
}
";
    let out = run(text, [1; 3], [4, 1, 1], &[u32s(&[0; 4])], &[]);
    assert_eq!(as_u32s(&out[0]), [0, 500_500, 2_001_000, 4_501_500]);
}
