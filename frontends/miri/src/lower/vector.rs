//! `Vec2`, `Vec3`, `Vec4`: native vectors in kernels, structs of their components on the host.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};

impl Body<'_, '_, '_> {
    pub(super) fn new_vector(
        &mut self,
        t: Ty,
        component: Ty,
        n: u8,
        args: &[Arg],
        span: Span,
    ) -> Lower<Val> {
        if args.len() != n as usize {
            let message = format!("`Vec{n}` has {n} components, not {}", args.len());
            return Err(self.error(Code::MIR0211, span, message, "give one value for each"));
        }
        self.check_names(&format!("Vec{n}"), args)?;
        let mut parts = Vec::with_capacity(4);
        for arg in args {
            parts.push(self.expr_as(arg.value, component)?.v);
        }
        self.at(span);
        Ok(self.vector_of(t, parts))
    }

    /// A vector of its components.
    pub(super) fn vector_of(&mut self, t: Ty, mut parts: Vec<Value>) -> Val {
        let id = self.machine(t);
        if self.device {
            let v = self.b.value(Op::VecNew, id, &parts, 0);
            return self.val(t, v);
        }
        if parts.len() == 3 {
            let component = self.b.ty(parts[0]);
            parts.push(self.b.func().zero(component));
        }
        let v = self.b.value(Op::StructNew, id, &parts, 0);
        self.val(t, v)
    }

    fn vector_kind(&self, t: Ty) -> Option<(Ty, u8)> {
        match self.cx.tys.kind(t) {
            TyKind::Vector(c, n) => Some((c, n)),
            _ => None,
        }
    }

    fn components(&mut self, val: Val, component: Ty, n: u8) -> Vec<Val> {
        (0..n).map(|i| self.field(val, i.into(), component)).collect()
    }

    pub(super) fn vector_negate(&mut self, val: Val) -> Lower<Val> {
        let (c, n) = self.vector_kind(val.ty).ok_or(Poisoned)?;
        let is_float = self.cx.tys.is_float(c);
        let parts = self.components(val, c, n);
        let parts = parts
            .into_iter()
            .map(|part| match is_float {
                true => self.b.same(Op::FNeg, &[part.v]),
                false => {
                    let id = self.machine(c);
                    let zero = self.b.const_bits(id, 0);
                    self.b.same(Op::ISub, &[zero, part.v])
                }
            })
            .collect();
        Ok(self.vector_of(val.ty, parts))
    }

    /// A number beside a vector: `int` and `float` become what its components are.
    fn as_component(&mut self, val: Val, component: Ty, span: Span) -> Lower<Val> {
        let adapts = val.ty == ty::INT && self.cx.tys.is_int(component)
            || val.ty == ty::FLOAT && component == ty::F32;
        if adapts && !self.device { self.coerce(val, component, span) } else { Ok(val) }
    }

    /// An operation between vectors, or a vector and a number, component by component.
    pub(super) fn vector_binary(&mut self, op: BinaryOp, x: Val, y: Val, span: Span) -> Lower<Val> {
        let (a, b) = (self.vector_kind(x.ty), self.vector_kind(y.ty));
        let (c, n) = a.or(b).ok_or(Poisoned)?;
        let (x, y) = match (a, b) {
            (Some(_), None) => (x, self.as_component(y, c, span)?),
            (None, Some(_)) => (self.as_component(x, c, span)?, y),
            _ => (x, y),
        };
        let fits = match (a, b) {
            (Some(a), Some(b)) => a == b,
            (Some(_), None) => y.ty == c,
            _ => x.ty == c,
        };
        let is_arithmetic = op.is_arithmetic() && op != BinaryOp::Rem;
        if !fits || !is_arithmetic && !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            let (a, b) = (self.cx.ty_name(x.ty), self.cx.ty_name(y.ty));
            let message = format!("`{}` has no meaning for `{a}` and `{b}`", op.text());
            let help = "use vectors of one type, or a vector and a number of its component type";
            return Err(self.error(Code::MIR2201, span, message, help));
        }
        let t = if a.is_some() { x.ty } else { y.ty };
        // Native operations where there are some.
        if self.device && is_arithmetic && self.cx.tys.is_float(c) {
            let id = self.machine(t);
            let wide = |body: &mut Self, val: Val, is_vector: bool| match is_vector {
                true => val.v,
                false => body.b.value(Op::VecSplat, id, &[val.v], 0),
            };
            let (x, y) = (wide(self, x, a.is_some()), wide(self, y, b.is_some()));
            let op = match op {
                BinaryOp::Add => Op::FAdd,
                BinaryOp::Sub => Op::FSub,
                BinaryOp::Mul => Op::FMul,
                _ => Op::FDiv,
            };
            let v = self.float_op(op, &[x, y]);
            return Ok(self.val(t, v));
        }
        let xs = match a {
            Some(_) => self.components(x, c, n),
            None => vec![x; n as usize],
        };
        let ys = match b {
            Some(_) => self.components(y, c, n),
            None => vec![y; n as usize],
        };
        let mut parts = Vec::with_capacity(4);
        for (x, y) in xs.into_iter().zip(ys) {
            parts.push(self.apply(op, x, y, span)?);
        }
        if is_arithmetic {
            return Ok(self.vector_of(t, parts.into_iter().map(|p| p.v).collect()));
        }
        let join = if op == BinaryOp::Eq { Op::IAnd } else { Op::IOr };
        let mut all = parts[0];
        for part in &parts[1..] {
            all.v = self.b.same(join, &[all.v, part.v]);
        }
        Ok(all)
    }

    /// `dot length normalize cross reflect`
    pub(super) fn vector_builtin(&mut self, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        let count = if matches!(name, "length" | "normalize") { 1 } else { 2 };
        if args.len() != count {
            let message = format!("`{name}` gets {} arguments instead of {count}", args.len());
            return Err(self.error(Code::MIR0211, span, message, "give one for each parameter"));
        }
        let mut vals = Vec::new();
        for arg in args {
            vals.push(self.expr(arg.value, None)?);
        }
        let kinds: Vec<Option<(Ty, u8)>> = vals.iter().map(|v| self.vector_kind(v.ty)).collect();
        let names: Vec<String> = vals.iter().map(|v| self.cx.ty_name(v.ty)).collect();
        let why = if kinds.iter().any(Option::is_none) {
            Some("it takes vectors")
        } else if vals.iter().any(|v| v.ty != vals[0].ty) {
            Some("both vectors must have one type")
        } else if name == "cross" && kinds[0].is_some_and(|k| k.1 != 3) {
            Some("it is defined for `Vec3` only")
        } else if kinds[0].is_some_and(|k| !self.cx.tys.is_float(k.0)) && name != "dot" {
            Some("it needs components of a float type")
        } else {
            None
        };
        if let Some(why) = why {
            let message = format!("`{name}` of {}: {why}", names.join(" and "));
            return Err(self.error(Code::MIR2201, span, message, "give vectors that it takes"));
        }
        let (c, n) = kinds[0].ok_or(Poisoned)?;
        let t = vals[0].ty;
        self.at(span);
        if self.device && self.cx.tys.is_float(c) {
            let args: Vec<Value> = vals.iter().map(|v| v.v).collect();
            let (vec, scalar) = (self.machine(t), self.machine(c));
            let (op, ret, ty) = match name {
                "dot" => (Op::VecDot, scalar, c),
                "length" => (Op::VecLength, scalar, c),
                "normalize" => (Op::VecNormalize, vec, t),
                "cross" => (Op::VecCross, vec, t),
                _ => (Op::VecReflect, vec, t),
            };
            let v = self.b.value(op, ret, &args, 0);
            return Ok(self.val(ty, v));
        }
        let parts: Vec<Vec<Val>> = vals.iter().map(|&v| self.components(v, c, n)).collect();
        let dot = |body: &mut Self, a: &[Val], b: &[Val]| -> Lower<Val> {
            let mut sum = body.apply(BinaryOp::Mul, a[0], b[0], span)?;
            for (&x, &y) in a[1..].iter().zip(&b[1..]) {
                let product = body.apply(BinaryOp::Mul, x, y, span)?;
                sum = body.apply(BinaryOp::Add, sum, product, span)?;
            }
            Ok(sum)
        };
        match name {
            "dot" => dot(self, &parts[0], &parts[1]),
            "length" => {
                let square = dot(self, &parts[0], &parts[0])?;
                let v = self.b.same(Op::FSqrt, &[square.v]);
                Ok(self.val(c, v))
            }
            "normalize" => {
                let square = dot(self, &parts[0], &parts[0])?;
                let length = self.b.same(Op::FSqrt, &[square.v]);
                let length = self.val(c, length);
                self.vector_binary(BinaryOp::Div, vals[0], length, span)
            }
            "cross" => {
                let (a, b) = (&parts[0], &parts[1]);
                let mut out = Vec::with_capacity(4);
                for (i, j) in [(1, 2), (2, 0), (0, 1)] {
                    let p = self.apply(BinaryOp::Mul, a[i], b[j], span)?;
                    let q = self.apply(BinaryOp::Mul, a[j], b[i], span)?;
                    out.push(self.apply(BinaryOp::Sub, p, q, span)?.v);
                }
                Ok(self.vector_of(t, out))
            }
            _ => {
                // v - 2 * dot(n, v) * n
                let d = dot(self, &parts[1], &parts[0])?;
                let twice = self.apply(BinaryOp::Add, d, d, span)?;
                let scaled = self.vector_binary(BinaryOp::Mul, vals[1], twice, span)?;
                self.vector_binary(BinaryOp::Sub, vals[0], scaled, span)
            }
        }
    }

    /// `mix(a, b, t)` of two vectors and a number.
    pub(super) fn vector_mix(&mut self, vals: &[Val], span: Span) -> Lower<Val> {
        let (c, _) = self.vector_kind(vals[0].ty).ok_or(Poisoned)?;
        let t = self.as_component(vals[2], c, span)?;
        let fits = vals[1].ty == vals[0].ty && t.ty == c && self.cx.tys.is_float(c);
        if !fits {
            let help =
                "write `mix(a, b, t)` with vectors `a` and `b` of one float type and a number `t`";
            return Err(self.error(Code::MIR2201, span, "`mix` of these types", help));
        }
        let one = self.float_literal(1.0, None, Some(c));
        let rest = self.apply(BinaryOp::Sub, one, t, span)?;
        let a = self.vector_binary(BinaryOp::Mul, vals[0], rest, span)?;
        let b = self.vector_binary(BinaryOp::Mul, vals[1], t, span)?;
        self.vector_binary(BinaryOp::Add, a, b, span)
    }
}
