//! What the compiler has to say about a program, as data.

use crate::{Code, Span};

/// How bad it is. Only [`Severity::Error`] refuses a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// Suspicious, but accepted.
    Warning,
    /// A fact worth knowing.
    Info,
    /// A suggestion.
    Hint,
}

impl Severity {
    /// The word used in text and JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
            Severity::Hint => "hint",
        }
    }
}

/// A replacement of source text that would repair the fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// What the replacement does, as an imperative sentence.
    pub title: String,
    /// The text to replace; empty to insert.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// One finding: a code, a place, what is wrong and the way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The stable code; its title and long text are in the code table.
    pub code: Code,
    /// Usually the code's own severity; `[lint]` may change it.
    pub severity: Severity,
    /// What is wrong, naming the thing.
    pub message: String,
    /// Where.
    pub primary: Span,
    /// Other places that take part, each with a short text.
    pub secondary: Vec<(Span, String)>,
    /// Why it is wrong, or facts that help.
    pub notes: Vec<String>,
    /// The way out, as a sentence.
    pub help: Option<String>,
    /// Ready replacements.
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    /// A finding with the severity that the code table gives `code`.
    pub fn new(code: Code, primary: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            primary,
            secondary: Vec::new(),
            notes: Vec::new(),
            help: None,
            fixes: Vec::new(),
        }
    }

    /// Adds another place that takes part.
    pub fn with_secondary(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push((span, text.into()));
        self
    }

    /// Adds a reason or a fact.
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Says how to repair it.
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a ready replacement.
    pub fn with_fix(mut self, fix: Fix) -> Diagnostic {
        self.fixes.push(fix);
        self
    }

    /// Whether this finding refuses the program.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Sorts by file, position and code, and drops exact repetitions.
pub fn sort_diagnostics(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| {
        (a.primary, a.code.as_str(), &a.message).cmp(&(b.primary, b.code.as_str(), &b.message))
    });
    diagnostics.dedup();
}
