//! [`Session`]: one call of the command: its options, its sources and what was found.

use crate::manifest::{LintLevel, Manifest};
use crate::options::{LogLevel, Options};
use magpie_diag::{Code, Diagnostic, Severity, SourceMap, Span, sort_diagnostics};
use std::time::Instant;

/// Why a command ended early. What is wrong has been reported to the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The program is refused.
    Refused,
    /// The command line asks for something that cannot be.
    Usage,
    /// Something is missing from the machine.
    Missing,
}

impl Stop {
    /// The exit code of the process.
    pub fn exit_code(self) -> u8 {
        match self {
            Stop::Refused => 1,
            Stop::Usage => 2,
            Stop::Missing => 3,
        }
    }
}

/// Messages of `-v` on standard error, a line each.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    verbose: bool,
}

impl Log {
    /// Says something under `-v`.
    pub fn say(self, text: impl FnOnce() -> String) {
        if self.verbose {
            note(&text());
        }
    }
}

/// One line on standard error. Nobody has to read it.
pub(crate) fn note(text: &str) {
    use std::io::Write;
    let line = format!("magpie: {text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// One call of the command.
#[derive(Debug)]
pub struct Session {
    /// What was asked for.
    pub options: Options,
    /// Every file read.
    pub sources: SourceMap,
    /// Paths written, relative to the project.
    pub artifacts: Vec<String>,
    lints: Vec<(Code, LintLevel)>,
    diagnostics: Vec<Diagnostic>,
    timings: Vec<(String, f64)>,
}

/// Diagnostics to be shown.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// Sorted by place and code.
    pub shown: Vec<Diagnostic>,
    /// Errors left out because of `--max-errors`.
    pub hidden_errors: usize,
}

impl Session {
    /// A session that has read nothing yet.
    pub fn new(options: Options) -> Session {
        Session {
            options,
            sources: SourceMap::new(),
            artifacts: Vec::new(),
            lints: Vec::new(),
            diagnostics: Vec::new(),
            timings: Vec::new(),
        }
    }

    /// Who says what happens under `-v`.
    pub fn log(&self) -> Log {
        Log { verbose: self.options.is_verbose() }
    }

    /// Applies `[lint]` to what is reported from now on.
    pub(crate) fn set_lints(&mut self, manifest: &Manifest) {
        self.lints = manifest.lints.clone();
    }

    /// Adds a finding, with the severity that `[lint]` gives it. Errors stay errors.
    pub fn report(&mut self, mut diagnostic: Diagnostic) {
        let level = self.lints.iter().find(|(code, _)| *code == diagnostic.code);
        match level {
            Some((_, level)) if !diagnostic.is_error() => match level {
                LintLevel::Allow => return,
                LintLevel::Warn => diagnostic.severity = Severity::Warning,
                LintLevel::Deny => diagnostic.severity = Severity::Error,
            },
            Some(_) | None => {}
        }
        self.diagnostics.push(diagnostic);
    }

    /// Adds findings.
    pub fn report_all(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|d| self.report(d));
    }

    /// Adds an error without a place and gives the reason to stop.
    pub fn refuse(&mut self, code: Code, message: impl Into<String>, help: &str) -> Stop {
        self.report(Diagnostic::new(code, Span::NONE, message).with_help(help));
        match code {
            Code::MPL0006 => Stop::Usage,
            Code::MPL0007 => Stop::Missing,
            _ => Stop::Refused,
        }
    }

    /// Whether an error was reported.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// [`Stop::Refused`] when an error was reported: later stages rely on what it spoils.
    ///
    /// # Errors
    /// [`Stop::Refused`].
    pub fn stop_on_errors(&self) -> Result<(), Stop> {
        if self.has_errors() { Err(Stop::Refused) } else { Ok(()) }
    }

    /// Takes what was reported since the last call, to be shown.
    pub fn take_findings(&mut self) -> Findings {
        let mut shown = std::mem::take(&mut self.diagnostics);
        sort_diagnostics(&mut shown);
        let (mut errors, limit) = (0, self.options.max_errors);
        let warns = self.options.log_level > LogLevel::Error;
        shown.retain(|d| {
            errors += usize::from(d.is_error());
            if d.is_error() { errors <= limit } else { warns }
        });
        Findings { shown, hidden_errors: errors.saturating_sub(limit) }
    }

    /// Runs a stage and keeps its time.
    pub fn time<R>(&mut self, stage: &str, run: impl FnOnce(&mut Session) -> R) -> R {
        let start = Instant::now();
        let result = run(self);
        // Microseconds are enough, and shorter.
        let ms = (start.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        self.timings.push((stage.to_string(), ms));
        result
    }

    /// Milliseconds spent in each stage so far.
    pub fn timings(&self) -> &[(String, f64)] {
        &self.timings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(code: Code, at: u32) -> Diagnostic {
        Diagnostic::new(code, Span::new(magpie_diag::FileId(0), at, at), format!("at {at}"))
    }

    #[test]
    fn lints_change_severities_but_never_those_of_errors() {
        let mut session = Session::new(Options::new("check"));
        session.lints = vec![
            (Code::MPL2011, LintLevel::Allow),
            (Code::MPL2012, LintLevel::Deny),
            (Code::MPG_CORE_1404, LintLevel::Warn),
            (Code::MPT2014, LintLevel::Allow),
        ];
        session.report(diagnostic(Code::MPL2011, 1));
        assert!(!session.has_errors());
        session.report(diagnostic(Code::MPG_CORE_1404, 4));
        session.report(diagnostic(Code::MPT2014, 3));
        session.report(diagnostic(Code::MPL2012, 2));
        let severities: Vec<(Code, Severity)> =
            session.take_findings().shown.iter().map(|d| (d.code, d.severity)).collect();
        assert_eq!(
            severities,
            [
                (Code::MPL2012, Severity::Error),
                (Code::MPT2014, Severity::Error),
                (Code::MPG_CORE_1404, Severity::Warning)
            ]
        );
    }

    #[test]
    fn only_so_many_errors_are_shown() {
        let mut session = Session::new(Options { max_errors: 2, ..Options::new("check") });
        for at in [5, 1, 3] {
            session.report(diagnostic(Code::MPT2014, at));
            session.report(diagnostic(Code::MPL2011, at + 1));
        }
        let findings = session.take_findings();
        let places: Vec<u32> = findings.shown.iter().map(|d| d.primary.start).collect();
        assert_eq!((places, findings.hidden_errors), (vec![1, 2, 3, 4, 6], 1));
        assert_eq!(session.take_findings(), Findings::default());
    }

    #[test]
    fn refusals_stop_with_the_exit_code_of_their_kind() {
        let mut session = Session::new(Options::new("run"));
        for (code, exit) in [(Code::MPL0006, 2), (Code::MPL0007, 3), (Code::MPP0001, 1)] {
            assert_eq!(session.refuse(code, "m", "h").exit_code(), exit);
        }
        assert_eq!(session.stop_on_errors(), Err(Stop::Refused));
    }
}
