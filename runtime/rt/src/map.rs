//! `Map<K, V>`: a hash map that keeps the order of insertion, also over deletions.
//!
//! Entries lie in a dense array in insertion order; a deleted one stays behind, marked, until the
//! next rebuild. A table of (hash, entry number) slots with linear probing finds them. Every
//! rebuild is paid for by as many insertions or deletions as it has entries, so all operations
//! take constant time on average.

use crate::array;
use crate::element::{self, EqFn, HashFn, Operation};
use crate::memory::{self, AllocError, array_layout, or_die};
use crate::native::NativeType;
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::string;
use crate::typeinfo::{self, MpRtTypeInfo};
use magpie_types::abi::ScalarClass;
use magpie_types::{fixed, place};
use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

static MAP: NativeType<Map> = NativeType::new(fixed::MAP, c"Map");

/// The payload of a map.
struct Map {
    key: &'static MpRtTypeInfo,
    value: &'static MpRtTypeInfo,
    hash: Operation<HashFn>,
    eq: Operation<EqFn>,
    /// `cap` entries, of which the first `used` hold a tag; see [`EntryLayout`].
    entries: NonNull<u8>,
    layout: EntryLayout,
    cap: usize,
    /// Entries in use, deleted ones included.
    used: usize,
    /// Entries that are not deleted.
    live: usize,
    /// A power of two of slots, at least a quarter of them free; empty while `cap` is 0.
    table: Vec<Slot>,
    /// The entry that was asked for last: programs ask whether a key exists, read its value and
    /// replace it. It is only a guess, which is checked.
    recent: AtomicUsize,
}

// SAFETY: keys and values are plain data and counted handles, which any thread may use; changing
// a map takes exclusive access by the contract of the C ABI.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

/// Where the parts of an entry lie: its tag (`u32`), whether it is live (`u32`), key, value.
#[derive(Clone, Copy)]
struct EntryLayout {
    key: usize,
    value: usize,
    stride: usize,
    align: usize,
}

impl EntryLayout {
    fn new(key: &MpRtTypeInfo, value: &MpRtTypeInfo) -> EntryLayout {
        let of = |info: &MpRtTypeInfo| magpie_types::Layout { size: info.size, align: info.align };
        let head = magpie_types::Layout { size: 8, align: 4 };
        let (offsets, whole) = place([head, of(key), of(value)]);
        EntryLayout {
            key: offsets[1] as usize,
            value: offsets[2] as usize,
            stride: whole.size as usize,
            align: whole.align as usize,
        }
    }
}

/// A place of the hash table.
#[derive(Clone, Copy)]
struct Slot {
    /// The lower half of the key's mixed hash; its low bits are the home position.
    tag: u32,
    /// The entry number, or [`FREE`].
    entry: u32,
}

const FREE: u32 = u32::MAX;

/// Spreads the bits of a hash: user functions and small integers leave most of them zero.
fn tag_of(hash: u64) -> u32 {
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32) as u32
}

impl Map {
    fn new(
        key: &'static MpRtTypeInfo,
        value: &'static MpRtTypeInfo,
        hash: Operation<HashFn>,
        eq: Operation<EqFn>,
    ) -> Map {
        Map {
            key,
            value,
            hash,
            eq,
            entries: NonNull::dangling(),
            layout: EntryLayout::new(key, value),
            cap: 0,
            used: 0,
            live: 0,
            table: Vec::new(),
            recent: AtomicUsize::new(0),
        }
    }

    fn entry(&self, index: usize) -> *mut u8 {
        self.entries.as_ptr().wrapping_add(index * self.layout.stride)
    }

    fn key_at(&self, index: usize) -> *mut u8 {
        self.entry(index).wrapping_add(self.layout.key)
    }

    fn value_at(&self, index: usize) -> *mut u8 {
        self.entry(index).wrapping_add(self.layout.value)
    }

    /// Tag of an entry, `None` when it was deleted.
    fn tag_at(&self, index: usize) -> Option<u32> {
        debug_assert!(index < self.used);
        // SAFETY: entries below `used` start with tag and live word.
        let [tag, live] = unsafe { self.entry(index).cast::<[u32; 2]>().read() };
        (live != 0).then_some(tag)
    }

    fn set_head(&mut self, index: usize, tag: u32, live: bool) {
        debug_assert!(index < self.cap);
        // SAFETY: the index is below the capacity, and an entry starts with two words.
        unsafe { self.entry(index).cast::<[u32; 2]>().write([tag, live as u32]) }
    }

    /// Numbers of the live entries, in insertion order.
    fn live_entries(&self) -> impl Iterator<Item = usize> {
        (0..self.used).filter(|&i| self.tag_at(i).is_some())
    }

