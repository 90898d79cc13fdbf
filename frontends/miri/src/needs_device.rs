//! Functions that take device-resident arguments only: those that launch kernels with a parameter,
//! use it in a `gpu forall` or in a `forall` together with a device-resident binding of their own,
//! or hand it on to such a function.

use crate::ast::*;
use crate::program::{Item, Program};
use crate::residency::callee_of;
use crate::walk::{Node, walk_block};

/// Whether a function cannot be called with host arguments.
pub(crate) fn needs_device(program: &Program, decl: FnDeclId) -> bool {
    needs(program, decl, &mut Vec::new())
}

fn needs(program: &Program, decl: FnDeclId, seen: &mut Vec<FnDeclId>) -> bool {
    let ast = &program.ast;
    let f = &ast[decl];
    if f.gpu || f.params.is_empty() || seen.contains(&decl) {
        return false;
    }
    seen.push(decl);
    let is_param = |e: ExprId| match ast[e].kind {
        ExprKind::Name(name) => f.params.iter().any(|p| p.name.sym == name),
        _ => false,
    };
    let mut resident: Vec<Sym> = Vec::new();
    let mut found = false;
    walk_block(ast, &f.body, &mut |node| match node {
        Node::Stmt(stmt) => match &ast[stmt].kind {
            StmtKind::Let { gpu: true, binders, .. } => {
                resident.extend(binders.iter().map(|b| b.name.sym));
            }
            StmtKind::Forall(forall) => {
                let (mut has_param, mut is_launch) = (false, forall.gpu);
                walk_block(ast, &forall.body, &mut |node| {
                    let Node::Expr(e) = node else { return };
                    match ast[e].kind {
                        ExprKind::Index(base, _) => has_param |= is_param(base),
                        ExprKind::Name(name) => is_launch |= resident.contains(&name),
                        _ => {}
                    }
                });
                found |= has_param && is_launch;
            }
            _ => {}
        },
        Node::Expr(e) => {
            let ExprKind::Call(callee, args) = &ast[e].kind else { return };
            let hands_on = |args: &[Arg]| args.iter().any(|arg| is_param(arg.value));
            match ast[*callee].kind {
                ExprKind::Member(base, method) if program.name(method.sym) == "launch" => {
                    if let ExprKind::Call(_, args) = &ast[base].kind {
                        found |= hands_on(args);
                    }
                }
                _ if hands_on(args) => {
                    if let Some(Item::Fn(other)) = callee_of(program, *callee) {
                        found = found || needs(program, other, seen);
                    }
                }
                _ => {}
            }
        }
        Node::Open | Node::Close | Node::Declare(_) => {}
    });
    found
}
