//! The digest in the header of a module: BLAKE3 of the canonical text without its digest line.

use crate::format::canonical;
use crate::parser::ParsedModule;
use magpie_diag::{Code, Diagnostic};

/// The true digest of a module, as lowercase hexadecimal digits; `None` when it has errors.
/// `text` is what the module was parsed from.
pub fn module_digest(module: &ParsedModule, text: &str) -> Option<String> {
    canonical(module, text).map(|canonical| canonical.digest)
}

/// Compares the written digest with the true one: `MPP0010`, a warning, when they differ. A
/// placeholder, which is empty or all zeros, is never checked.
pub fn check_digest(module: &ParsedModule, text: &str) -> Option<Diagnostic> {
    let written = module.name(module.ast.header.digest);
    if is_placeholder(written) {
        return None;
    }
    let digest = module_digest(module, text)?;
    if written.eq_ignore_ascii_case(&digest) {
        return None;
    }
    let [.., part] = module.ast.header.parts;
    Some(
        Diagnostic::new(
            Code::MPP0010,
            module.span(part),
            "the digest is not that of the module's text",
        )
        .with_note(format!("the true digest is {digest}"))
        .with_help("run `magpie fmt` to write it, or `digest \"\"` to leave it unchecked"),
    )
}

fn is_placeholder(digest: &str) -> bool {
    digest.bytes().all(|b| b == b'0')
}
