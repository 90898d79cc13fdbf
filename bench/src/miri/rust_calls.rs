//! Programs of `bench/miri` in Rust that are about calls.

use std::hint::black_box;

pub(super) fn recursion() -> f64 {
    fn is_safe(columns: &[i64], row: i64, column: i64) -> bool {
        for r in 0..row {
            let c = columns[r as usize];
            if c == column || c - column == row - r || column - c == row - r {
                return false;
            }
        }
        true
    }
    fn queens(columns: &mut Vec<i64>, n: i64, row: i64) -> i64 {
        if row == n {
            return 1;
        }
        let mut count = 0;
        for c in 0..n {
            if is_safe(columns, row, c) {
                columns[row as usize] = c;
                count += queens(columns, n, row + 1);
            }
        }
        count
    }
    fn sort(a: &mut Vec<i64>, low: i64, high: i64) {
        if low >= high {
            return;
        }
        let pivot = a[((low + high) / 2) as usize];
        let (mut i, mut j) = (low, high);
        while i <= j {
            while a[i as usize] < pivot {
                i += 1;
            }
            while a[j as usize] > pivot {
                j -= 1;
            }
            if i <= j {
                a.swap(i as usize, j as usize);
                i += 1;
                j -= 1;
            }
        }
        sort(a, low, j);
        sort(a, i, high);
    }
    fn hanoi(n: i64, from: i64, to: i64, via: i64, moves: &mut i64) {
        if n == 0 {
            return;
        }
        hanoi(n - 1, from, via, to, moves);
        *moves += from * 3 + to;
        hanoi(n - 1, via, to, from, moves);
    }
    fn ackermann(m: i64, n: i64) -> i64 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ackermann(m - 1, 1),
            (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
        }
    }
    let mut total = queens(&mut vec![0; 8], black_box(8), 0);
    let mut list: Vec<i64> = (0..20_000).map(|i| i * 7919 % 20_011).collect();
    let last = list.len() as i64 - 1;
    sort(black_box(&mut list), 0, last);
    total += list[1000];
    hanoi(black_box(15), 1, 3, 2, &mut total);
    total += ackermann(black_box(2), 200);
    total as f64
}

/// Several values from calls.
pub(super) fn tuples() -> f64 {
    struct State {
        x: i64,
        y: i64,
        steps: i64,
    }
    #[derive(Clone, Copy)]
    struct Complex {
        re: f64,
        im: f64,
    }
    fn euclid(a: i64, b: i64) -> (i64, i64, i64) {
        if b == 0 {
            return (a, 1, 0);
        }
        let (g, x, y) = euclid(b, a % b);
        (g, y, x - a / b * y)
    }
    fn product(a: Complex, b: Complex) -> Complex {
        Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
    }
    fn power(z: Complex, n: i64) -> Complex {
        if n == 0 {
            return Complex { re: 1.0, im: 0.0 };
        }
        let half = power(z, n / 2);
        let square = product(half, half);
        if n % 2 == 1 { product(square, z) } else { square }
    }
    fn advance(s: &mut State, k: i64) {
        if s.x > s.y {
            s.x -= k;
            s.y += 3;
        } else {
            s.x += 7;
            s.y -= k;
        }
        let mut m = s.x;
        for _ in 0..2 {
            m = if m > 100 { m - 100 } else { m + 50 };
        }
        if m < 0 {
            s.x = -s.x;
        }
        if s.y < 0 {
            s.y = -s.y;
        }
        s.steps += 1;
    }
    fn divide(a: i64, b: i64, quotient: &mut i64, rest: &mut i64) {
        let mut x = a;
        *quotient = 0;
        while x >= b {
            x -= b;
            *quotient += 1;
        }
        *rest = x;
    }
    fn checked(n: i64) -> Result<i64, String> {
        if n % 1000 == 999 {
            return Err("bad".to_owned());
        }
        let mut x = n;
        for _ in 0..3 {
            x = if x % 2 == 0 { x / 2 } else { x * 3 + 1 };
        }
        Ok(x)
    }
    fn scaled(n: i64, by: i64) -> Result<i64, String> {
        Ok(checked(n)? * by)
    }
    fn both(n: i64) -> Result<i64, String> {
        Ok(scaled(n, 3)? + scaled(n + 1, 5)?)
    }
    let (mut total, mut sum) = (0, 0.0);
    let mut state = State { x: 1, y: 50, steps: 0 };
    for i in 1..black_box(20_000) {
        let (g, x, y) = euclid(i % 1000 + 1, i * 7 % 1000 + 1);
        advance(&mut state, i % 5);
        let (mut quotient, mut rest) = (0, 0);
        divide(i % 50, black_box(7), &mut quotient, &mut rest);
        sum += power(black_box(Complex { re: 0.8, im: 0.6 }), i % 16).re;
        match both(i) {
            Ok(x) => total += x,
            Err(e) => total -= e.len() as i64,
        }
        total += g + x * 3 + y + quotient * 3 + rest;
    }
    total += state.x + state.y + state.steps;
    if sum > 0.0 {
        total += 1;
    }
    total as f64
}
