//! `cargo xtask photo`: draws `examples/data/photo.pgm`, the picture that examples filter.
//!
//! A landscape with the detail of a photograph: a sky with clouds and a low sun, hills in haze, a
//! house, firs, grass and film grain. Only exact operations and integer hashes are used, so every
//! machine draws the same bytes.

use crate::root;
use crate::step::Failure;

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
/// Samples of a pixel in each direction.
const SAMPLES: usize = 3;

/// Writes the picture.
pub(crate) fn photo() -> Result<(), Failure> {
    let path = root().join("examples/data/photo.pgm");
    let write = || {
        std::fs::create_dir_all(root().join("examples/data"))?;
        std::fs::write(&path, picture())
    };
    write().map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    println!("{}", path.display());
    Ok(())
}

/// The picture as a binary PGM file.
fn picture() -> Vec<u8> {
    let mut file = format!("P5\n{WIDTH} {HEIGHT}\n255\n").into_bytes();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let mut light = 0.0;
            for sy in 0..SAMPLES {
                for sx in 0..SAMPLES {
                    let at = |n: usize, s: usize| n as f64 + (s as f64 + 0.5) / SAMPLES as f64;
                    light += scene(at(x, sx), at(y, sy));
                }
            }
            let light = light / (SAMPLES * SAMPLES) as f64 * vignette(x as f64, y as f64);
            let grain = lattice(x as i64, y as i64, 99) + lattice(x as i64, y as i64, 98) - 1.0;
            // A film's response: close to a square root in the shadows.
            let exposed = 0.35 * light + 0.65 * light.max(0.0).sqrt();
            file.push((255.0 * exposed + 7.0 * grain + 0.5).clamp(0.0, 255.0) as u8);
        }
    }
    file
}

/// The light that comes from a point of the view, from 0 to 1.
fn scene(x: f64, y: f64) -> f64 {
    for (n, hill) in HILLS.iter().enumerate().rev() {
        if n == HILLS.len() - 1
            && let Some(light) = house(x, y, hill)
        {
            return light;
        }
        if let Some(light) = firs(x, y, hill) {
            return light;
        }
        let ridge = hill.ridge(x);
        if y > ridge {
            return hill.light(x, y, y - ridge);
        }
    }
    sky(x, y)
}

fn sky(x: f64, y: f64) -> f64 {
    let height = y / HEIGHT as f64;
    let base = 0.22 + 0.55 * height + 0.2 * height * height;
    let clouds = fbm(x / 150.0 + 3.0, y / 46.0, 5, 11);
    let cover = smooth((clouds - 0.48) / 0.22);
    let shade = fbm(x / 150.0 + 3.1, y / 46.0 + 0.25, 5, 11);
    let lit = 0.62 + 0.5 * (clouds - shade + 0.25);
    let (dx, dy) = (x - 452.0, y - 128.0);
    let distance = dx * dx + dy * dy;
    let glow = 0.5 / (1.0 + distance / 2600.0);
    let disc = smooth((22.0 - distance.sqrt()) / 2.0);
    let behind = (base + glow).min(1.0) * (1.0 - disc) + disc;
    behind * (1.0 - 0.8 * cover) + (lit + 0.6 * glow).min(1.0) * 0.8 * cover
}

/// A range of hills; later ones are nearer.
struct Hill {
    /// Row of the ridge where the noise is 0.
    base: f64,
    /// How far the ridge rises, in rows.
    rise: f64,
    /// Width of its features in columns.
    scale: f64,
    /// How dark the ground is.
    ground: f64,
    /// How much haze lies before it.
    haze: f64,
    /// Size of its texture in pixels.
    grain: f64,
    /// Firs that stand on a hundred columns of the ridge.
    firs: f64,
    seed: u64,
}

