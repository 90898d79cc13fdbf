//! Command lines that cannot be understood, help, and strange arguments.

use crate::support::{Ended, Place, json, program};

#[test]
fn help_and_version() {
    let place = Place::new();
    let help = place.run(&["--help"]).succeeds();
    for command in ["new", "build", "check", "run", "test", "fmt", "devices", "explain", "doctor"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
    assert!(!help.contains("run-test"), "helpers are hidden: {help}");
    assert!(place.run(&["run", "--help"]).succeeds().contains("Arguments of the program"));
    assert_eq!(place.run(&["--version"]).succeeds(), "magpie 0.1.0\n");
    assert!(place.run(&[]).fails(2).contains("Usage: magpie"));
}

#[test]
fn wrong_usage_is_2_with_a_way_out() {
    let place = Place::new();
    for (args, start, help) in [
        (
            &["rnu", "a.mp"][..],
            "<command line>:1:8: error[MPL0006]: unrecognized subcommand",
            "did you mean `run`?",
        ),
        (
            &["run", "--devcie", "cpu"],
            "<command line>:1:12: error[MPL0006]: unexpected argument",
            "'--device'",
        ),
        (
            &["run", "--device", "gpus"],
            "<command line>:1:21: error[MPL0006]: invalid value 'gpus'",
            "",
        ),
        (
            &["check", "a.mp", "b.mp"],
            "<command line>:1:19: error[MPL0006]: unexpected argument",
            "",
        ),
        (
            &["check", "--profile", "x", "a.mp"],
            "error[MPL0006]: unknown profile `x`",
            "known are dev",
        ),
        (&["explain"], "<command line>:1:15: error[MPL0006]: the following required arguments", ""),
        (&["fmt", "a.txt"], "error[MPL0006]: `a.txt` is no Magpie module", "formats `.mp` files"),
    ] {
        let text = place.run(args).fails(2);
        assert!(text.starts_with(start), "{text}");
        assert!(
            text.lines().any(|line| line.starts_with("help: ") && line.contains(help)),
            "{text}"
        );
    }
    let text = place.run(&["parse", "a.mp", "--emit", "mpir"]).fails(2);
    assert!(
        text.starts_with("error[MPL0006]: `parse` writes no artifacts\nhelp: `--emit` belongs")
    );
    let text = place.run(&["parse", "a.mp", "--emit", "ast"]).fails(1);
    assert!(
        text.starts_with("error[MPT2050]: `parse --emit ast` is not supported by this build\n")
    );
    let text = place.run(&["graph", "deps", "a.mp"]).fails(1);
    assert!(text.contains("error[MPT2050]: `magpie graph` is not supported by this build\n"));
    let mut command = place.command(["devices"]);
    let text = Ended::from(command.env("MAGPIE_DEVICE", "toaster").output().unwrap()).fails(2);
    assert!(text.starts_with("error[MPL0006]: MAGPIE_DEVICE: unknown device `toaster`"), "{text}");
}

#[test]
fn wrong_usage_in_json() {
    let place = Place::new();
    let ended = place.run(&["rnu", "--output", "json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (2, ""));
    let report = json(&ended.stdout);
    assert_eq!(report["success"], false);
    assert_eq!(report["diagnostics"][0]["code"], "MPL0006");
    assert_eq!(report["diagnostics"][0]["primary_span"]["column"], 8);
}

#[test]
#[cfg(unix)]
fn arguments_that_are_no_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let bytes = OsStr::from_bytes(b"\xff\xfe");
    let hello = program("hello.mp");
    let run = |args: &[&OsStr]| Ended::from(place.command(args).output().unwrap());
    let word = |text: &'static str| OsStr::new(text);
    let text = run(&[word("run"), OsStr::new(&hello), word("--"), word("a"), bytes]).fails(2);
    assert!(
        text.starts_with("error[MPL0006]: argument 2 of the program is not valid UTF-8"),
        "{text}"
    );
    run(&[bytes]).fails(2);
    run(&[word("run"), bytes]).fails(2);
    run(&[word("--output"), bytes, word("run")]).fails(2);
    run(&[word("explain"), bytes]).fails(2);
    run(&[word("new"), bytes]).fails(2);
    let file = OsStr::from_bytes(b"\xff.mp");
    let text = run(&[word("check"), file]).fails(1);
    assert!(text.contains("error[MPP0001]: cannot read `\u{fffd}.mp`"), "{text}");
    std::fs::write(place.path("x").with_file_name(file), std::fs::read(&hello).unwrap()).unwrap();
    assert_eq!(run(&[word("run"), file]).code, 7);
}

/// Random words in random order never do worse than be refused.
#[test]
fn any_command_line_ends_in_order() {
    let words = [
        "run",
        "check",
        "build",
        "fmt",
        "test",
        "lint",
        "new",
        "explain",
        "devices",
        "parse",
        "mpir",
        "verify",
        "run-test",
        "--emit",
        "--emit=",
        "spv,,mpir",
        "--device",
        "cpu",
        "-1",
        "--max-errors",
        "0",
        "99999999999",
        "--output",
        "json",
        "-v",
        "-vv",
        "--",
        "-",
        "",
        "a.mp",
        "/",
        ".",
        "--blobs",
        "ptx",
        "--cache-dir",
        "--profile",
        "dev",
        "-j",
        "1",
        "--help",
        "%n",
        "\u{202e}",
        "a\nb",
        "--target",
        "native",
        "--entry",
        "--gpu-fallback",
        "none",
        "--filter",
        "x",
    ];
    let place = Place::new();
    let mut state = 1u64;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for _ in 0..150 {
        let line: Vec<&str> = (0..1 + next(6)).map(|_| words[next(words.len())]).collect();
        let ended = place.run(&line);
        assert!((0..=3).contains(&ended.code), "{line:?}: {ended:?}");
        assert!(!ended.stderr.contains("internal error"), "{line:?}: {}", ended.stderr);
    }
}
