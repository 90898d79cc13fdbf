//! Tokens → syntax trees: recursive descent that decides the layout and goes on after errors.
//!
//! Layout: a block is the lines that stand deeper than the line that opens it; inside brackets
//! lines mean nothing, until a lambda opens a block there. After an error the rest of the line is
//! skipped, together with the block it may open.

mod decl;
mod expr;
mod pattern;
mod stmt;
mod types;

use crate::ast::*;
use crate::lex::{Tok, Token, lex};
use magpie_diag::{Code, Diagnostic, FileId, Span};

/// Nesting of expressions, types and blocks: what the later stages may recurse over.
const MAX_DEPTH: u32 = 120;
/// More errors than this are not kept.
const MAX_ERRORS: usize = 100;

/// Something that was reported.
pub(crate) struct Failed;

pub(crate) type Parse<T> = Result<T, Failed>;

/// Parses a file; its nodes go to `ast`.
pub(crate) fn parse(
    file: FileId,
    text: &str,
    ast: &mut Ast,
    names: &mut Interner,
) -> (File, Vec<Diagnostic>) {
    let (tokens, diagnostics) = lex(file, text);
    let mut parser = Parser {
        file,
        text,
        tokens,
        at: 0,
        ast,
        names,
        diagnostics,
        brackets: 0,
        is_block_in_brackets: false,
        line_begun: false,
        column: 0,
        depth: 0,
    };
    let out = parser.file();
    (out, parser.diagnostics)
}

pub(crate) struct Parser<'a> {
    file: FileId,
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    ast: &'a mut Ast,
    names: &'a mut Interner,
    diagnostics: Vec<Diagnostic>,
    /// Open brackets around the present place, since the innermost block.
    brackets: u32,
    /// Whether there are open brackets around that block: what closes them ends it.
    is_block_in_brackets: bool,
    /// Whether a token of the present line was taken: a first token then is a new line.
    line_begun: bool,
    /// Column of the innermost block.
    column: u32,
    depth: u32,
}

