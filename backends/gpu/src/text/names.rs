//! [`Names`]: identifiers that are not taken.

use rustc_hash::FxHashSet;

/// The identifiers of a kernel that come from its source.
#[derive(Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
}

impl Names {
    /// An identifier that looks like `source` and is neither taken, nor a word of the language, nor
    /// of the form `v1` that values without a name have. It is taken from then on.
    pub(super) fn take(&mut self, source: &str, is_reserved: impl Fn(&str) -> bool) -> String {
        let mut name: String =
            source.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !starts_well || is_number_of_value(&name) || is_reserved(&name) || name.contains("__") {
            // `_` alone and two underscores in a row mean something to WGSL, C and C++.
            name = format!("p_{}", name.replace('_', "").to_ascii_lowercase());
        }
        let mut numbered = name.clone();
        let mut n = 2;
        while !self.taken.insert(numbered.clone()) {
            numbered = format!("{name}_{n}");
            n += 1;
        }
        numbered
    }
}

fn is_number_of_value(name: &str) -> bool {
    name.strip_prefix('v').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_of_their_own() {
        let mut names = Names::default();
        let mut take = |source: &str| names.take(source, |word| word == "loop");
        for (source, name) in [
            ("x", "x"),
            ("x", "x_2"),
            ("x", "x_3"),
            ("v12", "p_v12"),
            ("v", "p_v"),
            ("v1a", "v1a"),
            ("loop", "p_loop"),
            ("_", "p_"),
            ("9", "p_9"),
            ("a__b", "p_ab"),
            ("größe", "p_gre"),
        ] {
            assert_eq!(take(source), name, "{source}");
        }
    }
}
