//! Patterns that a line of emitted text must or must not match.
//!
//! A pattern is literal text that must occur somewhere in a line. A space stands for any white
//! space; `$_` for any word; `$name` for any word the first time and for the same word afterwards,
//! in all patterns of a file; `$*` for any text; `$$` for a dollar sign. A word is a run of letters,
//! digits and `_ % @ .`.

use std::collections::BTreeMap;

/// A pattern with what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// Its line in the test file, from 1.
    pub(crate) line: usize,
    pub(crate) kind: CheckKind,
    pub(crate) pattern: Pattern,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckKind {
    /// A line after the last match must match.
    Check,
    /// The line right after the last match must match.
    Next,
    /// No line between the last match and the next, or the end, may match.
    Not,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    source: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Literal(String),
    Space,
    AnyWord,
    Named(String),
    AnyText,
}

/// Words bound by `$name`.
type Bindings = BTreeMap<String, String>;

impl Pattern {
    pub(crate) fn parse(source: &str) -> Result<Pattern, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = source.trim();
        if rest.is_empty() {
            return Err("an empty pattern matches everything".into());
        }
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            let piece = match c {
                c if c.is_whitespace() => {
                    rest = rest.trim_start();
                    Piece::Space
                }
                '$' if rest.starts_with('$') => {
                    rest = &rest[1..];
                    literal.push('$');
                    continue;
                }
                '$' if rest.starts_with('*') => {
                    rest = &rest[1..];
                    Piece::AnyText
                }
                '$' => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                    let name = &rest[..end];
                    rest = &rest[end..];
                    match name {
                        "" => return Err("`$` without a name; a dollar sign is `$$`".into()),
                        "_" => Piece::AnyWord,
                        name => Piece::Named(name.to_owned()),
                    }
                }
                c => {
                    literal.push(c);
                    continue;
                }
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(piece);
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Pattern { source: source.trim().to_owned(), pieces })
    }

    /// Looks for the pattern in a line. A match may add to the bindings; no match leaves them alone.
    fn matches(&self, line: &str, bindings: &mut Bindings) -> bool {
        let line = line.trim();
        line.char_indices().map(|(start, _)| start).chain([line.len()]).any(|start| {
            let mut tried = bindings.clone();
            let found = matches_at(&self.pieces, line, start, &mut tried);
            if found {
                *bindings = tried;
            }
            found
        })
    }
}

fn matches_at(pieces: &[Piece], line: &str, at: usize, bindings: &mut Bindings) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return true;
    };
    let text = &line[at..];
    match piece {
        Piece::Literal(literal) => {
            text.starts_with(literal.as_str())
                && matches_at(rest, line, at + literal.len(), bindings)
        }
        Piece::Space => {
            let spaces = text.len() - text.trim_start().len();
            spaces > 0 && matches_at(rest, line, at + spaces, bindings)
        }
        Piece::AnyWord => {
            let word = word_at(line, at);
            !word.is_empty() && matches_at(rest, line, at + word.len(), bindings)
        }
        Piece::Named(name) => {
            let word = word_at(line, at);
            if word.is_empty() || bindings.get(name).is_some_and(|bound| bound != word) {
                return false;
            }
            bindings.insert(name.clone(), word.to_owned());
            matches_at(rest, line, at + word.len(), bindings)
        }
        Piece::AnyText => {
            text.char_indices().map(|(skip, _)| skip).chain([text.len()]).any(|skip| {
                let mut tried = bindings.clone();
                let found = matches_at(rest, line, at + skip, &mut tried);
                if found {
                    *bindings = tried;
                }
                found
            })
        }
    }
}

/// The whole word that starts here; empty in the middle of a word.
fn word_at(line: &str, at: usize) -> &str {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%' | '@' | '.');
    if line[..at].chars().next_back().is_some_and(is_word) {
        return "";
    }
    let text = &line[at..];
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// Compares a text with the patterns of a file, in order.
///
/// A name is bound by the first line that matches; there is no going back to another line.
pub(crate) fn check_text(checks: &[Check], text: &str) -> Result<(), String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut bindings = Bindings::new();
    let mut forbidden: Vec<&Check> = Vec::new();
    // The first line after the last match.
    let mut from = 0;
    for check in checks {
        let found = match check.kind {
            CheckKind::Not => {
                forbidden.push(check);
                continue;
            }
            CheckKind::Check => {
                (from..lines.len()).find(|&line| check.pattern.matches(lines[line], &mut bindings))
            }
            CheckKind::Next => (from..lines.len().min(from + 1))
                .find(|&line| check.pattern.matches(lines[line], &mut bindings)),
        };
        let Some(found) = found else {
            return Err(not_found(check, &lines, from, &bindings));
        };
        none_matches(&forbidden, &lines, from..found, &bindings)?;
        forbidden.clear();
        from = found + 1;
    }
    none_matches(&forbidden, &lines, from..lines.len(), &bindings)
}

