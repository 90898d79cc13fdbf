//! What the parser says when something is wrong.

use super::*;
use magpie_diag::Fix;

/// The longest piece of source text that a message quotes, in characters.
const MAX_QUOTE: usize = 40;

impl Parser<'_> {
    pub(super) fn span(&self, range: ByteRange) -> Span {
        Span::new(self.file, range.start, range.end)
    }

    #[cold]
    pub(super) fn syntax_error(&self, range: ByteRange, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::MPP0002, self.span(range), message)
    }

    #[cold]
    pub(super) fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        let is_syntax = matches!(diagnostic.code, Code::MPP0001 | Code::MPP0002 | Code::MPP0003);
        let at = diagnostic.primary.start;
        let broken = self.broken_line;
        if self.gave_up || is_syntax && broken.start <= at && at < broken.end {
            return Reported;
        }
        if is_syntax {
            let rest = &self.text[at as usize..];
            let line = rest.find('\n').unwrap_or(rest.len()) + 1;
            self.broken_line = ByteRange { start: at, end: at + line as u32 };
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() >= MAX_ERRORS {
            self.gave_up = true;
            let end = self.text.len() as u32;
            self.token = Token { kind: TokenKind::Eof, range: ByteRange { start: end, end } };
        }
        Reported
    }

    /// The current token cannot stand where it does.
    #[cold]
    pub(super) fn unexpected(&mut self, wanted: &str, help: &str) -> Reported {
        if self.at(TokenKind::Reported) {
            return Reported;
        }
        let message = format!("expected {wanted}, found {}", self.found());
        let error = self.syntax_error(self.token.range, message);
        self.report(error.with_help(help))
    }

    /// Something must stand after the previous token and does not.
    #[cold]
    pub(super) fn missing(&mut self, wanted: &str) -> Reported {
        self.missing_with_help(wanted, format!("write {wanted} here"))
    }

    #[cold]
    pub(super) fn missing_with_help(&mut self, wanted: &str, help: impl Into<String>) -> Reported {
        if self.at(TokenKind::Reported) {
            return Reported;
        }
        let error = if self.token_is_on_a_later_line() {
            let message = format!("expected {wanted} before the end of the line");
            self.syntax_error(self.after_previous(), message)
        } else {
            let message = format!("expected {wanted}, found {}", self.found());
            self.syntax_error(self.token.range, message)
        };
        self.report(error.with_help(help))
    }

    /// Reports a missing comma between two entries of a list; the caller goes on as if it were
    /// there.
    pub(super) fn missing_comma(&mut self) {
        let at = self.after_previous();
        let range = if self.token_is_on_a_later_line() { at } else { self.token.range };
        let message = format!("expected `,` before {}", self.found());
        let error = self.syntax_error(range, message).with_help("separate the entries by commas");
        let fix = Fix {
            title: "insert a comma".to_string(),
            span: self.span(at),
            replacement: ",".to_string(),
        };
        self.report(error.with_fix(fix));
    }

    /// Reports a comma after the last entry of a list, and goes on.
    pub(super) fn trailing_comma(&mut self, comma: ByteRange) {
        let message = format!("a comma cannot stand before {}", self.found());
        let error = self.syntax_error(comma, message).with_help("remove the comma");
        let fix = Fix {
            title: "remove the comma".to_string(),
            span: self.span(comma),
            replacement: String::new(),
        };
        self.report(error.with_fix(fix));
    }

    /// The current token as messages name it.
    pub(super) fn found(&self) -> String {
        match self.token.kind {
            TokenKind::Eof => "the end of the file".to_string(),
            TokenKind::Str => "a string".to_string(),
            _ => format!("`{}`", quote(self.token.range.of(self.text))),
        }
    }

    pub(super) fn token_is_on_a_later_line(&self) -> bool {
        if self.previous_end == 0 {
            return false;
        }
        let gap = ByteRange { start: self.previous_end, end: self.token.range.start };
        self.at(TokenKind::Eof) || gap.start < gap.end && gap.of(self.text).contains('\n')
    }

    fn after_previous(&self) -> ByteRange {
        ByteRange { start: self.previous_end, end: self.previous_end }
    }

    /// Reports the current token, which is unreadable, and marks it as reported.
    #[cold]
    #[inline(never)]
    pub(super) fn report_unreadable_token(&mut self) {
        let range = self.token.range;
        let text = range.of(self.text);
        let error = if self.at(TokenKind::UnterminatedStr) {
            self.syntax_error(range, "the string does not end on its line")
                .with_help("close it with `\"`; write a line break in a string as `\\n`")
        } else {
            let message = match text.chars().count() {
                1 => format!("unexpected character `{text}`"),
                _ => format!("unexpected characters `{}`", quote(text)),
            };
            Diagnostic::new(Code::MPP0001, self.span(range), message)
                .with_help(bad_character_help(text))
        };
        self.token.kind = TokenKind::Reported;
        self.report(error);
    }
}

fn bad_character_help(text: &str) -> &'static str {
    match text.chars().next() {
        Some('/' | '#') => "comments start with `;`",
        Some('%') => "a value name is `%` and a word, without space",
        Some('@') => "a function name is `@` and a word, without space",
        Some('-' | '\u{2212}' | '\u{2013}') => {
            "a negative number is `-` and digits, without space; arithmetic is written `i.sub { … }`"
        }
        Some('\u{201c}' | '\u{201d}' | '\'') => "strings stand between `\"` and `\"`",
        Some('\u{a0}') => "replace the no-break space by a space",
        _ => "remove it; only comments and strings may hold such characters",
    }
}

/// A piece of the first line of source text.
pub(super) fn quote(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    match text.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
