//! Programs with a few tokens changed: whatever they are now, compiling ends without a panic, every
//! error has a place and a way out, and what has no error is MPIR that the verifier accepts.

mod support;

use magpie_lang::compile;
use magpie_mpir::{Stage, verify_module};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use support::*;

/// A program as pieces of text, and the places of its tokens by class.
struct Tokens {
    pieces: Vec<String>,
    classes: BTreeMap<Class, Vec<usize>>,
}

/// Tokens that can stand for each other without making a syntax error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Value,
    Function,
    Label,
    Type,
    Operation,
    Number,
    Word,
}

fn tokens(text: &str) -> Tokens {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%' | '@');
    let mut pieces: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if first == ';' {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |n| n + 2)
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        pieces.push(rest[..len].to_string());
        rest = &rest[len..];
    }
    let header = pieces.iter().position(|p| p == "digest").unwrap_or(0);
    let mut classes: BTreeMap<Class, Vec<usize>> = BTreeMap::new();
    for (n, piece) in pieces.iter().enumerate().skip(header + 2) {
        if let Some(class) = class_of(piece) {
            classes.entry(class).or_default().push(n);
        }
    }
    Tokens { pieces, classes }
}

fn class_of(piece: &str) -> Option<Class> {
    const PRIMS: [&str; 16] = [
        "unit", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64",
        "bf16", "Str", "ptr",
    ];
    let first = piece.chars().next()?;
    Some(match first {
        '%' => Class::Value,
        '@' => Class::Function,
        '0'..='9' => Class::Number,
        'T' => Class::Type,
        _ if PRIMS.contains(&piece) || piece == "Array" || piece.starts_with("gpu.T") => {
            Class::Type
        }
        _ if piece.starts_with("bb") && !piece.contains('.') => Class::Label,
        'a'..='z' if piece.contains('.') && !piece.contains('@') && !piece.starts_with("const") => {
            Class::Operation
        }
        'a'..='z' => Class::Word,
        _ => return None,
    })
}

static PROGRAMS: LazyLock<Vec<Tokens>> =
    LazyLock::new(|| programs().iter().map(|(_, text)| tokens(text)).collect());

#[derive(Clone, Debug)]
enum Edit {
    /// A token becomes another one of its class.
    Replace { class: usize, at: usize, by: usize },
    /// A line goes.
    DropLine(usize),
    /// Two lines change places.
    SwapLines(usize, usize),
    /// A line stands twice.
    RepeatLine(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let any = || any::<prop::sample::Index>().prop_map(|i| i.index(1 << 30));
    prop_oneof![
        8 => (any(), any(), any()).prop_map(|(class, at, by)| Edit::Replace { class, at, by }),
        1 => any().prop_map(Edit::DropLine),
        1 => (any(), any()).prop_map(|(a, b)| Edit::SwapLines(a, b)),
        1 => any().prop_map(Edit::RepeatLine),
    ]
}

fn apply(program: &Tokens, edits: &[Edit]) -> String {
    let mut pieces = program.pieces.clone();
    let classes: Vec<&Vec<usize>> = program.classes.values().collect();
    for edit in edits {
        if let Edit::Replace { class, at, by } = *edit {
            let places = classes[class % classes.len()];
            let (at, by) = (places[at % places.len()], places[by % places.len()]);
            pieces[at] = program.pieces[by].clone();
        }
    }
    let text = pieces.concat();
    let mut lines: Vec<&str> = text.lines().collect();
    // The header stays, so that more is left to go wrong.
    let first = lines.iter().position(|l| l.starts_with("digest")).map_or(0, |n| n + 1);
    for edit in edits {
        let count = lines.len() - first;
        if count == 0 {
            break;
        }
        match *edit {
            Edit::Replace { .. } => {}
            Edit::DropLine(n) => _ = lines.remove(first + n % count),
            Edit::SwapLines(a, b) => lines.swap(first + a % count, first + b % count),
            Edit::RepeatLine(n) => lines.insert(first + n % count, lines[first + n % count]),
        }
    }
    lines.join("\n")
}

fn check(text: &str) {
    let output = compile(parse(text), &mut |_| None, 50);
    for diagnostic in &output.diagnostics {
        assert!(diagnostic.help.is_some(), "no way out: {diagnostic:?}\n{text}");
        assert!(!diagnostic.message.is_empty(), "{diagnostic:?}");
        let places = diagnostic.secondary.iter().map(|(span, _)| span);
        for span in std::iter::once(&diagnostic.primary).chain(places) {
            let range = span.start as usize..span.end as usize;
            assert!(span.is_some() && text.get(range).is_some(), "{diagnostic:?}\n{text}");
        }
    }
    if !output.diagnostics.iter().any(|d| d.is_error())
        && let Err(errors) = verify_module(&output.module, Stage::Surface)
    {
        panic!("{errors:#?}\n{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_programs(
        program in any::<prop::sample::Index>(),
        edits in prop::collection::vec(edit(), 1..5),
    ) {
        check(&apply(program.get(&PROGRAMS), &edits));
    }
}
