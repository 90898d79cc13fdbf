//! Any text: no panic, an end in linear time, errors with places and a way out; and what has no
//! errors can be formatted.

mod support;

use magpie_lang::{check_digest, format_module};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use support::dump::dump;
use support::*;

static PROGRAMS: LazyLock<Vec<String>> =
    LazyLock::new(|| programs().into_iter().map(|(_, text)| text).collect());

/// The laws for every text.
fn check(text: &str) {
    let module = parse(text);
    for diagnostic in &module.diagnostics {
        assert!(diagnostic.help.is_some(), "no way out: {diagnostic:?}");
        assert!(!diagnostic.message.is_empty());
        for span in std::iter::once(&diagnostic.primary)
            .chain(diagnostic.secondary.iter().map(|(span, _)| span))
        {
            let range = span.start as usize..span.end as usize;
            assert!(text.get(range).is_some(), "span outside the text: {diagnostic:?}");
        }
    }
    let Some(once) = format_module(&module, text) else {
        assert!(module.has_errors());
        return;
    };
    let after = parse(&once);
    assert!(!after.has_errors(), "{:?}\n{text}\n---\n{once}", messages(&after, &once));
    assert_eq!(format_module(&after, &once).as_ref(), Some(&once), "{text}");
    assert_eq!(
        without_docs(&dump(&after, &once)),
        without_docs(&dump(&module, text)),
        "{text}\n---\n{once}"
    );
    assert!(check_digest(&after, &once).is_none());
}

/// A comment moved out of the middle of a declaration may become its documentation.
fn without_docs(dump: &str) -> String {
    dump.lines().filter(|line| !line.starts_with("docs ")).collect::<Vec<_>>().join("\n")
}

fn token() -> impl Strategy<Value = String> {
    let words = prop::sample::select(
        "module exports imports digest fn async meta uses effects cost heap value struct enum extern \
         global unsafe gpu target workgroup requires sig impl field variant case else call call_void \
         call.indirect try new phi callable.capture ret br cbr switch unreachable const.i32 const.f32 \
         const.Str i.add f.fma gpu.launch arr.new enum.new map.new gpu.shared suspend.call TP Array TResult \
         shared borrow mutborrow weak i32 f32 unit true false bb0 bb1 bb_x lhs rhs a b args v0 v1 cap type \
         hash for attrs ok err spv std.io"
            .split_whitespace()
            .collect::<Vec<_>>(),
    );
    prop_oneof![
        4 => words.prop_map(str::to_string),
        4 => prop::sample::select(vec![
            "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", "::", "=", ".", "->",
        ])
        .prop_map(str::to_string),
        2 => prop::sample::select(vec!["%x", "%y", "@f", "@main", "1", "-3", "0x1f", "1.5", "\"s\"", "\"\\q\"", "\"open"])
            .prop_map(str::to_string),
        1 => prop::sample::select(vec!["; c\n", ";;; d\n", "\n", "\r\n", "\t"]).prop_map(str::to_string),
        1 => any::<char>().prop_map(String::from),
    ]
}

/// An edit of a program: where, as parts per million, and what.
#[derive(Clone, Debug)]
enum Edit {
    Delete(usize),
    Insert(String),
    Repeat(usize),
    SwapWith(usize),
}

fn edit() -> impl Strategy<Value = (usize, Edit)> {
    let what = prop_oneof![
        (1..40usize).prop_map(Edit::Delete),
        token().prop_map(Edit::Insert),
        (1..200usize).prop_map(Edit::Repeat),
        (0..1_000_000usize).prop_map(Edit::SwapWith),
    ];
    (0..1_000_000usize, what)
}

