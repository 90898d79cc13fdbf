//! Going through all statements and expressions of a block.

use crate::ast::*;

/// What is met, before its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Stmt(StmtId),
    Expr(ExprId),
}

/// Calls `f` on everything in a block, lambdas included.
pub(crate) fn walk_block(ast: &Ast, block: &Block, f: &mut dyn FnMut(Node)) {
    for &stmt in &block.stmts {
        walk_stmt(ast, stmt, f);
    }
}

fn walk_cond(ast: &Ast, cond: Cond, f: &mut dyn FnMut(Node)) {
    match cond {
        Cond::Value { expr, .. } | Cond::Let(_, expr) => walk_expr(ast, expr, f),
    }
}

/// Calls `f` on a statement and everything in it.
pub(crate) fn walk_stmt(ast: &Ast, id: StmtId, f: &mut dyn FnMut(Node)) {
    f(Node::Stmt(id));
    match &ast[id].kind {
        StmtKind::Let { binders, .. } => {
            binders.iter().filter_map(|b| b.init).for_each(|e| walk_expr(ast, e, f));
        }
        StmtKind::Const(binder) => {
            if let Some(e) = binder.init {
                walk_expr(ast, e, f);
            }
        }
        &StmtKind::Assign { target, value, .. } => {
            walk_expr(ast, target, f);
            walk_expr(ast, value, f);
        }
        &StmtKind::Expr(e) => walk_expr(ast, e, f),
        StmtKind::If { arms, otherwise } => {
            for (cond, block) in arms {
                walk_cond(ast, *cond, f);
                walk_block(ast, block, f);
            }
            if let Some(block) = otherwise {
                walk_block(ast, block, f);
            }
        }
        StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => {
            walk_cond(ast, *cond, f);
            walk_block(ast, body, f);
        }
        StmtKind::Forever(body) => walk_block(ast, body, f),
        StmtKind::For { iter, body, .. } => {
            walk_expr(ast, *iter, f);
            walk_block(ast, body, f);
        }
        StmtKind::Forall(forall) => {
            forall.ranges.iter().for_each(|&e| walk_expr(ast, e, f));
            walk_block(ast, &forall.body, f);
        }
        StmtKind::Frame { passes } => walk_block(ast, passes, f),
        &StmtKind::Return(value) => {
            if let Some(e) = value {
                walk_expr(ast, e, f);
            }
        }
        StmtKind::Error | StmtKind::Shared { .. } | StmtKind::Break | StmtKind::Continue => {}
    }
}

/// Calls `f` on an expression and everything in it.
pub(crate) fn walk_expr(ast: &Ast, id: ExprId, f: &mut dyn FnMut(Node)) {
    f(Node::Expr(id));
    match &ast[id].kind {
        ExprKind::Error
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::None
        | ExprKind::Name(_)
        | ExprKind::Type(_) => {}
        ExprKind::Format(parts) => {
            for part in parts {
                if let FormatPart::Value(e) = part {
                    walk_expr(ast, *e, f);
                }
            }
        }
        &ExprKind::Member(e, _)
        | &ExprKind::Field(e, _)
        | &ExprKind::Unary(_, e)
        | &ExprKind::Cast(e, _) => walk_expr(ast, e, f),
        &ExprKind::Index(a, b)
        | &ExprKind::Binary(_, a, b)
        | &ExprKind::Range { start: a, end: b, .. } => {
            walk_expr(ast, a, f);
            walk_expr(ast, b, f);
        }
        ExprKind::Call(callee, args) => {
            walk_expr(ast, *callee, f);
            args.iter().for_each(|a| walk_expr(ast, a.value, f));
        }
        &ExprKind::Cond { cond, then, otherwise } => {
            for e in [cond, then, otherwise] {
                walk_expr(ast, e, f);
            }
        }
        ExprKind::List(items) | ExprKind::Set(items) | ExprKind::Tuple(items) => {
            items.iter().for_each(|&e| walk_expr(ast, e, f));
        }
        ExprKind::Map(entries) => {
            for &(k, v) in entries {
                walk_expr(ast, k, f);
                walk_expr(ast, v, f);
            }
        }
        &ExprKind::Lambda(id) => walk_block(ast, &ast[id].body, f),
        ExprKind::Match { scrutinee, arms } => {
            walk_expr(ast, *scrutinee, f);
            for arm in arms {
                if let Some(guard) = arm.guard {
                    walk_expr(ast, guard, f);
                }
                match &arm.body {
                    ArmBody::Value(e) => walk_expr(ast, *e, f),
                    ArmBody::Block(block) => walk_block(ast, block, f),
                }
            }
        }
    }
}

/// The names that a block uses, in order of their first use.
pub(crate) fn names_in(ast: &Ast, block: &Block) -> Vec<(Sym, magpie_diag::Span)> {
    let mut names: Vec<(Sym, magpie_diag::Span)> = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    walk_block(ast, block, &mut |node| {
        if let Node::Expr(e) = node
            && let ExprKind::Name(name) = ast[e].kind
            && seen.insert(name)
        {
            names.push((name, ast[e].span));
        }
    });
    names
}
