//! `gpu frame`: natively one frame runs, with all inputs zero.

use super::body::Body;
use super::locals::LocalKind;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::TyKind;
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
        let mut fine = Ok(());
        for &stmt in &passes.stmts {
            fine = self.frame_stmt(stmt).and(fine);
        }
        fine
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
                        fine = inner.frame_stmt(stmt).and(fine);
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
        let uses = self.uses_of_pass(forall);
        let both = uses.written.iter().find(|&&(name, field)| {
            let is_atomic = self
                .lookup(name)
                .is_some_and(|id| self.cx.is_atomic_array(self.locals[id as usize].ty));
            !is_atomic
                && uses.read.iter().any(|&(other, part)| {
                    other == name && (part.is_none() || field.is_none() || part == field)
                })
        });
        if let Some(&(name, _)) = both {
            let text = program.name(name);
            let message = format!(
                "this pass reads and writes `{text}`: other invocations may write before it is read"
            );
            let help = "read one buffer and write another";
            return Err(self.error(Code::MIR2401, forall.head, message, help));
        }
        let written = uses.written;
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

    /// What a pass does with device-resident bindings.
    fn uses_of_pass(&mut self, forall: &Forall) -> Uses {
        let program = self.cx.program;
        let ast = &program.ast;
        let mut uses = Uses::default();
        // Names that mean a binding which was given another name in the body.
        let mut aliases: Vec<(Sym, Sym)> = Vec::new();
        // Names that are no reads: those of written buffers. Of the others, the fields that are read.
        let mut targets: Vec<ExprId> = Vec::new();
        let mut fields: Vec<(ExprId, Vec<Sym>)> = Vec::new();
        walk_block(ast, &forall.body, &mut |node| match node {
            Node::Open | Node::Close | Node::Declare(_) => {}
            Node::Stmt(stmt) => match &ast[stmt].kind {
                StmtKind::Assign { target, op, .. } => {
                    if let Some((base, name, field)) = indexed_name(ast, *target) {
                        uses.written.push((name, field));
                        if op.is_none() {
                            targets.push(base);
                        }
                    }
                }
                StmtKind::Let { binders, .. } => {
                    for binder in binders {
                        if let Some(init) = binder.init
                            && let ExprKind::Name(name) = ast[init].kind
                        {
                            let known = aliases.iter().find(|a| a.0 == name).map(|a| a.1);
                            let of = known.or(self.resident_of(init).map(|_| name));
                            if let Some(of) = of {
                                aliases.push((binder.name.sym, of));
                                targets.push(init);
                            }
                        }
                    }
                }
                _ => {}
            },
            Node::Expr(e) => match &ast[e].kind {
                ExprKind::Call(callee, args) => {
                    if let ExprKind::Member(base, method) = ast[*callee].kind
                        && let ExprKind::Name(name) = ast[base].kind
                    {
                        match (program.name(method.sym), self.struct_of_resident(base)) {
                            ("length", None) => targets.push(base),
                            ("set", None) => {
                                uses.written.push((name, None));
                                targets.push(base);
                            }
                            (_, Some(n)) => {
                                fields.push((base, self.fields_of_method(n, method.sym)))
                            }
                            (_, None) => {}
                        }
                    }
                    if let ExprKind::Name(f) = ast[*callee].kind
                        && program.name(f).starts_with("atomic_")
                        && let Some(first) = args.first()
                        && let ExprKind::Name(name) = ast[first.value].kind
                    {
                        uses.written.push((name, None));
                        targets.push(first.value);
                    }
                }
                &ExprKind::Member(base, field) => {
                    if let Some(n) = self.struct_of_resident(base)
                        && program.structs[n as usize].fields.iter().any(|f| f.0.sym == field.sym)
                    {
                        fields.push((base, vec![field.sym]));
                    }
                }
                _ => {}
            },
        });
        walk_block(ast, &forall.body, &mut |node| {
            let Node::Expr(e) = node else { return };
            let ExprKind::Name(name) = ast[e].kind else { return };
            if targets.contains(&e) {
                return;
            }
            match fields.iter().find(|of| of.0 == e) {
                Some((_, parts)) => uses.read.extend(parts.iter().map(|&part| (name, Some(part)))),
                None => uses.read.push((name, None)),
            }
        });
        for (name, _) in uses.written.iter_mut().chain(&mut uses.read) {
            *name = aliases.iter().find(|a| a.0 == *name).map_or(*name, |a| a.1);
        }
        let is_resident = |&(name, _): &(Sym, Option<Sym>)| {
            let id = self.lookup(name);
            id.is_some_and(|id| matches!(self.locals[id as usize].kind, LocalKind::Resident(_)))
        };
        uses.written.retain(is_resident);
        uses
    }

    /// The struct that a name's device-resident binding is.
    fn struct_of_resident(&self, e: ExprId) -> Option<u32> {
        let ExprKind::Name(_) = self.cx.program.ast[e].kind else { return None };
        let id = self.resident_of(e)?;
        match self.cx.tys.kind(self.locals[id as usize].ty) {
            TyKind::Struct(n, _) => Some(n),
            _ => None,
        }
    }

    /// The fields that a method of a struct uses, directly or through others.
    fn fields_of_method(&self, of: u32, method: Sym) -> Vec<Sym> {
        let program = self.cx.program;
        let is_field =
            |name: Sym| program.structs[of as usize].fields.iter().any(|f| f.0.sym == name);
        let mut fields = Vec::new();
        let mut methods: Vec<FnDeclId> = program.method(of, method).into_iter().collect();
        let mut next = 0;
        while let Some(&id) = methods.get(next) {
            next += 1;
            walk_block(&program.ast, &program.ast[id].body, &mut |node| {
                if let Node::Expr(e) = node
                    && let ExprKind::Member(base, name) = program.ast[e].kind
                    && let ExprKind::Name(this) = program.ast[base].kind
                    && program.name(this) == "self"
                {
                    if is_field(name.sym) {
                        fields.push(name.sym);
                    } else if let Some(called) = program.method(of, name.sym)
                        && !methods.contains(&called)
                    {
                        methods.push(called);
                    }
                }
            });
        }
        fields
    }
}

/// Device-resident bindings, or fields of them.
#[derive(Default)]
struct Uses {
    written: Vec<(Sym, Option<Sym>)>,
    read: Vec<(Sym, Option<Sym>)>,
}

/// The buffer that a write goes to: `b` of `b[i] = v` and `b[i].f = v`, `b` and `f` of `b.f[i] = v`.
fn indexed_name(ast: &Ast, target: ExprId) -> Option<(ExprId, Sym, Option<Sym>)> {
    let mut at = target;
    loop {
        match ast[at].kind {
            ExprKind::Index(base, _) => {
                let (owner, field) = match ast[base].kind {
                    ExprKind::Member(of, field) => (of, Some(field.sym)),
                    _ => (base, None),
                };
                match ast[owner].kind {
                    ExprKind::Name(name) => return Some((owner, name, field)),
                    _ => at = base,
                }
            }
            ExprKind::Member(base, _) => at = base,
            _ => return None,
        }
    }
}
