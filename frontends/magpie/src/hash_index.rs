//! An open-addressing index from hashes to dense ids, for tables that own their entries elsewhere.
//!
//! The interner and the type table keep their entries in flat pools; a general map would store
//! every key a second time.

const EMPTY: u32 = u32::MAX;
const MIN_SLOTS: usize = 64;

/// Maps hashes to ids `0, 1, 2 …`, given out in the order of [`HashIndex::insert`].
#[derive(Clone, Debug, Default)]
pub(crate) struct HashIndex {
    /// Ids, placed by linear probing; the length is a power of two, at most half of it used.
    slots: Vec<u32>,
    /// The hash of each id.
    hashes: Vec<u32>,
}

impl HashIndex {
    /// The id with this hash for which `is_same` holds.
    pub(crate) fn find(&self, hash: u32, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let id = self.slots[at];
            if id == EMPTY {
                return None;
            }
            if self.hashes[id as usize] == hash && is_same(id) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Gives out the next id for an entry that [`HashIndex::find`] did not find.
    pub(crate) fn insert(&mut self, hash: u32) -> u32 {
        if self.slots.len() < 2 * (self.hashes.len() + 1) {
            self.grow();
        }
        let id = self.hashes.len() as u32;
        self.hashes.push(hash);
        self.place(id);
        id
    }

    fn place(&mut self, id: u32) {
        let mask = self.slots.len() - 1;
        let mut at = self.hashes[id as usize] as usize & mask;
        while self.slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = id;
    }

    fn grow(&mut self) {
        let slots = (4 * (self.hashes.len() + 1)).next_power_of_two().max(MIN_SLOTS);
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        for id in 0..self.hashes.len() as u32 {
            self.place(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_told_apart_and_survive_growth() {
        let entries: Vec<u32> = (0..1000).map(|i| i * 3).collect();
        let mut index = HashIndex::default();
        for (i, _) in entries.iter().enumerate() {
            assert_eq!(index.insert(i as u32 % 7), i as u32);
        }
        for (i, &entry) in entries.iter().enumerate() {
            let found = index.find(i as u32 % 7, |id| entries[id as usize] == entry);
            assert_eq!(found, Some(i as u32));
        }
        assert_eq!(index.find(3, |_| false), None);
        assert_eq!(index.find(8, |_| true), None);
    }
}
