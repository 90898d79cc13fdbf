//! `gpu let c = a + b` of device-resident scalars: a kernel of one invocation computes the value,
//! which stays on the device.

use super::body::Body;
use super::locals::{Local, LocalKind};
use super::{Cx, Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, fixed as ty};
use crate::walk::{Node, walk_expr};
use magpie_mpir::{Builder, FnId, MpirFn, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    /// The value of an expression whose names are device-resident scalars and constants.
    pub(super) fn compute_resident(&mut self, e: ExprId) -> Lower<Option<(Ty, Value)>> {
        let program = self.cx.program;
        let is_operator = matches!(
            program.ast[e].kind,
            ExprKind::Binary(..) | ExprKind::Unary(..) | ExprKind::Cast(..) | ExprKind::Cond { .. }
        );
        let mut operands: Vec<u32> = Vec::new();
        let mut computable = is_operator && !self.device;
        walk_expr(&program.ast, e, &mut |node| {
            if let Node::Expr(e) = node
                && let ExprKind::Name(name) = program.ast[e].kind
                && let Some(id) = self.lookup(name)
            {
                let local = &self.locals[id as usize];
                computable &= matches!(local.kind, LocalKind::Resident(_))
                    && self.cx.tys.scalar(local.ty, true).is_some();
                if !operands.contains(&id) {
                    operands.push(id);
                }
            }
        });
        if !computable || operands.is_empty() {
            return Ok(None);
        }
        let span = self.expr_span(e);
        for &id in &operands {
            self.check_moved(id, span)?;
        }
        let locals: Vec<Local> =
            operands.iter().map(|&id| self.locals[id as usize].clone()).collect();
        let (t, kernel) = self.scalar_kernel(e, &locals)?;
        // Of `int`s it is an `int`, which kernels call `i32`.
        let t = match t == ty::I32 && locals.iter().any(|l| l.ty == ty::INT) {
            true => ty::INT,
            false => t,
        };
        self.at(span);
        let mut args = Vec::new();
        for &id in &operands {
            for handle in self.resident_operands(id) {
                args.push(self.device_buffer(handle, span));
            }
        }
        let buffer = self.cx.buffer_type(t);
        let cell = self.rt_value(RtFn::GpuResidentCell, buffer, &[]);
        args.push(self.device_buffer(cell, span));
        self.rt(RtFn::GpuTelemetryLaunch, fixed::UNIT, &[]);
        let sizes = vec![self.b.func().const_u32(1); 6];
        self.dispatch(kernel, &sizes, &args, span);
        Ok(Some((t, cell)))
    }

    fn scalar_kernel(&mut self, e: ExprId, operands: &[Local]) -> Lower<(Ty, FnId)> {
        let span = self.expr_span(e);
        let cx = &mut *self.cx;
        let name = format!("miri.@scalars_line{}_{}", cx.line(span), cx.kernels.len());
        // The type of the result is known when it has been computed once.
        let (t, _) = cx.scalar_function(&name, e, operands, None)?;
        let (_, f) = cx.scalar_function(&name, e, operands, Some(t))?;
        let fn_id = cx.reserve(&name);
        cx.kernels.push(fn_id);
        cx.finish_kernel(fn_id, f);
        Ok((t, fn_id))
    }
}

impl Cx<'_> {
    fn scalar_function(
        &mut self,
        name: &str,
        e: ExprId,
        operands: &[Local],
        result: Option<Ty>,
    ) -> Lower<(Ty, MpirFn)> {
        let span = self.program.ast[e].span;
        let mut f = self.kernel_fn(name, [1, 1, 1], span);
        let mut params = Vec::new();
        for local in operands {
            let id = self.buffer_type(local.ty);
            params.push(f.add_param(self.program.name(local.name), id, local.span));
        }
        let output = result.map(|t| {
            let id = self.buffer_type(t);
            f.add_param("output", id, span)
        });
        let mut body = Body::new(self, Builder::new(&mut f), true, Vec::new());
        body.at(span);
        for (local, &param) in operands.iter().zip(&params) {
            body.declare_buffers(local.name, local, false, &[(local.ty, None)], &[param]);
        }
        let val = body.expr(e, None);
        if let (Ok(val), Some(output)) = (&val, output) {
            let zero = body.i32(0);
            body.b.effect(Op::GpuBufferStore, &[output, zero, val.v], 0);
        }
        if !body.b.is_ended() {
            body.b.ret(None);
        }
        body.b.finish();
        let val = val?;
        if val.ty == ty::ERROR {
            return Err(Poisoned);
        }
        Ok((val.ty, f))
    }
}
