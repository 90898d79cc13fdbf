//! Diagnostics: source places, the code table, findings as data, and their rendering.
//!
//! This crate does no I/O and knows no language: a front end or a back end makes
//! [`Diagnostic`]s, the command renders them as text or JSON.

mod code;
mod diagnostic;
mod span;

pub use code::Code;
pub use diagnostic::{Diagnostic, Fix, Severity, sort_diagnostics};
pub use span::{FileId, LineCol, MAX_SOURCE_LEN, SourceFile, SourceMap, Span};
