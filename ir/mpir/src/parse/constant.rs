//! Numbers and constants.

use super::lexer::Kind;
use super::{Parsed, Parser};
use crate::{Const, eval};
use magpie_types::{Category, PrimType, TypeId, TypeKind, fixed};

/// An integer in decimal or `0x` notation, within ±2^64.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((digits, 10), |h| (h, 16));
    // `from_str_radix` would take a sign of its own.
    let magnitude = u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))?;
    Some(if negative { -(magnitude as i128) } else { magnitude as i128 })
}

/// The bits of an integer that fits `width` bits, signed or unsigned.
pub(super) fn integer_bits(value: i128, width: u32) -> Option<u64> {
    let limit = 1i128 << width;
    let fits = value >= -(limit / 2) && value < limit;
    fits.then(|| (value & (limit - 1)) as u64)
}

/// The bits of a float written as `0x` bits or as a decimal number, rounded once to nearest even.
fn float_bits(text: &str, p: PrimType) -> Option<u64> {
    if text.starts_with("0x") || text.starts_with("0X") {
        return integer(text).and_then(|v| integer_bits(v, p.bit_width()));
    }
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    if !plain {
        return None;
    }
    match p {
        // Not by way of f64, which would round twice.
        PrimType::F32 => text.parse::<f32>().ok().map(|v| v.to_bits() as u64),
        _ => text.parse::<f64>().ok().map(|v| eval::float_bits(p, v)),
    }
}

impl<'a> Parser<'a> {
    /// The payload of a constant of type `ty`, which was just read.
    pub(super) fn constant(&mut self, ty: TypeId) -> Parsed<Const> {
        if ty == fixed::UNIT {
            return Ok(Const::Unit);
        }
        if self.eat_word("zero") {
            return Ok(Const::Zero);
        }
        let prim = match self.m.types.kind(ty) {
            TypeKind::Prim(p) => Some(p),
            TypeKind::Enum(e) if self.m.types.enum_def(e).category == Category::Value => {
                Some(PrimType::I32)
            }
            _ => None,
        };
        let tok = self.tok;
        let text = self.slice(tok);
        match (tok.kind, prim) {
            (Kind::Word, Some(PrimType::Bool)) if matches!(text, "true" | "false") => {
                self.bump();
                Ok(Const::Bits((text == "true") as u64))
            }
            (Kind::Number, Some(p)) if p != PrimType::Bool => {
                self.bump();
                let bits = match p.is_float() {
                    true => float_bits(text, p),
                    false => integer(text).and_then(|v| integer_bits(v, p.bit_width().min(64))),
                };
                bits.map(Const::Bits).ok_or_else(|| {
                    let name = p.name();
                    self.error(tok, format!("`{text}` is no number of type `{name}`"))
                })
            }
            (Kind::Str, None) if self.takes_text(ty) => {
                let text = self.string()?;
                Ok(Const::Str(self.m.intern_str(&text)))
            }
            _ => {
                let name = crate::print_type(&self.m.types, ty);
                Err(self.expected(&format!("a constant of type `{name}`, or `zero`")))
            }
        }
    }

    fn takes_text(&self, ty: TypeId) -> bool {
        matches!(self.m.types.kind(ty), TypeKind::Str)
            || matches!(self.m.types.kind(ty), TypeKind::RawPtr(fixed::U8))
    }
}
