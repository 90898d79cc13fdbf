//! `check`, `lint`, `parse`, `mpir verify`, `explain`: what is wrong, in text and JSON.

use crate::support::{Place, case, program};
use serde_json::json;

const BAD: &str = r#"module a
exports { @main }
imports { }
digest "1234"

fn @main() -> i64 {
bb0:
  %x: i64 = i.add { lhs=const.i64 1, rhs=const.i32 2 }
  %y: i64 = i.add { lhs=%z, rhs=const.i64 2 }
  ret %x
}
"#;

#[test]
fn programs_without_faults_are_silent() {
    let place = Place::new();
    assert_eq!(place.run(&["check", &program("hello.mp")]).succeeds(), "");
    assert_eq!(place.run(&["lint", &program("hello.mp")]).succeeds(), "");
    assert_eq!(place.run(&["parse", &program("hello.mp")]).succeeds(), "");
}

#[test]
fn errors_have_places_codes_and_a_way_out() {
    let place = Place::new();
    place.write("bad.mp", BAD);
    let text = place.run(&["check", "bad.mp"]).fails(1);
    assert!(text.starts_with("bad.mp:8:"), "{text}");
    assert!(text.contains("error[MPT2014]") && text.contains("error[MPS0002]"), "{text}");
    assert!(text.contains("8 |   %x: i64 = i.add"), "the line is shown: {text}");
    let few = place.run(&["check", "--max-errors", "1", "bad.mp"]).fails(1);
    assert!(!few.contains("MPS0002") && few.contains("\n1 more error (--max-errors shows more)\n"));
    let colored = place.run(&["--color", "always", "check", "bad.mp"]).fails(1);
    assert!(colored.contains("\x1b["));
    assert!(!place.run(&["check", "--color=never", "bad.mp"]).fails(1).contains('\x1b'));
}

#[test]
fn json_is_one_object_with_sorted_keys() {
    let place = Place::new();
    place.write("bad.mp", BAD);
    let ended = place.run(&["check", "--output", "json", "bad.mp"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    let report = ended.json();
    assert_eq!(format!("{report}\n"), ended.stdout, "keys sorted, no spaces");
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "artifacts",
            "command",
            "diagnostics",
            "graphs",
            "llm_budget",
            "magpie_version",
            "success",
            "target",
            "timing_ms"
        ]
    );
    assert_eq!(report["success"], false);
    let first = &report["diagnostics"][0];
    assert_eq!(first["code"], "MPT2014");
    assert_eq!(
        (&first["severity"], &first["title"]),
        (&json!("error"), &json!("operand types differ"))
    );
    assert_eq!(first["primary_span"]["file"], "bad.mp");
    assert_eq!(first["primary_span"]["line"], 8);
    let ended = place.run(&["check", "--output", "jsonl", "bad.mp"]);
    let events: Vec<serde_json::Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "diagnostic");
    assert_eq!(events.last().unwrap()["success"], false);
}

#[test]
fn digests_are_compared_where_programs_are_built() {
    let place = Place::new();
    let text = std::fs::read_to_string(program("hello.mp")).unwrap();
    place.write("a.mp", text.replace("digest \"\"", "digest \"abc\""));
    assert_eq!(place.run(&["check", "a.mp"]).succeeds(), "");
    for command in [&["lint", "a.mp"][..], &["build", "--emit", "mpir", "a.mp"], &["run", "a.mp"]] {
        let ended = place.run(command);
        assert!(ended.stderr.starts_with("a.mp:4:1: warning[MPP0010]"), "{}", ended.stderr);
        assert_eq!(ended.code, if command[0] == "run" { 7 } else { 0 });
    }
    place.run(&["fmt", "a.mp"]).succeeds();
    assert_eq!(place.run(&["lint", "a.mp"]).succeeds(), "");
}

