//! Bodies of kernels: buffers, arrays of the workgroup and of the invocation, the `kernel` object,
//! atomics.

use super::body::{Body, Val};
use super::locals::{Buffer, Local, LocalKind};
use super::place::Step;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, TyList, fixed as ty};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Op, Value};
use magpie_types::{TypeKind, fixed};

/// The kernel whose body is lowered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    /// Whether it is a `gpu fn`: only there shared arrays may be declared.
    pub(super) named: bool,
    /// Whether it is a pass of a frame, where `frame` means something.
    pub(super) frame: bool,
    /// In a `forall` that all invocations of a workgroup go through together: whether this one has
    /// an index. One that has none reads zeros and writes nothing.
    pub(super) inside: Option<Value>,
}

/// Bytes of an array of a workgroup or an invocation at most.
const MAX_MEMORY: u64 = 1 << 20;

/// What an element access in a kernel goes to.
#[derive(Clone, Copy)]
struct Target {
    memory: Value,
    element: Ty,
    local: u32,
}

impl Body<'_, '_, '_> {
    // ----- arrays -----

    pub(super) fn shared(&mut self, name: Ident, t: TypeExprId, span: Span) -> Lower<()> {
        if !self.kernel.is_some_and(|k| k.named) {
            let message = "a shared array is declared outside of a `gpu fn`";
            return Err(self.error(Code::MIR1906, span, message, "declare it in a `gpu fn`"));
        }
        let t = self.resolve(t)?;
        let TyKind::Array(element, n) = self.cx.tys.kind(t) else {
            let message = format!("a shared variable cannot be a `{}`", self.cx.ty_name(t));
            let help = "declare an array of constant size: `shared tile Array<f32, 16>`";
            return Err(self.error(Code::MIR1907, span, message, help));
        };
        if !self.cx.is_element(element) || n == 0 {
            let message = format!("a shared array cannot be a `{}`", self.cx.ty_name(t));
            return Err(self.error(Code::MIR1907, span, message, "use numbers or vectors"));
        }
        let e = self.cx.element_machine(element);
        self.check_memory(e, n, span)?;
        let id = self.cx.intern(TypeKind::SharedArray(e, n as u32));
        let memory = self.b.value(Op::GpuShared, id, &[], 0);
        self.declare_memory(name, t, memory, element, true);
        Ok(())
    }

    /// Arrays in kernels that no device has room for.
    fn check_memory(&mut self, element: magpie_types::TypeId, n: u64, span: Span) -> Lower<()> {
        let bytes = n.saturating_mul(u64::from(self.cx.module.types.stride(element)));
        if bytes <= MAX_MEMORY {
            return Ok(());
        }
        let message = format!("an array of {bytes} bytes in a kernel");
        let help = "use a device-resident buffer for so much";
        Err(self.error(Code::MIR0207, span, message, help))
    }

    fn declare_memory(&mut self, name: Ident, t: Ty, memory: Value, element: Ty, mutable: bool) {
        let element = self.norm(element);
        self.add_local(Local {
            name: name.sym,
            ty: t,
            mutable,
            span: name.span,
            kind: LocalKind::Memory { memory, element },
        });
    }

    /// `let b = buffer` in a kernel: another name for the buffer.
    pub(super) fn alias(&mut self, name: Ident, init: ExprId) -> bool {
        let ExprKind::Name(of) = self.cx.program.ast[init].kind else { return false };
        let Some(id) = self.lookup(of) else { return false };
        let local = self.locals[id as usize].clone();
        let is_buffer = match &local.kind {
            LocalKind::Buffer(buffer) => !buffer.single,
            LocalKind::Buffers(_) | LocalKind::Memory { .. } => true,
            LocalKind::Var(_) | LocalKind::Value(_) | LocalKind::Resident(_) => false,
        };
        if is_buffer {
            self.add_local(Local { name: name.sym, span: name.span, ..local });
        }
        is_buffer
    }

    /// `var t = Array<f32, 4>()` or `var t = [1.0, 2.0]` in a kernel.
    pub(super) fn local_array(
        &mut self,
        binder: &Binder,
        declared: Option<Ty>,
        init: ExprId,
        mutable: bool,
    ) -> Lower<bool> {
        let program = self.cx.program;
        let mut first = None;
        let (t, items): (Ty, &[ExprId]) = match &program.ast[init].kind {
            ExprKind::Call(callee, args) if args.is_empty() => match program.ast[*callee].kind {
                ExprKind::Type(t) => (self.resolve(t)?, &[]),
                _ => return Ok(false),
            },
            ExprKind::List(items) if !items.is_empty() => {
                let element = match declared.map(|t| self.cx.tys.kind(t)) {
                    Some(TyKind::Array(t, _)) => t,
                    _ => {
                        let val = self.expr(items[0], None)?;
                        first = Some(val);
                        val.ty
                    }
                };
                (self.cx.tys.intern(TyKind::Array(element, items.len() as u64)), items)
            }
            _ => return Ok(false),
        };
        let TyKind::Array(element, n) = self.cx.tys.kind(t) else { return Ok(false) };
        let span = binder.name.span;
        if let Some(d) = declared
            && d != t
        {
            return Err(self.mismatch(span, t, d));
        }
        if n == 0 || !self.cx.is_element(element) {
            let message = format!("a kernel cannot have a local `{}`", self.cx.ty_name(t));
            return Err(self.error(
                Code::MIR0207,
                span,
                message,
                "use numbers, and at least one element",
            ));
        }
        let e = self.cx.element_machine(element);
        self.check_memory(e, n, span)?;
        let id = self.cx.intern(TypeKind::LocalArray(e, n as u32));
        let memory = self.b.value(Op::GpuLocal, id, &[], 0);
        for (i, &item) in items.iter().enumerate() {
            let val = match first.take() {
                Some(val) => val,
                None => self.expr_as(item, element)?,
            };
            let i = self.i32(i as i32);
            self.buffer_store(memory, element, i, val);
        }
        self.declare_memory(binder.name, t, memory, element, mutable);
        Ok(true)
    }

    // ----- elements -----

    /// What an expression names, if it is memory of a kernel: a buffer, an array, a field of a
    /// resident struct.
    fn target(&mut self, e: ExprId) -> Option<Target> {
        let program = self.cx.program;
        match program.ast[e].kind {
            ExprKind::Name(name) => {
                let local = self.lookup(name)?;
                match &self.locals[local as usize].kind {
                    LocalKind::Buffer(Buffer { param, element, single: false, .. }) => {
                        Some(Target { memory: *param, element: *element, local })
                    }
                    LocalKind::Memory { memory, element } => {
                        Some(Target { memory: *memory, element: *element, local })
                    }
                    _ => None,
                }
            }
            ExprKind::Member(base, field) => {
                let ExprKind::Name(name) = program.ast[base].kind else { return None };
                let local = self.lookup(name)?;
                let LocalKind::Buffers(buffers) = self.locals[local as usize].kind.clone() else {
                    return None;
                };
                let (n, _) = self.field_of(self.locals[local as usize].ty, field).ok()?;
                let buffer = buffers.iter().find(|b| b.field == Some(n) && !b.single)?;
                Some(Target { memory: buffer.param, element: buffer.element, local })
            }
            _ => None,
        }
    }

    /// A field of a resident struct of collections that is one value.
    pub(super) fn single_field(&mut self, base: ExprId, field: Ident) -> Option<Val> {
        let ExprKind::Name(name) = self.cx.program.ast[base].kind else { return None };
        let local = self.lookup(name)?;
        let LocalKind::Buffers(buffers) = self.locals[local as usize].kind.clone() else {
            return None;
        };
        let (n, _) = self.field_of(self.locals[local as usize].ty, field).ok()?;
        let buffer = buffers.iter().find(|b| b.field == Some(n) && b.single)?;
        let zero = self.i32(0);
        Some(self.buffer_load(buffer.param, buffer.element, zero))
    }

    pub(super) fn buffer_load(&mut self, memory: Value, element: Ty, index: Value) -> Val {
        let id = self.cx.element_machine(element);
        let v = self.b.value(Op::GpuBufferLoad, id, &[memory, index], 0);
        match self.cx.tys.kind(element) {
            TyKind::Atomic(t) => self.val(t, v),
            TyKind::Vector(..) => self.member_value(v, element),
            _ => {
                let t = self.norm(element);
                self.val(t, v)
            }
        }
    }

    /// Stores a whole element.
    fn buffer_store(&mut self, memory: Value, element: Ty, index: Value, new: Val) {
        match self.cx.tys.kind(element) {
            TyKind::Atomic(t) => {
                let id = self.machine(t);
                self.b.value(Op::GpuAtomicExchange, id, &[memory, index, new.v], 0);
            }
            TyKind::Vector(..) => {
                let v = self.as_member(new);
                self.b.effect(Op::GpuBufferStore, &[memory, index, v], 0);
            }
            _ => self.b.effect(Op::GpuBufferStore, &[memory, index, new.v], 0),
        }
    }

    pub(super) fn device_index(
        &mut self,
        base: ExprId,
        index: ExprId,
        span: Span,
    ) -> Lower<Option<Val>> {
        let Some(target) = self.target(base) else { return Ok(None) };
        if let TyKind::Array(_, n) = self.cx.tys.kind(self.locals[target.local as usize].ty) {
            self.check_const_index(index, n, span)?;
        }
        let i = self.index_value(index)?;
        self.at(span);
        Ok(Some(self.buffer_load(target.memory, target.element, i)))
    }

    /// An assignment to an element, or a part of one, of memory of the kernel.
    pub(super) fn device_assign(
        &mut self,
        target: ExprId,
        op: Option<BinaryOp>,
        value: ExprId,
        span: Span,
    ) -> Lower<Option<()>> {
        let program = self.cx.program;
        // From the target to the element.
        let mut parts: Vec<ExprId> = Vec::new();
        let mut at = target;
        let (memory, index) = loop {
            let base = match program.ast[at].kind {
                ExprKind::Index(base, index) => match self.target(base) {
                    Some(memory) => break (memory, index),
                    None => base,
                },
                ExprKind::Member(base, _) | ExprKind::Field(base, _) => base,
                _ => return Ok(None),
            };
            parts.push(at);
            at = base;
        };
        self.check_written(memory.local, span)?;
        if let TyKind::Array(_, n) = self.cx.tys.kind(self.locals[memory.local as usize].ty) {
            self.check_const_index(index, n, span)?;
        }
        let i = self.index_value(index)?;
        let element = match self.cx.tys.kind(memory.element) {
            TyKind::Atomic(t) => t,
            _ => memory.element,
        };
        let element = self.norm(element);
        let mut steps = Vec::new();
        let mut t = element;
        for &part in parts.iter().rev() {
            let Some(step) = self.step_in_element(t, part)? else { return Ok(None) };
            t = step.ty();
            steps.push(step);
        }
        let new = match op {
            None => self.expr_as(value, t)?,
            Some(op) => {
                let mut old = self.buffer_load(memory.memory, memory.element, i);
                for &step in &steps {
                    old = self.read_step(old, step);
                }
                let was = self.in_division;
                self.in_division = matches!(op, BinaryOp::Div | BinaryOp::Rem);
                let rhs = self.expr(value, Some(t));
                self.in_division = was;
                let rhs = rhs?;
                let is_vector = matches!(self.cx.tys.kind(t), TyKind::Vector(..));
                let rhs = if is_vector { rhs } else { self.coerce(rhs, t, span)? };
                self.check_zero(op, t, value, span)?;
                let new = self.apply(op, old, rhs, span)?;
                self.coerce(new, t, span)?
            }
        };
        self.at(span);
        self.store(memory, i, element, &steps, new);
        Ok(Some(()))
    }

    /// The step from a value in a buffer to the part of it that `part` names.
    fn step_in_element(&mut self, t: Ty, part: ExprId) -> Lower<Option<Step>> {
        let span = self.expr_span(part);
        Ok(match (&self.cx.program.ast[part].kind, self.cx.tys.kind(t)) {
            (&ExprKind::Member(_, name), _) => {
                let (n, ty) = self.field_of(t, name)?;
                Some(Step::Field { n, ty })
            }
            (&ExprKind::Index(_, e), TyKind::Array(ty, n)) => {
                self.check_const_index(e, n, span)?;
                let index = self.index_value(e)?;
                Some(Step::Element { index, len: n, ty: self.norm(ty), span })
            }
            (&ExprKind::Field(_, n), TyKind::Tuple(items)) => self.item_step(n.into(), items),
            (&ExprKind::Index(_, e), TyKind::Tuple(items)) => {
                self.known_int(e).and_then(|n| self.item_step(n, items))
            }
            _ => None,
        })
    }

    fn item_step(&mut self, n: i128, items: TyList) -> Option<Step> {
        let n = u32::try_from(n).ok()?;
        let &ty = self.cx.tys.items(items).get(n as usize)?;
        Some(Step::Field { n, ty: self.norm(ty) })
    }

    /// Stores a value to an element, or to a part of it without touching the rest.
    fn store(&mut self, target: Target, index: Value, element: Ty, steps: &[Step], new: Val) {
        if steps.is_empty() {
            self.buffer_store(target.memory, target.element, index, new);
            return;
        }
        let whole = self.cx.element_machine(element);
        let member = self.as_member(new);
        let leaves = self.leaf_values(member);
        self.store_part([target.memory, index], whole, 0, steps, &leaves);
    }

    /// The scalars of a value.
    fn leaf_values(&mut self, v: Value) -> Vec<Value> {
        let id = self.b.ty(v);
        let Some(members) = self.cx.module.types.members(id) else { return vec![v] };
        let mut out = Vec::new();
        for (n, member) in members.into_iter().enumerate() {
            let part = self.b.value(Op::StructGet, member, &[v], n as u64);
            out.extend(self.leaf_values(part));
        }
        out
    }

    /// Only mutable bindings are written.
    fn check_written(&mut self, local: u32, span: Span) -> Lower<()> {
        let local = self.locals[local as usize].clone();
        if local.mutable {
            return Ok(());
        }
        let text = self.cx.program.name(local.name).to_string();
        let message = format!("a kernel writes to `{text}`, which cannot be changed");
        let help = "bind it with `gpu var`; a parameter is written when it is `out`";
        let mut d = Diagnostic::new(Code::MIR0203, span, message).with_help(help);
        if local.span.is_some() {
            d = d.with_secondary(local.span, "declared here");
        }
        self.cx.report(d);
        Err(Poisoned)
    }

    // ----- methods and atomics -----

    pub(super) fn device_method(
        &mut self,
        base: ExprId,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        if let ExprKind::Name(local) = self.cx.program.ast[base].kind
            && let Some(id) = self.lookup(local)
            && let LocalKind::Buffers(buffers) = self.locals[id as usize].kind.clone()
        {
            return self.resident_struct_method(id, &buffers, name, args, span).map(Some);
        }
        let Some(target) = self.target(base) else { return Ok(None) };
        let local = self.locals[target.local as usize].clone();
        match name {
            "length" => {
                let [] = self.plain_args(name, args, span)?;
                if let TyKind::Array(_, n) = self.cx.tys.kind(local.ty) {
                    return Ok(Some(self.const_val(ty::I32, n)));
                }
                let v = self.b.value(Op::GpuBufferLen, fixed::U32, &[target.memory], 0);
                let v = self.b.cast(v, fixed::I32);
                Ok(Some(self.val(ty::I32, v)))
            }
            "element_at" => {
                let [i] = self.plain_args(name, args, span)?;
                let i = self.index_value(i)?;
                Ok(Some(self.buffer_load(target.memory, target.element, i)))
            }
            "set" => {
                let [i, value] = self.plain_args(name, args, span)?;
                self.check_written(target.local, span)?;
                let i = self.index_value(i)?;
                let element = match self.cx.tys.kind(target.element) {
                    TyKind::Atomic(t) => t,
                    _ => target.element,
                };
                let new = self.expr_as(value, element)?;
                self.at(span);
                self.buffer_store(target.memory, target.element, i, new);
                Ok(Some(self.unit()))
            }
            _ => {
                let text = self.cx.program.name(local.name).to_string();
                let message = format!("`{text}.{name}` in a kernel");
                let help = "kernels may use `length()`, `element_at(i)` and `set(i, v)`";
                Err(self.error(Code::MIR1803, span, message, help))
            }
        }
    }

    /// Methods of a resident struct of collections, whose bodies are lowered in place.
    fn resident_struct_method(
        &mut self,
        id: u32,
        buffers: &[Buffer],
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        let local = self.locals[id as usize].clone();
        let TyKind::Struct(n, type_args) = self.cx.tys.kind(local.ty) else { return Err(Poisoned) };
        let method = program.names.find(name).and_then(|name| program.method(n, name));
        let Some(method) = method else {
            let message = format!("there is no method `{name}` for kernels");
            return Err(self.error(Code::MIR1803, span, message, "use the fields of the struct"));
        };
        let f = &program.ast[method];
        let args = self.ordered_args(name, &f.params[1..], args, span)?;
        let subst = self.cx.subst_of(&f.generics, type_args);
        let outer = std::mem::replace(&mut self.subst, subst);
        let mut vals = Vec::new();
        let mut fine = Ok(());
        for (&arg, param) in args.iter().zip(&f.params[1..]) {
            let val = match self.resolve(param.ty) {
                Ok(t) => {
                    let inner = std::mem::replace(&mut self.subst, outer.clone());
                    let val = self.expr_as(arg, t);
                    self.subst = inner;
                    val
                }
                Err(Poisoned) => Err(Poisoned),
            };
            match val {
                Ok(val) => vals.push((param.name, val)),
                Err(Poisoned) => fine = Err(Poisoned),
            }
        }
        let result = match (fine, f.result) {
            (Ok(()), Some(t)) => {
                self.push_scope();
                let kind = LocalKind::Buffers(buffers.to_vec());
                self.add_local(Local { name: f.params[0].name.sym, kind, ..local });
                for (name, val) in vals {
                    self.declare_value(name.sym, name.span, val.ty, val.v);
                }
                let result = self.resolve(t).and_then(|t| {
                    let val = self.block_value(&f.body, t)?;
                    val.ok_or(Poisoned)
                });
                self.pop_scope();
                result
            }
            _ => Err(Poisoned),
        };
        self.subst = outer;
        result
    }

    pub(super) fn atomic(&mut self, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        if self.kernel.is_none() {
            let message = format!("`{name}` is called in host code");
            return Err(self.error(Code::MIR2103, span, message, "call it in a kernel"));
        }
        let operands = if name == "atomic_compare_exchange" { 4 } else { 3 };
        if args.len() != operands {
            let message = format!("`{name}` gets {} arguments instead of {operands}", args.len());
            return Err(self.error(
                Code::MIR0211,
                span,
                message,
                "give the buffer, the index and the operand",
            ));
        }
        let target = self.target(args[0].value);
        let found = target.map(|t| (t, self.cx.tys.kind(t.element)));
        let Some((target, TyKind::Atomic(t))) = found else {
            let message =
                format!("`{name}` needs a buffer with elements of `Atomic<i32>` or `Atomic<u32>`");
            let help = "declare it: `gpu var counts = Array<Atomic<u32>, 16>()`";
            return Err(self.error(Code::MIR2102, span, message, help));
        };
        self.check_written(target.local, span)?;
        let i = self.index_value(args[1].value)?;
        let mut values = vec![target.memory, i];
        for arg in &args[2..] {
            values.push(self.expr_as(arg.value, t)?.v);
        }
        let op = match name {
            "atomic_add" => Op::GpuAtomicAdd,
            "atomic_sub" => Op::GpuAtomicSub,
            "atomic_max" => Op::GpuAtomicMax,
            "atomic_min" => Op::GpuAtomicMin,
            "atomic_and" => Op::GpuAtomicAnd,
            "atomic_or" => Op::GpuAtomicOr,
            "atomic_xor" => Op::GpuAtomicXor,
            "atomic_exchange" => Op::GpuAtomicExchange,
            _ => Op::GpuAtomicCas,
        };
        self.at(span);
        let id = self.machine(t);
        let v = self.b.value(op, id, &values, 0);
        Ok(self.val(t, v))
    }

    /// Names that a branch over a condition makes varying are not told apart here: barriers are
    /// checked on the kernel as a whole.
    pub(super) fn varying_branch(&mut self, _cond: Cond, body: impl FnOnce(&mut Self)) {
        body(self);
    }
}
