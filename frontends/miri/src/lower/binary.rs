//! Operators and casts.

use super::body::{Body, Val};
use super::expr::fits_in;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, fixed};

impl Body<'_, '_, '_> {
    pub(super) fn unary(
        &mut self,
        op: UnaryOp,
        operand: ExprId,
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        // `-literal` is a literal.
        if op == UnaryOp::Neg {
            match program.ast[operand].kind {
                ExprKind::Int(n) => return self.int_literal(-i128::from(n), want, span),
                ExprKind::Float(text) => {
                    let text = format!("-{}", program.name(text));
                    return Ok(self.float_literal(text.parse().unwrap_or(0.0), Some(&text), want));
                }
                _ => {}
            }
        }
        let want = if op == UnaryOp::Not { Some(ty::BOOL) } else { want };
        let val = self.expr(operand, want)?;
        self.at(span);
        let is_int = self.cx.tys.is_int(val.ty);
        let is_float = self.cx.tys.is_float(val.ty);
        let id = self.machine(val.ty);
        let v = match op {
            UnaryOp::Not if val.ty == ty::BOOL => {
                let yes = self.b.func().const_bool(true);
                self.b.same(Op::IXor, &[val.v, yes])
            }
            UnaryOp::Plus if is_int || is_float => val.v,
            UnaryOp::Neg if is_float => self.b.same(Op::FNeg, &[val.v]),
            UnaryOp::Neg if is_int => {
                let zero = self.b.const_bits(id, 0);
                self.b.same(Op::ISub, &[zero, val.v])
            }
            UnaryOp::BitNot if is_int => {
                let ones = self.b.const_bits(id, u64::MAX);
                self.b.same(Op::IXor, &[val.v, ones])
            }
            UnaryOp::Neg if matches!(self.cx.tys.kind(val.ty), TyKind::Vector(..)) => {
                return self.vector_negate(val);
            }
            _ => {
                let message =
                    format!("this operator has no meaning for `{}`", self.cx.ty_name(val.ty));
                let help = "`not` takes a `bool`, `-` and `+` numbers, `~` integers";
                return Err(self.error(Code::MIR0202, span, message, help));
            }
        };
        Ok(self.val(val.ty, v))
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        match op {
            BinaryOp::And | BinaryOp::Or => return self.short_circuit(op, a, b),
            BinaryOp::In => return self.membership(a, b, span),
            BinaryOp::Coalesce => return self.coalesce(a, b, want, span),
            _ => {}
        }
        self.check_residencies(op, a, b, span)?;
        if op == BinaryOp::Add && matches!(self.cx.program.ast[b].kind, ExprKind::Format(_)) {
            return self.add_formatted(a, b, want, span);
        }
        let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        let was = self.in_division;
        self.in_division = self.device && (divides || was);
        let operands = self.operands(op, a, b, want, span);
        self.in_division = was;
        let (x, y) = operands?;
        self.at(span);
        self.check_zero(op, x.ty, b, span)?;
        self.apply(op, x, y, span)
    }

    /// `a + f"…"`
    fn add_formatted(&mut self, a: ExprId, b: ExprId, want: Option<Ty>, span: Span) -> Lower<Val> {
        let x = self.expr(a, want)?;
        let x = self.keep(x, &[b]);
        if x.ty == ty::STR
            && let Some(pieces) = self.added_pieces(b)
        {
            let pieces = pieces?;
            let text = self.own(x);
            return Ok(self.append(text, pieces));
        }
        let y = self.expr(b, want)?;
        let (x, y) = self.unify(BinaryOp::Add, x, y, span)?;
        self.apply(BinaryOp::Add, x, y, span)
    }

    /// Both operands in one type.
    fn operands(
        &mut self,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
        want: Option<Ty>,
        span: Span,
    ) -> Lower<(Val, Val)> {
        // A comparison wants nothing of its operands.
        let wants = |body: &Self, t: Ty| body.cx.tys.is_number(t) || t == ty::STR;
        let want = want.filter(|&t| {
            !matches!(
                op,
                BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::Gt
                    | BinaryOp::Ge
            ) && wants(self, t)
        });
        let (x, y) = match (self.cx.adapts(a), self.cx.adapts(b)) {
            (false, true) => {
                let x = self.expr(a, want)?;
                let component = self.component(x.ty);
                (x, self.expr(b, Some(component))?)
            }
            // A literal on the left is evaluated after the right side: nobody can see it.
            (true, false) => {
                let y = self.expr(b, want)?;
                let component = self.component(y.ty);
                (self.expr(a, Some(component))?, y)
            }
            (false, false) => {
                let x = self.expr(a, want)?;
                let x = self.keep(x, &[b]);
                let is_none = matches!(self.cx.program.ast[b].kind, ExprKind::None);
                let y = self.expr(b, if is_none { Some(x.ty) } else { want })?;
                (x, y)
            }
            (true, true) => {
                let x = self.expr(a, want)?;
                let mut y = self.expr(b, want)?;
                let mut x = x;
                // `1 + 2.5`: the integer literal is no float.
                if x.ty != y.ty && self.cx.tys.is_int(x.ty) == self.cx.tys.is_int(y.ty) {
                    y = self.coerce(y, x.ty, span)?;
                }
                x.owned = true;
                (x, y)
            }
        };
        self.unify(op, x, y, span)
    }

    /// The type that a literal beside a value takes.
    fn component(&self, t: Ty) -> Ty {
        match self.cx.tys.kind(t) {
            TyKind::Vector(c, _) => c,
            _ => t,
        }
    }

    /// Widens the narrower of two numbers of one kind.
    fn unify(&mut self, op: BinaryOp, x: Val, y: Val, span: Span) -> Lower<(Val, Val)> {
        if x.ty == y.ty {
            return Ok((x, y));
        }
        let vectors = [x.ty, y.ty].map(|t| matches!(self.cx.tys.kind(t), TyKind::Vector(..)));
        if vectors[0] || vectors[1] {
            return Ok((x, y));
        }
        let fail = |body: &mut Self| {
            if x.ty == ty::ERROR || y.ty == ty::ERROR {
                return Poisoned;
            }
            let (a, b) = (body.cx.ty_name(x.ty), body.cx.ty_name(y.ty));
            let message = format!("`{}` has operands of types `{a}` and `{b}`", op.text());
            let help = match body.cx.tys.is_number(x.ty) && body.cx.tys.is_number(y.ty) {
                true => format!("convert one of them: `… as {a}`"),
                false => "both operands must have one type".to_string(),
            };
            body.error(Code::MIR0202, span, message, help)
        };
        let (Some(p), Some(q)) = (self.scalar(x.ty), self.scalar(y.ty)) else {
            return Err(fail(self));
        };
        let same_kind = p.is_float() && q.is_float()
            || p.is_int() && q.is_int() && (fits_in(p, q) || fits_in(q, p));
        if !same_kind {
            return Err(fail(self));
        }
        let to_left = match p.is_float() {
            true => p.bit_width() >= q.bit_width(),
            false => fits_in(q, p),
        };
        let t = if to_left { x.ty } else { y.ty };
        let id = self.machine(t);
        let (x, y) = (self.b.cast(x.v, id), self.b.cast(y.v, id));
        Ok((self.val(t, x), self.val(t, y)))
    }

    /// A literal zero as the divisor of integers.
    /// Reports a division of integers by a literal zero.
    pub(super) fn check_zero(
        &mut self,
        op: BinaryOp,
        t: Ty,
        divisor: ExprId,
        span: Span,
    ) -> Lower<()> {
        let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        if !divides || !self.cx.tys.is_int(t) || !self.cx.adapts(divisor) {
            return Ok(());
        }
        let known = self.known_int(divisor);
        if known != Some(0) {
            return Ok(());
        }
        let help = "divide by something else";
        Err(self.error(Code::MIR0204, span, "this divides by zero", help))
    }

    /// An operation on two values of one type.
    pub(super) fn apply(&mut self, op: BinaryOp, x: Val, y: Val, span: Span) -> Lower<Val> {
        use BinaryOp::*;
        if matches!(self.cx.tys.kind(x.ty), TyKind::Vector(..))
            || matches!(self.cx.tys.kind(y.ty), TyKind::Vector(..))
        {
            return self.vector_binary(op, x, y, span);
        }
        let comparison = matches!(op, Eq | Ne | Lt | Le | Gt | Ge);
        if let Some(p) = self.scalar(x.ty) {
            if comparison && (p != PrimType::Bool || matches!(op, Eq | Ne)) {
                let v = self.b.compare(compare_op(op, p), x.v, y.v);
                return Ok(self.val(ty::BOOL, v));
            }
            if p.is_float() && op.is_arithmetic() {
                let v = self.float_op(float_op(op), &[x.v, y.v]);
                return Ok(self.val(x.ty, v));
            }
            if p.is_int() && !comparison {
                let v = self.int_op(op, p, x.v, y.v);
                return Ok(self.val(x.ty, v));
            }
        }
        if x.ty == ty::STR {
            if op == Add {
                let text = self.own(x);
                let v = self.rt_value(RtFn::StrAppend, fixed::STR, &[text, y.v]);
                return Ok(self.val(ty::STR, v));
            }
            if matches!(op, Eq | Ne) {
                return Ok(self.equality(op, x, y));
            }
            if comparison {
                let order = self.rt_value(RtFn::StrCompare, fixed::I32, &[x.v, y.v]);
                let zero = self.i32(0);
                let v = self.b.compare(compare_op(op, PrimType::I32), order, zero);
                return Ok(self.val(ty::BOOL, v));
            }
        }
        if matches!(op, Eq | Ne) && self.has_equality(x.ty) {
            return Ok(self.equality(op, x, y));
        }
        let message = format!("`{}` has no meaning for `{}`", op.text(), self.cx.ty_name(x.ty));
        let help = "use numbers, or a function of your own";
        Err(self.error(Code::MIR0202, span, message, help))
    }

    fn int_op(&mut self, op: BinaryOp, p: PrimType, x: Value, y: Value) -> Value {
        use BinaryOp::*;
        let signed = p.is_signed();
        let mpir = match op {
            Add => Op::IAdd,
            Sub => Op::ISub,
            Mul => Op::IMul,
            Div if signed => Op::ISdiv,
            Div => Op::IUdiv,
            Rem if signed => Op::ISrem,
            Rem => Op::IUrem,
            BitAnd => Op::IAnd,
            BitOr => Op::IOr,
            _ => Op::IXor,
        };
        if matches!(op, Div | Rem)
            && !self.device
            && self.b.func().as_bits(y).is_none_or(|b| b == 0)
        {
            let zero = self.b.const_bits(p.id(), 0);
            let bad = self.b.compare(Op::IcmpEq, y, zero);
            self.panic_if(bad, "division by zero");
        }
        self.b.same(mpir, &[x, y])
    }

    fn short_circuit(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Lower<Val> {
        let is_and = op == BinaryOp::And;
        let x = self.condition(a)?;
        let result = self.b.declare(fixed::BOOL);
        let decided = self.b.func().const_bool(!is_and);
        self.b.write(result, decided);
        let (more, join) = (self.new_block(), self.new_block());
        match is_and {
            true => self.b.cbr(x, more, join),
            false => self.b.cbr(x, join, more),
        }
        self.enter(more);
        let y = self.condition(b);
        if let Ok(y) = y {
            self.b.write(result, y);
        }
        self.go_to(join);
        self.enter(join);
        y?;
        let v = self.b.read(result);
        Ok(self.val(ty::BOOL, v))
    }

    fn membership(&mut self, a: ExprId, b: ExprId, span: Span) -> Lower<Val> {
        if let ExprKind::Range { start, end, inclusive } = self.cx.program.ast[b].kind {
            let x = self.expr(a, None)?;
            if !self.cx.tys.is_int(x.ty) {
                return Err(self.mismatch(span, x.ty, ty::INT));
            }
            let (low, high) = self.range_ends(start, end, inclusive, Code::MIR0202)?;
            let id = self.machine(low.ty);
            let x = self.b.cast(x.v, id);
            let above = self.b.compare(Op::IcmpSge, x, low.v);
            let below = self.b.compare(Op::IcmpSlt, x, high.v);
            let v = self.b.same(Op::IAnd, &[above, below]);
            return Ok(self.val(ty::BOOL, v));
        }
        if let Some(id) = self.resident_of(b) {
            return Err(self.refuse_method(self.locals[id as usize].name, "in", span));
        }
        self.no_alloc(span, "or search a collection")?;
        // The collection says what is looked for.
        let item_first = !self.cx.adapts(a);
        let early = match item_first {
            true => {
                let item = self.expr(a, None)?;
                Some(self.keep(item, &[b]))
            }
            false => None,
        };
        let whole = self.expr(b, None)?;
        let kind = self.cx.tys.kind(whole.ty);
        let wanted = match kind {
            TyKind::Array(t, _) | TyKind::List(t) | TyKind::Set(t) | TyKind::Map(t, _) => t,
            TyKind::Str => ty::STR,
            _ => {
                let message =
                    format!("a `{}` has no members to look for", self.cx.ty_name(whole.ty));
                return Err(self.error(
                    Code::MIR0202,
                    span,
                    message,
                    "use a collection or a range",
                ));
            }
        };
        let item = match early {
            Some(val) => self.coerce(val, wanted, span)?,
            None => self.expr_as(a, wanted)?,
        };
        Ok(self.contains(whole, item))
    }

    /// Whether a collection or text holds something.
    pub(super) fn contains(&mut self, whole: Val, item: Val) -> Val {
        let v = match self.cx.tys.kind(whole.ty) {
            TyKind::Str => self.rt_value(RtFn::StrContains, fixed::BOOL, &[whole.v, item.v]),
            TyKind::Set(_) | TyKind::Map(..) => {
                self.b.value(Op::MapContainsKey, fixed::BOOL, &[whole.v, item.v], 0)
            }
            _ => {
                let eq = self.equality_slot(item.ty);
                let item = self.look_at(item);
                self.b.value(Op::ArrContains, fixed::BOOL, &[whole.v, item], eq)
            }
        };
        self.val(ty::BOOL, v)
    }

    fn coalesce(&mut self, a: ExprId, b: ExprId, want: Option<Ty>, span: Span) -> Lower<Val> {
        let wanted = want.map(|t| self.cx.tys.intern(TyKind::Option(t)));
        let option = self.expr(a, wanted)?;
        let TyKind::Option(t) = self.cx.tys.kind(option.ty) else {
            let message = format!("`??` needs an option, not a `{}`", self.cx.ty_name(option.ty));
            return Err(self.error(Code::MIR0202, span, message, "leave the default out"));
        };
        self.no_alloc(span, "an option")?;
        let is = super::clone::enum_is(self, option.v, 1);
        let (yes, no, join) = (self.new_block(), self.new_block(), self.new_block());
        self.b.cbr(is, yes, no);
        self.enter(no);
        let other = self.expr(b, Some(t));
        // An option as the default gives an option.
        let result_ty = match other {
            Ok(other) if other.ty == option.ty => option.ty,
            _ => t,
        };
        let id = self.machine(result_ty);
        let result = self.b.declare(id);
        let other_span = self.expr_span(b);
        let other = other.and_then(|other| self.coerce(other, result_ty, other_span));
        if let Ok(other) = other {
            let v = self.own(other);
            self.b.write(result, v);
        }
        self.go_to(join);
        self.enter(yes);
        let v = if result_ty != t {
            self.own(option)
        } else if option.owned && !self.is_copy(t) {
            self.b.value(Op::EnumPayload, id, &[option.v], imm_pair(1, 0))
        } else {
            let inner = self.payload(option, 1, 0, t);
            self.own(inner)
        };
        self.b.write(result, v);
        self.go_to(join);
        self.enter(join);
        other?;
        let v = self.b.read(result);
        Ok(self.val(result_ty, v))
    }

    // ----- casts -----

    pub(super) fn cast(&mut self, value: ExprId, t: TypeExprId, span: Span) -> Lower<Val> {
        let to = self.resolve(t)?;
        if !self.cx.tys.is_number(to) {
            let message = format!("`as` cannot make a `{}`", self.cx.ty_name(to));
            return Err(self.error(Code::MIR0206, span, message, "it converts numbers to numbers"));
        }
        // A literal is converted from its exact value.
        if let Some(n) = self.literal_number(value) {
            let p = self.scalar(to).ok_or(Poisoned)?;
            if p.is_float() {
                return Ok(self.float_literal(n as f64, Some(&n.to_string()), Some(to)));
            }
            return Ok(self.const_val(to, n as u64));
        }
        let val = self.expr(value, None)?;
        if !self.cx.tys.is_number(val.ty) {
            if val.ty == ty::ERROR {
                return Err(Poisoned);
            }
            let from = self.cx.ty_name(val.ty);
            let message = format!("`as` cannot convert a `{from}`");
            let help = match val.ty {
                ty::BOOL => "write `1 if b else 0`",
                ty::STR => "use `to_int()` or `to_float()`",
                _ => "it converts numbers to numbers",
            };
            return Err(self.error(Code::MIR0206, span, message, help));
        }
        self.at(span);
        let id = self.machine(to);
        let v = self.b.cast(val.v, id);
        Ok(self.val(to, v))
    }

    /// The number of an integer literal, possibly negative.
    fn literal_number(&self, e: ExprId) -> Option<i128> {
        match self.cx.program.ast[e].kind {
            ExprKind::Int(n) => Some(n.into()),
            ExprKind::Unary(UnaryOp::Neg, e) => match self.cx.program.ast[e].kind {
                ExprKind::Int(n) => Some(-i128::from(n)),
                _ => None,
            },
            _ => None,
        }
    }
}

pub(super) fn compare_op(op: BinaryOp, p: PrimType) -> Op {
    use BinaryOp::*;
    let pick = |float, signed, unsigned| match (p.is_float(), p.is_signed()) {
        (true, _) => float,
        (false, true) => signed,
        (false, false) => unsigned,
    };
    match op {
        Eq => pick(Op::FcmpOeq, Op::IcmpEq, Op::IcmpEq),
        Ne => pick(Op::FcmpUne, Op::IcmpNe, Op::IcmpNe),
        Lt => pick(Op::FcmpOlt, Op::IcmpSlt, Op::IcmpUlt),
        Le => pick(Op::FcmpOle, Op::IcmpSle, Op::IcmpUle),
        Gt => pick(Op::FcmpOgt, Op::IcmpSgt, Op::IcmpUgt),
        _ => pick(Op::FcmpOge, Op::IcmpSge, Op::IcmpUge),
    }
}

fn float_op(op: BinaryOp) -> Op {
    match op {
        BinaryOp::Add => Op::FAdd,
        BinaryOp::Sub => Op::FSub,
        BinaryOp::Mul => Op::FMul,
        BinaryOp::Div => Op::FDiv,
        _ => Op::FRem,
    }
}
