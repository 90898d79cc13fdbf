//! Diagnostics: source places, the code table, findings as data, and their rendering.
//!
//! This crate does no I/O and knows no language: a front end or a back end makes
//! [`Diagnostic`]s, the command renders them as text or JSON.

mod code;
mod diagnostic;
mod excerpt;
mod json;
mod patch;
mod render;
mod span;
mod suggest;

pub use code::{Code, Example};
pub use diagnostic::{Diagnostic, Fix, Severity, sort_diagnostics};
pub use json::{Report, diagnostic_json};
pub use render::{render, render_all};
pub use span::{FileId, LineCol, MAX_SOURCE_LEN, SourceFile, SourceMap, Span};
pub use suggest::closest;
