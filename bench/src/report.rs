//! Results as a table and as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Measured, Race};

/// One line about where the numbers come from.
pub(crate) fn machine(threads: usize) -> String {
    format!("{} ({}), {threads} threads", processor(), std::env::consts::ARCH)
}

/// The results of a race, one line a contender, under its name.
pub(crate) fn table(race: &Race) -> String {
    let width = race.results.iter().map(|result| result.name.chars().count()).max().unwrap_or(0);
    let mut out = format!("\n{}\n", race.name);
    out.push_str(&format!(
        "  {:width$}  {:>10}  {:>10}  {:>12}  {:>8}\n",
        "",
        "median",
        "min",
        "throughput",
        format!("/ {}", race.peer),
    ));
    for result in &race.results {
        out.push_str(&format!(
            "  {:width$}  {:>10}  {:>10}  {:>12}  {:>8.2}\n",
            result.name,
            time(result.median),
            time(result.min),
            rate(race.work.amount / result.median, race.work.unit),
            result.ratio,
        ));
    }
    out
}

/// Writes all results to a file, whole or not at all.
pub(crate) fn write_json(path: &Path, races: &[Race], threads: usize) -> std::io::Result<()> {
    let partial = path.with_extension("partial");
    let text = format!("{:#}\n", json_of(races, threads));
    std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path)).inspect_err(
        |_| {
            // Nothing to remove when it could not be made.
            std::fs::remove_file(&partial).ok();
        },
    )
}

fn json_of(races: &[Race], threads: usize) -> Value {
    let result = |result: &Measured| {
        json!({
            "contender": result.name,
            "median_s": result.median,
            "min_s": result.min,
            "ratio": result.ratio,
            "samples": result.samples,
        })
    };
    let race = |race: &Race| {
        json!({
            "benchmark": race.name,
            "peer": race.peer,
            "results": race.results.iter().map(result).collect::<Vec<_>>(),
            "work": race.work.amount,
            "work_unit": race.work.unit,
        })
    };
    json!({
        "benchmarks": races.iter().map(race).collect::<Vec<_>>(),
        "processor": processor(),
        "threads": threads,
    })
}

/// Seconds with a unit that leaves a readable number.
fn time(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{:.2} {unit}", seconds * factor)
}

fn rate(per_second: f64, unit: &str) -> String {
    let (factor, prefix) = match per_second {
        r if r >= 1e9 => (1e-9, "G"),
        r if r >= 1e6 => (1e-6, "M"),
        r if r >= 1e3 => (1e-3, "k"),
        _ => (1.0, ""),
    };
    format!("{:.1} {prefix}{unit}/s", per_second * factor)
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or("unknown processor").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Work;

    fn sample() -> Race {
        let result = |name: &str, median: f64, ratio: f64| Measured {
            name: name.into(),
            median,
            min: median / 2.0,
            ratio,
            samples: 7,
        };
        Race {
            name: "saxpy",
            work: Work { amount: 8e9, unit: "B" },
            peer: "rust",
            results: vec![result("rust", 0.5, 1.0), result("magpie cpu", 2.0, 4.0)],
        }
    }

    #[test]
    fn table_lines_up() {
        let expected = "
saxpy
                  median         min    throughput    / rust
  rust         500.00 ms   250.00 ms     16.0 GB/s      1.00
  magpie cpu      2.00 s      1.00 s      4.0 GB/s      4.00
";
        assert_eq!(table(&sample()), expected);
    }

    #[test]
    fn json_is_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        write_json(&path, &[sample()], 2).unwrap();
        let value: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(value["benchmarks"][0]["results"][1]["ratio"], 4.0);
        assert_eq!(value["threads"], 2);
        assert!(write_json(&dir.path().join("none/out.json"), &[], 1).is_err());
    }

    #[test]
    fn units() {
        assert_eq!(time(1.5), "1.50 s");
        assert_eq!(time(0.0015), "1.50 ms");
        assert_eq!(time(2e-6), "2.00 us");
        assert_eq!(time(3e-9), "3.00 ns");
        assert_eq!(rate(2.5e6, "flop"), "2.5 Mflop/s");
        assert_eq!(rate(12.0, "run"), "12.0 run/s");
    }
}
