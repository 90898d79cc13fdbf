//! Counted heap objects: header, strong and weak counts, drop and free.
//!
//! An object is dropped when its strong count reaches 0 and freed when its weak count reaches 0;
//! all strong handles together hold one weak count (language reference, section 13). Dropping uses
//! no recursion: objects that die while another is dropped wait in a list that runs through their
//! own headers, so a chain of any length needs neither stack nor memory.

use crate::live;
use crate::memory::{self, AllocError, or_die};
use crate::panic::die;
use crate::small_memory;
use crate::string;
use crate::typeinfo::{FLAG_LENGTH_PREFIXED, MpRtTypeInfo};
use magpie_types::abi::object_layout::{self, FLAG_HAD_WEAK};
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// What every heap object starts with; the payload follows.
#[repr(C)]
pub struct MpRtHeader {
    /// Number of strong handles. When dead: 0, or [`WAITING`] and the next object to drop.
    strong: AtomicU64,
    /// Number of weak handles, plus one while strong ones exist.
    weak: AtomicU64,
    /// Run-time type id.
    type_id: u32,
    /// [`object_layout::FLAG_IMMORTAL`], [`FLAG_HAD_WEAK`], [`object_layout::FLAG_ASCII`].
    flags: AtomicU32,
    /// Describes the payload; null for immortal objects.
    info: *const MpRtTypeInfo,
}

/// Size of the header in bytes.
pub const HEADER_SIZE: usize = object_layout::HEADER_SIZE as usize;

/// The largest alignment of a payload: it starts 32 bytes behind the start of the object.
const MAX_ALIGN: usize = 32;

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<MpRtHeader>() == HEADER_SIZE);
    assert!(offset_of!(MpRtHeader, strong) == object_layout::STRONG as usize);
    assert!(offset_of!(MpRtHeader, weak) == object_layout::WEAK as usize);
    assert!(offset_of!(MpRtHeader, type_id) == object_layout::TYPE_ID as usize);
    assert!(offset_of!(MpRtHeader, flags) == object_layout::FLAGS as usize);
    assert!(offset_of!(MpRtHeader, info) == object_layout::INFO as usize);
};

/// Bit of the strong count of an object in the drop list; no count or address reaches it.
const WAITING: u64 = 1 << 63;

// SAFETY: the counts and flags are atomic, the rest never changes.
unsafe impl Sync for MpRtHeader {}

impl MpRtHeader {
    /// The header of an object that is not counted.
    pub(crate) const fn immortal(type_id: u32, flags: u32) -> MpRtHeader {
        MpRtHeader {
            strong: AtomicU64::new(1),
            weak: AtomicU64::new(1),
            type_id,
            flags: AtomicU32::new(object_layout::FLAG_IMMORTAL | flags),
            info: ptr::null(),
        }
    }

    /// Run-time type id.
    pub fn type_id(&self) -> u32 {
        self.type_id
    }

    #[inline]
    fn is_immortal(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & object_layout::FLAG_IMMORTAL != 0
    }

    #[cfg(test)]
    pub(crate) fn strong_count(&self) -> u64 {
        self.strong.load(Ordering::Relaxed)
    }
}

/// Number of objects that exist now, immortal ones not counted. Exact when no other thread is
/// making or freeing one.
pub fn live_objects() -> i64 {
    live::count()
}

/// The memory layout of an object with a payload of `payload_size` bytes.
#[inline]
pub(crate) fn object_memory(payload_size: usize, align: usize) -> Result<Layout, AllocError> {
    if align > MAX_ALIGN {
        die(format_args!("error inside the runtime: objects cannot be aligned to {align}"));
    }
    let size = payload_size.checked_add(HEADER_SIZE).ok_or(AllocError { bytes: None })?;
    memory::array_layout(1, size, align.max(align_of::<MpRtHeader>()))
}

/// Turns memory of [`object_memory`] into an object with one strong count.
///
/// # Safety
/// The memory holds at least a header and the payload that `info` describes.
#[inline]
pub(crate) unsafe fn init(memory: NonNull<u8>, info: &'static MpRtTypeInfo) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { init_with_flags(memory, info, 0) }
}

