//! Typed reading of a TOML document, with findings that name the key.

use magpie_diag::{Code, Diagnostic, FileId, Span, closest};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Whether unknown keys refuse the manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unknown {
    Warn,
    Refuse,
}

/// A key with its value.
pub(super) struct Entry<'t> {
    /// The key itself.
    pub(super) key: &'t str,
    /// The dotted path of the key from the root.
    pub(super) path: String,
    /// Where the key stands.
    pub(super) key_span: Span,
    /// Where the value stands.
    pub(super) span: Span,
    value: &'t DeValue<'t>,
}

/// Collects findings.
pub(super) struct Reader {
    file: FileId,
    pub(super) findings: Vec<Diagnostic>,
}

impl Reader {
    pub(super) fn new(file: FileId) -> Reader {
        Reader { file, findings: Vec::new() }
    }

    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range.start as u32, range.end as u32)
    }

    /// The entries of a table, sorted by key.
    pub(super) fn entries<'t>(&self, path: &str, table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
        let entry = |(key, value): (&'t Spanned<DeString<'t>>, &'t Spanned<DeValue<'t>>)| {
            let word = key.get_ref().as_ref();
            let path = if path.is_empty() { word.to_string() } else { format!("{path}.{word}") };
            let (key_span, span) = (self.span(key.span()), self.span(value.span()));
            Entry { key: word, path, key_span, span, value: value.get_ref() }
        };
        table.iter().map(entry).collect()
    }

    pub(super) fn refuse(&mut self, span: Span, message: String, help: String) {
        self.findings.push(Diagnostic::new(Code::MPL0002, span, message).with_help(help));
    }

    /// Reports a key that is none of `known`.
    pub(super) fn unknown(&mut self, entry: &Entry<'_>, known: &[&str], unknown: Unknown) {
        let code = match unknown {
            Unknown::Warn => Code::MPL0003,
            Unknown::Refuse => Code::MPL0002,
        };
        let message = format!("unknown key `{}`", entry.path);
        let help = match closest(entry.key, known.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None if known.is_empty() => "remove it".to_string(),
            None => format!("known here: {}", known.join(", ")),
        };
        self.findings.push(Diagnostic::new(code, entry.key_span, message).with_help(help));
    }

    fn wrong_type(&mut self, entry: &Entry<'_>, wanted: &str, help: &str) {
        let found = with_article(entry.value.type_str());
        let message = format!("`{}` must be {wanted}, not {found}", entry.path);
        self.refuse(entry.span, message, help.to_string());
    }

    pub(super) fn string<'t>(&mut self, entry: &Entry<'t>, help: &str) -> Option<&'t str> {
        let text = entry.value.as_str();
        if text.is_none() {
            self.wrong_type(entry, "a string", help);
        }
        text
    }

    pub(super) fn boolean(&mut self, entry: &Entry<'_>) -> Option<bool> {
        let value = entry.value.as_bool();
        if value.is_none() {
            self.wrong_type(entry, "true or false", "write `true` or `false` without quotes");
        }
        value
    }

    /// An integer between two bounds.
    pub(super) fn integer(&mut self, entry: &Entry<'_>, low: i64, high: i64) -> Option<i64> {
        let Some(integer) = entry.value.as_integer() else {
            self.wrong_type(entry, "an integer", "write a number without quotes");
            return None;
        };
        let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let inside = value.filter(|v| (low..=high).contains(v));
        if inside.is_none() {
            let message = format!("`{}` is {integer}, which is out of range", entry.path);
            self.refuse(entry.span, message, format!("it must lie between {low} and {high}"));
        }
        inside
    }

    pub(super) fn table<'t>(&mut self, entry: &Entry<'t>) -> Option<&'t DeTable<'t>> {
        let table = entry.value.as_table();
        if table.is_none() {
            let help = format!("write its keys below a line `[{}]`", entry.path);
            self.wrong_type(entry, "a table", &help);
        }
        table
    }

    pub(super) fn is_string(entry: &Entry<'_>) -> bool {
        entry.value.is_str()
    }

    /// One of a set of words.
    pub(super) fn word<T: Copy>(&mut self, entry: &Entry<'_>, words: &[(&str, T)]) -> Option<T> {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let list = list.join(", ");
        let text = self.string(entry, &format!("it is one of {list}"))?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let message = format!("`{}` cannot be {text:?}", entry.path);
            let help = match closest(text, words.iter().map(|(word, _)| *word)) {
                Some(word) => format!("did you mean \"{word}\"?"),
                None => format!("it is one of {list}"),
            };
            self.refuse(entry.span, message, help);
        }
        found.map(|&(_, value)| value)
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}
