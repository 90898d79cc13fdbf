//! Formatted strings and printing.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::fixed as ty;
use magpie_diag::{Code, Span};
use magpie_mpir::Value;
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, fixed};

impl Body<'_, '_, '_> {
    pub(super) fn format(&mut self, parts: &[FormatPart], span: Span) -> Lower<Val> {
        self.no_alloc(span, "a text")?;
        if let [FormatPart::Text(text)] = parts {
            return self.text_value(*text, span);
        }
        if parts.is_empty() {
            return Ok(self.text(""));
        }
        let builder = self.rt_value(RtFn::SbNew, fixed::STR_BUILDER, &[]);
        let mut failed = false;
        for part in parts {
            match part {
                FormatPart::Text(text) => {
                    let text = self.cx.program.name(*text).to_string();
                    let text = self.text(&text);
                    self.rt(RtFn::SbAppendStr, fixed::UNIT, &[builder, text.v]);
                }
                FormatPart::Value(e) => failed |= self.append(builder, *e).is_err(),
            }
        }
        if failed {
            return Err(Poisoned);
        }
        let v = self.rt_value(RtFn::SbBuild, fixed::STR, &[builder]);
        Ok(self.val(ty::STR, v))
    }

    fn append(&mut self, builder: Value, e: ExprId) -> Lower<()> {
        let span = self.expr_span(e);
        if let Some(id) = self.resident_of(e) {
            return Err(self.refuse_on_host(self.locals[id as usize].name, span));
        }
        let val = self.expr(e, None)?;
        self.at(span);
        let (f, v) = match self.scalar(val.ty) {
            Some(PrimType::Bool) => (RtFn::SbAppendBool, val.v),
            Some(p) if p.is_float() => {
                let wide = self.b.cast(val.v, fixed::F64);
                let bits = self.i32(p.bit_width() as i32);
                let text = self.rt_value(RtFn::FloatText, fixed::STR, &[wide, bits]);
                (RtFn::SbAppendStr, text)
            }
            Some(p) if p.is_signed() => (RtFn::SbAppendI64, self.b.cast(val.v, fixed::I64)),
            Some(_) => (RtFn::SbAppendU64, self.b.cast(val.v, fixed::U64)),
            None if val.ty == ty::STR => (RtFn::SbAppendStr, val.v),
            None if val.ty == ty::ERROR => return Err(Poisoned),
            None => {
                let message = format!("a `{}` cannot be put into a text", self.cx.ty_name(val.ty));
                let help = "numbers, truth values and texts can: use a part of it";
                return Err(self.error(Code::MIR0202, span, message, help));
            }
        };
        self.rt(f, fixed::UNIT, &[builder, v]);
        Ok(())
    }
}