/// As [`init`], with flags.
///
/// # Safety
/// As [`init`].
#[inline]
pub(crate) unsafe fn init_with_flags(
    memory: NonNull<u8>,
    info: &'static MpRtTypeInfo,
    flags: u32,
) -> *mut MpRtHeader {
    let object = memory.cast::<MpRtHeader>().as_ptr();
    let header = MpRtHeader {
        strong: AtomicU64::new(1),
        weak: AtomicU64::new(1),
        type_id: info.type_id,
        flags: AtomicU32::new(flags),
        info,
    };
    // SAFETY: the memory has room for a header and is aligned for it.
    unsafe { object.write(header) };
    live::add(1);
    object
}

/// A new object with a payload of arbitrary content and one strong count.
#[inline]
pub(crate) fn try_alloc(info: &'static MpRtTypeInfo) -> Result<*mut MpRtHeader, AllocError> {
    let layout = object_memory(info.size as usize, info.align as usize)?;
    let memory = small_memory::allocate(layout)?;
    // SAFETY: the memory was made for this info.
    Ok(unsafe { init(memory, info) })
}

/// The address of an object's payload.
#[inline]
pub fn payload_ptr(obj: *mut MpRtHeader) -> *mut u8 {
    obj.cast::<u8>().wrapping_add(HEADER_SIZE)
}

/// The payload of an object.
///
/// # Safety
/// `obj` is a live object whose payload is a `T`, and nobody writes to it during `'a`.
#[inline]
pub(crate) unsafe fn payload<'a, T>(obj: *const MpRtHeader) -> &'a T {
    // SAFETY: forwarded from the caller.
    unsafe { &*payload_ptr(obj.cast_mut()).cast::<T>() }
}

/// The payload of an object, to change it.
///
/// # Safety
/// `obj` is a live object whose payload is a `T`, and nobody else uses it during `'a`.
#[inline]
pub(crate) unsafe fn payload_mut<'a, T>(obj: *mut MpRtHeader) -> &'a mut T {
    // SAFETY: forwarded from the caller.
    unsafe { &mut *payload_ptr(obj).cast::<T>() }
}

thread_local! {
    /// See [`keep_to_this_thread`].
    static KEPT: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread uses no object that another one uses, so it counts without atomic
/// operations, which take several times as long.
pub(crate) fn keep_to_this_thread() {
    KEPT.set(true);
}

/// One more.
#[inline]
fn increment(count: &AtomicU64) {
    match KEPT.get() {
        true => count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
        false => _ = count.fetch_add(1, Ordering::Relaxed),
    }
}

/// One less; whether that was the last one. Then what other threads did before they gave up theirs
/// has happened.
#[inline]
fn decrement(count: &AtomicU64) -> bool {
    if KEPT.get() {
        let before = count.load(Ordering::Relaxed);
        count.store(before - 1, Ordering::Relaxed);
        return before == 1;
    }
    let is_last = count.fetch_sub(1, Ordering::Release) == 1;
    if is_last {
        fence(Ordering::Acquire);
    }
    is_last
}

/// One more strong count. Null does nothing.
///
/// # Safety
/// `obj` is null or a live object.
#[inline]
pub unsafe fn retain(obj: *mut MpRtHeader) {
    // SAFETY: the caller passes null or a live object.
    let Some(header) = (unsafe { obj.as_ref() }) else { return };
    if !header.is_immortal() {
        increment(&header.strong);
    }
}

/// One strong count less; drops the object at zero. Null does nothing.
///
/// # Safety
/// `obj` is null or a live object, and the caller owns a strong count of it.
#[inline]
pub unsafe fn release(obj: *mut MpRtHeader) {
    // SAFETY: the caller passes null or a live object.
    let Some(header) = (unsafe { obj.as_ref() }) else { return };
    if header.is_immortal() {
        return;
    }
    // Other threads' uses of the object happen before its drop, hence the acquiring; and the flag
    // is looked at after the count, as its law demands.
    let only_handle = header.strong.load(Ordering::Acquire) == 1
        && header.flags.load(Ordering::Relaxed) & FLAG_HAD_WEAK == 0;
    if !only_handle && !decrement(&header.strong) {
        return;
    }
    // SAFETY: no strong handle is left, so the object is ours to drop.
    unsafe {
        match holds_nothing(obj) {
            true => release_weak_count(obj),
            false => drop_dead(obj),
        }
    }
}

/// [`release`] on a thread that keeps its objects to itself: one handle of several is given up at once.
///
/// # Safety
/// As [`release`], and [`keep_to_this_thread`] was called.
#[inline]
unsafe fn release_kept(obj: *mut MpRtHeader) {
    // SAFETY: the caller passes null or a live object.
    let Some(header) = (unsafe { obj.as_ref() }) else { return };
    let strong = header.strong.load(Ordering::Relaxed);
    if header.is_immortal() {
        return;
    }
    match strong {
        // SAFETY: forwarded from the caller.
        1 => unsafe { release(obj) },
        _ => header.strong.store(strong - 1, Ordering::Relaxed),
    }
}

/// Whether nobody but the caller can reach the object; true for null.
///
/// # Safety
/// `obj` is null or a live object, and the caller owns a strong count of it.
#[inline]
pub(crate) unsafe fn is_only_handle(obj: *const MpRtHeader) -> bool {
    // SAFETY: the caller passes null or a live object.
    let Some(header) = (unsafe { obj.as_ref() }) else { return true };
    !header.is_immortal()
        && header.strong.load(Ordering::Acquire) == 1
        && header.flags.load(Ordering::Relaxed) & FLAG_HAD_WEAK == 0
}

/// Whether a flag of an object is set.
///
/// # Safety
/// `obj` is a live object.
#[inline]
pub(crate) unsafe fn has_flag(obj: *const MpRtHeader, flag: u32) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe { (*obj).flags.load(Ordering::Relaxed) & flag != 0 }
}

