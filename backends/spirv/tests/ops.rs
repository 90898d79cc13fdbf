//! Every pure scalar op on every type it takes: validated, run on the device, and compared bit for
//! bit with its meaning in [`magpie_mpir::eval`]; functions of which a target promises an accuracy
//! only, within what Vulkan promises.
//!
//! The cases come from the op table, so an op that is added is tested here.

mod support;

use magpie_diag::Span;
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_kernel_tests::accuracy::agrees;
use magpie_mpir::testing::ops::{OpCase, op_cases, operand_rows};
use magpie_mpir::{Block, Domain, Flags, FnId, Module, MpirFn, MpirGpuMeta, Op, Terminator, Value};
use magpie_rt::gpu::LaunchSize;
use magpie_types::kernel::{DeviceFeatures, GpuBackend};
use magpie_types::{PrimType, Sid, SidKind, TypeKind, fixed};
use std::collections::BTreeMap;
use support::{Gpu, bytes, validate};

const WORKGROUP: usize = 64;

/// Random operands of a case, besides those where things go wrong first.
const RANDOM_ROWS: usize = 3000;

/// All cases by their operand types: those with the same ones share a kernel.
fn groups() -> BTreeMap<Vec<PrimType>, Vec<OpCase>> {
    let mut out: BTreeMap<Vec<PrimType>, Vec<OpCase>> = BTreeMap::new();
    op_cases().into_iter().for_each(|c| out.entry(c.from.clone()).or_default().push(c));
    out
}

/// The slot of each case among those with its result type, and the number of cases of each type.
fn slots(cases: &[OpCase]) -> (Vec<usize>, Vec<(PrimType, usize)>) {
    let mut counts: Vec<(PrimType, usize)> = Vec::new();
    let slot = |c: &OpCase| match counts.iter_mut().find(|(t, _)| *t == c.to) {
        Some((_, n)) => {
            *n += 1;
            *n - 1
        }
        None => {
            counts.push((c.to, 1));
            0
        }
    };
    (cases.iter().map(slot).collect(), counts)
}

/// A kernel that applies every op to element `i` of the operand buffers, which have `len` elements.
fn kernel(cases: &[OpCase], len: usize) -> Module {
    let mut m = Module::new();
    let name = "m.@k";
    let mut f = MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Device);
    f.gpu_meta = Some(MpirGpuMeta {
        target: GpuBackend::Spv,
        workgroup: [WORKGROUP as u32, 1, 1],
        is_unsafe: false,
        requires: Vec::new(),
        spans: Default::default(),
    });
    let (slots, counts) = slots(cases);
    let mut buffer = |name: String, p: PrimType| {
        let ty = m.types.intern(TypeKind::Buffer(p.id()));
        (p, f.add_param(name, ty, Span::NONE))
    };
    let operands = cases[0].from.iter().enumerate();
    let inputs: Vec<_> = operands.map(|(n, &p)| buffer(format!("in{n}"), p)).collect();
    let outputs: Vec<_> =
        counts.iter().map(|&(p, _)| buffer(format!("out_{}", p.name()), p)).collect();
    let b = f.add_block();
    let emit = |f: &mut MpirFn, op, flags, ty, args: &[Value]| {
        f.append(b, op, flags, ty, args, 0, Span::NONE)
    };
    let i = emit(&mut f, Op::GpuGlobalId, Flags::NONE, fixed::U32, &[]).unwrap();
    let load = |&(p, x): &(PrimType, Value)| {
        emit(&mut f, Op::GpuBufferLoad, Flags::UNCHECKED, p.id(), &[x, i]).unwrap()
    };
    let args: Vec<Value> = inputs.iter().map(load).collect();
    for (c, slot) in cases.iter().zip(slots) {
        let result = emit(&mut f, c.op, Flags::NONE, c.to.id(), &args).unwrap();
        let start = f.const_u32((slot * len) as u32);
        let at = emit(&mut f, Op::IAdd, Flags::NONE, fixed::U32, &[i, start]).unwrap();
        let (_, out) = outputs.iter().find(|(p, _)| *p == c.to).unwrap();
        emit(&mut f, Op::GpuBufferStore, Flags::UNCHECKED, fixed::UNIT, &[*out, at, result]);
    }
    f.block_mut(Block(0)).term = Terminator::Ret(None);
    m.add_fn(f);
    m
}

/// Runs cases with the same operand types; gives a line for each that goes wrong.
fn run(gpu: &Gpu, target: SpirvTarget, cases: &[OpCase]) -> Vec<String> {
    let types = &cases[0].from;
    let mut rows = operand_rows(&cases[0], RANDOM_ROWS);
    let len = rows.len().next_multiple_of(WORKGROUP);
    rows.resize(len, rows[0].clone());
    let module = kernel(cases, len);
    let blob = SpirvEmitter { target, sources: None }.emit(&module, FnId(0)).unwrap();
    validate(&format!("{types:?}"), bytes(&blob.code));
    let column = |(n, p): (usize, &PrimType)| {
        let size = p.size() as usize;
        rows.iter().flat_map(|row| row[n].to_le_bytes()[..size].to_vec()).collect()
    };
    let mut buffers: Vec<Vec<u8>> = types.iter().enumerate().map(column).collect();
    let (slots, counts) = slots(cases);
    buffers.extend(counts.iter().map(|&(p, n)| vec![0xcc; n * len * p.size() as usize]));
    let (groups, block) = ((len / WORKGROUP) as u32, WORKGROUP as u32);
    gpu.run(&blob, &mut buffers, &[], LaunchSize { grid: [groups, 1, 1], block: [block, 1, 1] });
    let mut wrong = Vec::new();
    for (case, slot) in cases.iter().zip(slots) {
        let column = counts.iter().position(|(p, _)| *p == case.to).unwrap();
        let size = case.to.size() as usize;
        let out = &buffers[types.len() + column][slot * len * size..];
        for (row, got) in rows.iter().zip(out.chunks(size)) {
            let mut word = [0; 8];
            word[..size].copy_from_slice(got);
            let got = u64::from_le_bytes(word);
            if !agrees(case, row, got) {
                let wanted = case.eval(row);
                wrong.push(format!("{case:?} of {row:x?}: {got:#x}, not {wanted:#x}"));
                break;
            }
        }
    }
    wrong
}

fn run_all(gpu: &Gpu, target: SpirvTarget) {
    let wrong: Vec<String> = groups().values().flat_map(|cases| run(gpu, target, cases)).collect();
    let features = target.features.names();
    assert!(wrong.is_empty(), "on a device with {features:?}:\n{}", wrong.join("\n"));
}

#[test]
fn every_op_on_every_type() {
    let Some(gpu) = Gpu::open() else { return };
    run_all(&gpu, gpu.target());
}

#[test]
fn every_op_on_a_device_without_small_types() {
    let Some(gpu) = Gpu::open() else { return };
    let small = DeviceFeatures::INT8
        | DeviceFeatures::INT16
        | DeviceFeatures::FLOAT16
        | DeviceFeatures::STORAGE8
        | DeviceFeatures::STORAGE16;
    let target = gpu.target();
    run_all(&gpu, SpirvTarget { features: target.features.minus(small), ..target });
}

#[test]
fn every_op_on_a_device_that_stores_small_types_only() {
    let Some(gpu) = Gpu::open() else { return };
    let small = DeviceFeatures::INT8 | DeviceFeatures::INT16 | DeviceFeatures::FLOAT16;
    let target = gpu.target();
    run_all(&gpu, SpirvTarget { features: target.features.minus(small), ..target });
}
