//! The file tests of `tests/filetests/mpir` that need this crate alone: what the reader and the
//! verifier say (`; test: check`, `; test: error` with `;~ SEVERITY CODE` marks), and what a pass
//! makes of a text (`; test: pass NAME`, the result behind `; after:`).

use magpie_diag::{Diagnostic, FileId, SourceMap};
use magpie_mpir::{
    Module, Stage, parse, parse_with_own_places, passes, print_module, verify_module,
};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/mpir")
}

fn files(dir: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(root().join(dir)).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{dir} has tests");
    paths
}

fn findings(text: &str) -> Vec<Diagnostic> {
    match parse_with_own_places(text, FileId(0)) {
        Ok(m) => verify_module(&m, Stage::Core).err().unwrap_or_default(),
        Err(errors) => errors,
    }
}

/// `CODE LINE` of each mark; a `^` after `;~` means a line further up.
fn marks(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        for mark in line.split(";~").skip(1) {
            let words = mark.trim_start_matches('^');
            let up = mark.len() - words.len();
            let code = words.split_whitespace().nth(1).unwrap();
            out.push(format!("{code} {}", n + 1 - up));
        }
    }
    out.sort();
    out
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut sources = SourceMap::new();
    sources.add(path.display().to_string(), text.as_str());
    let found = findings(&text);
    let mut lines: Vec<String> = found
        .iter()
        .map(|d| {
            let at = sources.file(d.primary.file).map(|f| f.line_col(d.primary.start).line);
            format!("{} {}", d.code, at.unwrap_or(0))
        })
        .collect();
    lines.sort();
    lines.dedup();
    let messages: Vec<_> = found.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(lines, marks(&text), "{}\n{messages:#?}", path.display());
    assert_eq!(text.contains("; test: error"), !found.is_empty(), "{}", path.display());
}

#[test]
fn reading() {
    files("parse").iter().for_each(|path| check(path));
}

#[test]
fn verifying() {
    files("verify").iter().for_each(|path| check(path));
}

const AFTER: &str = "; after:\n";

/// Runs the passes that the text names and compares with the text behind `; after:`.
fn pass(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let (before, expected) = text.split_once(AFTER).unwrap_or((&text, ""));
    let directive = before.lines().find_map(|l| l.strip_prefix("; test: pass ")).unwrap();
    let mut m = parse(before, FileId(0)).unwrap_or_else(|e| panic!("{}: {e:#?}", path.display()));
    let verify = |m: &Module, when: &str| {
        if let Err(errors) = verify_module(m, Stage::Core) {
            let text = print_module(m);
            panic!("{} {when}: {}\n{text}", path.display(), errors[0].message);
        }
    };
    verify(&m, "before");
    for name in directive.split(',') {
        match name.trim() {
            "lower_arc" => _ = passes::lower_arc(&mut m),
            "lower_host" => passes::lower_host(&mut m, &|span| {
                span.is_some().then(|| format!("main.mp:{}:1", span.start))
            }),
            name => panic!("{}: pass {name}", path.display()),
        }
        verify(&m, name);
    }
    m.fns.iter_mut().for_each(|f| f.compact(|_| true));
    let after = print_module(&m);
    if std::env::var_os("MAGPIE_UPDATE").is_some() {
        std::fs::write(path, format!("{}\n\n{AFTER}{after}", before.trim_end())).unwrap();
    } else {
        assert_eq!(after, expected, "{}; MAGPIE_UPDATE=1 accepts it", path.display());
    }
}

#[test]
fn lower_arc() {
    files("lower_arc").iter().for_each(|path| pass(path));
}

#[test]
fn lower_host() {
    files("lower_host").iter().for_each(|path| pass(path));
}
