//! Source text → tokens and comments.
//!
//! A token is a kind and a byte range; nothing is allocated for it. Dotted words (`gpu.TBuffer`)
//! and everything that starts like a number are one token each: the parser decides what they
//! mean. Comments never reach the parser; they are collected beside the tokens.

use crate::ast::{ByteRange, Comment};
use logos::Logos;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Logos)]
#[logos(skip r"[ \t\r\n]+")]
pub(crate) enum TokenKind {
    /// `@name`
    #[regex(r"@[A-Za-z_][A-Za-z0-9_]*")]
    FnName,
    /// `%name`
    #[regex(r"%[A-Za-z_][A-Za-z0-9_]*")]
    SsaName,
    /// One word, or several joined by dots without space.
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")]
    Word,
    /// Starts with a digit or a minus and a digit; may turn out not to be a number.
    #[regex(r"-?[0-9][0-9A-Za-z_]*(\.[0-9][0-9A-Za-z_]*)?")]
    #[regex(r"-?[0-9]+(\.[0-9]+)?[eE][+-][0-9][0-9A-Za-z_]*")]
    Number,
    /// With its quotes; the escapes are not yet checked.
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Str,
    /// A string that the line's end cuts off.
    #[regex(r#""([^"\\\n]|\\[^\n])*\\?"#)]
    UnterminatedStr,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token("<")]
    Lt,
    #[token(">")]
    Gt,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token("::")]
    ColonColon,
    #[token("=")]
    Eq,
    #[token(".")]
    Dot,
    #[token("->")]
    Arrow,
    #[regex(r";[^\n]*", allow_greedy = true)]
    Comment,
    /// A run of characters that start no token.
    BadChars,
    /// A token about which an error has been reported; never made by the lexer.
    Reported,
    /// The end of the text, for ever.
    Eof,
}

impl TokenKind {
    /// How messages name a token that was wanted.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            TokenKind::FnName => "a function name such as `@f`",
            TokenKind::SsaName => "a value name such as `%x`",
            TokenKind::Word => "a word",
            TokenKind::Number => "a number",
            TokenKind::Str | TokenKind::UnterminatedStr => "a string",
            TokenKind::LBrace => "`{`",
            TokenKind::RBrace => "`}`",
            TokenKind::LParen => "`(`",
            TokenKind::RParen => "`)`",
            TokenKind::LBracket => "`[`",
            TokenKind::RBracket => "`]`",
            TokenKind::Lt => "`<`",
            TokenKind::Gt => "`>`",
            TokenKind::Comma => "`,`",
            TokenKind::Colon => "`:`",
            TokenKind::ColonColon => "`::`",
            TokenKind::Eq => "`=`",
            TokenKind::Dot => "`.`",
            TokenKind::Arrow => "`->`",
            TokenKind::Comment => "a comment",
            TokenKind::BadChars | TokenKind::Reported => "unreadable text",
            TokenKind::Eof => "the end of the file",
        }
    }
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: ByteRange,
}

/// Makes tokens on demand.
pub(crate) struct Lexer<'t> {
    inner: logos::Lexer<'t, TokenKind>,
    text: &'t str,
    /// What precedes `inner`'s text: a byte order mark, or nothing.
    skipped: usize,
    /// Every comment before the last token made.
    pub(crate) comments: Vec<Comment>,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Lexer<'t> {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        Lexer {
            inner: TokenKind::lexer(body),
            text,
            skipped: text.len() - body.len(),
            comments: Vec::new(),
        }
    }

    /// Part of the loop of the parser, which is why it is inlined.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Token {
        loop {
            let kind = match self.inner.next() {
                Some(Ok(TokenKind::Comment)) => {
                    self.push_comment();
                    continue;
                }
                Some(Ok(kind)) => kind,
                Some(Err(())) => {
                    self.extend_bad_chars();
                    TokenKind::BadChars
                }
                None => TokenKind::Eof,
            };
            return Token { kind, range: self.range() };
        }
    }

    /// The text of the last token made.
    #[inline]
    pub(crate) fn slice(&self) -> &'t str {
        self.inner.slice()
    }

    #[inline]
    fn range(&self) -> ByteRange {
        let span = self.inner.span();
        let skipped = self.skipped;
        ByteRange { start: (span.start + skipped) as u32, end: (span.end + skipped) as u32 }
    }

    #[cold]
    #[inline(never)]
    fn push_comment(&mut self) {
        let range = self.range();
        let before = &self.text[self.skipped..range.start as usize];
        let line = before.trim_end_matches([' ', '\t', '\r']);
        let own_line = line.is_empty() || line.ends_with('\n');
        let text = self.text[range.start as usize..range.end as usize].trim_end();
        let end = range.start + text.len() as u32;
        self.comments.push(Comment { range: ByteRange { start: range.start, end }, own_line });
    }

    /// Makes one token of a whole run of characters that start no token.
    #[cold]
    #[inline(never)]
    fn extend_bad_chars(&mut self) {
        let rest = self.inner.remainder();
        let run = rest.find(can_start_token).unwrap_or(rest.len());
        self.inner.bump(run);
    }
}