fn boundary(text: &str, part: usize) -> usize {
    let mut at = text.len() * part / 1_000_000;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn forward(text: &str, at: usize, len: usize) -> usize {
    text[at..].char_indices().nth(len).map_or(text.len(), |(i, _)| at + i)
}

fn apply(text: &mut String, (part, edit): (usize, Edit)) {
    let at = boundary(text, part);
    match edit {
        Edit::Delete(len) => {
            let end = forward(text, at, len);
            text.replace_range(at..end, "");
        }
        Edit::Insert(token) => text.insert_str(at, &token),
        Edit::Repeat(len) => {
            let end = forward(text, at, len);
            let piece = text[at..end].to_string();
            text.insert_str(at, &piece);
        }
        Edit::SwapWith(other) => {
            // Exchange two lines.
            let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
            if !lines.is_empty() {
                let count = lines.len();
                lines.swap(part % count, other % count);
                *text = lines.join("\n");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_text(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(token(), 0..80), space in any::<bool>()) {
        check(&tokens.join(if space { " " } else { "" }));
    }

    #[test]
    fn token_soup_in_a_function(tokens in prop::collection::vec(token(), 0..40)) {
        check(&function(&tokens.join(" ")));
    }

    #[test]
    fn mutated_programs(
        program in any::<prop::sample::Index>(),
        edits in prop::collection::vec(edit(), 1..6),
    ) {
        let mut text = program.get(&PROGRAMS).clone();
        for edit in edits {
            apply(&mut text, edit);
        }
        check(&text);
    }
}

#[test]
fn every_prefix_of_a_program() {
    let (_, text) = programs().into_iter().find(|(name, _)| name == "h16_globals_math").unwrap();
    for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        check(&text[..end]);
    }
}

#[test]
fn deep_nesting_and_long_lists() {
    let n = 100_000;
    for piece in [
        "<",
        "[",
        "{",
        "(",
        "}",
        "]",
        ">",
        ")",
        "Array<",
        "{ a=",
        "[%x, ",
        "unsafe { ",
        "phi { [",
        "bb0: ",
        "a . ",
        "fn ",
        "fn @f(",
        "heap enum TE { variant ",
        "meta { ",
        "switch %x { case 1 -> ",
        "shared ",
        "const.",
        "%x: ",
        "\"",
        "; c\n",
        "\n",
        " ",
        "-",
        "0x",
        "1e",
        "try ",
        "call ",
        "%x: i32 = i.add { lhs=",
        "module ",
        "exports {\n",
    ] {
        let repeated = piece.repeat(n);
        let _ = parse(&repeated);
        let _ = parse(&module(&repeated));
        let _ = parse(&function(&repeated));
        let _ = parse(&function(&format!("%x: i32 = i.add {{ lhs={repeated}")));
        let _ = parse(&function(&format!("%x: {repeated}")));
    }
}

/// The fastest of three runs.
fn time(text: &str) -> Duration {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            let module = parse(text);
            std::hint::black_box(format_module(&module, text));
            start.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn time_is_linear() {
    type Shape = (&'static str, fn(usize) -> String);
    let shapes: [Shape; 9] = [
        ("instructions", |n| {
            function(&"  %x: i32 = i.add { lhs=%a, rhs=const.i32 1 }\n".repeat(n))
        }),
        ("blocks", |n| {
            let blocks: String = (1..n).map(|i| format!("  br bb{i}\nbb{i}:\n")).collect();
            function(&blocks)
        }),
        ("functions", |n| {
            let functions: String =
                (0..n).map(|i| format!("fn @f{i}() -> unit {{ bb0: ret }}\n")).collect();
            module(&functions)
        }),
        ("arguments", |n| {
            let args: Vec<_> = (0..n).map(|i| format!("a{i}=%x")).collect();
            function(&format!("call @f {{ {} }}", args.join(", ")))
        }),
        ("elements", |n| {
            let args: Vec<_> = (0..n).rev().map(|i| format!("v{i}=%x")).collect();
            function(&format!("%x: Array<i32> = arr.new {{ {} }}", args.join(", ")))
        }),
        ("path", |n| function(&format!("call {}@f {{ }}", "a . ".repeat(n)))),
        ("bad characters", |n| function(&"$ ".repeat(n))),
        ("unclosed", |n| function(&"%x: i32 = i.add { lhs=%a, \n".repeat(n))),
        ("comments", |n| function(&"; c\n    ;;; d\n".repeat(n))),
    ];
    for (name, shape) in shapes {
        let small = time(&shape(2_000));
        let large = time(&shape(64_000));
        // 32 times the text; quadratic would be 1,024 times the time.
        let limit = small * 200 + Duration::from_millis(250);
        assert!(large < limit, "{name}: {small:?} for 2,000, {large:?} for 64,000");
    }
}
