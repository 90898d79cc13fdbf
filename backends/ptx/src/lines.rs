//! Source locations in the text: `.file` once, `.loc` before instructions.

use crate::emitter::Emitter;
use magpie_diag::{FileId, SourceMap, Span};
use std::fmt::Write;

/// Which location the instructions at the end of the body have.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    sources: Option<&'a SourceMap>,
    files: Vec<FileId>,
    current: Option<Span>,
}

impl<'a> Lines<'a> {
    /// Locations in these files, or none at all.
    pub(crate) fn new(sources: Option<&'a SourceMap>) -> Lines<'a> {
        Lines { sources, files: Vec::new(), current: None }
    }

    /// Declares the files in use.
    pub(crate) fn declare_files(&self, out: &mut String) {
        for (n, &file) in self.files.iter().enumerate() {
            let name = self.sources.and_then(|s| s.file(file)).map_or("", |f| &f.name);
            // Quotes and line ends have no escape.
            let name: String =
                name.chars().map(|c| if c == '"' || c.is_control() { '_' } else { c }).collect();
            let _ = writeln!(out, ".file {} \"{name}\"", n + 1);
        }
    }
}

impl Emitter<'_, '_> {
    /// Says that the next instruction comes from `span`.
    #[inline]
    pub(crate) fn note_line(&mut self, span: Span) {
        if self.module.lines.sources.is_some()
            && span.is_some()
            && self.module.lines.current != Some(span)
        {
            self.write_line(span);
        }
    }

    fn write_line(&mut self, span: Span) {
        let Some(file) = self.module.lines.sources.and_then(|s| s.file(span.file)) else { return };
        self.module.lines.current = Some(span);
        let number = match self.module.lines.files.iter().position(|&f| f == span.file) {
            Some(n) => n + 1,
            None => {
                self.module.lines.files.push(span.file);
                self.module.lines.files.len()
            }
        };
        let at = file.line_col(span.start);
        let _ = writeln!(self.body, "\t.loc {number} {} {}", at.line, at.column);
    }
}
