//! Literals: numbers take the type of their context.

use super::body::{Body, Val};
use super::consts::ConstValue;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_types::PrimType;
use magpie_types::float16::f64_to_f16;

impl Body<'_, '_, '_> {
    /// An integer literal, possibly negative.
    pub(super) fn int_literal(&mut self, n: i128, want: Option<Ty>, span: Span) -> Lower<Val> {
        let int = self.norm(ty::INT);
        let t = match want.map(|t| (t, self.cx.tys.kind(t))) {
            Some((_, TyKind::Option(t))) if self.cx.tys.is_int(t) => t,
            Some((t, TyKind::Atomic(_))) => t,
            Some((t, _)) if self.cx.tys.is_int(t) => t,
            _ => int,
        };
        let t = match self.cx.tys.kind(t) {
            TyKind::Atomic(t) => t,
            _ => t,
        };
        let p = self.cx.tys.scalar(t, self.device).ok_or(Poisoned)?;
        let (min, max) = range(p);
        // A literal of 64 bits in another radix is the `int` with the same bits.
        let as_bits =
            p == PrimType::I64 && n > max && n <= u64::MAX as i128 && !self.is_decimal(span);
        if (n < min || n > max) && !as_bits {
            let message = format!("{n} does not fit `{}` ({min} to {max})", self.cx.ty_name(t));
            let code = if self.in_division { Code::MIR1806 } else { Code::MIR0213 };
            let help = match self.device {
                true => "integers of kernels have 32 bits: use a smaller number, or `i64`",
                false => "use a smaller number, or a wider type",
            };
            return Err(self.error(code, span, message, help));
        }
        Ok(self.const_val(t, n as u64))
    }

    /// Whether a place of the program is a decimal number.
    fn is_decimal(&self, span: Span) -> bool {
        let text = self.cx.places.text(span).as_bytes();
        match text {
            [b'0', second, ..] => second.is_ascii_digit() || *second == b'_',
            [first, ..] => first.is_ascii_digit(),
            [] => false,
        }
    }

    /// A float literal from its value and, where it is known, its text, so that it is rounded once.
    pub(super) fn float_literal(&mut self, x: f64, text: Option<&str>, want: Option<Ty>) -> Val {
        let float = match self.device || self.resident_literals {
            true => ty::F32,
            false => ty::FLOAT,
        };
        let t = match want.map(|t| (t, self.cx.tys.kind(t))) {
            Some((_, TyKind::Option(t))) if self.cx.tys.is_float(t) => t,
            Some((t, _)) if self.cx.tys.is_float(t) => t,
            _ => float,
        };
        let bits = match self.cx.tys.scalar(t, self.device) {
            Some(PrimType::F32) => {
                let narrow = text.and_then(|t| t.parse::<f32>().ok()).unwrap_or(x as f32);
                u64::from(narrow.to_bits())
            }
            Some(PrimType::F16) => u64::from(f64_to_f16(x)),
            _ => x.to_bits(),
        };
        self.const_val(t, bits)
    }

    /// The value of a constant in its context.
    pub(super) fn const_value(
        &mut self,
        value: ConstValue,
        declared: Option<Ty>,
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let declared = declared.map(|t| self.norm(t));
        match value {
            ConstValue::Int(n) => self.int_literal(n, declared.or(want), span),
            ConstValue::Float(x) => Ok(self.float_literal(x, None, declared.or(want))),
            ConstValue::Bool(b) => Ok(self.const_val(ty::BOOL, u64::from(b))),
            ConstValue::Str(_) | ConstValue::Joined(_) => {
                self.no_text(span)?;
                let text = self.cx.const_text(value).unwrap_or_default().to_string();
                Ok(self.text(&text))
            }
        }
    }

    /// Kernels have no texts.
    fn no_text(&mut self, span: Span) -> Lower<()> {
        if !self.device {
            return Ok(());
        }
        let help = "print on the host, after a readback";
        Err(self.error(Code::MIR1802, span, "a kernel cannot make a text", help))
    }

    /// A text.
    pub(super) fn text_value(&mut self, s: Sym, span: Span) -> Lower<Val> {
        self.no_text(span)?;
        let text = self.cx.program.name(s).to_string();
        Ok(self.text(&text))
    }

    /// Whether an integer literal is meant for 32-bit elements and does not fit; reported.
    pub(super) fn check_i32_range(&mut self, index: usize, e: ExprId) -> Lower<()> {
        let Some(n) = self.cx.const_int(e, &self.subst) else { return Ok(()) };
        if i32::try_from(n).is_ok() {
            return Ok(());
        }
        let span = self.cx.program.ast[e].span;
        let message =
            format!("element {index} is {n}, but `int` elements on a device have 32 bits");
        let help = "use smaller numbers, or declare the type `Array<i64, …>`";
        Err(self.error(Code::MIR1602, span, message, help))
    }
}

/// The smallest and the largest value of an integer type.
pub(super) fn range(p: PrimType) -> (i128, i128) {
    let bits = p.bit_width().min(64);
    match p.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    }
}
