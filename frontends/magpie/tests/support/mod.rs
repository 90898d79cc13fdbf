//! What the tests of this crate share.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod dump;

use magpie_diag::{FileId, SourceMap};
use magpie_lang::ParsedModule;
use std::path::{Path, PathBuf};

/// Every program of the repository's file tests: name and text, sorted by name.
pub(crate) fn programs() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/magpie");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 100, "{} holds {} programs", root.display(), paths.len());
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), text)
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "mp") {
            paths.push(path);
        }
    }
}

/// Parses a module as file 0.
pub(crate) fn parse(text: &str) -> ParsedModule {
    magpie_lang::parse_module(FileId(0), text)
}

/// Parses a module that has no errors.
pub(crate) fn parse_ok(text: &str) -> ParsedModule {
    let module = parse(text);
    assert!(!module.has_errors(), "{}\n{text}", messages(&module, text).join("\n"));
    module
}

/// Every diagnostic as `CODE line`.
pub(crate) fn codes(text: &str) -> Vec<String> {
    let module = parse(text);
    let mut map = SourceMap::new();
    let file = map.add("test.mp", text);
    let source = map.file(file).unwrap();
    module
        .diagnostics
        .iter()
        .map(|d| format!("{} {}", d.code, source.line_col(d.primary.start).line))
        .collect()
}

/// Every diagnostic as `line:column CODE message (help)`.
pub(crate) fn messages(module: &ParsedModule, text: &str) -> Vec<String> {
    let mut map = SourceMap::new();
    let file = map.add("test.mp", text);
    let source = map.file(file).unwrap();
    module
        .diagnostics
        .iter()
        .map(|d| {
            let at = source.line_col(d.primary.start);
            let help = d.help.as_deref().unwrap_or("NO HELP");
            format!("{}:{} {} {} ({help})", at.line, at.column, d.code, d.message)
        })
        .collect()
}

/// A module around declarations; they start in line 6.
pub(crate) fn module(decls: &str) -> String {
    format!("module test.m\nexports {{ @main }}\nimports {{ }}\ndigest \"\"\n\n{decls}")
}

/// A module with one function around instructions; they start in line 8.
pub(crate) fn function(body: &str) -> String {
    module(&format!("fn @main() -> unit {{\nbb0:\n{body}\n  ret\n}}\n"))
}
