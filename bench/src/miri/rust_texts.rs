//! What `bench/miri` does with texts, in Rust.

use std::collections::HashMap;
use std::hint::black_box;

fn sentence() -> String {
    let mut text = String::new();
    for i in 0..black_box(20_000) {
        text += "the quick brown fox ";
        if i % 4 == 0 {
            text += "jumps ";
        }
    }
    text
}

pub(super) fn chars() -> f64 {
    let text = sentence();
    let mut n = 0;
    for c in text.chars() {
        if c == 'e' || c == 'o' || c == 'u' {
            n += 1;
        }
    }
    n.into()
}

pub(super) fn tokens() -> f64 {
    let text = "let alpha = 12 + beta * 345 ; ".repeat(black_box(5_000));
    let (digits, letters) = ("0123456789", "abcdefghijklmnopqrstuvwxyz");
    let bytes = text.as_bytes();
    let (mut i, mut count, mut sum) = (0, 0, 0);
    while i < bytes.len() {
        let c = char::from(bytes[i]);
        if c == ' ' {
            i += 1;
        } else if digits.contains(c) {
            let mut value = 0;
            while i < bytes.len() && digits.contains(char::from(bytes[i])) {
                value = value * 10 + char::from(bytes[i]).to_digit(10).unwrap_or(0);
                i += 1;
            }
            sum += value;
            count += 1;
        } else if letters.contains(c) {
            let mut name = String::new();
            while i < bytes.len() && letters.contains(char::from(bytes[i])) {
                name.push(char::from(bytes[i]));
                i += 1;
            }
            if name == "let" {
                sum += 1;
            }
            count += 1;
        } else {
            sum += match c {
                '+' => 2,
                '*' => 3,
                '=' => 4,
                _ => 5,
            };
            i += 1;
            count += 1;
        }
    }
    f64::from(count + sum)
}

pub(super) fn brackets() -> f64 {
    let text = "(a[b]{c(d)})[e]".repeat(black_box(40_000));
    let mut open = Vec::new();
    let mut pairs = 0;
    for c in text.chars() {
        if c == '(' || c == '[' || c == '{' {
            open.push(c);
        } else if c == ')' || c == ']' || c == '}' {
            let last = open.pop().unwrap_or(' ');
            if c == ')' && last == '(' || c == ']' && last == '[' || c == '}' && last == '{' {
                pairs += 1;
            }
        }
    }
    f64::from(pairs)
}

pub(super) fn letters() -> f64 {
    let text = sentence();
    let mut counts = HashMap::new();
    for c in text.chars() {
        let count = if counts.contains_key(&c) { counts[&c] } else { 0 };
        counts.insert(c, count + 1);
    }
    f64::from(counts[&'e']) * 100.0 + counts.len() as f64
}

pub(super) fn backwards() -> f64 {
    let text = sentence();
    let mut out = String::new();
    for c in text.chars().rev() {
        out.push(c);
    }
    let places = out.bytes().enumerate().filter(|&(_, c)| c == b'q').map(|(i, _)| i as f64);
    places.sum()
}

pub(super) fn occurrences() -> f64 {
    let text = sentence();
    let count = |c| {
        let mut n = 0;
        for &byte in text.as_bytes() {
            if byte == c {
                n += 1;
            }
        }
        n
    };
    f64::from(black_box(b"aeioubx ").iter().map(|&c| count(c)).sum::<i32>())
}

pub(super) fn cipher() -> f64 {
    let alphabet = b"abcdefghijklmnopqrstuvwxyz";
    let by = black_box(3);
    let mut out = String::new();
    for c in sentence().chars() {
        let mut found = None;
        for (i, &letter) in alphabet.iter().enumerate() {
            if char::from(letter) == c {
                found = Some(i);
            }
        }
        out.push(found.map_or(c, |i| char::from(alphabet[(i + by) % 26])));
    }
    let places = out.bytes().enumerate().filter(|&(_, c)| c == b'h').map(|(i, _)| i as f64);
    places.sum()
}

pub(super) fn charlist() -> f64 {
    let mut characters = Vec::new();
    for c in sentence().chars() {
        characters.push(c);
    }
    let vowels = black_box(vec!['a', 'e', 'i', 'o', 'u']);
    let mut n = 0;
    for (i, c) in characters.iter().enumerate() {
        if vowels.contains(c) {
            n += i;
        }
    }
    let mut out = String::new();
    for &c in characters.iter().rev() {
        out.push(c);
    }
    (n + out.len()) as f64
}

pub(super) fn rows() -> f64 {
    fn neighbours(rows: &[String], x: i64, y: i64) -> i64 {
        let mut n = 0;
        for dy in -1..2 {
            for dx in -1..2 {
                let (px, py) = (x + dx, y + dy);
                let is_other = dx != 0 || dy != 0;
                if is_other
                    && (0..rows.len() as i64).contains(&py)
                    && (0..rows[py as usize].len() as i64).contains(&px)
                    && rows[py as usize].as_bytes()[px as usize] == b'#'
                {
                    n += 1;
                }
            }
        }
        n
    }
    let size = black_box(300);
    let mut rows = Vec::new();
    for y in 0..size {
        let mut row = String::new();
        for x in 0..size {
            row.push(if (x * 7 + y * 13) % 5 < 2 { '#' } else { '.' });
        }
        rows.push(row);
    }
    let mut n = 0;
    for y in 0..size {
        for x in 0..size {
            n += i64::from(neighbours(&rows, x, y) > 3);
        }
    }
    n as f64
}

pub(super) fn positions() -> f64 {
    fn position(letters: &[u8], c: u8) -> Option<usize> {
        letters.iter().position(|&letter| letter == c)
    }
    let alphabet = b"abcdefghijklmnopqrstuvwxyz";
    let by = black_box(3);
    let mut out = String::new();
    for c in sentence().bytes() {
        let at = position(alphabet, c);
        out.push(char::from(at.map_or(c, |at| alphabet[(at + by) % alphabet.len()])));
    }
    let places = out.bytes().enumerate().filter(|&(_, c)| c == b'h').map(|(i, _)| i as f64);
    places.sum()
}

pub(super) fn stackmachine() -> f64 {
    let text = "7".to_string() + &" 12 3 * 4 - +".repeat(black_box(10_000));
    let mut stack: Vec<i64> = Vec::new();
    for token in text.split(' ') {
        if let "+" | "-" | "*" = token {
            let (b, a) = (stack.pop().unwrap_or(0), stack.pop().unwrap_or(0));
            stack.push(match token {
                "+" => a + b,
                "-" => a - b,
                _ => a * b % 1000,
            });
        } else {
            stack.push(token.parse().unwrap_or(0));
        }
    }
    stack.pop().unwrap_or(0) as f64
}