const HILLS: [Hill; 4] = [
    Hill {
        base: 300.0,
        rise: 130.0,
        scale: 170.0,
        ground: 0.30,
        haze: 0.62,
        grain: 26.0,
        firs: 0.0,
        seed: 21,
    },
    Hill {
        base: 330.0,
        rise: 95.0,
        scale: 120.0,
        ground: 0.24,
        haze: 0.40,
        grain: 17.0,
        firs: 0.0,
        seed: 22,
    },
    Hill {
        base: 372.0,
        rise: 75.0,
        scale: 150.0,
        ground: 0.17,
        haze: 0.18,
        grain: 9.0,
        firs: 9.0,
        seed: 23,
    },
    Hill {
        base: 428.0,
        rise: 70.0,
        scale: 230.0,
        ground: 0.15,
        haze: 0.0,
        grain: 4.0,
        firs: 2.2,
        seed: 24,
    },
];

impl Hill {
    /// The row of the ridge in a column.
    fn ridge(&self, x: f64) -> f64 {
        self.base - self.rise * fbm(x / self.scale, 0.5, 5, self.seed)
    }

    fn light(&self, x: f64, y: f64, depth: f64) -> f64 {
        // Grass: detail that is stretched upright near the ridge and coarser towards the viewer.
        let texture = fbm(x / self.grain, y / (self.grain * 0.7), 5, self.seed + 40);
        let slope = self.ridge(x + 3.0) - self.ridge(x - 3.0);
        let sun = (0.55 + slope / 9.0).clamp(0.1, 1.0);
        let light = self.ground * (0.35 + 0.9 * sun) * (0.45 + 1.1 * texture);
        let rim = 0.06 * smooth(1.0 - depth / 3.0);
        self.hazy(light + rim)
    }

    fn hazy(&self, light: f64) -> f64 {
        light * (1.0 - self.haze) + 0.72 * self.haze
    }
}

/// A fir of the hill, if one is seen at this point.
fn firs(x: f64, y: f64, hill: &Hill) -> Option<f64> {
    if hill.firs == 0.0 {
        return None;
    }
    let spacing = 100.0 / hill.firs;
    let cell = (x / spacing).floor();
    let size = 1.0 - hill.haze * 2.2;
    for n in [cell - 1.0, cell, cell + 1.0] {
        let random = |k| lattice(n as i64, k, hill.seed + 60);
        let middle = (n + 0.15 + 0.7 * random(1)) * spacing;
        let height = size * (34.0 + 58.0 * random(2));
        let foot = hill.ridge(middle) + 4.0;
        // From 0 at the top to 1 at the foot.
        let down = (y - (foot - height)) / height;
        if random(3) < 0.25 || !(0.0..=1.0).contains(&down) {
            continue;
        }
        let side = (x - middle) / height;
        if down > 0.93 {
            if side.abs() < 0.02 {
                return Some(hill.hazy(0.05));
            }
            continue;
        }
        // Branches: a cone whose edge saws in and out.
        let tier = (down * 9.0).fract();
        let ragged = 0.75 + 0.35 * tier + 0.25 * (noise(x / 1.7, y / 1.7, hill.seed + 70) - 0.5);
        if side.abs() < 0.19 * down * ragged {
            let lit = (0.5 + 1.8 * side).clamp(0.1, 0.9);
            let needles = noise(x / 1.3, y / 2.1, hill.seed + 80);
            return Some(hill.hazy(0.03 + 0.09 * lit * (0.4 + needles) + 0.03 * tier));
        }
    }
    None
}

