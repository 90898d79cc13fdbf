//! Events as a Chrome trace (`chrome://tracing`, Perfetto).

use serde_json::{Map, Value, json};

/// An event to export.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceEvent<'a> {
    /// What the viewer shows.
    pub name: &'a str,
    /// `gpu.launch`, `gpu.transfer`, `gpu.region` or a category of the program's own.
    pub category: &'a str,
    #[allow(missing_docs)]
    pub start_ns: u64,
    #[allow(missing_docs)]
    pub end_ns: u64,
    /// What the viewer shows for a selected event.
    pub details: Vec<(&'a str, &'a str)>,
}

/// The text of a trace file: complete events (`"ph": "X"`) with times in microseconds. Launches,
/// transfers and regions are on tracks of their own, since they overlap.
pub fn chrome_trace<'a>(events: impl Iterator<Item = TraceEvent<'a>>) -> String {
    let microseconds = |ns: u64| ns as f64 / 1000.0;
    let events: Vec<Value> = events
        .map(|event| {
            let track = match event.category {
                "gpu.launch" => 0,
                "gpu.transfer" => 1,
                "gpu.region" => 2,
                _ => 3,
            };
            let details = event.details.iter().map(|&(key, value)| (key.to_string(), json!(value)));
            json!({
                "name": event.name,
                "cat": event.category,
                "ph": "X",
                "ts": microseconds(event.start_ns),
                "dur": microseconds(event.end_ns.saturating_sub(event.start_ns)),
                "pid": 0,
                "tid": track,
                "args": details.collect::<Map<String, Value>>(),
            })
        })
        .collect();
    json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds_and_names_are_escaped() {
        let event = TraceEvent {
            name: "k \"quoted\"\n",
            category: "gpu.launch",
            start_ns: 1_000_500,
            end_ns: 1_002_000,
            details: vec![("grid", "1x2x3")],
        };
        let backwards = TraceEvent { start_ns: 5, end_ns: 1, category: "own", ..event.clone() };
        let text = chrome_trace([event, backwards].into_iter());
        let trace: Value = serde_json::from_str(&text).unwrap();
        let first = &trace["traceEvents"][0];
        assert_eq!(first["name"], "k \"quoted\"\n");
        assert_eq!((first["ts"].as_f64(), first["dur"].as_f64()), (Some(1000.5), Some(1.5)));
        assert_eq!(
            (&first["ph"], &first["pid"], &first["tid"], &first["cat"]),
            (&json!("X"), &json!(0), &json!(0), &json!("gpu.launch"))
        );
        assert_eq!(first["args"], json!({"grid": "1x2x3"}));
        assert_eq!(trace["traceEvents"][1]["dur"], json!(0.0));
    }
}
