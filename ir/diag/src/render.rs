//! The human form: headline, source excerpt, notes, help and fixes.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Group, Level, Renderer};

use crate::excerpt::{self, clean};
use crate::patch::changed_lines;
use crate::{Diagnostic, Severity, SourceMap};

/// Lines shown on each side of a fix.
const MAX_FIX_LINES: usize = 8;
/// Columns given to the excerpt drawer. Long lines are cut before, so it need not cut again.
const DRAWING_WIDTH: usize = 1000;

/// One diagnostic as text, ending in a line feed.
///
/// The first line is `file:line:column: severity[CODE]: message`, or without the place when the
/// diagnostic has no source. Any span is accepted: it is moved inside the text and outwards to
/// character boundaries. With `color` the text carries ANSI escapes. Control characters of names,
/// messages and source lines are replaced, so the text is safe to print on a terminal.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, color: bool) -> String {
    let paint = Paint { color };
    let mut out = String::new();
    if let Some(place) = sources.describe(diagnostic.primary) {
        out.push_str(&paint.bold(&format!("{}: ", clean(&place))));
    }
    let head = format!("{}[{}]", diagnostic.severity.name(), diagnostic.code);
    out.push_str(&paint.severity(diagnostic.severity, &head));
    out.push_str(&paint.bold(&format!(": {}", clean(&diagnostic.message))));
    if let Some(class) = diagnostic.code.class() {
        out.push_str(&format!(" [{class}]"));
    }
    out.push('\n');
    draw_excerpts(&mut out, diagnostic, sources, color);
    for note in &diagnostic.notes {
        push_paragraph(&mut out, &paint.bold("note"), "note", note);
    }
    if let Some(help) = &diagnostic.help {
        push_paragraph(&mut out, &paint.bold("help"), "help", help);
    }
    for fix in &diagnostic.fixes {
        push_paragraph(&mut out, &paint.bold("fix"), "fix", &fix.title);
        if let Some((_, change)) = changed_lines(fix, sources) {
            let removed = change.removed.iter().copied();
            push_changes(&mut out, "-", removed, |line| paint.removed(line));
            let added = change.added.iter().map(String::as_str);
            push_changes(&mut out, "+", added, |line| paint.added(line));
        }
    }
    out
}

/// All diagnostics as text, one paragraph each, with an empty line between.
pub fn render_all(diagnostics: &[Diagnostic], sources: &SourceMap, color: bool) -> String {
    let paragraphs: Vec<String> =
        diagnostics.iter().map(|diagnostic| render(diagnostic, sources, color)).collect();
    paragraphs.join("\n")
}

fn draw_excerpts(out: &mut String, diagnostic: &Diagnostic, sources: &SourceMap, color: bool) {
    let excerpts = excerpt::of(diagnostic, sources);
    if excerpts.is_empty() {
        return;
    }
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
        Severity::Hint => Level::HELP,
    };
    let group = Group::with_level(level)
        .elements(excerpts.into_iter().map(|excerpt| excerpt.into_snippet()));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(DRAWING_WIDTH);
    for line in renderer.render(&[group]).lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// `word: text`, further lines of the text indented below the first.
fn push_paragraph(out: &mut String, painted_word: &str, word: &str, text: &str) {
    out.push_str(painted_word);
    out.push_str(": ");
    for (index, line) in text.trim_end().lines().enumerate() {
        if index > 0 {
            out.push('\n');
            out.push_str(&" ".repeat(word.len() + 2));
        }
        out.push_str(&clean(line));
    }
    out.push('\n');
}

fn push_changes<'a>(
    out: &mut String,
    mark: &str,
    lines: impl ExactSizeIterator<Item = &'a str>,
    paint: impl Fn(&str) -> String,
) {
    let hidden = lines.len().saturating_sub(MAX_FIX_LINES);
    for line in lines.take(MAX_FIX_LINES) {
        let text = excerpt::clip(line.trim_end_matches(['\r', '\n']));
        out.push_str(paint(&format!("  {mark} {text}")).trim_end());
        out.push('\n');
    }
    if hidden > 0 {
        out.push_str(&format!("  {mark} ... and {hidden} more lines\n"));
    }
}

/// ANSI styles, or none.
struct Paint {
    color: bool,
}

