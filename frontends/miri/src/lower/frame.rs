//! `gpu frame`: natively one frame runs, with all inputs zero.

use super::body::Body;
use super::locals::LocalKind;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::walk::{Node, walk_block};
use magpie_diag::{Code, Span};

impl Body<'_, '_, '_> {
    pub(super) fn frame(&mut self, passes: &Block, span: Span) -> Lower<()> {
        if self.device {
            let help = "write it in host code";
            return Err(self.unsupported(span, "a `gpu frame` in a kernel", help));
        }
        if passes.stmts.is_empty() {
            return Err(self.frame_body(span));
        }
        for &stmt in &passes.stmts {
            self.frame_stmt(stmt)?;
        }
        Ok(())
    }

    fn frame_stmt(&mut self, id: StmtId) -> Lower<()> {
        let program = self.cx.program;
        let span = program.ast[id].span;
        match &program.ast[id].kind {
            StmtKind::Forall(forall) => {
                if !self.uses_device(forall) {
                    return Err(self.frame_body(forall.head));
                }
                self.check_pass(forall)?;
                self.forall_in(forall, span, true)
            }
            StmtKind::For { names, iter, body } => {
                let ExprKind::Range { start, end, inclusive } = program.ast[*iter].kind else {
                    return Err(self.frame_body(span));
                };
                let ends = (self.known_int(start), self.known_int(end));
                if ends.0.is_none() || ends.1.is_none() || names.len() != 1 {
                    return Err(self.frame_body(span));
                }
                let (a, b) = self.range_ends(start, end, inclusive, Code::MIR0202)?;
                let mut fine = Ok(());
                self.count(a, b, false, &mut |inner, i| {
                    inner.declare_value(names[0].sym, names[0].span, i.ty, i.v);
                    for &stmt in &body.stmts {
                        fine = fine.and(inner.frame_stmt(stmt));
                    }
                });
                fine
            }
            StmtKind::Error => Err(Poisoned),
            _ => Err(self.frame_body(span)),
        }
    }

    fn frame_body(&mut self, span: Span) -> Poisoned {
        let message = "a `gpu frame` holds passes and repeats of passes with constant counts only";
        let help = "move the statement out of the frame";
        self.error(Code::MIR2403, span, message, help)
    }

    /// A pass writes at least one buffer and reads none that it writes.
    fn check_pass(&mut self, forall: &Forall) -> Lower<()> {
        let program = self.cx.program;
        let ast = &program.ast;
        let mut written: Vec<Sym> = Vec::new();
        let mut read: Vec<Sym> = Vec::new();
        // Names that are indexed by a write, as expressions.
        let mut targets: Vec<ExprId> = Vec::new();
        walk_block(ast, &forall.body, &mut |node| match node {
            Node::Stmt(stmt) => {
                if let StmtKind::Assign { target, op, .. } = ast[stmt].kind
                    && let Some((base, name)) = indexed_name(ast, target)
                {
                    written.push(name);
                    if op.is_none() {
                        targets.push(base);
                    }
                }
            }
            Node::Expr(e) => {
                if let ExprKind::Call(callee, args) = &ast[e].kind {
                    if let ExprKind::Member(base, method) = ast[*callee].kind
                        && let ExprKind::Name(name) = ast[base].kind
                    {
                        match program.name(method.sym) {
                            "set" => {
                                written.push(name);
                                targets.push(base);
                            }
                            "length" => targets.push(base),
                            _ => {}
                        }
                    }
                    if let ExprKind::Name(f) = ast[*callee].kind
                        && program.name(f).starts_with("atomic_")
                        && let Some(first) = args.first()
                        && let ExprKind::Name(name) = ast[first.value].kind
                    {
                        written.push(name);
                        targets.push(first.value);
                    }
                }
            }
        });
        walk_block(ast, &forall.body, &mut |node| {
            if let Node::Expr(e) = node
                && let ExprKind::Name(name) = ast[e].kind
                && !targets.contains(&e)
            {
                read.push(name);
            }
        });
        let resident = |body: &Self, name: Sym| {
            let id = body.lookup(name)?;
            matches!(body.locals[id as usize].kind, LocalKind::Resident(_)).then_some(id)
        };
        let written: Vec<(Sym, u32)> =
            written.into_iter().filter_map(|name| Some((name, resident(self, name)?))).collect();
        let both = written.iter().find(|&&(name, id)| {
            read.contains(&name) && !self.cx.is_atomic_array(self.locals[id as usize].ty)
        });
        if let Some(&(name, _)) = both {
            let text = program.name(name);
            let message = format!(
                "this pass reads and writes `{text}`: other invocations may write before it is read"
            );
            let help = "read one buffer and write another";
            return Err(self.error(Code::MIR2401, forall.head, message, help));
        }
        if written.is_empty() {
            let message = "this pass of a frame writes no device buffer";
            return Err(self.error(
                Code::MIR2402,
                forall.head,
                message,
                "write an element of a `gpu var`",
            ));
        }
        Ok(())
    }
}

/// The buffer that a write goes to: `b` of `b[i] = v`, `b[i].f = v`, `b.f[i] = v`.
fn indexed_name(ast: &Ast, target: ExprId) -> Option<(ExprId, Sym)> {
    let mut at = target;
    loop {
        match ast[at].kind {
            ExprKind::Index(base, _) => {
                let owner = if let ExprKind::Member(of, _) = ast[base].kind { of } else { base };
                match ast[owner].kind {
                    ExprKind::Name(name) => return Some((owner, name)),
                    _ => at = base,
                }
            }
            ExprKind::Member(base, _) => at = base,
            _ => return None,
        }
    }
}
