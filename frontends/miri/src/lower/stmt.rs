//! Statements and blocks.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    /// The statements of a block in a scope of its own.
    pub(super) fn block(&mut self, block: &Block) {
        self.push_scope();
        for &stmt in &block.stmts {
            self.stmt(stmt);
        }
        self.pop_scope();
    }

    /// A block whose last statement is its value, if the context wants one of a type. `None`: the
    /// end of the block is not reached.
    pub(super) fn block_value(&mut self, block: &Block, want: Ty) -> Lower<Option<Val>> {
        self.push_scope();
        let result = match block.stmts.split_last() {
            Some((&last, before)) => {
                for &stmt in before {
                    self.stmt(stmt);
                }
                self.tail(last, want)
            }
            None => Ok(None),
        };
        self.pop_scope();
        result
    }

    /// The last statement of a block with a value.
    fn tail(&mut self, id: StmtId, want: Ty) -> Lower<Option<Val>> {
        let program = self.cx.program;
        let span = program.ast[id].span;
        if self.b.is_ended() {
            self.begin_dead();
        }
        match &program.ast[id].kind {
            &StmtKind::Expr(e) => {
                if let ExprKind::Match { scrutinee, arms } = &program.ast[e].kind {
                    return self.match_expr(*scrutinee, arms, Some(want), span);
                }
                let val = self.expr_or_nothing(e, Some(want))?;
                if val.ty == ty::UNIT && !self.is_live() {
                    return Ok(None);
                }
                self.coerce(val, want, span).map(Some)
            }
            StmtKind::If { arms, otherwise: Some(otherwise) } => {
                self.if_value(arms, otherwise, want)
            }
            _ => {
                self.stmt(id);
                if self.b.is_ended() || !self.is_live() {
                    return Ok(None);
                }
                let message =
                    format!("the value of type `{}` is missing here", self.cx.ty_name(want));
                let help = "end every path with a value, or with `return value`";
                Err(self.error(Code::MIR0210, span, message, help))
            }
        }
    }

    fn if_value(
        &mut self,
        arms: &[(Cond, Block)],
        otherwise: &Block,
        want: Ty,
    ) -> Lower<Option<Val>> {
        let id = self.machine(want);
        let result = self.b.declare(id);
        let join = self.new_block();
        let mut failed = false;
        let mut put = |body: &mut Self, val: Lower<Option<Val>>| match val {
            Ok(Some(val)) => {
                let v = body.own(val);
                if id != fixed::UNIT {
                    body.b.write(result, v);
                }
                body.go_to(join);
            }
            Ok(None) => {
                if !body.b.is_ended() {
                    body.b.unreachable();
                }
            }
            Err(Poisoned) => {
                failed = true;
                body.go_to(join);
            }
        };
        let mut ways = self.part_ways();
        for (cond, block) in arms {
            self.push_scope();
            let next = self.new_block();
            let fine = self.branch_on(*cond, next);
            let val = self.block_value(block, want);
            self.end_way(&mut ways);
            put(self, if fine.is_ok() { val } else { Err(Poisoned) });
            self.pop_scope();
            self.enter(next);
        }
        let val = self.block_value(otherwise, want);
        self.end_way(&mut ways);
        put(self, val);
        self.enter(join);
        self.join_ways(ways);
        if failed {
            return Err(Poisoned);
        }
        if !self.b.has_preds(join) {
            return Ok(None);
        }
        let v = self.b.read(result);
        Ok(Some(self.val(want, v)))
    }

    /// Goes on where the condition holds, and to `other` where it does not. Names that a pattern
    /// binds belong to the present scope.
    fn branch_on(&mut self, cond: Cond, other: magpie_mpir::Block) -> Lower<()> {
        let yes = self.new_block();
        match cond {
            Cond::Value { expr, negated } => {
                let v = self.condition(expr);
                let (a, b) = if negated { (other, yes) } else { (yes, other) };
                match v {
                    Ok(v) => self.b.cbr(v, a, b),
                    Err(Poisoned) => {
                        let v = self.b.func().const_bool(true);
                        self.b.cbr(v, a, b);
                    }
                }
                self.enter(yes);
                v.map(drop)
            }
            Cond::Let(pattern, value) => {
                let val = self.expr(value, None);
                let fine = match val {
                    Ok(val) => {
                        // The names show parts of the value as it is now.
                        let v = if self.is_fixed(value) { val.v } else { self.own(val) };
                        self.test(pattern, Val { v, owned: false, ..val }, other)
                    }
                    Err(Poisoned) => {
                        let v = self.b.func().const_bool(true);
                        let go_on = self.new_block();
                        self.b.cbr(v, go_on, other);
                        self.enter(go_on);
                        Err(Poisoned)
                    }
                };
                self.b.br(yes);
                self.enter(yes);
                fine
            }
        }
    }

    pub(super) fn stmt(&mut self, id: StmtId) {
        let done = self.stmt_inner(id);
        self.skip(done);
    }

    fn stmt_inner(&mut self, id: StmtId) -> Lower<()> {
        let program = self.cx.program;
        let node = &program.ast[id];
        let span = node.span;
        if self.b.is_ended() {
            self.begin_dead();
        }
        self.at(span);
        match &node.kind {
            StmtKind::Error => Err(Poisoned),
            StmtKind::Let { gpu, mutable, binders } => {
                for binder in binders {
                    let bound = match gpu {
                        true => self.gpu_binding(binder, *mutable, span),
                        false => self.binding(binder, *mutable),
                    };
                    if bound.is_err() {
                        self.declare_poisoned(binder.name);
                    }
                    self.skip(bound);
                }
                Ok(())
            }
            StmtKind::Const(binder) => {
                self.cx.check_const(id);
                self.cx.local_consts.push((binder.name.sym, id));
                Ok(())
            }
            &StmtKind::Shared { name, ty } => self.shared(name, ty, span),
            &StmtKind::Assign { target, op, value } => self.assign(target, op, value, span),
            &StmtKind::Expr(e) => match &program.ast[e].kind {
                ExprKind::Match { scrutinee, arms } => {
                    self.match_expr(*scrutinee, arms, None, span).map(drop)
                }
                _ => self.expr_or_nothing(e, None).map(drop),
            },
            StmtKind::If { arms, otherwise } => {
                let join = self.new_block();
                let mut ways = self.part_ways();
                for (cond, block) in arms {
                    self.push_scope();
                    let next = self.new_block();
                    let done = self.branch_on(*cond, next);
                    self.skip(done);
                    self.varying_branch(*cond, |body| body.block(block));
                    self.pop_scope();
                    self.end_way(&mut ways);
                    self.go_to(join);
                    self.enter(next);
                }
                if let Some(otherwise) = otherwise {
                    self.block(otherwise);
                }
                self.end_way(&mut ways);
                self.go_to(join);
                self.enter(join);
                self.join_ways(ways);
                Ok(())
            }
            StmtKind::While { cond, body } if self.is_always(*cond) => {
                self.forever(body);
                Ok(())
            }
            StmtKind::While { cond, body } => {
                let (head, exit) = (self.new_block(), self.new_block());
                self.b.br(head);
                self.b.switch_to(head);
                self.push_scope();
                self.begin_loop(exit, head, false);
                let done = self.branch_on(*cond, exit);
                self.skip(done);
                self.block(body);
                self.end_loop();
                self.pop_scope();
                self.go_to(head);
                self.b.seal(head);
                self.enter(exit);
                Ok(())
            }
            StmtKind::DoWhile { body, cond } => {
                let (head, check, exit) = (self.new_block(), self.new_block(), self.new_block());
                self.b.br(head);
                self.b.switch_to(head);
                self.begin_loop(exit, check, false);
                self.block(body);
                self.end_loop();
                self.go_to(check);
                self.enter(check);
                self.push_scope();
                let done = self.branch_on(*cond, exit);
                self.skip(done);
                self.pop_scope();
                self.b.br(head);
                self.b.seal(head);
                self.enter(exit);
                Ok(())
            }
            StmtKind::Forever(body) => {
                self.forever(body);
                Ok(())
            }
            StmtKind::For { names, iter, body } => self.for_loop(names, *iter, body),
            StmtKind::Forall(forall) => self.forall(forall, span),
            StmtKind::Frame { passes } => self.frame(passes, span),
            &StmtKind::Return(value) => self.return_stmt(value, span),
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(node.kind, StmtKind::Break);
                let word = if is_break { "break" } else { "continue" };
                match self.loops.last() {
                    Some(l) if !l.is_forall => {
                        let on_continue = l.on_continue;
                        if is_break {
                            self.leave_loop();
                        } else {
                            self.check_next_round();
                            self.b.br(on_continue);
                        }
                        Ok(())
                    }
                    None if self.kernel.is_none() => {
                        let message = format!("`{word}` stands in no loop");
                        Err(self.error(Code::MIR0215, span, message, "remove it"))
                    }
                    _ => {
                        let message = format!("`{word}` would leave the body of the kernel");
                        let help = "use `return` to end the work of one index";
                        Err(self.error(Code::MIR1805, span, message, help))
                    }
                }
            }
        }
    }

    // ----- bindings -----

    /// A name about which an error was reported, so that its uses are not reported too.
    fn declare_poisoned(&mut self, name: Ident) {
        let id = self.machine(ty::ERROR);
        let v = self.b.func().zero(id);
        self.declare_value(name.sym, name.span, ty::ERROR, v);
    }

    fn binding(&mut self, binder: &Binder, mutable: bool) -> Lower<()> {
        let declared = binder.ty.map(|t| self.resolve(t)).transpose()?;
        let span = binder.name.span;
        let Some(init) = binder.init else {
            let text = self.cx.program.name(binder.name.sym).to_string();
            let message = format!("`{text}` has no value");
            let help = "write `= value`";
            return Err(self.error(Code::MIR0202, span, message, help));
        };
        if let Some(id) = self.resident_of(init) {
            return self.read_back_binding(binder, declared, id, mutable);
        }
        if let Some(val) = self.reduce_on_device(init)? {
            let val = match declared {
                Some(t) => self.coerce(val, t, span)?,
                None => val,
            };
            let v = self.own(val);
            self.declare(binder.name, val.ty, mutable, v);
            return Ok(());
        }
        if self.device && self.alias(binder.name, init) {
            return Ok(());
        }
        if self.device && self.local_array(binder, declared, init, mutable)? {
            return Ok(());
        }
        let val = match declared {
            Some(t) => self.expr_as(init, t)?,
            None => self.expr(init, None)?,
        };
        let v = self.own(val);
        self.declare(binder.name, val.ty, mutable, v);
        Ok(())
    }

    // ----- return -----

    fn return_stmt(&mut self, value: Option<ExprId>, span: Span) -> Lower<()> {
        let done = self.return_value(value, span);
        if done.is_err() && !self.b.is_ended() {
            // Nothing behind it is reached, so that no other value is missing.
            self.b.unreachable();
        }
        done
    }

    fn return_value(&mut self, value: Option<ExprId>, span: Span) -> Lower<()> {
        if let Some(next) = self.returns.next_index {
            if let Some(e) = value {
                let span = self.expr_span(e);
                let help = "write the value to an element of an array";
                return Err(self.error(Code::MIR0202, span, "a `forall` has no result", help));
            }
            self.b.br(next);
            return Ok(());
        }
        let want = self.returns.ty;
        match (value, want) {
            (None, None) => self.ret(None),
            (Some(e), Some(t)) => {
                if let Some(id) = self.resident_of(e) {
                    let span = self.expr_span(e);
                    return Err(self.refuse_on_host(self.locals[id as usize].name, span));
                }
                let val = self.expr_as(e, t)?;
                let v = self.own(val);
                self.at(span);
                self.ret(Some(v));
            }
            (None, Some(t)) => {
                let message = format!("`return` needs a value of type `{}`", self.cx.ty_name(t));
                return Err(self.error(Code::MIR0202, span, message, "write `return value`"));
            }
            (Some(e), None) => {
                let span = self.expr_span(e);
                let message = "this function has no result";
                let help = "name a type behind the parameters, or write `return` alone";
                return Err(self.error(Code::MIR0202, span, message, help));
            }
        }
        Ok(())
    }

    /// Leaves the function with an owned value.
    pub(super) fn ret(&mut self, value: Option<Value>) {
        for (var, cell, _) in self.returns.outs.clone() {
            let v = self.b.read(var);
            self.b.effect(Op::SetField, &[cell, v], 0);
        }
        let value = value.filter(|&v| self.b.ty(v) != fixed::UNIT);
        self.b.ret(value);
    }
}
