//! Literals of collections and tuples.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};

impl Body<'_, '_, '_> {
    pub(super) fn list(&mut self, items: &[ExprId], want: Option<Ty>, span: Span) -> Lower<Val> {
        let wanted = want.map(|t| self.cx.tys.kind(t));
        let element = match wanted {
            Some(TyKind::Array(t, _) | TyKind::List(t)) => Some(t),
            _ => None,
        };
        if self.device {
            return self.inline_literal(items, want, span);
        }
        // Without a wanted type the first item that is no literal decides; before it there are
        // literals only, so the order of evaluation does not show.
        let mut leader = None;
        let element = match element {
            Some(t) => t,
            None => {
                let at = self.leading_item(items, span)?;
                let val = self.expr(items[at], None)?;
                leader = Some((at, val));
                val.ty
            }
        };
        let mut values = Vec::with_capacity(items.len());
        let mut failed = false;
        for (n, &item) in items.iter().enumerate() {
            let val = match leader {
                Some((at, val)) if at == n => Ok(val),
                _ => self.expr_as(item, element),
            };
            match val {
                Ok(val) => values.push(self.own(val)),
                Err(Poisoned) => failed = true,
            }
        }
        if failed {
            return Err(Poisoned);
        }
        let array = match wanted {
            Some(TyKind::List(_)) => self.cx.tys.intern(TyKind::List(element)),
            _ => self.cx.tys.intern(TyKind::Array(element, items.len() as u64)),
        };
        let id = self.machine(array);
        self.at(span);
        let v = self.b.value(Op::ArrFrom, id, &values, 0);
        Ok(self.val(array, v))
    }

    /// The item that decides about the type of all.
    pub(super) fn leading_item(&mut self, items: &[ExprId], span: Span) -> Lower<usize> {
        if items.is_empty() {
            let help = "declare it: `let x List<int> = []`";
            return Err(self.error(Code::MIR0202, span, "an empty list has no element type", help));
        }
        let typed = items.iter().position(|&e| !self.cx.adapts(e));
        let float = |body: &mut Self, e: ExprId| {
            let value = body.cx.const_value(e, &Vec::new(), 0);
            matches!(value, Some(super::consts::ConstValue::Float(_)))
        };
        Ok(typed.or_else(|| items.iter().position(|&e| float(self, e))).unwrap_or(0))
    }

    pub(super) fn map(
        &mut self,
        entries: &[(ExprId, ExprId)],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        self.no_alloc(span, "a map")?;
        let mut first = None;
        let (k, v) = match (want.map(|t| self.cx.tys.kind(t)), entries.first()) {
            (Some(TyKind::Map(k, v)), _) => (k, v),
            (Some(TyKind::Set(_)), None) => return self.set(&[], want, span),
            (_, Some(&(k, v))) => {
                let key = self.expr(k, None)?;
                let key = self.keep(key, &[v]);
                let value = self.expr(v, None)?;
                first = Some((key, value));
                (key.ty, value.ty)
            }
            (_, None) => {
                let help = "declare it: `var m {int: String} = {}`";
                return Err(self.error(Code::MIR0202, span, "an empty map has no types", help));
            }
        };
        let t = self.cx.tys.intern(TyKind::Map(k, v));
        let map = self.new_map(t, k, span)?;
        for &(key, value) in entries {
            let (key, value) = match first.take() {
                Some(entry) => entry,
                None => {
                    let (first, second) = (self.expr_as(key, k)?, value);
                    let first = self.keep(first, &[second]);
                    (first, self.expr_as(second, v)?)
                }
            };
            let (key, value) = (self.own(key), self.own(value));
            self.b.effect(Op::MapSet, &[map, key, value], 0);
        }
        Ok(self.val(t, map))
    }

    pub(super) fn set(&mut self, items: &[ExprId], want: Option<Ty>, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a set")?;
        let mut first = None;
        let k = match (want.map(|t| self.cx.tys.kind(t)), items.first()) {
            (Some(TyKind::Set(k)), _) => k,
            (_, Some(&item)) => {
                let val = self.expr(item, None)?;
                first = Some(val);
                val.ty
            }
            (_, None) => return Err(Poisoned),
        };
        let t = self.cx.tys.intern(TyKind::Set(k));
        let map = self.new_map(t, k, span)?;
        for &item in items {
            let key = match first.take() {
                Some(val) => val,
                None => self.expr_as(item, k)?,
            };
            let key = self.own(key);
            let yes = self.b.func().const_bool(true);
            self.b.effect(Op::MapSet, &[map, key, yes], 0);
        }
        Ok(self.val(t, map))
    }

    /// An empty map or set. Keys are numbers, truth values or texts.
    pub(super) fn new_map(&mut self, t: Ty, key: Ty, span: Span) -> Lower<Value> {
        let fits = self.cx.tys.scalar(key, false).is_some() || key == ty::STR;
        if !fits {
            let message = format!("`{}` cannot be a key", self.cx.ty_name(key));
            let help = "keys are numbers, truth values and texts";
            return Err(self.error(Code::MIR0103, span, message, help));
        }
        let id = self.machine(t);
        self.at(span);
        Ok(self.b.value(Op::MapNew, id, &[], 0))
    }

    pub(super) fn tuple(&mut self, items: &[ExprId], want: Option<Ty>) -> Lower<Val> {
        let wanted = match want.map(|t| self.cx.tys.kind(t)) {
            Some(TyKind::Tuple(list)) if self.cx.tys.items(list).len() == items.len() => {
                self.cx.tys.items(list).to_vec()
            }
            _ => Vec::new(),
        };
        let mut vals = Vec::with_capacity(items.len());
        for (n, &item) in items.iter().enumerate() {
            let val = match wanted.get(n) {
                Some(&t) => self.expr_as(item, t)?,
                None => self.expr(item, None)?,
            };
            vals.push(self.keep(val, items));
        }
        let tys: Vec<Ty> = vals.iter().map(|v| v.ty).collect();
        let list = self.cx.tys.list(&tys);
        let t = self.cx.tys.intern(TyKind::Tuple(list));
        Ok(self.new_struct(t, &vals))
    }

    /// A struct or tuple of its members.
    pub(super) fn new_struct(&mut self, t: Ty, vals: &[Val]) -> Val {
        let id = self.machine(t);
        let parts: Vec<Value> = vals
            .iter()
            .map(|&val| if self.device { self.as_member(val) } else { self.own(val) })
            .collect();
        let op = match self.cx.module.types.is_aggregate(id) {
            true => Op::StructNew,
            false => Op::New,
        };
        let v = self.b.value(op, id, &parts, 0);
        self.val(t, v)
    }
}
