//! Calls by name: functions, constructors, the library.

use super::body::{Body, Val};
use super::instances::Key;
use super::locals::LocalKind;
use super::types::Subst;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::Item;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value, Variable, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{TypeKind, fixed};

impl Body<'_, '_, '_> {
    pub(super) fn call(
        &mut self,
        callee: ExprId,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        match &program.ast[callee].kind {
            &ExprKind::Name(name) => self.call_name(name, args, want, span),
            &ExprKind::Member(base, name) => {
                if self.is_module(base) {
                    return self.call_name(name.sym, args, want, span);
                }
                if let Some(val) = self.context_call(base, name, args, span)? {
                    return Ok(val);
                }
                if program.name(name.sym) == "launch"
                    && let ExprKind::Call(kernel, kernel_args) = &program.ast[base].kind
                    && let ExprKind::Name(kernel) = program.ast[*kernel].kind
                    && let Some(Item::Fn(decl)) = program.item(kernel)
                    && program.ast[decl].gpu
                {
                    return self.launch(decl, kernel_args, args, span);
                }
                if let ExprKind::Name(enum_name) = program.ast[base].kind
                    && self.lookup(enum_name).is_none()
                    && let Some(Item::Enum(n)) = program.item(enum_name)
                {
                    return self.variant(n, name, args, want, span);
                }
                self.method(base, name, args, want, span)
            }
            &ExprKind::Type(t) => {
                let t = self.resolve(t)?;
                self.construct(t, args, span)
            }
            ExprKind::Error => Err(Poisoned),
            _ => {
                let val = self.expr(callee, None)?;
                self.call_value(val, args, span)
            }
        }
    }

    fn call_name(&mut self, name: Sym, args: &[Arg], want: Option<Ty>, span: Span) -> Lower<Val> {
        if let Some(id) = self.lookup(name) {
            let val = self.local_value(id, span)?;
            return self.call_value(val, args, span);
        }
        let program = self.cx.program;
        match program.item(name) {
            Some(Item::Fn(decl)) => self.call_fn(decl, args, want, span),
            Some(Item::Struct(n)) => {
                let decl = &program.structs[n as usize];
                if decl.generics.is_empty() {
                    let list = self.cx.tys.list(&[]);
                    let t = self.cx.tys.intern(TyKind::Struct(n, list));
                    return self.construct(t, args, span);
                }
                self.construct_generic(n, args, want, span)
            }
            Some(Item::Alias(t)) => {
                let t = self.resolve(t)?;
                self.construct(t, args, span)
            }
            Some(_) => {
                let message = format!("`{}` is no function", program.name(name));
                Err(self.error(Code::MIR0202, span, message, "call a function"))
            }
            None => match self.library_name(name) {
                "" => Err(self.undefined(name, span)),
                text => self.call_library(text, args, want, span),
            },
        }
    }

    // ----- arguments -----

    /// The argument of each parameter, by position or by name.
    fn match_args(
        &mut self,
        what: &str,
        names: &[Sym],
        optional: &[bool],
        args: &[Arg],
        span: Span,
    ) -> Lower<Vec<Option<ExprId>>> {
        let mut found: Vec<Option<ExprId>> = vec![None; names.len()];
        let list = || -> String {
            let names: Vec<&str> = names.iter().map(|&n| self.cx.program.name(n)).collect();
            match names[..] {
                [] => "it takes none".to_string(),
                _ => format!("it takes {}", names.join(", ")),
            }
        };
        for (n, arg) in args.iter().enumerate() {
            let at = match arg.name {
                Some(name) => names.iter().position(|&p| p == name.sym),
                None => (n < names.len()).then_some(n),
            };
            let (message, place) = match (at, arg.name) {
                (Some(at), _) if found[at].is_none() => {
                    found[at] = Some(arg.value);
                    continue;
                }
                (Some(at), _) => {
                    let text = self.cx.program.name(names[at]);
                    (format!("`{what}` gets `{text}` twice"), self.expr_span(arg.value))
                }
                (None, Some(name)) => {
                    let text = self.cx.program.name(name.sym);
                    (format!("`{what}` has no parameter `{text}`"), name.span)
                }
                (None, None) => (
                    format!("`{what}` gets {} arguments instead of {}", args.len(), names.len()),
                    span,
                ),
            };
            let help = list();
            return Err(self.error(Code::MIR0211, place, message, help));
        }
        let missing = (0..names.len()).find(|&n| found[n].is_none() && !optional[n]);
        if let Some(n) = missing {
            let text = self.cx.program.name(names[n]);
            let message = format!("`{what}` needs `{text}`");
            let help = list();
            return Err(self.error(Code::MIR0211, span, message, help));
        }
        Ok(found)
    }

    /// So many arguments without names.
    pub(super) fn plain_args<const N: usize>(
        &mut self,
        what: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<[ExprId; N]> {
        let values: Vec<ExprId> = args.iter().map(|a| a.value).collect();
        let count = values.len();
        <[ExprId; N]>::try_from(values).map_err(|_| {
            let message = format!("`{what}` gets {count} arguments instead of {N}");
            self.error(Code::MIR0211, span, message, "give one for each parameter")
        })
    }

    // ----- functions of the program -----

    pub(super) fn call_fn(
        &mut self,
        id: FnDeclId,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        let decl = &program.ast[id];
        let text = program.name(decl.name.sym).to_string();
        if decl.gpu {
            let message = format!("the kernel `{text}` is called, but not launched");
            let help = format!("write `{text}(…).launch(Dim3(…), Dim3(…))`");
            let code = if self.device { Code::MIR1803 } else { Code::MIR1905 };
            return Err(self.error(code, span, message, help));
        }
        let names: Vec<Sym> = decl.params.iter().map(|p| p.name.sym).collect();
        let optional: Vec<bool> = decl.params.iter().map(|p| p.default.is_some()).collect();
        let found = self.match_args(&text, &names, &optional, args, span)?;
        let exprs: Vec<ExprId> = found
            .iter()
            .zip(&decl.params)
            .filter_map(|(&arg, param)| arg.or(param.default))
            .collect();
        if self.device {
            return self.call_on_device(id, &exprs, want, span);
        }
        let residents: Vec<Option<u32>> = exprs.iter().map(|&e| self.resident_of(e)).collect();
        self.check_resident_args(id, &exprs, &residents)?;
        // Arguments of generic functions say what the type parameters are.
        let mut early: Vec<Option<Val>> = vec![None; exprs.len()];
        let mut type_args = Vec::new();
        if !decl.generics.is_empty() {
            let mut subst: Subst = Vec::new();
            let open: Subst = decl
                .generics
                .iter()
                .map(|g| (g.sym, self.cx.tys.intern(TyKind::Param(g.sym))))
                .collect();
            for (n, param) in decl.params.iter().enumerate() {
                let pattern = self.cx.resolve(param.ty, &open)?;
                let found = match residents[n] {
                    Some(local) => self.locals[local as usize].ty,
                    None => {
                        // What is known already is expected of literals.
                        let expected = self.cx.substitute(pattern, &subst);
                        let expected = (!self.cx.has_param(expected)).then_some(expected);
                        let val = self.expr(exprs[n], expected)?;
                        let val = match expected {
                            Some(t) => {
                                let at = self.expr_span(exprs[n]);
                                self.coerce(val, t, at)?
                            }
                            None => val,
                        };
                        early[n] = Some(self.keep(val, &exprs));
                        val.ty
                    }
                };
                self.cx.unify(pattern, found, &mut subst);
            }
            if let (Some(want), Some(result)) = (want, decl.result) {
                let pattern = self.cx.resolve(result, &open)?;
                self.cx.unify(pattern, want, &mut subst);
            }
            for g in &decl.generics {
                match subst.iter().find(|s| s.0 == g.sym) {
                    Some(&(_, t)) => type_args.push(t),
                    None => {
                        let name = program.name(g.sym);
                        let message = format!("nothing says what `{name}` of `{text}` is");
                        let help = "pass a value whose type shows it";
                        return Err(self.error(Code::MIR0202, span, message, help));
                    }
                }
            }
        }
        let resident: Vec<Option<Ty>> =
            residents.iter().map(|r| r.map(|id| self.locals[id as usize].ty)).collect();
        let instance = self.cx.instance(Key { decl: id, device: false, args: type_args, resident });
        if instance.poisoned {
            return Err(Poisoned);
        }
        let has_out = decl.params.iter().any(|p| p.out);
        let mut operands: Vec<Value> = Vec::with_capacity(exprs.len());
        let mut outs: Vec<(Variable, Value, Ty)> = Vec::new();
        for (n, (&e, param)) in exprs.iter().zip(&decl.params).enumerate() {
            let t = instance.params[n];
            if let Some(local) = residents[n] {
                operands.extend(self.resident_operands(local));
            } else if param.out {
                let (var, found) = self.out_variable(e, &outs)?;
                if found != t {
                    let at = self.expr_span(e);
                    return Err(self.mismatch(at, found, t));
                }
                let cell_ty = self.cx.cell(t);
                let v = self.b.read(var);
                let cell = self.b.value(Op::New, cell_ty, &[v], 0);
                outs.push((var, cell, t));
                operands.push(cell);
            } else {
                let val = match early[n] {
                    Some(val) => {
                        let at = self.expr_span(e);
                        self.coerce(val, t, at)?
                    }
                    None => self.expr_as(e, t)?,
                };
                // A variable that is also given as `out` leaves its value to the cell.
                let val = match has_out && !val.owned && !self.is_copy(val.ty) {
                    true => {
                        let v = self.own(val);
                        self.val(val.ty, v)
                    }
                    false => self.keep(val, &exprs[n + 1..]),
                };
                operands.push(self.look_at(val));
            }
        }
        self.at(span);
        let ret = self.machine(instance.ret);
        let v = self.b.call(instance.fn_id, ret, &operands);
        for (var, cell, t) in outs {
            let new = self.take_cell(cell, t);
            self.b.write(var, new);
        }
        Ok(match v {
            Some(v) => self.val(instance.ret, v),
            None => self.unit(),
        })
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

    // ----- constructors -----

    /// `T(args)` for a type that is known.
    pub(super) fn construct(&mut self, t: Ty, args: &[Arg], span: Span) -> Lower<Val> {
        match self.cx.tys.kind(t) {
            TyKind::Array(element, n) if args.is_empty() => {
                self.no_alloc(span, "an array here")?;
                self.zeros(t, element, n)
            }
            TyKind::List(_) if args.is_empty() => {
                self.no_alloc(span, "a list")?;
                let id = self.machine(t);
                let zero = self.i64(0);
                let v = self.b.value(Op::ArrNew, id, &[zero], 0);
                Ok(self.val(t, v))
            }
            TyKind::List(_) => {
                let [items] = self.plain_args("List", args, span)?;
                self.list_of(items, Some(t), span)
            }
            TyKind::Map(k, _) | TyKind::Set(k) if args.is_empty() => {
                self.no_alloc(span, "a map")?;
                let v = self.new_map(t, k, span)?;
                Ok(self.val(t, v))
            }
            TyKind::Vector(component, n) => self.new_vector(t, component, n, args, span),
            TyKind::Struct(n, list) => {
                let fields = self.cx.fields(n, list);
                let decl = &self.cx.program.structs[n as usize];
                let text = self.cx.program.name(decl.name.sym).to_string();
                let names: Vec<Sym> = fields.iter().map(|f| f.0).collect();
                let found =
                    self.match_args(&text, &names, &vec![false; names.len()], args, span)?;
                let mut vals = Vec::with_capacity(fields.len());
                let exprs: Vec<ExprId> = found.into_iter().flatten().collect();
                for (&e, f) in exprs.iter().zip(fields) {
                    let t = self.norm(f.1);
                    let val = self.expr_as(e, t)?;
                    vals.push(self.keep(val, &exprs));
                }
                self.at(span);
                Ok(self.new_struct(t, &vals))
            }
            TyKind::Error => Err(Poisoned),
            _ => {
                let message = format!("a `{}` is not made like this", self.cx.ty_name(t));
                let help = "write a literal, or the constructor with its arguments";
                Err(self.error(Code::MIR0211, span, message, help))
            }
        }
    }

    /// An array of zeros.
    pub(super) fn zeros(&mut self, t: Ty, element: Ty, n: u64) -> Lower<Val> {
        let zero = self.zero_value(element)?;
        let id = self.machine(t);
        let len = self.i64(n as i64);
        let array = self.b.value(Op::ArrNew, id, &[len], 0);
        self.count_to(len, &mut |body, _| {
            let v = body.own(Val { owned: false, ..zero });
            body.b.effect(Op::ArrPush, &[array, v], 0);
        });
        Ok(self.val(t, array))
    }

    /// The zero of a type: what a new array holds.
    fn zero_value(&mut self, t: Ty) -> Lower<Val> {
        let id = self.machine(t);
        match self.cx.tys.kind(t) {
            TyKind::Str => Ok(self.text("")),
            TyKind::Option(_) => Ok(self.none(t)),
            TyKind::Array(element, n) => self.zeros(t, element, n),
            _ if self.is_copy(t) => {
                let v = self.b.func().zero(id);
                Ok(self.val(t, v))
            }
            _ => {
                let message = format!("`{}` has no zero to fill an array with", self.cx.ty_name(t));
                let span = self.span;
                Err(self.error(Code::MIR0202, span, message, "write the elements: `[a, b]`"))
            }
        }
    }

    /// A generic struct: its arguments say what the type parameters are.
    fn construct_generic(
        &mut self,
        n: u32,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        if let Some(t) = want
            && let TyKind::Struct(m, _) = self.cx.tys.kind(t)
            && m == n
        {
            return self.construct(t, args, span);
        }
        let program = self.cx.program;
        let decl = &program.structs[n as usize];
        let text = program.name(decl.name.sym).to_string();
        let names: Vec<Sym> = decl.fields.iter().map(|f| f.0.sym).collect();
        let found = self.match_args(&text, &names, &vec![false; names.len()], args, span)?;
        let open: Subst = decl
            .generics
            .iter()
            .map(|g| (g.sym, self.cx.tys.intern(TyKind::Param(g.sym))))
            .collect();
        let mut subst = Subst::new();
        let mut vals = Vec::new();
        for (e, f) in found.into_iter().flatten().zip(&decl.fields) {
            let pattern = self.cx.resolve(f.1, &open)?;
            let expected = self.cx.substitute(pattern, &subst);
            let val = match self.cx.has_param(expected) {
                true => self.expr(e, None)?,
                false => self.expr_as(e, expected)?,
            };
            self.cx.unify(pattern, val.ty, &mut subst);
            let all: Vec<ExprId> = args.iter().map(|a| a.value).collect();
            vals.push(self.keep(val, &all));
        }
        let mut type_args = Vec::new();
        for g in &decl.generics {
            match subst.iter().find(|s| s.0 == g.sym) {
                Some(&(_, t)) => type_args.push(t),
                None => {
                    let message =
                        format!("nothing says what `{}` of `{text}` is", program.name(g.sym));
                    let help = format!("write `{text}<…>(…)`");
                    return Err(self.error(Code::MIR0202, span, message, help));
                }
            }
        }
        let list = self.cx.tys.list(&type_args);
        let t = self.cx.tys.intern(TyKind::Struct(n, list));
        Ok(self.new_struct(t, &vals))
    }

    /// `E.V(args)`
    pub(super) fn variant(
        &mut self,
        n: u32,
        name: Ident,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        let decl = &program.enums[n as usize];
        let text = format!("{}.{}", program.name(decl.name.sym), program.name(name.sym));
        let Some(at) = decl.variants.iter().position(|v| v.0.sym == name.sym) else {
            let names: Vec<&str> = decl.variants.iter().map(|v| program.name(v.0.sym)).collect();
            let help = format!("its variants are {}", names.join(", "));
            return Err(self.error(
                Code::MIR0201,
                name.span,
                format!("there is no `{text}`"),
                help,
            ));
        };
        let count = decl.variants[at].1.len();
        if count != args.len() {
            let message = format!("`{text}` gets {} values instead of {count}", args.len());
            return Err(self.error(Code::MIR0211, span, message, "give one for each field"));
        }
        let wanted = match want.map(|t| self.cx.tys.kind(t)) {
            Some(TyKind::Enum(m, list)) if m == n => Some(list),
            Some(TyKind::Option(t)) => match self.cx.tys.kind(t) {
                TyKind::Enum(m, list) if m == n => Some(list),
                _ => None,
            },
            _ => None,
        };
        let mut vals = Vec::new();
        let list = match wanted {
            Some(list) => list,
            None if decl.generics.is_empty() => self.cx.tys.list(&[]),
            None => {
                let open: Subst = decl
                    .generics
                    .iter()
                    .map(|g| (g.sym, self.cx.tys.intern(TyKind::Param(g.sym))))
                    .collect();
                let mut subst = Subst::new();
                for (arg, &f) in args.iter().zip(&decl.variants[at].1) {
                    let pattern = self.cx.resolve(f, &open)?;
                    let val = self.expr(arg.value, None)?;
                    self.cx.unify(pattern, val.ty, &mut subst);
                    let all: Vec<ExprId> = args.iter().map(|a| a.value).collect();
                    vals.push(self.keep(val, &all));
                }
                let mut type_args = Vec::new();
                for g in &decl.generics {
                    let Some(&(_, t)) = subst.iter().find(|s| s.0 == g.sym) else {
                        let message = format!("nothing says what `{}` is", program.name(g.sym));
                        let help = "declare the type of the binding";
                        return Err(self.error(Code::MIR0202, span, message, help));
                    };
                    type_args.push(t);
                }
                self.cx.tys.list(&type_args)
            }
        };
        let t = self.cx.tys.intern(TyKind::Enum(n, list));
        let fields = self.cx.variants(n, list)[at].1.clone();
        if vals.is_empty() {
            let all: Vec<ExprId> = args.iter().map(|a| a.value).collect();
            for (arg, t) in args.iter().zip(fields) {
                let val = self.expr_as(arg.value, t)?;
                vals.push(self.keep(val, &all));
            }
        }
        self.at(span);
        if self.is_value_enum(t) {
            return Ok(self.const_val(t, at as u64));
        }
        self.no_alloc(span, "a value of this enum")?;
        let id = self.machine(t);
        let parts: Vec<Value> = vals.into_iter().map(|v| self.own(v)).collect();
        let v = self.b.value(Op::EnumNew, id, &parts, imm_pair(at as u32, 0));
        Ok(self.val(t, v))
    }

    // ----- the library -----

    fn call_library(
        &mut self,
        name: &'static str,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        if super::library::is_io(name) && self.device {
            let (code, message) = match self.kernel.is_some() {
                true => (Code::MIR1801, format!("`{name}` in a kernel")),
                false => (Code::MIR1803, format!("`{name}` in a function that a kernel calls")),
            };
            let help = "print on the host, after a readback";
            return Err(self.error(code, span, message, help));
        }
        match name {
            "print" | "println" | "eprint" | "eprintln" | "panic" => self.print(name, args, span),
            "Some" => {
                let [e] = self.plain_args(name, args, span)?;
                self.no_alloc(span, "an option")?;
                let inner = match want.map(|t| self.cx.tys.kind(t)) {
                    Some(TyKind::Option(t)) => self.expr_as(e, t)?,
                    _ => self.expr(e, None)?,
                };
                let option = self.cx.tys.intern(TyKind::Option(inner.ty));
                Ok(self.some(inner, option))
            }
            "Ok" | "Err" => self.new_result(name, args, want, span),
            "List" => {
                let [items] = self.plain_args(name, args, span)?;
                self.list_of(items, want, span)
            }
            "gpu_reset_telemetry" => {
                let [] = self.plain_args(name, args, span)?;
                self.on_host(name, span)?;
                self.rt(RtFn::GpuTelemetryReset, fixed::UNIT, &[]);
                Ok(self.unit())
            }
            "gpu_uploads" | "gpu_launches" | "gpu_readbacks" | "gpu_fences" | "gpu_releases" => {
                let [] = self.plain_args(name, args, span)?;
                self.on_host(name, span)?;
                let all =
                    ["gpu_uploads", "gpu_launches", "gpu_readbacks", "gpu_fences", "gpu_releases"];
                let which = all.iter().position(|&n| n == name).unwrap_or_default();
                let which = self.i32(which as i32);
                let v = self.rt_value(RtFn::GpuTelemetry, fixed::I64, &[which]);
                Ok(self.val(ty::INT, v))
            }
            "is_gpu_available" => {
                let [] = self.plain_args(name, args, span)?;
                self.on_host(name, span)?;
                let v = self.rt_value(RtFn::GpuIsAvailable, fixed::BOOL, &[]);
                Ok(self.val(ty::BOOL, v))
            }
            "args" => {
                let [] = self.plain_args(name, args, span)?;
                let t = self.cx.tys.intern(TyKind::List(ty::STR));
                let id = self.machine(t);
                let v = self.rt_value(RtFn::OsArgs, id, &[]);
                Ok(self.val(t, v))
            }
            "__find" => {
                let [s, part, from] = self.plain_args(name, args, span)?;
                let (s, part) = (self.expr_as(s, ty::STR)?, self.expr_as(part, ty::STR)?);
                let from = self.expr_as(from, ty::INT)?;
                let v = self.rt_value(RtFn::StrFind, fixed::I64, &[s.v, part.v, from.v]);
                Ok(self.val(ty::INT, v))
            }
            "__part" => {
                let [s, a, b] = self.plain_args(name, args, span)?;
                let s = self.expr_as(s, ty::STR)?;
                let (a, b) = (self.expr_as(a, ty::INT)?, self.expr_as(b, ty::INT)?);
                let v = self.rt_value(RtFn::StrSlice, fixed::STR, &[s.v, a.v, b.v]);
                Ok(self.val(ty::STR, v))
            }
            "__bytes" => {
                let [s] = self.plain_args(name, args, span)?;
                let s = self.expr_as(s, ty::STR)?;
                let v = self.rt_value(RtFn::StrLen, fixed::I64, &[s.v]);
                Ok(self.val(ty::INT, v))
            }
            "read_bytes" | "read_text" | "write_bytes" | "write_text" => {
                self.file(name, args, span)
            }
            "dot" | "length" | "normalize" | "cross" | "reflect" => {
                self.vector_builtin(name, args, span)
            }
            _ if name.starts_with("atomic_") => self.atomic(name, args, span),
            _ => self.math(name, args, want, span),
        }
    }

    fn on_host(&mut self, name: &str, span: Span) -> Lower<()> {
        if !self.device {
            return Ok(());
        }
        let message = format!("`{name}` runs on the host only");
        Err(self.error(Code::MIR1803, span, message, "call it outside of the kernel"))
    }

    fn print(&mut self, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        let value = match args {
            [] if name.ends_with("ln") => self.text(""),
            _ => {
                let [e] = self.plain_args(name, args, span)?;
                if let Some(id) = self.resident_of(e) {
                    let at = self.expr_span(e);
                    return Err(self.refuse_on_host(self.locals[id as usize].name, at));
                }
                let val = self.expr(e, Some(ty::STR))?;
                if val.ty != ty::STR {
                    if val.ty == ty::ERROR {
                        return Err(Poisoned);
                    }
                    let at = self.expr_span(e);
                    let message =
                        format!("`{name}` takes a `String`, not a `{}`", self.cx.ty_name(val.ty));
                    let help = "write it into a text: `f\"{value}\"`";
                    return Err(self.error(Code::MIR0202, at, message, help));
                }
                val
            }
        };
        self.at(span);
        let f = match name {
            "print" => RtFn::Print,
            "println" => RtFn::Println,
            "eprint" => RtFn::Eprint,
            "eprintln" => RtFn::Eprintln,
            _ => {
                self.b.inst(Op::Panic, fixed::UNIT, &[value.v], 0);
                self.b.unreachable();
                self.begin_dead();
                return Ok(self.unit());
            }
        };
        self.rt(f, fixed::UNIT, &[value.v]);
        Ok(self.unit())
    }

    fn new_result(&mut self, name: &str, args: &[Arg], want: Option<Ty>, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a result")?;
        let [e] = self.plain_args(name, args, span)?;
        let want = want.or(self.returns.ty);
        let Some(TyKind::Result(t, error)) = want.map(|t| self.cx.tys.kind(t)) else {
            let message = format!("nothing says of which `Result` this is the `{name}`");
            let help = "declare the type: `let r Result<int, String> = Ok(1)`";
            return Err(self.error(Code::MIR0202, span, message, help));
        };
        let (part, variant) = if name == "Ok" { (t, 0) } else { (error, 1) };
        let val = self.expr_as(e, part)?;
        let v = self.own(val);
        let result = self.cx.tys.intern(TyKind::Result(t, error));
        let id = self.machine(result);
        let v = self.b.value(Op::EnumNew, id, &[v], variant);
        Ok(self.val(result, v))
    }

    /// A list with the elements of an array or a list.
    fn list_of(&mut self, items: ExprId, want: Option<Ty>, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a list")?;
        let wanted = want.filter(|&t| matches!(self.cx.tys.kind(t), TyKind::List(_)));
        let val = self.expr(items, wanted)?;
        let Some(element) = self.cx.tys.element(val.ty) else {
            let message = format!("a list is not made of a `{}`", self.cx.ty_name(val.ty));
            return Err(self.error(Code::MIR0202, span, message, "write `List([1, 2, 3])`"));
        };
        let t = self.cx.tys.intern(TyKind::List(element));
        Ok(Val { ty: t, ..val })
    }

    fn file(&mut self, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        let reads = name.starts_with("read");
        let bytes = name.ends_with("bytes");
        let list = {
            let byte = self.cx.tys.prim(magpie_types::PrimType::U8);
            self.cx.tys.intern(TyKind::List(byte))
        };
        let content = if bytes { list } else { ty::STR };
        let (f, operands, ok) = if reads {
            let [path] = self.plain_args(name, args, span)?;
            let path = self.expr_as(path, ty::STR)?;
            let f = if bytes { RtFn::FsReadBytes } else { RtFn::FsReadText };
            (f, vec![path.v], content)
        } else {
            let [path, data] = self.plain_args(name, args, span)?;
            let (path, data) = (self.expr_as(path, ty::STR)?, self.expr_as(data, content)?);
            let f = if bytes { RtFn::FsWriteBytes } else { RtFn::FsWriteText };
            (f, vec![path.v, data.v], ty::BOOL)
        };
        let ok_machine = if reads { self.machine(ok) } else { fixed::UNIT };
        let raw = self.cx.intern(TypeKind::Result(ok_machine, fixed::STR));
        let v = self.rt_value(f, raw, &operands);
        let t = self.cx.tys.intern(TyKind::Result(ok, ty::STR));
        if reads {
            return Ok(self.val(t, v));
        }
        // Nothing becomes `true`.
        let id = self.machine(t);
        let result = self.b.declare(id);
        let is_err = super::clone::enum_is(self, v, 1);
        let (bad, good, join) = (self.new_block(), self.new_block(), self.new_block());
        self.b.cbr(is_err, bad, good);
        self.enter(bad);
        let why = self.b.value(Op::EnumPayload, fixed::STR, &[v], imm_pair(1, 0));
        let err = self.b.value(Op::EnumNew, id, &[why], 1);
        self.b.write(result, err);
        self.b.br(join);
        self.enter(good);
        let yes = self.b.func().const_bool(true);
        let fine = self.b.value(Op::EnumNew, id, &[yes], 0);
        self.b.write(result, fine);
        self.b.br(join);
        self.enter(join);
        let v = self.b.read(result);
        Ok(self.val(t, v))
    }

    /// The handles of a device-resident binding as arguments.
    pub(super) fn resident_operands(&mut self, local: u32) -> Vec<Value> {
        match self.locals[local as usize].kind.clone() {
            LocalKind::Resident(parts) => parts.iter().map(|p| self.b.read(p.var)).collect(),
            _ => Vec::new(),
        }
    }
}

