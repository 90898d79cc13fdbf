//! Programs of `bench/miri` in Rust that are about function values, variants and copies.

use std::hint::black_box;

pub(super) fn pipeline() -> f64 {
    let xs: Vec<i64> = (0..10_000).collect();
    let mut total = 0i64;
    for round in 0..1000 {
        let xs = black_box(&xs);
        let ys = xs.iter().map(|x| x.wrapping_mul(3).wrapping_add(round));
        let ys: Vec<i64> = ys.collect::<Vec<i64>>().into_iter().filter(|x| x % 2 == 0).collect();
        total = total.wrapping_add(ys.iter().fold(0i64, |a, b| a.wrapping_add(*b)));
        total += xs.iter().filter(|&&x| x > round).count() as i64;
    }
    total as f64
}

pub(super) fn closures() -> f64 {
    fn integrate(f: impl Fn(f64) -> f64, a: f64, b: f64, n: i64) -> f64 {
        let h = (b - a) / n as f64;
        let mut sum = 0.0;
        for i in 0..n {
            sum += f(a + h * (i as f64 + 0.5));
        }
        sum * h
    }
    fn add(n: i64) -> impl Fn(i64) -> i64 {
        move |x| x.wrapping_add(n)
    }
    fn compose(f: impl Fn(i64) -> i64, g: impl Fn(i64) -> i64) -> impl Fn(i64) -> i64 {
        move |x| g(f(x))
    }
    let mut total = 0.0;
    for round in 0..20 {
        let k = f64::from(round);
        total += integrate(|x| x * x * k + 1.0, 0.0, 1.0, black_box(50_000));
    }
    let step = compose(add(black_box(3)), |x| x.wrapping_mul(5) % 7919);
    let mut x = 0i64;
    for i in 0..1_000_000 {
        x = step(x.wrapping_add(i));
    }
    total + x as f64
}

enum Token {
    Number(i64),
    Scaled(f64, i64),
    Open,
    Close,
}

fn next(i: i64) -> Token {
    match i % 5 {
        0 => Token::Number(i),
        1 => Token::Scaled(i as f64, 2),
        2 => Token::Open,
        3 => Token::Close,
        _ => Token::Number(i * 2),
    }
}

pub(super) fn variants() -> f64 {
    let (mut sum, mut scaled, mut depth) = (0i64, 0.0, 0i64);
    for i in 0..2_000_000 {
        match black_box(next(i)) {
            Token::Number(n) => sum += n,
            Token::Scaled(x, n) => scaled += x * n as f64,
            Token::Open => depth += 1,
            Token::Close => depth -= 2,
        }
    }
    sum as f64 + scaled + depth as f64
}

struct Item {
    name: String,
    price: i64,
    count: i64,
}

pub(super) fn copies() -> f64 {
    fn worth(it: &Item) -> i64 {
        it.price.wrapping_mul(it.count) + it.name.chars().count() as i64
    }
    let item = |i: i64| Item { name: format!("item {i}"), price: i % 17, count: 1 };
    let mut items: Vec<Item> = (0..500).map(item).collect();
    let mut total = 0i64;
    for _ in 0..1000 {
        let items = black_box(&mut items);
        for it in items.iter_mut() {
            total += worth(it);
            it.count += it.price % 3;
        }
    }
    let mut order = Vec::new();
    for i in 0..20_000 {
        order.insert(i % 100, i as i64);
        if order.len() > 150 {
            total += order.remove(70);
        }
    }
    total as f64
}
