//! The intrinsics that a module calls: each is declared once, in the order of first use.

/// Declarations of a module.
#[derive(Default)]
pub(crate) struct Intrinsics {
    declared: Vec<String>,
}

impl Intrinsics {
    /// Notes that a function with this name, result and parameters is called.
    pub(crate) fn declare(&mut self, name: &str, result: &str, params: &str) {
        let line = format!("declare {result} @{name}({params})");
        if !self.declared.contains(&line) {
            self.declared.push(line);
        }
    }

    /// The declarations, one a line.
    pub(crate) fn text(&self) -> String {
        self.declared.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}
