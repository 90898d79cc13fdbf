//! A [`Fix`](crate::Fix) as changed lines and as a unified diff.

use std::ops::Range;

use crate::{Fix, SourceFile, SourceMap};

/// Unchanged lines shown on each side of a change.
const CONTEXT: usize = 3;

/// The lines that a replacement changes, each with its line end.
pub(crate) struct ChangedLines<'a> {
    /// Index of the first changed line, counted from 0.
    pub(crate) first: usize,
    /// The lines as they are.
    pub(crate) removed: Vec<&'a str>,
    /// The lines as they would be.
    pub(crate) added: Vec<String>,
}

/// The changed lines of a fix, or `None` when its span has no source text.
pub(crate) fn changed_lines<'a>(
    fix: &Fix,
    sources: &'a SourceMap,
) -> Option<(&'a SourceFile, ChangedLines<'a>)> {
    let file = sources.file(fix.span.file)?;
    Some((file, replace(file, file.byte_range(fix.span), &fix.replacement)))
}

/// The fix as a unified diff; empty when its span has no source text or nothing changes.
pub(crate) fn unified_diff(fix: &Fix, sources: &SourceMap) -> String {
    let Some((file, change)) = changed_lines(fix, sources) else {
        return String::new();
    };
    if change.removed.is_empty() && change.added.is_empty() {
        return String::new();
    }
    // The empty line after a final line feed is no line of the file as diffs count.
    let lines = file.line_count() - usize::from(file.text.is_empty() || file.text.ends_with('\n'));
    let before = change.first.saturating_sub(CONTEXT)..change.first;
    let after_start = change.first + change.removed.len();
    let after = after_start..(after_start + CONTEXT).min(lines);

    let context = before.len() + after.len();
    let old_len = context + change.removed.len();
    let new_len = context + change.added.len();
    let name = header_name(&file.name);
    let mut out = format!(
        "--- {}\n+++ {}\n@@ -{} +{} @@\n",
        name("a/"),
        name("b/"),
        hunk_range(before.start, old_len),
        hunk_range(before.start, new_len)
    );
    for line in before {
        push_line(&mut out, ' ', full_line(file, line));
    }
    for line in &change.removed {
        push_line(&mut out, '-', line);
    }
    for line in &change.added {
        push_line(&mut out, '+', line);
    }
    for line in after {
        push_line(&mut out, ' ', full_line(file, line));
    }
    out
}

fn replace<'a>(file: &'a SourceFile, range: Range<usize>, replacement: &str) -> ChangedLines<'a> {
    let first = file.line_index(range.start);
    let last = file.line_index(range.end);
    let block_start = file.line_range(first).start;
    let block_end = file.line_range(last + 1).start;

    let block = &file.text[block_start..block_end];
    let changed = format!(
        "{}{replacement}{}",
        &file.text[block_start..range.start],
        &file.text[range.end..block_end]
    );
    let mut removed: Vec<&str> = block.split_inclusive('\n').collect();
    let mut added: Vec<&str> = changed.split_inclusive('\n').collect();
    let same_head = removed.iter().zip(&added).take_while(|(a, b)| a == b).count();
    removed.drain(..same_head);
    added.drain(..same_head);
    let same_tail =
        removed.iter().rev().zip(added.iter().rev()).take_while(|(a, b)| a == b).count();
    removed.truncate(removed.len() - same_tail);
    added.truncate(added.len() - same_tail);
    ChangedLines {
        first: first + same_head,
        removed,
        added: added.into_iter().map(str::to_owned).collect(),
    }
}

fn full_line(file: &SourceFile, line: usize) -> &str {
    &file.text[file.line_range(line).start..file.line_range(line + 1).start]
}

fn push_line(out: &mut String, mark: char, line: &str) {
    out.push(mark);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

/// `start,length` as diffs write it: a range of no lines names the line before it.
fn hunk_range(first: usize, len: usize) -> String {
    format!("{},{len}", if len == 0 { first } else { first + 1 })
}

fn header_name(name: &str) -> impl Fn(&str) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    move |prefix| if clean.starts_with('/') { clean.clone() } else { format!("{prefix}{clean}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FileId, Span};

    /// Applies a diff of one hunk, checking every line it claims to find.
    fn apply(text: &str, diff: &str) -> String {
        if diff.is_empty() {
            return text.to_owned();
        }
        let old: Vec<&str> = text.split_inclusive('\n').collect();
        let mut lines = diff.split_inclusive('\n').skip(2).peekable();
        let header = lines.next().expect("hunk header");
        let old_range = header.split(' ').nth(1).expect("old range").trim_start_matches('-');
        let (start, len) = old_range.split_once(',').expect("start and length");
        let (start, len): (usize, usize) = (start.parse().unwrap(), len.parse().unwrap());
        let mut at = if len == 0 { start } else { start - 1 };
        let mut out: String = old[..at].concat();
        while let Some(line) = lines.next() {
            let (mark, mut body) = line.split_at(1);
            if lines.peek().is_some_and(|l| l.starts_with('\\')) {
                lines.next();
                body = body.strip_suffix('\n').expect("line end");
            }
            match mark {
                "+" => out.push_str(body),
                " " => {
                    assert_eq!(old[at], body);
                    out.push_str(body);
                    at += 1;
                }
                "-" => {
                    assert_eq!(old[at], body);
                    at += 1;
                }
                other => panic!("unexpected mark {other:?}"),
            }
        }
        out + &old[at..].concat()
    }

    fn diff_of(text: &str, start: u32, end: u32, replacement: &str) -> String {
        let mut sources = SourceMap::new();
        let file = sources.add("dir/a.mp", text);
        let fix = Fix {
            title: String::new(),
            span: Span::new(file, start, end),
            replacement: replacement.to_owned(),
        };
        unified_diff(&fix, &sources)
    }

    #[test]
    fn one_line() {
        assert_eq!(
            diff_of("a\nb\nc c\nd\n", 5, 5, ","),
            "--- a/dir/a.mp\n+++ b/dir/a.mp\n@@ -1,4 +1,4 @@\n a\n b\n-c c\n+c, c\n d\n"
        );
    }

    #[test]
    fn no_final_line_feed() {
        assert_eq!(
            diff_of("a", 1, 1, "b\n"),
            "--- a/dir/a.mp\n+++ b/dir/a.mp\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+ab\n"
        );
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(diff_of("a\n", 0, 1, "a"), "");
        let fix = Fix { title: String::new(), span: Span::NONE, replacement: "x".into() };
        assert_eq!(unified_diff(&fix, &SourceMap::new()), "");
        let fix = Fix { span: Span::new(FileId(7), 0, 1), ..fix };
        assert_eq!(unified_diff(&fix, &SourceMap::new()), "");
    }

    proptest! {
        #[test]
        fn applying_the_diff_is_the_replacement(
            text in "[ab\n\r\té]{0,40}",
            start in 0u32..50,
            len in 0u32..50,
            replacement in "[ab\n]{0,10}",
        ) {
            let mut sources = SourceMap::new();
            let id = sources.add("a.mp", text.as_str());
            let range = sources.file(id).unwrap().byte_range(Span::new(id, start, start + len));
            let want = format!("{}{replacement}{}", &text[..range.start], &text[range.end..]);
            prop_assert_eq!(apply(&text, &diff_of(&text, start, start + len, &replacement)), want);
        }
    }
}
