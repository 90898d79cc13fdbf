//! Function values.

use super::body::{Body, Returns, Val};
use super::locals::LocalKind;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use crate::walk::free_names;
use magpie_diag::{Code, Span};
use magpie_mpir::{Builder, Domain, MpirFn, Op, imm_pair};
use magpie_types::{Sid, SidKind};

/// A function that is captured has its bound parameters as bits of a word.
const MAX_PARAMS: usize = 32;

impl Body<'_, '_, '_> {
    /// A function by its name.
    pub(super) fn function_value(&mut self, id: FnDeclId, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a function value")?;
        let decl = &self.cx.program.ast[id];
        let has_out = decl.params.iter().any(|p| p.out);
        if decl.gpu || !decl.generics.is_empty() || has_out || decl.params.len() > MAX_PARAMS {
            let message = "this function cannot be a value";
            let help = "write a lambda that calls it: `fn(x int) int: f(x)`";
            return Err(self.error(Code::MIR0103, span, message, help));
        }
        let instance = self.cx.host_instance(id);
        if instance.poisoned {
            return Err(Poisoned);
        }
        let list = self.cx.tys.list(&instance.params);
        let t = self.cx.tys.intern(TyKind::Fn(list, instance.ret));
        let machine = self.machine(t);
        let v = self.b.value(Op::CallableCapture, machine, &[], imm_pair(instance.fn_id.0, 0));
        Ok(self.val(t, v))
    }

    pub(super) fn lambda(&mut self, id: FnDeclId, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a function value")?;
        let program = self.cx.program;
        let decl = &program.ast[id];
        let mut params = Vec::with_capacity(decl.params.len());
        for param in &decl.params {
            if param.out {
                let help = "return the value";
                return Err(self.error(Code::MIR0103, param.name.span, "`out` in a lambda", help));
            }
            params.push(self.resolve(param.ty)?);
        }
        let ret = match decl.result {
            Some(t) => self.resolve(t)?,
            None => ty::UNIT,
        };
        let own = decl.params.iter().map(|p| p.name.sym).collect();
        let mut captured: Vec<(Sym, Span, Val)> = Vec::new();
        for (name, at) in free_names(&program.ast, &decl.body, own) {
            let Some(local) = self.lookup(name) else { continue };
            if let LocalKind::Resident(_) = self.locals[local as usize].kind {
                return Err(self.refuse_capture(name, &decl.body, at));
            }
            let val = self.local_value(local, at)?;
            captured.push((name, at, val));
        }
        if captured.len() + params.len() > MAX_PARAMS {
            let help = "put values into a struct";
            return Err(self.error(Code::MIR0103, span, "a lambda with so many names", help));
        }
        let fn_id = self.lambda_function(decl, &captured, &params, ret);
        let list = self.cx.tys.list(&params);
        let t = self.cx.tys.intern(TyKind::Fn(list, ret));
        let machine = self.machine(t);
        let bits = (1u64 << captured.len()) - 1;
        let args: Vec<_> = captured.iter().map(|c| self.own(c.2)).collect();
        self.at(span);
        let imm = imm_pair(fn_id.0, bits as u32);
        let v = self.b.value(Op::CallableCapture, machine, &args, imm);
        Ok(self.val(t, v))
    }

    /// The function of a lambda: what it captures, then its parameters.
    fn lambda_function(
        &mut self,
        decl: &FnDecl,
        captured: &[(Sym, Span, Val)],
        params: &[Ty],
        ret: Ty,
    ) -> magpie_mpir::FnId {
        let subst = self.subst.clone();
        let cx = &mut *self.cx;
        cx.lambdas += 1;
        let name = format!("miri.@lambda{}", cx.lambdas);
        let fn_id = cx.reserve(&name);
        let ret_ty = cx.machine(ret, super::Form::Host);
        let mut f = MpirFn::new(Sid::new(SidKind::Function, &name), name, ret_ty, Domain::Host);
        f.span = decl.head;
        let mut values = Vec::new();
        for &(name, span, val) in captured {
            let id = cx.param_machine(val.ty);
            values.push((name, span, val.ty, f.add_param(cx.program.name(name), id, span)));
        }
        for (param, &t) in decl.params.iter().zip(params) {
            let id = cx.param_machine(t);
            let v = f.add_param(cx.program.name(param.name.sym), id, param.name.span);
            values.push((param.name.sym, param.name.span, t, v));
        }
        let mut body = Body::new(cx, Builder::new(&mut f), false, subst);
        body.at(decl.head);
        for (name, span, t, v) in values {
            body.declare_value(name, span, t, v);
        }
        body.returns = Returns { ty: (ret != ty::UNIT).then_some(ret), ..Returns::default() };
        body.function_body(&decl.body, decl.head);
        body.b.finish();
        self.cx.finish_fn(fn_id, f);
        fn_id
    }

    /// Calls a function value.
    pub(super) fn call_value(&mut self, callee: Val, args: &[Arg], span: Span) -> Lower<Val> {
        let TyKind::Fn(params, ret) = self.cx.tys.kind(callee.ty) else {
            if callee.ty == ty::ERROR {
                return Err(Poisoned);
            }
            let message = format!("a `{}` cannot be called", self.cx.ty_name(callee.ty));
            return Err(self.error(Code::MIR0202, span, message, "call a function"));
        };
        self.check_names("a function value", args)?;
        let params = self.cx.tys.items(params).to_vec();
        if params.len() != args.len() {
            let message =
                format!("the function takes {} arguments, not {}", params.len(), args.len());
            return Err(self.error(Code::MIR0211, span, message, "give one for each parameter"));
        }
        let mut operands = vec![callee.v];
        let values: Vec<ExprId> = args.iter().map(|arg| arg.value).collect();
        for (n, t) in params.into_iter().enumerate() {
            operands.push(self.host_arg(values[n], t, &values[n + 1..])?);
        }
        self.at(span);
        let id = self.machine(ret);
        let v = self.b.inst(Op::CallIndirect, id, &operands, 0);
        Ok(match v {
            Some(v) => self.val(ret, v),
            None => self.unit(),
        })
    }

    /// An argument of a host function: a copy, or a value that is looked at.
    pub(super) fn host_arg(
        &mut self,
        e: ExprId,
        t: Ty,
        later: &[ExprId],
    ) -> Lower<magpie_mpir::Value> {
        if let Some(id) = self.resident_of(e) {
            let span = self.expr_span(e);
            return Err(self.refuse_on_host(self.locals[id as usize].name, span));
        }
        let val = self.expr_as(e, t)?;
        let val = self.keep(val, later);
        Ok(self.look_at(val))
    }
}
