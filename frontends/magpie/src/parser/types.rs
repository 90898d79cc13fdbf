//! Types and type parameters.

use super::*;

impl Parser<'_> {
    /// A type with where it stands.
    pub(super) fn type_use(&mut self) -> Parse<TypeUse> {
        let start = self.token.range.start;
        let id = self.type_expr(0)?;
        Ok(TypeUse { id, range: self.range_from(start) })
    }

    /// A type inside `depth` others.
    fn type_expr(&mut self, depth: u32) -> Parse<TypeExprId> {
        let modifier = match self.symbol {
            _ if !self.at(TokenKind::Word) => Modifier::None,
            symbols::SHARED => Modifier::Shared,
            symbols::BORROW => Modifier::Borrow,
            symbols::MUTBORROW => Modifier::MutBorrow,
            symbols::WEAK => Modifier::Weak,
            _ => Modifier::None,
        };
        if modifier != Modifier::None {
            self.advance();
        }
        let path = self.path("a type")?;
        self.type_with_args(modifier, path, depth)
    }

    /// A type whose path has been read.
    pub(super) fn type_with_args(
        &mut self,
        modifier: Modifier,
        path: Name,
        depth: u32,
    ) -> Parse<TypeExprId> {
        if !self.at(TokenKind::Lt) {
            return Ok(match modifier {
                Modifier::None => self.ast.types.intern_path(path.symbol),
                _ => self.ast.types.intern(modifier, path.symbol, &[]),
            });
        }
        if depth == TypeExpr::MAX_DEPTH {
            return Err(self.too_deep());
        }
        let base = self.type_stack.len();
        let result = self.type_arg_list(depth);
        let id = self.ast.types.intern(modifier, path.symbol, &self.type_stack[base..]);
        self.type_stack.truncate(base);
        result.map(|()| id)
    }

    fn type_arg_list(&mut self, depth: u32) -> Parse<()> {
        self.advance();
        loop {
            let ty = self.type_expr(depth + 1)?;
            self.type_stack.push(ty);
            if self.eat(TokenKind::Gt) {
                return Ok(());
            }
            if !self.eat(TokenKind::Comma) {
                return Err(self.missing("`,` or `>`"));
            }
        }
    }

    fn too_deep(&mut self) -> Reported {
        let message = format!("type arguments nest more than {} levels deep", TypeExpr::MAX_DEPTH);
        let error = Diagnostic::new(Code::MPP0003, self.span(self.token.range), message)
            .with_help("name the inner part by a struct");
        self.report(error)
    }

    /// `<T: type, …>`, or nothing.
    pub(super) fn type_params(&mut self) -> Parse<Slice<TypeParam>> {
        let start = self.ast.pools.type_params.len();
        if self.eat(TokenKind::Lt) {
            let starts_item = |p: &Self| p.at(TokenKind::Word);
            self.comma_list(TokenKind::Gt, starts_item, |p| {
                let name = p.expect_free_word("a type parameter such as `T: type`")?;
                p.expect(TokenKind::Colon)?;
                let bound = p.bound()?;
                p.ast.pools.type_params.push(TypeParam { name, bound });
                Ok(())
            })?;
        }
        Ok(Slice::new(start, self.ast.pools.type_params.len()))
    }

    fn bound(&mut self) -> Parse<Bound> {
        let bound = match self.symbol {
            _ if !self.at(TokenKind::Word) => None,
            symbols::TYPE => Some(Bound::Type),
            symbols::SEND => Some(Bound::Send),
            symbols::SYNC => Some(Bound::Sync),
            symbols::HASH => Some(Bound::Hash),
            symbols::EQ => Some(Bound::Eq),
            symbols::ORD => Some(Bound::Ord),
            _ => None,
        };
        match bound {
            Some(bound) => {
                self.advance();
                Ok(bound)
            }
            None => Err(self.missing_with_help(
                "a bound",
                "write `type`, `send`, `sync`, `hash`, `eq` or `ord`",
            )),
        }
    }

    /// Entries with commas between them, up to and with `close`; the opening bracket has been
    /// taken. A missing comma is reported and taken as there when the current token starts an
    /// entry.
    pub(super) fn comma_list(
        &mut self,
        close: TokenKind,
        starts_item: impl Fn(&Self) -> bool,
        mut item: impl FnMut(&mut Self) -> Parse<()>,
    ) -> Parse<()> {
        if self.eat(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(close) {
                return Ok(());
            }
            let comma = self.token.range;
            if self.eat(TokenKind::Comma) {
                if self.at(close) {
                    self.trailing_comma(comma);
                    self.advance();
                    return Ok(());
                }
            } else if starts_item(self) {
                self.missing_comma();
            } else {
                return Err(self.missing(&format!("`,` or {}", close.describe())));
            }
        }
    }
}
