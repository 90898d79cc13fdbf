//! Methods of the types of the language.

use super::body::{Body, Val};
use super::generics::Inference;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::Item;
use crate::receivers::changes_collection;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{TypeKind, fixed};

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
        self.at(span);
        let found = match kind {
            TyKind::Array(t, _) | TyKind::List(t) => self.list_method(val, t, &text, args, span)?,
            TyKind::Map(k, v) => self.map_method(val, k, v, &text, args, span)?,
            TyKind::Set(k) => self.set_method(val, k, &text, args, span)?,
            TyKind::Str => self.text_method(val, &text, args, span)?,
            TyKind::Option(t) => self.option_method(val, t, &text, args, span)?,
            TyKind::Result(t, e) => self.result_method(val, t, e, &text, args, span)?,
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
        let message = format!("a `{}` has no method `{text}`", self.cx.ty_name(val.ty));
        let help = "the methods of a type are listed in the guide";
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

    pub(super) fn array_len(&mut self, array: Value) -> Value {
        self.b.value(Op::ArrLen, fixed::I64, &[array], 0)
    }

    fn list_method(
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
                let v = self.array_len(val.v);
                self.val(ty::INT, v)
            }
            "is_empty" => {
                let [] = self.plain_args(name, args, span)?;
                let (len, zero) = (self.array_len(val.v), self.i64(0));
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

    fn map_method(
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
                let result = self.b.declare(id);
                let is = self.contains(val, key);
                let (yes, no, join) = (self.new_block(), self.new_block(), self.new_block());
                self.b.cbr(is.v, yes, no);
                self.enter(yes);
                let step = super::place::Step::Key { key, ty: v, span };
                let found = self.read_step(val, step);
                let some = self.some(found, option);
                self.b.write(result, some.v);
                self.b.br(join);
                self.enter(no);
                let none = self.none(option);
                self.b.write(result, none.v);
                self.b.br(join);
                self.enter(join);
                let v = self.b.read(result);
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

    fn map_length(&mut self, val: Val, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        let [] = self.plain_args(name, args, span)?;
        let len = self.b.value(Op::MapLen, fixed::I64, &[val.v], 0);
        if name == "length" {
            return Ok(self.val(ty::INT, len));
        }
        let zero = self.i64(0);
        let v = self.b.compare(Op::IcmpEq, len, zero);
        Ok(self.val(ty::BOOL, v))
    }

    fn set_method(
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

    fn text_method(
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

    fn option_method(
        &mut self,
        val: Val,
        t: Ty,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        Ok(Some(match name {
            "is_some" | "is_none" => {
                let [] = self.plain_args(name, args, span)?;
                let v = super::clone::enum_is(self, val.v, u32::from(name == "is_some"));
                self.val(ty::BOOL, v)
            }
            "unwrap_or" => {
                let [other] = self.plain_args(name, args, span)?;
                self.unwrap_or(val, 1, t, other)?
            }
            "unwrap" => {
                let [] = self.plain_args(name, args, span)?;
                let is_none = super::clone::enum_is(self, val.v, 0);
                self.panic_if(is_none, "`unwrap` of `None`");
                self.payload(val, 1, 0, t)
            }
            _ => return Ok(None),
        }))
    }

    fn result_method(
        &mut self,
        val: Val,
        t: Ty,
        e: Ty,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        Ok(Some(match name {
            "is_ok" | "is_err" => {
                let [] = self.plain_args(name, args, span)?;
                let v = super::clone::enum_is(self, val.v, u32::from(name == "is_err"));
                self.val(ty::BOOL, v)
            }
            "unwrap_or" => {
                let [other] = self.plain_args(name, args, span)?;
                self.unwrap_or(val, 0, t, other)?
            }
            "unwrap" => {
                let [] = self.plain_args(name, args, span)?;
                let is_err = super::clone::enum_is(self, val.v, 1);
                let (bad, good) = (self.new_block(), self.new_block());
                self.b.cbr(is_err, bad, good);
                self.enter(bad);
                if e == ty::STR {
                    let why = self.payload(val, 1, 0, e);
                    self.b.inst(Op::Panic, fixed::UNIT, &[why.v], 0);
                    self.b.unreachable();
                } else {
                    self.panic("`unwrap` of an `Err`");
                }
                self.enter(good);
                self.payload(val, 0, 0, t)
            }
            _ => return Ok(None),
        }))
    }

    fn unwrap_or(&mut self, val: Val, variant: u32, t: Ty, other: ExprId) -> Lower<Val> {
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

    /// Methods that change a variable, or a part of one.
    fn changing_method(
        &mut self,
        base: ExprId,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        // A value that is no place cannot be changed, and nobody would see it.
        let path = self.path(base)?;
        let kind = self.cx.tys.kind(path.ty);
        let element = self.cx.tys.element(path.ty);
        let is_list = matches!(kind, TyKind::List(_));
        let mut operands: Vec<Val> = Vec::new();
        let mut wanted: Vec<Ty> = Vec::new();
        match (kind, name) {
            (_, "set") if element.is_some() => {
                wanted.extend([ty::INT, element.unwrap_or(ty::ERROR)])
            }
            (_, "sort" | "reverse") if element.is_some() => {}
            (_, "push" | "remove") if is_list => wanted.extend(element),
            (_, "pop" | "clear") if is_list => {}
            (_, "insert") if is_list => wanted.extend([ty::INT, element.unwrap_or(ty::ERROR)]),
            (_, "remove_at") if is_list => wanted.push(ty::INT),
            (TyKind::Map(k, v), "set" | "insert") => wanted.extend([k, v]),
            (TyKind::Map(k, _) | TyKind::Set(k), "remove") => wanted.push(k),
            (TyKind::Set(k), "add") => wanted.push(k),
            (TyKind::Map(..) | TyKind::Set(_), "clear") => {}
            _ => return Ok(None),
        }
        if wanted.len() != args.len() {
            let message =
                format!("`{name}` gets {} arguments instead of {}", args.len(), wanted.len());
            return Err(self.error(Code::MIR0211, span, message, "give one for each parameter"));
        }
        for (arg, &t) in args.iter().zip(&wanted) {
            let val = self.expr_as(arg.value, t)?;
            // The operand may be the variable that is changed.
            let v = self.own(val);
            operands.push(self.val(t, v));
        }
        let path_ty = path.ty;
        let mut result: Option<Val> = None;
        self.at(span);
        self.edit_path(&path, &mut |body, v| {
            let v = body.unique(v);
            let (new, val) = body.change_collection(v, path_ty, name, &operands, span)?;
            result = val;
            Ok(new)
        })?;
        Ok(Some(match result {
            Some(val) => val,
            None => self.unit(),
        }))
    }

    /// Changes a collection that nobody else has; gives it back, with the result of the method.
    fn change_collection(
        &mut self,
        v: Value,
        t: Ty,
        name: &str,
        args: &[Val],
        span: Span,
    ) -> Lower<(Value, Option<Val>)> {
        self.at(span);
        let id = self.machine(t);
        if let (TyKind::Map(..) | TyKind::Set(_), kind) = (self.cx.tys.kind(t), self.cx.tys.kind(t))
        {
            return Ok(match name {
                "clear" => (self.b.value(Op::MapNew, id, &[], 0), None),
                "remove" => {
                    let had = self.b.value(Op::MapContainsKey, fixed::BOOL, &[v, args[0].v], 0);
                    let (yes, join) = (self.new_block(), self.new_block());
                    self.b.cbr(had, yes, join);
                    self.enter(yes);
                    self.b.effect(Op::MapDeleteVoid, &[v, args[0].v], 0);
                    self.b.br(join);
                    self.enter(join);
                    (v, Some(self.val(ty::BOOL, had)))
                }
                _ => {
                    let key = self.own(args[0]);
                    let value = match kind {
                        TyKind::Set(_) => self.b.func().const_bool(true),
                        _ => self.own(args[1]),
                    };
                    self.b.effect(Op::MapSet, &[v, key, value], 0);
                    (v, None)
                }
            });
        }
        let element = self.cx.tys.element(t).unwrap_or(ty::ERROR);
        let val = Val { ty: t, v, owned: false };
        Ok(match name {
            "push" => {
                let item = self.own(args[0]);
                self.b.effect(Op::ArrPush, &[v, item], 0);
                (v, None)
            }
            "pop" => {
                let option = self.cx.tys.intern(TyKind::Option(element));
                let option_id = self.machine(option);
                let item = self.b.value(Op::ArrPop, option_id, &[v], 0);
                (v, Some(self.val(option, item)))
            }
            "clear" => {
                let zero = self.i64(0);
                (self.b.value(Op::ArrNew, id, &[zero], 0), None)
            }
            "set" => {
                let item = self.own(args[1]);
                self.b.effect(Op::ArrSet, &[v, args[0].v, item], 0);
                (v, None)
            }
            "sort" => {
                if self.cx.tys.scalar(element, false).is_none() && element != ty::STR {
                    let message = format!("a `{}` has no order", self.cx.ty_name(element));
                    return Err(self.error(Code::MIR0103, span, message, "sort numbers or texts"));
                }
                self.b.effect(Op::ArrSort, &[v], 0);
                (v, None)
            }
            "reverse" => {
                let len = self.array_len(v);
                let new = self.b.value(Op::ArrNew, id, &[len], 0);
                self.count_to(len, &mut |body, i| {
                    let one = body.i64(1);
                    let last = body.b.same(Op::ISub, &[len, one]);
                    let at = body.b.same(Op::ISub, &[last, i]);
                    let item = body.element(val, at, element, span);
                    let item = body.own(item);
                    body.b.effect(Op::ArrPush, &[new, item], 0);
                });
                (new, None)
            }
            "insert" => {
                // Checked like a slice that ends at the index.
                let (zero, len) = (self.i64(0), self.array_len(v));
                let head = self.b.value(Op::ArrSlice, id, &[v, zero, args[0].v], 0);
                let item = self.own(args[1]);
                self.b.effect(Op::ArrPush, &[head, item], 0);
                self.push_range(val, head, args[0].v, len, element, span);
                (head, None)
            }
            "remove_at" => {
                let (zero, one, len) = (self.i64(0), self.i64(1), self.array_len(v));
                let gone = self.element(val, args[0].v, element, span);
                let gone = self.own(gone);
                let head = self.b.value(Op::ArrSlice, id, &[v, zero, args[0].v], 0);
                let next = self.b.same(Op::IAdd, &[args[0].v, one]);
                self.push_range(val, head, next, len, element, span);
                (head, Some(self.val(element, gone)))
            }
            _ => {
                // `remove`: all elements but the first equal one.
                let len = self.array_len(v);
                let new = self.b.value(Op::ArrNew, id, &[len], 0);
                let found = self.b.declare(fixed::BOOL);
                let no = self.b.func().const_bool(false);
                self.b.write(found, no);
                let wanted = args[0];
                self.count_to(len, &mut |body, i| {
                    let item = body.element(val, i, element, span);
                    let same = body.equal_values(item, wanted);
                    let before = body.b.read(found);
                    let yes = body.b.func().const_bool(true);
                    let not_yet = body.b.same(Op::IXor, &[before, yes]);
                    let drop_it = body.b.same(Op::IAnd, &[same, not_yet]);
                    let (skip, keep, join) = (body.new_block(), body.new_block(), body.new_block());
                    body.b.cbr(drop_it, skip, keep);
                    body.enter(skip);
                    body.b.write(found, yes);
                    body.b.br(join);
                    body.enter(keep);
                    let item = body.own(item);
                    body.b.effect(Op::ArrPush, &[new, item], 0);
                    body.b.br(join);
                    body.enter(join);
                });
                let was = self.b.read(found);
                (new, Some(self.val(ty::BOOL, was)))
            }
        })
    }

    /// Appends elements `from .. to` of one array to another.
    fn push_range(&mut self, of: Val, to: Value, from: Value, end: Value, t: Ty, span: Span) {
        let count = self.b.same(Op::ISub, &[end, from]);
        self.count_to(count, &mut |body, i| {
            let at = body.b.same(Op::IAdd, &[from, i]);
            let item = body.element(of, at, t, span);
            let item = body.own(item);
            body.b.effect(Op::ArrPush, &[to, item], 0);
        });
    }
}
