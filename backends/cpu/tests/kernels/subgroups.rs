//! Operations of subgroups: every op over its types, with all, some and no invocations taking part.

use super::{as_u32s, run, u32s};
use magpie_types::PrimType;

const TYPES: &[PrimType] = &[
    PrimType::I8,
    PrimType::I16,
    PrimType::I32,
    PrimType::I64,
    PrimType::U8,
    PrimType::U16,
    PrimType::U32,
    PrimType::U64,
    PrimType::F16,
    PrimType::Bf16,
    PrimType::F32,
    PrimType::F64,
];

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 >> 20
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// The workgroups of the tests: whole subgroups, a last one that is not full, rows that no vector
/// divides.
const BLOCKS: &[[u32; 3]] = &[[64, 1, 1], [5, 7, 1], [20, 2, 2]];

/// Runs a kernel with `%x` of the type, `%m` of masks and `%o`, for all blocks and masks.
fn run_masked(prim: PrimType, text: &str, result: PrimType) {
    let mut numbers = Numbers(prim as u64);
    for &block in BLOCKS {
        let n = 2 * block.iter().product::<u32>() as usize;
        let x = (numbers.bytes(n * prim.size() as usize), n as u64);
        let random: Vec<u32> = (0..n).map(|_| numbers.next() as u32).collect();
        for masks in [vec![u32::MAX; n], vec![0; n], random] {
            let o = (vec![0x5a; n * result.size() as usize], n as u64);
            run(text, [2, 1, 1], block, &[x.clone(), u32s(&masks), o], &[]);
        }
    }
}

/// A kernel in which the invocations with an odd mask execute `op`, which gives `%r`.
fn masked(prim: PrimType, op: &str, result: PrimType) -> String {
    let (t, r) = (prim.name(), result.name());
    format!(
        "
gpu fn t.@masked(%x: gpu.TBuffer<{t}>, %m: gpu.TBuffer<u32>, %o: gpu.TBuffer<{r}>) workgroup(64, 1, 1) {{
bb0:
  %w: u32 = gpu.workgroup_id dim=0
  %bx: u32 = gpu.workgroup_size dim=0
  %by: u32 = gpu.workgroup_size dim=1
  %bz: u32 = gpu.workgroup_size dim=2
  %tx: u32 = gpu.thread_id dim=0
  %ty: u32 = gpu.thread_id dim=1
  %tz: u32 = gpu.thread_id dim=2
  %i0: u32 = i.mul %w, %bz
  %i1: u32 = i.add %i0, %tz
  %i2: u32 = i.mul %i1, %by
  %i3: u32 = i.add %i2, %ty
  %i4: u32 = i.mul %i3, %bx
  %i: u32 = i.add %i4, %tx
  %v: {t} = gpu.buffer_load [unchecked] %x, %i
  %mask: u32 = gpu.buffer_load [unchecked] %m, %i
  %bit: u32 = i.and %mask, u32 1
  %lane: u32 = i.lshr %mask, u32 27
  %c: bool = icmp.ne %bit, u32 0
  cbr %c, bb1, bb2
bb1:
{op}
  gpu.buffer_store [unchecked] %o, %i, %r
  br bb2
bb2:
  ret
}}
"
    )
}

#[test]
fn numbers_of_every_type() {
    for &prim in TYPES {
        let t = prim.name();
        for op in ["sum", "min", "max", "prefix_sum"] {
            let op = format!("  %r: {t} = gpu.subgroup.{op} %v");
            run_masked(prim, &masked(prim, &op, prim), prim);
        }
        for op in ["shuffle", "shuffle_down", "shuffle_up", "shuffle_xor"] {
            let op = format!("  %r: {t} = gpu.subgroup.{op} %v, %lane");
            run_masked(prim, &masked(prim, &op, prim), prim);
        }
        let op = format!("  %r: {t} = gpu.subgroup.broadcast %v, u32 3");
        run_masked(prim, &masked(prim, &op, prim), prim);
    }
}

#[test]
fn votes() {
    let vote = |op: &str| {
        format!(
            "  %p: bool = icmp.ugt %v, u32 2147483648\n  %q: bool = gpu.subgroup.{op} %p\n  \
             %r: u32 = cast %q"
        )
    };
    for op in ["any", "all"] {
        run_masked(PrimType::U32, &masked(PrimType::U32, &vote(op), PrimType::U32), PrimType::U32);
    }
    let ballot = "  %p: bool = icmp.ugt %v, u32 2147483648\n  %r: u64 = gpu.subgroup.ballot %p";
    run_masked(PrimType::U32, &masked(PrimType::U32, ballot, PrimType::U64), PrimType::U64);
}

#[test]
fn constants_and_lane_numbers() {
    let op = "  %l: u32 = gpu.subgroup.lane_id\n  %n: u32 = gpu.subgroup.size\n  \
              %one: u32 = gpu.subgroup.sum u32 1\n  %s: u32 = gpu.subgroup.sum %l\n  \
              %a: u32 = i.mul %one, %n\n  %b: u32 = i.add %a, %s\n  %r: u32 = i.mul %b, %l";
    run_masked(PrimType::U32, &masked(PrimType::U32, op, PrimType::U32), PrimType::U32);
}

