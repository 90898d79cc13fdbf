//! Wrong command lines as diagnostics.

use crate::args::{CommandLine, OutputForm};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use magpie_diag::{Code, Diagnostic, SourceMap, Span, closest};
use std::ffi::OsString;

/// Commands and flags of the language reference that this build lacks, and what to do instead.
const ABSENT: &[(&str, &str)] = &[
    ("graph", "`magpie build --emit mpir` writes blocks and calls as text"),
    ("doc", "comments that begin with `;;;` stay in the source"),
    ("repl", "`magpie run FILE` compiles and runs a program in milliseconds"),
    ("pkg", "write path dependencies into `[dependencies]` of Magpie.toml"),
    ("web", "`magpie build --target web-gpu FILE.mi` writes a bundle for browsers"),
    ("mcp", "`magpie check --output json` gives diagnostics to other programs"),
    ("memory", "`magpie check --output json` gives diagnostics to other programs"),
    ("ctx", "`magpie check --output json` gives diagnostics to other programs"),
    ("ffi", "declare the functions in an `extern` block"),
    ("--features", "leave it out: there is no conditional compilation"),
    ("--no-default-features", "leave it out: there is no conditional compilation"),
    ("--offline", "leave it out: nothing is downloaded"),
    ("--llm", "`--output json` is the form for other programs"),
    ("--llm-token-budget", "`--max-errors N` limits what is reported"),
    ("--llm-tokenizer", "`--max-errors N` limits what is reported"),
    ("--llm-budget-policy", "`--max-errors N` limits what is reported"),
    ("--no-auto-fmt", "leave it out: only `magpie fmt` changes sources"),
    ("--shared-generics", "leave it out: each instance of a generic function is a copy"),
];

/// A command or flag that is known, but not here.
fn absent(error: &clap::Error) -> Option<(String, &'static str)> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    kinds.into_iter().find_map(|kind| {
        let Some(ContextValue::String(word)) = error.get(kind) else { return None };
        let (name, help) = ABSENT.iter().find(|(name, _)| name == word)?;
        let what = if name.starts_with('-') { *name } else { &format!("magpie {name}") };
        Some((format!("`{what}` is not supported by this build"), *help))
    })
}

/// What clap says about a command line, at the argument it is about. The command line becomes a
/// source.
pub(crate) fn diagnostic(
    error: &clap::Error,
    arguments: &[OsString],
    sources: &mut SourceMap,
) -> Diagnostic {
    let words: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let line = format!("magpie {}", words.get(1..).unwrap_or_default().join(" "));
    if let Some((message, help)) = absent(error) {
        let (start, end) = place(error, &line);
        let file = sources.add("<command line>", line);
        let span = Span::new(file, start, end);
        return Diagnostic::new(Code::MPT2050, span, message).with_help(help);
    }
    let text = error.render().to_string();
    let mut lines = text.lines();
    let head: Vec<&str> =
        lines.by_ref().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let head = head.join(" ");
    let message = head.strip_prefix("error: ").unwrap_or(&head).to_string();
    let tips: Vec<&str> = lines.filter_map(|line| line.trim().strip_prefix("tip: ")).collect();
    let help = match tips[..] {
        [] => nearest_command(error).unwrap_or_else(|| {
            "magpie --help lists the commands, magpie COMMAND --help its arguments".to_string()
        }),
        _ => tips.join("; "),
    };
    let (start, end) = place(error, &line);
    let file = sources.add("<command line>", line);
    Diagnostic::new(Code::MPL0006, Span::new(file, start, end), message).with_help(help)
}

/// The command that was meant; clap finds none for short words with letters swapped.
fn nearest_command(error: &clap::Error) -> Option<String> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let command = CommandLine::command();
    let names = command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name());
    closest(word, names).map(|name| format!("did you mean `{name}`?"))
}

