//! The syntactic rule for writes of kernels to buffers that are not atomic: the index of a write
//! must be made of names that differ between invocations or are the same for a reason, with
//! `+ - *` and casts. It is a walk in source order that keeps the names with values of other kinds
//! (*tainted*), and the names that stand for buffers.

use crate::ast::*;
use crate::program::Program;
use magpie_diag::{Code, Diagnostic, Span};
use rustc_hash::FxHashSet;

/// The writes in a kernel's body that the rule does not accept.
pub(crate) fn check(program: &Program, body: &Block, buffers: &[Sym]) -> Vec<Diagnostic> {
    let buffers = buffers.iter().copied().collect();
    let [tainted, positions] = [FxHashSet::default(), FxHashSet::default()];
    let mut rule = Rule { program, buffers, tainted, positions, diagnostics: Vec::new() };
    rule.block(body);
    rule.diagnostics
}

struct Rule<'a> {
    program: &'a Program,
    /// Buffers, and names that stand for them.
    buffers: FxHashSet<Sym>,
    tainted: FxHashSet<Sym>,
    /// Names that stand for parts of `kernel`.
    positions: FxHashSet<Sym>,
    diagnostics: Vec<Diagnostic>,
}

impl Rule<'_> {
    fn block(&mut self, block: &Block) {
        for &stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, id: StmtId) {
        let ast = &self.program.ast;
        let span = ast[id].span;
        match &ast[id].kind {
            StmtKind::Let { binders, .. } => {
                for binder in binders {
                    if let Some(e) = binder.init {
                        self.bind(binder.name.sym, e, false);
                    }
                }
            }
            &StmtKind::Assign { target, op, value } => {
                if let ExprKind::Name(name) = ast[target].kind {
                    let keeps = op.is_some() && self.tainted.contains(&name);
                    self.bind(name, value, !keeps);
                } else {
                    self.write(target, span);
                }
            }
            &StmtKind::Expr(e) => self.expr(e, span),
            StmtKind::If { arms, otherwise } => {
                arms.iter().for_each(|(_, block)| self.block(block));
                otherwise.iter().for_each(|block| self.block(block));
            }
            StmtKind::While { body, .. }
            | StmtKind::DoWhile { body, .. }
            | StmtKind::Forever(body) => self.block(body),
            StmtKind::For { names, body, .. } => {
                let before: Vec<(Sym, bool)> =
                    names.iter().map(|n| (n.sym, self.tainted.insert(n.sym))).collect();
                self.block(body);
                for (name, added) in before {
                    if added {
                        self.tainted.remove(&name);
                    }
                }
            }
            _ => {}
        }
    }

    /// An expression that stands alone: `buffer.set(index, value)`, or a `match`.
    fn expr(&mut self, e: ExprId, span: Span) {
        let ast = &self.program.ast;
        match &ast[e].kind {
            ExprKind::Call(callee, args) => {
                if let ExprKind::Member(base, method) = ast[*callee].kind
                    && self.program.name(method.sym) == "set"
                    && let Some(index) = args.first()
                {
                    self.element(base, index.value, span);
                }
            }
            ExprKind::Match { arms, .. } => {
                for arm in arms {
                    match &arm.body {
                        ArmBody::Value(e) => self.expr(*e, ast[*e].span),
                        ArmBody::Block(block) => self.block(block),
                    }
                }
            }
            _ => {}
        }
    }

    /// A name gets a value. `clears`: it is another one than before.
    fn bind(&mut self, name: Sym, e: ExprId, clears: bool) {
        if let ExprKind::Name(from) = self.program.ast[e].kind
            && self.buffers.contains(&from)
        {
            self.buffers.insert(name);
        } else if !self.is_unique(e, 0) {
            self.tainted.insert(name);
        } else if clears {
            self.tainted.remove(&name);
        }
        if self.is_kernel(e) {
            self.positions.insert(name);
        } else {
            self.positions.remove(&name);
        }
    }

    /// A write to an element, or to a field of one.
    fn write(&mut self, target: ExprId, span: Span) {
        let ast = &self.program.ast;
        let mut at = target;
        loop {
            match ast[at].kind {
                ExprKind::Index(base, index) => match self.buffer(base) {
                    Some(_) => return self.element(base, index, span),
                    // An element of an array in a struct.
                    None => at = base,
                },
                ExprKind::Member(base, _) => at = base,
                _ => return,
            }
        }
    }

    /// The buffer that an expression stands for: its name, or that of the resident struct it is in.
    fn buffer(&self, e: ExprId) -> Option<Sym> {
        let ast = &self.program.ast;
        let e = if let ExprKind::Member(base, _) = ast[e].kind { base } else { e };
        match ast[e].kind {
            ExprKind::Name(name) if self.buffers.contains(&name) => Some(name),
            _ => None,
        }
    }

    fn element(&mut self, base: ExprId, index: ExprId, span: Span) {
        let Some(name) = self.buffer(base).filter(|_| !self.is_unique(index, 0)) else { return };
        let text = self.program.name(name);
        let message = format!(
            "two invocations may write the same element of `{text}`: nothing shows that this index differs between them"
        );
        self.diagnostics.push(
            Diagnostic::new(Code::MIR1707, span, message)
                .with_secondary(self.program.ast[index].span, "the index")
                .with_help(
                    "write the element of the invocation's own index, or use `Atomic` elements",
                ),
        );
    }

    fn is_unique(&self, e: ExprId, depth: u32) -> bool {
        let ast = &self.program.ast;
        if depth > 500 {
            return false;
        }
        match ast[e].kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
            ExprKind::Name(name) => !self.tainted.contains(&name),
            ExprKind::Member(base, _) => self.is_kernel(base),
            ExprKind::Unary(UnaryOp::Neg | UnaryOp::Plus, e) | ExprKind::Cast(e, _) => {
                self.is_unique(e, depth + 1)
            }
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) => {
                self.is_unique(a, depth + 1) && self.is_unique(b, depth + 1)
            }
            _ => false,
        }
    }

    fn is_kernel(&self, mut e: ExprId) -> bool {
        loop {
            match self.program.ast[e].kind {
                ExprKind::Member(base, _) => e = base,
                ExprKind::Name(name) => {
                    return self.positions.contains(&name) || self.program.name(name) == "kernel";
                }
                _ => return false,
            }
        }
    }
}
