//! Names with paths, labels, literals, constants and operands.

use super::recover::is_label;
use super::*;
use crate::literal::{self, Number};

/// What a dotted piece of text names.
pub(super) enum Dotted {
    /// `a.b.c`
    Path(Name),
    /// `a.b.@f` or `@f`
    Function(FnRefId),
}

impl Parser<'_> {
    /// A path, or a function with or without one.
    pub(super) fn dotted(&mut self, what: &str) -> Parse<Dotted> {
        let name = Name { symbol: self.symbol, range: self.token.range };
        match self.token.kind {
            TokenKind::FnName => {
                self.advance();
                let fn_ref = FnRef { path: None, name: name.symbol, range: name.range };
                Ok(Dotted::Function(self.ast.pools.add_fn_ref(fn_ref)))
            }
            TokenKind::Word => {
                self.advance();
                self.dotted_rest(name)
            }
            _ => Err(self.missing(what)),
        }
    }

    /// What follows the first word of a dotted piece of text. Words that are joined by dots
    /// without space are one token, so that there is rarely more than `.@f`.
    pub(super) fn dotted_rest(&mut self, first: Name) -> Parse<Dotted> {
        if !self.at(TokenKind::Dot) {
            return Ok(Dotted::Path(first));
        }
        let mut path = first;
        let mut joined = false;
        while self.eat(TokenKind::Dot) {
            let range = self.token.range;
            match self.token.kind {
                TokenKind::Word => {
                    if !joined {
                        self.scratch.clear();
                        self.scratch.push_str(first.range.of(self.text));
                        joined = true;
                    }
                    self.scratch.push('.');
                    self.scratch.push_str(range.of(self.text));
                    path.range.end = range.end;
                    self.advance();
                }
                TokenKind::FnName => {
                    let name = self.symbol;
                    self.advance();
                    if joined {
                        path.symbol = self.interner.intern(&self.scratch);
                    }
                    let range = path.range.to(range);
                    let fn_ref = FnRef { path: Some(path.symbol), name, range };
                    return Ok(Dotted::Function(self.ast.pools.add_fn_ref(fn_ref)));
                }
                _ => return Err(self.missing("a name")),
            }
        }
        if joined {
            path.symbol = self.interner.intern(&self.scratch);
        }
        Ok(Dotted::Path(path))
    }

    /// A path that does not name a function.
    pub(super) fn path(&mut self, what: &str) -> Parse<Name> {
        if !self.at(TokenKind::Word) {
            return Err(self.missing(what));
        }
        match self.dotted(what)? {
            Dotted::Path(path) => Ok(path),
            Dotted::Function(id) => {
                let range = self.ast[id].range;
                let message = format!("expected {what}, found a function");
                let error = self.syntax_error(range, message);
                Err(self.report(error.with_help(format!("write {what} here"))))
            }
        }
    }

    /// A function with or without a path.
    pub(super) fn fn_ref(&mut self) -> Parse<FnRefId> {
        const WHAT: &str = "a function such as `@f` or `path.@f`";
        match self.dotted(WHAT)? {
            Dotted::Function(id) => Ok(id),
            Dotted::Path(path) => {
                let message = format!("expected {WHAT}, found `{}`", self.name_of(path));
                let error = self.syntax_error(path.range, message);
                Err(self.report(error.with_help("function names start with `@`")))
            }
        }
    }

    pub(super) fn name_of(&self, name: Name) -> &str {
        self.interner.resolve(name.symbol)
    }

    /// A label where control goes.
    pub(super) fn target(&mut self) -> Parse<Target> {
        if !self.at(TokenKind::Word) || !is_label(self.token.range.of(self.text)) {
            return Err(self
                .missing_with_help("a block label", "write the label of a block, such as `bb1`"));
        }
        let target = Target { label: self.symbol, range: self.token.range };
        self.advance();
        Ok(target)
    }

    /// At the start of a constant.
    pub(super) fn at_const(&self) -> bool {
        self.at(TokenKind::Word)
            && (symbols::const_type(self.symbol).is_some()
                || self.symbol == symbols::CONST
                || self.token.range.of(self.text).starts_with("const."))
    }

    /// At the start of an operand.
    pub(super) fn at_value(&self) -> bool {
        self.at(TokenKind::SsaName) || self.at_const()
    }

    /// `%x` or `const.T literal`.
    pub(super) fn value(&mut self) -> Parse<Value> {
        if self.at(TokenKind::SsaName) {
            let symbol = self.symbol;
            self.advance();
            return Ok(Value::Ssa(symbol));
        }
        if self.at_const() {
            return Ok(Value::Const(self.constant()?));
        }
        Err(self.missing_value())
    }

    /// Reports that no operand stands here, with what the writer may have meant.
    pub(super) fn missing_value(&mut self) -> Reported {
        let text = self.token.range.of(self.text);
        let help = match self.token.kind {
            TokenKind::Number if text.contains('.') => {
                format!("a constant names its type: `const.f32 {text}`")
            }
            TokenKind::Number => format!("a constant names its type: `const.i32 {text}`"),
            TokenKind::Word if matches!(self.symbol, symbols::TRUE | symbols::FALSE) => {
                format!("a constant names its type: `const.bool {text}`")
            }
            TokenKind::Word => "value names start with `%`".to_string(),
            _ => "write `%name` or `const.T literal`".to_string(),
        };
        self.missing_with_help("a value", help)
    }

    /// `const.T literal`
    pub(super) fn constant(&mut self) -> Parse<ConstId> {
        let ty = self.const_type()?;
        let start = self.token.range.start;
        let literal = self.literal(Some(ty))?;
        let constant = Const { ty, literal, literal_range: self.range_from(start) };
        Ok(self.ast.pools.add_const(constant))
    }

    fn const_type(&mut self) -> Parse<TypeExprId> {
        let name = Name { symbol: self.symbol, range: self.token.range };
        self.advance();
        if let Some(ty) = symbols::const_type(name.symbol)
            && !self.at(TokenKind::Dot)
        {
            return Ok(self.ast.types.intern_path(ty));
        }
        // A type that is not primitive, or space around the dots.
        const WHAT: &str = "`.` and the type of the constant";
        let Dotted::Path(path) = self.dotted_rest(name)? else {
            return Err(self.missing(WHAT));
        };
        let Some(ty) = self.name_of(path).strip_prefix("const.") else {
            return Err(self.missing(WHAT));
        };
        let ty = ty.to_string();
        let path = Name { symbol: self.interner.intern(&ty), range: path.range };
        self.type_with_args(Modifier::None, path, 0)
    }

    /// `true`, `false`, `unit`, a number or a string. A number of more than 128 bits is kept for
    /// a float type only.
    pub(super) fn literal(&mut self, ty: Option<TypeExprId>) -> Parse<Literal> {
        let token = self.token;
        let text = token.range.of(self.text);
        let literal = match token.kind {
            TokenKind::Number => self.number(text, ty)?,
            TokenKind::Str => {
                let contents = self.string_contents()?;
                return Ok(Literal::Str(contents.symbol));
            }
            TokenKind::Word if self.symbol == symbols::TRUE => Literal::Bool(true),
            TokenKind::Word if self.symbol == symbols::FALSE => Literal::Bool(false),
            TokenKind::Word if self.symbol == symbols::UNIT => Literal::Unit,
            _ => {
                return Err(self.missing_with_help(
                    "a literal",
                    "write a number, a string, `true`, `false` or `unit`",
                ));
            }
        };
        self.advance();
        Ok(literal)
    }

    fn number(&mut self, text: &str, ty: Option<TypeExprId>) -> Parse<Literal> {
        match literal::parse_number(text) {
            Some(Number::Int { negative, magnitude }) => Ok(Literal::Int { negative, magnitude }),
            Some(Number::Float { digits_len, suffix }) => {
                let digits = self.interner.intern(&text[..digits_len]);
                Ok(Literal::Float { digits, suffix })
            }
            Some(Number::HugeDecimal) if ty.is_some_and(|ty| self.is_float(ty)) => {
                Ok(Literal::Float { digits: self.interner.intern(text), suffix: None })
            }
            Some(Number::HugeDecimal | Number::HugeHex) => {
                let error = Diagnostic::new(
                    Code::MPT2015,
                    self.span(self.token.range),
                    "the number has more than 128 bits",
                );
                let help = "write a number that fits the type; no integer type is wider";
                self.report(error.with_help(help));
                Ok(Literal::Int { negative: false, magnitude: 0 })
            }
            None => Err(self.invalid_number(text)),
        }
    }

    pub(super) fn invalid_number(&mut self, text: &str) -> Reported {
        let message = format!("`{text}` is not a number");
        let error = self.syntax_error(self.token.range, message);
        let help = "numbers look like `-17`, `0x1f`, `2.5`, `1e-3` or `0.5f32`";
        self.report(error.with_help(help))
    }

    fn is_float(&self, ty: TypeExprId) -> bool {
        let path = self.ast.types[ty].path;
        matches!(path, symbols::F16 | symbols::F32 | symbols::F64 | symbols::BF16)
    }

    /// The contents of a string token.
    pub(super) fn string_contents(&mut self) -> Parse<Name> {
        let range = self.token.range;
        if !self.at(TokenKind::Str) {
            return Err(self.missing("a string"));
        }
        self.scratch.clear();
        let result = literal::decode_string(range.of(self.text), &mut self.scratch);
        if let Err(escape) = result {
            let escape_range = ByteRange {
                start: range.start + escape.start as u32,
                end: range.start + escape.end as u32,
            };
            let message = format!("`{}` is not an escape", escape_range.of(self.text));
            let help = if escape.is_unicode {
                "write `\\u{HEX}` with the number of a Unicode character, at most `10ffff`"
            } else {
                "escapes are `\\n \\t \\r \\0 \\\\ \\\" \\u{HEX}`"
            };
            let error = self.syntax_error(escape_range, message).with_help(help);
            self.report(error);
        }
        let symbol = self.interner.intern(&self.scratch);
        self.advance();
        Ok(Name { symbol, range })
    }

    /// A number that is an unsigned integer of at most `max`.
    pub(super) fn unsigned(&mut self, what: &str, max: u64) -> Parse<u64> {
        let range = self.token.range;
        if !self.at(TokenKind::Number) {
            return Err(self.missing(what));
        }
        let Some(number) = literal::parse_number(range.of(self.text)) else {
            return Err(self.invalid_number(range.of(self.text)));
        };
        self.advance();
        match number {
            Number::Int { negative: false, magnitude } if magnitude <= max.into() => {
                Ok(magnitude as u64)
            }
            _ => {
                let message = format!("expected {what}, found `{}`", range.of(self.text));
                let error = self.syntax_error(range, message);
                let help = format!("write a number from 0 to {max}");
                self.report(error.with_help(help));
                Ok(0)
            }
        }
    }
}
