//! An open-addressing index from hashes to dense ids, for tables that own their entries elsewhere.
//!
//! The interner and the type table keep their entries in flat pools; a general map would store
//! every key a second time.

const EMPTY: Slot = Slot { hash: 0, id: u32::MAX };
const MIN_SLOTS: usize = 64;

/// Maps hashes to ids `0, 1, 2 …`, given out in the order of [`HashIndex::insert`].
#[derive(Clone, Debug, Default)]
pub(crate) struct HashIndex {
    /// Placed by linear probing; the length is a power of two, at most half of it used.
    slots: Vec<Slot>,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    id: u32,
}

impl HashIndex {
    /// The id with this hash for which `is_same` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == EMPTY.id {
                return None;
            }
            if slot.hash == hash && is_same(slot.id) {
                return Some(slot.id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Gives out the next id for an entry that [`HashIndex::find`] did not find.
    pub(crate) fn insert(&mut self, hash: u32) -> u32 {
        let id = self.len;
        self.len += 1;
        if self.slots.len() < 2 * self.len as usize {
            self.grow();
        }
        self.place(Slot { hash, id });
        id
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.slots[at].id != EMPTY.id {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let slots = vec![EMPTY; (4 * self.len as usize).next_power_of_two().max(MIN_SLOTS)];
        for slot in std::mem::replace(&mut self.slots, slots) {
            if slot.id != EMPTY.id {
                self.place(slot);
            }
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
