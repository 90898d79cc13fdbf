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

    /// The long text of `magpie explain`, in Markdown.
    pub fn explanation(self) -> &'static str {
        TABLE[self.0 as usize].explain
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
