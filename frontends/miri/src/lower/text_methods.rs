//! Methods of texts.

use super::Lower;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{TyKind, fixed as ty};
use magpie_diag::Span;
use magpie_mpir::{Op, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{TypeKind, fixed};

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
                    "to_int" => (RtFn::StrParseI64, ty::INT),
                    _ => (RtFn::StrParseF64, ty::FLOAT),
                };
                let part = self.machine(t);
                let raw = self.cx.intern(TypeKind::Result(part, fixed::STR));
                let parsed = self.rt_value(f, raw, &[val.v]);
                let option = self.cx.tys.intern(TyKind::Option(t));
                let id = self.machine(option);
                let result = self.b.declare(id);
                let none = self.none(option);
                self.b.write(result, none.v);
                let is_ok = super::clone::enum_is(self, parsed, 0);
                let (yes, join) = (self.new_block(), self.new_block());
                self.b.cbr(is_ok, yes, join);
                self.enter(yes);
                let view_ty = self.cx.view(raw);
                let view = self.b.value(Op::BorrowShared, view_ty, &[parsed], 0);
                let number = self.b.value(Op::EnumPayload, part, &[view], imm_pair(0, 0));
                let number = self.val(t, number);
                let some = self.some(number, option);
                self.b.write(result, some.v);
                self.b.br(join);
                self.enter(join);
                let v = self.b.read(result);
                self.val(option, v)
            }
            _ => return Ok(None),
        }))
    }
}
