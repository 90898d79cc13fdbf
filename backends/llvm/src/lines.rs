//! Source locations as debug metadata: one subprogram, the kernel, and a location for each place in
//! the source.
//!
//! For NVIDIA GPUs they become `.loc` lines and nothing else, for AMD GPUs the line table of the code
//! object.

use crate::emitter::Emitter;
use crate::flavor::Flavor;
use magpie_diag::{FileId, SourceMap, Span};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Numbers of metadata that the module has once; locations follow.
const UNIT: u32 = 10;
const SUBPROGRAM: u32 = 11;
const SIGNATURE: u32 = 12;
const FIRST: u32 = 13;

/// Which location the instructions at the end of the body have.
pub(crate) struct Lines<'a> {
    /// Where locations come from; `None` leaves them out.
    sources: Option<&'a SourceMap>,
    /// Files with the numbers of their metadata.
    files: Vec<(FileId, u32)>,
    known: FxHashMap<Span, u32>,
    current: Option<u32>,
    next: u32,
    metadata: String,
}

impl<'a> Lines<'a> {
    /// Locations of a kernel at a place in these files, or none at all.
    pub(crate) fn new(sources: Option<&'a SourceMap>, kernel: Span) -> Lines<'a> {
        let mut lines = Lines {
            sources: sources.filter(|s| s.file(kernel.file).is_some()),
            files: Vec::new(),
            known: FxHashMap::default(),
            current: None,
            next: FIRST,
            metadata: String::new(),
        };
        lines.file(kernel.file);
        lines
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) -> u32 {
        let number = self.next;
        let _ = writeln!(self.metadata, "!{number} = {text}");
        self.next += 1;
        number
    }

    /// The metadata of a file: for the kernel's, the file itself, and for others a scope in it.
    fn file(&mut self, file: FileId) -> Option<u32> {
        if let Some(&(_, number)) = self.files.iter().find(|f| f.0 == file) {
            return Some(number);
        }
        let name = escaped(&self.sources?.file(file)?.name);
        let mut number = self.add(format_args!("!DIFile(filename: \"{name}\", directory: \"\")"));
        if !self.files.is_empty() {
            number = self.add(format_args!(
                "!DILexicalBlockFile(scope: !{SUBPROGRAM}, file: !{number}, discriminator: 0)"
            ));
        }
        self.files.push((file, number));
        Some(number)
    }

    /// The location of a place in the source.
    fn location(&mut self, span: Span) -> Option<u32> {
        if let Some(&number) = self.known.get(&span) {
            return Some(number);
        }
        let at = self.sources?.file(span.file)?.line_col(span.start);
        let is_own = self.files.first().is_some_and(|f| f.0 == span.file);
        let scope = if is_own { SUBPROGRAM } else { self.file(span.file)? };
        let (line, column) = (at.line, at.column.min(u32::from(u16::MAX)));
        let number =
            self.add(format_args!("!DILocation(line: {line}, column: {column}, scope: !{scope})"));
        self.known.insert(span, number);
        Some(number)
    }

    /// What stands behind an instruction: the location that was noted.
    pub(crate) fn suffix(&self) -> Option<u32> {
        self.current
    }
}

impl Emitter<'_> {
    /// Says that the next instructions come from `span`.
    pub(crate) fn note_line(&mut self, span: Span) {
        if self.lines.sources.is_some() && span.is_some() {
            self.lines.current = self.lines.location(span);
        }
    }

    /// What stands behind the head of the function.
    pub(crate) fn subprogram(&self) -> String {
        match self.lines.sources {
            Some(_) => format!(" !dbg !{SUBPROGRAM}"),
            None => String::new(),
        }
    }

    /// The metadata of the locations.
    pub(crate) fn line_metadata(&self) -> String {
        let kernel = self.f.span;
        let (Some(file), Some(&(_, number))) =
            (self.lines.sources.and_then(|s| s.file(kernel.file)), self.lines.files.first())
        else {
            return String::new();
        };
        let kind = match self.flavor {
            Flavor::Nvptx { .. } => "DebugDirectivesOnly",
            Flavor::Amdgcn { .. } => "LineTablesOnly",
        };
        let (line, name) = (file.line_col(kernel.start).line, &self.layout.entry);
        format!(
            "!llvm.dbg.cu = !{{!{UNIT}}}\n\
             !{UNIT} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{number}, \
             producer: \"magpie\", isOptimized: true, runtimeVersion: 0, emissionKind: {kind})\n\
             !{SUBPROGRAM} = distinct !DISubprogram(name: \"{name}\", scope: !{number}, \
             file: !{number}, line: {line}, type: !{SIGNATURE}, scopeLine: {line}, \
             spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{UNIT})\n\
             !{SIGNATURE} = !DISubroutineType(types: !{{}})\n{}",
            self.lines.metadata
        )
    }
}

/// A name in a quoted text of LLVM IR.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => out.push(byte as char),
            // PTX has no escapes for these.
            b'"' | b'\\' | 0..b' ' | 0x7f => out.push('_'),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out
}
