//! Patterns.

use super::{Parse, Parser};
use crate::ast::*;
use crate::lex::Tok;

impl Parser<'_> {
    pub(super) fn pattern(&mut self) -> Parse<PatternId> {
        self.nested(Self::pattern_inner)
    }

    fn pattern_inner(&mut self) -> Parse<PatternId> {
        let start = self.here();
        let kind = match self.peek() {
            Tok::Int
            | Tok::Float
            | Tok::Str
            | Tok::Minus
            | Tok::True
            | Tok::TrueLow
            | Tok::False
            | Tok::FalseLow => PatternKind::Literal(self.unary()?),
            Tok::None => {
                let token = self.bump();
                let name = self.ident_of(token);
                PatternKind::Variant { path: vec![name], fields: Vec::new() }
            }
            Tok::LParen => {
                let mut fields =
                    self.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::pattern))?;
                match fields.len() {
                    1 => return Ok(fields.remove(0)),
                    _ => PatternKind::Tuple(fields),
                }
            }
            Tok::Ident => {
                let name = self.ident("a name")?;
                let mut path = vec![name];
                while self.peek() == Tok::Dot || self.peek() == Tok::ColonColon {
                    self.bump();
                    path.push(self.member()?);
                }
                let has_fields = self.peek() == Tok::LParen;
                let fields = match has_fields {
                    true => {
                        self.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::pattern))?
                    }
                    false => Vec::new(),
                };
                match path.len() == 1 && !has_fields {
                    true if self.names.name(name.sym) == "_" => PatternKind::Wildcard,
                    true => PatternKind::Name(name.sym),
                    false => PatternKind::Variant { path, fields },
                }
            }
            found => {
                let message = format!("expected a pattern, found {}", found.describe());
                let help = "write a literal, a name, `_`, `E.V(x)`, `Some(x)` or `(a, b)`";
                return Err(self.error_here(message, help));
            }
        };
        Ok(self.ast.add(Pattern { kind, span: self.span_from(start) }))
    }

    /// One arm of a `match`: `a | b if guard: value`.
    pub(super) fn arm(&mut self) -> Parse<Arm> {
        let start = self.here();
        let mut patterns = vec![self.pattern()?];
        while self.eat(Tok::Pipe) {
            patterns.push(self.pattern()?);
        }
        let guard = if self.eat(Tok::If) { Some(self.expr()?) } else { None };
        let span = self.span_from(start);
        if self.peek() != Tok::Colon && !matches!(self.peek(), Tok::Newline) {
            let message =
                format!("expected `:` behind a pattern, found {}", self.peek().describe());
            return Err(self.error_here(message, "write `pattern: value`"));
        }
        let on_line = self.peek() == Tok::Colon
            && (self.brackets > 0 || !self.raw(1).first)
            && self.raw(1).tok != Tok::Eof;
        let body = if on_line {
            self.bump();
            match self.begins_statement() {
                true => ArmBody::Block(Block { stmts: vec![self.statement()?] }),
                false => self.arm_value()?,
            }
        } else {
            ArmBody::Block(self.block()?)
        };
        Ok(Arm { patterns, guard, body, span })
    }

    /// An expression, or an assignment to one.
    fn arm_value(&mut self) -> Parse<ArmBody> {
        let start = self.here();
        let value = self.expr()?;
        match self.assignment(start, value)? {
            Some(stmt) => Ok(ArmBody::Block(Block { stmts: vec![stmt] })),
            None => Ok(ArmBody::Value(value)),
        }
    }
}
