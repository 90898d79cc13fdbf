//! Conversions to the 16-bit float formats, each with exactly one rounding.

use half::{bf16, f16};

/// `f64` to binary16 bits, nearest even.
pub fn f64_to_f16(v: f64) -> u16 {
    // Narrowing to f32 with round-to-odd keeps enough bits that the second rounding is exact.
    f16::from_f32(f64_to_f32_odd(v)).to_bits()
}

/// `f32` to binary16 bits, nearest even.
pub fn f32_to_f16(v: f32) -> u16 {
    f16::from_f32(v).to_bits()
}

/// `f64` to bfloat16 bits, nearest even.
pub fn f64_to_bf16(v: f64) -> u16 {
    f32_to_bf16(f64_to_f32_odd(v))
}

/// `f32` to bfloat16 bits, nearest even; NaN stays NaN.
pub fn f32_to_bf16(v: f32) -> u16 {
    bf16::from_f32(v).to_bits()
}

/// Binary16 bits to `f32`, exact.
pub fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

/// Bfloat16 bits to `f32`, exact.
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// Integer to bfloat16 bits, nearest even, once.
pub fn i128_to_bf16(v: i128) -> u16 {
    f64_to_bf16(i128_to_f64_odd(v))
}

/// Integer to binary16 bits, nearest even, once.
pub fn i128_to_f16(v: i128) -> u16 {
    f64_to_f16(i128_to_f64_odd(v))
}

/// Narrows with round-to-odd: inexact results get their last bit set, so that a later rounding to
/// fewer bits sees that something was lost (Boldo and Melquiond, 2008).
fn f64_to_f32_odd(v: f64) -> f32 {
    let near = v as f32;
    if v.is_nan() || near as f64 == v {
        return near;
    }
    let toward_zero =
        if near.abs() as f64 > v.abs() { f32::from_bits(near.to_bits() - 1) } else { near };
    f32::from_bits(toward_zero.to_bits() | 1)
}

fn i128_to_f64_odd(v: i128) -> f64 {
    let near = v as f64;
    if near as i128 == v {
        return near;
    }
    let toward_zero = if (near.abs() as u128) > v.unsigned_abs() {
        f64::from_bits(near.to_bits() - 1)
    } else {
        near
    };
    f64::from_bits(toward_zero.to_bits() | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rounding() {
        // 1 + 2^-11 + 2^-40: just above the midpoint of two f16 neighbours; via f32 it would tie down.
        assert_eq!(f64_to_f16(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0x3c01);
        assert_eq!(f64_to_f16(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(f64_to_bf16(1.0 + 2f64.powi(-8) + 2f64.powi(-50)), 0x3f81);
        assert_eq!(f64_to_f16(65519.99), 0x7bff);
        assert_eq!(f64_to_f16(65520.0), 0x7c00);
        assert_eq!(f64_to_f16(1e300), 0x7c00);
        assert_eq!(f64_to_f16(-1e-300), 0x8000);
        assert!(f16_to_f32(f64_to_f16(f64::NAN)).is_nan());
    }

    #[test]
    fn integers_round_once() {
        // 2^62 + 2^54 + 1 lies just above the midpoint between two bf16 values.
        assert_eq!(bf16_to_f32(i128_to_bf16((1 << 62) + (1 << 54) + 1)), 4647714815446351872.0);
        assert_eq!(bf16_to_f32(i128_to_bf16((1 << 62) + (1 << 54))), 4611686018427387904.0);
        assert_eq!(i128_to_f16(2049), 0x6800);
        assert_eq!(i128_to_f16(i64::MAX as i128), 0x7c00);
    }
}
