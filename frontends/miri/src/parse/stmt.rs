//! Statements.

use super::{Failed, Parse, Parser};
use crate::ast::*;
use crate::lex::Tok;
use magpie_diag::{Code, Span};

impl Parser<'_> {
    fn stmt(&mut self, start: Span, kind: StmtKind) -> StmtId {
        let span = self.span_from(start);
        self.ast.add(Stmt { kind, span })
    }

    /// Whether a statement begins here that is no expression or assignment.
    pub(super) fn begins_statement(&self) -> bool {
        matches!(
            self.peek(),
            Tok::Let
                | Tok::Var
                | Tok::Const
                | Tok::Shared
                | Tok::Gpu
                | Tok::Unless
                | Tok::While
                | Tok::Until
                | Tok::Do
                | Tok::For
                | Tok::Forall
                | Tok::Forever
                | Tok::Return
                | Tok::Break
                | Tok::Continue
        ) || self.peek() == Tok::If
    }

    pub(super) fn statement(&mut self) -> Parse<StmtId> {
        let start = self.here();
        let kind = match self.peek() {
            Tok::Let => self.binding(false, false)?,
            Tok::Var => self.binding(false, true)?,
            Tok::Gpu => return self.gpu_statement(),
            Tok::Const => {
                self.bump();
                let binder = self.binder()?;
                if binder.init.is_none() {
                    let help = "write `= value`";
                    return Err(self.error_here("a constant needs a value", help));
                }
                StmtKind::Const(binder)
            }
            Tok::Shared => {
                self.bump();
                let name = self.ident("the name of the shared array")?;
                let ty = self.ty()?;
                if self.peek() == Tok::Eq {
                    let message = "a shared array has no initializer";
                    let help = "write its elements in the kernel, then call `kernel.barrier()`";
                    let span = self.here();
                    return Err(self.error(Code::MIR1907, span, message, help));
                }
                StmtKind::Shared { name, ty }
            }
            Tok::If => self.if_stmt()?,
            Tok::Unless => self.unless_stmt()?,
            Tok::While => {
                self.bump();
                let cond = self.cond(false)?;
                StmtKind::While { cond, body: self.block()? }
            }
            Tok::Until => {
                self.bump();
                let cond = Cond::Value { expr: self.expr()?, negated: true };
                StmtKind::While { cond, body: self.block()? }
            }
            Tok::Do => self.do_stmt()?,
            Tok::Forever => {
                self.bump();
                StmtKind::Forever(self.block()?)
            }
            Tok::For => {
                self.bump();
                let names = self.index_names()?;
                self.expect(Tok::In, "write `for i in 0..n`")?;
                let iter = self.expr()?;
                StmtKind::For { names, iter, body: self.block()? }
            }
            Tok::Forall => StmtKind::Forall(self.forall(start, false)?),
            Tok::Return => {
                self.bump();
                let ends = matches!(self.peek(), Tok::Newline | Tok::Eof | Tok::If | Tok::Unless);
                let value = if ends { None } else { Some(self.expr()?) };
                return self.guarded(start, StmtKind::Return(value));
            }
            Tok::Break => {
                self.bump();
                return self.guarded(start, StmtKind::Break);
            }
            Tok::Continue => {
                self.bump();
                return self.guarded(start, StmtKind::Continue);
            }
            Tok::Match => StmtKind::Expr(self.match_expr()?),
            found @ (Tok::Class
            | Tok::Extends
            | Tok::Async
            | Tok::Await
            | Tok::Spawn
            | Tok::Abstract) => {
                let message = format!("{} is not supported", found.describe());
                let help = "use structs and functions";
                let span = self.here();
                return Err(self.error(Code::MIR0103, span, message, help));
            }
            found @ (Tok::Fn | Tok::Struct | Tok::Enum | Tok::Trait | Tok::Type | Tok::Use)
                if found != Tok::Fn || self.peek2() == Tok::Ident =>
            {
                let message = format!(
                    "a declaration with {} stands at the top of a file only",
                    found.describe()
                );
                return Err(self.error_here(message, "move it out of the block"));
            }
            _ => {
                let value = self.expr()?;
                return match self.assignment(start, value)? {
                    Some(stmt) => Ok(stmt),
                    None => Ok(self.stmt(start, StmtKind::Expr(value))),
                };
            }
        };
        Ok(self.stmt(start, kind))
    }

    /// `= value`, `+= value` behind an expression.
    pub(super) fn assignment(&mut self, start: Span, target: ExprId) -> Parse<Option<StmtId>> {
        let op = match self.peek() {
            Tok::Eq => None,
            Tok::PlusEq => Some(BinaryOp::Add),
            Tok::MinusEq => Some(BinaryOp::Sub),
            Tok::StarEq => Some(BinaryOp::Mul),
            Tok::SlashEq => Some(BinaryOp::Div),
            Tok::PercentEq => Some(BinaryOp::Rem),
            _ => return Ok(None),
        };
        self.bump();
        let value = self.expr()?;
        Ok(Some(self.stmt(start, StmtKind::Assign { target, op, value })))
    }

    /// A statement that a trailing `if c` or `unless c` makes conditional.
    fn guarded(&mut self, start: Span, kind: StmtKind) -> Parse<StmtId> {
        let stmt = self.stmt(start, kind);
        let negated = match self.peek() {
            Tok::If => false,
            Tok::Unless => true,
            _ => return Ok(stmt),
        };
        self.bump();
        let cond = Cond::Value { expr: self.expr()?, negated };
        let arms = vec![(cond, Block { stmts: vec![stmt] })];
        Ok(self.stmt(start, StmtKind::If { arms, otherwise: None }))
    }

    fn gpu_statement(&mut self) -> Parse<StmtId> {
        let start = self.here();
        self.bump();
        let kind = match self.peek() {
            Tok::Let => self.binding(true, false)?,
            Tok::Var => self.binding(true, true)?,
            Tok::Forall => StmtKind::Forall(self.forall(start, true)?),
            Tok::Const => {
                let help = "write `const`: a constant is copied into the kernels that use it";
                return Err(self.error_at(start, "a constant has no residency", help));
            }
            Tok::For => {
                let help = "write `gpu forall i in a..b`: every index is a thread of its own";
                return Err(self.error_at(start, "`gpu for` is no form of the language", help));
            }
            Tok::Ident if self.text(self.token()) == "frame" => {
                self.bump();
                self.frame(start)?
            }
            Tok::Fn => {
                let help = "move it out of the block";
                return Err(self.error_at(start, "a `gpu fn` stands at the top of a file", help));
            }
            found => {
                let message = format!(
                    "expected `let`, `var`, `forall` or `frame`, found {}",
                    found.describe()
                );
                return Err(self.error_here(message, "write `gpu let name = value`"));
            }
        };
        Ok(self.stmt(start, kind))
    }

    pub(super) fn error_at(
        &mut self,
        start: Span,
        message: impl Into<String>,
        help: &str,
    ) -> Failed {
        let span = self.span_from(start);
        self.error(Code::MIR0101, span, message, help)
    }

    fn frame(&mut self, start: Span) -> Parse<StmtKind> {
        if self.peek() == Tok::Ident {
            let forall = self.indexed(start, true)?;
            let pass = self.stmt(start, StmtKind::Forall(forall));
            return Ok(StmtKind::Frame { passes: Block { stmts: vec![pass] } });
        }
        // A frame without passes is reported as such.
        let next = self.raw(usize::from(self.peek() == Tok::Colon));
        let is_empty = next.tok == Tok::Eof || next.first && next.column <= self.column;
        if is_empty {
            self.eat(Tok::Colon);
            return Ok(StmtKind::Frame { passes: Block::default() });
        }
        Ok(StmtKind::Frame { passes: self.block()? })
    }

    fn binding(&mut self, gpu: bool, mutable: bool) -> Parse<StmtKind> {
        self.bump();
        let mut binders = vec![self.binder()?];
        while self.eat(Tok::Comma) {
            binders.push(self.binder()?);
        }
        Ok(StmtKind::Let { gpu, mutable, binders })
    }

    fn binder(&mut self) -> Parse<Binder> {
        if self.peek() == Tok::LParen {
            let help = "write `let pair = …`, then `pair.0` and `pair.1`";
            return Err(self.error_here("a tuple is bound to one name", help));
        }
        let name = self.ident("a name to bind")?;
        let ty = if self.starts_type() { Some(self.ty()?) } else { None };
        let init = if self.eat(Tok::Eq) { Some(self.expr()?) } else { None };
        Ok(Binder { name, ty, init })
    }

    fn cond(&mut self, negated: bool) -> Parse<Cond> {
        if self.eat(Tok::Let) {
            let pattern = self.pattern()?;
            self.expect(Tok::Eq, "write `if let Some(x) = value`")?;
            return Ok(Cond::Let(pattern, self.expr()?));
        }
        Ok(Cond::Value { expr: self.expr()?, negated })
    }

    /// Whether `else` goes on with the statement that began in the column of the block: on the same
    /// line, or first on the next one.
    fn else_follows(&self) -> bool {
        let token = self.token();
        token.tok == Tok::Else && (!token.first || token.column == self.column)
    }

    fn eat_else(&mut self) -> bool {
        if !self.else_follows() {
            return false;
        }
        self.line_begun = false;
        self.bump();
        true
    }

    fn if_stmt(&mut self) -> Parse<StmtKind> {
        self.bump();
        let cond = self.cond(false)?;
        let mut arms = vec![(cond, self.block()?)];
        while self.eat_else() {
            if self.eat(Tok::If) {
                let cond = self.cond(false)?;
                arms.push((cond, self.block()?));
            } else {
                let otherwise = Some(self.block()?);
                return Ok(StmtKind::If { arms, otherwise });
            }
        }
        Ok(StmtKind::If { arms, otherwise: None })
    }

    fn unless_stmt(&mut self) -> Parse<StmtKind> {
        self.bump();
        let cond = self.cond(true)?;
        let arms = vec![(cond, self.block()?)];
        let otherwise = if self.eat_else() { Some(self.block()?) } else { None };
        Ok(StmtKind::If { arms, otherwise })
    }

    fn do_stmt(&mut self) -> Parse<StmtKind> {
        self.bump();
        let body = self.block()?;
        let token = self.token();
        let follows = matches!(token.tok, Tok::While | Tok::Until)
            && (!token.first || token.column == self.column);
        if !follows {
            let help = "write `while c` or `until c` below the body, in the column of `do`";
            return Err(self.error_here("the condition of a `do` is missing", help));
        }
        self.line_begun = false;
        let negated = self.bump().tok == Tok::Until;
        let cond = Cond::Value { expr: self.expr()?, negated };
        Ok(StmtKind::DoWhile { body, cond })
    }

    fn index_names(&mut self) -> Parse<Vec<Ident>> {
        let mut names = vec![self.ident("the name of the index")?];
        while self.eat(Tok::Comma) {
            names.push(self.ident("the name of the index")?);
        }
        self.distinct(names.iter().copied());
        Ok(names)
    }

    fn forall(&mut self, start: Span, gpu: bool) -> Parse<Forall> {
        self.bump();
        self.indexed(start, gpu)
    }

    /// The indices, their ranges and the body behind `forall` or `gpu frame`.
    fn indexed(&mut self, start: Span, gpu: bool) -> Parse<Forall> {
        let names = self.index_names()?;
        self.expect(Tok::In, "write ranges for the indices: `i in 0..n`")?;
        let mut ranges = vec![self.expr()?];
        while self.eat(Tok::Comma) {
            ranges.push(self.expr()?);
        }
        let head = self.span_from(start);
        let body = self.block()?;
        Ok(Forall { gpu, names, ranges, body, head })
    }
}
