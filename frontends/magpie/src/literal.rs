//! The text of literals: numbers and strings, read and written.

use crate::ast::FloatFormat;
use half::{bf16, f16};
use std::cmp::Ordering;
use std::fmt::Write;

/// What a number token says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    /// An integer of at most 128 bits.
    Int { negative: bool, magnitude: u128 },
    /// A decimal integer of more than 128 bits.
    HugeDecimal,
    /// A hexadecimal integer of more than 128 bits.
    HugeHex,
    /// A float: the length of its digits, and the suffix after them.
    Float { digits_len: usize, suffix: Option<FloatFormat> },
}

/// Reads a token of the kind `Number`; `None` when it is not a number after all.
pub(crate) fn parse_number(text: &str) -> Option<Number> {
    let negative = text.starts_with('-');
    let body = &text[negative as usize..];
    if let Some(hex) = body.strip_prefix("0x") {
        if hex.is_empty() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        return Some(match u128::from_str_radix(hex, 16) {
            Ok(magnitude) => Number::Int { negative, magnitude },
            Err(_) => Number::HugeHex,
        });
    }
    if body.bytes().all(|b| b.is_ascii_digit()) {
        return Some(match body.parse() {
            Ok(magnitude) => Number::Int { negative, magnitude },
            Err(_) => Number::HugeDecimal,
        });
    }
    let (digits, suffix) = split_suffix(text);
    is_decimal(&digits[negative as usize..])
        .then_some(Number::Float { digits_len: digits.len(), suffix })
}

fn split_suffix(text: &str) -> (&str, Option<FloatFormat>) {
    // `bf16` before `f16`: the one ends in the other.
    const SUFFIXES: [(&str, FloatFormat); 4] = [
        ("bf16", FloatFormat::Bf16),
        ("f16", FloatFormat::F16),
        ("f32", FloatFormat::F32),
        ("f64", FloatFormat::F64),
    ];
    for (suffix, format) in SUFFIXES {
        if let Some(digits) = text.strip_suffix(suffix) {
            return (digits, Some(format));
        }
    }
    (text, None)
}

/// `[0-9]+(.[0-9]+)?([eE][+-]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    fn digits(text: &str) -> Option<&str> {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < text.len()).then_some(rest)
    }
    let Some(mut rest) = digits(text) else { return false };
    if let Some(fraction) = rest.strip_prefix('.') {
        let Some(after) = digits(fraction) else { return false };
        rest = after;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let Some(after) = digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

impl FloatFormat {
    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            FloatFormat::F16 => "f16",
            FloatFormat::F32 => "f32",
            FloatFormat::F64 => "f64",
            FloatFormat::Bf16 => "bf16",
        }
    }

    /// The bits of a decimal number in this format, in the low bits of the result: rounded once
    /// to nearest even, except that `bf16` is rounded from the nearest `f32`. A number that is
    /// too large gives infinity. `digits` is what [`crate::ast::Literal::Float`] holds or a
    /// decimal integer; `None` for any other text.
    pub fn parse(self, digits: &str) -> Option<u64> {
        if !is_decimal(digits.strip_prefix('-').unwrap_or(digits)) {
            return None;
        }
        Some(match self {
            FloatFormat::F64 => digits.parse::<f64>().ok()?.to_bits(),
            FloatFormat::F32 => digits.parse::<f32>().ok()?.to_bits().into(),
            FloatFormat::Bf16 => bf16::from_f32(digits.parse().ok()?).to_bits().into(),
            FloatFormat::F16 => round_to_f16(digits, digits.parse().ok()?).to_bits().into(),
        })
    }

    /// The value of `bits` as an `f64`, exactly.
    fn value(self, bits: u64) -> f64 {
        match self {
            FloatFormat::F64 => f64::from_bits(bits),
            FloatFormat::F32 => f32::from_bits(bits as u32).into(),
            FloatFormat::Bf16 => bf16::from_bits(bits as u16).to_f64(),
            FloatFormat::F16 => f16::from_bits(bits as u16).to_f64(),
        }
    }

    /// The shortest decimal number that [`FloatFormat::parse`] turns into `bits`, with a point or
    /// an exponent in it; `None` for infinities and NaN, which no literal denotes.
    pub fn shortest(self, bits: u64) -> Option<String> {
        let value = self.value(bits);
        if !value.is_finite() {
            return None;
        }
        match self {
            FloatFormat::F64 => Some(format!("{value:?}")),
            FloatFormat::F32 => Some(format!("{:?}", value as f32)),
            FloatFormat::F16 | FloatFormat::Bf16 => (0..20)
                .filter_map(|digits| format!("{value:.digits$e}").parse::<f64>().ok())
                .map(|candidate| format!("{candidate:?}"))
                .find(|text| self.parse(text) == Some(bits)),
        }
    }
}

