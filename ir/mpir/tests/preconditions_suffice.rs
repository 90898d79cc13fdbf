//! When the preconditions of a kernel hold, its unchecked body stays inside its buffers and gives
//! the same results; launches of all kinds are tried. And the kernels that matter have them.

use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::analysis::LaunchFacts;
use magpie_mpir::passes::{PassContext, Pipeline, Unchecked, inline_calls, preconditions};
use magpie_mpir::testing::{KernelConfig, RandomArgument, Rng, random_kernel};
use magpie_mpir::{Flags, FnId, Module, Op, parse, print_fn};
use magpie_types::kernel::{PreOp, Precondition};

/// What a launch passes, as preconditions see it.
struct Arguments {
    scalars: Vec<u8>,
    lengths: Vec<u64>,
    grid: [u32; 3],
    block: [u32; 3],
}

impl Arguments {
    /// The definition of [`PreOp`].
    fn evaluate(&self, program: &[PreOp]) -> u128 {
        let mut stack: Vec<u128> = Vec::new();
        for op in program {
            let number = match *op {
                PreOp::Const(c) => Some(c as u128),
                PreOp::Scalar { offset, size } => {
                    let bytes = &self.scalars[offset as usize..(offset + size) as usize];
                    Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | b as u128))
                }
                PreOp::Extent(d) => {
                    Some(self.grid[d as usize] as u128 * self.block[d as usize] as u128)
                }
                PreOp::Grid(d) => Some(self.grid[d as usize] as u128),
                PreOp::Block(d) => Some(self.block[d as usize] as u128),
                PreOp::Length(n) => Some(self.lengths[n as usize] as u128),
                PreOp::Add | PreOp::Sub | PreOp::Mul | PreOp::Min | PreOp::Max | PreOp::Dec => None,
            };
            if let Some(number) = number {
                stack.push(number);
                continue;
            }
            let top = stack.pop().unwrap();
            let mut binary = |f: fn(u128, u128) -> u128| {
                let below = stack.pop().unwrap();
                stack.push(f(below, top));
            };
            match *op {
                PreOp::Add => binary(u128::saturating_add),
                PreOp::Sub => binary(u128::saturating_sub),
                PreOp::Mul => binary(u128::saturating_mul),
                PreOp::Min => binary(u128::min),
                PreOp::Max => binary(u128::max),
                _ => stack.push(top.saturating_sub(1)),
            }
        }
        assert_eq!(stack.len(), 1);
        stack[0]
    }

    fn meet(&self, preconditions: &[Precondition]) -> bool {
        preconditions
            .iter()
            .all(|p| self.evaluate(&p.bound) <= self.lengths[p.buffer as usize] as u128)
    }
}