impl Parser<'_> {
    // ----- tokens -----

    fn token(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn raw(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    /// The next token; [`Tok::Newline`] when the line is over.
    fn peek(&self) -> Tok {
        let token = self.token();
        // A line that begins with `.name` goes on.
        let goes_on = token.tok == Tok::Dot && self.raw(1).tok.is_word();
        match token.first && self.brackets == 0 && self.line_begun && !goes_on {
            true if token.tok == Tok::Eof => Tok::Eof,
            true => Tok::Newline,
            false => token.tok,
        }
    }

    /// The token behind the next one, on the same line.
    fn peek2(&self) -> Tok {
        let token = self.raw(1);
        match token.first && self.brackets == 0 {
            true => Tok::Newline,
            false => token.tok,
        }
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        self.line_begun = true;
        token
    }

    fn eat(&mut self, tok: Tok) -> bool {
        let found = self.peek() == tok;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, tok: Tok, help: &str) -> Parse<Token> {
        if self.peek() == tok {
            return Ok(self.bump());
        }
        let message = format!("expected {}, found {}", tok.describe(), self.peek().describe());
        Err(self.error_here(message, help))
    }

    fn span_of(&self, token: Token) -> Span {
        Span::new(self.file, token.start, token.end)
    }

    fn here(&self) -> Span {
        match self.peek() {
            Tok::Newline | Tok::Eof => {
                let end = self.tokens[self.at.saturating_sub(1)].end;
                Span::new(self.file, end, end)
            }
            _ => self.span_of(self.token()),
        }
    }

    /// From `start` to the last token taken.
    fn span_from(&self, start: Span) -> Span {
        let last = self.tokens[self.at.saturating_sub(1)];
        Span::new(self.file, start.start, last.end.max(start.end))
    }

    fn text(&self, token: Token) -> &str {
        &self.text[token.start as usize..token.end as usize]
    }

    fn ident_of(&mut self, token: Token) -> Ident {
        let sym = self.names.intern(&self.text[token.start as usize..token.end as usize]);
        Ident { sym, span: self.span_of(token) }
    }

    fn ident(&mut self, what: &str) -> Parse<Ident> {
        if self.peek() == Tok::Ident {
            let token = self.bump();
            return Ok(self.ident_of(token));
        }
        let found = self.peek();
        let message = format!("expected {what}, found {}", found.describe());
        let help = match found.is_word() {
            true => "this word belongs to the language: choose another name",
            false => "write a name of letters, digits and `_`",
        };
        Err(self.error_here(message, help))
    }

    /// A name behind a dot, where words of the language are names too.
    fn member(&mut self) -> Parse<Ident> {
        if self.peek().is_word() {
            let token = self.bump();
            return Ok(self.ident_of(token));
        }
        self.ident("the name of a member")
    }

    // ----- errors -----

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) -> Failed {
        if self.diagnostics.len() < MAX_ERRORS {
            self.diagnostics.push(Diagnostic::new(code, span, message).with_help(help));
        }
        Failed
    }

    /// Reports names that are declared twice side by side.
    fn distinct(&mut self, names: impl IntoIterator<Item = Ident>) {
        let mut seen: Vec<Ident> = Vec::new();
        for name in names {
            let text = self.names.name(name.sym).to_string();
            match seen.iter().find(|other| other.sym == name.sym && text != "_") {
                Some(first) if self.diagnostics.len() < MAX_ERRORS => self.diagnostics.push(
                    Diagnostic::new(
                        Code::MIR0208,
                        name.span,
                        format!("`{text}` is declared twice"),
                    )
                    .with_secondary(first.span, "here first")
                    .with_help("give one of them another name"),
                ),
                Some(_) => {}
                None => seen.push(name),
            }
        }
    }

    fn error_here(&mut self, message: impl Into<String>, help: &str) -> Failed {
        let span = self.here();
        self.error(Code::MIR0101, span, message, help)
    }

    /// Counts a level of nesting.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            let help = "bind parts to names of their own, or move them into a function";
            return Err(self.error_here(format!("more than {MAX_DEPTH} levels of nesting"), help));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Skips the rest of the line.
    fn skip_line(&mut self) {
        self.brackets = 0;
        // The first token of a line that was not begun is the end of no line.
        if !self.line_begun {
            self.bump();
        }
        while !matches!(self.peek(), Tok::Newline | Tok::Eof) {
            self.bump();
        }
    }

    /// Skips the rest of a statement: its line, and the lines deeper than the block.
    fn skip_statement(&mut self) {
        self.skip_line();
        while self.token().tok != Tok::Eof && self.token().column > self.column {
            self.bump();
            self.skip_line();
        }
    }

    // ----- blocks -----

    /// What follows a head: one statement on the line, or the deeper lines below. The statement
    /// comes from `one`.
    fn block_of(&mut self, one: &mut dyn FnMut(&mut Self) -> Parse<StmtId>) -> Parse<Block> {
        let colon = self.eat(Tok::Colon);
        if !matches!(self.peek(), Tok::Newline | Tok::Eof) {
            if !colon {
                let message = format!("expected a block, found {}", self.peek().describe());
                let help =
                    "write `:` before a statement on the same line, or begin a new, deeper line";
                return Err(self.error_here(message, help));
            }
            let stmt = self.nested(|p| one(p))?;
            return Ok(Block { stmts: vec![stmt] });
        }
        let outer = self.column;
        if self.token().tok == Tok::Eof || self.token().column <= outer {
            let help = "write the body on deeper lines below, or behind `:`";
            return Err(self.error_here("a block is missing here", help));
        }
        self.nested(|p| Ok(p.lines(one)))
    }

    fn block(&mut self) -> Parse<Block> {
        self.block_of(&mut |p| p.statement())
    }

    /// The statements of the block that begins with the next line.
    fn lines(&mut self, one: &mut dyn FnMut(&mut Self) -> Parse<StmtId>) -> Block {
        let outer = self.column;
        let brackets = std::mem::take(&mut self.brackets);
        let is_block_in_brackets = self.is_block_in_brackets;
        self.is_block_in_brackets |= brackets > 0;
        self.column = self.token().column;
        let mut block = Block::default();
        loop {
            let token = self.token();
            let closes = self.ends_bracketed_block(token.tok);
            if token.tok == Tok::Eof || !token.first || closes || token.column < self.column {
                if token.first && token.tok != Tok::Eof && token.column > outer && !closes {
                    let span = self.span_of(token);
                    let message = "this line returns to a column that no open block has";
                    let help = "indent it like the block it belongs to";
                    self.error(Code::MIR0101, span, message, help);
                    self.column = token.column;
                    continue;
                }
                break;
            }
            self.line_begun = false;
            match one(self) {
                Ok(stmt) => {
                    block.stmts.push(stmt);
                    let ends = matches!(self.peek(), Tok::Newline | Tok::Eof)
                        || self.ends_bracketed_block(self.peek());
                    if !ends {
                        let message = format!(
                            "expected the end of the line, found {}",
                            self.peek().describe()
                        );
                        self.error_here(message, "begin a new line for the next statement");
                        self.skip_statement();
                    } else {
                        self.check_deeper_line();
                    }
                }
                Err(Failed) => self.skip_statement(),
            }
        }
        self.column = outer;
        self.brackets = brackets;
        self.is_block_in_brackets = is_block_in_brackets;
        self.line_begun = true;
        block
    }

    /// Whether a token goes on with the brackets around a block.
    fn ends_bracketed_block(&self, token: Tok) -> bool {
        let goes_on = matches!(token, Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::Comma);
        self.is_block_in_brackets && goes_on
    }

    /// A complete statement is not followed by a deeper line.
    fn check_deeper_line(&mut self) {
        let token = self.token();
        if token.first && token.tok != Tok::Eof && token.column > self.column {
            let span = self.span_of(token);
            let message = "this line is indented deeper, but nothing opens a block";
            self.error(Code::MIR0101, span, message, "indent it like the line above");
            self.line_begun = false;
            self.bump();
            self.skip_statement();
        }
    }
}