/// The bytes of the argument that the error is about; the end of the line when one is missing.
fn place(error: &clap::Error, line: &str) -> (u32, u32) {
    let kinds = [
        ContextKind::InvalidValue,
        ContextKind::InvalidSubcommand,
        ContextKind::InvalidArg,
        ContextKind::TrailingArg,
    ];
    let found = kinds.into_iter().find_map(|kind| {
        let Some(ContextValue::String(text)) = error.get(kind) else { return None };
        // Flags are named with what they take: `--max-errors <N>`.
        let word = text.split(' ').next().filter(|word| !word.is_empty())?;
        let is_edge = |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | ',' | '='));
        let stands_alone = |at: usize| {
            let (before, rest) = line.split_at(at);
            let after = rest.get(word.len()..).unwrap_or_default();
            is_edge(before.chars().next_back()) && is_edge(after.chars().next())
        };
        let at = line.match_indices(word).map(|(at, _)| at).find(|&at| stands_alone(at))?;
        Some((at as u32, (at + word.len()) as u32))
    });
    let end = line.trim_end().len() as u32;
    found.unwrap_or((end, end))
}

/// The form in which a command line that cannot be read wants its messages.
pub(crate) fn output_form(arguments: &[OsString]) -> OutputForm {
    let before_program = arguments.iter().take_while(|a| *a != "--");
    let words: Vec<&str> = before_program.filter_map(|a| a.to_str()).collect();
    let given = words.iter().enumerate().rev().find_map(|(n, word)| {
        let value = word.strip_prefix("--output")?;
        value.strip_prefix('=').or_else(|| words.get(n + 1).copied())
    });
    match given {
        Some("json") => OutputForm::Json,
        Some("jsonl") => OutputForm::Jsonl,
        _ => OutputForm::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use magpie_diag::render;

    fn text(line: &str) -> String {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = CommandLine::try_parse_from(&arguments).unwrap_err();
        let mut sources = SourceMap::new();
        let diagnostic = diagnostic(&error, &arguments, &mut sources);
        render(&diagnostic, &sources, false)
    }

    #[test]
    fn errors_stand_at_their_argument() {
        let unknown = text("magpie -v rnu a.mp");
        let head = "<command line>:1:11: error[MPL0006]: unrecognized subcommand 'rnu'\n";
        assert!(unknown.starts_with(head), "{unknown}");
        assert!(unknown.contains("help: did you mean `run`?\n"), "{unknown}");
        assert!(text("magpie explian").contains("help: a similar subcommand exists: 'explain'\n"));
        for (line, column, word) in [
            ("magpie run --devcie cpu", 12, "--device"),
            ("magpie run --device gpus", 21, "vulkan"),
            ("magpie run a.mp b", 17, "b"),
            ("magpie --max-errors 0 check", 21, "1.."),
            ("magpie --output xml check", 17, "jsonl"),
            ("magpie explain", 15, "CODE"),
            ("magpie build --blobs spv,x", 26, "wgsl"),
            ("magpie fmt --check=yes", 20, "yes"),
        ] {
            let text = text(line);
            assert!(text.starts_with(&format!("<command line>:1:{column}: ")), "{line}: {text}");
            assert!(text.contains(word), "{line}: {text}");
        }
    }

    #[test]
    fn what_this_build_lacks_is_said() {
        for (line, start, help) in [
            ("magpie graph cfg a.mp", "8: error[MPT2050]: `magpie graph` is not", "--emit mpir"),
            ("magpie build --offline a.mp", "14: error[MPT2050]: `--offline` is not", "leave it"),
            ("magpie build --features x", "14: error[MPT2050]: `--features` is not", "leave it"),
        ] {
            let text = text(line);
            assert!(text.starts_with(&format!("<command line>:1:{start}")), "{text}");
            assert!(text.contains(help), "{text}");
        }
    }

    #[test]
    fn the_form_of_messages_is_known_before_the_rest() {
        let form = |line: &str| {
            output_form(&line.split(' ').map(OsString::from).collect::<Vec<OsString>>())
        };
        assert_eq!(form("magpie --output json rnu"), OutputForm::Json);
        assert_eq!(form("magpie rnu --output=jsonl"), OutputForm::Jsonl);
        assert_eq!(form("magpie run a.mp -- --output json"), OutputForm::Text);
        assert_eq!(form("magpie --output"), OutputForm::Text);
    }
}
