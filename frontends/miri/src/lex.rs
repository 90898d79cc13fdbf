//! Text → tokens.
//!
//! Layout is not turned into tokens: each token knows whether it is the first of its line and in
//! which column it stands, and the parser decides what that means. A formatted string becomes a
//! run of tokens: [`Tok::FStart`], then texts and bracketed expressions, then [`Tok::FEnd`].

use magpie_diag::{Code, Diagnostic, FileId, Span};

macro_rules! words {
    ($($tok:ident $text:literal,)*) => {
        /// What a token is.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Tok {
            /// End of the text.
            Eof,
            /// The next line: made by the parser, never by the lexer.
            Newline,
            Ident,
            Int,
            Float,
            /// A string without the `f`.
            Str,
            /// `f"`
            FStart,
            /// Text between the expressions of a formatted string.
            FText,
            /// `{` in a formatted string.
            FOpen,
            /// `}` in a formatted string.
            FClose,
            FEnd,
            $($tok,)*
        }

        /// Words and signs with their texts.
        const FIXED: &[(&str, Tok)] = &[$(($text, Tok::$tok),)*];
    };
}

words! {
    Use "use", Fn "fn", If "if", Unless "unless", Else "else", Match "match", Return "return",
    While "while", Until "until", Do "do", For "for", Forall "forall", Forever "forever", In "in",
    Let "let", Var "var", Const "const", Or "or", And "and", Not "not", True "True", TrueLow "true",
    False "False", FalseLow "false", None "None", As "as", Break "break", Continue "continue",
    Enum "enum", Struct "struct", Class "class", Trait "trait", Type "type", Extends "extends",
    Implements "implements", Public "public", Protected "protected", Private "private",
    Shared "shared", Gpu "gpu", Abstract "abstract", Async "async", Await "await", Spawn "spawn",
    Is "is",
    DotDotEq "..=", Plus "+", Minus "-", Star "*", Slash "/", Percent "%", Amp "&", Pipe "|",
    Caret "^", Tilde "~", EqEq "==", NotEq "!=", Less "<", LessEq "<=", Greater ">",
    GreaterEq ">=", Eq "=", PlusEq "+=", MinusEq "-=", StarEq "*=", SlashEq "/=", PercentEq "%=",
    DotDot "..", Dot ".", Comma ",", Colon ":", Semicolon ";", ColonColon "::", Question "?",
    Coalesce "??", Arrow "->", FatArrow "=>", At "@", LParen "(", RParen ")", LBracket "[",
    RBracket "]", LBrace "{", RBrace "}", AmpAmp "&&", PipePipe "||",
}

impl Tok {
    /// How the token is written, for messages.
    pub(crate) fn describe(self) -> String {
        match self {
            Tok::Eof => "the end of the file".to_string(),
            Tok::Newline => "the end of the line".to_string(),
            Tok::Ident => "a name".to_string(),
            Tok::Int | Tok::Float => "a number".to_string(),
            Tok::Str | Tok::FStart | Tok::FText | Tok::FEnd => "a string".to_string(),
            Tok::FOpen => "`{`".to_string(),
            Tok::FClose => "`}`".to_string(),
            _ => {
                let text = FIXED.iter().find(|(_, tok)| *tok == self).map_or("", |(text, _)| text);
                format!("`{text}`")
            }
        }
    }

    /// Whether the token is a word, reserved or not: such a token may name a member.
    pub(crate) fn is_word(self) -> bool {
        let text = FIXED.iter().find(|(_, tok)| *tok == self).map_or("", |(text, _)| text);
        self == Tok::Ident || text.starts_with(|c: char| c.is_ascii_alphabetic())
    }
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Characters before the first token of a line; tabs count as one.
    pub(crate) column: u32,
    /// Whether it is the first of its line.
    pub(crate) first: bool,
    /// Whether white space stands before it.
    pub(crate) spaced: bool,
}

/// Lexes a file. The last token is [`Tok::Eof`].
pub(crate) fn lex(file: FileId, text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer {
        file,
        text,
        bytes: text.as_bytes(),
        at: 0,
        end: text.len(),
        line_start: 0,
        first: true,
        tokens: Vec::with_capacity(text.len() / 4),
        diagnostics: Vec::new(),
        indents: [None, None],
        depth: 0,
    };
    if text.starts_with('\u{feff}') {
        lexer.at = 3;
        lexer.line_start = 3;
    }
    if text[lexer.at..].starts_with("#!") {
        lexer.at = text[lexer.at..].find('\n').map_or(text.len(), |n| lexer.at + n);
    }
    lexer.run();
    lexer.warn_mixed();
    let end = text.len() as u32;
    lexer.tokens.push(Token {
        tok: Tok::Eof,
        start: end,
        end,
        column: 0,
        first: true,
        spaced: true,
    });
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    end: usize,
    line_start: usize,
    first: bool,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    /// The first line indented with spaces, and the first with tabs.
    indents: [Option<u32>; 2],
    /// Formatted strings around the present place.
    depth: u32,
}