/// Clears a flag of a counted object.
///
/// # Safety
/// `obj` is a live object that only the caller has a handle of.
pub(crate) unsafe fn clear_flag(obj: *const MpRtHeader, flag: u32) {
    // SAFETY: forwarded from the caller.
    unsafe { (*obj).flags.fetch_and(!flag, Ordering::Relaxed) };
}

/// An object with the same payload, handles retained.
///
/// # Safety
/// `obj` is a live counted object whose payload is described by its info alone: a struct.
pub(crate) unsafe fn copy_plain(obj: *const MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: counted objects have an info, and infos live as long as the process.
    let info: &'static MpRtTypeInfo = unsafe { &*(*obj).info };
    let new = or_die(try_alloc(info));
    let from = payload_ptr(obj.cast_mut());
    // SAFETY: both payloads have the size of the info, and the copy holds counts of its own.
    unsafe {
        payload_ptr(new).copy_from_nonoverlapping(from, info.size as usize);
        retain_value(info, from);
    }
    new
}

thread_local! {
    /// Dead objects that wait to be dropped, linked by their strong counts: null when this thread
    /// drops nothing, [`END`] when nothing more waits.
    static DEAD: Cell<*mut MpRtHeader> = const { Cell::new(ptr::null_mut()) };
}

/// The end of the list of dead objects: no object has this address.
const END: *mut MpRtHeader = ptr::without_provenance_mut(align_of::<MpRtHeader>());

/// Whether an object can be dropped by freeing its memory.
///
/// # Safety
/// `obj` is a counted object.
#[inline]
unsafe fn holds_nothing(obj: *const MpRtHeader) -> bool {
    // SAFETY: counted objects have an info, and infos live as long as the process.
    let info = unsafe { &*(*obj).info };
    info.drop_fn.is_none() && !info.has_handles()
}

/// Drops an object, and then all those that die of it.
#[cold]
#[inline(never)]
unsafe fn drop_dead(obj: *mut MpRtHeader) {
    let waiting = DEAD.get();
    if !waiting.is_null() {
        // A drop is going on further up the stack; it will come to this object.
        // SAFETY: the memory of a dead object stays until its weak count is 0.
        let strong = unsafe { &(*obj).strong };
        strong.store(WAITING | waiting.expose_provenance() as u64, Ordering::Relaxed);
        DEAD.set(obj);
        return;
    }
    DEAD.set(END);
    let mut current = obj;
    loop {
        // SAFETY: `current` has lost its last strong count and was not dropped yet.
        unsafe { drop_payload(current) };
        current = DEAD.get();
        if current == END {
            break;
        }
        // SAFETY: as above, the memory of a dead object is still there.
        let strong = unsafe { &(*current).strong };
        let next = strong.load(Ordering::Relaxed) & !WAITING;
        strong.store(0, Ordering::Relaxed);
        DEAD.set(ptr::with_exposed_provenance_mut(next as usize));
    }
    DEAD.set(ptr::null_mut());
}

