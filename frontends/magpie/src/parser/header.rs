//! The four parts at the top of a module.

use super::*;

const PARTS: [(Symbol, &str); 4] = [
    (symbols::MODULE, "module path"),
    (symbols::EXPORTS, "exports { … }"),
    (symbols::IMPORTS, "imports { … }"),
    (symbols::DIGEST, "digest \"\""),
];

impl Parser<'_> {
    pub(super) fn header(&mut self) {
        let mut seen = [false; PARTS.len()];
        let mut order_reported = false;
        loop {
            let part = match self.token.kind {
                TokenKind::Word => PARTS.iter().position(|&(word, _)| word == self.symbol),
                _ => None,
            };
            let Some(part) = part else {
                if self.at_decl() || self.at(TokenKind::Eof) {
                    break;
                }
                if !order_reported {
                    self.unexpected(
                        &format!("`{}`", next_part(&seen)),
                        "a module starts with `module path`, `exports { … }`, `imports { … }` and `digest \"\"`, in this order",
                    );
                }
                order_reported = true;
                self.skip_to_header_part();
                continue;
            };
            if !order_reported && (seen[part..].contains(&true) || seen[..part].contains(&false)) {
                order_reported = true;
                self.report_part_out_of_order(&seen, part);
            }
            seen[part] = true;
            let start = self.token.range.start;
            self.advance();
            let result = match PARTS[part].0 {
                symbols::MODULE => self.module_part(),
                symbols::EXPORTS => self.exports_part(),
                symbols::IMPORTS => self.imports_part(),
                _ => self.digest_part(),
            };
            self.ast.header.parts[part] = self.range_from(start);
            if result.is_err() {
                order_reported = true;
                self.skip_to_header_part();
            }
        }
        if seen.contains(&false) && !order_reported {
            let help = format!("write `{}` before the declarations", next_part(&seen));
            self.unexpected(&format!("`{}`", next_part(&seen)), &help);
        }
        self.open_braces = 0;
    }

    fn report_part_out_of_order(&mut self, seen: &[bool; PARTS.len()], part: usize) {
        let word = self.interner.resolve(PARTS[part].0);
        let message = match seen[part] {
            true => format!("`{word}` is given twice"),
            false if seen[part..].contains(&true) => format!("`{word}` comes too late"),
            false => format!("expected `{}`, found `{word}`", next_part(seen)),
        };
        let help = "the order is `module`, `exports`, `imports`, `digest`, each once";
        let error = self.syntax_error(self.token.range, message).with_help(help);
        self.report(error);
    }

    fn skip_to_header_part(&mut self) {
        while !self.at(TokenKind::Eof) {
            if self.is_first_on_line() {
                let is_part =
                    self.at(TokenKind::Word) && PARTS.iter().any(|&(word, _)| word == self.symbol);
                if is_part || self.at_decl() {
                    break;
                }
            }
            self.advance();
        }
    }

    fn module_part(&mut self) -> Parse<()> {
        let path = self.module_path()?;
        self.ast.header.module = path;
        Ok(())
    }

    /// A path that may have one word, which then must not be a reserved one.
    fn module_path(&mut self) -> Parse<Name> {
        const WHAT: &str = "the path of a module";
        if self.at(TokenKind::Word)
            && self.token_is_on_a_later_line()
            && symbols::is_reserved(self.symbol)
        {
            return Err(self.missing(WHAT));
        }
        let path = self.path(WHAT)?;
        if symbols::is_reserved(path.symbol) {
            let message = format!("`{}` is a reserved word", self.name_of(path));
            let error = self.syntax_error(path.range, message);
            return Err(self.report(error.with_help("choose another name for the module")));
        }
        Ok(path)
    }

    fn exports_part(&mut self) -> Parse<()> {
        self.ast.header.exports = self.exports()?;
        Ok(())
    }

    /// `{ @f, TName, … }`
    fn exports(&mut self) -> Parse<Slice<Export>> {
        self.expect(TokenKind::LBrace)?;
        let start = self.ast.pools.exports.len();
        let starts_item = |p: &Self| p.at(TokenKind::FnName) || p.at(TokenKind::Word);
        self.comma_list(TokenKind::RBrace, starts_item, |p| {
            let kind = match p.token.kind {
                TokenKind::FnName => ExportKind::Function,
                _ => ExportKind::Type,
            };
            let name = match kind {
                ExportKind::Function => p.expect_name(TokenKind::FnName)?,
                ExportKind::Type => p.type_name("a name such as `@f` or `TName`")?,
            };
            p.ast.pools.exports.push(Export { kind, name });
            Ok(())
        })?;
        Ok(Slice::new(start, self.ast.pools.exports.len()))
    }

    /// The name of a declared type: `T` and more.
    pub(super) fn type_name(&mut self, what: &str) -> Parse<Name> {
        let name = Name { symbol: self.symbol, range: self.token.range };
        let is_type_name = self.at(TokenKind::Word) && {
            let text = name.range.of(self.text);
            text.len() > 1 && text.starts_with('T') && !text.contains('.')
        };
        if !is_type_name {
            return Err(self.missing_with_help(
                what,
                "the names of declared types start with `T`, those of functions with `@`",
            ));
        }
        self.advance();
        Ok(name)
    }

    fn imports_part(&mut self) -> Parse<()> {
        self.expect(TokenKind::LBrace)?;
        let start = self.ast.pools.imports.len();
        let starts_item = |p: &Self| p.at(TokenKind::Word);
        self.comma_list(TokenKind::RBrace, starts_item, |p| {
            let path = p.path("the path of a module")?;
            let items = match p.eat(TokenKind::ColonColon) {
                true => Some(p.exports()?),
                false => None,
            };
            p.ast.pools.imports.push(Import { path, items });
            Ok(())
        })?;
        self.ast.header.imports = Slice::new(start, self.ast.pools.imports.len());
        Ok(())
    }

    /// A string, or a bare run of hexadecimal digits, which is one token: a number or a word.
    fn digest_part(&mut self) -> Parse<()> {
        let text = self.token.range.of(self.text);
        match self.token.kind {
            TokenKind::Str => {
                self.ast.header.digest = self.string_contents()?.symbol;
                Ok(())
            }
            TokenKind::Number | TokenKind::Word if text.bytes().all(|b| b.is_ascii_hexdigit()) => {
                self.ast.header.digest = self.interner.intern(text);
                self.advance();
                Ok(())
            }
            _ => Err(self.missing_with_help(
                "a digest",
                "write `digest \"\"`; `magpie fmt` fills in the true digest",
            )),
        }
    }
}

/// How the first part that has not been seen is written.
fn next_part(seen: &[bool; PARTS.len()]) -> &'static str {
    PARTS.iter().zip(seen).find(|(_, seen)| !**seen).map_or("a declaration", |((_, form), _)| form)
}