/// Nested formatted strings: a third level would need a third quote character.
const MAX_STRING_DEPTH: u32 = 3;

impl Lexer<'_> {
    fn error(&mut self, start: usize, end: usize, message: impl Into<String>, help: &str) {
        if self.diagnostics.len() < 100 {
            let span = Span::new(self.file, start as u32, end as u32);
            self.diagnostics.push(Diagnostic::new(Code::MIR0101, span, message).with_help(help));
        }
    }

    fn warn_mixed(&mut self) {
        if let [Some(_), Some(tab)] = self.indents {
            let message = "this file indents with tabs and with spaces";
            let span = Span::new(self.file, tab, tab + 1);
            self.diagnostics.push(
                Diagnostic::new(Code::MIR0102, span, message)
                    .with_help("indent with one of them: a tab counts as one column"),
            );
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        let at = self.at + ahead;
        if at < self.end { self.bytes[at] } else { 0 }
    }

    fn push(&mut self, tok: Tok, start: usize) {
        let spaced = start == 0 || matches!(self.bytes[start - 1], b' ' | b'\t' | b'\n' | b'\r');
        let line = self.line_start.min(start);
        let first = std::mem::take(&mut self.first);
        // Only the first token of a line is asked for its column.
        // A comment before it does not move it.
        let indent = || self.text[line..start].chars().take_while(|c| c.is_whitespace()).count();
        let column = if first { indent() as u32 } else { 0 };
        if column > 0 {
            let kind = usize::from(self.bytes[line] == b'\t');
            self.indents[kind].get_or_insert(line as u32);
        }
        let (start, end) = (start as u32, self.at as u32);
        self.tokens.push(Token { tok, start, end, column, first, spaced });
    }

    fn run(&mut self) {
        while self.at < self.end {
            let start = self.at;
            match self.peek(0) {
                b'\n' => {
                    self.at += 1;
                    self.line_start = self.at;
                    self.first = true;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.peek(1) == b'/' => {
                    let rest = &self.bytes[self.at..self.end];
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                b'/' if self.peek(1) == b'*' => self.block_comment(),
                b'f' if matches!(self.peek(1), b'"' | b'\'') => {
                    self.at += 1;
                    self.formatted(start);
                }
                b'"' | b'\'' => {
                    let close = self.string_end(start);
                    self.at = close;
                    self.push(Tok::Str, start);
                    self.note_lines(start);
                }
                b'0'..=b'9' => self.number(),
                b'.' if self.peek(1).is_ascii_digit() && !self.after_operand() => self.number(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
                _ => self.sign(),
            }
        }
    }

    /// Whether a `.` here belongs to what stands directly before it: `t.0`.
    fn after_operand(&self) -> bool {
        let operand = |t: &Token| {
            t.end as usize == self.at
                && (t.tok.is_word()
                    || matches!(t.tok, Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::Int))
        };
        self.tokens.last().is_some_and(operand)
    }

    /// Line starts inside a token that spans lines.
    fn note_lines(&mut self, start: usize) {
        if let Some(n) = self.text[start..self.at].rfind('\n') {
            self.line_start = start + n + 1;
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let mut depth = 0u32;
        while self.at < self.end {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                (b'\n', _) => {
                    self.at += 1;
                    self.line_start = self.at;
                    self.first = true;
                }
                _ => self.at += 1,
            }
        }
        self.error(start, start + 2, "this comment is never closed", "close it with `*/`");
    }

    /// The end of the string that starts with a quote at `start`, behind its closing quote.
    fn string_end(&mut self, start: usize) -> usize {
        let quote = self.bytes[start];
        let mut at = start + 1;
        while at < self.end {
            match self.bytes[at] {
                b'\\' => at += 2,
                b if b == quote => return at + 1,
                _ => at += 1,
            }
        }
        let name = char::from(quote);
        let message = "this string is never closed";
        self.error(start, start + 1, message, &format!("close it with `{name}`"));
        self.end
    }

    fn formatted(&mut self, start: usize) {
        let open = self.at;
        let close = self.string_end(open);
        let outer_end = self.end;
        let has_quote = close > open + 1 && self.bytes[close - 1] == self.bytes[open];
        let content_end = if has_quote { close - 1 } else { close };
        self.at = open + 1;
        self.push(Tok::FStart, start);
        if self.depth >= MAX_STRING_DEPTH {
            let message = "formatted strings are nested too deep";
            self.error(start, open + 1, message, "bind the inner string to a name first");
            self.at = content_end;
        }
        self.depth += 1;
        let mut text_start = self.at;
        while self.at < content_end {
            match self.bytes[self.at] {
                b'\\' => self.at = (self.at + 2).min(content_end),
                b'{' => {
                    if text_start < self.at {
                        self.push(Tok::FText, text_start);
                    }
                    let brace = self.at;
                    self.at += 1;
                    self.push(Tok::FOpen, brace);
                    let inner_end = self.closing_brace(content_end);
                    self.end = inner_end;
                    self.run();
                    self.end = outer_end;
                    self.first = false;
                    self.at = inner_end;
                    if inner_end < content_end {
                        self.at += 1;
                        self.push(Tok::FClose, inner_end);
                    } else {
                        let message = "this `{` of a formatted string is never closed";
                        let help =
                            "close it, or write `\\{`; a text inside stands in the other quotes";
                        self.error(brace, brace + 1, message, help);
                    }
                    text_start = self.at;
                }
                _ => self.at += 1,
            }
        }
        if text_start < content_end {
            self.at = content_end;
            self.push(Tok::FText, text_start);
        }
        self.depth -= 1;
        self.at = close;
        self.push(Tok::FEnd, content_end);
        self.note_lines(open);
    }

    /// The `}` that closes the `{` before the present place, or `end`.
    fn closing_brace(&self, end: usize) -> usize {
        let mut depth = 0;
        let mut at = self.at;
        let mut quote = 0;
        while at < end {
            match self.bytes[at] {
                b if quote != 0 => {
                    if b == b'\\' {
                        at += 1;
                    } else if b == quote {
                        quote = 0;
                    }
                }
                b @ (b'"' | b'\'') => quote = b,
                b'{' => depth += 1,
                b'}' if depth == 0 => return at,
                b'}' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        end
    }

    fn number(&mut self) {
        let start = self.at;
        let radix =
            self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B');
        let mut tok = Tok::Int;
        if radix {
            self.at += 2;
            self.digits(|b| b.is_ascii_hexdigit());
        } else {
            self.digits(|b| b.is_ascii_digit());
            let next = self.peek(1);
            let is_fraction = self.peek(0) == b'.'
                && next != b'.'
                && !(next.is_ascii_alphabetic() || next == b'_')
                && !self.is_field_number(start);
            if is_fraction {
                tok = Tok::Float;
                self.at += 1;
                self.digits(|b| b.is_ascii_digit());
            }
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
                tok = Tok::Float;
                self.at += 1 + sign;
                self.digits(|b| b.is_ascii_digit());
            }
        }
        let body = &self.text[start..self.at];
        let digits = if radix { &body[2..] } else { body };
        let bad_underscore = digits.starts_with('_')
            || digits.ends_with('_')
            || digits.contains("_.")
            || digits.contains("._");
        if matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'_') && self.at > start {
            self.digits(|b| b.is_ascii_alphanumeric());
            let message = "a number is followed by letters: there are no suffixes";
            let help = "write a cast: `1 as u32`, `1.0 as f32`";
            self.error(start, self.at, message, help);
        } else if bad_underscore {
            let message = "`_` stands between digits only";
            self.error(start, self.at, message, "remove the `_` beside the digits");
        }
        self.push(tok, start);
    }

    /// Whether the digits are a tuple field, so that a `.` behind them is another field.
    fn is_field_number(&self, start: usize) -> bool {
        self.tokens.last().is_some_and(|t| t.tok == Tok::Dot && t.end as usize == start)
    }

    fn digits(&mut self, is_digit: impl Fn(u8) -> bool) {
        while is_digit(self.peek(0)) || self.peek(0) == b'_' {
            self.at += 1;
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_') {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let known = || FIXED.iter().find(|(text, _)| *text == word).map(|&(_, tok)| tok);
        // The longest word of the language is `implements`.
        let tok = (word.len() <= 10).then(known).flatten().unwrap_or(Tok::Ident);
        self.push(tok, start);
    }

    fn sign(&mut self) {
        let start = self.at;
        let rest = &self.text[start..self.end];
        let longest = FIXED.iter().filter(|(text, _)| {
            !text.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.starts_with(text)
        });
        match longest.max_by_key(|(text, _)| text.len()) {
            Some(&(text, tok)) => {
                self.at += text.len();
                if matches!(tok, Tok::AmpAmp | Tok::PipePipe) {
                    let word = if tok == Tok::AmpAmp { "and" } else { "or" };
                    let message = format!("`{text}` is no operator");
                    self.error(start, self.at, message, &format!("write `{word}`"));
                }
                self.push(tok, start);
            }
            None => {
                let c = rest.chars().next().unwrap_or(' ');
                self.at += c.len_utf8();
                // A run of such characters is one mistake.
                let message = format!("`{}` is no character of the language", c.escape_default());
                if self.diagnostics.last().is_none_or(|d| d.primary.end as usize != start) {
                    let help = match c {
                        '!' => "write `not`",
                        _ => "remove it, or put it into a string",
                    };
                    self.error(start, self.at, message, help);
                } else if let Some(last) = self.diagnostics.last_mut() {
                    last.primary.end = self.at as u32;
                }
            }
        }
    }
}

/// The text of a string literal between its quotes, with its escapes replaced.
pub(crate) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('0') => out.push('\0'),
            Some(c @ ('\\' | '\'' | '"' | '{' | '}')) => out.push(c),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}
