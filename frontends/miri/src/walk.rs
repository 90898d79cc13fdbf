//! Going through all statements and expressions of a block.

use crate::ast::*;
use magpie_diag::Span;
use rustc_hash::FxHashSet;

/// What is met, before its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Stmt(StmtId),
    Expr(ExprId),
    /// A scope begins.
    Open,
    /// The innermost scope ends.
    Close,
    /// From here on to the end of the scope a name means something else.
    Declare(Sym),
}

/// Calls `f` on everything in a block, lambdas included.
pub(crate) fn walk_block(ast: &Ast, block: &Block, f: &mut dyn FnMut(Node)) {
    f(Node::Open);
    for &stmt in &block.stmts {
        walk_stmt(ast, stmt, f);
    }
    f(Node::Close);
}

/// A block under a condition, which may declare names for it.
fn walk_guarded(ast: &Ast, cond: Cond, block: &Block, f: &mut dyn FnMut(Node)) {
    f(Node::Open);
    match cond {
        Cond::Value { expr, .. } => walk_expr(ast, expr, f),
        Cond::Let(pattern, expr) => {
            walk_expr(ast, expr, f);
            declare_pattern(ast, pattern, f);
        }
    }
    walk_block(ast, block, f);
    f(Node::Close);
}

/// A block for which names are declared.
fn walk_with_names(
    ast: &Ast,
    names: impl Iterator<Item = Sym>,
    block: &Block,
    f: &mut dyn FnMut(Node),
) {
    f(Node::Open);
    names.for_each(|name| f(Node::Declare(name)));
    walk_block(ast, block, f);
    f(Node::Close);
}

fn declare_pattern(ast: &Ast, id: PatternId, f: &mut dyn FnMut(Node)) {
    match &ast[id].kind {
        PatternKind::Wildcard | PatternKind::Literal(_) => {}
        &PatternKind::Name(name) => f(Node::Declare(name)),
        PatternKind::Variant { fields, .. } => {
            fields.iter().for_each(|&p| declare_pattern(ast, p, f));
        }
        PatternKind::Tuple(parts) => parts.iter().for_each(|&p| declare_pattern(ast, p, f)),
    }
}

/// Calls `f` on a statement and everything in it.
pub(crate) fn walk_stmt(ast: &Ast, id: StmtId, f: &mut dyn FnMut(Node)) {
    f(Node::Stmt(id));
    match &ast[id].kind {
        StmtKind::Let { binders, .. } => {
            for binder in binders {
                walk_binder(ast, binder, f);
            }
        }
        StmtKind::Const(binder) => walk_binder(ast, binder, f),
        &StmtKind::Assign { target, value, .. } => {
            walk_expr(ast, target, f);
            walk_expr(ast, value, f);
        }
        &StmtKind::Expr(e) => walk_expr(ast, e, f),
        StmtKind::If { arms, otherwise } => {
            for (cond, block) in arms {
                walk_guarded(ast, *cond, block, f);
            }
            if let Some(block) = otherwise {
                walk_block(ast, block, f);
            }
        }
        StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => {
            walk_guarded(ast, *cond, body, f);
        }
        StmtKind::Forever(body) => walk_block(ast, body, f),
        StmtKind::For { names, iter, body } => {
            walk_expr(ast, *iter, f);
            walk_with_names(ast, names.iter().map(|n| n.sym), body, f);
        }
        StmtKind::Forall(forall) => {
            forall.ranges.iter().for_each(|&e| walk_expr(ast, e, f));
            walk_with_names(ast, forall.names.iter().map(|n| n.sym), &forall.body, f);
        }
        StmtKind::Frame { passes } => walk_block(ast, passes, f),
        &StmtKind::Return(value) => {
            if let Some(e) = value {
                walk_expr(ast, e, f);
            }
        }
        StmtKind::Shared { name, .. } => f(Node::Declare(name.sym)),
        StmtKind::Error | StmtKind::Break | StmtKind::Continue => {}
    }
}

fn walk_binder(ast: &Ast, binder: &Binder, f: &mut dyn FnMut(Node)) {
    if let Some(e) = binder.init {
        walk_expr(ast, e, f);
    }
    f(Node::Declare(binder.name.sym));
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
        &ExprKind::Lambda(id) => {
            walk_with_names(ast, ast[id].params.iter().map(|p| p.name.sym), &ast[id].body, f);
        }
        ExprKind::Match { scrutinee, arms } => {
            walk_expr(ast, *scrutinee, f);
            for arm in arms {
                f(Node::Open);
                arm.patterns.iter().for_each(|&p| declare_pattern(ast, p, f));
                if let Some(guard) = arm.guard {
                    walk_expr(ast, guard, f);
                }
                match &arm.body {
                    ArmBody::Value(e) => walk_expr(ast, *e, f),
                    ArmBody::Block(block) => walk_block(ast, block, f),
                }
                f(Node::Close);
            }
        }
    }
}

/// As [`walk_block`], for statements and expressions, with the names that are declared around them
/// in the block, and `params` before them.
pub(crate) fn walk_scoped(
    ast: &Ast,
    block: &Block,
    params: Vec<Sym>,
    f: &mut dyn FnMut(Node, &[Sym]),
) {
    let mut declared = params;
    let mut scopes = Vec::new();
    walk_block(ast, block, &mut |node| match node {
        Node::Open => scopes.push(declared.len()),
        Node::Close => declared.truncate(scopes.pop().unwrap_or_default()),
        Node::Declare(name) => declared.push(name),
        Node::Stmt(_) | Node::Expr(_) => f(node, &declared),
    });
}

/// The names that a block uses and does not declare, in order of their first use.
pub(crate) fn free_names(ast: &Ast, block: &Block, params: Vec<Sym>) -> Vec<(Sym, Span)> {
    let mut names: Vec<(Sym, Span)> = Vec::new();
    let mut seen = FxHashSet::default();
    walk_scoped(ast, block, params, &mut |node, declared| {
        if let Node::Expr(e) = node
            && let ExprKind::Name(name) = ast[e].kind
            && !declared.contains(&name)
            && seen.insert(name)
        {
            names.push((name, ast[e].span));
        }
    });
    names
}