impl Paint {
    fn wrap(&self, escape: &str, text: &str) -> String {
        if self.color { format!("{escape}{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.wrap("\x1b[1m", text)
    }

    fn severity(&self, severity: Severity, text: &str) -> String {
        let escape = match severity {
            Severity::Error => "\x1b[1m\x1b[91m",
            Severity::Warning => "\x1b[1m\x1b[33m",
            Severity::Info => "\x1b[1m\x1b[94m",
            Severity::Hint => "\x1b[1m\x1b[96m",
        };
        self.wrap(escape, text)
    }

    fn removed(&self, text: &str) -> String {
        self.wrap("\x1b[31m", text)
    }

    fn added(&self, text: &str) -> String {
        self.wrap("\x1b[32m", text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Code, FileId, Fix, Span};

    fn span_of(sources: &SourceMap, file: FileId, text: &str) -> Span {
        let start = sources.file(file).unwrap().text.find(text).expect("text is there") as u32;
        Span::new(file, start, start + text.len() as u32)
    }

    #[track_caller]
    fn assert_text(actual: &str, expected: &str) {
        assert!(actual == expected, "got:\n{actual}\nexpected:\n{expected}");
    }

    #[test]
    fn everything_at_once() {
        let mut sources = SourceMap::new();
        let file = sources.add(
            "src/main.mp",
            "fn @main() -> i64 {\nbb0:\n  %x: i32 = const.i32 1\n  %y: i64 = i.add { lhs=%x rhs=const.i64 2 }\n  ret %y\n}\n",
        );
        let other = sources.add("src/util.mp", "module util\nexports { @f }\n");
        let at = span_of(&sources, file, "rhs=const.i64 2");
        let diagnostic = Diagnostic::new(Code::MPP0002, at, "expected `,` or `}`, found `rhs`")
            .with_secondary(span_of(&sources, file, "{ lhs"), "the list starts here")
            .with_secondary(span_of(&sources, other, "@f"), "declared here")
            .with_note("arguments are separated by commas\nand end in `}`")
            .with_help("write a comma")
            .with_fix(Fix {
                title: "insert the comma".into(),
                span: Span::new(file, at.start - 1, at.start),
                replacement: ", ".into(),
            });
        assert_text(
            &render(&diagnostic, &sources, false),
            "\
src/main.mp:4:28: error[MPP0002]: expected `,` or `}`, found `rhs`
  |
4 |   %y: i64 = i.add { lhs=%x rhs=const.i64 2 }
  |                   -----    ^^^^^^^^^^^^^^^
  |                   |
  |                   the list starts here
  |
 ::: src/util.mp:2:11
  |
2 | exports { @f }
  |           -- declared here
note: arguments are separated by commas
      and end in `}`
help: write a comma
fix: insert the comma
  -   %y: i64 = i.add { lhs=%x rhs=const.i64 2 }
  +   %y: i64 = i.add { lhs=%x, rhs=const.i64 2 }
",
        );
    }

    #[test]
    fn without_source() {
        let sources = SourceMap::new();
        let diagnostic = Diagnostic::new(Code::MPL0001, Span::NONE, "unknown emit name `foo`")
            .with_help("use one of `mpir`, `spv`");
        let text = "error[MPL0001]: unknown emit name `foo`\nhelp: use one of `mpir`, `spv`\n";
        assert_text(&render(&diagnostic, &sources, false), text);
        let foreign = Diagnostic { primary: Span::new(FileId(3), 1, 2), ..diagnostic };
        assert_text(&render(&foreign, &sources, false), text);
    }

    #[test]
    fn lines_far_apart_and_long_spans() {
        let mut sources = SourceMap::new();
        let body = "line\n".repeat(400);
        let file = sources.add("a.mp", format!("first\n{body}last\n"));
        let diagnostic = Diagnostic::new(Code::MPS0001, span_of(&sources, file, "last"), "twice")
            .with_secondary(Span::new(file, 0, 2000), "first here");
        assert_text(
            &render(&diagnostic, &sources, false),
            "\
a.mp:402:1: error[MPS0001]: twice
    |
402 | last
    | ^^^^
    |
   ::: a.mp:1:1
    |
  1 | first
    | ----- first here
",
        );
    }

    #[test]
    fn long_line_is_cut_around_the_place() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.mp", format!("{}HERE{}", "x ".repeat(1000), " y".repeat(1000)));
        let text = render(
            &Diagnostic::new(Code::MPP0001, span_of(&sources, file, "HERE"), "bad"),
            &sources,
            false,
        );
        assert!(text.starts_with("a.mp:1:2001: error[MPP0001]: bad\n"), "{text}");
        assert!(text.contains("...") && text.contains("x HERE y"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 200), "{text}");
    }

    #[test]
    fn tabs_line_ends_and_control_characters() {
        let mut sources = SourceMap::new();
        let file = sources.add("a\n.mp", "\tab\0c\r\nnext");
        let diagnostic =
            Diagnostic::new(Code::MPP0001, Span::new(file, 3, 4), "bad\r\nbyte\x1b[31m");
        assert_text(
            &render(&diagnostic, &sources, false),
            "\
a\u{fffd}.mp:1:4: error[MPP0001]: bad\u{fffd}\u{fffd}byte\u{fffd}[31m
  |
1 |     ab\u{fffd}c
  |       ^
",
        );
    }

    #[test]
    fn end_of_file_and_empty_file() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.mp", "module a\n");
        let at_end = Diagnostic::new(Code::MPP0002, Span::new(file, 9, 9), "unexpected end");
        assert_text(
            &render(&at_end, &sources, false),
            "a.mp:2:1: error[MPP0002]: unexpected end\n  |\n2 |\n  | ^\n",
        );
        let empty = sources.add("b.mp", "");
        let in_empty = Diagnostic::new(Code::MPP0002, Span::new(empty, 5, 9), "unexpected end");
        assert_text(
            &render(&in_empty, &sources, false),
            "b.mp:1:1: error[MPP0002]: unexpected end\n  |\n1 |\n  | ^\n",
        );
    }

    #[test]
    fn colour_changes_nothing_but_escapes() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.mp", "one two\n");
        let diagnostic = Diagnostic::new(Code::MPL2011, Span::new(file, 4, 7), "unused")
            .with_note("a note")
            .with_fix(Fix {
                title: "remove it".into(),
                span: Span::new(file, 3, 7),
                replacement: String::new(),
            });
        let colored = render(&diagnostic, &sources, true);
        assert!(colored.contains("\x1b[1m\x1b[33mwarning[MPL2011]\x1b[0m"), "{colored}");
        let mut stripped = String::new();
        for (index, part) in colored.split('\x1b').enumerate() {
            let visible = if index == 0 { part } else { part.split_once('m').expect("escape").1 };
            stripped.push_str(visible);
        }
        let trimmed: String = stripped.lines().map(|l| format!("{}\n", l.trim_end())).collect();
        assert_text(&trimmed, &render(&diagnostic, &sources, false));
    }

    #[test]
    fn many_places_are_counted() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.mp", "ab ".repeat(1000));
        let mut diagnostic = Diagnostic::new(Code::MPS0001, Span::new(file, 0, 2), "many");
        for i in 1..1000 {
            diagnostic = diagnostic.with_secondary(Span::new(file, i * 3, i * 3 + 2), "again");
        }
        let text = render(&diagnostic, &sources, false);
        assert!(text.lines().count() < 40, "{text}");
    }

