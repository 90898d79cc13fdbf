//! The programs of `bench/miri` in Rust: the same loops with the same meaning, indices checked and
//! integers wrapping.

#![allow(
    clippy::assign_op_pattern,
    clippy::manual_swap,
    clippy::needless_range_loop,
    clippy::same_item_push,
    reason = "the loops are those of the Miri programs, index by index"
)]

use std::hint::black_box;

pub(super) fn sum() -> f64 {
    fn sum(numbers: &[i64]) -> i64 {
        let mut total = 0i64;
        for i in 0..numbers.len() {
            total = total.wrapping_add(numbers[i]);
        }
        total
    }
    let mut numbers = Vec::new();
    for i in 0..262_144 {
        numbers.push(i);
    }
    let mut total = 0i64;
    for _ in 0..100 {
        total = total.wrapping_add(sum(black_box(&numbers)));
    }
    total as f64
}

pub(super) fn saxpy() -> f64 {
    fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
        for i in 0..y.len() {
            y[i] = a * x[i] + y[i];
        }
    }
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..262_144 {
        x.push((i % 64) as f32);
        y.push(1.0);
    }
    for _ in 0..100 {
        saxpy(black_box(0.5), black_box(&x), &mut y);
    }
    y[100].into()
}

pub(super) fn sieve() -> f64 {
    let limit = black_box(2_000_000i64);
    let mut composite = Vec::new();
    for _ in 0..limit {
        composite.push(false);
    }
    let mut primes = 0i64;
    for i in 2..limit {
        if !composite[i as usize] {
            primes += 1;
            let mut multiple = i.wrapping_mul(i);
            while multiple < limit {
                composite[multiple as usize] = true;
                multiple = multiple.wrapping_add(i);
            }
        }
    }
    primes as f64
}

pub(super) fn matmul() -> f64 {
    const N: usize = 256;
    fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
        let mut c = Vec::new();
        for _ in 0..N * N {
            c.push(0.0);
        }
        for i in 0..N {
            for k in 0..N {
                let x = a[i * N + k];
                for j in 0..N {
                    c[i * N + j] = c[i * N + j] + x * b[k * N + j];
                }
            }
        }
        c
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for i in 0..N * N {
        a.push((i % 7) as f64);
        b.push((i % 5) as f64);
    }
    product(black_box(&a), black_box(&b)).iter().sum()
}

pub(super) fn mandelbrot() -> f64 {
    const SIZE: i64 = 300;
    const LIMIT: i64 = 256;
    fn escape(cx: f64, cy: f64) -> i64 {
        let (mut x, mut y, mut n) = (0.0, 0.0, 0);
        while n < LIMIT && x * x + y * y < 4.0 {
            let t = x * x - y * y + cx;
            y = 2.0 * x * y + cy;
            x = t;
            n += 1;
        }
        n
    }
    let mut steps = 0;
    for py in 0..SIZE {
        for px in 0..SIZE {
            let cx = px as f64 * 3.0 / SIZE as f64 - 2.0;
            let cy = py as f64 * 2.0 / SIZE as f64 - 1.0;
            steps += escape(cx, cy);
        }
    }
    steps as f64
}

pub(super) fn text() -> f64 {
    let mut text = String::new();
    for i in 0..black_box(200_000) {
        text += "ab";
        text += &format!("{i}");
    }
    text.chars().count() as f64
}

struct Body {
    place: f64,
    speed: f64,
}

struct Cell {
    bodies: Vec<Body>,
}

pub(super) fn structs() -> f64 {
    let mut cells = Vec::new();
    for _ in 0..64 {
        let mut bodies = Vec::new();
        for b in 0..64 {
            bodies.push(Body { place: b.into(), speed: 1.0 });
        }
        cells.push(Cell { bodies });
    }
    for _ in 0..100 {
        let cells = black_box(&mut cells);
        for c in 0..cells.len() {
            for b in 0..64 {
                cells[c].bodies[b].place += cells[c].bodies[b].speed * 0.5;
            }
        }
    }
    let mut total = 0.0;
    for cell in &cells {
        for body in &cell.bodies {
            total += body.place;
        }
    }
    total
}

pub(super) fn sort() -> f64 {
    let n = black_box(3000);
    let mut numbers = Vec::new();
    let mut seed = 12345i64;
    for _ in 0..n {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345) % 2_147_483_648;
        numbers.push(seed);
    }
    for i in 0..n {
        for j in 0..n - 1 - i {
            if numbers[j] > numbers[j + 1] {
                let larger = numbers[j];
                numbers[j] = numbers[j + 1];
                numbers[j + 1] = larger;
            }
        }
    }
    numbers[n / 2] as f64
}
