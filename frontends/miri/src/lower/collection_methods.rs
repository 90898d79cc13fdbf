//! Methods of collections that do not change them.

use super::Lower;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::fixed;

/// The ends of a slice, the second excluded.
pub(super) struct SliceEnds {
    pub(super) start: Value,
    pub(super) end: Value,
    pub(super) known_start: Option<i128>,
    pub(super) known_end: Option<i128>,
}

impl SliceEnds {
    /// The number of elements, when it is constant.
    pub(super) fn known_len(&self) -> Option<u64> {
        u64::try_from(self.known_end? - self.known_start?).ok()
    }
}

impl Body<'_, '_, '_> {
    pub(super) fn list_method(
        &mut self,
        val: Val,
        t: Ty,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        Ok(Some(match name {
            "length" => {
                let [] = self.plain_args(name, args, span)?;
                let v = self.length(val);
                self.val(ty::INT, v)
            }
            "is_empty" => {
                let [] = self.plain_args(name, args, span)?;
                let (len, zero) = (self.length(val), self.i64(0));
                let v = self.b.compare(Op::IcmpEq, len, zero);
                self.val(ty::BOOL, v)
            }
            "element_at" => {
                let [i] = self.plain_args(name, args, span)?;
                let i = self.index_value(i)?;
                self.element(val, i, t, span)
            }
            "contains" => {
                let [item] = self.plain_args(name, args, span)?;
                let item = self.expr_as(item, t)?;
                self.contains(val, item)
            }
            "clone" => {
                let [] = self.plain_args(name, args, span)?;
                let v = self.own(val);
                self.val(val.ty, v)
            }
            "slice" => {
                let [range] = self.plain_args(name, args, span)?;
                let ends = self.slice_ends(range, span)?;
                let id = self.machine(val.ty);
                self.at(span);
                let len = self.length(val);
                self.check_slice("slice", [ends.start, ends.end, len]);
                let v = self.b.value(Op::ArrSlice, id, &[val.v, ends.start, ends.end], 0);
                let ty = match (self.cx.tys.kind(val.ty), ends.known_len()) {
                    (TyKind::Array(..), Some(n)) => self.cx.tys.intern(TyKind::Array(t, n)),
                    _ => self.cx.tys.intern(TyKind::List(t)),
                };
                self.val(ty, v)
            }
            _ => return Ok(None),
        }))
    }

    /// The ends of a range argument as `i64`s, and what is known of them without running.
    pub(super) fn slice_ends(&mut self, range: ExprId, span: Span) -> Lower<SliceEnds> {
        let ExprKind::Range { start, end, inclusive } = self.cx.program.ast[range].kind else {
            let help = "write `x.slice(a..b)`";
            return Err(self.error(Code::MIR0202, span, "`slice` takes a range", help));
        };
        let (a, b) = self.range_ends(start, end, inclusive, Code::MIR0202)?;
        let known_start = self.known_int(start);
        let known_end = self.known_int(end).map(|n| n + i128::from(inclusive));
        Ok(SliceEnds { start: a.v, end: b.v, known_start, known_end })
    }

    pub(super) fn map_method(
        &mut self,
        val: Val,
        k: Ty,
        v: Ty,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        Ok(Some(match name {
            "length" | "is_empty" => self.map_length(val, name, args, span)?,
            "contains_key" | "contains" => {
                let [key] = self.plain_args(name, args, span)?;
                let key = self.expr_as(key, k)?;
                self.contains(val, key)
            }
            "get" => {
                let [key] = self.plain_args(name, args, span)?;
                let key = self.expr_as(key, k)?;
                let option = self.cx.tys.intern(TyKind::Option(v));
                let id = self.machine(option);
                let v = self.b.value(Op::MapGet, id, &[val.v, key.v], 0);
                self.val(option, v)
            }
            "keys" => {
                let [] = self.plain_args(name, args, span)?;
                let keys = self.map_keys(val, k);
                self.val(keys.ty, keys.v)
            }
            "values" => {
                let [] = self.plain_args(name, args, span)?;
                let list = self.cx.tys.intern(TyKind::List(v));
                let id = self.machine(list);
                let values = self.b.value(Op::MapValues, id, &[val.v], 0);
                self.val(list, values)
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn map_length(
        &mut self,
        val: Val,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Val> {
        let [] = self.plain_args(name, args, span)?;
        let len = self.b.value(Op::MapLen, fixed::I64, &[val.v], 0);
        if name == "length" {
            return Ok(self.val(ty::INT, len));
        }
        let zero = self.i64(0);
        let v = self.b.compare(Op::IcmpEq, len, zero);
        Ok(self.val(ty::BOOL, v))
    }

    pub(super) fn set_method(
        &mut self,
        val: Val,
        k: Ty,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        Ok(Some(match name {
            "length" | "is_empty" => self.map_length(val, name, args, span)?,
            "contains" => {
                let [item] = self.plain_args(name, args, span)?;
                let item = self.expr_as(item, k)?;
                self.contains(val, item)
            }
            _ => return Ok(None),
        }))
    }
}
