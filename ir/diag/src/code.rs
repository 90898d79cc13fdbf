//! The table of diagnostic codes: one row a code, with severity and title.
//!
//! The long text of a code (what it means, a small wrong example, the repair) is the file
//! `explain/CODE.md` of this crate; a test fails when one is missing.

use crate::Severity;

/// A stable diagnostic code, such as `MPT2014`. Only codes of the table exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u16);

struct Row {
    name: &'static str,
    severity: Severity,
    title: &'static str,
    explain: &'static str,
}

macro_rules! codes {
    ($($name:ident $severity:ident $title:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name,)* }
        #[allow(non_upper_case_globals)]
        impl Code {
            $(#[doc = $title] pub const $name: Code = Code(Index::$name as u16);)*
        }
        static TABLE: &[Row] = &[$(Row {
            name: stringify!($name),
            severity: Severity::$severity,
            title: $title,
            explain: include_str!(concat!("../explain/", stringify!($name), ".md")),
        },)*];
    };
}

include!("code_table.rs");

impl Code {
    /// The code as text.
    pub fn as_str(self) -> &'static str {
        TABLE[self.0 as usize].name
    }

    /// The severity a finding of this code has unless `[lint]` changes it.
    pub fn severity(self) -> Severity {
        TABLE[self.0 as usize].severity
    }

    /// A few words that name the fault.
    pub fn title(self) -> &'static str {
        TABLE[self.0 as usize].title
    }

    /// The stable class of a Miri code, such as `concurrent-write`: its title, or the class of the
    /// language reference that it is a case of.
    pub fn class(self) -> Option<&'static str> {
        self.as_str().starts_with("MIR").then(|| match self.as_str() {
            "MIR0208" | "MIR0215" => "syntax",
            "MIR0209" => "undefined-name",
            "MIR0210" | "MIR0211" | "MIR0212" | "MIR0213" => "type-mismatch",
            "MIR0214" => "immutable",
            _ => self.title(),
        })
    }

    /// The long text of `magpie explain`, in Markdown.
    pub fn explanation(self) -> &'static str {
        TABLE[self.0 as usize].explain
    }

    /// The example of the explanation and its repair, for codes that one source file can raise.
    pub fn example(self) -> Option<Example> {
        let text = self.explanation();
        ["mp", "mi", "mpir"].into_iter().find_map(|language| {
            let wrong = fence(text, &format!("{language} wrong"))?;
            let right = fence(text, &format!("{language} right"))?;
            Some(Example { language, wrong, right })
        })
    }

    /// Every code, in table order.
    pub fn all() -> impl Iterator<Item = Code> {
        (0..TABLE.len() as u16).map(Code)
    }

    /// Finds a code by its text. Old flat GPU codes (`MPG1100`) mean their successors
    /// (GPU specification, section 13.1).
    pub fn parse(text: &str) -> Option<Code> {
        const OLD: &[(&str, Code)] = &[
            ("MPG1100", Code::MPG_CORE_1100),
            ("MPG1101", Code::MPG_CORE_1101),
            ("MPG1102", Code::MPG_CORE_1102),
            ("MPG1103", Code::MPG_CORE_1103),
            ("MPG1104", Code::MPG_CORE_1104),
            ("MPG1105", Code::MPG_CORE_1105),
            ("MPG1106", Code::MPG_CORE_1106),
            ("MPG1107", Code::MPG_CORE_1107),
            ("MPG1200", Code::MPG_CORE_1300),
            ("MPG1201", Code::MPG_CORE_1201),
        ];
        Code::all()
            .find(|c| c.as_str().eq_ignore_ascii_case(text))
            .or_else(|| OLD.iter().find(|(o, _)| o.eq_ignore_ascii_case(text)).map(|&(_, c)| c))
    }
}

/// A small program that raises a code, and the same program repaired.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The file extension: `mp`, `mi` or `mpir`.
    pub language: &'static str,
    /// Raises the code.
    pub wrong: &'static str,
    /// Does not raise it.
    pub right: &'static str,
}

/// The lines inside the first Markdown fence that opens with `info`.
fn fence(text: &'static str, info: &str) -> Option<&'static str> {
    let open = format!("\n```{info}\n");
    let start = text.find(&open)? + open.len();
    let len = text[start..].find("\n```\n")?;
    Some(&text[start..start + len + 1])
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_text() {
        for code in Code::all() {
            assert_eq!(Code::parse(code.as_str()), Some(code));
            assert_eq!(Code::parse(&code.as_str().to_lowercase()), Some(code));
        }
        assert_eq!(Code::parse("MPG1200"), Some(Code::MPG_CORE_1300));
        assert_eq!(Code::parse("MPX0001"), None);
        assert_eq!(Code::parse(""), None);
    }

    /// Title, severity, meaning, wrong example and repair, in this order and none of them empty.
    #[test]
    fn every_explanation_is_complete() {
        for code in Code::all() {
            let text = code.explanation();
            let head =
                format!("# {code}: {}\n\nSeverity: {}\n\n", code.title(), code.severity().name());
            let rest = text.strip_prefix(&head).unwrap_or_else(|| panic!("{code}: head {head:?}"));
            let (meaning, rest) =
                rest.split_once("\n\n## Example\n\n").unwrap_or_else(|| panic!("{code}: example"));
            assert!(meaning.len() > 40 && meaning.ends_with('.'), "{code}: meaning");
            let (example, repair) =
                rest.split_once("\n\n## Repair\n\n").unwrap_or_else(|| panic!("{code}: repair"));
            let (advice, repaired) =
                repair.split_once("\n\n```").unwrap_or_else(|| panic!("{code}: repaired text"));
            assert!(advice.len() > 1 && advice.ends_with('.'), "{code}: advice");
            let fences = [example, repaired].map(|part| {
                let part = part.trim_start_matches("```").trim_end();
                let (info, body) = part.split_once('\n').unwrap_or_else(|| panic!("{code}: fence"));
                let body = body.strip_suffix("\n```").unwrap_or_else(|| panic!("{code}: fence"));
                assert!(!body.trim().is_empty(), "{code}: empty fence");
                (info, body)
            });
            assert_ne!(fences[0].1, fences[1].1, "{code}: the repair changes nothing");
            match code.example() {
                Some(example) => {
                    let infos =
                        ["wrong", "right"].map(|kind| format!("{} {kind}", example.language));
                    assert_eq!(fences.map(|(info, _)| info), infos.each_ref().map(String::as_str));
                    assert_eq!(
                        fences.map(|(_, body)| body),
                        [example.wrong, example.right].map(str::trim_end)
                    );
                }
                None => assert_eq!(fences.map(|(info, _)| info), ["text", "text"], "{code}"),
            }
        }
    }
}
