//! Where parsing goes on after an error.
//!
//! Line ends mean nothing in the language, but people start instructions and declarations on
//! lines of their own: a token that is the first on its line and looks like a start is taken for
//! one. Braces that the broken piece opened are closed first.

use super::*;

impl Parser<'_> {
    /// At the label of a block, or at a word that can only be meant as one.
    pub(super) fn at_label(&self) -> bool {
        self.at(TokenKind::Word)
            && (is_label(self.token.range.of(self.text)) || self.byte_after_token() == Some(b':'))
    }

    /// At the first word of a declaration. None of these words can start an instruction in this
    /// way.
    pub(super) fn at_decl(&self) -> bool {
        self.at(TokenKind::Word)
            && match self.symbol {
                symbols::FN
                | symbols::ASYNC
                | symbols::GPU
                | symbols::HEAP
                | symbols::VALUE
                | symbols::EXTERN
                | symbols::GLOBAL
                | symbols::IMPL
                | symbols::SIG => !matches!(self.byte_after_token(), Some(b'=' | b':' | b'.')),
                symbols::UNSAFE => matches!(self.byte_after_token(), Some(b'f' | b'g')),
                _ => false,
            }
    }

    /// At a token that ends the current block: a label, `}`, a declaration or the end of the file.
    pub(super) fn at_block_end(&self) -> bool {
        matches!(self.token.kind, TokenKind::RBrace | TokenKind::Eof)
            || self.at_label()
            || self.at_decl()
    }

    /// Skips to the next statement, label, declaration, or `}` that closes the body, brace number
    /// `level`, or one of the `groups` open groups in it. Skips at least the token at `start`,
    /// where the broken statement starts.
    pub(super) fn skip_to_statement(&mut self, start: u32, level: u32, groups: u32) {
        let level = level + groups;
        if self.token.range.start == start && !self.at(TokenKind::RBrace) {
            self.advance();
        }
        loop {
            match self.token.kind {
                TokenKind::Eof => break,
                TokenKind::RBrace if self.open_braces <= level => {
                    if groups > 0 || self.is_first_on_line() || self.closes_body() {
                        break;
                    }
                    // The end of an argument block whose `{` is missing; it closes nothing.
                    self.open_braces += 1;
                }
                _ if self.is_first_on_line() && self.looks_like_statement() => break,
                _ => {}
            }
            self.advance();
        }
        self.open_braces = level;
    }

    /// Skips to the next declaration.
    pub(super) fn skip_to_decl(&mut self) {
        while !self.at(TokenKind::Eof) {
            if self.at_decl() && (self.is_behind_brace() || self.is_first_on_line()) {
                break;
            }
            self.advance();
        }
        self.open_braces = 0;
    }

    /// Skips to one of `words` at the start of a line, or to the `}` that closes brace number
    /// `level`.
    pub(super) fn skip_to_member(&mut self, words: &[Symbol], level: u32) {
        loop {
            match self.token.kind {
                TokenKind::Eof => break,
                TokenKind::RBrace if self.open_braces <= level => break,
                TokenKind::Word if words.contains(&self.symbol) && self.is_first_on_line() => break,
                TokenKind::Word if self.at_decl() && self.is_first_on_line() => break,
                _ => self.advance(),
            }
        }
        self.open_braces = level;
    }

    /// Skips to the `{` of a body, when there is one before the next declaration.
    pub(super) fn skip_to_body(&mut self) {
        while !self.at(TokenKind::LBrace) && !self.at(TokenKind::Eof) {
            if self.is_first_on_line() && (self.at_decl() || self.at_label()) {
                break;
            }
            self.advance();
        }
    }

    /// Whether the current `}` is followed by a declaration or by the end of the file.
    pub(super) fn closes_body(&self) -> bool {
        let mut rest = self.text[self.token.range.end as usize..].trim_start();
        while rest.starts_with(';') {
            rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
        }
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
        let decl_words =
            ["fn", "async", "unsafe", "gpu", "heap", "value", "extern", "global", "impl", "sig"];
        rest.is_empty() || word.is_some_and(|word| decl_words.contains(&word))
    }

    fn looks_like_statement(&self) -> bool {
        let next = self.byte_after_token();
        match self.token.kind {
            TokenKind::SsaName => !matches!(next, Some(b',' | b']' | b'}' | b'.')),
            TokenKind::FnName => matches!(next, Some(b'{' | b'<')),
            TokenKind::Word => {
                !self.at_const() && !matches!(next, Some(b'=' | b',' | b']' | b')' | b'>'))
            }
            _ => false,
        }
    }

    /// Whether only space stands before the current token on its line.
    pub(super) fn is_first_on_line(&self) -> bool {
        let before = &self.text[..self.token.range.start as usize];
        let line = before.trim_end_matches([' ', '\t', '\r']);
        line.is_empty() || line.ends_with('\n')
    }

    /// The first byte after the current token that is not space.
    pub(super) fn byte_after_token(&self) -> Option<u8> {
        let after = &self.text.as_bytes()[self.token.range.end as usize..];
        after.iter().copied().find(|b| !b.is_ascii_whitespace())
    }
}

/// `bb` and any letters, digits and underscores.
pub(super) fn is_label(word: &str) -> bool {
    word.starts_with("bb") && !word.contains('.')
}
