//! `forall`: a loop of the host, or a kernel and its launch.

use super::body::{Body, Val};
use super::grid::Axis;
use super::kernel::Kernel;
use super::locals::{Buffer, Local, LocalKind};
use super::pack::Origin;
use super::{Cx, Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use crate::walk::{Node, free_names, walk_scoped};
use crate::writes;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Builder, Domain, FnId, MpirFn, MpirGpuMeta, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, Sid, SidKind, TypeId, fixed};

/// A value from outside that a kernel uses.
struct Capture {
    name: Sym,
    local: u32,
    mutable: bool,
    kind: CaptureKind,
}

enum CaptureKind {
    /// One kernel parameter a buffer.
    Buffers(Vec<(Ty, Option<u32>)>),
    /// A value, as one parameter or (a vector) as its components.
    Value { ty: Ty, params: Vec<TypeId> },
}

impl Body<'_, '_, '_> {
    pub(super) fn forall(&mut self, forall: &Forall, span: Span) -> Lower<()> {
        self.forall_in(forall, span, false)
    }

    pub(super) fn forall_in(&mut self, forall: &Forall, span: Span, frame: bool) -> Lower<()> {
        let program = self.cx.program;
        if self.device {
            let help = "use `for`: every invocation runs the whole loop";
            return Err(self.unsupported(span, "a `forall` in a kernel", help));
        }
        let (names, ranges) = (forall.names.len(), forall.ranges.len());
        if names > 3 || names != ranges {
            let message = match names > 3 {
                true => {
                    format!("a `forall` has {names} indices, but devices have three dimensions")
                }
                false => format!("a `forall` with {names} indices has {ranges} ranges"),
            };
            let help =
                "write one to three indices and a range for each: `forall i, j in 0..w, 0..h`";
            return Err(self.error(Code::MIR1701, forall.head, message, help));
        }
        let mut ends = Vec::new();
        for &range in &forall.ranges {
            let ExprKind::Range { start, end, inclusive } = program.ast[range].kind else {
                let at = self.expr_span(range);
                let help = "write `forall i in 0..n`";
                return Err(self.error(
                    Code::MIR1702,
                    at,
                    "a `forall` runs over a range of integers",
                    help,
                ));
            };
            let (a, b) = self.range_ends(start, end, inclusive, Code::MIR1702)?;
            ends.push((a, b));
        }
        let captures = self.free_locals(forall);
        // Where it would run is not known.
        if captures.iter().any(|&(id, _, _)| self.locals[id as usize].ty == ty::ERROR) {
            return Err(Poisoned);
        }
        let is_resident =
            |body: &Self, id: u32| matches!(body.locals[id as usize].kind, LocalKind::Resident(_));
        let has_resident = captures.iter().any(|&(id, _, _)| is_resident(self, id));
        let has_buffer = captures.iter().any(|&(id, _, _)| match &self.locals[id as usize].kind {
            LocalKind::Resident(parts) => {
                parts.iter().any(|part| part.field.is_some())
                    || !self.is_single(self.locals[id as usize].ty)
            }
            _ => false,
        });
        if forall.gpu && !has_buffer {
            let message = "this `gpu forall` uses no device-resident buffer";
            let help = "bind a buffer with `gpu var`, or write `forall` to run it on the host";
            return Err(self.error(Code::MIR1704, forall.head, message, help));
        }
        if !has_resident {
            return self.host_forall(forall, &ends);
        }
        self.check_outer_assignments(forall)?;
        self.device_forall(forall, &ends, &captures, span, frame)
    }

    /// Whether a loop captures something device-resident, so that it is a launch.
    pub(super) fn uses_device(&self, forall: &Forall) -> bool {
        let captures = self.free_locals(forall);
        captures.iter().any(|&(id, _, _)| {
            let local = &self.locals[id as usize];
            local.ty == ty::ERROR || matches!(local.kind, LocalKind::Resident(_))
        })
    }

    /// Whether a resident type is one value, not a collection.
    fn is_single(&self, t: Ty) -> bool {
        !matches!(self.cx.tys.kind(t), TyKind::Array(..) | TyKind::List(_))
    }

    /// Names that the body uses and does not declare, with what they are here.
    fn free_locals(&self, forall: &Forall) -> Vec<(u32, Sym, Span)> {
        let indices = forall.names.iter().map(|n| n.sym).collect();
        let free = free_names(&self.cx.program.ast, &forall.body, indices);
        free.into_iter().filter_map(|(name, at)| Some((self.lookup(name)?, name, at))).collect()
    }

    // ----- on the host -----

    fn host_forall(&mut self, forall: &Forall, ends: &[(Val, Val)]) -> Lower<()> {
        let outer = self.forall_base.replace((self.locals.len() as u32, forall.head));
        let outer_next = self.returns.next_index.take();
        self.push_scope();
        self.host_dimension(forall, ends, 0);
        self.pop_scope();
        self.returns.next_index = outer_next;
        self.forall_base = outer;
        Ok(())
    }

    fn host_dimension(&mut self, forall: &Forall, ends: &[(Val, Val)], n: usize) {
        let Some(&(a, b)) = ends.get(n) else {
            self.block(&forall.body);
            return;
        };
        self.count(a, b, true, &mut |body, i| {
            let name = forall.names[n];
            body.declare_value(name.sym, name.span, ty::INT, i.v);
            body.returns.next_index = body.loops.last().map(|l| l.on_continue);
            body.host_dimension(forall, ends, n + 1);
        });
    }

    /// Assignments in the body to variables from outside.
    fn check_outer_assignments(&mut self, forall: &Forall) -> Lower<()> {
        let ast = &self.cx.program.ast;
        let indices = forall.names.iter().map(|n| n.sym).collect();
        let mut found = None;
        walk_scoped(ast, &forall.body, indices, &mut |node, declared| {
            if let Node::Stmt(stmt) = node
                && let StmtKind::Assign { target, .. } = ast[stmt].kind
                && let Some((name, id)) = self.assigned_whole(target)
                && !declared.contains(&name)
            {
                found.get_or_insert((id, ast[stmt].span));
            }
        });
        let Some((id, span)) = found else { return Ok(()) };
        let outer = self.forall_base.replace((self.locals.len() as u32, forall.head));
        let result = self.check_accumulator(id, span);
        self.forall_base = outer;
        result
    }

    // ----- on the device -----

    fn capture(&mut self, id: u32, name: Sym, span: Span) -> Lower<Capture> {
        let local = self.locals[id as usize].clone();
        let t = local.ty;
        let kind = match &local.kind {
            LocalKind::Resident(_) => {
                if self.moved.contains_key(&id) {
                    return Err(self.read_back(id, span).err().unwrap_or(Poisoned));
                }
                CaptureKind::Buffers(self.cx.parts_of(t))
            }
            _ => match self.cx.tys.kind(t) {
                TyKind::Error => return Err(Poisoned),
                TyKind::Array(..) | TyKind::List(_) => {
                    return Err(self.host_capture(name, span));
                }
                TyKind::Vector(c, n) => {
                    let p = self.cx.machine(c, super::Form::Device);
                    CaptureKind::Value { ty: t, params: vec![p; n as usize] }
                }
                TyKind::Struct(n, args)
                    if !self.cx.is_element(t) && {
                        let fields = self.cx.fields(n, args);
                        fields.iter().any(|f| self.cx.tys.element(f.1).is_some())
                    } =>
                {
                    return Err(self.host_capture(name, span));
                }
                _ if self.cx.is_element(t) || self.cx.is_plain_enum(t) => {
                    let p = self.cx.machine(t, super::Form::Device);
                    CaptureKind::Value { ty: t, params: vec![p] }
                }
                _ => {
                    let text = self.cx.program.name(name).to_string();
                    let message = format!(
                        "`{text}` is a `{}`, which has no form on a device",
                        self.cx.ty_name(t)
                    );
                    let help = "pass numbers, truth values, vectors or accelerable structs";
                    return Err(self.error(Code::MIR1706, span, message, help));
                }
            },
        };
        Ok(Capture { name, local: id, mutable: local.mutable, kind })
    }

    /// A host collection in a launch. In a copy of a function for device-resident arguments it is
    /// the call that mixes the residencies.
    fn host_capture(&mut self, name: Sym, span: Span) -> Poisoned {
        let text = self.cx.program.name(name);
        let message = format!("`{text}` lives on the host, but this launch runs on the device");
        let help = format!("upload it first: `gpu let {text}_gpu = {text}`, then use `{text}_gpu`");
        let at = self.resident_call.unwrap_or(span);
        let mut d = Diagnostic::new(Code::MIR1705, at, message).with_help(help);
        if at != span {
            d = d.with_secondary(span, "used here");
        }
        // One report of a call is enough.
        if !self.cx.diagnostics.iter().any(|known| known.code == d.code && known.primary == at) {
            self.cx.report(d);
        }
        Poisoned
    }

    fn device_forall(
        &mut self,
        forall: &Forall,
        ends: &[(Val, Val)],
        free: &[(u32, Sym, Span)],
        span: Span,
        frame: bool,
    ) -> Lower<()> {
        let mut captures = Vec::new();
        let mut fine = Ok(());
        for &(id, name, at) in free {
            match self.capture(id, name, at) {
                Ok(capture) => captures.push(capture),
                Err(Poisoned) => fine = Err(Poisoned),
            }
        }
        fine?;
        self.at(span);
        let block: [u32; 3] = match ends.len() {
            1 => [256, 1, 1],
            2 => [16, 16, 1],
            _ => [8, 8, 4],
        };
        let axes = self.axes(ends, block);
        let folded = axes.len() == 1 && axes[0].is_long();
        let kernel = self.forall_kernel(forall, &axes, &captures, block, folded, frame)?;

        let mut args = Vec::new();
        for capture in &captures {
            match &capture.kind {
                CaptureKind::Buffers(_) => {
                    for handle in self.resident_operands(capture.local) {
                        args.push(self.device_buffer(handle, span));
                    }
                }
                CaptureKind::Value { ty: t, params } => {
                    let val = self.local_value(capture.local, span)?;
                    self.at(span);
                    if let TyKind::Vector(c, _) = self.cx.tys.kind(*t) {
                        for n in 0..params.len() {
                            args.push(self.field(val, n as u32, c).v);
                        }
                    } else {
                        args.push(self.packed(val, Origin::Local(capture.name)));
                    }
                }
            }
        }
        self.rt(RtFn::GpuTelemetryLaunch, fixed::UNIT, &[]);
        let done = self.new_block();
        for axis in &axes {
            match axis.known {
                Some((_, n)) if n > 0 => {}
                _ => {
                    let zero = self.i64(0);
                    let some = self.b.compare(Op::IcmpSgt, axis.extent, zero);
                    let go_on = self.new_block();
                    self.b.cbr(some, go_on, done);
                    self.enter(go_on);
                }
            }
        }
        for axis in axes.iter().filter(|axis| axis.known.is_none()) {
            self.packed_int(axis.start);
            self.packed_int(axis.extent);
        }
        self.in_parts(&axes, &mut Vec::new(), &mut |body, parts| {
            let mut args = args.clone();
            for (axis, part) in axes.iter().zip(parts) {
                if axis.known.is_none() {
                    args.extend(part.map(|v| body.b.cast(v, fixed::I32)));
                }
            }
            let mut sizes = body.groups(&axes, parts);
            sizes.extend(block.map(|n| body.b.func().const_u32(n)));
            body.dispatch(kernel, &sizes, &args, span);
        });
        self.b.br(done);
        self.enter(done);
        Ok(())
    }

    fn forall_kernel(
        &mut self,
        forall: &Forall,
        axes: &[Axis],
        captures: &[Capture],
        block: [u32; 3],
        folded: bool,
        frame: bool,
    ) -> Lower<FnId> {
        let subst = self.subst.clone();
        let locals: Vec<Local> =
            captures.iter().map(|c| self.locals[c.local as usize].clone()).collect();
        let cx = &mut *self.cx;
        let buffers: Vec<Sym> = captures
            .iter()
            .filter(|c| matches!(c.kind, CaptureKind::Buffers(_)))
            .filter(|c| !cx.is_atomic_array(c.local_ty(&locals, captures)))
            .map(|c| c.name)
            .collect();
        let line = cx.line(forall.head);
        let number = cx.kernels.len();
        let name = format!("miri.@forall_line{line}_{number}");
        let fn_id = cx.reserve(&name);
        cx.kernels.push(fn_id);
        let doubtful = writes::check(cx.program, &forall.body, &buffers);
        cx.doubtful_writes.extend(doubtful.into_iter().map(|d| (fn_id, d)));
        let holes = cx.holes;
        let mut f = cx.kernel_fn(&name, block, forall.head);
        // Buffers and values in the order of their first use, then the unknown ranges.
        let mut values: Vec<Vec<Value>> = Vec::new();
        for capture in captures {
            let text = cx.program.name(capture.name).to_string();
            let mut params = Vec::new();
            match &capture.kind {
                CaptureKind::Buffers(parts) => {
                    for (n, &(element, _)) in parts.iter().enumerate() {
                        let id = cx.buffer_type(element);
                        let name = if n == 0 { text.clone() } else { format!("{text}{n}") };
                        params.push(f.add_param(name, id, forall.head));
                    }
                }
                CaptureKind::Value { params: tys, .. } => {
                    for &id in tys {
                        params.push(f.add_param(text.clone(), id, forall.head));
                    }
                }
            }
            values.push(params);
        }
        let mut ranges = Vec::new();
        for (n, axis) in axes.iter().enumerate() {
            ranges.push(match axis.known {
                Some(_) => None,
                None => Some((
                    f.add_param(format!("start{n}"), fixed::I32, forall.head),
                    f.add_param(format!("extent{n}"), fixed::I32, forall.head),
                )),
            });
        }
        let mut body = Body::new(cx, Builder::new(&mut f), true, subst);
        body.at(forall.head);
        body.kernel = Some(Kernel { named: false, frame, inside: None });
        for ((capture, local), params) in captures.iter().zip(&locals).zip(&values) {
            match &capture.kind {
                CaptureKind::Buffers(parts) => {
                    body.declare_buffers(capture.name, local, capture.mutable, parts, params);
                }
                CaptureKind::Value { ty: t, .. } => {
                    let v = match body.cx.tys.kind(*t) {
                        TyKind::Vector(..) => {
                            let id = body.machine(*t);
                            body.b.value(Op::VecNew, id, params, 0)
                        }
                        _ => params[0],
                    };
                    let t = body.norm(*t);
                    body.declare_value(capture.name, local.span, t, v);
                }
            }
        }
        // Positions past the end do nothing.
        let exit = body.new_block();
        let together = body.acts_together(&forall.body);
        for (n, axis) in axes.iter().enumerate() {
            let mut at = body.b.value(Op::GpuGlobalId, fixed::U32, &[], n as u64);
            if folded {
                let row = body.b.value(Op::GpuGlobalId, fixed::U32, &[], 1);
                let groups = body.b.value(Op::GpuNumWorkgroups, fixed::U32, &[], 0);
                let size = body.b.func().const_u32(block[0]);
                let width = body.b.same(Op::IMul, &[groups, size]);
                let before = body.b.same(Op::IMul, &[row, width]);
                at = body.b.same(Op::IAdd, &[before, at]);
            }
            let (start, extent) = match (ranges[n], axis.known) {
                (Some(range), _) => range,
                (None, known) => {
                    let (start, extent) = known.unwrap_or_default();
                    // Of a range that goes backwards nothing runs.
                    (body.i32(start as i32), body.i32(extent.max(0) as i32))
                }
            };
            let end = body.b.cast(extent, fixed::U32);
            let inside = body.b.compare(Op::IcmpUlt, at, end);
            if let (true, Some(kernel)) = (together, body.kernel) {
                let all = kernel.inside.map_or(inside, |all| body.b.same(Op::IAnd, &[all, inside]));
                body.kernel = Some(Kernel { inside: Some(all), ..kernel });
            } else {
                let go_on = body.new_block();
                body.b.cbr(inside, go_on, exit);
                body.enter(go_on);
            }
            let at = body.b.cast(at, fixed::I32);
            let is_zero = body.b.func().as_bits(start) == Some(0);
            let i = if is_zero { at } else { body.b.same(Op::IAdd, &[start, at]) };
            let name = forall.names[n];
            body.declare_value(name.sym, name.span, ty::I32, i);
        }
        body.returns.next_index = Some(exit);
        body.block(&forall.body);
        body.go_to(exit);
        body.enter(exit);
        body.b.ret(None);
        body.b.finish();
        self.cx.note_soundness(fn_id, holes);
        self.cx.finish_kernel(fn_id, f);
        Ok(fn_id)
    }

    /// Whether the body of a `forall` has a barrier or an operation of warps, for which invocations
    /// without an index must stay.
    fn acts_together(&self, block: &Block) -> bool {
        let program = self.cx.program;
        let mut found = false;
        walk_scoped(&program.ast, block, Vec::new(), &mut |node, _| {
            if let Node::Expr(e) = node
                && let ExprKind::Member(base, name) = program.ast[e].kind
            {
                found |= self.free_name(base) == Some("kernel")
                    && matches!(program.name(name.sym), "barrier" | "warp");
            }
        });
        found
    }

    /// Names for the buffers of a resident binding, in a kernel.
    pub(super) fn declare_buffers(
        &mut self,
        name: Sym,
        local: &Local,
        mutable: bool,
        parts: &[(Ty, Option<u32>)],
        params: &[Value],
    ) {
        let t = self.norm(local.ty);
        let is_struct = parts.iter().any(|p| p.1.is_some());
        let mut buffers = Vec::new();
        for (&(element, field), &param) in parts.iter().zip(params) {
            let single = match (field, self.cx.tys.kind(t)) {
                (Some(n), TyKind::Struct(s, args)) => {
                    let f = self.cx.fields(s, args)[n as usize].1;
                    self.cx.tys.element(f).is_none()
                }
                _ => self.cx.tys.element(t).is_none(),
            };
            let element = self.norm(element);
            buffers.push(Buffer { param, element, single, field });
        }
        let kind = match (is_struct, buffers.first()) {
            (false, Some(&buffer)) => LocalKind::Buffer(buffer),
            _ => LocalKind::Buffers(buffers),
        };
        self.add_local(Local { name, ty: t, mutable, span: local.span, kind });
    }
}

