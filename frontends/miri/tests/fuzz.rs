//! Any text gives diagnostics with places inside of it, never a panic and never an endless run; and
//! what is accepted goes through the passes for the host, after each of which the code is verified.

use magpie_diag::{Diagnostic, FileId};
use magpie_miri::{LIBRARY, Source, compile};
use magpie_mpir::Module;
use magpie_mpir::passes::{Pipeline, lower_arc, lower_host};
use magpie_mpir::verify::{Stage, verify_module};
use proptest::prelude::*;
use std::path::Path;

const FILE: FileId = FileId(0);
const LIBRARY_FILE: FileId = FileId(1);

/// Compiles a text and checks what is reported.
fn check(text: &str) -> Vec<Diagnostic> {
    let entry = Source { file: FILE, name: "fuzz.mi".to_string(), text: text.to_string() };
    let output = compile(&entry, LIBRARY_FILE, &mut |_| None);
    for d in &output.diagnostics {
        let length = match d.primary.file {
            FILE => text.len(),
            LIBRARY_FILE => LIBRARY.len(),
            _ => continue,
        };
        assert!(d.primary.start <= d.primary.end && d.primary.end as usize <= length, "{d:?}");
        assert!(!d.message.is_empty() && d.help.is_some(), "{d:?}");
    }
    let has_error = output.diagnostics.iter().any(Diagnostic::is_error);
    if !has_error {
        assert!(output.main.is_some());
        let verified = verify_module(&output.module, Stage::Core);
        assert!(verified.is_ok(), "{:?}\n{text}", verified.err());
        lower(output.module, text);
    }
    output.diagnostics
}

/// Lowers and optimises the host functions. The pipeline verifies what its own passes leave.
fn lower(mut module: Module, text: &str) {
    let mut pipeline = Pipeline::new();
    pipeline.optimize_ownership(&mut module);
    lower_arc(&mut module);
    lower_host(&mut module, &|_| None);
    let verified = verify_module(&module, Stage::Core);
    assert!(verified.is_ok(), "{:?}\n{text}", verified.err());
    pipeline.optimize_host(&mut module);
}

/// The programs of the file tests.
fn programs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/miri");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "mi"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

const PIECES: &[&str] = &[
    "fn",
    "gpu",
    "let",
    "var",
    "forall",
    "in",
    "0..4",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    "\n",
    "\n    ",
    "\n        ",
    "x",
    "y",
    "main",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "1",
    "2.5",
    "\"s\"",
    "f\"{x}\"",
    "if",
    "else",
    "while",
    "match",
    "None",
    "Some",
    "struct",
    "enum",
    "int",
    "float",
    "Array<int, 4>()",
    "kernel",
    ".",
    ",",
    "as",
    "f32",
    "return",
    "const",
    "shared",
    "out",
    "use",
    "system",
    "Vec3<f32>",
    "launch",
    "Dim3(1, 1, 1)",
    "atomic_add",
    "frame",
    "reduce",
    "for",
    "break",
    "'",
    "\"",
    "/*",
    "//",
    "\t",
    "é",
    "implements Accelerable",
    "type",
    "is",
    "??",
    "?",
    "not",
    "and",
    "_",
    "println",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_diagnosed(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn any_sequence_of_pieces_is_diagnosed(picks in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let text: Vec<&str> = picks.iter().map(|&n| PIECES[n]).collect();
        check(&text.join(" "));
    }

    #[test]
    fn mutated_programs_are_diagnosed(
        program in 0..programs().len(),
        edits in prop::collection::vec((0usize..4000, 0..PIECES.len(), 0usize..8), 1..6),
    ) {
        let mut text = programs()[program].clone();
        for (at, piece, removed) in edits {
            let mut start = at % (text.len() + 1);
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + removed).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, PIECES[piece]);
        }
        check(&text);
    }
}

#[test]
fn every_line_taken_out_is_diagnosed() {
    for program in programs() {
        let lines: Vec<&str> = program.lines().collect();
        for n in 0..lines.len() {
            let mut rest = lines.clone();
            rest.remove(n);
            check(&rest.join("\n"));
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("f(", ")"), ("{1: ", "}")]
    {
        let text = format!("let x = {}1{}", open.repeat(5000), close.repeat(5000));
        assert!(!check(&text).is_empty(), "{open}");
    }
    let chain = format!("let x = 1{}", " + 1".repeat(100_000));
    assert!(!check(&chain).is_empty());
    let mut blocks = String::new();
    for depth in 0..1000 {
        blocks.push_str(&format!("{}if True\n", " ".repeat(depth)));
    }
    assert!(!check(&blocks).is_empty());
}

/// Twice the text takes about twice the time.
#[test]
fn time_is_linear() {
    let program = |lines: usize| {
        let mut text = String::from("fn main()\n    var a = 1\n");
        for n in 0..lines {
            text.push_str(&format!("    let b{n} = a * {n} + 1\n    if b{n} > 3: a = b{n}\n"));
        }
        text
    };
    let time = |lines: usize| {
        let text = program(lines);
        let start = std::time::Instant::now();
        assert!(check(&text).is_empty());
        start.elapsed()
    };
    time(100);
    let (small, large) = (time(2000), time(16000));
    assert!(large < small * 30, "{small:?}, eight times as much: {large:?}");
}
