//! No text makes the reader, the verifier or the lowering of host code panic; what the first two
//! accept prints back, and lowered it is still accepted.

use magpie_diag::FileId;
use magpie_mpir::{Module, Op, Stage, module_eq, parse, passes, print_module, verify_module};
use proptest::prelude::*;
use std::path::Path;

/// Every `.mpir` file of the file tests.
fn corpus() -> Vec<String> {
    fn walk(dir: &Path, out: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "mpir") {
                out.extend(std::fs::read_to_string(&path));
            }
        }
    }
    let mut out = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    walk(&root.join("mpir"), &mut out);
    walk(&root.join("passes"), &mut out);
    assert!(!out.is_empty(), "the file tests are the corpus");
    out
}

fn check(text: &str) {
    let Ok(m) = parse(text, FileId(0)) else { return };
    for stage in [Stage::Surface, Stage::Core] {
        if verify_module(&m, stage).is_ok() {
            let mut compact = m.clone();
            compact.fns.iter_mut().for_each(|f| f.compact(|_| true));
            let printed = print_module(&compact);
            let again = parse(&printed, FileId(0));
            assert!(again.is_ok_and(|again| module_eq(&compact, &again)), "{printed}");
        }
    }
    if verify_module(&m, Stage::Core).is_ok() {
        lower(m, text);
    }
}

fn lower(mut m: Module, text: &str) {
    passes::lower_arc(&mut m);
    let errors = verify_module(&m, Stage::Core).err();
    assert!(errors.is_none(), "{errors:?}\n{text}");
    passes::lower_host(&mut m, &|_| None);
    let errors = verify_module(&m, Stage::Core).err();
    assert!(errors.is_none(), "{errors:?}\n{text}");
}

/// Words that mean something, to be put anywhere.
fn words() -> Vec<String> {
    let ops = Op::ALL.iter().map(|op| op.name().to_string());
    let types = ["i32", "f32", "Str", "TOption<Str>", "Array<i32>", "vec<f32, 3>", "unit", "i128"];
    let marks = ["{", "}", "[", "]", "(", ")", ":", ",", "=", "->", "!0:1-2", "%0", "%1", "bb0"];
    let others = ["fn", "gpu fn", "ret", "phi", "cbr", "switch", "else", "\n", "\"", "\\u{", "-"];
    let all = types.iter().chain(&marks).chain(&others).map(|s| s.to_string());
    ops.chain(all).collect()
}

proptest! {
    // `PROPTEST_CASES` asks for more.

    #[test]
    fn any_text(text in ".*") {
        check(&text);
    }

    #[test]
    fn any_words(picks in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let words = words();
        let text: Vec<_> = picks.iter().map(|pick| pick.get(&words).as_str()).collect();
        check(&text.join(" "));
    }

    #[test]
    fn changed_programs(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..12, any::<prop::sample::Index>(), 0u8..4),
            1..6,
        ),
    ) {
        let corpus = corpus();
        let words = words();
        let mut text = which.get(&corpus).clone();
        for (at, len, with, kind) in changes {
            let mut start = at.index(text.len() + 1);
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + len).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            match kind {
                0 => text.replace_range(start..end, ""),
                1 => text.insert_str(start, with.get(words.as_slice()).as_str()),
                2 => text.replace_range(start..end, with.get(words.as_slice()).as_str()),
                // A piece from elsewhere.
                _ => {
                    let other = with.get(&corpus);
                    let piece: String = other.chars().skip(at.index(other.len().max(1))).take(len * 4).collect();
                    text.insert_str(start, &piece);
                }
            }
        }
        check(&text);
    }
}
