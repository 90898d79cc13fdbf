//! The JSON form of diagnostics and of a command's whole result.
//!
//! Objects are built with their keys in alphabetical order, so that the text is the same whichever
//! map `serde_json` is compiled with.

use serde_json::{Value, json};

use crate::patch::unified_diff;
use crate::{Diagnostic, SourceMap, Span};

/// What a command has to say when it ends.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The command's name, such as `build`.
    pub command: &'a str,
    /// What was built for: a triple or a target name.
    pub target: &'a str,
    /// Whether the command did its work.
    pub success: bool,
    /// Paths written, relative to the project.
    pub artifacts: &'a [String],
    /// The findings, in the order in which they are to be shown.
    pub diagnostics: &'a [Diagnostic],
    /// Milliseconds spent in each stage, by name.
    pub timing_ms: &'a [(String, f64)],
    /// What the command was asked for, under a key of its own, such as `devices`.
    pub data: Option<(&'a str, &'a Value)>,
}

impl Report<'_> {
    /// The report as one line: one object, keys sorted, no spaces.
    pub fn json(&self, sources: &SourceMap) -> String {
        let diagnostics: Vec<Value> = self
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic_json(diagnostic, sources))
            .collect();
        let mut object = json!({
            "artifacts": self.artifacts,
            "command": self.command,
            "diagnostics": diagnostics,
            "graphs": {},
            "llm_budget": null,
            "magpie_version": env!("CARGO_PKG_VERSION"),
            "success": self.success,
            "target": self.target,
            "timing_ms": self.timing(),
        });
        if let Some((key, data)) = self.data {
            object[key] = data.clone();
            object.sort_all_objects();
        }
        object.to_string()
    }

    /// The report as events, one object a line, each with the key `event`: `diagnostic`,
    /// `artifact`, `data`, and at the end one `finish`.
    pub fn json_lines(&self, sources: &SourceMap) -> String {
        let mut out = String::new();
        let mut push = |event: Value| {
            out.push_str(&event.to_string());
            out.push('\n');
        };
        for diagnostic in self.diagnostics {
            push(json!({
                "diagnostic": diagnostic_json(diagnostic, sources),
                "event": "diagnostic",
            }));
        }
        for path in self.artifacts {
            push(json!({ "event": "artifact", "path": path }));
        }
        if let Some((key, data)) = self.data {
            let mut event = json!({ "event": "data" });
            event[key] = data.clone();
            event.sort_all_objects();
            push(event);
        }
        push(json!({
            "command": self.command,
            "event": "finish",
            "magpie_version": env!("CARGO_PKG_VERSION"),
            "success": self.success,
            "target": self.target,
            "timing_ms": self.timing(),
        }));
        out
    }

    fn timing(&self) -> Value {
        let mut stages: Vec<&(String, f64)> = self.timing_ms.iter().collect();
        stages.sort_by(|a, b| a.0.cmp(&b.0));
        Value::Object(stages.into_iter().map(|(name, ms)| (name.clone(), json!(ms))).collect())
    }
}

/// A diagnostic as an object.
///
/// `primary_span` is null for a diagnostic without source. Spans hold `file`, `start` and `end` as
/// byte offsets, `line` and `column` from 1; secondary ones also `label`. `why` joins the notes,
/// `help` is the way out; both may be null. `confidence` of a fix is between 0 and 1.
pub fn diagnostic_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let secondary: Vec<Value> = diagnostic
        .secondary
        .iter()
        .filter_map(|(span, label)| span_json(*span, Some(label), sources))
        .collect();
    let fixes: Vec<Value> = diagnostic
        .fixes
        .iter()
        .map(|fix| {
            json!({
                "confidence": 1.0,
                "patch": unified_diff(fix, sources),
                "patch_format": "unified-diff",
                "title": fix.title,
            })
        })
        .collect();
    let why = (!diagnostic.notes.is_empty()).then(|| diagnostic.notes.join("\n"));
    let mut object = json!({
        "code": diagnostic.code.as_str(),
        "explanation_md": diagnostic.code.explanation(),
        "help": diagnostic.help,
        "message": diagnostic.message,
        "primary_span": span_json(diagnostic.primary, None, sources),
        "related_docs": [format!("magpie explain {}", diagnostic.code)],
        "secondary_spans": secondary,
        "severity": diagnostic.severity.name(),
        "suggested_fixes": fixes,
        "title": diagnostic.code.title(),
        "why": why,
    });
    if let Some(class) = diagnostic.code.class() {
        object["class"] = json!(class);
        object.sort_all_objects();
    }
    object
}

