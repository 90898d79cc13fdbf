//! Expressions, by precedence.

use super::{Failed, Parse, Parser};
use crate::ast::*;
use crate::lex::{Tok, unescape};
use magpie_diag::{Code, Span};

/// Operators in one chain: the trees of such chains are deep on the left.
const MAX_CHAIN: u32 = 200;

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parse<ExprId> {
        self.nested(Self::conditional)
    }

    fn make(&mut self, start: Span, kind: ExprKind) -> ExprId {
        let span = self.span_from(start);
        self.ast.add(Expr { kind, span })
    }

    /// `a if c else b`, `a unless c else b`. At the end of a `break if c` the words are a guard,
    /// which its statement takes.
    fn conditional(&mut self) -> Parse<ExprId> {
        let start = self.here();
        let first = self.binary(0)?;
        let unless = match self.peek() {
            Tok::If => false,
            Tok::Unless => true,
            _ => return Ok(first),
        };
        if !self.has_else() {
            return Ok(first);
        }
        self.bump();
        let cond = self.nested(|p| p.binary(0))?;
        self.expect(Tok::Else, "a conditional needs both values: `a if c else b`")?;
        let second = self.expr()?;
        let (then, otherwise) = if unless { (second, first) } else { (first, second) };
        Ok(self.make(start, ExprKind::Cond { cond, then, otherwise }))
    }

    /// Whether an `else` follows on the line: `return x if c` has a guard, `x if c else y` a choice.
    fn has_else(&self) -> bool {
        let (mut depth, mut ifs) = (0u32, 0u32);
        for (n, token) in self.tokens[self.at..].iter().enumerate() {
            if n > 0 && token.first && self.brackets == 0 && depth == 0 || n > 4096 {
                return false;
            }
            match token.tok {
                Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::FOpen => depth += 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::FClose if depth == 0 => {
                    return false;
                }
                Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::FClose => depth -= 1,
                Tok::If | Tok::Unless if depth == 0 => ifs += 1,
                Tok::Else if depth == 0 => {
                    ifs -= 1;
                    if ifs == 0 {
                        return true;
                    }
                }
                Tok::Comma | Tok::Colon if depth == 0 => return false,
                Tok::Eof => return false,
                _ => {}
            }
        }
        false
    }

    fn binary_op(&self) -> Option<(BinaryOp, u8)> {
        Some(match self.peek() {
            Tok::Coalesce => (BinaryOp::Coalesce, 1),
            Tok::Or | Tok::PipePipe => (BinaryOp::Or, 2),
            Tok::And | Tok::AmpAmp => (BinaryOp::And, 3),
            Tok::EqEq => (BinaryOp::Eq, 4),
            Tok::NotEq => (BinaryOp::Ne, 4),
            Tok::Less => (BinaryOp::Lt, 5),
            Tok::LessEq => (BinaryOp::Le, 5),
            Tok::Greater => (BinaryOp::Gt, 5),
            Tok::GreaterEq => (BinaryOp::Ge, 5),
            Tok::In => (BinaryOp::In, 5),
            Tok::Plus => (BinaryOp::Add, 7),
            Tok::Minus => (BinaryOp::Sub, 7),
            Tok::Amp => (BinaryOp::BitAnd, 7),
            Tok::Pipe => (BinaryOp::BitOr, 7),
            Tok::Caret => (BinaryOp::BitXor, 7),
            Tok::Star => (BinaryOp::Mul, 8),
            Tok::Slash => (BinaryOp::Div, 8),
            Tok::Percent => (BinaryOp::Rem, 8),
            _ => return None,
        })
    }

    /// Refuses operators of other languages, where a value would be missing between two signs.
    fn refuse_foreign_operator(&mut self) -> Parse<()> {
        let second = self.raw(1);
        if second.spaced || second.first {
            return Ok(());
        }
        let ends_line = self.brackets == 0 && (self.raw(2).first || self.raw(2).tok == Tok::Eof);
        let (operator, help) = match (self.peek(), second.tok) {
            (Tok::Less, Tok::Less | Tok::LessEq) => {
                ("<<", "multiply by a power of two: `x * 4` shifts by 2")
            }
            (Tok::Greater, Tok::Greater | Tok::GreaterEq) => {
                (">>", "divide by a power of two: `x / 4` shifts an `x` that is not negative by 2")
            }
            (Tok::Star, Tok::Star) => ("**", "write `x * x`, or `pow(x, y)` of `float`s"),
            (Tok::Amp, Tok::Eq) => ("&=", "write `x = x & y`"),
            (Tok::Pipe, Tok::Eq) => ("|=", "write `x = x | y`"),
            (Tok::Caret, Tok::Eq) => ("^=", "write `x = x ^ y`"),
            (Tok::Plus, Tok::Plus) if ends_line => ("++", "write `x += 1`"),
            (Tok::Minus, Tok::Minus) if ends_line => ("--", "write `x -= 1`"),
            _ => return Ok(()),
        };
        let span = Span::new(self.file, self.token().start, second.end);
        let message = format!("there is no operator `{operator}`");
        Err(self.error(Code::MIR0101, span, message, help))
    }

    /// Level of `..`, between comparisons and sums.
    const RANGE: u8 = 6;

    /// A sum: what a range is made of.
    pub(super) fn sum(&mut self) -> Parse<ExprId> {
        self.binary(Self::RANGE + 1)
    }

    /// Operators of level `min` and above, grouped to the left.
    fn binary(&mut self, min: u8) -> Parse<ExprId> {
        let start = self.here();
        let mut left = self.unary()?;
        let mut chain = 0;
        loop {
            if min <= Self::RANGE && matches!(self.peek(), Tok::DotDot | Tok::DotDotEq) {
                let inclusive = self.bump().tok == Tok::DotDotEq;
                let end = self.sum()?;
                left = self.make(start, ExprKind::Range { start: left, end, inclusive });
                continue;
            }
            self.refuse_foreign_operator()?;
            let Some((op, level)) = self.binary_op().filter(|&(_, level)| level >= min) else {
                return Ok(left);
            };
            chain += 1;
            if chain > MAX_CHAIN {
                let message = format!("more than {MAX_CHAIN} operators in one expression");
                return Err(self.error_here(message, "bind parts to names of their own"));
            }
            self.bump();
            let right = self.binary(level + 1)?;
            left = self.make(start, ExprKind::Binary(op, left, right));
        }
    }

    pub(super) fn unary(&mut self) -> Parse<ExprId> {
        let op = match self.peek() {
            Tok::Minus => UnaryOp::Neg,
            Tok::Plus => UnaryOp::Plus,
            Tok::Not => UnaryOp::Not,
            Tok::Tilde => UnaryOp::BitNot,
            _ => return self.postfix(),
        };
        let start = self.here();
        self.bump();
        let operand = self.nested(Self::unary)?;
        Ok(self.make(start, ExprKind::Unary(op, operand)))
    }

    fn postfix(&mut self) -> Parse<ExprId> {
        let start = self.here();
        let mut value = self.primary()?;
        let mut chain = 0;
        loop {
            chain += 1;
            if chain > MAX_CHAIN {
                let message = format!("more than {MAX_CHAIN} accesses in one expression");
                return Err(self.error_here(message, "bind parts to names of their own"));
            }
            let kind = match self.peek() {
                Tok::Dot | Tok::ColonColon => {
                    self.bump();
                    match self.peek() {
                        Tok::Int => {
                            let token = self.bump();
                            let number = self.text(token).parse();
                            ExprKind::Field(value, number.unwrap_or(u32::MAX))
                        }
                        _ => ExprKind::Member(value, self.member()?),
                    }
                }
                Tok::LParen => {
                    let args =
                        self.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::arg))?;
                    ExprKind::Call(value, args)
                }
                Tok::LBracket if !self.token().first => {
                    let index = self.in_brackets(Tok::RBracket, Self::expr)?;
                    ExprKind::Index(value, index)
                }
                Tok::As => {
                    self.bump();
                    ExprKind::Cast(value, self.ty()?)
                }
                _ => return Ok(value),
            };
            value = self.make(start, kind);
        }
    }

    fn arg(&mut self) -> Parse<Arg> {
        let name = match (self.peek(), self.raw(1).tok) {
            (Tok::Ident, Tok::Colon) => {
                let name = self.ident("a name")?;
                self.bump();
                Some(name)
            }
            _ => None,
        };
        Ok(Arg { name, value: self.expr()? })
    }

    fn primary(&mut self) -> Parse<ExprId> {
        let start = self.here();
        let kind = match self.peek() {
            Tok::Int => self.integer()?,
            Tok::Float => {
                let token = self.bump();
                let text = self.text(token).replace('_', "");
                ExprKind::Float(self.names.intern(&text))
            }
            Tok::True | Tok::TrueLow => {
                self.bump();
                ExprKind::Bool(true)
            }
            Tok::False | Tok::FalseLow => {
                self.bump();
                ExprKind::Bool(false)
            }
            Tok::None => {
                self.bump();
                ExprKind::None
            }
            Tok::Str => {
                let token = self.bump();
                let raw = self.text(token);
                let quote = &raw[..1];
                let inner = &raw[1..];
                let inner = inner.strip_suffix(quote).unwrap_or(inner);
                let text = unescape(inner);
                ExprKind::Str(self.names.intern(&text))
            }
            Tok::FStart => self.formatted()?,
            Tok::Ident => {
                let next = self.raw(1);
                let is_shift = matches!(self.raw(2).tok, Tok::Less | Tok::LessEq);
                if next.tok == Tok::Less && !next.spaced && !is_shift {
                    ExprKind::Type(self.ty()?)
                } else {
                    let token = self.bump();
                    ExprKind::Name(self.ident_of(token).sym)
                }
            }
            // `kernel.warp`, `system.gpu`: words are names where nothing else can stand.
            Tok::LParen => {
                let mut items = self.in_brackets(Tok::RParen, |p| p.tuple_items())?;
                match items {
                    (ref mut list, false) if list.len() == 1 => return Ok(list.remove(0)),
                    (list, _) => ExprKind::Tuple(list),
                }
            }
            Tok::LBracket => ExprKind::List(
                self.in_brackets(Tok::RBracket, |p| p.list_until(Tok::RBracket, Self::expr))?,
            ),
            Tok::LBrace => self.in_brackets(Tok::RBrace, Self::map_or_set)?,
            Tok::Fn => ExprKind::Lambda(self.lambda()?),
            Tok::Match => return self.match_expr(),
            Tok::If => return self.if_expr(),
            found => {
                let message = format!("expected a value, found {}", found.describe());
                return Err(self.error_here(message, "write a literal, a name or a call"));
            }
        };
        Ok(self.make(start, kind))
    }

    /// Items of `( … )`, and whether a comma makes one item a tuple.
    fn tuple_items(&mut self) -> Parse<(Vec<ExprId>, bool)> {
        let mut items = Vec::new();
        let mut comma = false;
        while self.peek() != Tok::RParen {
            items.push(self.expr()?);
            comma = self.eat(Tok::Comma);
            if !comma {
                break;
            }
        }
        Ok((items, comma))
    }

    fn integer(&mut self) -> Parse<ExprKind> {
        let span = self.here();
        let token = self.bump();
        let text = self.text(token).replace('_', "").to_ascii_lowercase();
        let parsed = match text.get(..2) {
            Some("0x") => u64::from_str_radix(&text[2..], 16),
            Some("0o") => u64::from_str_radix(&text[2..], 8),
            Some("0b") => u64::from_str_radix(&text[2..], 2),
            _ => text.parse::<u64>(),
        };
        match parsed {
            Ok(value) => Ok(ExprKind::Int(value)),
            Err(_) => {
                let message = format!("`{text}` is no integer of at most 64 bits");
                let help = "write digits of the radix, or a float such as `1e20`";
                self.error(Code::MIR0101, span, message, help);
                Ok(ExprKind::Error)
            }
        }
    }

    fn formatted(&mut self) -> Parse<ExprKind> {
        self.bump();
        let mut parts = Vec::new();
        loop {
            match self.token().tok {
                Tok::FText => {
                    let token = self.bump();
                    let text = unescape(self.text(token));
                    parts.push(FormatPart::Text(self.names.intern(&text)));
                }
                Tok::FOpen => {
                    let value = self.in_brackets(Tok::FClose, Self::expr);
                    match value {
                        Ok(value) => parts.push(FormatPart::Value(value)),
                        Err(Failed) => {
                            self.skip_format();
                            return Err(Failed);
                        }
                    }
                }
                Tok::FEnd => {
                    self.bump();
                    return Ok(ExprKind::Format(parts));
                }
                _ => return Err(self.error_here("this formatted string is broken", "close it")),
            }
        }
    }

    /// Goes behind the end of the formatted string that was begun.
    fn skip_format(&mut self) {
        let mut depth = 1;
        while depth > 0 && self.token().tok != Tok::Eof {
            match self.bump().tok {
                Tok::FStart => depth += 1,
                Tok::FEnd => depth -= 1,
                _ => {}
            }
        }
    }

    fn map_or_set(&mut self) -> Parse<ExprKind> {
        if self.peek() == Tok::RBrace {
            return Ok(ExprKind::Map(Vec::new()));
        }
        let first = self.expr()?;
        if self.eat(Tok::Colon) {
            let mut entries = vec![(first, self.expr()?)];
            while self.eat(Tok::Comma) && self.peek() != Tok::RBrace {
                let key = self.expr()?;
                self.expect(Tok::Colon, "write `key: value`")?;
                entries.push((key, self.expr()?));
            }
            return Ok(ExprKind::Map(entries));
        }
        let mut items = vec![first];
        while self.eat(Tok::Comma) && self.peek() != Tok::RBrace {
            items.push(self.expr()?);
        }
        Ok(ExprKind::Set(items))
    }

    /// `if c: a else: b` as a value.
    fn if_expr(&mut self) -> Parse<ExprId> {
        let start = self.here();
        self.bump();
        let cond = self.expr()?;
        self.expect(Tok::Colon, "write `if c: a else: b`")?;
        let then = self.expr()?;
        self.expect(Tok::Else, "a conditional value needs `else: b`")?;
        let otherwise = match self.peek() {
            Tok::If => self.nested(Self::if_expr)?,
            _ => {
                self.expect(Tok::Colon, "write `else: b`")?;
                self.expr()?
            }
        };
        Ok(self.make(start, ExprKind::Cond { cond, then, otherwise }))
    }

    pub(super) fn match_expr(&mut self) -> Parse<ExprId> {
        let start = self.here();
        self.bump();
        let scrutinee = self.expr()?;
        let mut arms = Vec::new();
        if self.peek() == Tok::Colon && !self.raw(1).first {
            self.bump();
            loop {
                arms.push(self.arm()?);
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        } else {
            // Arms stand on lines like statements; each leaves a placeholder behind.
            let mut found = Vec::new();
            self.block_of(&mut |p| {
                let arm = p.arm()?;
                p.eat(Tok::Comma);
                let span = arm.span;
                found.push(arm);
                Ok(p.ast.add(Stmt { kind: StmtKind::Error, span }))
            })?;
            arms = found;
        }
        Ok(self.make(start, ExprKind::Match { scrutinee, arms }))
    }

    /// `fn(a int) int: a + 1`
    fn lambda(&mut self) -> Parse<FnDeclId> {
        let start = self.here();
        let token = self.bump();
        let name = self.ident_of(token);
        let params = self.params()?;
        // On a line of its own the body begins, inside of brackets too.
        let has_result = !self.token().first && self.starts_type();
        let result = if has_result { Some(self.ty()?) } else { None };
        let head = self.span_from(start);
        let on_line = self.peek() == Tok::Colon && !self.raw(1).first;
        let body = if on_line {
            self.bump();
            match self.begins_statement() {
                true => Block { stmts: vec![self.statement()?] },
                false => {
                    let value = self.expr()?;
                    let span = self.ast[value].span;
                    Block { stmts: vec![self.ast.add(Stmt { kind: StmtKind::Expr(value), span })] }
                }
            }
        } else {
            self.eat(Tok::Colon);
            if !self.token().first {
                let message =
                    format!("expected the body of a lambda, found {}", self.peek().describe());
                return Err(self.error_here(message, "write `fn(x int) int: x + 1`"));
            }
            self.line_begun = true;
            if self.token().column <= self.column || self.token().tok == Tok::Eof {
                return Err(self.error_here("the body of a lambda is missing", "indent it"));
            }
            self.nested(|p| Ok(p.lines(&mut |p| p.statement())))?
        };
        Ok(self.ast.add(FnDecl { name, gpu: false, generics: vec![], params, result, body, head }))
    }
}