/// Rounds a decimal number to `f16`, once, given the nearest `f64`.
///
/// Rounding the `f64` again errs only when it is exactly halfway between two `f16` values and the
/// number itself is not.
fn round_to_f16(digits: &str, nearest: f64) -> f16 {
    let below = f64_to_f16(nearest.next_down());
    let above = f64_to_f16(nearest.next_up());
    // The number after the largest `f16` is 2^16, for the purpose of rounding.
    let width = |x: f16| if x.is_infinite() { 65536f64.copysign(x.to_f64()) } else { x.to_f64() };
    let is_halfway = below != above && width(below) + width(above) == 2.0 * nearest;
    if !is_halfway {
        return f64_to_f16(nearest);
    }
    match compare_magnitude(digits, nearest.abs()) {
        Ordering::Equal => f64_to_f16(nearest),
        Ordering::Less => closer_to_zero(below, above),
        Ordering::Greater => closer_to_zero(above, below),
    }
}

/// Rounds to nearest even. On the way through `f32` an inexact value gets an odd last bit, which
/// keeps it off the points where `f16` rounds to even.
fn f64_to_f16(x: f64) -> f16 {
    let nearest = x as f32;
    let is_odd = nearest.to_bits() & 1 == 1;
    f16::from_f32(match f64::from(nearest).partial_cmp(&x) {
        Some(Ordering::Less) if !is_odd => nearest.next_up(),
        Some(Ordering::Greater) if !is_odd => nearest.next_down(),
        _ => nearest,
    })
}

/// `first` if both are positive, `second` if both are negative: the ends of an interval swap
/// their roles with the sign.
fn closer_to_zero(first: f16, second: f16) -> f16 {
    if first.is_sign_negative() || second.is_sign_negative() { second } else { first }
}

/// Compares the absolute value of a decimal number with a positive `f64` that has at most 60
/// significant decimal digits.
fn compare_magnitude(digits: &str, value: f64) -> Ordering {
    let exact = format!("{value:.60e}");
    let (a, a_exponent) = significant_digits(digits);
    let (b, b_exponent) = significant_digits(&exact);
    a_exponent.cmp(&b_exponent).then_with(|| {
        let length = a.len().max(b.len());
        let padded = |d: &[u8]| {
            let mut d = d.to_vec();
            d.resize(length, b'0');
            d
        };
        padded(&a).cmp(&padded(&b))
    })
}

/// A decimal number as digits without leading zeros and the exponent of the first of them.
fn significant_digits(text: &str) -> (Vec<u8>, i64) {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let zeros = all.iter().take_while(|&&b| b == b'0').count();
    let first = whole.len() as i64 - 1 - zeros as i64;
    (all[zeros..].to_vec(), exponent.saturating_add(first))
}

/// Why an escape in a string cannot be read, and its bytes in the token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EscapeError {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) is_unicode: bool,
}

/// Reads the contents of a string token, quotes included, into `out`.
pub(crate) fn decode_string(token: &str, out: &mut String) -> Result<(), EscapeError> {
    let body = &token[1..token.len() - 1];
    let mut rest = body;
    while let Some(backslash) = rest.find('\\') {
        out.push_str(&rest[..backslash]);
        let escape = &rest[backslash + 1..];
        let (c, len) = match escape.as_bytes().first() {
            Some(b'n') => (Some('\n'), 1),
            Some(b't') => (Some('\t'), 1),
            Some(b'r') => (Some('\r'), 1),
            Some(b'0') => (Some('\0'), 1),
            Some(b'\\') => (Some('\\'), 1),
            Some(b'"') => (Some('"'), 1),
            Some(b'u') => decode_unicode_escape(escape),
            _ => (None, escape.chars().next().map_or(0, char::len_utf8)),
        };
        let Some(c) = c else {
            let start = 1 + body.len() - rest.len() + backslash;
            let is_unicode = escape.starts_with('u');
            return Err(EscapeError { start, end: start + 1 + len, is_unicode });
        };
        out.push(c);
        rest = &escape[len..];
    }
    out.push_str(rest);
    Ok(())
}

/// The character of `u{HEX}…`, and how many bytes belong to the escape.
fn decode_unicode_escape(escape: &str) -> (Option<char>, usize) {
    let Some(hex) = escape.strip_prefix("u{") else { return (None, 1) };
    let digits = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
    if digits == 0 || digits > 6 || hex.as_bytes().get(digits) != Some(&b'}') {
        return (None, 2 + digits);
    }
    let c = u32::from_str_radix(&hex[..digits], 16).ok().and_then(char::from_u32);
    (c, digits + 3)
}