fn none_matches(
    forbidden: &[&Check],
    lines: &[&str],
    range: std::ops::Range<usize>,
    bindings: &Bindings,
) -> Result<(), String> {
    for check in forbidden {
        for index in range.clone() {
            if check.pattern.matches(lines[index], &mut bindings.clone()) {
                return Err(format!(
                    "line {} of the test forbids `{}`, found in line {} of the output:\n{}",
                    check.line,
                    check.pattern.source,
                    index + 1,
                    excerpt(lines, index)
                ));
            }
        }
    }
    Ok(())
}

fn not_found(check: &Check, lines: &[&str], from: usize, bindings: &Bindings) -> String {
    let place = match (check.kind, from) {
        (CheckKind::Next, _) => format!("in line {} of the output", from + 1),
        (_, 0) => "in the output".to_owned(),
        (_, from) => format!("after line {from} of the output"),
    };
    let mut text = format!(
        "line {} of the test asks for `{}`, not found {place}:\n{}",
        check.line,
        check.pattern.source,
        excerpt(lines, from)
    );
    for (name, word) in bindings {
        text.push_str(&format!("\n${name} is `{word}`"));
    }
    text
}

/// The lines around an index, with numbers.
fn excerpt(lines: &[&str], around: usize) -> String {
    let start = around.saturating_sub(5).min(lines.len());
    let end = (around + 30).min(lines.len());
    let numbered: Vec<String> =
        (start..end).map(|index| format!("{:>5} | {}", index + 1, lines[index])).collect();
    if numbered.is_empty() { "  (the output is empty)".to_owned() } else { numbered.join("\n") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(pattern: &str, line: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(line, &mut Bindings::new())
    }

    fn checks(patterns: &[(CheckKind, &str)]) -> Vec<Check> {
        let check = |(index, &(kind, pattern)): (usize, &(CheckKind, &str))| Check {
            line: index + 1,
            kind,
            pattern: Pattern::parse(pattern).unwrap(),
        };
        patterns.iter().enumerate().map(check).collect()
    }

    #[test]
    fn one_line() {
        assert!(found("OpIAdd %uint", "   %5 = OpIAdd   %uint %3 %4"));
        assert!(!found("OpIAdd %int", "%5 = OpIAdd %uint %3 %4"));
        assert!(found("$_ = OpIAdd $_ $a $b", "%5 = OpIAdd %uint %3 %4"));
        assert!(!found("OpIAdd $_ $a $a", "%5 = OpIAdd %uint %3 %4"));
        assert!(found("OpIAdd $_ $a $a", "%5 = OpIAdd %uint %3 %3"));
        assert!(found("($*) { return", "kernel void f(int a, int b) { return; }"));
        assert!(found("cost $$5", "cost $5"));
        assert!(!found("=$_ OpIAdd", "%5 = OpIAdd"), "a word is not empty");
        assert!(!found("%$_", "%5"), "a word begins at its beginning");
        assert!(found("$*b$*", "b"));
        assert!(found("é $x", "é ü"));
    }

    #[test]
    fn mistakes() {
        assert!(Pattern::parse("  ").is_err());
        assert!(Pattern::parse("a $ b").unwrap_err().contains("`$$`"));
    }

    #[test]
    fn in_order() {
        use CheckKind::{Check, Next, Not};
        let text = "a = load x\nb = load y\nc = add a b\nstore c\nend\n";
        let ok = |patterns: &[(CheckKind, &str)]| check_text(&checks(patterns), text);
        assert_eq!(
            ok(&[(Check, "$p = load x"), (Next, "$q = load y"), (Check, "add $p $q")]),
            Ok(())
        );
        assert_eq!(
            ok(&[(Not, "store"), (Check, "$r = add"), (Next, "store $r"), (Not, "load")]),
            Ok(())
        );
        let error = ok(&[(Check, "add"), (Check, "load")]).unwrap_err();
        assert!(error.contains("line 2 of the test") && error.contains("after line 3"), "{error}");
        let error = ok(&[(Check, "$p = load"), (Next, "store")]).unwrap_err();
        assert!(
            error.contains("in line 2 of the output") && error.contains("$p is `a`"),
            "{error}"
        );
        let error = ok(&[(Check, "load x"), (Not, "add"), (Check, "end")]).unwrap_err();
        assert!(error.contains("forbids `add`") && error.contains("    3 | c = add"), "{error}");
        assert!(ok(&[(Check, "load x"), (Not, "en$_"), (Not, "end")]).is_err());
        assert!(check_text(&checks(&[(Next, "a")]), "").unwrap_err().contains("empty"));
        assert_eq!(check_text(&checks(&[(Not, "a")]), ""), Ok(()));
    }

    proptest! {
        #[test]
        fn any_pattern_against_any_line(pattern in "[a $*_é%]{0,8}", line in "[a $_é%]{0,12}") {
            if let Ok(pattern) = Pattern::parse(&pattern) {
                pattern.matches(&line, &mut Bindings::new());
            }
        }

        #[test]
        fn a_line_matches_itself(line in "[a-c =,(){}$é]{0,20}") {
            prop_assume!(!line.trim().is_empty());
            prop_assert!(found(&line.replace('$', "$$"), &line));
        }
    }
}
