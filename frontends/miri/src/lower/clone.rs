//! Owned copies of values that belong to somebody else.

use super::body::{Body, Val};
use super::{Cx, Form, Helper};
use crate::ast::{ExprId, ExprKind};
use crate::ty::{Ty, TyKind};
use crate::walk::{Node, walk_expr};
use magpie_mpir::{Builder, Domain, FnId, MpirFn, Op, Value, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{Sid, SidKind, TypeId, TypeKind};

impl Body<'_, '_, '_> {
    /// A value of its own: a temporary as it is, anything else cloned.
    pub(super) fn own(&mut self, val: Val) -> Value {
        if val.owned || self.is_copy(val.ty) {
            return val.v;
        }
        self.clone_of(val)
    }

    /// A value that stays what it is while `later` is evaluated: calls there may change the variable
    /// that it belongs to.
    pub(super) fn keep(&mut self, val: Val, later: &[ExprId]) -> Val {
        if val.owned || self.is_copy(val.ty) || !later.iter().any(|&e| self.has_call(e)) {
            return val;
        }
        let v = self.own(val);
        self.val(val.ty, v)
    }

    fn has_call(&self, e: ExprId) -> bool {
        let ast = &self.cx.program.ast;
        let mut found = false;
        walk_expr(ast, e, &mut |node| {
            if let Node::Expr(e) = node {
                found |= matches!(ast[e].kind, ExprKind::Call(..));
            }
        });
        found
    }

    fn clone_of(&mut self, val: Val) -> Value {
        let id = self.machine(val.ty);
        if self.cx.module.types.is_heap(id) {
            return self.rt_value(RtFn::HandleClone, id, &[val.v]);
        }
        let helper = self.cx.clone_helper(val.ty);
        self.b.value(Op::Call, id, &[val.v], helper.0.into())
    }

    /// A view of a value; views as they are.
    pub(super) fn look_at(&mut self, val: Val) -> Value {
        let id = self.b.ty(val.v);
        if matches!(self.cx.module.types.kind(id), TypeKind::Ref(..)) || self.is_copy(val.ty) {
            return val.v;
        }
        let view = self.cx.view(id);
        self.b.value(Op::BorrowShared, view, &[val.v], 0)
    }

    /// A part of an enum, an option or a result that has this variant.
    pub(super) fn payload(&mut self, val: Val, variant: u32, field: u32, part: Ty) -> Val {
        if let TyKind::Enum(n, args) = self.cx.tys.kind(val.ty)
            && self.is_copy(val.ty)
        {
            let id = self.machine(part);
            let member = self.cx.enum_parts(n, args).members[variant as usize][field as usize];
            let v = self.b.value(Op::StructGet, id, &[val.v], member.into());
            return self.val(part, v);
        }
        let seen = self.look_at(val);
        let imm = imm_pair(variant, field);
        if self.is_copy(part) {
            let id = self.machine(part);
            let v = self.b.value(Op::EnumPayload, id, &[seen], imm);
            return self.val(part, v);
        }
        let id = self.machine(part);
        let view = self.cx.view(id);
        let v = self.b.value(Op::EnumPayload, view, &[seen], imm);
        Val { ty: part, v, owned: false }
    }
}

impl Cx<'_> {
    /// `fn(view of T) T` for options and results that hold counted values.
    fn clone_helper(&mut self, t: Ty) -> FnId {
        if let Some(&id) = self.helpers.get(&(Helper::Clone, t)) {
            return id;
        }
        let name = format!("miri.@clone.{}", self.ty_name(t));
        let fn_id = self.reserve(&name);
        self.helpers.insert((Helper::Clone, t), fn_id);
        let whole = self.machine(t, Form::Host);
        let view = self.view(whole);
        let mut f = MpirFn::new(Sid::new(SidKind::Function, &name), name, whole, Domain::Host);
        let param = f.add_param("value", view, magpie_diag::Span::NONE);
        let parts: Vec<Option<Ty>> = match self.tys.kind(t) {
            TyKind::Option(t) => vec![None, Some(t)],
            TyKind::Result(t, e) => vec![Some(t), Some(e)],
            _ => vec![None],
        };
        let mut body = Body::new(self, Builder::new(&mut f), false, Vec::new());
        let val = Val { ty: t, v: param, owned: false };
        for (variant, &part) in parts.iter().enumerate() {
            let variant = variant as u32;
            let last = variant as usize + 1 == parts.len();
            let (yes, no) = (body.new_block(), body.new_block());
            if last {
                body.b.br(yes);
            } else {
                let is = enum_is(&mut body, param, variant);
                body.b.cbr(is, yes, no);
            }
            body.enter(yes);
            let args: Vec<Value> = part
                .map(|part| {
                    let payload = body.payload(val, variant, 0, part);
                    body.own(payload)
                })
                .into_iter()
                .collect();
            let made = body.b.value(Op::EnumNew, whole, &args, imm_pair(variant, 0));
            body.b.ret(Some(made));
            body.enter(no);
        }
        body.b.unreachable();
        body.b.finish();
        self.finish_fn(fn_id, f);
        fn_id
    }
}

/// Whether a value has a variant.
pub(super) fn enum_is(body: &mut Body<'_, '_, '_>, v: Value, variant: u32) -> Value {
    let bool: TypeId = magpie_types::fixed::BOOL;
    body.b.value(Op::EnumIs, bool, &[v], imm_pair(variant, 0))
}