/// Writes a string literal, quotes included, in the canonical spelling: everything that can be
/// seen stands for itself.
pub(crate) fn encode_string(contents: &str, out: &mut String) {
    out.push('"');
    for c in contents.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c if c.is_control() || is_invisible(c) => {
                // Writing to a `String` does not fail.
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Marks that change how the text around them is shown, and show nothing themselves.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let int = |negative, magnitude| Some(Number::Int { negative, magnitude });
        assert_eq!(parse_number("0"), int(false, 0));
        assert_eq!(parse_number("-17"), int(true, 17));
        assert_eq!(parse_number("-0xfF"), int(true, 255));
        let max = u128::MAX.to_string();
        assert_eq!(parse_number(&max), int(false, u128::MAX));
        assert_eq!(parse_number(&format!("{max}0")), Some(Number::HugeDecimal));
        assert_eq!(parse_number(&format!("0x1{:032x}", 0)), Some(Number::HugeHex));
        let float = |digits_len, suffix| Some(Number::Float { digits_len, suffix });
        assert_eq!(parse_number("1.5"), float(3, None));
        assert_eq!(parse_number("-1.5e-7f32"), float(7, Some(FloatFormat::F32)));
        assert_eq!(parse_number("12bf16"), float(2, Some(FloatFormat::Bf16)));
        assert_eq!(parse_number("1E9"), float(3, None));
        for bad in ["0x", "12abc", "1.5.", "1e", "1_000", "0xg", "1.5f8", "-f32", "1.2x"] {
            assert_eq!(parse_number(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_half_float_has_a_shortest_text_that_reads_back() {
        for format in [FloatFormat::F16, FloatFormat::Bf16] {
            for bits in 0..=u16::MAX as u64 {
                if let Some(text) = format.shortest(bits) {
                    assert_eq!(format.parse(&text), Some(bits), "{format:?} {text}");
                    assert!(text.contains(['.', 'e']), "{text}");
                    assert!(text.len() <= 20, "{format:?} {bits:#x}: {text}");
                } else {
                    assert!(!format.value(bits).is_finite());
                }
            }
        }
        assert_eq!(FloatFormat::F16.shortest(0x2e66).as_deref(), Some("0.1"));
        assert_eq!(FloatFormat::F32.shortest(0x3dcccccd).as_deref(), Some("0.1"));
        assert_eq!(FloatFormat::F64.shortest(1e21f64.to_bits()).as_deref(), Some("1e21"));
    }

    #[test]
    fn half_floats_are_rounded_once() {
        let parse = |text| FloatFormat::F16.parse(text).map(|bits| f16::from_bits(bits as u16));
        let one = f16::from_f32(1.0);
        let next = f16::from_bits(one.to_bits() + 1);
        // 1 + 2^-11 is halfway between 1 and the next f16, and the even one is 1.
        assert_eq!(parse("1.00048828125"), Some(one));
        assert_eq!(parse("1.000488281250000000000000000001"), Some(next));
        assert_eq!(parse("-1.000488281250000000000000000001"), Some(-next));
        assert_eq!(parse("1.000488281249999999999999999999"), Some(one));
        // 1 + 3·2^-11: the even one is above.
        let second = f16::from_bits(one.to_bits() + 2);
        assert_eq!(parse("1.00146484375"), Some(second));
        assert_eq!(parse("1.001464843749999999999999999999999"), Some(next));
        assert_eq!(parse("-1.001464843749999999999999999999999"), Some(-next));
        // The limits.
        assert_eq!(parse("65519.99999999999999999999999"), Some(f16::MAX));
        assert_eq!(parse("65520"), Some(f16::INFINITY));
        assert_eq!(parse("2.98023223876953125e-8"), Some(f16::from_bits(0)));
        assert_eq!(parse("2.980232238769531250000000000001e-8"), Some(f16::from_bits(1)));
        assert_eq!(parse("-0"), Some(f16::NEG_ZERO));
        assert_eq!(parse("1e-99999999999999999999"), Some(f16::ZERO));
    }

    #[test]
    fn strings() {
        let decode = |token: &str| {
            let mut out = String::new();
            decode_string(token, &mut out).map(|()| out)
        };
        assert_eq!(decode(r#""a\n\t\r\0\\\"\u{3bb}b""#).unwrap(), "a\n\t\r\0\\\"λb");
        let bad = |token| decode(token).unwrap_err();
        assert_eq!(bad(r#""ab\qc""#), EscapeError { start: 3, end: 5, is_unicode: false });
        assert_eq!(bad(r#""\u{d800}""#), EscapeError { start: 1, end: 9, is_unicode: true });
        assert_eq!(bad(r#""\u{12""#), EscapeError { start: 1, end: 6, is_unicode: true });
        assert_eq!(bad(r#""x\é""#), EscapeError { start: 2, end: 5, is_unicode: false });

        let mut out = String::new();
        encode_string("a\"\\\n\u{7}λ\u{202e}", &mut out);
        assert_eq!(out, r#""a\"\\\n\u{7}λ\u{202e}""#);
        assert_eq!(decode(&out).unwrap(), "a\"\\\n\u{7}λ\u{202e}");
    }
}