impl super::Cx<'_> {
    /// A type with its parameters replaced.
    pub(super) fn substitute(&mut self, t: Ty, subst: &Subst) -> Ty {
        let kind = match self.tys.kind(t) {
            TyKind::Param(name) => {
                return subst.iter().find(|s| s.0 == name).map_or(t, |s| s.1);
            }
            TyKind::Array(t, n) => TyKind::Array(self.substitute(t, subst), n),
            TyKind::List(t) => TyKind::List(self.substitute(t, subst)),
            TyKind::Set(t) => TyKind::Set(self.substitute(t, subst)),
            TyKind::Option(t) => TyKind::Option(self.substitute(t, subst)),
            TyKind::Map(k, v) => TyKind::Map(self.substitute(k, subst), self.substitute(v, subst)),
            TyKind::Result(a, b) => {
                TyKind::Result(self.substitute(a, subst), self.substitute(b, subst))
            }
            TyKind::Tuple(list) => TyKind::Tuple(self.substitute_list(list, subst)),
            TyKind::Struct(n, list) => TyKind::Struct(n, self.substitute_list(list, subst)),
            TyKind::Enum(n, list) => TyKind::Enum(n, self.substitute_list(list, subst)),
            TyKind::Fn(list, r) => {
                TyKind::Fn(self.substitute_list(list, subst), self.substitute(r, subst))
            }
            TyKind::Vector(t, n) => TyKind::Vector(self.substitute(t, subst), n),
            _ => return t,
        };
        self.tys.intern(kind)
    }

    fn substitute_list(&mut self, list: crate::ty::TyList, subst: &Subst) -> crate::ty::TyList {
        let items = self.tys.items(list).to_vec();
        let items: Vec<Ty> = items.into_iter().map(|t| self.substitute(t, subst)).collect();
        self.tys.list(&items)
    }

    /// Whether type parameters are left in a type.
    pub(super) fn has_param(&self, t: Ty) -> bool {
        let any = |list| self.tys.items(list).iter().any(|&t| self.has_param(t));
        match self.tys.kind(t) {
            TyKind::Param(_) => true,
            TyKind::Array(t, _)
            | TyKind::List(t)
            | TyKind::Set(t)
            | TyKind::Option(t)
            | TyKind::Vector(t, _) => self.has_param(t),
            TyKind::Map(a, b) | TyKind::Result(a, b) => self.has_param(a) || self.has_param(b),
            TyKind::Tuple(list) | TyKind::Struct(_, list) | TyKind::Enum(_, list) => any(list),
            TyKind::Fn(list, r) => any(list) || self.has_param(r),
            _ => false,
        }
    }

    /// Finds what the parameters in `pattern` stand for when it is `found`.
    pub(super) fn unify(&mut self, pattern: Ty, found: Ty, subst: &mut Subst) {
        let lists = |cx: &mut Self, a, b, subst: &mut Subst| {
            let (a, b) = (cx.tys.items(a).to_vec(), cx.tys.items(b).to_vec());
            for (p, f) in a.into_iter().zip(b) {
                cx.unify(p, f, subst);
            }
        };
        match (self.tys.kind(pattern), self.tys.kind(found)) {
            (TyKind::Param(name), _) if !subst.iter().any(|s| s.0 == name) => {
                subst.push((name, found));
            }
            (TyKind::List(p), TyKind::List(f) | TyKind::Array(f, _))
            | (TyKind::Array(p, _), TyKind::Array(f, _))
            | (TyKind::Set(p), TyKind::Set(f))
            | (TyKind::Option(p), TyKind::Option(f))
            | (TyKind::Vector(p, _), TyKind::Vector(f, _)) => self.unify(p, f, subst),
            (TyKind::Map(a, b), TyKind::Map(c, d))
            | (TyKind::Result(a, b), TyKind::Result(c, d)) => {
                self.unify(a, c, subst);
                self.unify(b, d, subst);
            }
            (TyKind::Tuple(a), TyKind::Tuple(b)) => lists(self, a, b, subst),
            (TyKind::Struct(n, a), TyKind::Struct(m, b))
            | (TyKind::Enum(n, a), TyKind::Enum(m, b))
                if n == m =>
            {
                lists(self, a, b, subst);
            }
            (TyKind::Fn(a, r), TyKind::Fn(b, s)) => {
                lists(self, a, b, subst);
                self.unify(r, s, subst);
            }
            _ => {}
        }
    }
}
