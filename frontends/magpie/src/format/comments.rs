//! Lines, and the comments between and behind them.

use super::*;

impl Printer<'_> {
    /// Writes an item that fills a line. `range` is where the item stands in the source.
    pub(super) fn line(&mut self, indent: usize, range: ByteRange, write: impl FnOnce(&mut Self)) {
        self.comments_before(range.end, indent);
        self.indent(indent);
        write(self);
        self.end_line(range.end);
    }

    /// Writes the first line of an item that ends in `{`. Comments in it follow it, indented
    /// like the first thing inside.
    pub(super) fn head_line(
        &mut self,
        indent: usize,
        range: ByteRange,
        write: impl FnOnce(&mut Self),
    ) {
        self.comments_before(range.start, indent);
        self.indent(indent);
        write(self);
        let inside = self.comments_done..self.comments_until(range.end);
        self.comments_done = inside.end;
        self.end_line(range.end);
        for i in inside {
            self.comment_line(self.ast.comments[i], indent + 2);
        }
    }

    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// How many comments start before a place.
    fn comments_until(&self, end: u32) -> usize {
        let rest = &self.ast.comments[self.comments_done..];
        self.comments_done + rest.iter().take_while(|c| c.range.start < end).count()
    }

    /// Writes the comments before a place on lines of their own.
    pub(super) fn comments_before(&mut self, end: u32, indent: usize) {
        while let Some(&comment) = self.ast.comments.get(self.comments_done)
            && comment.range.start < end
        {
            self.comments_done += 1;
            self.comment_line(comment, indent);
        }
    }

    fn comment_line(&mut self, comment: Comment, indent: usize) {
        self.indent(indent);
        self.out.push_str(comment.range.of(self.text));
        self.out.push('\n');
    }

    /// Ends a line, with the comment that stands behind the item in the source.
    fn end_line(&mut self, end: u32) {
        if let Some(&comment) = self.ast.comments.get(self.comments_done)
            && self.gap(end, comment.range.start).bytes().all(|b| b != b'\n' && is_gap(b))
        {
            self.comments_done += 1;
            self.out.push_str("  ");
            self.out.push_str(comment.range.of(self.text));
        }
        self.out.push('\n');
    }

    /// Writes the comments before a declaration, or at the end of the file. Empty lines between
    /// them, and between them and what follows, are kept as one.
    pub(super) fn top_level_comments(&mut self, end: u32) {
        while let Some(&comment) = self.ast.comments.get(self.comments_done)
            && comment.range.start < end
        {
            self.comments_done += 1;
            self.comment_line(comment, 0);
            let next = match self.ast.comments.get(self.comments_done) {
                Some(next) => next.range.start.min(end),
                None => end,
            };
            let gap = self.gap(comment.range.end, next);
            let is_last_thing = next as usize == self.text.len();
            if !is_last_thing && gap.bytes().filter(|&b| b == b'\n').count() > 1 {
                self.out.push('\n');
            }
        }
    }

    /// The source text between two places; empty when they are the other way round.
    fn gap(&self, start: u32, end: u32) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// Whether a byte may stand between an item and the comment on its line.
fn is_gap(b: u8) -> bool {
    b.is_ascii_whitespace() || b == b','
}
