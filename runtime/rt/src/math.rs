//! `std.math`: elementary functions that no back end has as an instruction.

use crate::panic::die;
use magpie_types::abi::MathFn;

fn math_fn(op: i32) -> MathFn {
    match usize::try_from(op).ok().and_then(|op| MathFn::ALL.get(op)) {
        Some(&op) => op,
        None => die(format_args!("error inside the runtime: no mathematical function {op}")),
    }
}

/// See [`magpie_types::abi::RtFn::MathF64`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_math_f64(op: i32, x: f64, y: f64) -> f64 {
    math_fn(op).eval_f64(x, y)
}

/// See [`magpie_types::abi::RtFn::MathF32`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_math_f32(op: i32, x: f32, y: f32) -> f32 {
    math_fn(op).eval_f32(x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_number() {
        for op in MathFn::ALL {
            let number = op as i32;
            assert_eq!(mp_rt_math_f64(number, 0.25, 2.0), op.eval_f64(0.25, 2.0));
            assert_eq!(mp_rt_math_f32(number, 0.25, 2.0), op.eval_f32(0.25, 2.0));
        }
    }

    #[test]
    fn the_remainder_is_exact() {
        let rem = MathFn::Rem as i32;
        assert_eq!(mp_rt_math_f64(rem, 2f64.powi(100), 3.0), 1.0);
        assert_eq!(mp_rt_math_f64(rem, -7.5, 2.0), -1.5);
        assert!(mp_rt_math_f64(rem, 1.0, 0.0).is_nan());
    }
}
