//! What the loops compute on, the same for every contender.

use super::{BLUR_SIZE, MATMUL_SIZE, NBODY_LEN, REDUCTION_LEN, SAXPY_LEN};
use crate::peers::{blur, numbers};

/// An operand of saxpy: numbers with so few digits that no run rounds.
pub(super) fn coarse(seed: u32) -> Vec<f32> {
    numbers(SAXPY_LEN, seed).into_iter().map(|n| (n * 256.0).round() / 256.0).collect()
}

/// The next factor of saxpy. Turning the sign brings `y` back with every second run, so that it
/// does not grow.
pub(super) fn next_factor(factor: f32) -> f32 {
    if factor > 0.0 { -0.5 } else { 0.5 }
}

/// The image to blur.
pub(super) fn image() -> Vec<f32> {
    numbers(BLUR_SIZE * BLUR_SIZE, 3)
}

/// The filter of the blur.
pub(super) fn weights() -> [f32; blur::SIZE * blur::SIZE] {
    let row = [1.0, 4.0, 6.0, 4.0, 1.0];
    std::array::from_fn(|i| row[i / blur::SIZE] * row[i % blur::SIZE] / 256.0)
}

/// Places and masses.
pub(super) fn bodies() -> Vec<[f32; 4]> {
    let numbers = numbers(4 * NBODY_LEN, 4);
    numbers.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3].abs()]).collect()
}

/// The numbers to add up.
pub(super) fn positive() -> Vec<f32> {
    numbers(REDUCTION_LEN, 5).into_iter().map(f32::abs).collect()
}

/// A factor of the matrix product.
pub(super) fn matrix(seed: u32) -> Vec<f32> {
    numbers(MATMUL_SIZE * MATMUL_SIZE, seed)
}

/// The sum of numbers.
pub(super) fn total(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}

/// The sum of magnitudes.
pub(super) fn total_size(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value.abs())).sum()
}
