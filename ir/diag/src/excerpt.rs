//! The lines of source text shown under a diagnostic.
//!
//! A drawing crate draws them; this module decides what it sees: only the lines near the marked
//! places, cut to a sane length, with every character that could disturb a terminal replaced.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Snippet};

use crate::{Diagnostic, FileId, SourceFile, SourceMap, Span};

/// Places shown besides the primary one.
const MAX_SECONDARY: usize = 8;
/// Marks on more lines than this are shown on their first line only.
const MAX_MARK_LINES: usize = 10;
/// Marked lines further apart than this get excerpts of their own.
const MAX_GAP: usize = 30;
/// Characters shown of a line.
const MAX_LINE: usize = 160;
/// Characters kept before the first mark of a line that is cut on the left.
const KEPT_BEFORE: usize = 40;
/// Stands for what was cut.
const CUT: &str = "...";

/// A run of lines of one file with its marks, ready to be drawn.
pub(crate) struct Excerpt {
    /// The file's name, for an excerpt without the primary span; line and column are added when drawn.
    origin: Option<String>,
    /// Line number of the first line, from 1.
    first_line: usize,
    text: String,
    marks: Vec<(Range<usize>, AnnotationKind, String)>,
}

impl Excerpt {
    pub(crate) fn into_snippet(self) -> Snippet<'static, Annotation<'static>> {
        let marks = self.marks.into_iter().map(|(range, kind, label)| {
            let label = if label.is_empty() { None } else { Some(label) };
            kind.span(range).label(label)
        });
        Snippet::source(self.text).line_start(self.first_line).path(self.origin).annotations(marks)
    }
}

struct Mark<'a> {
    range: Range<usize>,
    first_line: usize,
    last_line: usize,
    kind: AnnotationKind,
    label: &'a str,
}

/// The excerpts of a diagnostic: the one with the primary span first, then the rest of its file,
/// then other files in the order in which they were read. Empty without source.
pub(crate) fn of(diagnostic: &Diagnostic, sources: &SourceMap) -> Vec<Excerpt> {
    let mut places: Vec<(Span, AnnotationKind, &str)> =
        vec![(diagnostic.primary, AnnotationKind::Primary, "")];
    for (span, label) in diagnostic.secondary.iter().take(MAX_SECONDARY) {
        places.push((*span, AnnotationKind::Context, label));
    }
    let mut files: Vec<FileId> = places.iter().map(|(span, ..)| span.file).collect();
    files.sort();
    files.dedup();
    files.sort_by_key(|&file| file != diagnostic.primary.file);

    let mut excerpts = Vec::new();
    for id in files {
        let Some(file) = sources.file(id) else { continue };
        let mut marks: Vec<Mark> = places
            .iter()
            .filter(|(span, ..)| span.file == id)
            .map(|&(span, kind, label)| mark(file, span, kind, label))
            .collect();
        marks.sort_by_key(|mark| (mark.first_line, mark.range.start));
        let mut clusters = cluster(marks);
        let is_primary = |mark: &Mark| matches!(mark.kind, AnnotationKind::Primary);
        clusters.sort_by_key(|marks| !marks.iter().any(is_primary));
        excerpts.extend(clusters.iter().map(|marks| {
            let shows_primary = marks.iter().any(is_primary);
            cut_out(file, marks, shows_primary)
        }));
    }
    excerpts
}

fn mark<'a>(file: &SourceFile, span: Span, kind: AnnotationKind, label: &'a str) -> Mark<'a> {
    let mut range = file.byte_range(span);
    let first_line = file.line_index(range.start);
    let mut last_line = file.line_index(range.end);
    // A span that ends in a line feed ends on that line.
    if last_line > first_line && file.line_range(last_line).start == range.end {
        last_line -= 1;
    }
    if last_line - first_line >= MAX_MARK_LINES {
        last_line = first_line;
    }
    let line_end = file.line_range(last_line).end;
    range.end = range.end.min(line_end).max(range.start);
    Mark { range, first_line, last_line, kind, label }
}

/// Splits marks, sorted by first line, where the distance is too large.
fn cluster(marks: Vec<Mark>) -> Vec<Vec<Mark>> {
    let mut clusters: Vec<Vec<Mark>> = Vec::new();
    let mut reach = 0;
    for mark in marks {
        let last_line = mark.last_line;
        match clusters.last_mut() {
            Some(last) if mark.first_line <= reach + MAX_GAP => last.push(mark),
            _ => clusters.push(vec![mark]),
        }
        reach = last_line.max(reach);
    }
    clusters
}

fn cut_out(file: &SourceFile, marks: &[Mark], shows_primary: bool) -> Excerpt {
    let first = marks.iter().map(|mark| mark.first_line).min().unwrap_or(0);
    let last = marks.iter().map(|mark| mark.last_line).max().unwrap_or(first);
    let mut text = String::new();
    let mut drawn: Vec<Range<usize>> = marks.iter().map(|_| 0..0).collect();
    for line in first..=last {
        if line > first {
            text.push('\n');
        }
        let range = file.line_range(line);
        let focus = marks.iter().flat_map(|mark| {
            let start = (mark.first_line == line).then_some(mark.range.start);
            let end = (mark.last_line == line).then_some(mark.range.end);
            start.into_iter().chain(end)
        });
        let focus = focus.min().unwrap_or(range.start);
        let shown = window(&file.text, range.clone(), focus);
        if shown.start > range.start {
            text.push_str(CUT);
        }
        let shown_at = text.len();
        text.push_str(&clean(&file.text[shown.clone()]));
        let position = |offset: usize| {
            shown_at + clean(&file.text[shown.start..offset.clamp(shown.start, shown.end)]).len()
        };
        for (mark, drawn) in marks.iter().zip(&mut drawn) {
            if mark.first_line == line {
                drawn.start = position(mark.range.start);
            }
            if mark.last_line == line {
                drawn.end = position(mark.range.end);
            }
        }
        if shown.end < range.end {
            text.push_str(CUT);
        }
    }
    Excerpt {
        origin: (!shows_primary).then(|| clean(&file.name)),
        first_line: first + 1,
        text,
        marks: marks
            .iter()
            .zip(drawn)
            .map(|(mark, range)| (range, mark.kind, clean(mark.label)))
            .collect(),
    }
}

/// The part of a line to show, so that `focus` lies in it.
fn window(text: &str, line: Range<usize>, focus: usize) -> Range<usize> {
    let forward = |from: usize, count: usize| {
        text[from..line.end].char_indices().nth(count).map_or(line.end, |(at, _)| from + at)
    };
    if forward(line.start, MAX_LINE) == line.end {
        return line;
    }
    let focus = focus.clamp(line.start, line.end);
    let before = text[line.start..focus].char_indices().rev().nth(KEPT_BEFORE - 1);
    let start = before.map_or(line.start, |(at, _)| line.start + at);
    let start = if focus <= forward(line.start, MAX_LINE / 2) { line.start } else { start };
    start..forward(start, MAX_LINE)
}

/// One line, cleaned and cut at the right.
pub(crate) fn clip(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((at, _)) => clean(&line[..at]) + CUT,
        None => clean(line),
    }
}

/// The text with tabs as spaces and a replacement character for each character that would move a
/// terminal's cursor, end a line or change the direction of writing.
///
/// Works character by character: the result for a prefix is a prefix of the result.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\u{200e}'
            | '\u{200f}'
            | '\u{61c}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            '\u{2028}' | '\u{2029}' => out.push(char::REPLACEMENT_CHARACTER),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
