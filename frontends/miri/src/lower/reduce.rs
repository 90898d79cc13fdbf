//! `g.reduce(init, fold)` on the device.
//!
//! Workgroups go through the elements, each folds its part to one value in shared memory, and one
//! more workgroup folds these. How many there are and who folds what with whom depends on nothing
//! but the number of elements, so that every device gives the same result.

use super::body::{Body, Val};
use super::locals::LocalKind;
use super::pack::Origin;
use super::{Cx, Form, Helper, Lower, Poisoned};
use crate::ast::*;
use crate::cost::CostClass;
use crate::ty::Ty;
use magpie_diag::{Code, Span};
use magpie_mpir::{Builder, FnId, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, TypeKind, fixed};

/// Invocations of a workgroup.
const WIDTH: u32 = 256;
/// Elements that are worth another workgroup.
const PART: u32 = 16 * WIDTH;
/// Workgroups at most: one more folds their results, a few for each of its invocations.
const MAX_PARTS: u32 = 4 * WIDTH;

/// A fold that devices do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fold {
    Add,
    Mul,
    Min,
    Max,
}

impl Body<'_, '_, '_> {
    /// The binding, the initial value and the fold of a reduction on the device.
    fn reduction(&mut self, e: ExprId) -> Lower<Option<(u32, ExprId, Fold, Span)>> {
        let program = self.cx.program;
        let span = self.expr_span(e);
        let ExprKind::Call(callee, args) = &program.ast[e].kind else { return Ok(None) };
        let ExprKind::Member(base, name) = program.ast[*callee].kind else { return Ok(None) };
        if program.name(name.sym) != "reduce" {
            return Ok(None);
        }
        let Some(id) = self.resident_of(base) else { return Ok(None) };
        let [init, fold] = self.plain_args("reduce", args, span)?;
        self.check_fold_types(id, fold)?;
        match self.fold_of(fold) {
            Some(fold) => Ok(Some((id, init, fold, span))),
            None => {
                let message =
                    "a device reduces with `+`, `*`, `min` or `max` of the two parameters only";
                let help =
                    "write `fn(a int, b int) int: a + b`, or copy to the host and reduce there";
                Err(self.error(Code::MIR2001, span, message, help))
            }
        }
    }

    /// The parameters of the fold are elements, by their own type or its name on devices.
    fn check_fold_types(&mut self, id: u32, fold: ExprId) -> Lower<()> {
        let program = self.cx.program;
        let ExprKind::Lambda(lambda) = program.ast[fold].kind else { return Ok(()) };
        let Some(element) = self.cx.tys.element(self.locals[id as usize].ty) else { return Ok(()) };
        for param in &program.ast[lambda].params {
            let t = self.resolve(param.ty)?;
            if !self.cx.same_on_device(t, element) {
                let (found, wanted) = (self.cx.ty_name(t), self.cx.ty_name(element));
                let message =
                    format!("the fold takes a `{found}`, but the elements are `{wanted}`");
                let help = format!("write `{wanted}` for both parameters");
                return Err(self.error(Code::MIR2001, param.name.span, message, help));
            }
        }
        Ok(())
    }

    /// What a function literal folds with.
    fn fold_of(&self, e: ExprId) -> Option<Fold> {
        let ast = &self.cx.program.ast;
        let ExprKind::Lambda(id) = ast[e].kind else { return None };
        let decl = &ast[id];
        let [p, q] = &decl.params[..] else { return None };
        let [stmt] = decl.body.stmts[..] else { return None };
        let value = match ast[stmt].kind {
            StmtKind::Expr(e) | StmtKind::Return(Some(e)) => e,
            _ => return None,
        };
        let names = (p.name.sym, q.name.sym);
        let both = |a: ExprId, b: ExprId| match (&ast[a].kind, &ast[b].kind) {
            (ExprKind::Name(a), ExprKind::Name(b)) => (*a, *b) == names || (*b, *a) == names,
            _ => false,
        };
        match &ast[value].kind {
            &ExprKind::Binary(BinaryOp::Add, a, b) if both(a, b) => Some(Fold::Add),
            &ExprKind::Binary(BinaryOp::Mul, a, b) if both(a, b) => Some(Fold::Mul),
            ExprKind::Call(callee, args)
                if args.len() == 2 && both(args[0].value, args[1].value) =>
            {
                match self.free_name(*callee) {
                    Some("min") => Some(Fold::Min),
                    Some("max") => Some(Fold::Max),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `let s = g.reduce(…)`: the value, read back.
    pub(super) fn reduce_on_device(&mut self, e: ExprId) -> Lower<Option<Val>> {
        if self.device {
            return Ok(None);
        }
        let Some((id, init, fold, span)) = self.reduction(e)? else { return Ok(None) };
        let (t, handle) = self.reduce(id, init, fold, span)?;
        self.cx.cost(CostClass::Readback, span, Some(t));
        let packed = self.cx.machine(t, Form::Packed);
        let array_ty = self.cx.intern(TypeKind::Array(packed));
        let (zero, one) = (self.i64(0), self.i64(1));
        let place = self.place(span);
        let array = self.rt_value(RtFn::GpuResidentRead, array_ty, &[handle, zero, one, place]);
        self.at(span);
        let v = self.b.value(Op::ArrGet, packed, &[array, zero], 0);
        let host = self.machine(t);
        let v = self.b.cast(v, host);
        Ok(Some(self.val(t, v)))
    }

    /// `gpu let s = g.reduce(…)`: the value stays on the device.
    pub(super) fn reduce_resident(&mut self, e: ExprId) -> Lower<Option<(Ty, Value)>> {
        match self.reduction(e)? {
            Some((id, init, fold, span)) => self.reduce(id, init, fold, span).map(Some),
            None => Ok(None),
        }
    }

    fn reduce(&mut self, id: u32, init: ExprId, fold: Fold, span: Span) -> Lower<(Ty, Value)> {
        let local = self.locals[id as usize].clone();
        if self.moved.contains_key(&id) {
            return Err(self.read_back(id, span).err().unwrap_or(Poisoned));
        }
        let LocalKind::Resident(parts) = &local.kind else { return Err(Poisoned) };
        let element = self.cx.tys.element(local.ty).ok_or(Poisoned)?;
        if !self.cx.tys.is_number(element) {
            let message =
                format!("a device cannot reduce elements of type `{}`", self.cx.ty_name(element));
            return Err(self.error(Code::MIR2001, span, message, "reduce numbers"));
        }
        let was = std::mem::replace(&mut self.resident_literals, true);
        let init = self.expr_as(init, element);
        self.resident_literals = was;
        let init = init?;
        self.at(span);
        let init = self.packed(init, Origin::Unnamed("the initial value"));
        let kernel = self.cx.reduce_kernel(element, fold);
        let buffer = self.cx.buffer_type(element);
        let cell = self.rt_value(RtFn::GpuResidentCell, buffer, &[]);
        let handle = self.b.read(parts[0].var);
        let input = self.device_buffer(handle, span);
        let output = self.device_buffer(cell, span);
        self.rt(RtFn::GpuTelemetryLaunch, fixed::UNIT, &[]);
        let [one, not_last, last] = [1, 0, 1].map(|n| self.b.func().const_u32(n));
        let left = self.b.declare(buffer);
        self.b.write(left, input);
        let len = self.rt_value(RtFn::GpuResidentLen, fixed::I64, &[handle]);
        let part = self.i64(PART.into());
        let many = self.b.compare(Op::IcmpSgt, len, part);
        let (fold_parts, fold_rest) = (self.new_block(), self.new_block());
        self.b.cbr(many, fold_parts, fold_rest);
        self.enter(fold_parts);
        let (below, most) = (self.i64(i64::from(PART) - 1), self.i64(MAX_PARTS.into()));
        let sum = self.b.same(Op::IAdd, &[len, below]);
        let groups = self.b.same(Op::IUdiv, &[sum, part]);
        let groups = self.b.same(Op::ISmin, &[groups, most]);
        let scratch = self.rt_value(RtFn::GpuResidentScratch, buffer, &[groups]);
        let parts = self.device_buffer(scratch, span);
        let groups = self.b.cast(groups, fixed::U32);
        self.reduce_in(kernel, groups, &[input, parts, init, not_last], span);
        self.b.write(left, parts);
        self.b.br(fold_rest);
        self.enter(fold_rest);
        let left = self.b.read(left);
        self.reduce_in(kernel, one, &[left, output, init, last], span);
        Ok((element, cell))
    }

    /// Queues the kernel of a reduction for a number of workgroups.
    fn reduce_in(&mut self, kernel: FnId, groups: Value, args: &[Value], span: Span) {
        let one = self.b.func().const_u32(1);
        let mut sizes = vec![groups, one, one];
        sizes.extend([WIDTH, 1, 1].map(|n| self.b.func().const_u32(n)));
        self.dispatch(kernel, &sizes, args, span);
    }
}

impl Cx<'_> {
    /// The kernel that folds elements to one value for each workgroup, and takes in the initial
    /// value when it is the last one.
    fn reduce_kernel(&mut self, element: Ty, fold: Fold) -> FnId {
        let helper = (Helper::Reduce(fold as u8), element);
        if let Some(&id) = self.helpers.get(&helper) {
            return id;
        }
        let name = format!("miri.@reduce_{fold:?}_{}", self.ty_name(element)).to_lowercase();
        let fn_id = self.reserve(&name);
        self.helpers.insert(helper, fn_id);
        self.kernels.push(fn_id);
        let p = self.tys.scalar(element, true).unwrap_or(PrimType::I32);
        let buffer = self.buffer_type(element);
        let shared_ty = self.intern(TypeKind::SharedArray(p.id(), WIDTH));
        let mut f = self.kernel_fn(&name, [WIDTH, 1, 1], Span::NONE);
        let input = f.add_param("input", buffer, Span::NONE);
        let output = f.add_param("output", buffer, Span::NONE);
        let init = f.add_param("init", p.id(), Span::NONE);
        let is_last = f.add_param("is_last", fixed::U32, Span::NONE);
        let op = match (fold, p.is_float(), p.is_signed()) {
            (Fold::Add, true, _) => Op::FAdd,
            (Fold::Mul, true, _) => Op::FMul,
            (Fold::Min, true, _) => Op::FMin,
            (Fold::Max, true, _) => Op::FMax,
            (Fold::Add, false, _) => Op::IAdd,
            (Fold::Mul, false, _) => Op::IMul,
            (Fold::Min, false, true) => Op::ISmin,
            (Fold::Min, false, false) => Op::IUmin,
            (Fold::Max, false, true) => Op::ISmax,
            (Fold::Max, false, false) => Op::IUmax,
        };
        let neutral = match fold {
            // The sum of a number and -0.0 is the number, whatever its sign.
            Fold::Add if p.is_float() => 1 << (p.bit_width() - 1),
            Fold::Add => 0,
            Fold::Mul if !p.is_float() => 1,
            Fold::Mul if p == PrimType::F64 => 1f64.to_bits(),
            Fold::Mul if p == PrimType::F16 => 0x3c00,
            Fold::Mul => u64::from(1f32.to_bits()),
            Fold::Min | Fold::Max => 0,
        };
        let is_idempotent = matches!(fold, Fold::Min | Fold::Max);
        let mut body = Body::new(self, Builder::new(&mut f), true, Vec::new());
        let b = &mut body.b;
        let shared = b.value(Op::GpuShared, shared_ty, &[], 0);
        let tid = b.value(Op::GpuThreadId, fixed::U32, &[], 0);
        let len = b.value(Op::GpuBufferLen, fixed::U32, &[input], 0);
        let group = b.value(Op::GpuWorkgroupId, fixed::U32, &[], 0);
        let groups = b.value(Op::GpuNumWorkgroups, fixed::U32, &[], 0);
        let width = b.func().const_u32(WIDTH);
        let stride = b.same(Op::IMul, &[groups, width]);
        let before = b.same(Op::IMul, &[group, width]);
        let first = b.same(Op::IAdd, &[before, tid]);
        // A smallest value does not change by being folded in once more.
        let start = if is_idempotent { init } else { b.const_bits(p.id(), neutral) };
        let (acc, at) = (b.declare(p.id()), b.declare(fixed::U32));
        b.write(acc, start);
        b.write(at, first);
        let (head, inside, after) = (b.create_block(), b.create_block(), b.create_block());
        b.br(head);
        b.switch_to(head);
        let i = b.read(at);
        let more = b.compare(Op::IcmpUlt, i, len);
        b.cbr(more, inside, after);
        b.seal(inside);
        b.switch_to(inside);
        let x = b.value(Op::GpuBufferLoad, p.id(), &[input, i], 0);
        let old = b.read(acc);
        let new = b.same(op, &[old, x]);
        b.write(acc, new);
        // No index is left when the numbers end.
        let next = b.same(Op::IAdd, &[i, stride]);
        let wraps = b.compare(Op::IcmpUlt, next, i);
        let end = b.func().const_u32(u32::MAX);
        let next = b.select(wraps, end, next);
        b.write(at, next);
        b.br(head);
        b.seal(head);
        b.seal(after);
        b.switch_to(after);
        let mine = b.read(acc);
        b.effect(Op::GpuBufferStore, &[shared, tid, mine], 0);
        b.effect(Op::GpuBarrier, &[], 0);
        let mut half = WIDTH / 2;
        while half > 0 {
            let (fold_it, join) = (b.create_block(), b.create_block());
            let distance = b.func().const_u32(half);
            let lower = b.compare(Op::IcmpUlt, tid, distance);
            b.cbr(lower, fold_it, join);
            b.seal(fold_it);
            b.switch_to(fold_it);
            let other = b.same(Op::IAdd, &[tid, distance]);
            let x = b.value(Op::GpuBufferLoad, p.id(), &[shared, tid], 0);
            let y = b.value(Op::GpuBufferLoad, p.id(), &[shared, other], 0);
            let z = b.same(op, &[x, y]);
            b.effect(Op::GpuBufferStore, &[shared, tid, z], 0);
            b.br(join);
            b.seal(join);
            b.switch_to(join);
            b.effect(Op::GpuBarrier, &[], 0);
            half /= 2;
        }
        let (last, done) = (b.create_block(), b.create_block());
        let zero = b.func().const_u32(0);
        let is_first = b.compare(Op::IcmpEq, tid, zero);
        b.cbr(is_first, last, done);
        b.seal(last);
        b.switch_to(last);
        let total = b.value(Op::GpuBufferLoad, p.id(), &[shared, zero], 0);
        let with_init = b.same(op, &[init, total]);
        let is_last = b.compare(Op::IcmpNe, is_last, zero);
        let total = b.select(is_last, with_init, total);
        b.effect(Op::GpuBufferStore, &[output, group, total], 0);
        b.br(done);
        b.seal(done);
        b.switch_to(done);
        b.ret(None);
        body.b.finish();
        self.finish_fn(fn_id, f);
        fn_id
    }
}
