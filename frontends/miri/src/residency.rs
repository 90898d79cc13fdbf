//! Which parameters of a host function may be device-resident: those that the function touches
//! only inside of `forall`s, or asks for their length, or hands on to a function that does so.

use crate::ast::*;
use crate::program::{Item, Module, Program};
use crate::walk::{Node, walk_block, walk_expr};
use magpie_diag::Span;

/// Functions that hand a parameter on to each other at most.
const MAX_DEPTH: u32 = 32;

/// A place where a function uses a parameter in host code, if there is one.
pub(crate) fn host_use(program: &Program, decl: FnDeclId, param: usize) -> Option<Span> {
    find(program, decl, param, &mut Vec::new())
}

fn find(
    program: &Program,
    decl: FnDeclId,
    param: usize,
    path: &mut Vec<(FnDeclId, usize)>,
) -> Option<Span> {
    if path.contains(&(decl, param)) {
        return None;
    }
    let f = &program.ast[decl];
    let Some(name) = f.params.get(param).map(|p| p.name) else { return Some(f.head) };
    if path.len() as u32 >= MAX_DEPTH || f.gpu {
        return Some(name.span);
    }
    path.push((decl, param));
    let mut search = Search { program, name: name.sym, path, found: None };
    search.block(&f.body);
    let found = search.found;
    path.pop();
    found
}

struct Search<'a, 'p> {
    program: &'a Program,
    name: Sym,
    path: &'p mut Vec<(FnDeclId, usize)>,
    found: Option<Span>,
}

impl Search<'_, '_> {
    fn block(&mut self, block: &Block) {
        for &stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    fn cond(&mut self, cond: Cond) {
        match cond {
            Cond::Value { expr, .. } | Cond::Let(_, expr) => self.expr(expr),
        }
    }

    fn stmt(&mut self, id: StmtId) {
        let ast = &self.program.ast;
        match &ast[id].kind {
            StmtKind::Forall(forall) => {
                forall.ranges.iter().for_each(|&e| self.expr(e));
                // A body that prints runs on the host.
                if let Some(at) = prints(self.program, &forall.body)
                    && self.uses(&forall.body)
                {
                    self.found.get_or_insert(at);
                }
            }
            StmtKind::Let { binders, .. } => {
                binders.iter().filter_map(|b| b.init).for_each(|e| self.expr(e));
            }
            StmtKind::Const(b) => b.init.into_iter().for_each(|e| self.expr(e)),
            &StmtKind::Assign { target, value, .. } => {
                self.expr(target);
                self.expr(value);
            }
            &StmtKind::Expr(e) => self.expr(e),
            StmtKind::If { arms, otherwise } => {
                for (cond, block) in arms {
                    self.cond(*cond);
                    self.block(block);
                }
                otherwise.iter().for_each(|block| self.block(block));
            }
            StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => {
                self.cond(*cond);
                self.block(body);
            }
            StmtKind::Forever(body) | StmtKind::Frame { passes: body } => self.block(body),
            StmtKind::For { iter, body, .. } => {
                self.expr(*iter);
                self.block(body);
            }
            StmtKind::Return(value) => value.iter().for_each(|&e| self.expr(e)),
            StmtKind::Error | StmtKind::Shared { .. } | StmtKind::Break | StmtKind::Continue => {}
        }
    }

    fn uses(&self, block: &Block) -> bool {
        let ast = &self.program.ast;
        let mut uses = false;
        walk_block(ast, block, &mut |node| {
            if let Node::Expr(e) = node {
                uses |= matches!(ast[e].kind, ExprKind::Name(name) if name == self.name);
            }
        });
        uses
    }

    fn is_param(&self, e: ExprId) -> bool {
        matches!(self.program.ast[e].kind, ExprKind::Name(name) if name == self.name)
    }

    /// Looks for uses in an expression; `p.length()` and arguments of functions that keep to the
    /// rule are none.
    fn expr(&mut self, id: ExprId) {
        let program = self.program;
        let mut safe: Vec<ExprId> = Vec::new();
        let mut uses: Vec<(ExprId, Span)> = Vec::new();
        let mut handed_on: Vec<(FnDeclId, usize)> = Vec::new();
        walk_expr(&program.ast, id, &mut |node| {
            let Node::Expr(e) = node else { return };
            match &program.ast[e].kind {
                ExprKind::Call(callee, args) => match program.ast[*callee].kind {
                    ExprKind::Member(base, method)
                        if self.is_param(base) && program.name(method.sym) == "length" =>
                    {
                        safe.push(base);
                    }
                    ExprKind::Member(base, method) if program.name(method.sym) == "launch" => {
                        if let ExprKind::Call(_, args) = &program.ast[base].kind {
                            safe.extend(args.iter().map(|a| a.value).filter(|&a| self.is_param(a)));
                        }
                    }
                    ExprKind::Name(_) | ExprKind::Member(..) => {
                        let Some(Item::Fn(decl)) = callee_of(program, *callee) else { return };
                        let params = &program.ast[decl].params;
                        for (n, arg) in args.iter().enumerate() {
                            if !self.is_param(arg.value) {
                                continue;
                            }
                            let at = match arg.name {
                                Some(name) => params.iter().position(|p| p.name.sym == name.sym),
                                None => Some(n),
                            };
                            safe.push(arg.value);
                            // A kernel is launched with it.
                            if !program.ast[decl].gpu {
                                handed_on.push((decl, at.unwrap_or(usize::MAX)));
                            }
                        }
                    }
                    _ => {}
                },
                ExprKind::Name(name) if *name == self.name => uses.push((e, program.ast[e].span)),
                _ => {}
            }
        });
        for (decl, n) in handed_on {
            if self.found.is_none() {
                self.found = find(program, decl, n, self.path);
            }
        }
        if let Some(&(_, span)) = uses.iter().find(|u| !safe.contains(&u.0)) {
            self.found.get_or_insert(span);
        }
    }
}

/// What a call by name, or by the name of a module, calls.
pub(crate) fn callee_of(program: &Program, e: ExprId) -> Option<Item> {
    match program.ast[e].kind {
        ExprKind::Name(name) => program.item(name, program.ast[e].span),
        ExprKind::Member(base, name) => match program.ast[base].kind {
            ExprKind::Name(module) => match program.module(module, program.ast[base].span)? {
                Module::File(file) => program.exported(file, name.sym),
                Module::Library => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Where a block prints or reads.
fn prints(program: &Program, block: &Block) -> Option<Span> {
    let mut found = None;
    walk_block(&program.ast, block, &mut |node| {
        if let Node::Expr(e) = node
            && let ExprKind::Call(callee, _) = program.ast[e].kind
            && let ExprKind::Name(name) = program.ast[callee].kind
            && matches!(program.name(name), "print" | "println" | "eprint" | "eprintln")
        {
            found.get_or_insert(program.ast[e].span);
        }
    });
    found
}
