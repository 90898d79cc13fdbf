//! Every rewrite against `eval`, on edge and random operands.

use super::{LegalOps, legalize};
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::testing::ops::{OpCase, op_cases, op_kernel, operand_rows};
use magpie_mpir::{Domain, MpirFn, Op, Stage};
use magpie_types::{PrimType, fixed};

/// A target that has nothing but 32-bit arithmetic and f64.
const NOTHING: LegalOps = LegalOps {
    float16: false,
    bfloat16: false,
    bfloat16_casts: false,
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
    half_division: false,
    double_to_half: false,
    math: true,
};

fn check(case: &OpCase, legal: &LegalOps) {
    check_with(case, legal, &|_| {});
}

/// Compares a legalised op with its meaning; `change` stands for what devices do differently.
fn check_with(case: &OpCase, legal: &LegalOps, change: &dyn Fn(&mut MpirFn)) {
    check_rows(case, legal, change, &operand_rows(case, 200));
}

fn check_rows(case: &OpCase, legal: &LegalOps, change: &dyn Fn(&mut MpirFn), rows: &[Vec<u64>]) {
    let (mut m, id) = op_kernel(case);
    let empty = MpirFn::new(m.func(id).sid.clone(), "", fixed::UNIT, Domain::Device);
    let mut f = std::mem::replace(&mut m.fns[id.index()], empty);
    legalize(&mut f, &mut m.types, legal);
    change(&mut f);
    f.compact(|_| true);
    m.fns[id.index()] = f;
    if let Err(e) = magpie_mpir::verify_module(&m, Stage::Core) {
        panic!("{case:?}: {e:?}\n{}", magpie_mpir::print_module(&m));
    }
    let bytes = |v: u64, p: PrimType| v.to_le_bytes()[..p.size() as usize].to_vec();
    let mut memory: Vec<Vec<u8>> = case
        .from
        .iter()
        .enumerate()
        .map(|(n, &p)| rows.iter().flat_map(|row| bytes(row[n], p)).collect())
        .collect();
    let size = case.to.size() as usize;
    memory.push(vec![0; rows.len() * size]);
    let args: Vec<Argument> = (0..memory.len()).map(Argument::Buffer).collect();
    let mut views: Vec<Buffer> = memory.iter_mut().map(|m| Buffer { bytes: m }).collect();
    let groups = (rows.len() as u32).div_ceil(64);
    let launch = Launch::new([groups, 1, 1], [64, 1, 1]);
    run_kernel(&m, id, launch, &args, &mut views, &mut |_| {}).expect("the kernel is defined");
    for (row, out) in rows.iter().zip(memory[case.from.len()].chunks(size)) {
        let mut word = [0; 8];
        word[..size].copy_from_slice(out);
        let (got, expected) = (u64::from_le_bytes(word), case.eval(row));
        assert!(case.agree(got, expected), "{case:?} of {row:x?}: {got:#x}, not {expected:#x}");
    }
}

/// Elementary functions are not exact, and no rewrite touches them.
fn is_exact(op: Op) -> bool {
    magpie_mpir::testing::has_exact_result(op)
}

#[test]
fn every_op_on_every_type() {
    op_cases().iter().filter(|c| is_exact(c.op)).for_each(|c| check(c, &NOTHING));
}

#[test]
fn native_half_with_loose_division() {
    let legal = LegalOps { float16: true, int8: true, int16: true, ..NOTHING };
    let half = |c: &&OpCase| c.from.contains(&PrimType::F16) || c.to == PrimType::F16;
    op_cases().iter().filter(|c| is_exact(c.op)).filter(half).for_each(|c| check(c, &legal));
}

/// What a target without f64 and with half floats of its own does.
#[test]
fn without_f64() {
    let legal = LegalOps { float64: false, ..NOTHING };
    let needs_it = |c: &&OpCase| {
        !c.from.contains(&PrimType::F64)
            && c.to != PrimType::F64
            && (c.op == Op::FFma || c.to == PrimType::Bf16)
    };
    op_cases().iter().filter(|c| is_exact(c.op)).filter(needs_it).for_each(|c| check(c, &legal));
}

