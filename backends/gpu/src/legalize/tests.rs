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

fn check(case: &OpCase, legal: &LegalOps) {
    let (mut m, id) = op_kernel(case);
    let empty = MpirFn::new(m.func(id).sid.clone(), "", fixed::UNIT, Domain::Device);
    let mut f = std::mem::replace(&mut m.fns[id.index()], empty);
    legalize(&mut f, &mut m.types, legal);
    f.compact(|_| true);
    m.fns[id.index()] = f;
    if let Err(e) = magpie_mpir::verify_module(&m, Stage::Core) {
        panic!("{case:?}: {e:?}\n{}", magpie_mpir::print_module(&m));
    }
    let rows = operand_rows(case, 200);
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