#[test]
fn unchecked_bodies_stay_inside() {
    let (mut bodies, mut launches) = (0, 0);
    for seed in 0..1200 {
        let config = KernelConfig { size: 50, depth: 2, ..KernelConfig::all() };
        let mut k = random_kernel(seed, &config);
        inline_calls(&mut k.module, &mut Vec::new());
        Pipeline::new().optimize_device(&mut k.module, k.kernel);
        let f = k.module.func(k.kernel).clone();
        let facts = LaunchFacts { workgroup: (seed % 2 == 0).then_some(k.block) };
        let unchecked = preconditions(&f, &k.module.types, facts, &mut PassContext::new());
        let Some(Unchecked { body, preconditions }) = unchecked else { continue };
        bodies += 1;
        let mut module = k.module.clone();
        module.fns[k.kernel.index()] = body;
        let mut rng = Rng::new(seed);
        for _ in 0..6 {
            // Other lengths, other numbers.
            let mut contents: Vec<Vec<u8>> = k
                .buffers
                .iter()
                .map(|b| {
                    let stride = k.module.types.stride(b.element) as usize;
                    let len = b.bytes.len() / stride;
                    let keep = if rng.chance(60) { len } else { rng.below(len + 1) };
                    b.bytes[..keep * stride].to_vec()
                })
                .collect();
            let (mut scalars, mut lengths, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
            for (a, &(_, ty)) in k.arguments.iter().zip(&f.params) {
                match a {
                    RandomArgument::Buffer(n) => {
                        let stride = k.module.types.stride(k.buffers[*n].element) as usize;
                        lengths.push((contents[*n].len() / stride) as u64);
                        arguments.push(Argument::Buffer(*n));
                    }
                    RandomArgument::Scalar(bytes) => {
                        let mut bytes = bytes.clone();
                        if bytes.len() == 4 && rng.chance(70) {
                            bytes = (rng.below(12) as u32).to_le_bytes().to_vec();
                        }
                        let align = k.module.types.layout(ty).align as usize;
                        scalars.resize(scalars.len().next_multiple_of(align), 0);
                        scalars.extend_from_slice(&bytes);
                        arguments.push(Argument::Scalar(bytes));
                    }
                }
            }
            let launch = Arguments { scalars, lengths, grid: k.grid, block: k.block };
            if !launch.meet(&preconditions) {
                continue;
            }
            launches += 1;
            let mut wanted = contents.clone();
            for (m, contents) in [(&k.module, &mut wanted), (&module, &mut contents)] {
                let mut buffers: Vec<Buffer> =
                    contents.iter_mut().map(|bytes| Buffer { bytes }).collect();
                let shape = Launch::new(k.grid, k.block);
                let ran = run_kernel(m, k.kernel, shape, &arguments, &mut buffers, &mut |_| {});
                if let Err(fault) = ran {
                    panic!(
                        "seed {seed}: {fault}\n{preconditions:?}\n{}",
                        print_fn(m, m.func(k.kernel))
                    );
                }
            }
            assert_eq!(wanted, contents, "seed {seed}");
        }
    }
    assert!(bodies > 100 && launches > 200, "{bodies} bodies, {launches} launches");
}

fn kernel(params: &str, body: &str) -> (Module, Option<Unchecked>) {
    let text = format!("gpu fn t.@k({params}) -> unit workgroup(16, 16, 1) {{\n{body}\n}}\n");
    let module = parse(&text, magpie_diag::FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    let f = module.func(FnId(0));
    let unchecked =
        preconditions(f, &module.types, LaunchFacts::default(), &mut PassContext::new());
    (module, unchecked)
}

fn checked(u: &Unchecked) -> usize {
    let insts = u.body.blocks.iter().flat_map(|b| &b.insts);
    let is_checked = |i: &&magpie_mpir::Inst| {
        let inst = u.body.inst(**i);
        let access = matches!(inst.op, Op::GpuBufferLoad | Op::GpuBufferStore);
        access && !inst.flags.contains(Flags::UNCHECKED)
    };
    insts.filter(is_checked).count()
}

fn arguments(numbers: &[u32], lengths: &[u64]) -> Arguments {
    let scalars = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    Arguments { scalars, lengths: lengths.to_vec(), grid: [4, 4, 1], block: [16, 16, 1] }
}

#[test]
fn guard_by_a_number() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<f32>, %b: gpu.TBuffer<f32>, %n: u32",
        "bb0:
        %i: u32 = gpu.global_id dim=0
        %in: bool = icmp.ult %i, %n
        cbr %in, bb1, bb2
        bb1:
        %x: f32 = gpu.buffer_load %a, %i
        gpu.buffer_store %b, %i, %x
        ret
        bb2:
        ret",
    );
    let u = unchecked.unwrap();
    assert_eq!(checked(&u), 0);
    assert_eq!(u.preconditions.len(), 2);
    let holds = |n, a, b| arguments(&[n], &[a, b]).meet(&u.preconditions);
    assert!(holds(50, 50, 50) && !holds(50, 49, 50) && !holds(50, 50, 49));
    // The launch has 64 invocations in this dimension.
    assert!(holds(1000, 64, 64) && !holds(1000, 63, 64));
}

#[test]
fn row_and_column_of_an_image() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<f32>, %w: u32, %h: u32",
        "bb0:
        %x: u32 = gpu.global_id dim=0
        %y: u32 = gpu.global_id dim=1
        %inx: bool = icmp.ult %x, %w
        %iny: bool = icmp.ult %y, %h
        %in: bool = i.and %inx, %iny
        cbr %in, bb1, bb2
        bb1:
        %row: u32 = i.mul %y, %w
        %i: u32 = i.add %row, %x
        gpu.buffer_store %a, %i, f32 0x3f800000
        ret
        bb2:
        ret",
    );
    let u = unchecked.unwrap();
    assert_eq!(checked(&u), 0);
    let holds = |w, h, a| arguments(&[w, h], &[a]).meet(&u.preconditions);
    assert!(holds(10, 20, 200) && !holds(10, 20, 199) && holds(64, 64, 4096));
    // What wraps in 32 bits does not fit.
    let mut large = arguments(&[65536, 65537], &[65536 * 65537]);
    large.grid = [65536, 65536, 1];
    assert!(large.meet(&u.preconditions));
    large.lengths = vec![65536];
    assert!(!large.meet(&u.preconditions));
}