/// What a target does that converts bf16 and computes nothing with it.
#[test]
fn native_conversions_of_bf16() {
    for float64 in [false, true] {
        let legal = LegalOps { bfloat16_casts: true, float64, ..NOTHING };
        let concerns = |c: &&OpCase| {
            let f64 = c.from.contains(&PrimType::F64) || c.to == PrimType::F64;
            (c.from.contains(&PrimType::Bf16) || c.to == PrimType::Bf16) && (float64 || !f64)
        };
        let cases = op_cases();
        cases.iter().filter(|c| is_exact(c.op)).filter(concerns).for_each(|c| check(c, &legal));
    }
}

/// Native quotients and roots may be off; integer residuals put them right.
#[test]
fn seeds_may_be_off() {
    let wanted = |c: &&OpCase| {
        matches!(c.op, Op::FDiv | Op::FSqrt) && matches!(c.to, PrimType::F32 | PrimType::F64)
    };
    for case in op_cases().iter().filter(wanted) {
        for off in [-5i64, -2, -1, 1, 2, 5] {
            check_with(case, &NOTHING, &|f| disturb_seeds(f, off));
        }
    }
}

/// Moves the result of every inexact division and root by some units in its last place of f32.
fn disturb_seeds(f: &mut MpirFn, off: i64) {
    use magpie_mpir::Flags;
    for b in f.block_ids() {
        let mut at = 0;
        while at < f.block(b).insts.len() {
            let i = f.block(b).insts[at];
            at += 1;
            let data = *f.inst(i);
            let is_seed = matches!(data.op, Op::FDiv | Op::FSqrt) && data.flags == Flags::FAST;
            let (Some(v), true) = (data.result(), is_seed) else { continue };
            let (int, unit) = match data.ty {
                fixed::F64 => (fixed::U64, off << 29),
                _ => (fixed::U32, off),
            };
            let mut make = |f: &mut MpirFn, op, ty, args: &[magpie_mpir::Value]| {
                let i = f.make_inst(op, Flags::NONE, ty, args, 0, data.span);
                f.block_mut(b).insts.insert(at, i);
                at += 1;
                f.inst(i).result().unwrap()
            };
            let bits = make(f, Op::BitsCast, int, &[v]);
            let unit = f.const_bits(int, unit as u64);
            // Zero stays zero, as on every device.
            let zero = f.zero(data.ty);
            let moved = make(f, Op::IAdd, int, &[bits, unit]);
            let moved = make(f, Op::BitsCast, data.ty, &[moved]);
            let is_zero = make(f, Op::FcmpOeq, fixed::BOOL, &[v, zero]);
            let moved = make(f, Op::Select, data.ty, &[is_zero, v, moved]);
            for n in at..f.block(b).insts.len() {
                let user = f.block(b).insts[n];
                f.args_mut(user).iter_mut().filter(|a| **a == v).for_each(|a| *a = moved);
            }
        }
    }
}

/// Operands at which rounding once and twice differ: sums that nearly cancel, results at the ends
/// of the range, ties.
fn hard_fma_rows(p: PrimType, count: usize) -> Vec<Vec<u64>> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let eval = |op, args: &[u64]| magpie_mpir::eval::eval(op, p, p, args).unwrap();
    let mut rows = Vec::new();
    while rows.len() < count {
        // Few significant bits make products that end in ties.
        let short = |r: u64| if r & 1 == 0 { r } else { r & !(p.mask() >> (p.bit_width() / 3)) };
        let (a, b) = (short(random()) & p.mask(), short(random()) & p.mask());
        let product = eval(Op::FMul, &[a, b]);
        let near = product.wrapping_add(random() % 5).wrapping_sub(2) & p.mask();
        let c = match random() % 4 {
            0 => near ^ 1 << (p.bit_width() - 1),
            1 => near,
            2 => eval(Op::FMul, &[near, eval(Op::FDiv, &[near, product])]),
            _ => random() & p.mask(),
        };
        rows.push(vec![a, b, c]);
    }
    rows
}

#[test]
fn fused_multiply_add_rounds_once() {
    for float64 in [true, false] {
        let legal = LegalOps { float64, ..NOTHING };
        for case in op_cases().iter().filter(|c| c.op == Op::FFma) {
            if float64 || case.to != PrimType::F64 {
                check_rows(case, &legal, &|_| {}, &hard_fma_rows(case.to, 3000));
            }
        }
    }
}
