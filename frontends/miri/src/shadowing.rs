//! Warnings about names that hide others of the same function, or constants.

use crate::ast::*;
use crate::program::{Item, Program};
use crate::walk::{Node, walk_block, walk_stmt};
use magpie_diag::{Code, Diagnostic};
use rustc_hash::FxHashMap;

/// Warns in all files of the program.
pub(crate) fn warn(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    let methods = program.structs.iter().flat_map(|decl| &decl.methods);
    let provided = program.traits.iter().flat_map(|decl| &decl.provided);
    for &id in program.fns.iter().chain(methods).chain(provided) {
        let decl = &program.ast[id];
        if decl.name.span.file == program.library {
            continue;
        }
        let mut search = Search::new(program, diagnostics);
        decl.params.iter().for_each(|p| search.push(p.name));
        walk_block(&program.ast, &decl.body, &mut |node| search.node(node));
    }
    let mut search = Search::new(program, diagnostics);
    for &stmt in &program.script {
        walk_stmt(&program.ast, stmt, &mut |node| search.node(node));
    }
}

/// The search through one function.
struct Search<'a> {
    program: &'a Program,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// What is declared by statements and parameters around the present place.
    visible: Vec<Ident>,
    /// Where a name stands in `visible`, the innermost place last.
    places: FxHashMap<Sym, Vec<usize>>,
    /// By open scope: how many names there were before it, and where the names of its function start.
    scopes: Vec<(usize, usize)>,
    /// Where the names of the present function start: a lambda may hide those around it.
    own: usize,
    /// Whether the next scope is that of a lambda.
    is_lambda: bool,
    /// Names of a loop whose scope begins next.
    of_loop: Vec<Ident>,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, diagnostics: &'a mut Vec<Diagnostic>) -> Search<'a> {
        Search {
            program,
            diagnostics,
            visible: Vec::new(),
            places: FxHashMap::default(),
            scopes: Vec::new(),
            own: 0,
            is_lambda: false,
            of_loop: Vec::new(),
        }
    }

    fn node(&mut self, node: Node) {
        match node {
            Node::Open => {
                self.scopes.push((self.visible.len(), self.own));
                if std::mem::take(&mut self.is_lambda) {
                    self.own = self.visible.len();
                }
            }
            Node::Close => {
                let (names, own) = self.scopes.pop().unwrap_or_default();
                for name in self.visible.drain(names..) {
                    if let Some(places) = self.places.get_mut(&name.sym) {
                        places.pop();
                    }
                }
                self.own = own;
            }
            Node::Stmt(id) => match &self.program.ast[id].kind {
                StmtKind::Let { binders, .. } => {
                    binders.iter().for_each(|binder| self.declare(binder.name));
                }
                StmtKind::Const(binder) => self.declare(binder.name),
                &StmtKind::Shared { name, .. } => self.declare(name),
                StmtKind::For { names, .. } => self.of_loop.clone_from(names),
                StmtKind::Forall(forall) => self.of_loop.clone_from(&forall.names),
                _ => {}
            },
            Node::Expr(e) => {
                self.is_lambda = matches!(self.program.ast[e].kind, ExprKind::Lambda(_))
            }
            Node::Declare(sym) => {
                if let Some(n) = self.of_loop.iter().position(|name| name.sym == sym) {
                    let name = self.of_loop.swap_remove(n);
                    self.declare(name);
                }
            }
        }
    }

    fn declare(&mut self, name: Ident) {
        let text = self.program.name(name.sym);
        let place = self.places.get(&name.sym).and_then(|places| places.last());
        let hidden = place.filter(|&&at| at >= self.own).map(|&at| self.visible[at].span);
        let hidden = hidden.or_else(|| match self.program.item(name.sym, name.span)? {
            Item::Const(id) => Some(self.program.ast[id].span),
            _ => None,
        });
        if let Some(hidden) = hidden.filter(|_| text != "_") {
            let message = format!("this `{text}` hides another one");
            self.diagnostics.push(
                Diagnostic::new(Code::MIR0104, name.span, message)
                    .with_secondary(hidden, "hidden")
                    .with_help("give one of them another name"),
            );
        }
        self.push(name);
    }

    fn push(&mut self, name: Ident) {
        self.places.entry(name.sym).or_default().push(self.visible.len());
        self.visible.push(name);
    }
}
