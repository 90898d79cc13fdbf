//! Places in source text: files by id, ranges as byte offsets.

use std::ops::Range;

/// A source file of the session; an index into [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// A half-open byte range of one file.
///
/// [`Span::NONE`] marks what has no source text: synthesized code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    /// The file the range lies in.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The place of code that nobody wrote.
    pub const NONE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    /// A range of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// Whether the span names real source text.
    pub fn is_some(self) -> bool {
        self.file != Span::NONE.file
    }

    /// The smallest range that covers both; either alone when the other is [`Span::NONE`].
    pub fn to(self, other: Span) -> Span {
        if !self.is_some() {
            return other;
        }
        if !other.is_some() || other.file != self.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Default for Span {
    fn default() -> Self {
        Span::NONE
    }
}

/// A line and a column, both counted from 1; columns count Unicode scalar values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineCol {
    /// Line number from 1.
    pub line: u32,
    /// Column number from 1.
    pub column: u32,
}

/// One file's name and text, with the starts of its lines.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path as the user gave it.
    pub name: String,
    /// The whole text.
    pub text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    fn new(name: String, text: String) -> SourceFile {
        let mut line_starts = vec![0];
        line_starts.extend(
            text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1),
        );
        SourceFile { name, text, line_starts }
    }

    /// The line and column of a byte offset; offsets past the end give the last position.
    pub fn line_col(&self, offset: u32) -> LineCol {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_index(offset);
        let start = self.line_starts[line] as usize;
        let column = self.text[start..offset].chars().count() as u32 + 1;
        LineCol { line: line as u32 + 1, column }
    }

    /// Number of lines; text that ends in a line feed has an empty last line.
    pub fn line_count(&self) -> usize {
        self.line_starts.len()
    }

    /// Index of the line, counted from 0, that holds a byte offset; the last line for offsets past the end.
    pub(crate) fn line_index(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&s| s as usize <= offset) - 1
    }

    /// The bytes of a line counted from 0, without its line end (`\n` or `\r\n`). Empty for a line past the last.
    pub(crate) fn line_range(&self, line: usize) -> Range<usize> {
        let Some(&start) = self.line_starts.get(line) else {
            return self.text.len()..self.text.len();
        };
        let start = start as usize;
        let Some(&next) = self.line_starts.get(line + 1) else {
            return start..self.text.len();
        };
        let end = next as usize - 1;
        if self.text[start..end].ends_with('\r') { start..end - 1 } else { start..end }
    }

    /// The bytes a span covers, moved inside the text and outwards to character boundaries.
    pub(crate) fn byte_range(&self, span: Span) -> Range<usize> {
        let len = self.text.len();
        let mut start = (span.start as usize).min(len);
        let mut end = (span.end as usize).clamp(start, len);
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        start..end
    }
}

/// All files of a session, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a file. Text of 4 GiB or more is the caller's error to report; see [`MAX_SOURCE_LEN`].
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile::new(name.into(), text.into()));
        id
    }

    /// The file, unless the id is that of [`Span::NONE`] or of another map.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// Every file with its id.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), f))
    }

    /// `file:line:column` of the start of a span, or `None` for a span without source.
    pub fn describe(&self, span: Span) -> Option<String> {
        let file = self.file(span.file)?;
        let at = file.line_col(span.start);
        Some(format!("{}:{}:{}", file.name, at.line, at.column))
    }
}

/// The longest source file accepted, in bytes. Offsets are 32-bit.
pub const MAX_SOURCE_LEN: usize = 256 << 20;
