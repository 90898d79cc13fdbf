//! Constructors: structs, variants of enums, collections of a named type.

use super::body::{Body, Val};
use super::generics::Inference;
use super::instances::Key;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    /// `T(args)` for a type that is known.
    pub(super) fn construct(&mut self, t: Ty, args: &[Arg], span: Span) -> Lower<Val> {
        let t = self.norm(t);
        self.refuse_resident_args(args)?;
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
                Ok(self.checked_struct(t, &vals))
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
        if self.is_copy(element) && !matches!(self.cx.tys.kind(element), TyKind::Option(_)) {
            let array = self.rt_value(RtFn::ArrZeroed, id, &[len]);
            return Ok(self.val(t, array));
        }
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
    pub(super) fn construct_generic(
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
        self.refuse_resident_args(args)?;
        let mut inference = Inference::new(self.cx, &decl.generics);
        let mut vals = Vec::new();
        let all: Vec<ExprId> = args.iter().map(|a| a.value).collect();
        for (e, f) in found.into_iter().flatten().zip(&decl.fields) {
            let pattern = inference.pattern(self.cx, f.1)?;
            let val = match inference.known(self.cx, pattern) {
                Some(t) => self.expr_as(e, t)?,
                None => self.expr(e, None)?,
            };
            inference.learn(self.cx, pattern, val.ty);
            vals.push(self.keep(val, &all));
        }
        let type_args = inference.finish(self, &text, &decl.generics, span)?;
        let list = self.cx.tys.list(&type_args);
        let t = self.cx.tys.intern(TyKind::Struct(n, list));
        Ok(self.checked_struct(t, &vals))
    }

    /// A struct of its members. A struct of the library may have a method `__check`, which ends the
    /// program when the members do not fit together.
    fn checked_struct(&mut self, t: Ty, vals: &[Val]) -> Val {
        let val = self.new_struct(t, vals);
        let program = self.cx.program;
        let check = match self.cx.tys.kind(t) {
            TyKind::Struct(n, args) if !self.device => program
                .names
                .find("__check")
                .and_then(|name| program.method(n, name))
                .map(|decl| (decl, self.cx.tys.items(args).to_vec())),
            _ => None,
        };
        if let Some((decl, args)) = check {
            let key = Key { decl, device: false, args, resident: vec![None] };
            let instance = self.cx.instance(key);
            let seen = self.look_at(val);
            self.b.call(instance.fn_id, fixed::UNIT, &[seen]);
        }
        val
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
        self.check_names(&text, args)?;
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
        self.refuse_resident_args(args)?;
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
                let mut inference = Inference::new(self.cx, &decl.generics);
                for (arg, &f) in args.iter().zip(&decl.variants[at].1) {
                    let pattern = inference.pattern(self.cx, f)?;
                    let val = self.expr(arg.value, None)?;
                    inference.learn(self.cx, pattern, val.ty);
                    let all: Vec<ExprId> = args.iter().map(|a| a.value).collect();
                    vals.push(self.keep(val, &all));
                }
                let type_args = inference.finish(self, &text, &decl.generics, span)?;
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
        if self.cx.is_plain_enum(t) {
            return Ok(self.const_val(t, at as u64));
        }
        self.no_alloc(span, "a value of this enum")?;
        let id = self.machine(t);
        if self.is_copy(t) {
            let parts = self.cx.enum_parts(n, list);
            let mut members: Vec<Value> =
                parts.types.iter().map(|&ty| self.b.func().zero(ty)).collect();
            members[0] = self.i32(at as i32);
            for (val, &member) in vals.iter().zip(&parts.members[at]) {
                members[member as usize] = val.v;
            }
            let v = self.b.value(Op::StructNew, id, &members, 0);
            return Ok(self.val(t, v));
        }
        let parts: Vec<Value> = vals.into_iter().map(|v| self.own(v)).collect();
        let v = self.b.value(Op::EnumNew, id, &parts, imm_pair(at as u32, 0));
        Ok(self.val(t, v))
    }
}
