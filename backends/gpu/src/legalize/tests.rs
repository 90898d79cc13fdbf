//! Every rewrite against `eval`, on edge and random operands.

use super::{LegalOps, legalize};
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::eval::eval;
use magpie_mpir::{Domain, Flags, FnId, Module, MpirFn, MpirGpuMeta, Op, Stage, Terminator};
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, Sid, SidKind, TypeKind, fixed};

/// A target that has nothing but 32-bit arithmetic and f64.
const NOTHING: LegalOps = LegalOps {
    float16: false,
    bfloat16: false,
    int8: false,
    int16: false,
    float64: true,
    total_division: false,
    masked_shifts: false,
    rotates: false,
    ctz: false,
    saturating_casts: false,
    exact_division: false,
    exact_fma: false,
    ordered_min_max: false,
    exact_rem: false,
};

/// A kernel that applies `op` to corresponding elements of its buffers.
fn kernel(op: Op, from: PrimType, to: PrimType, arity: usize) -> (Module, FnId) {
    let mut m = Module::new();
    let name = "t.@k";
    let mut f = MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Device);
    f.gpu_meta = Some(MpirGpuMeta {
        target: GpuBackend::Spv,
        workgroup: [64, 1, 1],
        is_unsafe: false,
        requires: Vec::new(),
        spans: Default::default(),
    });
    let operand = |n: usize| if op == Op::Select && n == 0 { PrimType::Bool } else { from };
    let mut params = Vec::new();
    for n in 0..arity {
        let ty = m.types.intern(TypeKind::Buffer(operand(n).id()));
        params.push(f.add_param(format!("p{n}"), ty, Default::default()));
    }
    let ty = m.types.intern(TypeKind::Buffer(to.id()));
    let out = f.add_param("out", ty, Default::default());
    let b = f.add_block();
    let none = Flags::NONE;
    let span = Default::default();
    let gid = f.append(b, Op::GpuGlobalId, none, fixed::U32, &[], 0, span).unwrap();
    let args: Vec<_> = (0..arity)
        .map(|n| {
            let ty = operand(n).id();
            f.append(b, Op::GpuBufferLoad, none, ty, &[params[n], gid], 0, span).unwrap()
        })
        .collect();
    let r = f.append(b, op, none, to.id(), &args, 0, span).unwrap();
    f.append(b, Op::GpuBufferStore, none, fixed::UNIT, &[out, gid, r], 0, span);
    f.block_mut(b).term = Terminator::Ret(None);
    let id = m.add_fn(f);
    (m, id)
}

fn edges(p: PrimType) -> Vec<u64> {
    let w = p.bit_width();
    let mut v: Vec<u64> = vec![0, 1, 2, 3, 7, w as u64, w as u64 - 1, p.mask(), p.mask() - 1];
    v.extend([1 << (w - 1), (1 << (w - 1)) - 1, (1 << (w - 1)) + 1, 0x55, 0x80, 0xff]);
    if p.is_float() {
        for x in [
            0.0,
            1.0,
            1.5,
            3.0,
            0.1,
            1e-3,
            255.5,
            65519.9,
            65520.0,
            2147483520.0,
            2147483648.0,
            4294967296.0,
            9.3e18,
            1.9e19,
            1e-40,
            1e-45,
            6e-8,
            6.1e-5,
            1e30,
            3.4e38,
            f64::INFINITY,
            f64::NAN,
        ] {
            let bits = magpie_mpir::eval::float_bits(p, x);
            v.push(bits);
            v.push(bits ^ 1 << (w - 1));
        }
    }
    v.iter_mut().for_each(|x| *x &= p.mask());
    if p == PrimType::Bool {
        v = vec![0, 1];
    }
    v
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let x = *state ^ (*state >> 29);
    x.wrapping_mul(0xbf58476d1ce4e5b9) ^ (*state >> 32)
}

fn columns(op: Op, from: PrimType, arity: usize) -> Vec<Vec<u64>> {
    let e = edges(from);
    let mut rows: Vec<Vec<u64>> = Vec::new();
    for &a in &e {
        if arity == 1 {
            rows.push(vec![a]);
            continue;
        }
        for &b in &e {
            if arity == 2 {
                rows.push(vec![a, b]);
            } else {
                for &c in e.iter().step_by(5) {
                    rows.push(vec![a, b, c]);
                }
            }
        }
    }
    let mut state = 42 + op as u64;
    for n in 0..500 {
        let mut row: Vec<u64> = (0..arity).map(|_| random(&mut state) & from.mask()).collect();
        // Floats near each other: what rounding and remainders are about.
        if from.is_float() && arity >= 2 && n % 2 == 0 {
            let w = from.bit_width();
            let field = row[0] & (from.mask() << (w / 2 - 4)) & from.mask();
            row[1] = field ^ (row[1] & (from.mask() >> (w / 2 + 2)));
        }
        rows.push(row);
    }
    (0..arity)
        .map(|n| {
            rows.iter().map(|r| if op == Op::Select && n == 0 { r[0] & 1 } else { r[n] }).collect()
        })
        .collect()
}

fn is_nan(p: PrimType, bits: u64) -> bool {
    p.is_float() && magpie_mpir::eval::float_value(p, bits).is_nan()
}

