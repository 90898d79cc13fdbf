//! Methods of texts.

use super::Lower;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{TyKind, fixed as ty};
use magpie_diag::Span;
use magpie_mpir::Op;
use magpie_types::abi::RtFn;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    pub(super) fn text_method(
        &mut self,
        val: Val,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        let how = match name {
            "to_upper" => Some(0),
            "to_lower" => Some(1),
            "trim" => Some(2),
            _ => None,
        };
        if let Some(how) = how {
            let [] = self.plain_args(name, args, span)?;
            let how = self.i32(how);
            let v = self.rt_value(RtFn::StrTransform, fixed::STR, &[val.v, how]);
            return Ok(Some(self.val(ty::STR, v)));
        }
        Ok(Some(match name {
            "length" => {
                let [] = self.plain_args(name, args, span)?;
                let v = self.rt_value(RtFn::StrCount, fixed::I64, &[val.v]);
                self.val(ty::INT, v)
            }
            "is_empty" => {
                let [] = self.plain_args(name, args, span)?;
                let len = self.rt_value(RtFn::StrLen, fixed::I64, &[val.v]);
                let zero = self.i64(0);
                let v = self.b.compare(Op::IcmpEq, len, zero);
                self.val(ty::BOOL, v)
            }
            "contains" => {
                let [part] = self.plain_args(name, args, span)?;
                let part = self.expr_as(part, ty::STR)?;
                self.contains(val, part)
            }
            "to_int" | "to_float" => {
                let [] = self.plain_args(name, args, span)?;
                let (f, t) = match name {
                    "to_int" => (RtFn::StrToI64, ty::INT),
                    _ => (RtFn::StrToF64, ty::FLOAT),
                };
                let option = self.cx.tys.intern(TyKind::Option(t));
                let id = self.machine(option);
                let v = self.rt_value(f, id, &[val.v]);
                self.val(option, v)
            }
            _ => return Ok(None),
        }))
    }
}
