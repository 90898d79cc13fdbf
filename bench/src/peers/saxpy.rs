//! `y = a x + y`.

use super::{even_chunk, for_each_chunk};

/// Adds `a` times `x` to `y`; the slices have one length.
pub(crate) fn saxpy(a: f32, x: &[f32], y: &mut [f32], threads: usize) {
    let chunk_len = even_chunk(y.len(), threads);
    for_each_chunk(y, chunk_len, threads, |index, y| {
        let x = &x[index * chunk_len..][..y.len()];
        for (y, x) in y.iter_mut().zip(x) {
            *y += a * x;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::numbers;
    use super::*;

    #[test]
    fn same_as_one_by_one() {
        for threads in [1, 3] {
            let (x, y) = (numbers(1001, 1), numbers(1001, 2));
            let mut out = y.clone();
            saxpy(0.5, &x, &mut out, threads);
            for i in 0..x.len() {
                assert_eq!(out[i], y[i] + 0.5 * x[i]);
            }
        }
    }
}
