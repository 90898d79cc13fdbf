//! Device-resident bindings in host code: making them, reading them back, and everything that host
//! code may not do with them.

use super::body::{Body, Val};
use super::locals::{Local, LocalKind, Part};
use super::pack::Origin;
use super::{Form, Lower, Poisoned};
use crate::ast::*;
use crate::cost::CostClass;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, TypeKind, fixed};

impl Body<'_, '_, '_> {
    // ----- who is resident -----

    /// The device-resident binding that an expression names.
    pub(super) fn resident_of(&self, e: ExprId) -> Option<u32> {
        match self.cx.program.ast[e].kind {
            ExprKind::Name(name) => {
                let id = self.lookup(name)?;
                matches!(self.locals[id as usize].kind, LocalKind::Resident(_)).then_some(id)
            }
            _ => None,
        }
    }

    /// The device-resident binding of which an expression is a part.
    pub(super) fn resident_root(&self, e: ExprId) -> Option<u32> {
        let mut e = e;
        loop {
            match self.cx.program.ast[e].kind {
                ExprKind::Index(base, _) | ExprKind::Member(base, _) | ExprKind::Field(base, _) => {
                    e = base;
                }
                _ => return self.resident_of(e),
            }
        }
    }

    // ----- making -----

    pub(super) fn gpu_binding(&mut self, binder: &Binder, mutable: bool, span: Span) -> Lower<()> {
        if self.device {
            return Err(self.unsupported(
                span,
                "a device-resident binding in a kernel",
                "use `let` or `var`",
            ));
        }
        let declared = binder.ty.map(|t| self.resolve(t)).transpose()?;
        let declared = declared.map(|t| self.cx.resident_type(t));
        if let Some(t) = declared {
            self.check_accelerable(t, span)?;
        }
        let Some(init) = binder.init else {
            let text = self.cx.program.name(binder.name.sym).to_string();
            let help = "write `= value`";
            return Err(self.error(Code::MIR0202, span, format!("`{text}` has no value"), help));
        };
        if let Some(id) = self.resident_of(init) {
            let at = self.expr_span(init);
            let parts = self.move_out(id, at, span)?;
            let t = self.locals[id as usize].ty;
            if let Some(declared) = declared
                && declared != t
            {
                return Err(self.mismatch(at, t, declared));
            }
            self.declare_resident(binder.name, t, mutable, &parts);
            return Ok(());
        }
        if let Some((t, handle)) = self.reduce_resident(init)? {
            self.declare_resident(binder.name, t, mutable, &[handle]);
            return Ok(());
        }
        if let Some((t, handle)) = self.compute_resident(init)? {
            self.declare_resident(binder.name, t, mutable, &[handle]);
            return Ok(());
        }
        let (t, parts) = self.resident_value(binder.name.sym, init, declared, span)?;
        self.cx.cost(CostClass::Upload, span, Some(t));
        self.declare_resident(binder.name, t, mutable, &parts);
        Ok(())
    }

    /// A host value as the handles of a binding.
    fn resident_value(
        &mut self,
        name: Sym,
        init: ExprId,
        declared: Option<Ty>,
        span: Span,
    ) -> Lower<(Ty, Vec<Value>)> {
        let program = self.cx.program;
        // Zeros need no host array.
        if let ExprKind::Call(callee, args) = &program.ast[init].kind
            && let ExprKind::Type(t) = program.ast[*callee].kind
            && args.is_empty()
        {
            let t = self.resolve(t)?;
            if let TyKind::Array(element, n) = self.cx.tys.kind(t) {
                let t = self.cx.resident_type(t);
                self.check_accelerable(t, span)?;
                let element = self.cx.tys.element(t).unwrap_or(element);
                let buffer = self.cx.buffer_type(element);
                let len = self.i64(n as i64);
                let handle = self.rt_value(RtFn::GpuResidentZeros, buffer, &[len]);
                return Ok((t, vec![handle]));
            }
        }
        self.check_literal_elements(init, declared)?;
        let was = std::mem::replace(&mut self.resident_literals, true);
        let val = self.expr(init, declared);
        self.resident_literals = was;
        let val = val?;
        let t = self.cx.resident_type(val.ty);
        self.check_accelerable(t, span)?;
        let t = match declared {
            Some(d) if d != t => {
                let at = self.expr_span(init);
                return Err(self.mismatch(at, val.ty, d));
            }
            _ => t,
        };
        let parts = self.upload_parts(name, val, t);
        Ok((t, parts))
    }

    /// Reports integer literals that do not fit the elements.
    pub(super) fn check_literal_elements(
        &mut self,
        init: ExprId,
        declared: Option<Ty>,
    ) -> Lower<()> {
        let is_int = match declared.map(|t| self.cx.tys.kind(t)) {
            None => true,
            Some(TyKind::Array(t, _) | TyKind::List(t)) => t == ty::INT || t == ty::I32,
            Some(kind) => matches!(kind, TyKind::Int | TyKind::Prim(PrimType::I32)),
        };
        if !is_int {
            return Ok(());
        }
        let program = self.cx.program;
        match &program.ast[init].kind {
            ExprKind::List(items) => {
                let checks: Vec<Lower<()>> =
                    items.iter().enumerate().map(|(n, &e)| self.check_i32_range(n, e)).collect();
                checks.into_iter().collect()
            }
            ExprKind::Int(_) | ExprKind::Unary(UnaryOp::Neg, _) => self.check_i32_range(0, init),
            ExprKind::Call(callee, args) => match (&program.ast[*callee].kind, &args[..]) {
                (&ExprKind::Name(name), [items]) if program.name(name) == "List" => {
                    self.check_literal_elements(items.value, declared)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn check_accelerable(&mut self, t: Ty, span: Span) -> Lower<()> {
        if self.cx.is_accelerable(t) {
            return Ok(());
        }
        if t == ty::ERROR {
            return Err(Poisoned);
        }
        if let Some(field) = self.cx.array_field(t) {
            let message = format!("a buffer of structs with an array like the field `{field}`");
            let help = "an array in a struct has 1 to 64 numbers, vectors or accelerable structs, and at \
                        most 256 numbers in all: bind a larger one beside the structs";
            return Err(self.unsupported(span, &message, help));
        }
        let name = self.cx.ty_name(t);
        let message = format!(
            "a `{name}` cannot be device-resident: it does not implement the trait `Accelerable`"
        );
        let help = match self.cx.tys.kind(t) {
            TyKind::Struct(..) => {
                "declare the struct with `implements Accelerable`, or bind it on the host"
            }
            _ => {
                "bind it with `let` or `var`: arrays and lists of numbers, vectors and structs that implement the trait can be resident"
            }
        };
        Err(self.error(Code::MIR1601, span, message, help))
    }

    /// The handles of a new binding with a host value.
    fn upload_parts(&mut self, name: Sym, val: Val, t: Ty) -> Vec<Value> {
        let parts = self.cx.parts_of(t);
        let mut handles = Vec::with_capacity(parts.len());
        for (element, field) in parts {
            let part = match (field, self.cx.tys.kind(val.ty)) {
                (Some(n), TyKind::Struct(s, args)) => {
                    let f = self.cx.fields(s, args)[n as usize].1;
                    self.field(val, n, f)
                }
                _ => val,
            };
            let array = self.upload_array(name, part, element);
            let buffer = self.cx.buffer_type(element);
            let make = match handles.is_empty() {
                true => RtFn::GpuResidentNew,
                false => RtFn::GpuResidentPart,
            };
            handles.push(self.rt_value(make, buffer, &[array]));
        }
        handles
    }

    /// A collection, or one value, as the array that is uploaded.
    fn upload_array(&mut self, name: Sym, part: Val, element: Ty) -> Value {
        match self.cx.tys.element(part.ty) {
            Some(from) => {
                // `float` elements are rounded.
                let (from, array) = match (from, element) {
                    (ty::FLOAT, ty::F32) => (ty::FLOAT, part),
                    _ => (element, part),
                };
                self.pack_array(array, from, name)
            }
            None => {
                let v = match (part.ty, element) {
                    (ty::FLOAT, ty::F32) => self.b.cast(part.v, fixed::F32),
                    _ => {
                        let is_whole = element == ty::INT;
                        self.packed(Val { ty: element, ..part }, Origin::Bound { name, is_whole })
                    }
                };
                let packed = self.cx.machine(element, Form::Packed);
                let id = self.cx.intern(TypeKind::Array(packed));
                self.b.value(Op::ArrFrom, id, &[v], 0)
            }
        }
    }

    pub(super) fn declare_resident(
        &mut self,
        name: Ident,
        t: Ty,
        mutable: bool,
        handles: &[Value],
    ) {
        let parts = self.cx.parts_of(t);
        let parts: Vec<Part> = parts
            .into_iter()
            .zip(handles)
            .map(|((element, field), &v)| {
                let id = self.b.ty(v);
                let var = self.b.declare(id);
                self.b.write(var, v);
                Part { element, var, field }
            })
            .collect();
        self.add_local(Local {
            name: name.sym,
            ty: t,
            mutable,
            span: name.span,
            kind: LocalKind::Resident(parts),
        });
    }

    /// Takes the buffers of a binding away from it.
    fn move_out(&mut self, id: u32, at: Span, span: Span) -> Lower<Vec<Value>> {
        self.check_moved(id, at)?;
        let local = self.locals[id as usize].clone();
        self.moved.insert(id, span);
        let LocalKind::Resident(parts) = local.kind else { return Err(Poisoned) };
        let mut handles = Vec::new();
        for part in parts {
            let v = self.b.read(part.var);
            // A parameter is only looked at: the function has no buffer to give away.
            let id = self.b.ty(v);
            handles.push(match self.cx.module.types.kind(id) {
                TypeKind::Ref(_, t) => self.rt_value(RtFn::HandleClone, t, &[v]),
                _ => v,
            });
        }
        Ok(handles)
    }

    // ----- reading back -----

    /// `let h = g`
    pub(super) fn read_back_binding(
        &mut self,
        binder: &Binder,
        declared: Option<Ty>,
        id: u32,
        mutable: bool,
    ) -> Lower<()> {
        let span = binder.name.span;
        let at = binder.init.map_or(span, |e| self.expr_span(e));
        self.at(at);
        let val = self.read_back(id, at)?;
        let val = match declared {
            Some(t) => self.coerce(val, t, at)?,
            None => val,
        };
        let v = self.own(val);
        self.declare(binder.name, val.ty, mutable, v);
        Ok(())
    }

    /// The whole of a binding as a host value.
    pub(super) fn read_back(&mut self, id: u32, span: Span) -> Lower<Val> {
        self.check_moved(id, span)?;
        self.at(span);
        let local = self.locals[id as usize].clone();
        let LocalKind::Resident(parts) = local.kind else { return Err(Poisoned) };
        self.cx.cost(CostClass::Readback, span, Some(local.ty));
        let t = self.cx.read_back_type(local.ty);
        if let [part] = parts[..]
            && part.field.is_none()
        {
            return Ok(self.read_part(local.name, part, t, span));
        }
        let TyKind::Struct(n, args) = self.cx.tys.kind(t) else { return Err(Poisoned) };
        let fields = self.cx.fields(n, args);
        let vals: Vec<Val> = parts
            .iter()
            .zip(fields)
            .map(|(part, f)| self.read_part(local.name, *part, f.1, span))
            .collect();
        Ok(self.new_struct(t, &vals))
    }

    /// All elements of one buffer as a collection, or its only one as a value.
    fn read_part(&mut self, name: Sym, part: Part, t: Ty, span: Span) -> Val {
        let element = part.element;
        let handle = self.b.read(part.var);
        let len = self.rt_value(RtFn::GpuResidentLen, fixed::I64, &[handle]);
        let zero = self.i64(0);
        let array = self.read_range(name, handle, (zero, len), element, span);
        if self.cx.tys.element(t).is_some() {
            return self.val(t, array);
        }
        let list = self.cx.tys.intern(TyKind::List(t));
        let array = Val { ty: list, v: array, owned: false };
        self.element(array, zero, t, span)
    }

    /// Elements of a binding as a host array.
    fn read_range(
        &mut self,
        name: Sym,
        handle: Value,
        (a, b): (Value, Value),
        element: Ty,
        span: Span,
    ) -> Value {
        let host = self.cx.read_back_type(element);
        let packed = self.cx.machine(host, Form::Packed);
        let id = self.cx.intern(TypeKind::Array(packed));
        let place = self.place(span);
        self.at(span);
        let array = self.rt_value(RtFn::GpuResidentRead, id, &[handle, a, b, place]);
        let array = self.unpack_array(array, host, name);
        if host == ty::INT {
            self.rt(RtFn::GpuResidentRestore, fixed::UNIT, &[handle, array, a]);
        }
        array
    }

    // ----- methods -----

    pub(super) fn resident_method(
        &mut self,
        id: u32,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Val> {
        self.check_moved(id, span)?;
        let local = self.locals[id as usize].clone();
        let LocalKind::Resident(parts) = &local.kind else { return Err(Poisoned) };
        let element = self.cx.tys.element(local.ty);
        match (name, element) {
            ("length", Some(_)) => {
                let [] = self.plain_args(name, args, span)?;
                if let TyKind::Array(_, n) = self.cx.tys.kind(local.ty) {
                    return Ok(self.const_val(ty::INT, n));
                }
                let handle = self.b.read(parts[0].var);
                let v = self.rt_value(RtFn::GpuResidentLen, fixed::I64, &[handle]);
                Ok(self.val(ty::INT, v))
            }
            ("slice", Some(element)) => {
                let [range] = self.plain_args(name, args, span)?;
                self.resident_slice(&local, parts[0], element, range, span)
            }
            ("reduce", Some(_)) => {
                let help = "bind the result: `let s = …` reads it back, `gpu let s = …` keeps it";
                Err(self.error(
                    Code::MIR1606,
                    span,
                    "a reduction stands in an expression of the host",
                    help,
                ))
            }
            _ => Err(self.refuse_method(local.name, name, span)),
        }
    }

    fn resident_slice(
        &mut self,
        local: &Local,
        part: Part,
        element: Ty,
        range: ExprId,
        span: Span,
    ) -> Lower<Val> {
        let ends = self.slice_ends(range, span)?;
        let len = match self.cx.tys.kind(local.ty) {
            TyKind::Array(_, n) => Some(i128::from(n)),
            _ => None,
        };
        let why = match (ends.known_start, ends.known_end, len) {
            (Some(a), _, _) if a < 0 => Some(format!("the slice starts at {a}")),
            (Some(a), Some(b), _) if a > b => {
                Some(format!("the slice starts at {a} and ends before it, at {b}"))
            }
            (_, Some(b), Some(n)) if b > n => {
                Some(format!("the slice ends at {b}, but there are {n} elements"))
            }
            _ => None,
        };
        if let Some(why) = why {
            return Err(self.error(
                Code::MIR2002,
                span,
                why,
                "slice inside the buffer: `g.slice(a..b)`",
            ));
        }
        let known = ends.known_len();
        let sliced = known.map(|n| self.cx.tys.intern(TyKind::Array(element, n)));
        self.cx.cost(CostClass::Readback, span, sliced);
        let handle = self.b.read(part.var);
        let len = self.rt_value(RtFn::GpuResidentLen, fixed::I64, &[handle]);
        self.at(span);
        self.check_slice("slice", [ends.start, ends.end, len]);
        let array = self.read_range(local.name, handle, (ends.start, ends.end), part.element, span);
        let host = self.cx.read_back_type(element);
        let t = match known {
            Some(n) => self.cx.tys.intern(TyKind::Array(host, n)),
            None => self.cx.tys.intern(TyKind::List(host)),
        };
        Ok(self.val(t, array))
    }

    // ----- assignment -----

    /// `g = value`
    pub(super) fn assign_resident(
        &mut self,
        id: u32,
        op: Option<BinaryOp>,
        value: ExprId,
        span: Span,
    ) -> Lower<()> {
        let local = self.locals[id as usize].clone();
        let text = self.cx.program.name(local.name).to_string();
        if !local.mutable {
            let message = format!("`{text}` cannot be assigned: it is a `gpu let`");
            self.cx.report(
                Diagnostic::new(Code::MIR0203, span, message)
                    .with_secondary(local.span, "bound here")
                    .with_help("bind it with `gpu var`"),
            );
            return Err(Poisoned);
        }
        if op.is_some() {
            return Err(self.mixed_residency(local.name, span));
        }
        let LocalKind::Resident(parts) = &local.kind else { return Err(Poisoned) };
        if let Some(other) = self.resident_of(value) {
            let at = self.expr_span(value);
            let t = self.locals[other as usize].ty;
            if t != local.ty {
                return Err(self.mismatch(at, t, local.ty));
            }
            let handles = self.move_out(other, at, span)?;
            for (part, v) in parts.iter().zip(handles) {
                let old = self.b.read(part.var);
                if self.b.ty(old) == self.b.ty(v) {
                    self.b.write(part.var, v);
                } else {
                    let help = "assign a host value, or bind a new name";
                    return Err(self.unsupported(span, "moving a buffer into a parameter", help));
                }
            }
            self.moved.remove(&id);
            return Ok(());
        }
        let computed = match self.reduce_resident(value)? {
            Some(reduced) => Some(reduced),
            None => self.compute_resident(value)?,
        };
        if let Some((t, handle)) = computed {
            if t != local.ty {
                let at = self.expr_span(value);
                return Err(self.mismatch(at, t, local.ty));
            }
            self.b.write(parts[0].var, handle);
            self.moved.remove(&id);
            return Ok(());
        }
        self.check_moved(id, span)?;
        self.check_literal_elements(value, Some(local.ty))?;
        let was = std::mem::replace(&mut self.resident_literals, true);
        let val = self.expr(value, Some(local.ty));
        self.resident_literals = was;
        let val = val?;
        let at = self.expr_span(value);
        let t = self.cx.resident_type(val.ty);
        let same = t == local.ty
            || match (self.cx.tys.kind(t), self.cx.tys.kind(local.ty)) {
                (TyKind::Array(a, n), TyKind::Array(b, m)) => {
                    n == m && self.cx.read_back_type(b) == a
                }
                _ => false,
            };
        if !same {
            return Err(self.mismatch(at, val.ty, local.ty));
        }
        self.cx.cost(CostClass::Upload, span, Some(local.ty));
        for part in parts.clone() {
            let value = match (part.field, self.cx.tys.kind(val.ty)) {
                (Some(n), TyKind::Struct(s, args)) => {
                    let f = self.cx.fields(s, args)[n as usize].1;
                    self.field(val, n, f)
                }
                _ => val,
            };
            let element = self.cx.read_back_type(part.element);
            let array = self.upload_array(local.name, value, element);
            let handle = self.b.read(part.var);
            let place = self.place(span);
            self.rt(RtFn::GpuResidentAssign, fixed::UNIT, &[handle, array, place]);
        }
        Ok(())
    }

    // ----- arguments -----
}

impl super::Cx<'_> {
    /// Whether two types are one on devices.
    pub(super) fn same_on_device(&mut self, a: Ty, b: Ty) -> bool {
        self.device_type(a) == self.device_type(b)
    }
}
