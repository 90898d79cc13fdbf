//! Differences between an expected and an actual text, for people.

use similar::TextDiff;

/// Lines shown of a difference.
const MAX_LINES: usize = 200;

/// What differs: a line diff (`-` expected, `+` actual), or the first byte when the texts look alike.
pub(crate) fn difference(expected: &[u8], actual: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(actual));
    if old == new {
        let at = expected.iter().zip(actual).take_while(|(a, b)| a == b).count();
        return format!("  bytes differ from offset {at} on");
    }
    let diff = TextDiff::from_lines(old.as_ref(), new.as_ref());
    let text = diff.unified_diff().context_radius(3).header("expected", "actual").to_string();
    limited(&text)
}

/// The first lines of a text, with a count of the rest.
pub(crate) fn limited(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let shown: Vec<String> = lines.iter().take(MAX_LINES).map(|line| format!("  {line}")).collect();
    let hidden = lines.len().saturating_sub(MAX_LINES);
    let rest = if hidden > 0 { format!("\n  ... and {hidden} more lines") } else { String::new() };
    shown.join("\n") + &rest
}

/// A text without white space at the ends of lines and without empty lines at its ends.
pub(crate) fn normalized(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    let text = text.trim_matches('\n');
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bytes() {
        assert_eq!(
            difference(b"a\nb\n", b"a\nc\n"),
            "  --- expected\n  +++ actual\n  @@ -1,2 +1,2 @@\n   a\n  -b\n  +c"
        );
        assert!(difference(b"a", b"a\n").contains("No newline"));
        assert_eq!(difference(b"ab\xff", b"ab\xfe"), "  bytes differ from offset 2 on");
        let long = "x\n".repeat(1000);
        assert!(difference(b"", long.as_bytes()).ends_with("more lines"));
    }

    #[test]
    fn normal_form() {
        assert_eq!(normalized("\n\na  \r\n\n  b\t\n\n"), "a\n\n  b\n");
        assert_eq!(normalized("\n \n"), "");
    }
}