#[test]
fn inner_points_of_a_stencil() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<f32>, %w: u32",
        "bb0:
        %x: u32 = gpu.global_id dim=0
        %low: bool = icmp.ugt %x, u32 0
        %last: u32 = i.sub %w, u32 1
        %high: bool = icmp.ult %x, %last
        %in: bool = i.and %low, %high
        cbr %in, bb1, bb2
        bb1:
        %left: u32 = i.sub %x, u32 1
        %right: u32 = i.add %x, u32 1
        %l: f32 = gpu.buffer_load %a, %left
        %r: f32 = gpu.buffer_load %a, %right
        gpu.buffer_store %a, %x, %r
        ret
        bb2:
        ret",
    );
    let u = unchecked.unwrap();
    assert_eq!(checked(&u), 0);
    let holds = |w, a| arguments(&[w], &[a]).meet(&u.preconditions);
    assert!(holds(40, 40) && !holds(40, 39));
    // With a width of 0 the last column is 4294967295, and only the launch bounds x.
    assert!(!holds(0, 64) && holds(0, 65));
}

#[test]
fn signed_indices() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<f32>, %n: i32",
        "bb0:
        %g: u32 = gpu.global_id dim=0
        %i: i32 = cast %g
        %in: bool = icmp.slt %i, %n
        cbr %in, bb1, bb2
        bb1:
        gpu.buffer_store %a, %i, f32 0x3f800000
        ret
        bb2:
        ret",
    );
    let u = unchecked.unwrap();
    assert_eq!(checked(&u), 0);
    let holds = |n: i32, a| arguments(&[n as u32], &[a]).meet(&u.preconditions);
    assert!(holds(40, 40) && !holds(40, 39));
    // Ids from 2^31 up are negative numbers, and pass the guard.
    let mut huge = arguments(&[40], &[1 << 40]);
    huge.grid = [1 << 28, 1, 1];
    assert!(!huge.meet(&u.preconditions));
}

#[test]
fn guard_by_the_length_of_another_buffer() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<f32>, %b: gpu.TBuffer<f32>",
        "bb0:
        %i: u32 = gpu.global_id dim=0
        %n: u32 = gpu.buffer_len %b
        %in: bool = icmp.ult %i, %n
        cbr %in, bb1, bb2
        bb1:
        %x: f32 = gpu.buffer_load %a, %i
        ret
        bb2:
        ret",
    );
    let u = unchecked.unwrap();
    let holds = |a, b| arguments(&[], &[a, b]).meet(&u.preconditions);
    assert!(holds(30, 30) && holds(31, 30) && !holds(29, 30) && holds(64, 100));
}

#[test]
fn matrix_product() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<f32>, %b: gpu.TBuffer<f32>, %c: gpu.TBuffer<f32>, %m: u32, %n: u32, %k: u32",
        "bb0:
        %col: u32 = gpu.global_id dim=0
        %row: u32 = gpu.global_id dim=1
        %inx: bool = icmp.ult %col, %n
        %iny: bool = icmp.ult %row, %m
        %in: bool = i.and %inx, %iny
        cbr %in, bb1, bb4
        bb1:
        %i: u32 = phi [bb0: u32 0], [bb2: %next]
        %sum: f32 = phi [bb0: f32 0x00000000], [bb2: %more]
        %go: bool = icmp.ult %i, %k
        cbr %go, bb2, bb3
        bb2:
        %ra: u32 = i.mul %row, %k
        %ia: u32 = i.add %ra, %i
        %x: f32 = gpu.buffer_load %a, %ia
        %rb: u32 = i.mul %i, %n
        %ib: u32 = i.add %rb, %col
        %y: f32 = gpu.buffer_load %b, %ib
        %xy: f32 = f.mul %x, %y
        %more: f32 = f.add %sum, %xy
        %next: u32 = i.add %i, u32 1
        br bb1
        bb3:
        %rc: u32 = i.mul %row, %n
        %ic: u32 = i.add %rc, %col
        gpu.buffer_store %c, %ic, %sum
        br bb4
        bb4:
        ret",
    );
    let u = unchecked.unwrap();
    assert_eq!(checked(&u), 0);
    let holds = |l: [u64; 3]| arguments(&[20, 30, 50], &l).meet(&u.preconditions);
    assert!(holds([1000, 1500, 600]));
    assert!(!holds([999, 1500, 600]) && !holds([1000, 1499, 600]) && !holds([1000, 1500, 599]));
}

#[test]
fn what_depends_on_data_has_none() {
    let (_, unchecked) = kernel(
        "%a: gpu.TBuffer<u32>",
        "bb0:
        %n: u32 = gpu.buffer_load %a, u32 5
        gpu.buffer_store %a, %n, u32 1
        ret",
    );
    let u = unchecked.unwrap();
    assert_eq!((checked(&u), u.preconditions.len()), (1, 1));
}
