//! The text form of MPIR (`.mpir`), reading half; [`crate::print`] describes the form.
//!
//! `parse(print(m))` equals `m` ([`crate::module_eq`]) for every module whose functions are compact
//! ([`crate::MpirFn::compact`]) and pass the verifier.
//!
//! Text written by hand may leave out what has a natural value: source places, `sid`, the result
//! type `unit`, `target(spv)`, `workgroup(64, 1, 1)`. Values and labels may have any name; a
//! parameter `%n` is called `n`. Blocks and values are numbered in order of appearance.
//!
//! The reader takes any text: it reports what is wrong as [`Code::MPS0030`], several errors in one
//! run, goes on at the next line, and never recurses deeper than [`MAX_TYPE_DEPTH`].

mod constant;
mod declare;
mod function;
mod inst;
mod lexer;
mod resolve;
mod types;

use crate::{FnId, Module};
use lexer::{Kind, Lexer, Token};
use magpie_diag::{Code, Diagnostic, FileId, MAX_SOURCE_LEN, Span};
use magpie_types::{SigId, TypeId};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// How deep type arguments may nest.
pub const MAX_TYPE_DEPTH: usize = 64;

/// A run stops after this many errors.
const MAX_ERRORS: usize = 50;

/// Reads a module. `file` is the file of the text, for the places of errors.
pub fn parse(text: &str, file: FileId) -> Result<Module, Vec<Diagnostic>> {
    Parser::new(text, file, false).module()
}

/// Reads a module and takes the places of functions, parameters, instructions and terminators from
/// the text itself instead of its `!` marks, so that later errors point into it.
pub fn parse_with_own_places(text: &str, file: FileId) -> Result<Module, Vec<Diagnostic>> {
    Parser::new(text, file, true).module()
}

/// The error is already in the list.
struct Refused;

