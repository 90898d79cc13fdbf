//! Tokens → syntax tree, in one pass, with recovery.
//!
//! Recursive descent with one token of lookahead; only types recurse, and only to a fixed depth.
//! A function that finds an error reports it and returns [`Reported`]; the loops over statements,
//! fields and declarations catch that, skip to the next place where one can start (see
//! [`recover`]) and go on. Behind a syntax error nothing more of the same line is reported: it
//! could be a consequence. So every error is reported once, and the parser never fails.

mod args;
mod body;
mod decl;
mod header;
mod instr;
mod recover;
mod report;
mod types;
mod value;

use crate::ast::*;
use crate::interner::{Interner, Symbol};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::symbols;
use magpie_diag::{Code, Diagnostic, FileId, MAX_SOURCE_LEN, Span};

/// After this many errors the rest of the file is not read: it is not a program.
const MAX_ERRORS: usize = 1000;

/// A module's syntax tree with what was found wrong in its text.
#[derive(Clone, Debug)]
pub struct ParsedModule {
    /// The file that spans name.
    pub file: FileId,
    /// The tree; whole only when there are no errors.
    pub ast: Ast,
    /// The names in the tree.
    pub interner: Interner,
    /// The errors, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl ParsedModule {
    /// Whether the text is not a module: later stages need one that is.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// The text of a symbol.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.interner.resolve(symbol)
    }

    /// A place in this module's file.
    pub fn span(&self, range: ByteRange) -> Span {
        Span::new(self.file, range.start, range.end)
    }
}

/// Reads a module. Never fails: what is wrong is in [`ParsedModule::diagnostics`] (`MPP0001` bad
/// characters, `MPP0002` syntax, `MPP0003` nesting, and where a literal or a clause cannot be kept
/// as written the code of that fault).
pub fn parse_module(file: FileId, text: &str) -> ParsedModule {
    if text.len() > MAX_SOURCE_LEN {
        let mut parser = Parser::new(file, "");
        let mut error = Diagnostic::new(
            Code::MPP0001,
            Span::new(file, 0, 0),
            format!("the file has {} bytes; at most {MAX_SOURCE_LEN} are read", text.len()),
        );
        error = error.with_help("split the module into several files");
        parser.diagnostics.push(error);
        return parser.finish();
    }
    let mut parser = Parser::new(file, text);
    parser.header();
    parser.decls();
    parser.finish()
}

/// An error was found and reported: the caller recovers or passes it on.
#[derive(Clone, Copy, Debug)]
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Parser<'t> {
    file: FileId,
    text: &'t str,
    lexer: Lexer<'t>,
    interner: Interner,
    ast: Ast,
    diagnostics: Vec<Diagnostic>,
    /// The current token.
    token: Token,
    /// Its symbol, for the kinds of tokens that have one.
    symbol: Symbol,
    /// The end of the token before it.
    previous_end: u32,
    /// How many `{` are open, counted so that recovery knows which `}` closes what.
    open_braces: u32,
    /// Whether the file was given up.
    gave_up: bool,
    /// From the last syntax error to the end of its line.
    broken_line: ByteRange,
    // Stacks for lists under construction; each user takes what it pushed.
    type_stack: Vec<TypeExprId>,
    arg_stack: Vec<Arg>,
    /// Reused for the contents of strings.
    scratch: String,
}

impl<'t> Parser<'t> {
    fn new(file: FileId, text: &'t str) -> Parser<'t> {
        let start = ByteRange::default();
        let empty = Name { symbol: symbols::EMPTY, range: start };
        let header = Header {
            module: empty,
            exports: Slice::EMPTY,
            imports: Slice::EMPTY,
            digest: symbols::EMPTY,
            parts: [start; 4],
        };
        let mut parser = Parser {
            file,
            text,
            lexer: Lexer::new(text),
            interner: Interner::new(),
            ast: Ast {
                header,
                decls: Vec::new(),
                comments: Vec::new(),
                types: TypeExprs::default(),
                pools: Pools::for_text(text.len()),
            },
            diagnostics: Vec::new(),
            token: Token { kind: TokenKind::Eof, range: start },
            symbol: symbols::EMPTY,
            previous_end: 0,
            open_braces: 0,
            gave_up: false,
            broken_line: start,
            type_stack: Vec::new(),
            arg_stack: Vec::new(),
            scratch: String::new(),
        };
        parser.advance();
        parser
    }

    fn finish(mut self) -> ParsedModule {
        self.ast.comments = self.lexer.comments;
        magpie_diag::sort_diagnostics(&mut self.diagnostics);
        ParsedModule {
            file: self.file,
            ast: self.ast,
            interner: self.interner,
            diagnostics: self.diagnostics,
        }
    }

    /// Takes the current token and reads the next.
    fn advance(&mut self) {
        match self.token.kind {
            TokenKind::LBrace => self.open_braces += 1,
            TokenKind::RBrace => self.open_braces = self.open_braces.saturating_sub(1),
            _ => {}
        }
        self.previous_end = self.token.range.end;
        if self.gave_up {
            return;
        }
        self.token = self.lexer.next();
        match self.token.kind {
            TokenKind::Word => self.symbol = self.interner.intern(self.lexer.slice()),
            TokenKind::FnName | TokenKind::SsaName => {
                self.symbol = self.interner.intern(&self.lexer.slice()[1..]);
            }
            TokenKind::BadChars | TokenKind::UnterminatedStr => self.report_unreadable_token(),
            _ => {}
        }
    }

    #[inline]
    fn at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    #[inline]
    fn at_word(&self, word: Symbol) -> bool {
        self.at(TokenKind::Word) && self.symbol == word
    }

    #[inline]
    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: Symbol) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Parse<ByteRange> {
        if self.at(kind) {
            let range = self.token.range;
            self.advance();
            return Ok(range);
        }
        Err(self.missing(kind.describe()))
    }

    /// The current token as a name, when it is of the kind.
    fn expect_name(&mut self, kind: TokenKind) -> Parse<Name> {
        let name = Name { symbol: self.symbol, range: self.token.range };
        self.expect(kind)?;
        Ok(name)
    }

    /// One word without dots.
    fn expect_plain_word(&mut self, what: &str) -> Parse<Name> {
        let range = self.token.range;
        if !self.at(TokenKind::Word) || range.of(self.text).bytes().any(|b| b == b'.') {
            return Err(self.missing(what));
        }
        let symbol = self.symbol;
        self.advance();
        Ok(Name { symbol, range })
    }

    /// One word that is not reserved.
    fn expect_free_word(&mut self, what: &str) -> Parse<Name> {
        let name = self.expect_plain_word(what)?;
        if symbols::is_reserved(name.symbol) {
            let message = format!("`{}` is a reserved word", self.interner.resolve(name.symbol));
            let error = self.syntax_error(name.range, message);
            return Err(self.report(error.with_help("choose another name")));
        }
        Ok(name)
    }

    /// Whether the token before the current one is `}`.
    fn is_behind_brace(&self) -> bool {
        self.text[..self.previous_end as usize].ends_with('}')
    }

    /// Everything from `start` to the end of the token before the current one.
    fn range_from(&self, start: u32) -> ByteRange {
        ByteRange { start, end: self.previous_end.max(start) }
    }
}
