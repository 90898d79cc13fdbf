//! The sum of an array.

use super::{even_chunk, for_each_chunk};

/// Independent partial sums, as floating-point addition may not be reordered by the compiler.
const LANES: usize = 16;

/// The sum of all numbers, added up in a fixed order for a number of threads.
pub(crate) fn sum(numbers: &[f32], threads: usize) -> f32 {
    let chunk_len = even_chunk(numbers.len(), threads);
    let mut partial = vec![0.0f32; threads.max(1)];
    for_each_chunk(&mut partial, 1, threads, |index, out| {
        let start = (index * chunk_len).min(numbers.len());
        let end = (start + chunk_len).min(numbers.len());
        out[0] = sum_lanes(&numbers[start..end]);
    });
    partial.iter().sum()
}

fn sum_lanes(numbers: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let mut chunks = numbers.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += number;
        }
    }
    chunks.remainder().iter().sum::<f32>() + lanes.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
            for threads in [1, 2, 7] {
                assert_eq!(sum(&numbers, threads), (0..len).sum::<i32>() as f32, "{len} {threads}");
            }
        }
    }
}
