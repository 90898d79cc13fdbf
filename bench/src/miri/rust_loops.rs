//! Plain loops of `bench/miri` in Rust, as [`super::rust`] has the larger programs.

#![allow(
    clippy::assign_op_pattern,
    clippy::needless_range_loop,
    clippy::same_item_push,
    reason = "the loops are those of the Miri programs, index by index"
)]

use std::hint::black_box;

/// Elements of a list.
const LIST: i64 = 262_144;

fn list<T>(element: impl Fn(i64) -> T) -> Vec<T> {
    let mut list = Vec::new();
    for i in 0..LIST {
        list.push(element(i));
    }
    list
}

pub(super) fn dot() -> f64 {
    fn dot(a: &[f64], b: &[f64]) -> f64 {
        let mut total = 0.0;
        for i in 0..a.len() {
            total += a[i] * b[i];
        }
        total
    }
    let (a, b) = (list(|i| (i % 7) as f64), list(|i| (i % 5) as f64));
    let mut total = 0.0;
    for _ in 0..100 {
        total += dot(black_box(&a), black_box(&b));
    }
    total
}

pub(super) fn prefix() -> f64 {
    fn prefix(a: &mut [i64]) {
        for i in 1..a.len() {
            a[i] = a[i].wrapping_add(a[i - 1]);
        }
    }
    let mut a = list(|i| i % 3);
    for _ in 0..100 {
        prefix(black_box(&mut a));
    }
    a[100] as f64
}

pub(super) fn largest() -> f64 {
    fn largest(a: &[i64]) -> i64 {
        let mut m = a[0];
        for i in 0..a.len() {
            if a[i] > m {
                m = a[i];
            }
        }
        m
    }
    let a = list(|i| (i * 7919) % 100_003);
    let mut total = 0;
    for _ in 0..100 {
        total += largest(black_box(&a));
    }
    total as f64
}

pub(super) fn count() -> f64 {
    fn count(a: &[i32], key: i32) -> i64 {
        let mut n = 0;
        let mut i = 0;
        while i < a.len() {
            if a[i] == key {
                n += 1;
            }
            i += 1;
        }
        n
    }
    let a = list(|i| (i % 17) as i32);
    let mut total = 0;
    for r in 0..100 {
        total += count(black_box(&a), r % 17);
    }
    total as f64
}

pub(super) fn clamp() -> f64 {
    fn clamp(a: &mut [f64], low: f64, high: f64) {
        for i in 0..a.len() {
            if a[i] < low {
                a[i] = low;
            }
            if a[i] > high {
                a[i] = high;
            }
        }
    }
    let mut a = list(|i| (i % 1000) as f64);
    for r in 0..50 {
        clamp(black_box(&mut a), f64::from(r), 900.0 - f64::from(r));
    }
    a[0]
}

pub(super) fn histogram() -> f64 {
    fn histogram(a: &[i64], counts: &mut [i64]) {
        for &x in a {
            let bin = (x % 64) as usize;
            counts[bin] = counts[bin].wrapping_add(1);
        }
    }
    let a = list(|i| (i * 7919) % 1000);
    let mut counts = vec![0; 64];
    for _ in 0..20 {
        histogram(black_box(&a), black_box(&mut counts));
    }
    counts[3] as f64
}

pub(super) fn stencil() -> f64 {
    const W: usize = 512;
    fn step(a: &[f64], b: &mut [f64]) {
        for y in 1..W - 1 {
            for x in 1..W - 1 {
                let (up, down) = (a[(y - 1) * W + x], a[(y + 1) * W + x]);
                b[y * W + x] = 0.25 * (up + down + a[y * W + x - 1] + a[y * W + x + 1]);
            }
        }
    }
    let (mut a, mut b) = (list(|i| (i % 11) as f64), list(|_| 0.0));
    for _ in 0..20 {
        step(black_box(&a), black_box(&mut b));
        step(black_box(&b), black_box(&mut a));
    }
    a[W * 5 + 7]
}

struct Point {
    x: f64,
    y: f64,
}

pub(super) fn points() -> f64 {
    fn energy(points: &[Point]) -> f64 {
        let mut total = 0.0;
        for i in 0..points.len() {
            total += points[i].x * points[i].x + points[i].y * points[i].y;
        }
        total
    }
    let mut points = Vec::new();
    for i in 0..100_000 {
        points.push(Point { x: f64::from(i), y: 1.0 });
    }
    let mut total = 0.0;
    for _ in 0..100 {
        total += energy(black_box(&points));
    }
    total
}

pub(super) fn calls() -> f64 {
    fn square(x: f64) -> f64 {
        x * x
    }
    fn at(a: &[f64], i: usize) -> f64 {
        a[i]
    }
    fn sum(a: &[f64]) -> f64 {
        let mut total = 0.0;
        for i in 0..a.len() {
            total += square(at(a, i)) + 1.0;
        }
        total
    }
    let a = list(|i| i as f64);
    let mut total = 0.0;
    for _ in 0..50 {
        total += sum(black_box(&a));
    }
    total
}

pub(super) fn fibonacci() -> f64 {
    fn fib(n: i64) -> i64 {
        if n < 2 {
            return n;
        }
        fib(n - 1).wrapping_add(fib(n - 2))
    }
    fib(black_box(32)) as f64
}

pub(super) fn collatz() -> f64 {
    let mut longest = 0i64;
    for start in 1..black_box(300_000i64) {
        let mut n = start;
        let mut steps = 0;
        while n != 1 {
            if n % 2 == 0 {
                n = n / 2;
            } else {
                n = n.wrapping_mul(3).wrapping_add(1);
            }
            steps += 1;
        }
        if steps > longest {
            longest = steps;
        }
    }
    longest as f64
}

pub(super) fn life() -> f64 {
    let (w, h) = (128i64, 128i64);
    let mut a: Vec<i64> = (0..w * h).map(|i| i64::from((i * 7 + i / 3) % 5 < 2)).collect();
    for _ in 0..black_box(100) {
        let mut b = vec![0i64; a.len()];
        for y in 0..h {
            for x in 0..w {
                let mut n = 0;
                for dy in -1..2 {
                    for dx in -1..2 {
                        if dx != 0 || dy != 0 {
                            let (yy, xx) = ((y + dy + h) % h, (x + dx + w) % w);
                            n += a[(yy * w + xx) as usize];
                        }
                    }
                }
                let at = (y * w + x) as usize;
                b[at] = i64::from(n == 3 || n == 2 && a[at] == 1);
            }
        }
        a = b;
    }
    a.iter().sum::<i64>() as f64
}