type Parsed<T> = Result<T, Refused>;

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token to be read next.
    tok: Token,
    /// The end of the last token read.
    read_to: u32,
    file: FileId,
    own_places: bool,
    m: Module,
    errors: Vec<Diagnostic>,
    types_by_name: FxHashMap<Cow<'a, str>, TypeId>,
    sigs_by_name: FxHashMap<Cow<'a, str>, SigId>,
    fns_by_name: FxHashMap<Cow<'a, str>, FnId>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, file: FileId, own_places: bool) -> Parser<'a> {
        let too_long = text.len() > MAX_SOURCE_LEN;
        let text = if too_long { "" } else { text };
        let mut lexer = Lexer::new(text);
        let tok = lexer.next();
        let mut p = Parser {
            text,
            lexer,
            tok,
            read_to: 0,
            file,
            own_places,
            m: Module::new(),
            errors: Vec::new(),
            types_by_name: FxHashMap::default(),
            sigs_by_name: FxHashMap::default(),
            fns_by_name: FxHashMap::default(),
        };
        if too_long {
            let limit = MAX_SOURCE_LEN >> 20;
            p.error(tok, format!("the text is longer than {limit} MiB"));
        }
        p
    }

    fn module(mut self) -> Result<Module, Vec<Diagnostic>> {
        self.declare();
        while self.tok.kind != Kind::End && self.errors.len() < MAX_ERRORS {
            if self.item().is_err() {
                self.skip_to_item();
            }
        }
        if self.errors.is_empty() { Ok(self.m) } else { Err(self.errors) }
    }

    fn item(&mut self) -> Parsed<()> {
        let word = if self.tok.kind == Kind::Word { self.slice(self.tok) } else { "" };
        match word {
            "file" => self.file_name(),
            "value" | "heap" => self.type_definition(),
            "sig" => self.sig_definition(),
            "fn" | "async" | "unsafe" | "gpu" | "device" | "lowhost" => self.function(),
            _ => Err(self.expected_at_start(
                "`fn`, `gpu fn`, `device fn`, `lowhost fn`, `value`, `heap`, `sig` or `file`",
            )),
        }
    }

    fn file_name(&mut self) -> Parsed<()> {
        self.bump();
        let at = self.tok;
        let id = self.number_u32("a file number")?;
        if id as usize != self.m.files.len() {
            let next = self.m.files.len();
            return Err(self.error(at, format!("files are numbered in order: this is file {next}")));
        }
        let name = self.string()?;
        self.m.files.push(name);
        Ok(())
    }

    /// Skips to the next line that starts a definition.
    fn skip_to_item(&mut self) {
        loop {
            self.bump();
            let starts = match self.tok.kind {
                Kind::End => true,
                Kind::Word if self.tok.first_in_line => matches!(
                    self.slice(self.tok),
                    "file"
                        | "value"
                        | "heap"
                        | "sig"
                        | "fn"
                        | "async"
                        | "unsafe"
                        | "gpu"
                        | "device"
                        | "lowhost"
                ),
                _ => false,
            };
            if starts {
                return;
            }
        }
    }

    // ----- tokens -----

    fn bump(&mut self) -> Token {
        let tok = self.tok;
        self.read_to = tok.end;
        self.tok = self.lexer.next();
        tok
    }

    fn peek(&self) -> Token {
        let mut ahead = self.lexer;
        ahead.next()
    }

    fn slice(&self, tok: Token) -> &'a str {
        &self.text[tok.start as usize..tok.end as usize]
    }

    fn is_word(&self, word: &str) -> bool {
        self.tok.kind == Kind::Word && self.slice(self.tok) == word
    }

    fn is_punct(&self, punct: u8) -> bool {
        self.tok.kind == Kind::Punct(punct)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn eat(&mut self, punct: u8) -> bool {
        let found = self.is_punct(punct);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, punct: u8) -> Parsed<()> {
        if self.eat(punct) {
            return Ok(());
        }
        Err(self.expected(&format!("`{}`", punct as char)))
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(self.expected(&format!("`{word}`")))
    }

    /// A name: a word, or anything in quotes.
    fn name(&mut self, what: &str) -> Parsed<Cow<'a, str>> {
        match self.tok.kind {
            Kind::Word => {
                let tok = self.bump();
                Ok(Cow::Borrowed(self.slice(tok)))
            }
            Kind::Str => Ok(Cow::Owned(self.string()?)),
            _ => Err(self.expected(what)),
        }
    }

    fn string(&mut self) -> Parsed<String> {
        if self.tok.kind != Kind::Str {
            return Err(self.expected("a string in quotes"));
        }
        let tok = self.bump();
        lexer::unescape(self.slice(tok)).map_err(|at| {
            let start = tok.start + at as u32;
            let place = Token { start, end: tok.end.min(start + 2), ..tok };
            self.error(place, "this escape is none of \\n \\t \\r \\0 \\\\ \\\" \\u{HEX}")
        })
    }

    fn number_u32(&mut self, what: &str) -> Parsed<u32> {
        if self.tok.kind != Kind::Number {
            return Err(self.expected(what));
        }
        let tok = self.bump();
        match constant::integer(self.slice(tok)).and_then(|v| u32::try_from(v).ok()) {
            Some(v) => Ok(v),
            None => Err(self.error(tok, format!("expected {what} below 2^32"))),
        }
    }

    /// An optional `!FILE:START-END`.
    fn place(&mut self) -> Parsed<Span> {
        if self.tok.kind != Kind::Place {
            return Ok(Span::NONE);
        }
        let tok = self.bump();
        let mut numbers = self.slice(tok)[1..].split([':', '-']).map(|n| n.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten()) {
            (Some(file), Some(start), Some(end)) if start <= end && file != u32::MAX => {
                Ok(Span::new(FileId(file), start, end))
            }
            _ => Err(self.error(tok, "expected `!FILE:START-END` with START at most END")),
        }
    }

    /// The place to store for a thing that starts at `start` and was just read: its mark, or where
    /// it stands.
    fn stored_place(&mut self, start: Token, mark: Span) -> Span {
        if self.own_places { Span::new(self.file, start.start, self.read_to) } else { mark }
    }

    fn span(&self, tok: Token) -> Span {
        Span::new(self.file, tok.start, tok.end)
    }

    // ----- errors -----

    fn error(&mut self, tok: Token, message: impl Into<String>) -> Refused {
        let span = self.span(tok);
        self.errors.push(Diagnostic::new(Code::MPS0030, span, message));
        Refused
    }

    /// Something else stands here, or the line or the text ends: then the place is its end.
    fn expected(&mut self, what: &str) -> Refused {
        if self.tok.first_in_line || self.tok.kind == Kind::End {
            let end = Token { start: self.read_to, end: self.read_to, ..self.tok };
            let what_ends = if self.tok.kind == Kind::End { "text" } else { "line" };
            return self.error(end, format!("expected {what}, found the end of the {what_ends}"));
        }
        self.expected_at_start(what)
    }

    /// Like [`Parser::expected`] where a line may begin.
    fn expected_at_start(&mut self, what: &str) -> Refused {
        let tok = self.tok;
        let found = match tok.kind {
            Kind::Bad if self.slice(tok).starts_with('"') => "a string without its end".to_string(),
            _ => format!("`{}`", shorten(self.slice(tok))),
        };
        self.error(tok, format!("expected {what}, found {found}"))
    }
}

/// The first characters of a text, for messages.
fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
