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
        let mask = self.table.len().checked_sub(1)?;
        let mut at = tag as usize & mask;
        loop {
            let slot = self.table[at];
            if slot.entry == FREE {
                return None;
            }
            let entry = slot.entry as usize;
            // SAFETY: a slot in use names a live entry.
            if slot.tag == tag && unsafe { self.eq.same_key(self.key_at(entry), key) } {
                return Some((at, entry));
            }
            at = (at + 1) & mask;
        }
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
        let tag = self.tag_for(key);
        // SAFETY: the caller's key is live.
        if let Some((_, entry)) = unsafe { self.find(tag, key) } {
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
        let entry = self.used;
        self.set_head(entry, tag, true);
        // SAFETY: the entry is below the capacity and not in use.
        unsafe {
            element::copy(self.key_at(entry), key, self.key.size as usize);
            element::copy(self.value_at(entry), value, self.value.size as usize);
        }
        self.used += 1;
        self.live += 1;
        self.insert_slot(tag, entry);
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
        match map.find(map.tag_for(key), key) {
            Some((_, entry)) => map.value_at(entry),
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
mod tests {
    use super::*;
    use crate::testing::without_leaks;
    use crate::typeinfo::TypeInfos;
    use magpie_types::{TypeCtx, TypeId};
    use proptest::prelude::*;

    fn info_of(ty: TypeId) -> &'static MpRtTypeInfo {
        TypeInfos::new(&TypeCtx::new()).for_value(ty)
    }

    /// A map whose key class is that of the key type.
    fn new_map(key: TypeId, value: TypeId) -> *mut MpRtHeader {
        // SAFETY: the class fits the key.
        unsafe { mp_rt_map_new(info_of(key), info_of(value), key.0.into(), key.0.into()) }
    }

    fn address<T>(value: &T) -> *const u8 {
        ptr::from_ref(value).cast()
    }

    /// # Safety
    /// `map` is a live map of `K` to `V`; both are without handles.
    unsafe fn get<K, V: Copy>(map: *const MpRtHeader, key: K) -> Option<V> {
        // SAFETY: forwarded from the caller.
        unsafe { mp_rt_map_get(map, address(&key)).cast::<V>().as_ref().copied() }
    }

    /// # Safety
    /// As [`get`].
    unsafe fn delete<K, V: Copy + Default>(map: *mut MpRtHeader, key: K) -> Option<V> {
        let mut out = V::default();
        // SAFETY: forwarded from the caller.
        unsafe { mp_rt_map_delete(map, address(&key), ptr::from_mut(&mut out).cast()) }
            .then_some(out)
    }

    /// # Safety
    /// `arr` is an owned array of `Str`s.
    unsafe fn texts(arr: *mut MpRtHeader) -> Vec<String> {
        // SAFETY: forwarded from the caller.
        unsafe {
            let texts =
                array::handles(arr).iter().map(|&s| string::as_str(s).to_string()).collect();
            object::release(arr);
            texts
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(String, String),
        Get(String),
        Delete(String),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let key = || "[a-e]{0,3}";
        let step = prop_oneof![
            4 => (key(), ".{0,4}").prop_map(|(key, value)| Step::Set(key, value)),
            1 => key().prop_map(Step::Get),
            3 => key().prop_map(Step::Delete),
        ];
        prop::collection::vec(step, 0..400)
    }

    proptest! {
        /// The model is a list of pairs, searched from the front.
        #[test]
        fn agrees_with_a_list_of_pairs(steps in steps()) {
            without_leaks(|| {
                let map = new_map(fixed::STR, fixed::STR);
                let mut model: Vec<(String, String)> = Vec::new();
                for step in steps {
                    // SAFETY: the map holds strings; keys and values are live or given away.
                    unsafe { check_step(map, &mut model, step) };
                }
                let (keys, values): (Vec<_>, Vec<_>) = model.into_iter().unzip();
                // SAFETY: the map is ours.
                unsafe {
                    assert_eq!(texts(mp_rt_map_keys(map)), keys);
                    assert_eq!(texts(mp_rt_map_values(map)), values);
                    object::release(map);
                }
            });
        }
    }

    unsafe fn check_step(map: *mut MpRtHeader, model: &mut Vec<(String, String)>, step: Step) {
        let position =
            |model: &[(String, String)], key: &str| model.iter().position(|e| e.0 == key);
        // SAFETY: the caller passes a live map of strings.
        unsafe {
            match step {
                Step::Set(key, value) => {
                    let handles = (string::new_str(&key), string::new_str(&value));
                    mp_rt_map_set(map, address(&handles.0), address(&handles.1));
                    match position(model, &key) {
                        Some(at) => model[at].1 = value,
                        None => model.push((key, value)),
                    }
                }
                Step::Get(key) => {
                    let handle = string::new_str(&key);
                    let found: Option<*mut MpRtHeader> = get(map, handle);
                    let expected = position(model, &key).map(|at| &*model[at].1);
                    assert_eq!(found.map(|s| string::as_str(s)), expected);
                    object::release(handle);
                }
                Step::Delete(key) => {
                    let handle = string::new_str(&key);
                    let mut out = ptr::dangling_mut::<MpRtHeader>();
                    let found =
                        mp_rt_map_delete(map, address(&handle), ptr::from_mut(&mut out).cast());
                    match position(model, &key) {
                        Some(at) => {
                            assert!(found);
                            assert_eq!(string::as_str(out), model.remove(at).1);
                        }
                        None => assert!(!found && out.is_null()),
                    }
                    object::release(out);
                    object::release(handle);
                }
            }
            assert_eq!(mp_rt_map_len(map), model.len() as u64);
        }
    }

    #[test]
    fn growth_and_shrinking_keep_order_and_content() {
        without_leaks(|| {
            let map = new_map(fixed::I64, fixed::I32);
            // SAFETY: the map holds `i64` and `i32`.
            unsafe {
                for key in 0..10_000i64 {
                    mp_rt_map_set(map, address(&(key << 40)), address(&(key as i32)));
                }
                for key in (0..10_000i64).filter(|key| key % 100 != 7) {
                    assert_eq!(delete(map, key << 40), Some(key as i32));
                }
                assert_eq!(mp_rt_map_len(map), 100);
                assert!(MAP.get(map).cap < 1000, "deleted entries stay forever");
                let keys = mp_rt_map_keys(map);
                let expected: Vec<u8> =
                    (0..100i64).flat_map(|i| ((i * 100 + 7) << 40).to_ne_bytes()).collect();
                assert_eq!(array::bytes(keys), expected);
                assert_eq!(get(map, 907i64 << 40), Some(907i32));
                assert_eq!(get(map, 908i64 << 40), None::<i32>);
                object::release(keys);
                object::release(map);
            }
        });
    }

    #[test]
    fn a_queue_of_constant_length_does_not_grow() {
        let map = new_map(fixed::U64, fixed::U64);
        // SAFETY: the map holds `u64`s.
        unsafe {
            for i in 0..100_000u64 {
                mp_rt_map_set(map, address(&i), address(&i));
                if i >= 10 {
                    assert_eq!(delete(map, i - 10), Some(i - 10));
                }
            }
            assert!(MAP.get(map).cap < 100);
            object::release(map);
        }
    }

    #[test]
    fn float_keys_are_compared_by_value() {
        let map = new_map(fixed::F64, fixed::U8);
        // SAFETY: the map holds `f64` and `u8`.
        unsafe {
            mp_rt_map_set(map, address(&0.0f64), address(&1u8));
            mp_rt_map_set(map, address(&f64::NAN), address(&2u8));
            mp_rt_map_set(map, address(&-f64::NAN), address(&3u8));
            assert_eq!(get(map, -0.0f64), Some(1u8));
            assert_eq!(get(map, f64::NAN), Some(3u8));
            assert_eq!(mp_rt_map_len(map), 2);
            object::release(map);
        }
    }

    #[test]
    fn functions_of_the_program_compare_keys() {
        unsafe extern "C" fn hash(key: *const u8) -> u64 {
            // Deliberately bad: everything collides with half of everything.
            // SAFETY: keys are `i32`s.
            unsafe { key.cast::<i32>().read().rem_euclid(2) as u64 }
        }
        unsafe extern "C" fn eq(a: *const u8, b: *const u8) -> bool {
            // SAFETY: keys are `i32`s.
            unsafe { a.cast::<i32>().read() == b.cast::<i32>().read() }
        }
        let (hash, eq) = (hash as HashFn as usize as u64, eq as EqFn as usize as u64);
        // SAFETY: the functions fit the keys.
        unsafe {
            let map = mp_rt_map_new(info_of(fixed::I32), info_of(fixed::I32), hash, eq);
            for key in 0..300i32 {
                mp_rt_map_set(map, address(&key), address(&(key * key)));
            }
            for key in (0..300i32).step_by(3) {
                assert_eq!(delete(map, key), Some(key * key));
            }
            for key in 0..300i32 {
                assert_eq!(get(map, key), (key % 3 != 0).then_some(key * key));
            }
            object::release(map);
        }
    }

    #[test]
    fn maps_of_the_runtime() {
        without_leaks(|| {
            let numbers = new_str_f64_map([("occupancy", 0.5), ("b", 1.0), ("occupancy", 0.75)]);
            let texts = new_str_str_map([("kernel", "@add"), ("device", "cpu")]);
            // SAFETY: the maps are live until released.
            unsafe {
                assert_eq!(mp_rt_map_len(numbers), 2);
                let key = string::new_str("occupancy");
                assert_eq!(get(numbers, key), Some(0.75f64));
                let entries: Vec<_> = str_str_entries(texts).collect();
                assert_eq!(entries, [("kernel", "@add"), ("device", "cpu")]);
                for obj in [key, numbers, texts] {
                    object::release(obj);
                }
            }
        });
    }
}