#[test]
fn a_tree_of_shuffles_adds_a_whole_subgroup() {
    let mut text = String::from(
        "
gpu fn t.@tree(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(64, 1, 1) {
bb0:
  %t: u32 = gpu.global_id dim=0
  %v0: u32 = gpu.buffer_load [unchecked] %x, %t
",
    );
    for (n, distance) in [16, 8, 4, 2, 1].into_iter().enumerate() {
        let next = n + 1;
        text += &format!(
            "  %d{n}: u32 = gpu.subgroup.shuffle_down %v{n}, u32 {distance}\n  \
             %v{next}: u32 = i.add %v{n}, %d{n}\n"
        );
    }
    text += "  %l: u32 = gpu.subgroup.lane_id\n  %first: bool = icmp.eq %l, u32 0\n  \
             cbr %first, bb1, bb2\nbb1:\n  %k: u32 = i.lshr %t, u32 5\n  \
             gpu.buffer_store [unchecked] %o, %k, %v5\n  br bb2\nbb2:\n  ret\n}\n";
    let x: Vec<u32> = (1..=128).collect();
    let out = run(&text, [2, 1, 1], [64, 1, 1], &[u32s(&x), u32s(&[0; 4])], &[]);
    let sums: Vec<u32> = x.chunks(32).map(|c| c.iter().sum()).collect();
    assert_eq!(as_u32s(&out[1]), sums);
}

#[test]
fn parted_invocations_meet_again() {
    // Both sides of a branch, rounds of a loop that each invocation leaves on its own, a return, and
    // shared memory and a barrier behind it all.
    let text = "
gpu fn t.@parts(%x: gpu.TBuffer<u32>, %o: gpu.TBuffer<u32>) workgroup(40, 2, 1) {
bb0:
  %shared: shared_array<80, u32> = gpu.shared
  %tx: u32 = gpu.thread_id dim=0
  %ty: u32 = gpu.thread_id dim=1
  %row: u32 = i.mul %ty, u32 40
  %t: u32 = i.add %row, %tx
  %v: u32 = gpu.buffer_load [unchecked] %x, %t
  %odd: u32 = i.and %v, u32 1
  %c: bool = icmp.ne %odd, u32 0
  cbr %c, bb1, bb2
bb1:
  %a: u32 = gpu.subgroup.sum %v
  br bb3
bb2:
  %b: u32 = gpu.subgroup.max %v
  br bb3
bb3:
  %w: u32 = phi [bb1: %a], [bb2: %b]
  %all: u32 = gpu.subgroup.sum u32 1
  %rounds: u32 = i.and %v, u32 7
  br bb4
bb4:
  %n: u32 = phi [bb3: u32 0], [bb8: %n2]
  %acc: u32 = phi [bb3: %w], [bb8: %acc3]
  %done: bool = icmp.uge %n, %rounds
  cbr %done, bb9, bb5
bb5:
  %together: u32 = gpu.subgroup.sum u32 1
  %bits: u32 = i.and %v, %n
  %skip: bool = icmp.eq %bits, u32 0
  cbr %skip, bb6, bb7
bb6:
  %e: u32 = gpu.subgroup.prefix_sum %acc
  br bb8
bb7:
  br bb8
bb8:
  %acc2: u32 = phi [bb6: %e], [bb7: %acc]
  %x3: u32 = i.mul %acc2, u32 3
  %acc3: u32 = i.add %x3, %together
  %n2: u32 = i.add %n, u32 1
  br bb4
bb9:
  %again: u32 = gpu.subgroup.sum u32 1
  gpu.buffer_store [unchecked] %shared, %t, %acc
  gpu.barrier
  %j: u32 = i.xor %t, u32 1
  %other: u32 = gpu.buffer_load [unchecked] %shared, %j
  %r0: u32 = i.mul %other, %again
  %r: u32 = i.add %r0, %all
  gpu.buffer_store [unchecked] %o, %t, %r
  %small: bool = icmp.ult %v, u32 500
  cbr %small, bb10, bb11
bb10:
  ret
bb11:
  %rest: u32 = gpu.subgroup.sum u32 1
  %k: u32 = i.add %t, u32 80
  gpu.buffer_store [unchecked] %o, %k, %rest
  ret
}
";
    let mut numbers = Numbers(9);
    for _ in 0..4 {
        let x: Vec<u32> = (0..80).map(|_| numbers.next() as u32 % 1000).collect();
        let out = run(text, [1; 3], [40, 2, 1], &[u32s(&x), u32s(&[0; 160])], &[]);
        let out = as_u32s(&out[1]);
        // Those that are left behind the last return, of each subgroup.
        for (n, &v) in x.iter().enumerate() {
            let mates = &x[n / 32 * 32..(n / 32 * 32 + 32).min(80)];
            let left = mates.iter().filter(|&&v| v >= 500).count() as u32;
            assert_eq!(out[80 + n], if v < 500 { 0 } else { left });
        }
    }
}
