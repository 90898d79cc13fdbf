//! "Did you mean": the known word that is closest to an unknown one.

/// Words longer than this are not compared: nobody meant one of ours.
const MAX_LEN: usize = 40;

/// The candidate with the smallest edit distance to `word`, when that is small for its length.
/// The first one wins a tie.
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.len() > MAX_LEN {
        return None;
    }
    let mut limit = (word.len() / 3).max(1) + 1;
    let mut best = None;
    for candidate in candidates {
        if candidate.len().abs_diff(word.len()) >= limit {
            continue;
        }
        let distance = edit_distance(word.as_bytes(), candidate.as_bytes());
        if distance < limit {
            limit = distance;
            best = Some(candidate);
        }
    }
    best
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = last[j - 1] + (a[i - 1] != b[j - 1]) as usize;
            let mut distance = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                distance = distance.min(before[j - 2] + 1);
            }
            row.push(distance);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let distance = |a: &str, b: &str| edit_distance(a.as_bytes(), b.as_bytes());
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("i.add", "i.add"), 0);
        assert_eq!(distance("i.dad", "i.add"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggestions() {
        let words = ["i.add", "i.sub", "gpu.buffer_load", "ret"];
        assert_eq!(closest("i.ad", words), Some("i.add"));
        assert_eq!(closest("gpu.bufer_laod", words), Some("gpu.buffer_load"));
        assert_eq!(closest("rte", words), Some("ret"));
        assert_eq!(closest("frobnicate", words), None);
        assert_eq!(closest(&"x".repeat(1000), words), None);
    }
}