    fn memory_layout(&self, cap: usize) -> Result<Layout, AllocError> {
        array_layout(cap, self.layout.stride, self.layout.align)
    }

    fn tag_for(&self, key: *const u8) -> u32 {
        // SAFETY: the callers of map operations pass keys of the map's type.
        tag_of(unsafe { self.hash.hash(key) })
    }

    /// The slot and the entry of a key.
    ///
    /// # Safety
    /// `key` is the address of a live key.
    unsafe fn find(&self, tag: u32, key: *const u8) -> Option<(usize, usize)> {
        // SAFETY: a slot in use names a live entry.
        self.find_where(tag, |entry| unsafe { self.eq.same_key(self.key_at(entry), key) })
    }

    /// The slot and the entry of a key with this tag, told from others by a function.
    #[inline]
    fn find_where(&self, tag: u32, is_key: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
        let mask = self.table.len().checked_sub(1)?;
        let mut at = tag as usize & mask;
        loop {
            let slot = self.table[at & mask];
            if slot.entry == FREE {
                return None;
            }
            let entry = slot.entry as usize;
            if slot.tag == tag && is_key(entry) {
                return Some((at, entry));
            }
            at = (at + 1) & mask;
        }
    }

    /// The entry of a key.
    ///
    /// # Safety
    /// `key` is the address of a live key.
    unsafe fn find_entry(&self, key: *const u8) -> Option<usize> {
        let recent = self.recent.load(Ordering::Relaxed);
        let is_live = recent < self.used && self.tag_at(recent).is_some();
        let at_recent = self.key_at(recent);
        // SAFETY: forwarded from the caller; what `recent` names is looked at when it is live.
        let found = unsafe {
            match self.eq {
                Operation::Class(ScalarClass::Str) => {
                    let text = |at: *const u8| string::as_str(at.cast::<*mut MpRtHeader>().read());
                    let wanted = text(key);
                    if is_live && string::equal(text(at_recent), wanted) {
                        return Some(recent);
                    }
                    let tag = tag_of(string::hash(wanted));
                    self.find_where(tag, |entry| string::equal(text(self.key_at(entry)), wanted))?
                }
                Operation::Class(ScalarClass::I64 | ScalarClass::U64) => {
                    let number = |at: *const u8| at.cast::<u64>().read();
                    let wanted = number(key);
                    if is_live && number(at_recent) == wanted {
                        return Some(recent);
                    }
                    self.find_where(tag_of(wanted), |entry| number(self.key_at(entry)) == wanted)?
                }
                Operation::Class(_) | Operation::Function(_) => {
                    self.find(self.tag_for(key), key)?
                }
            }
        };
        self.recent.store(found.1, Ordering::Relaxed);
        Some(found.1)
    }

    fn insert_slot(&mut self, tag: u32, entry: usize) {
        let mask = self.table.len() - 1;
        let mut at = tag as usize & mask;
        while self.table[at].entry != FREE {
            at = (at + 1) & mask;
        }
        self.table[at] = Slot { tag, entry: entry as u32 };
    }

