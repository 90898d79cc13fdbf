//! Assignments.

use super::body::{Body, Val};
use super::locals::LocalKind;
use super::place::{Path, Step};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{TyKind, fixed as ty};
use crate::walk::{Node, walk_expr};
use magpie_diag::{Code, Span};

impl Body<'_, '_, '_> {
    pub(super) fn assign(
        &mut self,
        target: ExprId,
        op: Option<BinaryOp>,
        value: ExprId,
        span: Span,
    ) -> Lower<()> {
        let program = self.cx.program;
        if let ExprKind::Name(name) = program.ast[target].kind {
            if program.name(name) == "_" && op.is_none() {
                return self.expr_or_nothing(value, None).map(drop);
            }
            if let Some(id) = self.lookup(name)
                && let LocalKind::Resident(_) = self.locals[id as usize].kind
            {
                return self.assign_resident(id, op, value, span);
            }
        }
        if let Some((_, id)) = self.assigned_whole(target) {
            self.check_accumulator(id, span)?;
        }
        if self.device
            && let Some(done) = self.device_assign(target, op, value, span)?
        {
            return Ok(done);
        }
        if let Some(id) = self.resident_root(target) {
            return Err(self.cross_read(self.locals[id as usize].name, span));
        }
        let path = self.path(target)?;
        let new = match op {
            None => {
                if let Some(id) = self.resident_of(value) {
                    let val = self.read_back(id, span)?;
                    self.coerce(val, path.ty, span)?
                } else if let Some(val) = self.reduce_on_device(value)? {
                    self.coerce(val, path.ty, span)?
                } else {
                    self.expr_as(value, path.ty)?
                }
            }
            Some(op) => {
                if let Some((&last, before)) = path.steps.split_last()
                    && !self.is_copy(path.root_ty)
                    && self.only_reads(value)
                {
                    return self.update_part(&path, before, last, op, value, span);
                }
                let old = self.read_path(&path);
                let old = self.keep(old, &[value]);
                let new = self.updated(op, old, value, span, &mut |_, old| old)?;
                self.coerce(new, path.ty, span)?
            }
        };
        let v = self.own(new);
        self.at(span);
        self.write_path(&path, v);
        Ok(())
    }

    /// What `old op= value` makes of a value. `take` gives the old one when the right side is known.
    fn updated(
        &mut self,
        op: BinaryOp,
        old: Val,
        value: ExprId,
        span: Span,
        take: &mut dyn FnMut(&mut Self, Val) -> Val,
    ) -> Lower<Val> {
        if op == BinaryOp::Add
            && old.ty == ty::STR
            && let Some(pieces) = self.added_pieces(value)
        {
            let pieces = pieces?;
            let old = take(self, old);
            self.at(span);
            let text = self.own(old);
            return Ok(self.append(text, pieces));
        }
        let is_vector = matches!(self.cx.tys.kind(old.ty), TyKind::Vector(..));
        let was = self.in_division;
        self.in_division = self.device && matches!(op, BinaryOp::Div | BinaryOp::Rem);
        let rhs = self.expr(value, (!is_vector).then_some(old.ty));
        self.in_division = was;
        let rhs = rhs?;
        let rhs = if is_vector { rhs } else { self.coerce(rhs, old.ty, span)? };
        let old = take(self, old);
        self.at(span);
        self.check_zero(op, old.ty, value, span)?;
        self.apply(op, old, rhs, span)
    }

    /// `place op= value` for a part of a container in memory, which is found once.
    fn update_part(
        &mut self,
        path: &Path,
        before: &[Step],
        last: Step,
        op: BinaryOp,
        value: ExprId,
        span: Span,
    ) -> Lower<()> {
        let container = self.container(path, before);
        let old = self.part_of(container, last);
        let new =
            self.updated(op, old, value, span, &mut |body, old| match body.is_copy(old.ty) {
                true => old,
                false => {
                    let taken = body.take(container, last, old);
                    body.val(old.ty, taken)
                }
            })?;
        let new = self.coerce(new, path.ty, span)?;
        let new = self.own(new);
        self.at(span);
        self.put(container, last, new);
        Ok(())
    }

    /// Whether an expression changes nothing, and keeps no handle of what it reads.
    fn only_reads(&self, e: ExprId) -> bool {
        let ast = &self.cx.program.ast;
        let mut only_reads = true;
        walk_expr(ast, e, &mut |node| {
            only_reads &= match node {
                Node::Stmt(_) | Node::Open | Node::Close | Node::Declare(_) => false,
                Node::Expr(e) => match ast[e].kind {
                    ExprKind::Int(_)
                    | ExprKind::Float(_)
                    | ExprKind::Bool(_)
                    | ExprKind::Str(_)
                    | ExprKind::Format(_)
                    | ExprKind::Name(_)
                    | ExprKind::Member(..)
                    | ExprKind::Field(..)
                    | ExprKind::Index(..)
                    | ExprKind::Unary(..)
                    | ExprKind::Binary(..)
                    | ExprKind::Cast(..)
                    | ExprKind::Cond { .. } => true,
                    ExprKind::Error
                    | ExprKind::None
                    | ExprKind::Type(_)
                    | ExprKind::Call(..)
                    | ExprKind::Range { .. }
                    | ExprKind::List(_)
                    | ExprKind::Map(_)
                    | ExprKind::Set(_)
                    | ExprKind::Tuple(_)
                    | ExprKind::Lambda(_)
                    | ExprKind::Match { .. } => false,
                },
            };
        });
        only_reads
    }

    /// The local name that an assignment changes as a whole or in a field: `k` of `k` and `k.x`.
    pub(super) fn assigned_whole(&self, mut target: ExprId) -> Option<(Sym, u32)> {
        let is_field = matches!(self.cx.program.ast[target].kind, ExprKind::Member(..));
        while let ExprKind::Member(base, _) = self.cx.program.ast[target].kind {
            target = base;
        }
        let ExprKind::Name(name) = self.cx.program.ast[target].kind else { return None };
        let id = self.lookup(name)?;
        let is_value =
            matches!(self.locals[id as usize].kind, LocalKind::Var(_) | LocalKind::Value(_));
        (is_value || !is_field).then_some((name, id))
    }

    /// A scalar from outside of a `forall` is not assigned in it.
    pub(super) fn check_accumulator(&mut self, id: u32, span: Span) -> Lower<()> {
        let Some((base, head)) = self.forall_base else { return Ok(()) };
        if id >= base {
            return Ok(());
        }
        let text = self.cx.program.name(self.locals[id as usize].name).to_string();
        let message = format!(
            "the body of this `forall` assigns to `{text}`, which is declared outside of it"
        );
        self.cx.report(
            magpie_diag::Diagnostic::new(Code::MIR1703, head, message)
                .with_secondary(span, "assigned here")
                .with_help("use `reduce`, write to an element of an array, or use a `for` loop"),
        );
        Err(Poisoned)
    }
}
