//! Equality of values.

use super::Cx;
use super::Helper;
use super::binary::compare_op;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::Span;
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    pub(super) fn has_equality(&mut self, t: Ty) -> bool {
        match self.cx.tys.kind(t) {
            TyKind::Str => true,
            TyKind::Enum(n, args) => self.cx.variants(n, args).iter().all(|v| v.1.is_empty()),
            TyKind::Array(t, _) | TyKind::List(t) | TyKind::Option(t) => {
                !self.device && self.has_equality(t)
            }
            TyKind::Tuple(items) => {
                let items = self.cx.tys.items(items).to_vec();
                !self.device && items.iter().all(|&t| self.has_equality(t))
            }
            TyKind::Struct(n, args) => {
                let equatable = self.cx.program.structs[n as usize]
                    .implements
                    .iter()
                    .any(|name| self.cx.program.name(name.sym) == "Equatable");
                let fields = self.cx.fields(n, args);
                !self.device && equatable && fields.iter().all(|f| self.has_equality(f.1))
            }
            TyKind::Vector(..) => true,
            _ => self.scalar(t).is_some(),
        }
    }

    pub(super) fn equality(&mut self, op: BinaryOp, x: Val, y: Val) -> Val {
        let v = self.equal_values(x, y);
        let v = match op {
            BinaryOp::Ne => {
                let yes = self.b.func().const_bool(true);
                self.b.same(Op::IXor, &[v, yes])
            }
            _ => v,
        };
        self.val(ty::BOOL, v)
    }

    /// Whether two values are equal.
    pub(super) fn equal_values(&mut self, x: Val, y: Val) -> Value {
        if let Some(p) = self.scalar(x.ty) {
            return self.b.compare(compare_op(BinaryOp::Eq, p), x.v, y.v);
        }
        if let (Some(a), Some(b)) = (self.enum_tag(x), self.enum_tag(y)) {
            return self.b.compare(Op::IcmpEq, a, b);
        }
        match self.cx.tys.kind(x.ty) {
            TyKind::Str => self.rt_value(RtFn::StrEq, fixed::BOOL, &[x.v, y.v]),
            TyKind::Vector(c, n) => {
                let yes = self.b.func().const_bool(true);
                (0..n).fold(yes, |all, i| {
                    let (a, b) = (self.field(x, i.into(), c), self.field(y, i.into(), c));
                    let same = self.equal_values(a, b);
                    self.b.same(Op::IAnd, &[all, same])
                })
            }
            _ => {
                let helper = self.cx.equal_helper(x.ty);
                let (a, b) = (self.look_at(x), self.look_at(y));
                self.b.value(Op::Call, fixed::BOOL, &[a, b], helper.0.into())
            }
        }
    }

    /// The immediate that names the equality of elements; 0 where it is built in.
    pub(super) fn equality_slot(&mut self, t: Ty) -> u64 {
        match self.cx.tys.scalar(t, false).is_some() || t == ty::STR {
            true => 0,
            false => u64::from(self.cx.equal_helper(t).0) + 1,
        }
    }

    /// Returns whether all parts of two values are equal.
    pub(super) fn equal_parts(&mut self, x: Val, y: Val) {
        let no = self.b.func().const_bool(false);
        let yes = self.b.func().const_bool(true);
        match self.cx.tys.kind(x.ty) {
            TyKind::Option(t) => {
                let a = super::clone::enum_is(self, x.v, 1);
                let b = super::clone::enum_is(self, y.v, 1);
                let same = self.b.compare(Op::IcmpEq, a, b);
                self.return_unless(same, no);
                self.return_unless(a, yes);
                let (p, q) = (self.payload(x, 1, 0, t), self.payload(y, 1, 0, t));
                let equal = self.equal_values(p, q);
                self.b.ret(Some(equal));
            }
            TyKind::Tuple(items) => {
                for (n, t) in self.cx.tys.items(items).to_vec().into_iter().enumerate() {
                    let (p, q) = (self.field(x, n as u32, t), self.field(y, n as u32, t));
                    let equal = self.equal_values(p, q);
                    self.return_unless(equal, no);
                }
                self.b.ret(Some(yes));
            }
            TyKind::Struct(s, args) => {
                for (n, f) in self.cx.fields(s, args).into_iter().enumerate() {
                    let (p, q) = (self.field(x, n as u32, f.1), self.field(y, n as u32, f.1));
                    let equal = self.equal_values(p, q);
                    self.return_unless(equal, no);
                }
                self.b.ret(Some(yes));
            }
            TyKind::Array(t, _) | TyKind::List(t) => {
                let len = self.b.value(Op::ArrLen, fixed::I64, &[x.v], 0);
                let other = self.b.value(Op::ArrLen, fixed::I64, &[y.v], 0);
                let same = self.b.compare(Op::IcmpEq, len, other);
                self.return_unless(same, no);
                self.count_to(len, &mut |body, i| {
                    let (p, q) =
                        (body.element(x, i, t, Span::NONE), body.element(y, i, t, Span::NONE));
                    let equal = body.equal_values(p, q);
                    body.return_unless(equal, no);
                });
                self.b.ret(Some(yes));
            }
            TyKind::Vector(..) => {
                let equal = self.equal_values(x, y);
                self.b.ret(Some(equal));
            }
            _ => self.b.ret(Some(no)),
        }
    }

    pub(super) fn return_unless(&mut self, cond: Value, result: Value) {
        let (leave, go_on) = (self.new_block(), self.new_block());
        self.b.cbr(cond, go_on, leave);
        self.enter(leave);
        self.b.ret(Some(result));
        self.enter(go_on);
    }
}

impl Cx<'_> {
    /// `fn(view of T, view of T) bool`
    pub(super) fn equal_helper(&mut self, t: Ty) -> magpie_mpir::FnId {
        use magpie_mpir::{Builder, Domain, MpirFn};
        if let Some(&id) = self.helpers.get(&(Helper::Equal, t)) {
            return id;
        }
        let name = format!("miri.@equal.{}", self.ty_name(t));
        let fn_id = self.reserve(&name);
        self.helpers.insert((Helper::Equal, t), fn_id);
        let param = self.param_machine(t);
        let sid = magpie_types::Sid::new(magpie_types::SidKind::Function, &name);
        let mut f = MpirFn::new(sid, name, fixed::BOOL, Domain::Host);
        let a = f.add_param("a", param, Span::NONE);
        let b = f.add_param("b", param, Span::NONE);
        let mut body = Body::new(self, Builder::new(&mut f), false, Vec::new());
        let (x, y) = (Val { ty: t, v: a, owned: false }, Val { ty: t, v: b, owned: false });
        body.equal_parts(x, y);
        body.b.finish();
        self.finish_fn(fn_id, f);
        fn_id
    }
}