    /// Frees a slot and closes the gap: slots behind it that were pushed away from home move up.
    fn remove_slot(&mut self, slot: usize) {
        let mask = self.table.len() - 1;
        let (mut gap, mut at) = (slot, slot);
        loop {
            at = (at + 1) & mask;
            let Slot { tag, entry } = self.table[at];
            if entry == FREE {
                break;
            }
            let from_home = at.wrapping_sub(tag as usize) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.table[gap] = self.table[at];
                gap = at;
            }
        }
        self.table[gap].entry = FREE;
    }

    /// A capacity with room for as many new entries as there are live ones.
    fn roomy_cap(&self) -> usize {
        self.live.saturating_mul(2).max(6)
    }

    /// Changes the capacity to `cap`, forgets deleted entries and makes a new table. On failure the
    /// map is as it was.
    fn rebuild(&mut self, cap: usize) -> Result<(), AllocError> {
        debug_assert!(cap >= self.live);
        if cap >= FREE as usize {
            return Err(AllocError { bytes: None });
        }
        let slots = (cap + cap / 3 + 1).next_power_of_two();
        let mut table = Vec::new();
        let bytes = slots.checked_mul(size_of::<Slot>());
        table.try_reserve_exact(slots).map_err(|_| AllocError { bytes })?;
        table.resize(slots, Slot { tag: 0, entry: FREE });
        self.move_entries(cap)?;
        self.table = table;
        for i in 0..self.used {
            if let Some(tag) = self.tag_at(i) {
                self.insert_slot(tag, i);
            }
        }
        Ok(())
    }

    /// Moves the live entries to memory for `cap` entries, without gaps.
    fn move_entries(&mut self, cap: usize) -> Result<(), AllocError> {
        let (old, new) = (self.memory_layout(self.cap)?, self.memory_layout(cap)?);
        if self.used == self.live {
            // SAFETY: the old memory was allocated with this layout.
            self.entries = unsafe { memory::reallocate(self.entries, old, new)? };
        } else {
            let entries = memory::allocate(new)?;
            let stride = self.layout.stride;
            for (to, from) in self.live_entries().enumerate() {
                // SAFETY: both are entries of their memory; the new one has room for all live ones.
                unsafe {
                    let to = entries.as_ptr().add(to * stride);
                    to.copy_from_nonoverlapping(self.entry(from), stride);
                }
            }
            // SAFETY: as above, and all live entries have moved.
            unsafe { memory::free(self.entries, old) };
            self.entries = entries;
            self.used = self.live;
        }
        self.cap = cap;
        Ok(())
    }

    /// Moves key and value in.
    ///
    /// # Safety
    /// Both are addresses of values of the map's types whose counts the caller gives up.
    unsafe fn set(&mut self, key: *const u8, value: *const u8) {
        // SAFETY: the caller's key is live.
        if let Some(entry) = unsafe { self.find_entry(key) } {
            let place = self.value_at(entry);
            // SAFETY: the caller gives up the new key, and the map its old value.
            unsafe {
                object::release_value(self.key, key);
                object::release_value(self.value, place);
                element::copy(place, value, self.value.size as usize);
            }
            return;
        }
        if self.used == self.cap {
            or_die(self.rebuild(self.roomy_cap()));
        }
        let (entry, tag) = (self.used, self.tag_for(key));
        self.set_head(entry, tag, true);
        // SAFETY: the entry is below the capacity and not in use.
        unsafe {
            element::copy(self.key_at(entry), key, self.key.size as usize);
            element::copy(self.value_at(entry), value, self.value.size as usize);
        }
        self.used += 1;
        self.live += 1;
        self.insert_slot(tag, entry);
        self.recent.store(entry, Ordering::Relaxed);
    }

    /// Moves the value of a key to `out`.
    ///
    /// # Safety
    /// `key` is the address of a live key, `out` storage for a value.
    unsafe fn delete(&mut self, key: *const u8, out: *mut u8) -> bool {
        let tag = self.tag_for(key);
        // SAFETY: forwarded from the caller.
        let Some((slot, entry)) = (unsafe { self.find(tag, key) }) else { return false };
        self.remove_slot(slot);
        self.set_head(entry, tag, false);
        self.live -= 1;
        // SAFETY: the entry was live; it gives up its value and its key.
        unsafe {
            element::copy(out, self.value_at(entry), self.value.size as usize);
            object::release_value(self.key, self.key_at(entry));
        }
        if self.used - self.live > self.live + 16 {
            // It only saves memory and time: where there is no memory for it, things stay.
            let _ = self.rebuild(self.roomy_cap());
        }
        true
    }

    /// A new array of one part of every live entry, handles retained.
    fn collect(
        &self,
        info: &'static MpRtTypeInfo,
        part: fn(&Map, usize) -> *mut u8,
    ) -> *mut MpRtHeader {
        let addresses = self.live_entries().map(|i| part(self, i).cast_const());
        // SAFETY: the addresses are live keys or values, which `info` describes.
        unsafe { or_die(array::try_collect(info, self.live, addresses)) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        for i in self.live_entries() {
            // SAFETY: the map owns the counts of its live entries.
            unsafe {
                object::release_value(self.key, self.key_at(i));
                object::release_value(self.value, self.value_at(i));
            }
        }
        if let Ok(layout) = self.memory_layout(self.cap) {
            // SAFETY: the entries were allocated with this layout.
            unsafe { memory::free(self.entries, layout) }
        }
    }
}

/// A map with the same entries, handles retained.
///
/// # Safety
/// `map` is a live map.
pub(crate) unsafe fn copy(map: *const MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    let old = unsafe { object::payload::<Map>(map) };
    let mut new = Map::new(old.key, old.value, old.hash, old.eq);
    or_die(new.rebuild(old.roomy_cap()));
    for i in old.live_entries() {
        let (key, value) = (old.key_at(i), old.value_at(i));
        // SAFETY: both are live; the copies hold counts of their own.
        unsafe {
            object::retain_value(old.key, key);
            object::retain_value(old.value, value);
            new.set(key, value);
        }
    }
    MAP.alloc(new)
}

