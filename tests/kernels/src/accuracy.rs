//! How close results must be to the exact ones where a device computes functions of which Vulkan
//! promises an accuracy only.

use magpie_mpir::Op;
use magpie_mpir::eval::float_value;
use magpie_mpir::testing::has_exact_result;
use magpie_mpir::testing::ops::OpCase;
use magpie_types::PrimType;

/// How far a result may be from the exact value; `None` when nothing is promised.
///
/// Vulkan 1.3, appendix "Precision and Operation of SPIR-V Instructions". `x` and `y` are the
/// operands, `exact` the result; an ulp is one of f32, because that is what is computed with.
fn tolerance(op: Op, x: f64, y: f64, exact: f64) -> Option<f64> {
    let ulp = |v: f64| (v.abs() * 2f64.powi(-23)).max(2f64.powi(-149));
    // Arguments and results that f32 does not hold have no accuracy; infinities and NaN are exact
    // where they come from one.
    let fits = |v: f64| v == 0.0 || (v.abs() as f32).is_normal();
    if [x, y, exact].iter().any(|&v| v.is_finite() && !fits(v)) {
        return None;
    }
    let exp = |x: f64| (3.0 + 2.0 * x.abs()) * ulp(x.exp());
    let log2 = |x: f64| if (0.5..=2.0).contains(&x) { 2f64.powi(-21) } else { 3.0 * ulp(x.log2()) };
    let root = (1.0 - x * x).max(0.0).sqrt();
    Some(match op {
        Op::FExp | Op::FExp2 => (3.0 + 2.0 * x.abs()) * ulp(exact),
        Op::FLog => log2(x).max(3.0 * ulp(exact)),
        Op::FLog2 => log2(x),
        Op::FSin | Op::FCos if x.abs() <= std::f64::consts::PI => 2f64.powi(-11),
        Op::FTan if x.abs() <= 1.5 => 2f64.powi(-11) * (2.0 + exact.abs()) / x.cos().abs(),
        Op::FSin | Op::FCos | Op::FTan => return None,
        Op::FAsin | Op::FAcos if root > 0.0 => 4096.0 * ulp(1.6) + 2.0 * ulp(x * x) / root,
        Op::FAsin | Op::FAcos | Op::FAtan | Op::FAtan2 => 4096.0 * ulp(exact.abs().max(1e-3)),
        Op::FSinh | Op::FCosh => exp(x.abs()),
        Op::FTanh => 2.0 * exp(x.abs()) / x.abs().cosh() + 5.0 * ulp(exact),
        Op::FPow if x != 0.0 && y != 0.0 && y.is_finite() => {
            let exponent = y * x.abs().log2();
            let error = y.abs() * log2(x.abs()) + 2.0 * ulp(exponent);
            exact.abs() * (error.exp2() - 1.0) + (3.0 + 2.0 * exponent.abs()) * ulp(exact)
        }
        _ => 0.0,
    })
}

/// Whether a result of a case is right for operands: equal bits for ops with one right result, within
/// what Vulkan promises for the others.
pub fn agrees(case: &OpCase, operands: &[u64], got: u64) -> bool {
    let exact = case.eval(operands);
    if case.agree(got, exact) || has_exact_result(case.op) {
        return case.agree(got, exact);
    }
    // Operands are rounded to f32.
    let single = |&bits: &u64| float_value(case.from[0], bits) as f32 as f64;
    let wide = OpCase { op: case.op, from: vec![PrimType::F64; operands.len()], to: PrimType::F64 };
    let rounded: Vec<u64> = operands.iter().map(|bits| single(bits).to_bits()).collect();
    let (got, wanted) = (float_value(case.to, got), f64::from_bits(wide.eval(&rounded)));
    if got == wanted || got.is_nan() && wanted.is_nan() {
        return true;
    }
    let operand = |n: usize| operands.get(n).map_or(0.0, single);
    // A 16-bit result is rounded once more.
    let rounding = if case.to.bit_width() == 16 { wanted.abs() * 2f64.powi(-7) } else { 0.0 };
    match tolerance(case.op, operand(0), operand(1), wanted) {
        Some(allowed) => (got - wanted).abs() <= allowed + rounding,
        None => true,
    }
}
