//! Calls of functions and methods of the program.

use super::body::{Body, Val};
use super::generics::Inference;
use super::instances::{Instance, Key};
use super::locals::LocalKind;
use super::place::Path;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::Item;
use crate::ty::{Ty, TyKind};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value, Variable};

/// What a method is called on.
enum Receiver {
    /// A value, and the expression that it comes from.
    Value(Val, ExprId),
    /// A variable or a part of one, which the method changes.
    Place(Path, ExprId),
}

/// Arguments on their way into a call.
#[derive(Default)]
struct Operands {
    values: Vec<Value>,
    /// Variables that were given as `out`, with the cells that come back.
    outs: Vec<(Variable, Value, Ty)>,
}

impl Body<'_, '_, '_> {
    pub(super) fn call_fn(
        &mut self,
        id: FnDeclId,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        let decl = &program.ast[id];
        if decl.gpu {
            let text = program.name(decl.name.sym);
            let message = format!("the kernel `{text}` is called, but not launched");
            let help = format!("write `{text}(…).launch(Dim3(…), Dim3(…))`");
            let code = if self.device { Code::MIR1803 } else { Code::MIR1905 };
            return Err(self.error(code, span, message, help));
        }
        self.call_with(id, None, args, want, span)
    }

    /// `x.name(args)` on a value of a struct, when it has such a method.
    pub(super) fn method_of_value(
        &mut self,
        owner: u32,
        name: Ident,
        receiver: (Val, ExprId),
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Option<Val>> {
        let Some(id) = self.cx.program.method(owner, name.sym) else { return Ok(None) };
        if self.cx.program.ast[id].params[0].out && !self.device {
            let text = self.cx.program.name(name.sym);
            let message = format!("`{text}` changes its receiver, which is no variable");
            let help = "bind the value to a `var` first";
            return Err(self.error(Code::MIR0214, span, message, help));
        }
        let receiver = Receiver::Value(receiver.0, receiver.1);
        self.call_with(id, Some(receiver), args, want, span).map(Some)
    }

    /// Calls a function, with its first argument at hand if it is a method.
    fn call_with(
        &mut self,
        id: FnDeclId,
        receiver: Option<Receiver>,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        let decl = &program.ast[id];
        let text = program.name(decl.name.sym).to_string();
        let params = &decl.params[usize::from(receiver.is_some())..];
        let given = self.ordered_args(&text, params, args, span)?;
        let mut early: Vec<Option<Val>> = Vec::new();
        let mut exprs: Vec<ExprId> = Vec::new();
        let mut place = None;
        match receiver {
            Some(Receiver::Value(val, e)) => {
                exprs.push(e);
                early.push(Some(val));
            }
            Some(Receiver::Place(path, e)) => {
                exprs.push(e);
                early.push(None);
                place = Some(path);
            }
            None => {}
        }
        exprs.extend(given);
        early.resize(exprs.len(), None);
        if let Some(val) = early.first().copied().flatten() {
            early[0] = Some(self.keep(val, &exprs[1..]));
        }
        let residents: Vec<Option<u32>> = exprs.iter().map(|&e| self.resident_of(e)).collect();
        if !self.device {
            self.check_resident_args(id, &exprs, &residents)?;
        }
        let type_args = match decl.generics[..] {
            [] => Vec::new(),
            _ => {
                let place_ty = place.as_ref().map(|p| p.ty);
                self.infer(id, &exprs, &residents, &mut early, place_ty, want, span)?
            }
        };
        if self.device {
            return self.call_on_device(id, type_args, &exprs, &early, span);
        }
        let resident: Vec<Option<Ty>> =
            residents.iter().map(|r| r.map(|id| self.locals[id as usize].ty)).collect();
        let key = Key { decl: id, device: false, args: type_args, resident };
        let instance = self.cx.instance(key.clone());
        self.cx.note_call(&key, span);
        if instance.poisoned {
            return Err(Poisoned);
        }
        let mut operands = Operands::default();
        for n in 0..exprs.len() {
            match residents[n] {
                Some(local) => {
                    let handles = self.resident_operands(local);
                    operands.values.extend(handles);
                }
                // It is taken out of its place when everything else is evaluated.
                None if n == 0 && place.is_some() => {}
                None => self.operand(&instance, n, &exprs, early[n], &mut operands)?,
            }
        }
        self.at(span);
        let Some(path) = place else { return Ok(self.finish_call(&instance, operands)) };
        let mut result = None;
        self.replace_path(&path, |body, v| {
            let cell = body.new_cell(v, path.ty);
            let mut operands = operands;
            operands.values.insert(0, cell);
            result = Some(body.finish_call(&instance, operands));
            Ok(body.take_cell(cell, path.ty))
        })?;
        result.ok_or(Poisoned)
    }

    /// What the type parameters are, from the arguments and the wanted result.
    #[expect(clippy::too_many_arguments)]
    fn infer(
        &mut self,
        id: FnDeclId,
        exprs: &[ExprId],
        residents: &[Option<u32>],
        early: &mut [Option<Val>],
        receiver: Option<Ty>,
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Vec<Ty>> {
        let decl = &self.cx.program.ast[id];
        let text = self.cx.program.name(decl.name.sym).to_string();
        let mut inference = Inference::new(self.cx, &decl.generics);
        for (n, param) in decl.params.iter().enumerate() {
            let pattern = inference.pattern(self.cx, param.ty)?;
            let found = match (residents[n], early[n]) {
                (Some(local), _) => self.locals[local as usize].ty,
                (None, Some(val)) => val.ty,
                (None, None) if n == 0 && receiver.is_some() => receiver.unwrap_or(pattern),
                (None, None) if param.out => match self.place_type(exprs[n]) {
                    Some(t) => t,
                    None => continue,
                },
                // Made when the other arguments have said of what type it is.
                (None, None) if self.shows_no_type(exprs[n]) => continue,
                (None, None) => {
                    // What is known already is expected of literals.
                    let expected = inference.known(self.cx, pattern);
                    let val = match expected {
                        Some(t) => self.expr_as(exprs[n], t)?,
                        None => self.expr(exprs[n], None)?,
                    };
                    early[n] = Some(self.keep(val, exprs));
                    val.ty
                }
            };
            inference.learn(self.cx, pattern, found);
        }
        if let (Some(want), Some(result)) = (want, decl.result) {
            let pattern = inference.pattern(self.cx, result)?;
            inference.learn(self.cx, pattern, want);
        }
        inference.finish(self, &text, &decl.generics, span)
    }

    /// Whether an expression alone says nothing about type parameters: `None`, `[]`, a variant
    /// without fields of a generic enum.
    fn shows_no_type(&self, e: ExprId) -> bool {
        let program = self.cx.program;
        match &program.ast[e].kind {
            ExprKind::None => true,
            ExprKind::List(items) => items.is_empty(),
            ExprKind::Map(entries) => entries.is_empty(),
            &ExprKind::Member(base, _) => match program.ast[base].kind {
                ExprKind::Name(name) if self.lookup(name).is_none() => {
                    match program.item(name, program.ast[base].span) {
                        Some(Item::Enum(n)) => !program.enums[n as usize].generics.is_empty(),
                        _ => false,
                    }
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Argument `n` of a call on the host.
    fn operand(
        &mut self,
        instance: &Instance,
        n: usize,
        exprs: &[ExprId],
        early: Option<Val>,
        operands: &mut Operands,
    ) -> Lower<()> {
        let decl = &self.cx.program.ast[instance.decl];
        let (e, t) = (exprs[n], instance.params[n]);
        if decl.params[n].out && early.is_none() {
            let (var, found) = self.out_variable(e, &operands.outs)?;
            if found != t {
                let at = self.expr_span(e);
                return Err(self.mismatch(at, found, t));
            }
            // The variable keeps its value until all arguments are evaluated.
            let cell = self.empty_cell(t);
            operands.outs.push((var, cell, t));
            operands.values.push(cell);
            return Ok(());
        }
        let val = match early {
            Some(val) => {
                let at = self.expr_span(e);
                self.coerce(val, t, at)?
            }
            None => self.expr_as(e, t)?,
        };
        // A variable that is also given as `out` leaves its value to the cell.
        let has_out = decl.params.iter().any(|p| p.out);
        let val = match has_out && !val.owned && !self.is_copy(val.ty) {
            true => {
                let v = self.own(val);
                self.val(val.ty, v)
            }
            false => self.keep(val, &exprs[n + 1..]),
        };
        let seen = self.look_at(val);
        operands.values.push(seen);
        Ok(())
    }

    /// The call itself; `out` variables give their values and get new ones.
    fn finish_call(&mut self, instance: &Instance, operands: Operands) -> Val {
        for &(var, cell, _) in &operands.outs {
            let v = self.b.read(var);
            self.b.effect(Op::SetField, &[cell, v], 0);
        }
        let ret = self.machine(instance.ret);
        let v = self.b.call(instance.fn_id, ret, &operands.values);
        for (var, cell, t) in operands.outs {
            let new = self.take_cell(cell, t);
            self.b.write(var, new);
        }
        match v {
            Some(v) => self.val(instance.ret, v),
            None => self.unit(),
        }
    }

    /// The variable that is given for an `out` parameter.
    fn out_variable(
        &mut self,
        e: ExprId,
        before: &[(Variable, Value, Ty)],
    ) -> Lower<(Variable, Ty)> {
        let span = self.expr_span(e);
        let ExprKind::Name(name) = self.cx.program.ast[e].kind else {
            let message = "an `out` argument must be a variable";
            return Err(self.error(Code::MIR0214, span, message, "bind it to a `var` first"));
        };
        if let Some(id) = self.lookup(name) {
            self.check_accumulator(id, span)?;
        }
        let (var, t) = self.changed_variable(name, span)?;
        if before.iter().any(|b| b.0 == var) {
            let message = format!("`{}` is given twice as `out`", self.cx.program.name(name));
            return Err(self.error(Code::MIR0214, span, message, "give two variables"));
        }
        Ok((var, t))
    }

    /// The handles of a device-resident binding as arguments.
    pub(super) fn resident_operands(&mut self, local: u32) -> Vec<Value> {
        match self.locals[local as usize].kind.clone() {
            LocalKind::Resident(parts) => parts.iter().map(|p| self.b.read(p.var)).collect(),
            _ => Vec::new(),
        }
    }

    // ----- receivers -----

    /// Whether an expression names a variable or a part of one.
    pub(super) fn is_place(&self, mut e: ExprId) -> bool {
        loop {
            match self.cx.program.ast[e].kind {
                ExprKind::Member(base, _) | ExprKind::Index(base, _) => e = base,
                ExprKind::Name(name) => return self.lookup(name).is_some(),
                _ => return false,
            }
        }
    }

    /// The type of a variable or a part of one, without reading it.
    pub(super) fn place_type(&mut self, e: ExprId) -> Option<Ty> {
        match self.cx.program.ast[e].kind {
            ExprKind::Name(name) => {
                let local = &self.locals[self.lookup(name)? as usize];
                matches!(local.kind, LocalKind::Var(_) | LocalKind::Value(_)).then_some(local.ty)
            }
            ExprKind::Member(base, name) => {
                let t = self.place_type(base)?;
                let TyKind::Struct(n, args) = self.cx.tys.kind(t) else { return None };
                let fields = self.cx.fields(n, args);
                fields.iter().find(|f| f.0 == name.sym).map(|f| f.1)
            }
            ExprKind::Index(base, _) => {
                let t = self.place_type(base)?;
                match self.cx.tys.kind(t) {
                    TyKind::Array(t, _) | TyKind::List(t) | TyKind::Map(_, t) => Some(t),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `x.name(args)`, when `x` is a place of a struct type with such a method.
    pub(super) fn method_of_place(
        &mut self,
        base: ExprId,
        name: Ident,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Option<Val>> {
        let Some(t) = self.place_type(base) else { return Ok(None) };
        let TyKind::Struct(owner, _) = self.cx.tys.kind(t) else { return Ok(None) };
        let Some(id) = self.cx.program.method(owner, name.sym) else { return Ok(None) };
        let receiver = match self.cx.program.ast[id].params[0].out && !self.device {
            true => {
                if let ExprKind::Name(name) = self.cx.program.ast[base].kind
                    && let Some(local) = self.lookup(name)
                {
                    let at = self.expr_span(base);
                    self.check_accumulator(local, at)?;
                }
                Receiver::Place(self.path(base)?, base)
            }
            false => Receiver::Value(self.expr(base, None)?, base),
        };
        self.call_with(id, Some(receiver), args, want, span).map(Some)
    }
}
