//! Patterns and `match`.

use super::body::{Body, Val};
use super::locals::LocalKind;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::{Item, Module};
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Block as MpirBlock, Op, Value};
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    /// Whether an expression names something that stays what it is: a local that is no `var`, or a
    /// part of one.
    pub(super) fn is_fixed(&self, mut e: ExprId) -> bool {
        loop {
            match self.cx.program.ast[e].kind {
                ExprKind::Member(base, _) | ExprKind::Field(base, _) | ExprKind::Index(base, _) => {
                    e = base;
                }
                ExprKind::Name(name) => {
                    let local = self.lookup(name).map(|id| &self.locals[id as usize]);
                    return local.is_some_and(|l| {
                        !l.mutable && matches!(l.kind, LocalKind::Var(_) | LocalKind::Value(_))
                    });
                }
                _ => return false,
            }
        }
    }

    /// `match`: a value when the context wants one, or when the arms give some. `None`: no arm
    /// reaches its end.
    pub(super) fn match_expr(
        &mut self,
        scrutinee: ExprId,
        arms: &[Arm],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Option<Val>> {
        let val = self.expr(scrutinee, None)?;
        // The names that arms bind show parts of the value as it is now.
        let v = if self.is_fixed(scrutinee) { val.v } else { self.own(val) };
        let val = Val { v, owned: false, ..val };
        let mut covers = Vec::new();
        let join = self.new_block();
        let mut result: Option<(Ty, Option<magpie_mpir::Variable>)> = want.map(|t| {
            let id = self.machine(t);
            (t, (id != fixed::UNIT).then(|| self.b.declare(id)))
        });
        let mut failed = false;
        let mut ways = self.part_ways();
        for arm in arms {
            let fail = self.new_block();
            self.push_scope();
            let fine = self.arm_test(arm, val, fail);
            failed |= fine.is_err();
            if arm.guard.is_none() && fine.is_ok() {
                covers.extend(arm.patterns.iter().map(|&p| self.cover(p, val.ty)));
            }
            let value = match (&arm.body, result) {
                (ArmBody::Value(e), result) => self.arm_value(*e, result.map(|r| r.0)),
                (ArmBody::Block(block), Some((t, Some(_)))) => self.block_value(block, t),
                (ArmBody::Block(block), _) => {
                    self.block(block);
                    Ok(None)
                }
            };
            self.end_way(&mut ways);
            match value {
                Ok(Some(val)) => {
                    let (_, var) = *result.get_or_insert_with(|| {
                        let id = self.machine(val.ty);
                        (val.ty, (id != fixed::UNIT).then(|| self.b.declare(id)))
                    });
                    if let Some(var) = var {
                        let v = self.own(val);
                        self.b.write(var, v);
                    }
                    self.go_to(join);
                }
                Ok(None) => {
                    if matches!(result, Some((_, Some(_)))) && !self.b.is_ended() {
                        self.b.unreachable();
                    }
                    self.go_to(join);
                }
                Err(Poisoned) => {
                    failed = true;
                    self.go_to(join);
                }
            }
            self.pop_scope();
            self.enter(fail);
        }
        self.b.unreachable();
        let missing = if failed { Vec::new() } else { self.not_covered(&covers, val.ty) };
        if !missing.is_empty() {
            let message = format!("this `match` does not cover {}", missing.join(", "));
            self.error(Code::MIR0212, span, message, "add arms for them, or an arm with `_`");
            failed = true;
        }
        self.enter(join);
        self.join_ways(ways);
        if failed {
            return Err(Poisoned);
        }
        match result {
            _ if !self.b.has_preds(join) => Ok(None),
            Some((t, Some(var))) => {
                let v = self.b.read(var);
                Ok(Some(self.val(t, v)))
            }
            _ => Ok(Some(self.unit())),
        }
    }

    /// The value of an arm, of a wanted type; none when the arm ends the program.
    fn arm_value(&mut self, e: ExprId, want: Option<Ty>) -> Lower<Option<Val>> {
        let val = self.expr_or_nothing(e, want)?;
        if val.ty == ty::UNIT && !self.is_live() {
            return Ok(None);
        }
        let span = self.expr_span(e);
        match want {
            Some(t) => self.coerce(val, t, span).map(Some),
            None => Ok(Some(val)),
        }
    }

    /// Goes on where a pattern of the arm and its guard hold.
    fn arm_test(&mut self, arm: &Arm, val: Val, fail: MpirBlock) -> Lower<()> {
        let mut fine = Ok(());
        if let [one] = arm.patterns[..] {
            fine = self.test(one, val, fail);
        } else {
            let body = self.new_block();
            for (n, &p) in arm.patterns.iter().enumerate() {
                let last = n + 1 == arm.patterns.len();
                let next = if last { fail } else { self.new_block() };
                if let PatternKind::Name(name) = self.cx.program.ast[p].kind
                    && !self.is_variant_name(name, val.ty)
                {
                    let span = self.cx.program.ast[p].span;
                    let help = "write an arm of its own for it";
                    fine =
                        Err(self.error(Code::MIR0202, span, "a name among joined patterns", help));
                }
                fine = self.test(p, val, next).and(fine);
                self.b.br(body);
                if !last {
                    self.enter(next);
                }
            }
            self.enter(body);
        }
        if let Some(guard) = arm.guard {
            match self.condition(guard) {
                Ok(v) => {
                    let go_on = self.new_block();
                    self.b.cbr(v, go_on, fail);
                    self.enter(go_on);
                }
                Err(Poisoned) => fine = Err(Poisoned),
            }
        }
        fine
    }

    pub(super) fn is_variant_name(&mut self, name: Sym, t: Ty) -> bool {
        match self.cx.tys.kind(t) {
            TyKind::Enum(n, args) => self.cx.variants(n, args).iter().any(|v| v.0 == name),
            _ => false,
        }
    }

    /// Goes on where the value has the form of the pattern, to `fail` where it has not; binds the
    /// names of the pattern.
    pub(super) fn test(&mut self, id: PatternId, val: Val, fail: MpirBlock) -> Lower<()> {
        let program = self.cx.program;
        let pattern = &program.ast[id];
        match &pattern.kind {
            PatternKind::Wildcard => Ok(()),
            &PatternKind::Literal(e) => {
                let literal = self.expr_as(e, val.ty)?;
                let v = self.equal_values(val, literal);
                let go_on = self.new_block();
                self.b.cbr(v, go_on, fail);
                self.enter(go_on);
                Ok(())
            }
            &PatternKind::Name(name) => {
                if self.is_variant_name(name, val.ty) {
                    let ident = Ident { sym: name, span: pattern.span };
                    return self.test_variant(&[ident], &[], val, fail, pattern.span);
                }
                if let Some(known) = self.cx.constant(name, pattern.span) {
                    let v = self.const_value(known.value, known.ty, Some(val.ty), pattern.span)?;
                    let v = self.coerce(v, val.ty, pattern.span)?;
                    let v = self.equal_values(val, v);
                    let go_on = self.new_block();
                    self.b.cbr(v, go_on, fail);
                    self.enter(go_on);
                    return Ok(());
                }
                self.declare_value(name, pattern.span, val.ty, val.v);
                Ok(())
            }
            PatternKind::Variant { path, fields } => {
                self.test_variant(path, fields, val, fail, pattern.span)
            }
            PatternKind::Tuple(parts) => {
                let TyKind::Tuple(items) = self.cx.tys.kind(val.ty) else {
                    let message = format!("a `{}` is no tuple", self.cx.ty_name(val.ty));
                    let help = "write a pattern of its form";
                    return Err(self.error(Code::MIR0202, pattern.span, message, help));
                };
                let items = self.cx.tys.items(items).to_vec();
                if items.len() != parts.len() {
                    let message =
                        format!("a tuple of {} has {} patterns", items.len(), parts.len());
                    return Err(self.error(
                        Code::MIR0202,
                        pattern.span,
                        message,
                        "write one for each",
                    ));
                }
                for (n, (&part, t)) in parts.iter().zip(items).enumerate() {
                    let t = self.norm(t);
                    let item = self.field(val, n as u32, t);
                    self.test(part, item, fail)?;
                }
                Ok(())
            }
        }
    }

    fn test_variant(
        &mut self,
        path: &[Ident],
        fields: &[PatternId],
        val: Val,
        fail: MpirBlock,
        span: Span,
    ) -> Lower<()> {
        let (variant, tys) = self.variant_of(path, val.ty, span)?;
        if tys.len() != fields.len() {
            let name = path.last().map_or("", |n| self.cx.program.name(n.sym)).to_string();
            let message = format!("`{name}` has {} fields, not {}", tys.len(), fields.len());
            return Err(self.error(Code::MIR0202, span, message, "write a pattern for each"));
        }
        let is = match self.enum_tag(val) {
            Some(tag) => {
                let wanted = self.i32(variant as i32);
                self.b.compare(Op::IcmpEq, tag, wanted)
            }
            None => super::clone::enum_is(self, val.v, variant),
        };
        let go_on = self.new_block();
        self.b.cbr(is, go_on, fail);
        self.enter(go_on);
        for (n, (&field, t)) in fields.iter().zip(tys).enumerate() {
            let part = self.payload(val, variant, n as u32, t);
            self.test(field, part, fail)?;
        }
        Ok(())
    }

    /// The number of the variant of an enum whose values are copied.
    pub(super) fn enum_tag(&mut self, val: Val) -> Option<Value> {
        if !matches!(self.cx.tys.kind(val.ty), TyKind::Enum(..)) || !self.is_copy(val.ty) {
            return None;
        }
        Some(match self.cx.is_plain_enum(val.ty) {
            // Devices have the number itself.
            true if self.device => val.v,
            true => self.b.value(Op::EnumTag, fixed::I32, &[val.v], 0),
            false => self.b.value(Op::StructGet, fixed::I32, &[val.v], 0),
        })
    }

    /// Number and field types of a variant of a type.
    pub(super) fn variant_of(
        &mut self,
        path: &[Ident],
        t: Ty,
        span: Span,
    ) -> Lower<(u32, Vec<Ty>)> {
        let Some(&last) = path.last() else { return Err(Poisoned) };
        let text = self.cx.program.name(last.sym).to_string();
        match (self.cx.tys.kind(t), text.as_str()) {
            (TyKind::Option(_), "None") => return Ok((0, Vec::new())),
            (TyKind::Option(t), "Some") => return Ok((1, vec![t])),
            (TyKind::Result(t, _), "Ok") => return Ok((0, vec![t])),
            (TyKind::Result(_, e), "Err") => return Ok((1, vec![e])),
            (TyKind::Enum(n, args), _) => {
                let owner = path.len().checked_sub(2).map(|at| path[at].sym);
                let program = self.cx.program;
                let owner = match (path, owner) {
                    ([module, name, _], _) => match program.module(module.sym, span) {
                        Some(Module::File(file)) => Some(program.exported(file, name.sym)),
                        _ => Some(None),
                    },
                    (_, owner) => owner.map(|name| program.item(name, span)),
                };
                let right = owner.is_none_or(|item| item == Some(Item::Enum(n)));
                let variants = self.cx.variants(n, args);
                if let (true, Some(at)) = (right, variants.iter().position(|v| v.0 == last.sym)) {
                    return Ok((at as u32, variants[at].1.clone()));
                }
            }
            (TyKind::Error, _) => return Err(Poisoned),
            _ => {}
        }
        let message = format!("a `{}` is never `{text}`", self.cx.ty_name(t));
        Err(self.error(Code::MIR0202, span, message, "write a variant of its type, or `_`"))
    }
}