/// An empty `Map<Str, V>`, `value` describing a `V`.
fn new_str_map(value: &'static MpRtTypeInfo) -> Map {
    let class = ScalarClass::Str;
    Map::new(&typeinfo::STR, value, Operation::Class(class), Operation::Class(class))
}

/// A `Map<Str, f64>` of the given entries; of equal keys the last one counts.
pub fn new_str_f64_map<K: AsRef<str>>(
    entries: impl IntoIterator<Item = (K, f64)>,
) -> *mut MpRtHeader {
    let mut map = new_str_map(&typeinfo::F64);
    for (key, value) in entries {
        let key = string::new_str(key.as_ref());
        // SAFETY: a handle of a new `Str` and an `f64` are what the map holds.
        unsafe { map.set(ptr::from_ref(&key).cast(), ptr::from_ref(&value).cast()) };
    }
    MAP.alloc(map)
}

/// A `Map<Str, Str>` of the given entries; of equal keys the last one counts.
pub fn new_str_str_map<K: AsRef<str>, V: AsRef<str>>(
    entries: impl IntoIterator<Item = (K, V)>,
) -> *mut MpRtHeader {
    let mut map = new_str_map(&typeinfo::STR);
    for (key, value) in entries {
        let (key, value) = (string::new_str(key.as_ref()), string::new_str(value.as_ref()));
        // SAFETY: handles of new `Str`s are what the map holds.
        unsafe { map.set(ptr::from_ref(&key).cast(), ptr::from_ref(&value).cast()) };
    }
    MAP.alloc(map)
}

/// The entries of a `Map<Str, Str>`, in insertion order.
///
/// # Safety
/// `map` is a live `Map<Str, Str>` that nobody changes during `'a`.
pub unsafe fn str_str_entries<'a>(
    map: *const MpRtHeader,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    // SAFETY: forwarded from the caller; keys and values are handles of live `Str`s.
    unsafe {
        let map: &'a Map = MAP.get(map);
        let text = |address: *mut u8| string::as_str(address.cast::<*mut MpRtHeader>().read());
        map.live_entries().map(move |i| (text(map.key_at(i)), text(map.value_at(i))))
    }
}

/// See [`magpie_types::abi::RtFn::MapNew`].
///
/// # Safety
/// `key` and `value` describe elements and live as long as the process; `hash` and `eq` are the
/// class of the key or addresses of functions for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_new(
    key: *const MpRtTypeInfo,
    value: *const MpRtTypeInfo,
    hash: u64,
    eq: u64,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        MAP.alloc(Map::new(&*key, &*value, Operation::from_word(hash), Operation::from_word(eq)))
    })
}

/// See [`magpie_types::abi::RtFn::MapSet`].
///
/// # Safety
/// `map` is a live map that nobody else uses; `key` and `value` are addresses of values of its
/// types whose counts the caller gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_set(map: *mut MpRtHeader, key: *const u8, value: *const u8) {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { MAP.get_mut(map).set(key, value) })
}

/// See [`magpie_types::abi::RtFn::MapGet`].
///
/// # Safety
/// `map` is a live map, `key` the address of a live key of its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_get(map: *const MpRtHeader, key: *const u8) -> *const u8 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let map = MAP.get(map);
        match map.find_entry(key) {
            Some(entry) => map.value_at(entry),
            None => ptr::null(),
        }
    })
}

/// See [`magpie_types::abi::RtFn::MapDelete`]. Storage for a missing value is zeroed.
///
/// # Safety
/// `map` is a live map that nobody else uses, `key` the address of a live key of its type, `out`
/// storage for a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_delete(
    map: *mut MpRtHeader,
    key: *const u8,
    out: *mut u8,
) -> bool {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let map = MAP.get_mut(map);
        let found = map.delete(key, out);
        if !found {
            out.write_bytes(0, map.value.size as usize);
        }
        found
    })
}

/// See [`magpie_types::abi::RtFn::MapLen`].
///
/// # Safety
/// `map` is a live map.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_len(map: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    unsafe { MAP.get(map) }.live as u64
}

/// See [`magpie_types::abi::RtFn::MapKeys`].
///
/// # Safety
/// `map` is a live map.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_keys(map: *const MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let map = MAP.get(map);
        map.collect(map.key, Map::key_at)
    })
}

/// See [`magpie_types::abi::RtFn::MapValues`].
///
/// # Safety
/// `map` is a live map.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_map_values(map: *const MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let map = MAP.get(map);
        map.collect(map.value, Map::value_at)
    })
}

#[cfg(test)]
mod tests;