#[test]
fn lints_are_the_projects_choice() {
    let place = Place::new();
    place.write("a.mp", std::fs::read(case("e12_unsafe_warning")).unwrap());
    let ended = place.run(&["check", "a.mp"]);
    assert!(ended.code == 0 && ended.stderr.contains("warning[MPG_CORE_1202]"), "{ended:?}");
    assert_eq!(place.run(&["check", "a.mp", "--log-level", "error"]).succeeds(), "");
    place.write("Magpie.toml", "[lint]\nMPG_CORE_1202 = 'allow'\nMPG_CORE_1404 = 'allow'\n");
    assert_eq!(place.run(&["check", "a.mp"]).succeeds(), "");
    place.write("Magpie.toml", "[lint]\nMPG_CORE_1202 = 'deny'\n");
    assert!(place.run(&["check", "a.mp"]).fails(1).contains("error[MPG_CORE_1202]"));
}

#[test]
fn manifests_are_checked() {
    let place = Place::new();
    place.write("hello.mp", std::fs::read(program("hello.mp")).unwrap());
    place.write("Magpie.toml", "[gpu]\nfallbak = 'cpu'\n");
    let text = place.run(&["check", "hello.mp"]).fails(1);
    assert!(
        text.starts_with("Magpie.toml:2:1: error[MPL0002]: unknown key `gpu.fallbak`\n"),
        "{text}"
    );
    place.write("Magpie.toml", "[build]\nentri = 'x'\n");
    let ended = place.run(&["check", "hello.mp"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.starts_with("Magpie.toml:2:1: warning[MPL0003]"), "{}", ended.stderr);
    place.write("Magpie.toml", b"\xff");
    let text = place.run(&["check", "hello.mp"]).fails(1);
    assert!(text.starts_with("Magpie.toml:1:1: error[MPP0001]"), "{text}");
}

#[test]
fn mpir_text_is_verified() {
    let place = Place::new();
    place.write("a.mpir", "fn @f(%x: i64) -> i64 {\nbb0:\n  %y: i32 = i.add %x, %x\n  ret %x\n}\n");
    let text = place.run(&["mpir", "verify", "a.mpir"]).fails(1);
    assert!(text.starts_with("a.mpir:3:3: error[MPS0031]"), "{text}");
    place.write("b.mpir", "fn @f(\n");
    let text = place.run(&["mpir", "verify", "b.mpir"]).fails(1);
    assert!(text.contains("error[MPS0030]"), "{text}");
    let text = place.run(&["mpir", "verify", &program("hello.mp")]).fails(2);
    assert!(text.contains("is not MPIR text"), "{text}");
    assert!(place.run(&["mpir"]).fails(2).contains("Usage: magpie mpir"));
}

#[test]
fn codes_are_explained() {
    let place = Place::new();
    let text = place.run(&["explain", "MPT2014"]).succeeds();
    assert!(text.starts_with("# MPT2014: operand types differ\n\nSeverity: error\n"), "{text}");
    assert!(text.contains("## Example") && text.contains("## Repair"));
    assert!(place.run(&["explain", "mpg1103"]).succeeds().starts_with("# MPG_CORE_1103"));
    let text = place.run(&["explain", "MPT2O14"]).fails(1);
    assert_eq!(
        text,
        "error[MPL0006]: there is no diagnostic code `MPT2O14`\nhelp: did you mean `MPT2014`?\n"
    );
    let report = place.run(&["explain", "MPL0001", "--output", "json"]).json();
    assert_eq!(report["explanation"]["title"], "unknown emit name");
}

#[test]
fn machines_are_described() {
    let place = Place::new();
    let table = place.run(&["devices"]).succeeds();
    assert!(table.contains("  cpu  "), "{table}");
    let report = place.run(&["--output", "json", "devices"]).json();
    let devices = report["devices"]["list"].as_array().unwrap();
    assert!(devices.iter().any(|device| device["drivers"] == json!(["cpu"])));
    let text = place.run(&["doctor"]).succeeds();
    assert!(text.starts_with("found    CPU device"), "{text}");
    let report = place.run(&["doctor", "--output=json"]).json();
    assert_eq!(report["checks"][0]["found"], true);
}