/// Releases what a dead object holds and the weak count of its strong handles.
unsafe fn drop_payload(obj: *mut MpRtHeader) {
    // SAFETY: counted objects have an info, and infos live as long as the process.
    let info = unsafe { &*(*obj).info };
    // SAFETY: the object is dead, so this is the one call of its drop function, and the handles
    // at the listed offsets are its own.
    unsafe {
        if let Some(drop_fn) = info.drop_fn {
            drop_fn(obj);
        }
        release_value(info, payload_ptr(obj));
        release_weak_count(obj);
    }
}

/// Frees the memory of an object when its last weak count goes.
unsafe fn release_weak_count(obj: *mut MpRtHeader) {
    // SAFETY: the caller owns a weak count, so the memory is still there.
    let weak = unsafe { &(*obj).weak };
    // Who has the only weak count of an object without strong ones is alone with it; while there
    // are strong ones, they hold a weak count too.
    if weak.load(Ordering::Acquire) != 1 && !decrement(weak) {
        return;
    }
    // SAFETY: no handle of either kind is left.
    unsafe { free(obj) };
}

unsafe fn free(obj: *mut MpRtHeader) {
    // SAFETY: the object is dropped but its memory is intact; a length prefix is never destroyed.
    let layout = unsafe {
        let info = &*(*obj).info;
        match info.flags & FLAG_LENGTH_PREFIXED {
            0 => object_memory(info.size as usize, info.align as usize),
            _ => string::str_memory(payload_ptr(obj).cast::<u64>().read() as usize),
        }
    };
    live::add(-1);
    let Ok(layout) = layout else { return };
    // SAFETY: the object was allocated with the same sizes and nobody can reach it any more.
    unsafe { small_memory::free(NonNull::new_unchecked(obj.cast()), layout) }
}

/// Turns a strong handle into a weak one.
///
/// # Safety
/// `obj` is null or a live object, and the caller gives up a strong count of it.
pub unsafe fn downgrade(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe {
        weak_retain(obj);
        release(obj);
    }
    obj
}

/// A strong handle to the object of a weak one, or null when it was dropped.
///
/// # Safety
/// `obj` is null or the caller holds a weak count of it.
pub unsafe fn upgrade(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: a weak count keeps the memory of the header.
    let Some(header) = (unsafe { obj.as_ref() }) else { return obj };
    if header.is_immortal() {
        return obj;
    }
    let alive = |n: u64| (n != 0 && n < WAITING).then(|| n + 1);
    match header.strong.fetch_update(Ordering::Acquire, Ordering::Relaxed, alive) {
        Ok(_) => obj,
        Err(_) => ptr::null_mut(),
    }
}

/// One more weak count. Null does nothing.
///
/// # Safety
/// `obj` is null or the caller holds a strong or weak count of it.
pub unsafe fn weak_retain(obj: *mut MpRtHeader) {
    // SAFETY: the count that the caller holds keeps the header.
    let Some(header) = (unsafe { obj.as_ref() }) else { return };
    if !header.is_immortal() {
        header.flags.fetch_or(FLAG_HAD_WEAK, Ordering::Relaxed);
        increment(&header.weak);
    }
}

/// One weak count less; frees the memory when no handle is left. Null does nothing.
///
/// # Safety
/// `obj` is null or the caller gives up a weak count of it.
pub unsafe fn weak_release(obj: *mut MpRtHeader) {
    // SAFETY: the weak count that the caller holds keeps the header.
    let Some(header) = (unsafe { obj.as_ref() }) else { return };
    if !header.is_immortal() {
        // SAFETY: the caller gives up a weak count.
        unsafe { release_weak_count(obj) };
    }
}

#[inline]
unsafe fn handle_at(value: *const u8, offset: u32) -> *mut MpRtHeader {
    // SAFETY: the caller's info says that a handle lies there.
    unsafe { value.add(offset as usize).cast::<*mut MpRtHeader>().read() }
}

/// Retains every handle of a value: a copy of it was made.
///
/// # Safety
/// `value` is the address of a value that `info` describes.
#[inline]
pub unsafe fn retain_value(info: &MpRtTypeInfo, value: *const u8) {
    // SAFETY: the handles of a live value are null or live.
    unsafe {
        for &offset in info.strong_offsets() {
            retain(handle_at(value, offset));
        }
        for &offset in info.weak_offsets() {
            weak_retain(handle_at(value, offset));
        }
    }
}