    #[test]
    fn paragraphs_are_separated() {
        let one = Diagnostic::new(Code::MPL0001, Span::NONE, "a");
        let two = Diagnostic::new(Code::MPL0005, Span::NONE, "b");
        assert_eq!(
            render_all(&[one, two], &SourceMap::new(), false),
            "error[MPL0001]: a\n\nerror[MPL0005]: b\n"
        );
    }

    fn any_span() -> impl Strategy<Value = Span> {
        (0u32..4, 0u32..80, 0u32..80).prop_map(|(file, start, end)| match file {
            3 => Span::NONE,
            file => Span::new(FileId(file), start, end),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn any_span_of_any_text_renders(
            texts in prop::collection::vec("[a \n\r\t\0\u{7f}\u{85}é漢\u{200b}\u{202e}\u{2028}👩‍💻]{0,60}", 3),
            primary in any_span(),
            secondary in prop::collection::vec(any_span(), 0..5),
            fix in any_span(),
            label in "[a\n漢\u{0}]{0,5}",
            color: bool,
        ) {
            let mut sources = SourceMap::new();
            for (index, text) in texts.iter().enumerate() {
                sources.add(format!("f{index}.mp"), text.as_str());
            }
            let mut diagnostic = Diagnostic::new(Code::MPP0002, primary, label.as_str())
                .with_note(label.as_str())
                .with_fix(Fix { title: label.clone(), span: fix, replacement: label.clone() });
            for span in secondary {
                diagnostic = diagnostic.with_secondary(span, label.as_str());
            }
            let text = render(&diagnostic, &sources, color);
            prop_assert!(text.ends_with('\n'));
            let head = text.lines().next().unwrap();
            prop_assert!(head.contains("error[MPP0002]"));
            prop_assert_eq!(head.contains(".mp:"), sources.file(primary.file).is_some());
            let unsafe_char = |c: char| c.is_control() && c != '\n' && !(color && c == '\x1b');
            prop_assert!(!text.contains(unsafe_char), "{:?}", text);
        }
    }
}