fn check(op: Op, from: PrimType, to: PrimType, arity: usize, legal: &LegalOps) {
    let (mut m, id) = kernel(op, from, to, arity);
    let empty = MpirFn::new(m.func(id).sid.clone(), "", fixed::UNIT, Domain::Device);
    let mut f = std::mem::replace(&mut m.fns[id.index()], empty);
    legalize(&mut f, &mut m.types, legal);
    f.compact(|_| true);
    m.fns[id.index()] = f;
    if let Err(e) = magpie_mpir::verify_module(&m, Stage::Core) {
        panic!("{} {from:?} -> {to:?}: {e:?}\n{}", op.name(), magpie_mpir::print_module(&m));
    }
    let columns = columns(op, from, arity);
    let n = columns[0].len();
    let size = |p: PrimType| p.size() as usize;
    let mut memory: Vec<Vec<u8>> = columns
        .iter()
        .enumerate()
        .map(|(c, column)| {
            let p = if op == Op::Select && c == 0 { PrimType::Bool } else { from };
            column.iter().flat_map(|v| v.to_le_bytes()[..size(p)].to_vec()).collect()
        })
        .collect();
    memory.push(vec![0; n * size(to)]);
    let args: Vec<Argument> = (0..=arity).map(Argument::Buffer).collect();
    let mut views: Vec<Buffer> = memory.iter_mut().map(|m| Buffer { bytes: m }).collect();
    let groups = (n as u32).div_ceil(64);
    let launch = Launch::new([groups, 1, 1], [64, 1, 1]);
    run_kernel(&m, id, launch, &args, &mut views, &mut |_| {}).unwrap();
    for row in 0..n {
        let operands: Vec<u64> = columns.iter().map(|c| c[row]).collect();
        let expected = eval(op, from, to, &operands).unwrap();
        let mut word = [0; 8];
        word[..size(to)].copy_from_slice(&memory[arity][row * size(to)..(row + 1) * size(to)]);
        let got = u64::from_le_bytes(word);
        assert!(
            got == expected || is_nan(to, got) && is_nan(to, expected),
            "{} {from:?} -> {to:?} of {operands:x?}: {got:#x}, expected {expected:#x}",
            op.name(),
        );
    }
}

const INTS: [PrimType; 8] = [
    PrimType::I8,
    PrimType::I16,
    PrimType::I32,
    PrimType::I64,
    PrimType::U8,
    PrimType::U16,
    PrimType::U32,
    PrimType::U64,
];
const FLOATS: [PrimType; 4] = [PrimType::F16, PrimType::Bf16, PrimType::F32, PrimType::F64];

#[test]
fn integer_ops() {
    for &p in &INTS {
        for op in Op::ALL.iter().copied().filter(|op| op.name().starts_with("i.")) {
            let info = op.info();
            if info.may_trap {
                continue;
            }
            let (arity, to) = match info.signature {
                magpie_mpir::Signature::Same(n, _) => (n as usize, p),
                _ => (2, PrimType::Bool),
            };
            check(op, p, to, arity, &NOTHING);
        }
        for op in Op::ALL.iter().copied().filter(|op| op.name().starts_with("icmp.")) {
            check(op, p, PrimType::Bool, 2, &NOTHING);
        }
        check(Op::Select, p, p, 3, &NOTHING);
    }
}

#[test]
fn float_ops() {
    for &p in &FLOATS {
        for op in [
            Op::FAdd,
            Op::FSub,
            Op::FMul,
            Op::FDiv,
            Op::FRem,
            Op::FNeg,
            Op::FAbs,
            Op::FMin,
            Op::FMax,
            Op::FSqrt,
            Op::FFloor,
            Op::FCeil,
            Op::FTrunc,
            Op::FRound,
            Op::FFma,
        ] {
            let arity = match op.info().signature {
                magpie_mpir::Signature::Same(n, _) => n as usize,
                _ => 2,
            };
            check(op, p, p, arity, &NOTHING);
        }
        for op in Op::ALL.iter().copied().filter(|op| op.name().starts_with("fcmp.")) {
            check(op, p, PrimType::Bool, 2, &NOTHING);
        }
        check(Op::Select, p, p, 3, &NOTHING);
    }
}

#[test]
fn conversions() {
    let all: Vec<PrimType> = INTS.iter().chain(&FLOATS).copied().chain([PrimType::Bool]).collect();
    for &from in &all {
        for &to in &all {
            if from == to || from.is_float() && to == PrimType::Bool {
                continue;
            }
            check(Op::Cast, from, to, 1, &NOTHING);
            if from.bit_width() == to.bit_width() {
                check(Op::BitsCast, from, to, 1, &NOTHING);
            }
        }
    }
}

#[test]
fn native_half_with_loose_division() {
    let legal = LegalOps { float16: true, int8: true, int16: true, ..NOTHING };
    for op in [Op::FDiv, Op::FSqrt, Op::FMin, Op::FMax] {
        let arity = if op == Op::FSqrt { 1 } else { 2 };
        check(op, PrimType::F16, PrimType::F16, arity, &legal);
    }
    for &to in &INTS {
        check(Op::Cast, PrimType::F16, to, 1, &legal);
        check(Op::Cast, to, PrimType::F16, 1, &legal);
    }
}