/// Releases every handle of a value, which is dead afterwards.
///
/// # Safety
/// `value` is the address of a value that `info` describes and whose counts the caller owns.
#[inline]
pub unsafe fn release_value(info: &MpRtTypeInfo, value: *const u8) {
    // SAFETY: the caller owns the counts of the value's handles.
    unsafe {
        for &offset in info.strong_offsets() {
            release(handle_at(value, offset));
        }
        for &offset in info.weak_offsets() {
            weak_release(handle_at(value, offset));
        }
    }
}

/// As [`retain_value`], of `count` values side by side.
///
/// # Safety
/// `values` is the address of values that `info` describes.
pub(crate) unsafe fn retain_values(info: &MpRtTypeInfo, values: *const u8, count: usize) {
    let at = |n: usize| values.wrapping_add(n * info.stride());
    // SAFETY: the handles of live values are null or live.
    unsafe {
        match (info.strong_offsets(), info.weak_offsets()) {
            (&[offset], []) => (0..count).for_each(|n| retain(handle_at(at(n), offset))),
            _ => (0..count).for_each(|n| retain_value(info, at(n))),
        }
    }
}

/// As [`release_value`], of `count` values side by side.
///
/// # Safety
/// `values` is the address of values that `info` describes and whose counts the caller owns.
pub(crate) unsafe fn release_values(info: &MpRtTypeInfo, values: *const u8, count: usize) {
    let at = |n: usize| values.wrapping_add(n * info.stride());
    // SAFETY: the caller owns the counts of the values' handles.
    unsafe {
        match (info.strong_offsets(), info.weak_offsets()) {
            (&[offset], []) if KEPT.get() => {
                (0..count).for_each(|n| release_kept(handle_at(at(n), offset)));
            }
            (&[offset], []) => (0..count).for_each(|n| release(handle_at(at(n), offset))),
            _ => (0..count).for_each(|n| release_value(info, at(n))),
        }
    }
}

/// See [`magpie_types::abi::RtFn::Alloc`].
///
/// # Safety
/// `info` describes an object payload and lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_alloc(info: *const MpRtTypeInfo) -> *mut MpRtHeader {
    // SAFETY: the caller passes an info that stays.
    let info: &'static MpRtTypeInfo = unsafe { &*info };
    let obj = or_die(try_alloc(info));
    // SAFETY: the payload behind the header has this size.
    unsafe { payload_ptr(obj).write_bytes(0, info.size as usize) };
    obj
}

/// See [`magpie_types::abi::RtFn::Retain`].
///
/// # Safety
/// As [`retain`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_retain(obj: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller.
    unsafe { retain(obj) }
}

/// See [`magpie_types::abi::RtFn::Release`].
///
/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_release(obj: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller.
    unsafe { release(obj) }
}

/// See [`magpie_types::abi::RtFn::WeakDowngrade`].
///
/// # Safety
/// As [`downgrade`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_weak_downgrade(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { downgrade(obj) }
}

/// See [`magpie_types::abi::RtFn::WeakUpgrade`].
///
/// # Safety
/// As [`upgrade`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_weak_upgrade(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { upgrade(obj) }
}

/// See [`magpie_types::abi::RtFn::WeakRetain`].
///
/// # Safety
/// As [`weak_retain`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_weak_retain(obj: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller.
    unsafe { weak_retain(obj) }
}

/// See [`magpie_types::abi::RtFn::WeakRelease`].
///
/// # Safety
/// As [`weak_release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_weak_release(obj: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller.
    unsafe { weak_release(obj) }
}

/// See [`magpie_types::abi::RtFn::RetainValue`].
///
/// # Safety
/// As [`retain_value`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_retain_value(info: *const MpRtTypeInfo, value: *const u8) {
    // SAFETY: forwarded from the caller.
    unsafe { retain_value(&*info, value) }
}

/// See [`magpie_types::abi::RtFn::ReleaseValue`].
///
/// # Safety
/// As [`release_value`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_release_value(info: *const MpRtTypeInfo, value: *const u8) {
    // SAFETY: forwarded from the caller.
    unsafe { release_value(&*info, value) }
}

#[cfg(test)]
mod tests;
