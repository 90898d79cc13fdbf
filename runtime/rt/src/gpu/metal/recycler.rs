//! Memory that is given back, kept for the next allocation of its size.

/// Bytes that are kept at most.
const KEPT: u64 = 256 << 20;

/// Freed pieces, in the order in which they came back.
#[derive(Debug)]
pub(super) struct Recycler<T> {
    pieces: Vec<Piece<T>>,
    bytes: u64,
}

#[derive(Debug)]
struct Piece<T> {
    size: u64,
    /// Which memory it is: pieces of different kinds do not stand for each other.
    kind: u64,
    /// Newest work that uses it.
    last_use: u64,
    content: T,
}

impl<T> Recycler<T> {
    pub(super) fn new() -> Recycler<T> {
        Recycler { pieces: Vec::new(), bytes: 0 }
    }

    /// The size that an allocation gets: few different ones, at most an eighth too large.
    pub(super) fn rounded(bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1 << 12);
        let step = (bytes.checked_next_power_of_two()? / 8).max(1 << 9);
        bytes.checked_next_multiple_of(step)
    }

    /// Keeps a piece; gives back what is too much now.
    pub(super) fn put(&mut self, size: u64, kind: u64, last_use: u64, content: T) -> Vec<T> {
        self.pieces.push(Piece { size, kind, last_use, content });
        self.bytes += size;
        let mut surplus = Vec::new();
        while self.bytes > KEPT && !self.pieces.is_empty() {
            let oldest = self.pieces.remove(0);
            self.bytes -= oldest.size;
            surplus.push(oldest.content);
        }
        surplus
    }

    /// A piece of a size and kind that no work uses any more, `completed` being the newest that is
    /// done.
    pub(super) fn take(&mut self, size: u64, kind: u64, completed: u64) -> Option<T> {
        let fits = |p: &Piece<T>| p.size == size && p.kind == kind && p.last_use <= completed;
        let at = self.pieces.iter().position(fits)?;
        self.bytes -= size;
        Some(self.pieces.remove(at).content)
    }

    /// Gives back everything.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.bytes = 0;
        self.pieces.drain(..).map(|p| p.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_few_and_not_much_larger() {
        for bytes in [1, 4095, 4097, 100_000, 1 << 20, (1 << 30) + 1] {
            let size = Recycler::<()>::rounded(bytes).unwrap();
            assert!(
                size >= bytes && (bytes <= 4096 || size <= bytes + bytes / 4),
                "{bytes} {size}"
            );
            assert_eq!(Recycler::<()>::rounded(size), Some(size));
        }
        assert_eq!(Recycler::<()>::rounded(u64::MAX), None);
    }

    #[test]
    fn pieces_come_back_when_their_work_is_done() {
        let mut recycler = Recycler::new();
        assert!(recycler.put(4096, 0, 5, 'a').is_empty());
        assert!(recycler.put(4096, 0, 3, 'b').is_empty());
        assert_eq!(recycler.take(4096, 0, 2), None);
        assert_eq!(recycler.take(4096, 1, 9), None);
        assert_eq!(recycler.take(8192, 0, 9), None);
        assert_eq!(recycler.take(4096, 0, 4), Some('b'));
        assert_eq!(recycler.take(4096, 0, 5), Some('a'));
        assert_eq!(recycler.take(4096, 0, 5), None);
    }

    #[test]
    fn not_everything_is_kept() {
        let mut recycler = Recycler::new();
        assert!(recycler.put(KEPT / 2, 0, 0, 1).is_empty());
        assert!(recycler.put(KEPT / 2, 0, 0, 2).is_empty());
        assert_eq!(recycler.put(4096, 0, 0, 3), [1]);
        assert_eq!(recycler.put(2 * KEPT, 0, 0, 4), [2, 3, 4]);
        recycler.put(4096, 0, 0, 5);
        assert_eq!(recycler.drain().collect::<Vec<_>>(), [5]);
    }
}
