//! Parts of variables: finding and reading them.
//!
//! A path is a variable and steps into it.

use super::body::{Body, Val};
use super::locals::LocalKind;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value, Variable};
use magpie_types::{PrimType, fixed};

/// A step from a value to a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// An element of an array or a list, by an `i64`; of `len` elements, 0 when that is not known.
    Element { index: Value, len: u64, ty: Ty, span: Span },
    /// The value of a key of a map.
    Key { key: Val, ty: Ty, span: Span },
    /// A field of a struct, a component of a vector.
    Field { n: u32, ty: Ty },
}

impl Step {
    pub(super) fn ty(self) -> Ty {
        match self {
            Step::Element { ty, .. } | Step::Key { ty, .. } | Step::Field { ty, .. } => ty,
        }
    }
}

/// A part of a variable.
pub(super) struct Path {
    pub(super) root: Variable,
    pub(super) root_ty: Ty,
    pub(super) steps: Vec<Step>,
    pub(super) ty: Ty,
}

impl Body<'_, '_, '_> {
    /// The path of an expression that may be changed.
    pub(super) fn path(&mut self, e: ExprId) -> Lower<Path> {
        let program = self.cx.program;
        let span = self.expr_span(e);
        match &program.ast[e].kind {
            &ExprKind::Name(name) => {
                let (root, root_ty) = self.changed_variable(name, span)?;
                Ok(Path { root, root_ty, steps: Vec::new(), ty: root_ty })
            }
            &ExprKind::Index(base, index) => {
                let mut path = self.path(base)?;
                let step = self.index_step(path.ty, index, span)?;
                path.ty = step.ty();
                path.steps.push(step);
                Ok(path)
            }
            &ExprKind::Member(base, name) => {
                let mut path = self.path(base)?;
                let (n, t) = self.field_of(path.ty, name)?;
                path.steps.push(Step::Field { n, ty: t });
                path.ty = t;
                Ok(path)
            }
            &ExprKind::Field(base, n) => {
                let mut path = self.path(base)?;
                let t = self.tuple_item_type(path.ty, n, span)?;
                path.steps.push(Step::Field { n, ty: t });
                path.ty = t;
                Ok(path)
            }
            ExprKind::Error => Err(Poisoned),
            _ => {
                let help = "bind the value to a `var` and change that";
                Err(self.error(Code::MIR0203, span, "this value cannot be changed", help))
            }
        }
    }

    /// The variable of a name that may be changed.
    pub(super) fn changed_variable(&mut self, name: Sym, span: Span) -> Lower<(Variable, Ty)> {
        let text = self.cx.program.name(name).to_string();
        let Some(id) = self.lookup(name) else {
            if self.cx.constant(name, span).is_some() {
                let message = format!("`{text}` is a constant");
                return Err(self.error(Code::MIR0203, span, message, "use a `var`"));
            }
            return Err(self.undefined(name, span));
        };
        let local = self.locals[id as usize].clone();
        match local.kind {
            LocalKind::Var(var) if local.mutable => Ok((var, local.ty)),
            LocalKind::Resident(_) => Err(self.cross_read(name, span)),
            // Perhaps it would be a `var`.
            LocalKind::Value(_) if local.ty == ty::ERROR => Err(Poisoned),
            LocalKind::Var(_) | LocalKind::Value(_) => {
                let message = format!("`{text}` cannot be changed: it is no `var`");
                let mut d = magpie_diag::Diagnostic::new(Code::MIR0203, span, message)
                    .with_help("declare it with `var`, or a parameter with `out`");
                if local.span.is_some() {
                    d = d.with_secondary(local.span, "declared here");
                }
                self.cx.report(d);
                Err(Poisoned)
            }
            LocalKind::Buffer(_) | LocalKind::Buffers(_) | LocalKind::Memory { .. } => {
                let message = format!("the whole of `{text}` cannot be changed in a kernel");
                Err(self.error(Code::MIR0202, span, message, "assign its elements"))
            }
        }
    }

    pub(super) fn undefined(&mut self, name: Sym, span: Span) -> Poisoned {
        let text = self.cx.program.name(name).to_string();
        let mut known: Vec<&str> = Vec::new();
        if self.cx.diagnostics.len() < 50 {
            known.extend(self.locals.iter().map(|l| self.cx.program.name(l.name)));
            let items = self.cx.program.scope(span).map(|scope| scope.items.keys());
            known.extend(items.into_iter().flatten().map(|&s| self.cx.program.name(s)));
            known.sort_unstable();
        }
        let similar = || magpie_diag::closest(&text, known.iter().copied());
        let help = match super::types::use_of_type(&text) {
            Some(help) => help,
            None => match similar() {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "declare it, or correct its spelling".to_string(),
            },
        };
        self.error(Code::MIR0201, span, format!("there is no `{text}` here"), help)
    }

    /// An index into a value of a type.
    fn index_step(&mut self, base: Ty, index: ExprId, span: Span) -> Lower<Step> {
        match self.cx.tys.kind(base) {
            TyKind::Array(t, n) => {
                self.check_const_index(index, n, span)?;
                let index = self.index_value(index)?;
                Ok(Step::Element { index, len: self.cx.fixed_length(base), ty: t, span })
            }
            TyKind::List(t) => {
                let index = self.index_value(index)?;
                Ok(Step::Element { index, len: 0, ty: t, span })
            }
            TyKind::Map(k, v) => {
                let key = self.expr_as(index, k)?;
                Ok(Step::Key { key, ty: v, span })
            }
            TyKind::Tuple(_) => {
                let n = self.tuple_index(index)?;
                let ty = self.tuple_item_type(base, n, span)?;
                Ok(Step::Field { n, ty })
            }
            TyKind::Error => Err(Poisoned),
            _ => {
                let message = format!("a `{}` has no elements to assign", self.cx.ty_name(base));
                Err(self.error(Code::MIR0202, span, message, "index an array, a list or a map"))
            }
        }
    }

    pub(super) fn check_const_index(&mut self, index: ExprId, len: u64, span: Span) -> Lower<()> {
        let known = self.known_int(index);
        match known {
            Some(n) if n < 0 || n >= i128::from(len) => {
                let message =
                    format!("index {n} is outside of the array, which has {len} elements");
                let help = match len {
                    0 => "an empty array has no elements".to_string(),
                    _ => format!("use an index from 0 to {}", len - 1),
                };
                Err(self.error(Code::MIR0205, span, message, help))
            }
            _ => Ok(()),
        }
    }

    /// An index: an `i64` on the host, any integer in kernels.
    pub(super) fn index_value(&mut self, index: ExprId) -> Lower<Value> {
        let val = self.expr(index, None)?;
        if !self.cx.tys.is_int(val.ty) {
            let span = self.expr_span(index);
            return Err(self.mismatch(span, val.ty, ty::INT));
        }
        let i = self.as_index(val);
        let Some(inside) = self.kernel.and_then(|kernel| kernel.inside) else { return Ok(i) };
        // An index that no array has.
        let id = self.b.ty(i);
        let none = self.b.const_bits(id, u64::MAX);
        Ok(self.b.value(Op::Select, id, &[inside, i, none], 0))
    }

    pub(super) fn as_index(&mut self, val: Val) -> Value {
        if !self.device {
            return self.b.cast(val.v, fixed::I64);
        }
        match self.cx.tys.scalar(val.ty, true) {
            Some(p) if p.bit_width() >= 32 => val.v,
            _ => self.b.cast(val.v, fixed::I32),
        }
    }

    /// Position and type of a field or component.
    pub(super) fn field_of(&mut self, base: Ty, name: Ident) -> Lower<(u32, Ty)> {
        let text = self.cx.program.name(name.sym).to_string();
        match self.cx.tys.kind(base) {
            TyKind::Struct(n, args) => {
                let fields = self.cx.fields(n, args);
                if let Some(at) = fields.iter().position(|f| f.0 == name.sym) {
                    return Ok((at as u32, self.norm(fields[at].1)));
                }
                let names: Vec<&str> = fields.iter().map(|f| self.cx.program.name(f.0)).collect();
                let help = format!("its fields are {}", names.join(", "));
                let message = format!("`{}` has no field `{text}`", self.cx.ty_name(base));
                Err(self.error(Code::MIR0201, name.span, message, help))
            }
            TyKind::Vector(t, n) => {
                let at = ["x", "y", "z", "w"].iter().position(|&c| c == text);
                match at {
                    Some(at) if at < n as usize => Ok((at as u32, t)),
                    _ => {
                        let message =
                            format!("`{}` has no component `{text}`", self.cx.ty_name(base));
                        let names = ["x", "y", "z", "w"][..n as usize].join(", ");
                        let help = format!("its components are {names}");
                        Err(self.error(Code::MIR0201, name.span, message, help))
                    }
                }
            }
            TyKind::Error => Err(Poisoned),
            _ => {
                let message = format!("a `{}` has no field `{text}`", self.cx.ty_name(base));
                let help = "fields belong to structs and vectors";
                Err(self.error(Code::MIR0201, name.span, message, help))
            }
        }
    }

    // ----- reading -----

    pub(super) fn read_path(&mut self, path: &Path) -> Val {
        let v = self.b.read(path.root);
        let mut val = Val { ty: path.root_ty, v, owned: false };
        for &step in &path.steps {
            val = self.read_step(val, step);
        }
        val
    }

    pub(super) fn read_step(&mut self, val: Val, step: Step) -> Val {
        match step {
            Step::Element { index, len, ty, span } => self.element_of(val, index, len, ty, span),
            Step::Key { key, ty, span } => {
                self.at(span);
                let (seen, key) = (self.look_at(val), key.v);
                self.part(Op::MapGetRef, &[seen, key], 0, ty)
            }
            Step::Field { n, ty } => self.field(val, n, ty),
        }
    }

    /// What an op gives of a part: a copy, or a view.
    fn part(&mut self, op: Op, args: &[Value], imm: u64, t: Ty) -> Val {
        let id = self.machine(t);
        if self.is_copy(t) {
            let v = self.b.value(op, id, args, imm);
            return self.val(t, v);
        }
        let view = self.cx.view(id);
        let v = self.b.value(op, view, args, imm);
        Val { ty: t, v, owned: false }
    }

    pub(super) fn element(&mut self, array: Val, index: Value, t: Ty, span: Span) -> Val {
        self.element_of(array, index, self.cx.fixed_length(array.ty), t, span)
    }

    /// An element of an array of `len` elements; 0 says that their number is not known.
    fn element_of(&mut self, array: Val, index: Value, len: u64, t: Ty, span: Span) -> Val {
        self.at(span);
        if self.device {
            return self.inline_element(array, index, t);
        }
        self.part(Op::ArrGet, &[array.v, index], len, t)
    }

    /// A field of a struct, a component of a vector, an item of a tuple.
    pub(super) fn field(&mut self, val: Val, n: u32, t: Ty) -> Val {
        if self.device {
            return self.device_field(val, n, t);
        }
        let id = self.b.ty(val.v);
        if self.cx.module.types.is_aggregate(id) {
            let member = self.machine(t);
            let v = self.b.value(Op::StructGet, member, &[val.v], n.into());
            return self.val(t, v);
        }
        self.part(Op::GetField, &[val.v], n.into(), t)
    }

    fn device_field(&mut self, val: Val, n: u32, t: Ty) -> Val {
        if let TyKind::Vector(c, _) = self.cx.tys.kind(val.ty) {
            let id = self.machine(c);
            let v = self.b.value(Op::VecExtract, id, &[val.v], n.into());
            return self.val(c, v);
        }
        let member = self.cx.member_machine(t);
        let v = self.b.value(Op::StructGet, member, &[val.v], n.into());
        self.member_value(v, t)
    }

    /// A member of a struct as a value of kernels.
    pub(super) fn member_value(&mut self, v: Value, t: Ty) -> Val {
        match self.cx.tys.kind(t) {
            TyKind::Bool => {
                let zero = self.b.func().zero(fixed::U32);
                let v = self.b.compare(Op::IcmpNe, v, zero);
                self.val(t, v)
            }
            TyKind::Vector(c, n) => {
                let component = self.machine(c);
                let parts: Vec<Value> = (0..n)
                    .map(|i| self.b.value(Op::StructGet, component, &[v], i.into()))
                    .collect();
                let id = self.machine(t);
                let v = self.b.value(Op::VecNew, id, &parts, 0);
                self.val(t, v)
            }
            _ => self.val(t, v),
        }
    }

    /// A value of kernels as a member of a struct.
    pub(super) fn as_member(&mut self, val: Val) -> Value {
        match self.cx.tys.kind(val.ty) {
            TyKind::Bool => self.b.cast(val.v, fixed::U32),
            TyKind::Vector(c, n) => {
                let component = self.machine(c);
                let mut parts: Vec<Value> = (0..n)
                    .map(|i| self.b.value(Op::VecExtract, component, &[val.v], i.into()))
                    .collect();
                if n == 3 {
                    parts.push(self.b.func().zero(component));
                }
                let id = self.cx.machine(val.ty, super::Form::Packed);
                self.b.value(Op::StructNew, id, &parts, 0)
            }
            _ => val.v,
        }
    }

    /// The scalar type of a value of the program.
    pub(super) fn scalar(&self, t: Ty) -> Option<PrimType> {
        self.cx.tys.scalar(t, self.device)
    }
}
