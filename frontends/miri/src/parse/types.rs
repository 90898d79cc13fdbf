//! Types.

use super::{Parse, Parser};
use crate::ast::*;
use crate::lex::Tok;

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Parse<TypeExprId> {
        self.nested(Self::ty_inner)
    }

    fn ty_inner(&mut self) -> Parse<TypeExprId> {
        let start = self.here();
        let kind = match self.peek() {
            Tok::Ident => {
                let token = self.bump();
                let name = self.ident_of(token);
                if self.peek() == Tok::Dot && self.peek2() == Tok::Ident {
                    self.bump();
                    let own = self.ident("the name of a type")?;
                    TypeExprKind::Qualified(name, own.sym, self.type_args()?)
                } else {
                    TypeExprKind::Name(name.sym, self.type_args()?)
                }
            }
            Tok::LBracket => self.in_brackets(Tok::RBracket, |p| {
                let element = p.ty()?;
                Ok(match p.eat(Tok::Semicolon) {
                    true => TypeExprKind::Array(element, p.expr()?),
                    false => TypeExprKind::List(element),
                })
            })?,
            Tok::LBrace => self.in_brackets(Tok::RBrace, |p| {
                let key = p.ty()?;
                Ok(match p.eat(Tok::Colon) {
                    true => TypeExprKind::Map(key, p.ty()?),
                    false => TypeExprKind::Set(key),
                })
            })?,
            Tok::LParen => self.in_brackets(Tok::RParen, |p| {
                Ok(TypeExprKind::Tuple(p.list_until(Tok::RParen, Self::ty)?))
            })?,
            Tok::Fn => {
                self.bump();
                if self.peek() != Tok::LParen {
                    let message = "expected `(` with the parameter types of a function type";
                    return Err(self.error_here(message, "write `fn(int) int`"));
                }
                let params =
                    self.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::ty))?;
                let result = if self.starts_type() { Some(self.ty()?) } else { None };
                TypeExprKind::Fn(params, result)
            }
            found => {
                let message = format!("expected a type, found {}", found.describe());
                return Err(
                    self.error_here(message, "write a type, such as `int` or `Array<f32, 4>`")
                );
            }
        };
        let mut ty = self.ast.add(TypeExpr { kind, span: self.span_from(start) });
        loop {
            // `x as int ?? 0` has a default.
            let options = match self.peek() {
                Tok::Question => 1,
                Tok::Coalesce if !self.token().spaced => 2,
                _ => return Ok(ty),
            };
            self.bump();
            for _ in 0..options {
                let span = self.span_from(start);
                ty = self.ast.add(TypeExpr { kind: TypeExprKind::Option(ty), span });
            }
        }
    }

    /// Whether a type may begin here.
    pub(super) fn starts_type(&self) -> bool {
        matches!(self.peek(), Tok::Ident | Tok::LBracket | Tok::LBrace | Tok::LParen | Tok::Fn)
    }

    /// `<…>` directly behind a name.
    pub(super) fn type_args(&mut self) -> Parse<Vec<TypeArg>> {
        if self.peek() != Tok::Less || self.token().spaced {
            return Ok(Vec::new());
        }
        self.bump();
        self.brackets += 1;
        let mut args = Vec::new();
        let result = loop {
            if self.peek() == Tok::Greater {
                break Ok(());
            }
            match self.type_arg() {
                Ok(arg) => args.push(arg),
                Err(failed) => break Err(failed),
            }
            if !self.eat(Tok::Comma) {
                break Ok(());
            }
        };
        let closed = match result {
            Ok(()) => self.expect(Tok::Greater, "close the type arguments with `>`").map(drop),
            Err(failed) => Err(failed),
        };
        self.brackets = self.brackets.saturating_sub(1);
        closed.map(|()| args)
    }

    fn type_arg(&mut self) -> Parse<TypeArg> {
        let next = self.raw(1).tok;
        let is_sum = matches!(next, Tok::Plus | Tok::Minus | Tok::Star | Tok::Slash | Tok::Percent);
        match self.peek() {
            Tok::Ident if !is_sum => Ok(TypeArg::Type(self.ty()?)),
            Tok::Ident | Tok::Int | Tok::Minus => Ok(TypeArg::Value(self.sum()?)),
            Tok::LParen if self.bracket_is_value() => Ok(TypeArg::Value(self.sum()?)),
            _ => Ok(TypeArg::Type(self.ty()?)),
        }
    }

    /// Whether `( … )` holds a constant expression, not the types of a tuple: it has an operator
    /// or a number in it, or an operator behind it.
    fn bracket_is_value(&self) -> bool {
        let is_sum = |tok| {
            matches!(tok, Tok::Plus | Tok::Minus | Tok::Star | Tok::Slash | Tok::Percent | Tok::Int)
        };
        let mut depth = 0;
        for (n, token) in self.tokens[self.at..].iter().enumerate() {
            match token.tok {
                Tok::LParen => depth += 1,
                Tok::RParen if depth == 1 => return is_sum(self.raw(n + 1).tok),
                Tok::RParen => depth -= 1,
                // A tuple, or the sizes of an array in one.
                Tok::Comma | Tok::Less | Tok::LBracket | Tok::Eof => return false,
                tok if is_sum(tok) => return true,
                _ => {}
            }
        }
        false
    }

    /// `open … close`, in which lines mean nothing.
    pub(super) fn in_brackets<T>(
        &mut self,
        close: Tok,
        inside: impl FnOnce(&mut Self) -> Parse<T>,
    ) -> Parse<T> {
        self.bump();
        self.brackets += 1;
        let result = inside(self);
        let result = match result {
            Ok(value) => {
                let help = format!("close the bracket with {}", close.describe());
                self.expect(close, &help).map(|_| value)
            }
            Err(failed) => Err(failed),
        };
        self.brackets = self.brackets.saturating_sub(1);
        result
    }

    /// Items between commas; a comma may stand behind the last one.
    pub(super) fn list_until<T>(
        &mut self,
        close: Tok,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        while self.peek() != close {
            items.push(item(self)?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        Ok(items)
    }
}
