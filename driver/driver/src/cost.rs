//! `magpie cost`: what each line of a Miri program costs.

use crate::frontend::{Language, load};
use crate::project::Project;
use crate::session::{Session, Stop};
use magpie_diag::Code;
use magpie_miri::Cost;
use serde_json::{Value, json};
use std::fmt::Write;

/// The lines of a program with their costs.
#[derive(Debug)]
pub struct CostList {
    /// Number, text and costs of each line.
    lines: Vec<(u32, String, Vec<Cost>)>,
}

impl CostList {
    /// The program with the classes of its lines before them.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (number, text, costs) in &self.lines {
            let mut classes: Vec<String> = costs
                .iter()
                .map(|cost| match cost.bytes {
                    Some(bytes) => format!("{} ({bytes} bytes)", cost.class.name()),
                    None => cost.class.name().to_string(),
                })
                .collect();
            classes.dedup();
            let _ = writeln!(out, "{number:>5}  {:<34}  {text}", classes.join(", "));
        }
        out
    }

    /// The lines that cost something besides host work.
    pub fn json(&self) -> Value {
        let costs = self.lines.iter().flat_map(|(line, _, costs)| {
            costs.iter().map(move |cost| {
                json!({ "bytes": cost.bytes, "class": cost.class.name(), "line": line })
            })
        });
        Value::Array(costs.collect())
    }
}

/// Finds what each line of the program costs.
///
/// # Errors
/// The program is refused, or is not written in Miri.
pub fn cost(session: &mut Session) -> Result<CostList, Stop> {
    let project = Project::find(session)?;
    if Language::of(session, &project.entry)? != Language::Miri {
        let message = format!("`{}` is no Miri program", project.entry.display());
        let help = "the costs of other languages do not show in the forms of their lines";
        return Err(session.refuse(Code::MPL0006, message, help));
    }
    let program = load(session, &project)?;
    let costs = program.miri.map(|checks| checks.costs).unwrap_or_default();
    let Some(file) = session.sources.file(program.entry) else {
        return Ok(CostList { lines: Vec::new() });
    };
    let mut lines: Vec<(u32, String, Vec<Cost>)> =
        file.text.lines().zip(1..).map(|(text, n)| (n, text.to_string(), Vec::new())).collect();
    for cost in costs.into_iter().filter(|cost| cost.span.file == program.entry) {
        let line = file.line_col(cost.span.start).line as usize;
        if let Some((_, _, costs)) = lines.get_mut(line - 1) {
            costs.push(cost);
        }
    }
    Ok(CostList { lines })
}
