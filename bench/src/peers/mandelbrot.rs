//! Escape times of the Mandelbrot set.

use super::for_each_chunk;

/// The part of the plane shown: left, bottom, width and height.
const VIEW: [f32; 4] = [-2.5, -2.0, 4.0, 4.0];

/// Fills a square image of `size` columns with the steps before escape, at most `limit`.
pub(crate) fn mandelbrot(size: usize, limit: u32, out: &mut [u32], threads: usize) {
    let [left, bottom, width, height] = VIEW;
    let scale = 1.0 / size as f32;
    for_each_chunk(out, size, threads, |row, pixels| {
        let ci = bottom + height * (row as f32 * scale);
        for (column, pixel) in pixels.iter_mut().enumerate() {
            *pixel = escape_time(left + width * (column as f32 * scale), ci, limit);
        }
    });
}

fn escape_time(cr: f32, ci: f32, limit: u32) -> u32 {
    let (mut zr, mut zi) = (0.0f32, 0.0f32);
    let mut steps = 0;
    while steps < limit {
        let (zr2, zi2) = (zr * zr, zi * zi);
        if zr2 + zi2 > 4.0 {
            break;
        }
        zi = 2.0 * zr * zi + ci;
        zr = zr2 - zi2 + cr;
        steps += 1;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        assert_eq!(escape_time(0.0, 0.0, 256), 256);
        assert_eq!(escape_time(-1.0, 0.0, 256), 256);
        assert_eq!(escape_time(2.0, 2.0, 256), 1);
        assert_eq!(escape_time(1.0, 0.0, 256), 3);
    }

    #[test]
    fn threads_change_nothing() {
        let (mut one, mut many) = (vec![0; 64 * 64], vec![1; 64 * 64]);
        mandelbrot(64, 100, &mut one, 1);
        mandelbrot(64, 100, &mut many, 3);
        assert_eq!(one, many);
        assert!(one.contains(&100) && one.iter().any(|&steps| steps < 5));
    }
}