impl Capture {
    fn local_ty(&self, locals: &[Local], captures: &[Capture]) -> Ty {
        let at = captures.iter().position(|c| c.local == self.local).unwrap_or_default();
        locals[at].ty
    }
}

impl Cx<'_> {
    pub(super) fn is_atomic_array(&self, t: Ty) -> bool {
        let element = self.tys.element(t);
        element.is_some_and(|e| matches!(self.tys.kind(e), TyKind::Atomic(_)))
    }

    /// A kernel without parameters and body.
    pub(super) fn kernel_fn(&mut self, name: &str, workgroup: [u32; 3], head: Span) -> MpirFn {
        let sid = Sid::new(SidKind::Function, name);
        let mut f = MpirFn::new(sid, name, fixed::UNIT, Domain::Device);
        f.span = head;
        f.gpu_meta = Some(MpirGpuMeta {
            target: GpuBackend::Spv,
            workgroup,
            is_unsafe: false,
            requires: Vec::new(),
            spans: magpie_mpir::KernelSpans { head, ..magpie_mpir::KernelSpans::default() },
        });
        f
    }

    /// Gives a kernel its body.
    pub(super) fn finish_kernel(&mut self, id: FnId, f: MpirFn) {
        let offset = std::mem::take(&mut self.shuffle_offset);
        if offset > 0 {
            self.shuffles.insert(id, offset);
        }
        self.finish_fn(id, f);
    }

    /// Whether a scalar travels as a kernel parameter.
    pub(super) fn is_parameter(&self, t: Ty) -> bool {
        self.tys.scalar(t, true).is_some_and(|p| p != PrimType::Unit)
    }
}
