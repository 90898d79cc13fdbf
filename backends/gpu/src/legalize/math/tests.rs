//! Every function on every float type against its value in f64 (for f64: in the host's library),
//! over edge and random operands and over operands of the size that programs use.

use super::super::{LegalOps, legalize};
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::eval::{float_bits, float_value};
use magpie_mpir::testing::Rng;
use magpie_mpir::testing::has_exact_result;
use magpie_mpir::testing::ops::{OpCase, op_cases, op_kernel, operand_rows};
use magpie_mpir::{Domain, MpirFn, Op, Stage};
use magpie_types::{PrimType, fixed};

/// Units in the last place of the result that `docs/numerics.md` promises.
fn promised(op: Op, p: PrimType) -> f64 {
    match (op, p) {
        // One rounding more, which is half a unit.
        (_, PrimType::F16 | PrimType::Bf16) => 0.51,
        (Op::FSinh | Op::FTan, _) => 4.0,
        _ => 2.0,
    }
}

/// Operands near where functions change their way, and of common sizes.
fn common_rows(case: &OpCase, count: usize) -> Vec<Vec<u64>> {
    let p = case.from[0];
    let mut rng = Rng::new(case.op as u64);
    let mut number = move |scale: f64| {
        let unit = rng.bits() as f64 / u64::MAX as f64 * 2.0 - 1.0;
        float_bits(p, unit * scale)
    };
    let scales = [0.1, 1.0, 1.5, 4.0, 30.0, 100.0, 800.0, 1e6];
    (0..count)
        .map(|n| {
            let scale = scales[n % scales.len()];
            let other = scales[n / scales.len() % scales.len()];
            let mut row = vec![number(scale)];
            if case.from.len() == 2 {
                row.push(number(other));
                // Powers of negative numbers are mostly nothing.
                if n % 2 == 0 && case.op == Op::FPow {
                    row[0] &= p.mask() >> 1;
                }
            }
            row
        })
        .collect()
}

fn run(case: &OpCase, rows: &[Vec<u64>]) -> Vec<u64> {
    let (mut m, id) = op_kernel(case);
    let empty = MpirFn::new(m.func(id).sid.clone(), "", fixed::UNIT, Domain::Device);
    let mut f = std::mem::replace(&mut m.fns[id.index()], empty);
    legalize(&mut f, &mut m.types, &LegalOps { math: false, ..LegalOps::ALL });
    f.compact(|_| true);
    let left = f.blocks.iter().flat_map(|b| &b.insts).find(|&&i| !has_exact_result(f.inst(i).op));
    assert!(left.is_none(), "{case:?}");
    m.fns[id.index()] = f;
    if let Err(e) = magpie_mpir::verify_module(&m, Stage::Core) {
        panic!("{case:?}: {e:?}");
    }
    let size = case.to.size() as usize;
    let column = |n: usize| -> Vec<u8> {
        rows.iter().flat_map(|row| row[n].to_le_bytes()[..size].to_vec()).collect()
    };
    let mut memory: Vec<Vec<u8>> = (0..case.from.len()).map(column).collect();
    memory.push(vec![0; rows.len() * size]);
    let args: Vec<Argument> = (0..memory.len()).map(Argument::Buffer).collect();
    let mut views: Vec<Buffer> = memory.iter_mut().map(|m| Buffer { bytes: m }).collect();
    let groups = (rows.len() as u32).div_ceil(64);
    let launch = Launch::new([groups, 1, 1], [64, 1, 1]);
    run_kernel(&m, id, launch, &args, &mut views, &mut |_| {}).expect("the kernel is defined");
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    memory[case.from.len()].chunks(size).map(word).collect()
}

/// Distance in units in the last place of the exact result.
fn distance(p: PrimType, got: u64, exact: f64) -> f64 {
    let value = float_value(p, got);
    let digits = match p {
        PrimType::F16 => 10,
        PrimType::Bf16 => 7,
        PrimType::F32 => 23,
        _ => 52,
    };
    let least: i32 = match p {
        PrimType::F16 => -24,
        PrimType::Bf16 => -133,
        PrimType::F32 => -149,
        _ => -1074,
    };
    let rounded = float_value(p, float_bits(p, exact));
    if value == rounded || value.is_nan() && exact.is_nan() {
        return 0.0;
    }
    let exponent = exact.abs().log2().floor() as i32;
    // Powers of two below the normal numbers are not to be had by `powi`.
    let ulp = f64::exp2(f64::from((exponent - digits).max(least)));
    ((value - exact) / ulp).abs()
}

#[test]
fn functions_keep_their_accuracy() {
    let mut worst: Vec<String> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for case in op_cases().iter().filter(|c| !has_exact_result(c.op)) {
        let mut rows = operand_rows(case, 2000);
        rows.extend(common_rows(case, 4000));
        let results = run(case, &rows);
        let wide =
            OpCase { op: case.op, from: vec![PrimType::F64; case.from.len()], to: PrimType::F64 };
        let mut most = (0.0, 0);
        for (n, (row, &got)) in rows.iter().zip(&results).enumerate() {
            let exact: Vec<u64> =
                row.iter().map(|&b| float_value(case.from[0], b).to_bits()).collect();
            let exact = f64::from_bits(wide.eval(&exact));
            // NaN counts as far away.
            let d = Some(distance(case.to, got, exact)).filter(|d| !d.is_nan());
            let d = d.unwrap_or(f64::INFINITY);
            if d > most.0 {
                most = (d, n);
            }
        }
        let line = format!(
            "{} {}: {:.2} ulp at {:x?}",
            case.op.name(),
            case.to.name(),
            most.0,
            rows[most.1]
        );
        if most.0 > promised(case.op, case.to) {
            wrong.push(line.clone());
        }
        worst.push(line);
    }
    println!("{}", worst.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
