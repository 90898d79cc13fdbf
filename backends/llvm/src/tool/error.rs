//! [`ToolError`]: what went wrong with a tool, and what to do about it.

use super::{Target, install};
use magpie_diag::{Code, Diagnostic, Span};
use std::path::Path;

/// A tool that is missing, does not do, or failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolError {
    /// Whether there is no such tool, rather than one that failed.
    pub is_missing: bool,
    /// Whether it is about a tool that the user named, which is not to be passed over.
    pub is_named: bool,
    /// What is wrong, with the file that it is about.
    pub message: String,
    /// What was looked at, or what the tool said.
    pub notes: Vec<String>,
    /// The way out.
    pub help: String,
}

/// What a tool says is cut after so many characters.
const MAX_NOTE: usize = 2000;

impl ToolError {
    /// There is no LLVM with a target: with why those that were looked at do not do, and how to
    /// install one.
    pub fn not_found(target: Target, rejected: Vec<String>) -> ToolError {
        install::not_found(target, rejected)
    }

    /// No usable tool.
    pub(super) fn missing(message: String, notes: Vec<String>, help: String) -> ToolError {
        ToolError { is_missing: true, is_named: false, message, notes, help }
    }

    /// A tool that ran and failed, with what it said.
    pub(super) fn failed(message: String, said: &str, help: &str) -> ToolError {
        let said = said.trim();
        let cut = said.char_indices().nth(MAX_NOTE).map_or(said.len(), |(at, _)| at);
        let notes = if said.is_empty() { Vec::new() } else { vec![said[..cut].to_string()] };
        ToolError { is_missing: false, is_named: false, message, notes, help: help.to_string() }
    }

    /// A tool whose output is not what it should be.
    pub(super) fn nonsense(path: &Path, wanted: &str) -> ToolError {
        ToolError::failed(
            format!("`{}` ended well but gave no {wanted}", path.display()),
            "",
            "check that the file is LLVM's; install LLVM anew, or name another in [gpu.tools] or \
             MAGPIE_LLC_PATH",
        )
    }

    /// As a diagnostic: `MPG_CORE_1301` for a missing tool, `failed` for one that failed.
    pub fn to_diagnostic(&self, failed: Code, span: Span) -> Diagnostic {
        let code = if self.is_missing { Code::MPG_CORE_1301 } else { failed };
        let mut d = Diagnostic::new(code, span, &self.message);
        d.notes.clone_from(&self.notes);
        d.with_help(&self.help)
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}
