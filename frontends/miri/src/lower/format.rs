//! Formatted strings, and texts that grow.
//!
//! A text is put together by appending to it, piece by piece; no other text is made of the pieces.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::fixed as ty;
use magpie_diag::{Code, Span};
use magpie_mpir::Value;
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, fixed};

/// A value on its way into a text: what appends it, and the operands behind the text.
pub(super) struct Piece {
    append: RtFn,
    operands: Vec<Value>,
}

impl Body<'_, '_, '_> {
    pub(super) fn format(&mut self, parts: &[FormatPart], span: Span) -> Lower<Val> {
        self.no_alloc(span, "a text")?;
        if let [FormatPart::Text(text)] = parts {
            return self.text_value(*text, span);
        }
        let pieces = self.pieces(parts)?;
        let start = self.text("");
        Ok(self.append(start.v, pieces))
    }

    /// The parts of a formatted string, evaluated.
    pub(super) fn pieces(&mut self, parts: &[FormatPart]) -> Lower<Vec<Piece>> {
        let values = |part: &FormatPart| match part {
            FormatPart::Text(_) => None,
            FormatPart::Value(e) => Some(*e),
        };
        let exprs: Vec<ExprId> = parts.iter().filter_map(values).collect();
        let (mut later, mut failed) = (&exprs[..], false);
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            let piece = match part {
                FormatPart::Text(text) => {
                    let text = self.cx.program.name(*text).to_string();
                    let text = self.text(&text);
                    Ok(Piece { append: RtFn::StrAppend, operands: vec![text.v] })
                }
                FormatPart::Value(e) => {
                    later = &later[1..];
                    self.piece(*e, later)
                }
            };
            match piece {
                Ok(piece) => pieces.push(piece),
                Err(Poisoned) => failed = true,
            }
        }
        if failed { Err(Poisoned) } else { Ok(pieces) }
    }

    fn piece(&mut self, e: ExprId, later: &[ExprId]) -> Lower<Piece> {
        let span = self.expr_span(e);
        if let Some(id) = self.resident_of(e) {
            return Err(self.refuse_on_host(self.locals[id as usize].name, span));
        }
        let val = self.expr(e, None)?;
        let val = self.keep(val, later);
        self.at(span);
        let (append, operands) = match self.scalar(val.ty) {
            Some(PrimType::Bool) => (RtFn::StrAppendBool, vec![val.v]),
            Some(p) if p.is_float() => {
                let wide = self.b.cast(val.v, fixed::F64);
                let bits = self.i32(p.bit_width() as i32);
                (RtFn::StrAppendFloat, vec![wide, bits])
            }
            Some(p) if p.is_signed() => (RtFn::StrAppendI64, vec![self.b.cast(val.v, fixed::I64)]),
            Some(_) => (RtFn::StrAppendU64, vec![self.b.cast(val.v, fixed::U64)]),
            None if val.ty == ty::STR => (RtFn::StrAppend, vec![val.v]),
            None if val.ty == ty::ERROR => return Err(Poisoned),
            None => {
                let message = format!("a `{}` cannot be put into a text", self.cx.ty_name(val.ty));
                let help = "numbers, truth values and texts can: use a part of it";
                return Err(self.error(Code::MIR0202, span, message, help));
            }
        };
        Ok(Piece { append, operands })
    }

    /// An owned text with pieces behind it.
    pub(super) fn append(&mut self, text: Value, pieces: Vec<Piece>) -> Val {
        let v = pieces.into_iter().fold(text, |text, piece| {
            let args = [&[text], &piece.operands[..]].concat();
            self.rt_value(piece.append, fixed::STR, &args)
        });
        self.val(ty::STR, v)
    }

    /// The pieces that an expression adds to a text, when it is a formatted string.
    pub(super) fn added_pieces(&mut self, e: ExprId) -> Option<Lower<Vec<Piece>>> {
        match &self.cx.program.ast[e].kind {
            ExprKind::Format(parts) if !self.device => Some(self.pieces(parts)),
            _ => None,
        }
    }
}
