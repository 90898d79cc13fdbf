//! Function bodies: blocks, statements, terminators.

use super::recover::is_label;
use super::*;

/// A body with what it holds.
pub(super) struct Body {
    pub(super) range: ByteRange,
    pub(super) blocks: Slice<Block>,
    pub(super) unsafe_groups: Slice<ByteRange>,
}

/// The `unsafe { … }` groups that are open at some place of a block.
struct UnsafeGroups {
    /// How many; groups in a group mean nothing more.
    depth: u32,
    /// Where the outermost starts.
    start: u32,
}

/// A block that is being read.
struct OpenBlock {
    label: Name,
    first_instr: usize,
    groups: UnsafeGroups,
    /// Whether a statement of it could not be read, perhaps its terminator.
    broken: bool,
}

impl Parser<'_> {
    /// The body of the function whose head is `head`.
    pub(super) fn body(&mut self, head: ByteRange) -> Parse<Body> {
        let open = self.expect(TokenKind::LBrace)?;
        let level = self.open_braces;
        let first_block = self.ast.pools.blocks.len();
        let first_group = self.ast.pools.unsafe_groups.len();
        loop {
            if self.at_label() {
                let label = self.label();
                self.block(label, level, false);
            } else if self.eat(TokenKind::RBrace) {
                break;
            } else if self.at(TokenKind::Eof) || self.at_decl() {
                self.report_unclosed(open, head);
                break;
            } else {
                self.unexpected("a block label", "start the block with a label such as `bb0:`");
                let range = ByteRange { end: self.token.range.start, ..self.token.range };
                // What stands here belongs to a block that has no start, so it needs no end.
                self.block(Name { symbol: symbols::EMPTY, range }, level, true);
            }
        }
        let body = Body {
            range: self.range_from(open.start),
            blocks: Slice::new(first_block, self.ast.pools.blocks.len()),
            unsafe_groups: Slice::new(first_group, self.ast.pools.unsafe_groups.len()),
        };
        if body.blocks.is_empty() && self.is_behind_brace() {
            let error = self.syntax_error(body.range, "the function has no blocks");
            self.report(error.with_help("write at least `bb0:` and a `ret`"));
        }
        Ok(body)
    }

    fn report_unclosed(&mut self, open: ByteRange, head: ByteRange) {
        let end = ByteRange { start: self.previous_end, end: self.previous_end };
        let error = self
            .syntax_error(end, "the body of the function is not closed")
            .with_secondary(self.span(head.to(open)), "the body starts here")
            .with_help("close it with `}`");
        self.report(error);
    }

    /// A label and its colon; a missing colon is reported and taken as there.
    fn label(&mut self) -> Name {
        let label = Name { symbol: self.symbol, range: self.token.range };
        if !is_label(label.range.of(self.text)) {
            self.unexpected("a block label", "the labels of blocks start with `bb`");
        }
        self.advance();
        if !self.eat(TokenKind::Colon) {
            self.missing_with_help("`:`", "write `:` after the label of a block");
        }
        label
    }

    fn block(&mut self, label: Name, level: u32, broken: bool) {
        let mut block = OpenBlock {
            label,
            first_instr: self.ast.pools.instrs.len(),
            groups: UnsafeGroups { depth: 0, start: 0 },
            broken,
        };
        let terminator = self.statements(&mut block, level);
        self.close_groups(&mut block);
        let (terminator, terminator_range) = match terminator {
            Some((terminator, range)) => {
                self.reject_rest_of_block(range, level);
                (terminator, range)
            }
            None => (Terminator::Missing, self.missing_terminator(&block)),
        };
        let instrs = Slice::new(block.first_instr, self.ast.pools.instrs.len());
        let block = Block { label, instrs, terminator, terminator_range };
        self.ast.pools.blocks.push(block);
    }

    /// The statements up to and with the terminator, or up to what ends the block without one.
    fn statements(&mut self, block: &mut OpenBlock, level: u32) -> Option<(Terminator, ByteRange)> {
        loop {
            let start = self.token.range.start;
            let in_group = block.groups.depth > 0;
            let mut terminator = None;
            let statement = match self.token.kind {
                TokenKind::SsaName => self.instruction(in_group),
                TokenKind::RBrace if in_group => {
                    self.close_group(&mut block.groups);
                    Ok(())
                }
                TokenKind::Word if self.symbol == symbols::UNSAFE && !self.at_decl() => {
                    self.open_group(&mut block.groups)
                }
                TokenKind::Word if symbols::is_terminator(self.symbol) && !self.is_call_path() => {
                    self.terminator().map(|found| terminator = Some(found))
                }
                _ if self.at_block_end() => return None,
                _ => self.instruction(in_group),
            };
            if let Some(terminator) = terminator {
                return Some((terminator, self.range_from(start)));
            }
            if statement.is_err() {
                block.broken = true;
                self.skip_to_statement(start, level, block.groups.depth);
            }
        }
    }

    /// Whether the current word is the first of a path, as in `ret.@f`.
    fn is_call_path(&self) -> bool {
        self.byte_after_token() == Some(b'.')
    }

    fn open_group(&mut self, groups: &mut UnsafeGroups) -> Parse<()> {
        let start = self.token.range.start;
        self.advance();
        self.expect(TokenKind::LBrace)?;
        if groups.depth == 0 {
            groups.start = start;
        }
        groups.depth += 1;
        if self.at(TokenKind::RBrace) {
            let range = ByteRange { start, end: self.token.range.end };
            let error = self.syntax_error(range, "the `unsafe` group is empty");
            self.report(error.with_help("put instructions into it, or remove it"));
        }
        Ok(())
    }

    fn close_group(&mut self, groups: &mut UnsafeGroups) {
        self.advance();
        groups.depth -= 1;
        if groups.depth == 0 {
            self.ast.pools.unsafe_groups.push(self.range_from(groups.start));
        }
    }

    /// Reports the groups that are still open where the block ends.
    fn close_groups(&mut self, block: &mut OpenBlock) {
        if block.groups.depth == 0 {
            return;
        }
        if !block.broken && !self.at(TokenKind::Reported) {
            let start = block.groups.start;
            let range = ByteRange { start, end: start + "unsafe".len() as u32 };
            let error = self
                .syntax_error(range, "the `unsafe` group does not end before its block does")
                .with_help("close it with `}` before the terminator");
            self.report(error);
        }
        block.broken = true;
        while block.groups.depth > 0 && self.at(TokenKind::RBrace) && !self.closes_body() {
            self.close_group(&mut block.groups);
        }
        self.open_braces = self.open_braces.saturating_sub(block.groups.depth);
    }

    /// Reports a block that ends without a terminator; the place where one is missing.
    fn missing_terminator(&mut self, block: &OpenBlock) -> ByteRange {
        let at = self.token.range;
        // A body that is not closed is one error, reported by the body.
        let closed = self.at_label() || self.at(TokenKind::RBrace);
        if closed && !block.broken {
            let name = match self.name_of(block.label) {
                "" => "the block".to_string(),
                label => format!("block `{label}`"),
            };
            let help = "end it with `ret`, `br`, `cbr`, `switch` or `unreachable`";
            let error = self
                .syntax_error(at, format!("{name} has no terminator"))
                .with_secondary(self.span(block.label.range), "the block starts here")
                .with_help(help);
            self.report(error);
        }
        ByteRange { start: at.start, end: at.start }
    }

    /// Reports what stands between a terminator and the end of the block, and skips it.
    fn reject_rest_of_block(&mut self, terminator: ByteRange, level: u32) {
        if self.at_block_end() {
            return;
        }
        if !self.at(TokenKind::Reported) {
            let message = format!("{} stands behind the end of its block", self.found());
            let error = self
                .syntax_error(self.token.range, message)
                .with_secondary(self.span(terminator), "the block ends here")
                .with_help("remove it, or start a new block with a label such as `bb1:`");
            self.report(error);
        }
        while !self.at_block_end() {
            self.skip_to_statement(self.token.range.start, level, 0);
        }
    }

    fn terminator(&mut self) -> Parse<Terminator> {
        let word = self.symbol;
        self.advance();
        match word {
            symbols::RET if self.at_value() && self.byte_after_token() != Some(b':') => {
                Ok(Terminator::Ret(Some(self.value()?)))
            }
            // An instruction that follows is reported as such.
            symbols::RET if self.token_is_on_a_later_line() || self.at_block_end() => {
                Ok(Terminator::Ret(None))
            }
            symbols::RET => Err(self.missing_value()),
            symbols::BR => Ok(Terminator::Br(self.branch_target()?)),
            symbols::CBR => {
                let condition = self.value()?;
                let then_target = self.branch_target()?;
                let else_target = self.branch_target()?;
                Ok(Terminator::Cbr { condition, then_target, else_target })
            }
            symbols::SWITCH => self.switch(),
            _ => Ok(Terminator::Unreachable),
        }
    }

    /// The label that a terminator names. One with a colon on the next line starts a block.
    fn branch_target(&mut self) -> Parse<Target> {
        if self.token_is_on_a_later_line() && self.byte_after_token() == Some(b':') {
            let help = "write the label of a block, such as `bb1`";
            return Err(self.missing_with_help("a block label", help));
        }
        self.target()
    }

    /// What follows `switch`.
    fn switch(&mut self) -> Parse<Terminator> {
        let value = self.value()?;
        let start = self.expect(TokenKind::LBrace)?.start;
        let first = self.ast.pools.cases.len();
        while self.at_word(symbols::CASE) {
            let case = self.case()?;
            self.ast.pools.cases.push(case);
        }
        if !self.at(TokenKind::RBrace) {
            return Err(self.missing_with_help(
                "`case` or `}`",
                "write `case literal -> label` for each case, then `}`",
            ));
        }
        self.advance();
        let body = self.range_from(start);
        if !self.eat_word(symbols::ELSE) {
            return Err(self.missing_with_help(
                "`else`",
                "write `else label` for the values that no case names",
            ));
        }
        let default = self.branch_target()?;
        let cases = Slice::new(first, self.ast.pools.cases.len());
        Ok(Terminator::Switch { value, body, cases, default })
    }

    fn case(&mut self) -> Parse<Case> {
        let start = self.token.range.start;
        self.advance();
        let literal = self.literal(None)?;
        self.expect(TokenKind::Arrow)?;
        let target = self.target()?;
        Ok(Case { range: self.range_from(start), literal, target })
    }
}
