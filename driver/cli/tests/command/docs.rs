//! The user's guide: every block of code in README.md and docs/*.md does what the page says.
//!
//! The word behind the fence says what a block is:
//!
//! - `mp`: a module, or declarations that become one. The module passes `magpie check` without a word,
//!   unless a block that follows says otherwise: `output` is what `magpie run --device cpu` prints,
//!   panics included, `messages` is what `magpie check` prints. Declarations see those of the earlier
//!   blocks of their section that have no messages.
//! - `mi`: a Miri program, with `output` and `messages` as above; `costs` is what `magpie cost` prints.
//! - `toml`: a manifest. A project that has it passes `magpie check`.
//! - `sh`: commands. Those of `magpie` have commands, flags and values that there are.
//! - `text`: no code.

use crate::support::{Ended, Place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A page as its reader knows it.
struct Page {
    name: String,
    text: String,
    blocks: Vec<Block>,
}

/// A block between fences.
#[derive(Debug)]
struct Block {
    /// `PAGE:LINE`
    place: String,
    /// Number of the heading above it.
    section: usize,
    language: String,
    text: String,
}

/// What stands behind a block of code and says what comes of it.
const OUTCOMES: [&str; 3] = ["output", "messages", "costs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and docs/*.md.
fn pages() -> Vec<Page> {
    let docs = std::fs::read_dir(root().join("docs")).expect("there is a guide");
    let mut names: Vec<String> = docs
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.push("README.md".to_string());
    names.sort();
    assert!(names.len() > 5, "{names:?}");
    names.into_iter().map(Page::read).collect()
}

impl Page {
    fn read(name: String) -> Page {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        let (mut blocks, mut section): (Vec<Block>, usize) = (Vec::new(), 0);
        let mut is_inside = false;
        for (n, line) in text.lines().enumerate() {
            match (line.strip_prefix("```"), is_inside) {
                (Some(info), false) => {
                    let place = format!("{name}:{}", n + 1);
                    let language = info.trim().to_string();
                    blocks.push(Block { place, section, language, text: String::new() });
                    is_inside = true;
                }
                (Some(_), true) => is_inside = false,
                (None, true) => {
                    let block = blocks.last_mut().expect("a block is open");
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, false) => section += usize::from(line.starts_with('#')),
            }
        }
        assert!(!is_inside, "{name}: a block has no end");
        Page { name, text, blocks }
    }

    /// The blocks in a language, with their positions.
    fn blocks_in<'a>(&'a self, language: &'a str) -> impl Iterator<Item = (usize, &'a Block)> {
        self.blocks.iter().enumerate().filter(move |(_, block)| block.language == language)
    }

    /// The module that a block is or becomes. What is added stands on its first line and behind it,
    /// so that lines keep their numbers.
    fn module(&self, n: usize) -> String {
        let block = &self.blocks[n];
        if is_module(block) {
            return block.text.clone();
        }
        let mut text =
            format!("module page exports {{ }} imports {{ }} digest \"\" {}", block.text);
        let earlier = (0..n).filter(|&m| {
            let earlier = &self.blocks[m];
            let is_program = is_module(earlier) || has_main(earlier);
            let is_declarations = earlier.language == "mp" && !is_program;
            let is_right = self.outcome(m, "messages").is_none();
            earlier.section == block.section && is_declarations && is_right
        });
        earlier.for_each(|m| text.push_str(&self.blocks[m].text));
        if !has_main(block) {
            text.push_str("fn @main() -> i64 {\nbb0:\n  ret const.i64 0\n}\n");
        }
        text
    }

    /// The blocks behind a block that say what comes of it.
    fn outcome(&self, n: usize, language: &str) -> Option<&str> {
        let behind = self.blocks[n + 1..].iter();
        let mut outcomes = behind.take_while(|b| OUTCOMES.contains(&&*b.language));
        outcomes.find(|block| block.language == language).map(|block| block.text.as_str())
    }
}

fn has_main(block: &Block) -> bool {
    block.text.contains("fn @main(")
}

fn is_module(block: &Block) -> bool {
    block.text.lines().any(|line| line.starts_with("module "))
}

#[test]
fn blocks_are_of_known_kinds() {
    for page in pages() {
        for (n, block) in page.blocks.iter().enumerate() {
            let is_outcome = match &*block.language {
                "mp" | "mi" | "toml" | "sh" | "text" => false,
                language if OUTCOMES.contains(&language) => true,
                other => panic!("{}: `{other}` is not tested", block.place),
            };
            let before = n.checked_sub(1).map(|n| &*page.blocks[n].language);
            let has_code =
                before.is_some_and(|b| matches!(b, "mp" | "mi") || OUTCOMES.contains(&b));
            assert!(!is_outcome || has_code, "{}: the outcome of nothing", block.place);
        }
    }
}

#[test]
fn programs_do_what_their_page_says() {
    let place = Place::new();
    let mut faults = Vec::new();
    for page in pages() {
        let programs = page.blocks_in("mp").chain(page.blocks_in("mi"));
        for (n, block) in programs {
            let (file, text) = match &*block.language {
                "mp" => ("main.mp", page.module(n)),
                _ => ("main.mi", block.text.clone()),
            };
            place.write(file, text);
            let mut compare = |args: &[&str], expected: &str, code: i32| {
                let Ended { code: ended, stdout, stderr } = place.run(args);
                let found = stdout + &stderr;
                if (found.as_str(), ended) != (expected, code) {
                    faults.push(format!(
                        "{}: exit code {ended} for {code}, and this:\n{found}",
                        block.place
                    ));
                }
            };
            let (output, messages) = (page.outcome(n, "output"), page.outcome(n, "messages"));
            if let Some(expected) = output {
                let panics = expected.lines().last().is_some_and(|l| l.starts_with("panic: "));
                let code = if panics { 101 } else { 0 };
                compare(&["run", "--device", "cpu", file], expected, code);
            }
            if output.is_none() || messages.is_some() {
                let expected = messages.unwrap_or("");
                let code = i32::from(expected.contains(" error["));
                compare(&["check", file], expected, code);
            }
            if let Some(expected) = page.outcome(n, "costs") {
                compare(&["cost", file], expected, 0);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn manifests_are_those_of_projects() {
    for page in pages() {
        for (_, block) in page.blocks_in("toml") {
            let place = Place::new();
            let main = "module page exports { } imports { } digest \"\"\n\
                        fn @main() -> i64 {\nbb0:\n  ret const.i64 0\n}\n";
            place.write("project/Magpie.toml", &block.text);
            place.write("project/src/main.mp", main);
            place.write("util/src/main.mp", main);
            let ended = place.run_in("project", &["check"]);
            assert_eq!((ended.code, &*ended.stderr), (0, ""), "{}", block.place);
        }
    }
}

#[test]
fn commands_can_be_given() {
    let place = Place::new();
    for page in pages() {
        let blocks = page.blocks_in("sh").flat_map(|(_, block)| {
            block.text.lines().map(|line| (&block.place, line)).collect::<Vec<_>>()
        });
        let mut seen = 0;
        for (at, line) in blocks {
            let Some(words) = arguments(line) else { continue };
            // What comes before `--help` is read and refused first.
            let words = words.into_iter().take_while(|word| *word != "--");
            let ended = place.command(words.chain(["--help"])).output().unwrap();
            let message = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success() && message.is_empty(), "{at}: {line}\n{message}");
            seen += 1;
        }
        assert!(seen > 0 || !page.name.ends_with("command.md"));
    }
}

/// The arguments of `magpie` in a line of a shell; `None` for other programs.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let line = line.split(" #").next().unwrap_or(line);
    let is_variable = |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_upper(name));
    let mut words = line.split_whitespace().skip_while(is_variable);
    match words.next()? {
        "magpie" => Some(words.collect()),
        "cargo" => {
            let words: Vec<&str> = words.collect();
            let behind = words.strip_prefix(&["run", "--release", "--"][..]);
            behind.map(<[&str]>::to_vec)
        }
        _ => None,
    }
}

fn is_upper(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b"_0123456789".contains(&b))
}

/// The page about the command has every command and flag, and no other flag.
#[test]
fn the_page_of_the_command_is_complete() {
    let place = Place::new();
    let page = Page::read("docs/command.md".to_string());
    let flags = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        let flags = words.filter(|word| word.trim_start_matches('-').len() + 2 == word.len());
        flags.filter(|flag| flag.len() > 2).map(str::to_string).collect()
    };
    let help = place.run(&["--help"]).succeeds();
    let list = help.split("Commands:\n").nth(1).and_then(|text| text.split("\n\n").next());
    let commands = list.expect("a list of commands").lines();
    let commands = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands.filter(|c| !c.is_empty() && *c != "help").collect();
    assert!(commands.len() > 10, "{commands:?}");
    let mut known = flags(&help);
    for command in commands {
        known.extend(flags(&place.run(&[command, "--help"]).succeeds()));
        let has_row = page.text.lines().any(|line| {
            let cell = line.strip_prefix("| `").and_then(|line| line.split('`').next());
            cell.is_some_and(|cell| cell.split(' ').next() == Some(command))
        });
        assert!(has_row, "{command}");
    }
    known.remove("--version");
    let named = flags(&page.text);
    let difference: Vec<&String> = known.symmetric_difference(&named).collect();
    assert!(difference.is_empty(), "{difference:?}");
}

#[test]
fn codes_can_be_explained() {
    let place = Place::new();
    let mut codes = BTreeSet::new();
    for page in pages() {
        let words = page.text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let is_code = |word: &&str| {
            word.starts_with("MP") && is_upper(word) && word.ends_with(|c: char| c.is_ascii_digit())
        };
        codes.extend(words.filter(is_code).map(str::to_string));
    }
    assert!(codes.len() > 10, "{codes:?}");
    for code in codes {
        assert!(place.run(&["explain", &code]).succeeds().starts_with("# MP"), "{code}");
    }
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let folder = root().join(&page.name);
        let folder = folder.parent().expect("a page lies in a folder");
        let targets = page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { root().join(&page.name) } else { folder.join(file) };
            assert!(file.exists(), "{}: {target}", page.name);
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let headings = text.lines().filter(|line| line.starts_with('#')).map(anchor_of);
            let has_anchor = anchor.is_empty() || headings.into_iter().any(|a| a == anchor);
            assert!(has_anchor, "{}: {target}", page.name);
        }
    }
}

/// The anchor of a heading.
fn anchor_of(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    words.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}