fn span_json(span: Span, label: Option<&str>, sources: &SourceMap) -> Option<Value> {
    let file = sources.file(span.file)?;
    let range = file.byte_range(span);
    let at = file.line_col(span.start);
    let mut object = json!({
        "column": at.column,
        "end": range.end,
        "file": file.name,
    });
    if let Some(label) = label {
        object["label"] = json!(label);
    }
    object["line"] = json!(at.line);
    object["start"] = json!(range.start);
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Fix};

    fn sample() -> (Diagnostic, SourceMap) {
        let mut sources = SourceMap::new();
        let file = sources.add("src/a.mp", "one\ntwo é three\n");
        let diagnostic = Diagnostic::new(Code::MPT2014, Span::new(file, 11, 16), "they \"differ\"")
            .with_secondary(Span::new(file, 0, 3), "first")
            .with_secondary(Span::NONE, "no place")
            .with_note("i64")
            .with_note("i32")
            .with_help("cast one")
            .with_fix(Fix {
                title: "write four".into(),
                span: Span::new(file, 11, 16),
                replacement: "four".into(),
            });
        (diagnostic, sources)
    }

    fn check_sorted(value: &Value) {
        match value {
            Value::Object(object) => {
                assert!(object.keys().is_sorted(), "{:?}", object.keys().collect::<Vec<_>>());
                object.values().for_each(check_sorted);
            }
            Value::Array(items) => items.iter().for_each(check_sorted),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn diagnostic_object() {
        let (diagnostic, sources) = sample();
        let value = diagnostic_json(&diagnostic, &sources);
        assert_eq!(
            value,
            json!({
                "code": "MPT2014",
                "severity": "error",
                "title": "operand types differ",
                "message": "they \"differ\"",
                "primary_span": {"file": "src/a.mp", "start": 11, "end": 16, "line": 2, "column": 7},
                "secondary_spans": [
                    {"file": "src/a.mp", "start": 0, "end": 3, "line": 1, "column": 1, "label": "first"},
                ],
                "why": "i64\ni32",
                "help": "cast one",
                "explanation_md": Code::MPT2014.explanation(),
                "related_docs": ["magpie explain MPT2014"],
                "suggested_fixes": [{
                    "title": "write four",
                    "patch_format": "unified-diff",
                    "patch": "--- a/src/a.mp\n+++ b/src/a.mp\n@@ -1,2 +1,2 @@\n one\n-two é three\n+two é four\n",
                    "confidence": 1.0,
                }],
            })
        );
        check_sorted(&value);
    }

    #[test]
    fn bare_diagnostic() {
        let diagnostic = Diagnostic::new(Code::MPL0005, Span::NONE, "no @main");
        let value = diagnostic_json(&diagnostic, &SourceMap::new());
        assert_eq!(value["primary_span"], Value::Null);
        assert_eq!(value["why"], Value::Null);
        assert_eq!(value["help"], Value::Null);
        assert_eq!(value["suggested_fixes"], json!([]));
    }

    #[test]
    fn offsets_past_the_end_are_moved_inside() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.mp", "é");
        let diagnostic = Diagnostic::new(Code::MPP0002, Span::new(file, 1, 99), "x");
        let span = &diagnostic_json(&diagnostic, &sources)["primary_span"];
        assert_eq!(*span, json!({"file": "a.mp", "start": 0, "end": 2, "line": 1, "column": 1}));
    }

    #[test]
    fn report_is_one_line_with_sorted_keys() {
        let (diagnostic, sources) = sample();
        let report = Report {
            command: "build",
            target: "x86_64-unknown-linux-gnu",
            success: false,
            artifacts: &["target/a.spv".into()],
            diagnostics: &[diagnostic],
            timing_ms: &[("parse".into(), 0.5), ("emit".into(), f64::NAN)],
            data: None,
        };
        let text = report.json(&sources);
        assert!(!text.contains('\n'));
        let value: Value = serde_json::from_str(&text).expect("valid JSON");
        check_sorted(&value);
        assert_eq!(text, value.to_string(), "no spaces, same order");
        assert!(
            text.starts_with(r#"{"artifacts":["target/a.spv"],"command":"build","diagnostics":[{"#)
        );
        assert!(text.ends_with(&format!(
            r#""graphs":{{}},"llm_budget":null,"magpie_version":"{}","success":false,"target":"x86_64-unknown-linux-gnu","timing_ms":{{"emit":null,"parse":0.5}}}}"#,
            env!("CARGO_PKG_VERSION")
        )));
    }

    #[test]
    fn events_are_one_a_line() {
        let (diagnostic, sources) = sample();
        let report = Report {
            command: "check",
            target: "spv",
            success: true,
            artifacts: &["a".into(), "b".into()],
            diagnostics: &[diagnostic.clone(), diagnostic],
            timing_ms: &[],
            data: None,
        };
        let text = report.json_lines(&sources);
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("valid JSON")).collect();
        events.iter().for_each(check_sorted);
        let kinds: Vec<&str> =
            events.iter().map(|event| event["event"].as_str().expect("a string")).collect();
        assert_eq!(kinds, ["diagnostic", "diagnostic", "artifact", "artifact", "finish"]);
        assert_eq!(events[0]["diagnostic"]["code"], "MPT2014");
        assert_eq!(events[4]["success"], true);
    }

    #[test]
    fn data_has_a_key_of_its_own() {
        let data = json!([{"name": "cpu"}]);
        let report = Report {
            command: "devices",
            target: "",
            success: true,
            artifacts: &[],
            diagnostics: &[],
            timing_ms: &[],
            data: Some(("devices", &data)),
        };
        let sources = SourceMap::new();
        let object: Value = serde_json::from_str(&report.json(&sources)).expect("valid JSON");
        check_sorted(&object);
        assert_eq!(object["devices"], data);
        let lines = report.json_lines(&sources);
        assert!(lines.starts_with("{\"devices\":[{\"name\":\"cpu\"}],\"event\":\"data\"}\n"));
    }
}
