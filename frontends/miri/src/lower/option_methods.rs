//! Methods of options and results.

use super::Lower;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{Ty, fixed as ty};
use magpie_diag::Span;
use magpie_mpir::Op;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    /// Methods of an option, or of a result with errors of the given type.
    pub(super) fn option_method(
        &mut self,
        val: Val,
        t: Ty,
        error: Option<Ty>,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        let (good, bad, good_variant) = match error {
            Some(_) => ("is_ok", "is_err", 0),
            None => ("is_some", "is_none", 1),
        };
        Ok(Some(match name {
            "unwrap_or" => {
                let [other] = self.plain_args(name, args, span)?;
                self.unwrap_or(val, good_variant, t, other)?
            }
            "unwrap" => {
                let [] = self.plain_args(name, args, span)?;
                let is_good = super::clone::enum_is(self, val.v, good_variant);
                let (fine, stop) = (self.new_block(), self.new_block());
                self.b.cbr(is_good, fine, stop);
                self.enter(stop);
                if error == Some(ty::STR) {
                    let why = self.payload(val, 1, 0, ty::STR);
                    self.b.inst(Op::Panic, fixed::UNIT, &[why.v], 0);
                    self.b.unreachable();
                } else {
                    let what = if error.is_some() { "an `Err`" } else { "`None`" };
                    let text = format!("`unwrap` of {what} at {}", self.cx.place_text(span));
                    self.panic(&text);
                }
                self.enter(fine);
                self.payload(val, good_variant, 0, t)
            }
            _ if name == good || name == bad => {
                let [] = self.plain_args(name, args, span)?;
                let variant = if name == good { good_variant } else { 1 - good_variant };
                let v = super::clone::enum_is(self, val.v, variant);
                self.val(ty::BOOL, v)
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn unwrap_or(&mut self, val: Val, variant: u32, t: Ty, other: ExprId) -> Lower<Val> {
        let other = self.expr_as(other, t)?;
        let id = self.machine(t);
        let result = self.b.declare(id);
        let is = super::clone::enum_is(self, val.v, variant);
        let (yes, no, join) = (self.new_block(), self.new_block(), self.new_block());
        self.b.cbr(is, yes, no);
        self.enter(yes);
        let part = self.payload(val, variant, 0, t);
        let v = self.own(part);
        self.b.write(result, v);
        self.b.br(join);
        self.enter(no);
        let v = self.own(other);
        self.b.write(result, v);
        self.b.br(join);
        self.enter(join);
        let v = self.b.read(result);
        Ok(self.val(t, v))
    }
}
