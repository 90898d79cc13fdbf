//! The programs of `bench/miri` in Rust: the same loops with the same meaning, indices checked and
//! integers wrapping.

#![allow(
    clippy::assign_op_pattern,
    clippy::manual_swap,
    clippy::needless_range_loop,
    clippy::same_item_push,
    reason = "the loops are those of the Miri programs, index by index"
)]

use std::collections::HashMap;
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

pub(super) fn words() -> f64 {
    let mut text = String::new();
    for i in 0..black_box(20_000i64) {
        text += &format!("w{} ", i.wrapping_mul(7919) % 1000);
    }
    let mut counts: HashMap<String, i64> = HashMap::new();
    for word in text.split(' ') {
        match counts.get_mut(word) {
            Some(count) => *count += 1,
            None => _ = counts.insert(word.to_string(), 1),
        }
    }
    let total: i64 = counts.values().sum();
    (total * 1000 + counts.len() as i64) as f64
}

fn next(seed: i64) -> i64 {
    seed.wrapping_mul(1_103_515_245).wrapping_add(12345) % 2_147_483_648
}

pub(super) fn counts() -> f64 {
    let mut counts: HashMap<i64, i64> = HashMap::new();
    let mut seed = 12345;
    for _ in 0..black_box(200_000) {
        seed = next(seed);
        *counts.entry(seed % 1000).or_insert(0) += 1;
    }
    counts.values().copied().max().unwrap_or(0) as f64
}

pub(super) fn stack() -> f64 {
    let mut stack = Vec::new();
    let mut total = 0i64;
    for i in 0..black_box(300_000i64) {
        stack.push(i);
        if i % 3 == 2
            && let Some(x) = stack.pop()
        {
            total = total.wrapping_add(x);
        }
    }
    while let Some(x) = stack.pop() {
        total = total.wrapping_add(x);
    }
    total as f64
}

struct Rng {
    state: i64,
    calls: i64,
}

impl Rng {
    fn next(&mut self) -> i64 {
        self.calls += 1;
        self.state = next(self.state);
        self.state
    }

    fn scaled(&self, k: i64) -> i64 {
        self.state % k
    }
}

pub(super) fn methods() -> f64 {
    let mut rng = Rng { state: 1, calls: 0 };
    let mut total = 0i64;
    for i in 0..black_box(500_000i64) {
        total = total.wrapping_add(rng.next() % 10 + rng.scaled(i + 1));
    }
    (total + rng.calls) as f64
}

enum Shape {
    Circle(f64),
    Rect(f64, f64),
    Empty,
}

fn area(shape: &Shape) -> f64 {
    match shape {
        Shape::Circle(r) => r * r * 3.0,
        Shape::Rect(w, h) => w * h,
        Shape::Empty => 0.0,
    }
}

pub(super) fn enums() -> f64 {
    let mut shapes = Vec::new();
    for i in 0..black_box(1000) {
        shapes.push(match i % 3 {
            0 => Shape::Circle(i.into()),
            1 => Shape::Rect(i.into(), 2.0),
            _ => Shape::Empty,
        });
    }
    let mut total = 0.0;
    for _ in 0..200 {
        for shape in black_box(&shapes) {
            total += area(shape);
        }
    }
    total
}

pub(super) fn options() -> f64 {
    fn half(n: i64) -> Option<i64> {
        (n % 2 == 0).then_some(n / 2)
    }
    fn checked(n: i64) -> Result<i64, String> {
        if n < 0 { Err("negative".to_string()) } else { Ok(n.wrapping_add(1)) }
    }
    let mut total = 0i64;
    for i in 0..black_box(500_000) {
        if let Some(x) = half(i) {
            total = total.wrapping_add(x);
        }
        match checked(i) {
            Ok(x) => total = total.wrapping_add(x),
            Err(_) => total -= 1,
        }
        total = total.wrapping_add(half(i + 1).unwrap_or(7));
    }
    total as f64
}

pub(super) fn parse() -> f64 {
    let mut text = String::new();
    for i in 0..black_box(50_000) {
        text += &format!("{},", i * 37);
    }
    let mut total = 0i64;
    for part in text.split(',') {
        total = total.wrapping_add(part.parse().unwrap_or(0));
    }
    total as f64
}

struct Particle {
    x: f64,
    y: f64,
    vx: f64,
    vy: f64,
}

pub(super) fn particles() -> f64 {
    let mut all = Vec::new();
    for i in 0..black_box(1000) {
        all.push(Particle { x: i.into(), y: 0.0, vx: 1.0, vy: 0.5 });
    }
    for _ in 0..100 {
        for i in 0..all.len() {
            all[i].x += all[i].vx * 0.01;
            all[i].y += all[i].vy * 0.01;
            if all[i].x > 500.0 {
                all[i].vx = -all[i].vx;
            }
        }
    }
    all.iter().map(|p| p.x + p.y).sum()
}

pub(super) fn grid() -> f64 {
    let n = black_box(300);
    let mut grid: Vec<Vec<f64>> = Vec::new();
    for i in 0..n {
        let mut row = Vec::new();
        for j in 0..n {
            row.push((i * j % 7) as f64);
        }
        grid.push(row);
    }
    for _ in 0..5 {
        for i in 1..n - 1 {
            for j in 1..n - 1 {
                grid[i][j] =
                    (grid[i - 1][j] + grid[i + 1][j] + grid[i][j - 1] + grid[i][j + 1]) * 0.25;
            }
        }
    }
    let mut total = 0.0;
    for i in 0..n {
        for j in 0..n {
            total += grid[i][j];
        }
    }
    total
}
