//! Gravitational acceleration of bodies by all others: one force step.

use super::{even_chunk, for_each_chunk};

/// Softens close encounters, and makes a body's pull on itself zero.
pub(crate) const SOFTENING: f32 = 1e-3;

/// The acceleration of each body (x, y, z, mass) by all bodies, as (x, y, z, 0).
pub(crate) fn accelerations(bodies: &[[f32; 4]], out: &mut [[f32; 4]], threads: usize) {
    let chunk_len = even_chunk(out.len(), threads);
    for_each_chunk(out, chunk_len, threads, |index, out| {
        for (offset, out) in out.iter_mut().enumerate() {
            *out = acceleration(bodies, bodies[index * chunk_len + offset]);
        }
    });
}

fn acceleration(bodies: &[[f32; 4]], at: [f32; 4]) -> [f32; 4] {
    let [mut ax, mut ay, mut az] = [0.0f32; 3];
    for &[x, y, z, mass] in bodies {
        let (dx, dy, dz) = (x - at[0], y - at[1], z - at[2]);
        let distance2 = dx * dx + dy * dy + dz * dz + SOFTENING;
        let inverse = 1.0 / distance2.sqrt();
        let pull = mass * (inverse * inverse * inverse);
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    [ax, ay, az, 0.0]
}

#[cfg(test)]
mod tests {
    use super::super::numbers;
    use super::*;

    #[test]
    fn two_bodies_attract_each_other() {
        let bodies = [[0.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 1.0]];
        let mut out = [[9.0; 4]; 2];
        accelerations(&bodies, &mut out, 1);
        let pull = (1.0 + SOFTENING).powf(-1.5);
        assert!((out[0][0] - pull).abs() < 1e-6 && (out[1][0] + 2.0 * pull).abs() < 1e-6);
        assert_eq!(out[0][1..], [0.0; 3]);
    }

    #[test]
    fn threads_change_nothing() {
        let bodies: Vec<[f32; 4]> =
            numbers(4 * 101, 3).chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3].abs()]).collect();
        let (mut one, mut many) = (vec![[0.0; 4]; 101], vec![[1.0; 4]; 101]);
        accelerations(&bodies, &mut one, 1);
        accelerations(&bodies, &mut many, 4);
        assert_eq!(one, many);
    }
}
