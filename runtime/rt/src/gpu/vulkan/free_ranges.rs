//! Which parts of a block of memory are free.
//!
//! Best fit: an allocation takes the smallest free range that is large enough, and a freed range
//! joins its neighbours at once. Offsets and sizes are multiples of one granule, so every
//! allocation is aligned to it and no alignment gaps arise.

use std::collections::{BTreeMap, BTreeSet};

/// The free ranges of a block.
#[derive(Clone, Debug)]
pub(super) struct FreeRanges {
    size: u64,
    granule: u64,
    /// Offset → size.
    by_offset: BTreeMap<u64, u64>,
    /// The same as (size, offset).
    by_size: BTreeSet<(u64, u64)>,
}

impl FreeRanges {
    /// A block of `size` bytes, all free. `granule` is a power of two.
    pub(super) fn new(size: u64, granule: u64) -> FreeRanges {
        let size = size / granule * granule;
        let mut ranges =
            FreeRanges { size, granule, by_offset: BTreeMap::new(), by_size: BTreeSet::new() };
        if size > 0 {
            ranges.insert(0, size);
        }
        ranges
    }

    fn insert(&mut self, offset: u64, size: u64) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: u64, size: u64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }

    /// What an allocation of `bytes` bytes takes from a block; `None` when no block can have it.
    pub(super) fn rounded(bytes: u64, granule: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(granule)
    }

    /// Takes `bytes` bytes and gives their offset.
    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let bytes = FreeRanges::rounded(bytes, self.granule)?;
        let &(size, offset) = self.by_size.range((bytes, 0)..).next()?;
        self.remove(offset, size);
        if size > bytes {
            self.insert(offset + bytes, size - bytes);
        }
        Some(offset)
    }

    /// Gives back what [`FreeRanges::allocate`] took for the same number of bytes.
    pub(super) fn free(&mut self, offset: u64, bytes: u64) {
        let Some(bytes) = FreeRanges::rounded(bytes, self.granule) else { return };
        let (mut start, mut end) = (offset, offset + bytes);
        let before = self.by_offset.range(..offset).next_back().map(|(&o, &s)| (o, s));
        if let Some((o, s)) = before
            && o + s == offset
        {
            self.remove(o, s);
            start = o;
        }
        let after = self.by_offset.get(&end).copied();
        if let Some(s) = after {
            self.remove(end, s);
            end += s;
        }
        self.insert(start, end - start);
    }

    /// Whether nothing is allocated.
    pub(super) fn is_all_free(&self) -> bool {
        self.by_offset.get(&0) == Some(&self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRANULE: u64 = 16;
    const SIZE: u64 = 64 * GRANULE;

    #[derive(Clone, Debug)]
    enum Step {
        Allocate(u64),
        Free(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..300u64).prop_map(Step::Allocate),
            2 => any::<prop::sample::Index>().prop_map(Step::Free),
        ]
    }

    /// The longest run of free granules in a map of the block.
    fn longest_free(map: &[bool]) -> usize {
        map.split(|&used| used).map(<[bool]>::len).max().unwrap_or(0)
    }

    proptest! {
        /// Compared with a map of the granules.
        #[test]
        fn behaves_like_a_map_of_the_block(steps in prop::collection::vec(step(), 0..200)) {
            let mut ranges = FreeRanges::new(SIZE + 5, GRANULE);
            let mut map = [false; 64];
            let mut live: Vec<(u64, u64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Allocate(bytes) => {
                        let granules = bytes.max(1).div_ceil(GRANULE) as usize;
                        let fits = longest_free(&map) >= granules;
                        let offset = ranges.allocate(bytes);
                        prop_assert_eq!(offset.is_some(), fits);
                        let Some(offset) = offset else { continue };
                        prop_assert_eq!(offset % GRANULE, 0);
                        let first = (offset / GRANULE) as usize;
                        for used in &mut map[first..first + granules] {
                            prop_assert!(!std::mem::replace(used, true), "overlap");
                        }
                        live.push((offset, bytes));
                    }
                    Step::Free(which) if !live.is_empty() => {
                        let (offset, bytes) = live.swap_remove(which.index(live.len()));
                        ranges.free(offset, bytes);
                        let first = (offset / GRANULE) as usize;
                        map[first..first + bytes.max(1).div_ceil(GRANULE) as usize].fill(false);
                    }
                    Step::Free(_) => {}
                }
                prop_assert_eq!(ranges.is_all_free(), live.is_empty());
                // No two free ranges touch, so the number of ranges is that of the map.
                let runs = map.split(|&used| used).filter(|run| !run.is_empty()).count();
                prop_assert_eq!(ranges.by_offset.len(), runs);
                prop_assert_eq!(ranges.by_size.len(), runs);
            }
        }
    }

    #[test]
    fn extremes() {
        assert_eq!(FreeRanges::new(GRANULE - 1, GRANULE).allocate(1), None);
        let mut ranges = FreeRanges::new(SIZE, GRANULE);
        assert_eq!(ranges.allocate(u64::MAX), None);
        assert_eq!(ranges.allocate(SIZE + 1), None);
        assert_eq!(ranges.allocate(SIZE), Some(0));
        assert_eq!(ranges.allocate(0), None);
        ranges.free(0, SIZE);
        assert!(ranges.is_all_free());
    }
}
