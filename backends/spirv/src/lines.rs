//! Source locations in the module: `OpString` for files, `OpLine` before instructions.

use crate::builder::Id;
use crate::emitter::Emitter;
use magpie_diag::{FileId, SourceMap, Span};
use spirv::Op;

/// Which location the instructions at the end of the body have.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    sources: Option<&'a SourceMap>,
    files: Vec<(FileId, Id)>,
    current: Option<Span>,
}

impl<'a> Lines<'a> {
    /// Locations in these files, or none at all.
    pub(crate) fn new(sources: Option<&'a SourceMap>) -> Lines<'a> {
        Lines { sources, files: Vec::new(), current: None }
    }
}

impl Emitter<'_> {
    /// Forgets the location: it does not reach into the next block.
    pub(crate) fn reset_line(&mut self) {
        self.lines.current = None;
    }

    /// Says that the next instruction comes from `span`.
    #[inline]
    pub(crate) fn note_line(&mut self, span: Span) {
        if self.lines.sources.is_some() && span.is_some() && self.lines.current != Some(span) {
            self.write_line(span);
        }
    }

    fn write_line(&mut self, span: Span) {
        let Some(file) = self.lines.sources.and_then(|s| s.file(span.file)) else { return };
        self.lines.current = Some(span);
        let known = self.lines.files.iter().find(|f| f.0 == span.file);
        let id = match known {
            Some(&(_, id)) => id,
            None => {
                let id = self.b.id();
                self.b.sources.op_text(Op::String, &[id], &file.name, &[]);
                self.lines.files.push((span.file, id));
                id
            }
        };
        let at = file.line_col(span.start);
        self.body.op(Op::Line, &[id, at.line, at.column]);
    }
}
