//! Places in a ring of bytes that are free again when the batch that uses them is done.

use std::collections::VecDeque;

/// The bookkeeping of a ring. Positions grow for ever; a place is a position modulo the size.
#[derive(Debug)]
pub(crate) struct Ring {
    size: u64,
    /// Where the next reservation starts at the earliest.
    head: u64,
    /// Where the oldest reservation that is still used starts.
    tail: u64,
    /// (serial, end position): everything before the end is free when the serial has completed.
    uses: VecDeque<(u64, u64)>,
}

impl Ring {
    /// A ring of `size` bytes.
    pub(crate) fn new(size: u64) -> Ring {
        Ring { size, head: 0, tail: 0, uses: VecDeque::new() }
    }

    /// Reserves `bytes` bytes in one piece for the batch with this serial; `align` is a power of
    /// two that divides the ring's size. Serials never decrease. `None` when there is no room
    /// before older batches are done.
    pub(crate) fn reserve(&mut self, bytes: u64, align: u64, serial: u64) -> Option<u64> {
        if bytes > self.size {
            return None;
        }
        let mut start = self.head.next_multiple_of(align);
        if start % self.size + bytes > self.size {
            // No piece wraps around the end.
            start = start.next_multiple_of(self.size);
        }
        let end = start + bytes;
        if end - self.tail > self.size {
            return None;
        }
        self.head = end;
        match self.uses.back_mut() {
            Some((last, use_end)) if *last == serial => *use_end = end,
            _ => self.uses.push_back((serial, end)),
        }
        Some(start % self.size)
    }

    /// Frees what batches up to `completed` used.
    pub(crate) fn release(&mut self, completed: u64) {
        while let Some(&(serial, end)) = self.uses.front() {
            if serial > completed {
                return;
            }
            self.tail = end;
            self.uses.pop_front();
        }
        // Nothing is used: start anew, so that the next piece need not skip the end.
        self.head = 0;
        self.tail = 0;
    }

    /// The serial that must complete before anything becomes free.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.uses.front().map(|&(serial, _)| serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_do_not_wrap_and_wait_for_older_ones() {
        let mut ring = Ring::new(64);
        assert_eq!(ring.reserve(40, 4, 1), Some(0));
        assert_eq!(ring.reserve(20, 4, 2), Some(40));
        assert_eq!(ring.reserve(8, 4, 2), None, "4 bytes are left at the end");
        assert_eq!(ring.oldest(), Some(1));
        ring.release(1);
        assert_eq!(ring.reserve(8, 4, 3), Some(0));
        assert_eq!(ring.reserve(33, 4, 3), None);
        ring.release(3);
        assert_eq!(ring.reserve(64, 16, 4), Some(0));
        assert_eq!(ring.reserve(65, 1, 4), None);
    }

    proptest! {
        #[test]
        fn live_pieces_never_overlap(
            steps in prop::collection::vec((1..40u64, 0..4u32, any::<bool>()), 1..200),
        ) {
            let mut ring = Ring::new(64);
            let mut live: Vec<(u64, u64, u64)> = Vec::new();
            let mut serial = 1;
            for (bytes, align, next) in steps {
                if next {
                    serial += 1;
                }
                let align = 1 << align;
                let start = loop {
                    if let Some(start) = ring.reserve(bytes, align, serial) {
                        break start;
                    }
                    let oldest = ring.oldest().unwrap();
                    ring.release(oldest);
                    live.retain(|&(s, ..)| s > oldest);
                    serial = serial.max(oldest + 1);
                };
                prop_assert!(start % align == 0 && start + bytes <= 64);
                for &(_, other, size) in &live {
                    prop_assert!(start + bytes <= other || other + size <= start);
                }
                live.push((serial, start, bytes));
            }
        }
    }
}
