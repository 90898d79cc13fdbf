//! A 5×5 convolution of an image, edges repeated.

use super::for_each_chunk;

/// Width and height of the filter.
pub(crate) const SIZE: usize = 5;
const RADIUS: usize = SIZE / 2;
/// Rows that a thread takes at a time.
const ROWS: usize = 16;

/// Filters `input` of `width` columns with 25 weights, row by row, into `output` of the same size.
pub(crate) fn blur(
    input: &[f32],
    width: usize,
    weights: &[f32; SIZE * SIZE],
    output: &mut [f32],
    threads: usize,
) {
    let height = input.len() / width;
    for_each_chunk(output, width * ROWS, threads, |index, rows| {
        for (offset, row) in rows.chunks_exact_mut(width).enumerate() {
            let y = index * ROWS + offset;
            let lines: [&[f32]; SIZE] = std::array::from_fn(|dy| {
                let line = (y + dy).saturating_sub(RADIUS).min(height - 1);
                &input[line * width..][..width]
            });
            blur_row(&lines, weights, row);
        }
    });
}

fn blur_row(lines: &[&[f32]; SIZE], weights: &[f32; SIZE * SIZE], row: &mut [f32]) {
    let width = row.len();
    let clamped = |x: usize| {
        let mut sum = 0.0;
        for (line, weights) in lines.iter().zip(weights.chunks_exact(SIZE)) {
            for (dx, weight) in weights.iter().enumerate() {
                sum += weight * line[(x + dx).saturating_sub(RADIUS).min(width - 1)];
            }
        }
        sum
    };
    if width <= 2 * RADIUS {
        for (x, pixel) in row.iter_mut().enumerate() {
            *pixel = clamped(x);
        }
        return;
    }
    for x in (0..RADIUS).chain(width - RADIUS..width) {
        row[x] = clamped(x);
    }
    // Windows of one length let the compiler drop the bounds checks and use vectors.
    let inner = &mut row[RADIUS..width - RADIUS];
    let len = inner.len();
    let windows: [[&[f32]; SIZE]; SIZE] =
        lines.map(|line| std::array::from_fn(|dx| &line[dx..][..len]));
    for (x, pixel) in inner.iter_mut().enumerate() {
        let mut sum = 0.0;
        for dy in 0..SIZE {
            for dx in 0..SIZE {
                sum += weights[dy * SIZE + dx] * windows[dy][dx][x];
            }
        }
        *pixel = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers;
    use super::*;

    #[test]
    fn same_as_pixel_by_pixel() {
        let weights: [f32; 25] = std::array::from_fn(|i| i as f32 / 300.0);
        for (width, height, threads) in [(37, 41, 1), (37, 41, 3), (5, 3, 2), (4, 1, 1), (1, 1, 1)]
        {
            let input = numbers(width * height, 7);
            let mut output = vec![0.0; input.len()];
            blur(&input, width, &weights, &mut output, threads);
            for y in 0..height {
                for x in 0..width {
                    let mut sum = 0.0;
                    for dy in 0..SIZE {
                        for dx in 0..SIZE {
                            let sy = (y + dy).saturating_sub(2).min(height - 1);
                            let sx = (x + dx).saturating_sub(2).min(width - 1);
                            sum += weights[dy * SIZE + dx] * input[sy * width + sx];
                        }
                    }
                    assert_eq!(output[y * width + x], sum, "{x} {y} of {width} x {height}");
                }
            }
        }
    }
}
