//! Tokens of the text form.

use crate::print::{is_word_part, is_word_start};

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A dotted word: keyword, op, label, name.
    Word,
    /// `%name`.
    Value,
    /// A number in any notation; its digits are checked where its type is known.
    Number,
    /// A string in quotes, escapes not yet read.
    Str,
    /// `!FILE:START-END`.
    Place,
    /// `->`.
    Arrow,
    /// One of `{ } ( ) [ ] < > , : =`.
    Punct(u8),
    /// The end of the text.
    End,
    /// Something no token starts with, or a string without its end.
    Bad,
}

/// A token: a kind and the bytes it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether it is the first token of its line.
    pub(super) first_in_line: bool,
}

/// Reads tokens one by one; a copy looks ahead.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    first_in_line: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, first_in_line: true }
    }

    fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, f: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && f(self.text.as_bytes()[self.at]) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        loop {
            match self.byte(0) {
                b'\n' => {
                    self.first_in_line = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b';' => self.skip_while(|b| b != b'\n'),
                _ => return,
            }
        }
    }

    pub(super) fn next(&mut self) -> Token {
        self.skip_space();
        let start = self.at;
        let first_in_line = std::mem::take(&mut self.first_in_line);
        let kind = if self.at == self.text.len() { Kind::End } else { self.token() };
        Token { kind, start: start as u32, end: self.at as u32, first_in_line }
    }

    fn token(&mut self) -> Kind {
        let first = self.byte(0);
        match first {
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b',' | b':' | b'=' => {
                self.at += 1;
                Kind::Punct(first)
            }
            b'-' if self.byte(1) == b'>' => {
                self.at += 2;
                Kind::Arrow
            }
            b'0'..=b'9' => self.number(),
            b'-' if self.byte(1).is_ascii_digit() => self.number(),
            b'%' if is_word_part(self.byte(1)) => {
                self.at += 1;
                self.skip_while(is_word_part);
                Kind::Value
            }
            b'!' => self.place(),
            b'"' => self.string(),
            b if is_word_start(b) => {
                self.skip_while(is_word_part);
                Kind::Word
            }
            _ => {
                let width = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
                self.at += width;
                Kind::Bad
            }
        }
    }

    fn number(&mut self) -> Kind {
        self.at += 1;
        let hex = matches!(self.byte(0), b'x' | b'X') || matches!(self.byte(1), b'x' | b'X');
        loop {
            self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'.');
            let after_exponent = matches!(self.text.as_bytes()[self.at - 1], b'e' | b'E');
            let sign = matches!(self.byte(0), b'+' | b'-') && self.byte(1).is_ascii_digit();
            if hex || !after_exponent || !sign {
                return Kind::Number;
            }
            self.at += 1;
        }
    }

    fn place(&mut self) -> Kind {
        self.at += 1;
        for separator in [b':', b'-', 0] {
            let start = self.at;
            self.skip_while(|b| b.is_ascii_digit());
            if self.at == start || (separator != 0 && self.byte(0) != separator) {
                return Kind::Bad;
            }
            if separator != 0 {
                self.at += 1;
            }
        }
        Kind::Place
    }

    fn string(&mut self) -> Kind {
        self.at += 1;
        loop {
            self.skip_while(|b| !matches!(b, b'"' | b'\\' | b'\n'));
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return Kind::Str;
                }
                // The escaped character may be a quote; a line end is not escaped.
                b'\\' if self.at + 1 < self.text.len() && self.byte(1) != b'\n' => {
                    self.at += 1;
                    let width = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
                    self.at += width;
                }
                b'\\' => {
                    self.at += 1;
                    return Kind::Bad;
                }
                _ => return Kind::Bad,
            }
        }
    }
}

/// The text of a string token, its quotes included, with escapes replaced; the byte offset in the
/// token of an escape that is none.
pub(super) fn unescape(token: &str) -> Result<String, usize> {
    let body = &token[1..token.len() - 1];
    let mut out = String::with_capacity(body.len());
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let bad = at + 1;
        out.push(match chars.next().map(|(_, c)| c) {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('0') => '\0',
            Some('\\') => '\\',
            Some('"') => '"',
            Some('u') => {
                let rest = chars.as_str();
                let end = rest.find('}').filter(|_| rest.starts_with('{')).ok_or(bad)?;
                let digits = rest.get(1..end).filter(|d| d.len() <= 6).ok_or(bad)?;
                let code = u32::from_str_radix(digits, 16).map_err(|_| bad)?;
                let consumed = end + 1;
                while chars.offset() - (body.len() - rest.len()) < consumed {
                    chars.next();
                }
                char::from_u32(code).ok_or(bad)?
            }
            _ => return Err(bad),
        });
    }
    Ok(out)
}