fn can_start_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "_@%-\"{}()[]<>,:=.;".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == TokenKind::Eof {
                return tokens;
            }
            tokens.push((token.kind, &text[token.range.start as usize..token.range.end as usize]));
        }
    }

    #[test]
    fn every_kind_of_token() {
        use TokenKind::*;
        assert_eq!(
            lex("%x: gpu.TBuffer<f32> = std.io.@p { a=-1 } -> :: [0x1F]"),
            vec![
                (SsaName, "%x"),
                (Colon, ":"),
                (Word, "gpu.TBuffer"),
                (Lt, "<"),
                (Word, "f32"),
                (Gt, ">"),
                (Eq, "="),
                (Word, "std.io"),
                (Dot, "."),
                (FnName, "@p"),
                (LBrace, "{"),
                (Word, "a"),
                (Eq, "="),
                (Number, "-1"),
                (RBrace, "}"),
                (Arrow, "->"),
                (ColonColon, "::"),
                (LBracket, "["),
                (Number, "0x1F"),
                (RBracket, "]"),
            ]
        );
    }

    #[test]
    fn numbers_are_one_token() {
        for text in ["1.5e-7", "-2.0", "1e21", "1E+3f32", "0x7fffffff", "0a1b2c", "12abc", "1.5f16"]
        {
            assert_eq!(lex(text), vec![(TokenKind::Number, text)], "{text}");
        }
        assert_eq!(lex("1."), vec![(TokenKind::Number, "1"), (TokenKind::Dot, ".")]);
    }

    #[test]
    fn strings_end_at_the_line() {
        assert_eq!(lex(r#""a\"b" x"#), vec![(TokenKind::Str, r#""a\"b""#), (TokenKind::Word, "x")]);
        assert_eq!(
            lex("\"abc\nx"),
            vec![(TokenKind::UnterminatedStr, "\"abc"), (TokenKind::Word, "x")]
        );
        assert_eq!(
            lex("\"abc\\\nx"),
            vec![(TokenKind::UnterminatedStr, "\"abc\\"), (TokenKind::Word, "x")]
        );
    }

    #[test]
    fn a_run_of_bad_characters_is_one_token() {
        assert_eq!(
            lex("a $\u{1F600}€!? b"),
            vec![
                (TokenKind::Word, "a"),
                (TokenKind::BadChars, "$\u{1F600}€!?"),
                (TokenKind::Word, "b")
            ]
        );
        assert_eq!(
            lex("% @ -"),
            vec![
                (TokenKind::BadChars, "%"),
                (TokenKind::BadChars, "@"),
                (TokenKind::BadChars, "-")
            ]
        );
    }

    #[test]
    fn comments_are_collected() {
        let text = "\u{feff}; one\r\nx ;;; two  \n  ;three";
        let mut lexer = Lexer::new(text);
        while lexer.next().kind != TokenKind::Eof {}
        let seen: Vec<_> = lexer
            .comments
            .iter()
            .map(|c| (&text[c.range.start as usize..c.range.end as usize], c.own_line))
            .collect();
        assert_eq!(seen, vec![("; one", true), (";;; two", false), (";three", true)]);
    }
}
