//! The product of two square matrices, row by row.

use super::for_each_chunk;

/// Rows of the result that a thread computes at a time, all with one pass over the second matrix.
const ROWS: usize = 8;
/// Rows of the second matrix that are added to a row of the result at a time.
const DEPTH: usize = 4;

/// `c = a b` for matrices of `n` rows and columns.
pub(crate) fn matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize, threads: usize) {
    for_each_chunk(c, n * ROWS, threads, |index, c| {
        c.fill(0.0);
        let a = &a[index * n * ROWS..][..c.len()];
        let blocks = b.chunks_exact(n * DEPTH);
        let rest = blocks.remainder();
        for (block, b) in blocks.enumerate() {
            let [b0, b1, b2, b3] = [0, 1, 2, 3].map(|row| &b[row * n..][..n]);
            for (c, a) in c.chunks_exact_mut(n).zip(a.chunks_exact(n)) {
                let a = &a[block * DEPTH..][..DEPTH];
                for (i, c) in c.iter_mut().enumerate() {
                    *c = *c + a[0] * b0[i] + a[1] * b1[i] + a[2] * b2[i] + a[3] * b3[i];
                }
            }
        }
        for (k, b) in (n / DEPTH * DEPTH..).zip(rest.chunks_exact(n)) {
            for (c, a) in c.chunks_exact_mut(n).zip(a.chunks_exact(n)) {
                for (c, b) in c.iter_mut().zip(b) {
                    *c += a[k] * b;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::numbers;
    use super::*;

    #[test]
    fn same_as_dot_products() {
        for (n, threads) in [(1, 1), (9, 1), (33, 4)] {
            let (a, b) = (numbers(n * n, 1), numbers(n * n, 2));
            let mut c = vec![f32::NAN; n * n];
            matmul(&a, &b, &mut c, n, threads);
            for row in 0..n {
                for column in 0..n {
                    let mut dot = 0.0;
                    for k in 0..n {
                        dot += a[row * n + k] * b[k * n + column];
                    }
                    assert_eq!(c[row * n + column], dot);
                }
            }
        }
    }
}
