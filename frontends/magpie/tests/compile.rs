//! The file tests of the repository, as far as the front end goes: programs that run compile to
//! MPIR that the verifier accepts, programs with errors raise the codes of this stage.

mod support;

use magpie_diag::{Code, SourceMap};
use magpie_lang::{Output, compile};
use magpie_mpir::{Stage, verify_module};
use std::path::Path;
use support::*;

fn compile_text(text: &str) -> Output {
    compile(parse(text), &mut |_| None, 10_000)
}

/// Every finding as `severity CODE line`.
fn findings(output: &Output, text: &str) -> Vec<String> {
    let mut map = SourceMap::new();
    let file = map.add("test.mp", text);
    let source = map.file(file).unwrap();
    let line = |start| source.line_col(start).line;
    let diagnostics = output.diagnostics.iter().chain(&output.kernel_findings);
    diagnostics
        .map(|d| format!("{} {} {}", d.severity.name(), d.code, line(d.primary.start)))
        .collect()
}

fn show(output: &Output) -> String {
    output.diagnostics.iter().map(|d| format!("{d:?}\n")).collect()
}

/// Whether the front end raises the code; the others are found in MPIR or later.
fn is_ours(code: &str) -> bool {
    let code = Code::parse(code).unwrap();
    !code.as_str().starts_with("MPG_") || matches!(code, Code::MPG_CORE_1300 | Code::MPG_CORE_1303)
}

/// Every program with a file of this extension beside it: name, text and contents of the file.
fn programs_with(extension: &str) -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/magpie");
    let mut found = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "mp")
                && let Ok(beside) = std::fs::read_to_string(path.with_extension(extension))
            {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap(), beside));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn programs_that_run_compile() {
    let mut failures = Vec::new();
    for (name, text, _) in programs_with("expected") {
        if name.contains("mlx") {
            continue;
        }
        let output = compile_text(&text);
        if !output.diagnostics.is_empty() {
            failures.push(format!("{name}: {}", show(&output)));
            continue;
        }
        if let Err(errors) = verify_module(&output.module, Stage::Surface) {
            failures.push(format!("{name}: {errors:?}"));
        }
        assert!(output.main.is_some(), "{name}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn programs_with_errors_raise_their_codes() {
    let mut failures = Vec::new();
    for (name, text, expected) in programs_with("error") {
        let output = compile_text(&text);
        let found = findings(&output, &text);
        let expected: Vec<&str> = expected.lines().filter(|l| !l.is_empty()).collect();
        let ours = expected.iter().filter(|l| is_ours(l.split(' ').nth(1).unwrap()));
        for line in ours {
            if !found.iter().any(|f| f == line) {
                failures.push(format!("{name}: `{line}` is missing in {found:?}"));
            }
        }
        for line in &found {
            let at = line.rsplit(' ').next();
            if !expected.iter().any(|e| e.rsplit(' ').next() == at) {
                failures.push(format!("{name}: `{line}` is not expected: {}", show(&output)));
            }
        }
        if !output.diagnostics.iter().any(|d| d.is_error())
            && let Err(errors) = verify_module(&output.module, Stage::Surface)
        {
            failures.push(format!("{name}: {errors:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The examples of `magpie explain`: the wrong program raises the code, the repaired one compiles.
#[test]
fn explanations_hold() {
    let mut failures = Vec::new();
    // The digest and the entry point are looked at by the driver.
    let elsewhere = [Code::MPP0010, Code::MPL0005];
    for code in Code::all().filter(|code| is_ours(code.as_str()) && !elsewhere.contains(code)) {
        let Some(example) = code.example().filter(|example| example.language == "mp") else {
            continue;
        };
        let wrong = compile_text(example.wrong);
        if !wrong.diagnostics.iter().any(|d| d.code == code) {
            failures.push(format!("{code}: not raised: {}", show(&wrong)));
        }
        if wrong.diagnostics.len() > 1 {
            failures.push(format!("{code}: more is raised: {}", show(&wrong)));
        }
        let right = compile_text(example.right);
        if right.diagnostics.iter().any(|d| d.is_error()) {
            failures.push(format!("{code}: the repair is refused: {}", show(&right)));
        } else if let Err(errors) = verify_module(&right.module, Stage::Surface) {
            failures.push(format!("{code}: {errors:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Programs that mark their errors: `;~ error CODE`, with a `^` after `;~` for each line further up.
#[test]
fn refused_programs_have_exactly_the_marked_errors() {
    let mut failures = Vec::new();
    let marked = programs().into_iter().filter(|(_, text)| text.contains("; test: error"));
    for (name, text) in marked {
        let mut expected = Vec::new();
        for (n, line) in text.lines().enumerate() {
            for mark in line.split(";~").skip(1) {
                let finding = mark.trim_start_matches('^');
                let line = n + 1 - (mark.len() - finding.len());
                expected.push(format!("{} {line}", finding.trim()));
            }
        }
        let mut found = findings(&compile_text(&text), &text);
        for want in expected {
            match found.iter().position(|f| *f == want) {
                Some(at) => _ = found.remove(at),
                None => failures.push(format!("{name}: `{want}` is missing")),
            }
        }
        failures.extend(found.iter().map(|f| format!("{name}: `{f}` is not expected")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
