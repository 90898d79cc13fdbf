//! Every pure scalar op on every type it takes, compared with its meaning in
//! [`magpie_mpir::eval`]. The cases come from the op table, so an op that is added is tested.

use crate::Subject;
use magpie_diag::Span;
use magpie_gpu::compile::BodyCompiler;
use magpie_mpir::eval::float_value;
use magpie_mpir::testing::has_exact_result;
use magpie_mpir::testing::ops::{OpCase, op_cases, operand_rows};
use magpie_mpir::{Block, Domain, Flags, FnId, Module, MpirFn, MpirGpuMeta, Op, Terminator, Value};
use magpie_rt::gpu::LaunchSize;
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, Sid, SidKind, TypeKind, fixed};
use std::collections::BTreeMap;

const WORKGROUP: usize = 64;

/// Random operands of a case, besides those where things go wrong first.
const RANDOM_ROWS: usize = 3000;

/// Whether a result of a case is right for operands: case, operands, result.
pub type Agrees = fn(&OpCase, &[u64], u64) -> bool;

/// Cases by their operand types: those with the same ones share a kernel.
fn groups(wanted: impl Fn(&OpCase) -> bool) -> BTreeMap<Vec<PrimType>, Vec<OpCase>> {
    let mut out: BTreeMap<Vec<PrimType>, Vec<OpCase>> = BTreeMap::new();
    let cases = op_cases().into_iter().filter(wanted);
    cases.for_each(|c| out.entry(c.from.clone()).or_default().push(c));
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
    let value = |f: &mut MpirFn, op, flags, ty, args: &[Value]| {
        f.append(b, op, flags, ty, args, 0, Span::NONE).expect("a result")
    };
    let i = value(&mut f, Op::GpuGlobalId, Flags::NONE, fixed::U32, &[]);
    let load = |&(p, x): &(PrimType, Value)| {
        value(&mut f, Op::GpuBufferLoad, Flags::UNCHECKED, p.id(), &[x, i])
    };
    let args: Vec<Value> = inputs.iter().map(load).collect();
    for (c, slot) in cases.iter().zip(slots) {
        let result = value(&mut f, c.op, Flags::NONE, c.to.id(), &args);
        let start = f.const_u32((slot * len) as u32);
        let at = value(&mut f, Op::IAdd, Flags::NONE, fixed::U32, &[i, start]);
        let out = outputs.iter().find(|(p, _)| *p == c.to).map(|&(_, v)| v).expect("a buffer");
        let (op, args) = (Op::GpuBufferStore, [out, at, result]);
        f.append(b, op, Flags::UNCHECKED, fixed::UNIT, &args, 0, Span::NONE);
    }
    f.block_mut(Block(0)).term = Terminator::Ret(None);
    m.add_fn(f);
    m
}

/// Equal bits for ops with one right result; within `ulps` units in the last place of the type for
/// the others, where numbers below the smallest normal one count as that one.
pub fn within_ulps(case: &OpCase, operands: &[u64], got: u64, ulps: f64) -> bool {
    let exact = case.eval(operands);
    if case.agree(got, exact) || has_exact_result(case.op) {
        return case.agree(got, exact);
    }
    let (got, wanted) = (float_value(case.to, got), float_value(case.to, exact));
    let (digits, least) = match case.to {
        PrimType::F64 => (52, f64::MIN_POSITIVE),
        PrimType::F16 => (10, 2f64.powi(-14)),
        PrimType::Bf16 => (7, f64::from(f32::MIN_POSITIVE)),
        _ => (23, f64::from(f32::MIN_POSITIVE)),
    };
    (got - wanted).abs() <= ulps * wanted.abs().max(least) * 2f64.powi(-digits)
}

/// Runs cases with the same operand types; gives a line for each that goes wrong.
fn run<C: BodyCompiler>(subject: &Subject<'_, C>, cases: &[OpCase], agrees: Agrees) -> Vec<String> {
    let types = &cases[0].from;
    let mut rows = operand_rows(&cases[0], RANDOM_ROWS);
    let len = rows.len().next_multiple_of(WORKGROUP);
    rows.resize(len, rows[0].clone());
    let module = kernel(cases, len);
    let blob = match subject.compiler.emit(&module, FnId(0)) {
        Ok(blob) => blob,
        Err(errors) => return vec![format!("{types:?}: {errors:?}")],
    };
    subject.check(&format!("operations on {types:?}"), &blob);
    let Some(gpu) = subject.gpu else { return Vec::new() };
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
        let column = counts.iter().position(|(p, _)| *p == case.to).expect("a column");
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

/// Compiles, checks and runs every op on every type.
pub fn check_all<C: BodyCompiler>(subject: &Subject<'_, C>, agrees: Agrees) {
    check_cases(subject, |_| true, agrees);
}

/// As [`check_all`], for the cases that a target has.
pub fn check_cases<C: BodyCompiler>(
    subject: &Subject<'_, C>,
    has: impl Fn(&OpCase) -> bool,
    agrees: Agrees,
) {
    let wrong: Vec<String> =
        groups(has).values().flat_map(|cases| run(subject, cases, agrees)).collect();
    assert!(wrong.is_empty(), "{}:\n{}", subject.name, wrong.join("\n"));
}
