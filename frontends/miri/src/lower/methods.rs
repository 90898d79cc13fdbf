//! Methods of the types of the language.

use super::body::{Body, Val};
use super::generics::Inference;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::Item;
use crate::receivers::changes_collection;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    pub(super) fn method(
        &mut self,
        base: ExprId,
        name: Ident,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let text = self.cx.program.name(name.sym).to_string();
        if let Some(id) = self.resident_of(base) {
            return self.resident_method(id, &text, args, span);
        }
        if self.device
            && let Some(val) = self.device_method(base, &text, args, span)?
        {
            return Ok(val);
        }
        if let Some(val) = self.method_of_place(base, name, args, want, span)? {
            return Ok(val);
        }
        if changes_collection(&text)
            && self.is_place(base)
            && let Some(val) = self.changing_method(base, &text, args, span)?
        {
            return Ok(val);
        }
        let val = self.expr(base, None)?;
        let later: Vec<ExprId> = args.iter().map(|arg| arg.value).collect();
        let val = self.keep(val, &later);
        let kind = self.cx.tys.kind(val.ty);
        // A field that holds a function.
        if let TyKind::Struct(n, list) = kind {
            let receiver = (val, base);
            if let Some(val) = self.method_of_value(n, name, receiver, args, want, span)? {
                return Ok(val);
            }
            let fields = self.cx.fields(n, list);
            if let Some(at) = fields.iter().position(|f| f.0 == name.sym)
                && matches!(self.cx.tys.kind(fields[at].1), TyKind::Fn(..))
            {
                let f = self.field(val, at as u32, fields[at].1);
                return self.call_value(f, args, span);
            }
        }
        self.check_names(&text, args)?;
        self.at(span);
        let found = match kind {
            TyKind::Array(t, _) | TyKind::List(t) => self.list_method(val, t, &text, args, span)?,
            TyKind::Map(k, v) => self.map_method(val, k, v, &text, args, span)?,
            TyKind::Set(k) => self.set_method(val, k, &text, args, span)?,
            TyKind::Str => self.text_method(val, &text, args, span)?,
            TyKind::Option(t) => self.option_method(val, t, None, &text, args, span)?,
            TyKind::Result(t, e) => self.option_method(val, t, Some(e), &text, args, span)?,
            TyKind::Error => return Err(Poisoned),
            _ => None,
        };
        if let Some(val) = found {
            return Ok(val);
        }
        let is_collection = self.cx.tys.element(val.ty).is_some()
            || matches!(kind, TyKind::Map(..) | TyKind::Set(_));
        if is_collection && changes_collection(&text) {
            let at = self.expr_span(base);
            let help = "bind the value to a `var` and change that";
            return Err(self.error(Code::MIR0203, at, "this value cannot be changed", help));
        }
        // Methods that the library writes in the language itself.
        let prefix = match kind {
            // Elements that are copied may be written before it is known whether they stay.
            TyKind::Array(t, _) | TyKind::List(t) if text == "filter" && self.is_copy(t) => {
                "plain_list"
            }
            TyKind::Array(..) | TyKind::List(_) => "list",
            TyKind::Str => "string",
            _ => "",
        };
        let full = format!("__{prefix}_{text}");
        let program = self.cx.program;
        let decl = program.names.find(&full).and_then(|sym| program.item(sym, span));
        if let (false, Some(Item::Fn(decl))) = (prefix.is_empty(), decl) {
            return self.call_with_receiver(decl, val, args, span);
        }
        if let Some(answer) = self.accelerable_method(val, &text, args, span)? {
            return Ok(answer);
        }
        let message = format!("a `{}` has no method `{text}`", self.cx.ty_name(val.ty));
        let help = match super::library::known(&text) {
            "" => "the methods of a type are listed in the guide".to_string(),
            function => {
                let params = super::library::params(function).join(", ");
                format!("`{function}` is a function: write `{function}({params})`")
            }
        };
        Err(self.error(Code::MIR0201, name.span, message, help))
    }

    /// Calls a function of the library with a value that is at hand as its first argument.
    fn call_with_receiver(
        &mut self,
        decl: FnDeclId,
        val: Val,
        args: &[Arg],
        span: Span,
    ) -> Lower<Val> {
        // Arrays are lists here.
        let receiver_ty = match self.cx.tys.kind(val.ty) {
            TyKind::Array(t, _) => self.cx.tys.intern(TyKind::List(t)),
            _ => val.ty,
        };
        let f = &self.cx.program.ast[decl];
        let text = self.cx.program.name(f.name.sym).to_string();
        let shown = text.rsplit('_').next().unwrap_or("").to_string();
        let extra = usize::from(text == "__list_sum");
        if f.params.len() != args.len() + 1 + extra {
            let message = format!(
                "`{shown}` gets {} arguments instead of {}",
                args.len(),
                f.params.len() - 1
            );
            return Err(self.error(Code::MIR0211, span, message, "give one for each parameter"));
        }
        let mut inference = Inference::new(self.cx, &f.generics);
        let receiver = Val { ty: receiver_ty, ..val };
        let mut vals = vec![receiver];
        let pattern = inference.pattern(self.cx, f.params[0].ty)?;
        inference.learn(self.cx, pattern, receiver_ty);
        for (arg, param) in args.iter().zip(&f.params[1..]) {
            let pattern = inference.pattern(self.cx, param.ty)?;
            let mut val = match inference.known(self.cx, pattern) {
                Some(t) => self.expr_as(arg.value, t)?,
                None => self.expr(arg.value, None)?,
            };
            // `zip` takes an array too.
            if let (TyKind::List(_), TyKind::Array(t, _)) =
                (self.cx.tys.kind(pattern), self.cx.tys.kind(val.ty))
            {
                val.ty = self.cx.tys.intern(TyKind::List(t));
            }
            inference.learn(self.cx, pattern, val.ty);
            let at = self.expr_span(arg.value);
            let val = match inference.known(self.cx, pattern) {
                Some(t) => self.coerce(val, t, at)?,
                None => val,
            };
            let all: Vec<ExprId> = args.iter().map(|a| a.value).collect();
            vals.push(self.keep(val, &all));
        }
        if extra == 1 {
            let t = self.cx.tys.element(receiver_ty).unwrap_or(ty::ERROR);
            if !self.cx.tys.is_number(t) {
                let message = format!("a `{}` has no sum", self.cx.ty_name(val.ty));
                return Err(self.error(Code::MIR0202, span, message, "sum numbers"));
            }
            vals.push(self.const_val(t, 0));
        }
        let type_args = inference.finish(self, &shown, &f.generics, span)?;
        let resident = vec![None; f.params.len()];
        let key = super::instances::Key { decl, device: self.device, args: type_args, resident };
        let instance = self.cx.instance(key);
        if instance.poisoned {
            return Err(Poisoned);
        }
        let operands: Vec<Value> = vals.into_iter().map(|v| self.look_at(v)).collect();
        self.at(span);
        let ret = self.machine(instance.ret);
        let v = self.b.call(instance.fn_id, ret, &operands);
        Ok(match v {
            Some(v) => self.val(instance.ret, v),
            None => self.unit(),
        })
    }

    /// The length of an array or a list.
    pub(super) fn length(&mut self, val: Val) -> Value {
        match self.cx.fixed_length(val.ty) {
            0 => self.array_len(val.v),
            known => self.i64(known as i64),
        }
    }

    pub(super) fn array_len(&mut self, array: Value) -> Value {
        self.b.value(Op::ArrLen, fixed::I64, &[array], 0)
    }
}