/// The house on the nearest hill.
fn house(x: f64, y: f64, hill: &Hill) -> Option<f64> {
    const LEFT: f64 = 118.0;
    const RIGHT: f64 = 214.0;
    let foot = hill.ridge((LEFT + RIGHT) / 2.0) + 14.0;
    let (eaves, top) = (foot - 44.0, foot - 80.0);
    let inside = |left: f64, right: f64, from: f64, to: f64| {
        (left..right).contains(&x) && (from..to).contains(&y)
    };
    if inside(184.0, 194.0, top - 12.0, eaves - 12.0) {
        return Some(0.2 + 0.08 * brick(x, y));
    }
    let across = (x - (LEFT + RIGHT) / 2.0).abs();
    let roof = top + (eaves - top) * across / ((RIGHT - LEFT) / 2.0 + 8.0);
    if y >= roof && y < eaves && across < (RIGHT - LEFT) / 2.0 + 8.0 {
        let tiles =
            ((y / 4.0).fract() * 0.5 + (x / 5.0 + (y / 4.0).floor() * 0.5).fract() * 0.2) * 0.12;
        return Some(if x < 166.0 { 0.10 + tiles } else { 0.19 + tiles });
    }
    if !inside(LEFT, RIGHT, eaves, foot) {
        return None;
    }
    for (left, right) in [(128.0, 144.0), (188.0, 204.0)] {
        if inside(left, right, eaves + 10.0, eaves + 28.0) {
            let frame = x < left + 2.0 || x >= right - 2.0 || y < eaves + 12.0 || y >= eaves + 26.0;
            let bar = (x - (left + right) / 2.0).abs() < 0.8 || (y - eaves - 19.0).abs() < 0.8;
            return Some(if frame || bar {
                0.85
            } else {
                0.12 + 0.2 * ((x - y) / 40.0).fract().abs()
            });
        }
    }
    if inside(158.0, 174.0, eaves + 12.0, foot) {
        let knob = (x - 171.0).abs() < 1.2 && (y - eaves - 30.0).abs() < 1.2;
        return Some(if knob { 0.9 } else { 0.09 + 0.03 * (x / 4.0).fract() });
    }
    let wall = 0.62 + 0.1 * noise(x / 3.0, y / 3.0, 31) - 0.2 * smooth((eaves + 6.0 - y) / 6.0);
    Some(wall - 0.04 * f64::from((y / 6.0).fract() < 0.15))
}

fn brick(x: f64, y: f64) -> f64 {
    let row = (y / 3.0).floor();
    f64::from((y / 3.0).fract() > 0.25 && (x / 5.0 + row * 0.5).fract() > 0.15)
}

/// Lenses give less light to the corners.
fn vignette(x: f64, y: f64) -> f64 {
    let (dx, dy) = (x / WIDTH as f64 - 0.5, y / HEIGHT as f64 - 0.5);
    1.0 - 0.35 * (dx * dx + dy * dy)
}

/// 0 below 0, 1 above 1, and smooth between.
fn smooth(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Several octaves of noise, from 0 to 1.
fn fbm(x: f64, y: f64, octaves: u32, seed: u64) -> f64 {
    let (mut sum, mut weight, mut total) = (0.0, 0.5, 0.0);
    let mut scale = 1.0;
    for octave in 0..octaves {
        sum += weight * noise(x * scale, y * scale, seed + 1000 * u64::from(octave));
        total += weight;
        weight *= 0.5;
        scale *= 2.0;
    }
    sum / total
}

/// Value noise: random values at integer points, smooth between them.
fn noise(x: f64, y: f64, seed: u64) -> f64 {
    let (cx, cy) = (x.floor(), y.floor());
    let (tx, ty) = (smooth(x - cx), smooth(y - cy));
    let (cx, cy) = (cx as i64, cy as i64);
    let row = |y| {
        let (a, b) = (lattice(cx, y, seed), lattice(cx + 1, y, seed));
        a + (b - a) * tx
    };
    let (a, b) = (row(cy), row(cy + 1));
    a + (b - a) * ty
}

/// A number from 0 to 1 that depends on nothing but a point and a seed.
fn lattice(x: i64, y: i64, seed: u64) -> f64 {
    let mut h = (x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h ^= (y as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31);
    h ^= seed.wrapping_mul(0x1656_67b1_9e37_79f9);
    h = (h ^ h >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ h >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((h ^ h >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_in_the_tree_is_the_one_that_is_drawn() {
        let kept = std::fs::read(root().join("examples/data/photo.pgm")).unwrap();
        assert!(kept == picture(), "run `cargo xtask photo` and look at the result");
        assert!(kept.len() <= 320 << 10);
    }
}
