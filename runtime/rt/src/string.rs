//! `Str`: immutable UTF-8 text, a `u64` length and the bytes.

use crate::memory::{AllocError, or_die};
use crate::object::{self, HEADER_SIZE, MpRtHeader, payload_ptr};
use crate::panic::{die, guarded};
use crate::typeinfo::{FLAG_LENGTH_PREFIXED, MpRtTypeInfo};
use crate::{array, characters, small_memory, status};
use magpie_types::abi::object_layout::{self, FLAG_ASCII, STR_MEMORY_STEP};
use magpie_types::{fixed, fnv1a};
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::ptr::NonNull;
use std::str::FromStr;

static STR_OBJECT: MpRtTypeInfo = {
    let plain = MpRtTypeInfo::plain(fixed::STR, TEXT_OFFSET as u32, 8, c"Str");
    MpRtTypeInfo { flags: FLAG_LENGTH_PREFIXED, ..plain }
};

/// Bytes from the start of the payload to the text: the length comes first.
const TEXT_OFFSET: usize = 8;

/// Bytes from the start of the object to the text.
pub(crate) const TEXT_START: usize = HEADER_SIZE + TEXT_OFFSET;

const _: () = assert!(
    object_layout::STR_LEN as usize == HEADER_SIZE
        && object_layout::STR_BYTES as usize == TEXT_START
);

/// Bytes of text that the memory of a counted `Str` of `len` bytes has room for. They depend on the
/// length alone and grow in steps, so a text that grows piece by piece seldom moves, and nobody
/// has to note how much room is left.
#[inline]
pub(crate) fn room(len: usize) -> Result<usize, AllocError> {
    let too_long = AllocError { bytes: None };
    let last = len.checked_add(TEXT_START - 1).ok_or(too_long)?;
    // The power of two below, and at least `STR_MEMORY_STEP`. Compiled code finds the end in the same
    // way.
    let step = (usize::MAX >> 1 >> last.leading_zeros()) | (STR_MEMORY_STEP as usize - 1);
    let end = (last | step).checked_add(1).ok_or(too_long)?;
    Ok(end - TEXT_START)
}

/// The memory of a `Str` of `len` bytes.
pub(crate) fn str_memory(len: usize) -> Result<std::alloc::Layout, AllocError> {
    object::object_memory(room(len)? + TEXT_OFFSET, STR_OBJECT.align as usize)
}

/// Turns memory of [`str_memory`] whose text is already in place into a `Str`.
///
/// # Safety
/// `len` bytes of UTF-8 lie [`TEXT_START`] bytes behind the start of the memory; `is_ascii` says
/// whether they are ASCII.
pub(crate) unsafe fn init_str(memory: NonNull<u8>, len: usize, is_ascii: bool) -> *mut MpRtHeader {
    let flags = if is_ascii { FLAG_ASCII } else { 0 };
    // SAFETY: the memory has room for the header, the length and the text.
    unsafe {
        let obj = object::init_with_flags(memory, &STR_OBJECT, flags);
        payload_ptr(obj).cast::<u64>().write(len as u64);
        obj
    }
}

/// A new `Str` with the given text, or the reason why there is no memory for it.
pub fn try_new_str(text: &str) -> Result<*mut MpRtHeader, AllocError> {
    join(text, "", text.is_ascii())
}

/// A new `Str` with the given text and one strong count.
pub fn new_str(text: &str) -> *mut MpRtHeader {
    or_die(try_new_str(text))
}

/// A new `Str` of two texts; whether both are ASCII is known.
fn join(a: &str, b: &str, is_ascii: bool) -> Result<*mut MpRtHeader, AllocError> {
    let len = a.len().checked_add(b.len()).ok_or(AllocError { bytes: None })?;
    let memory = small_memory::allocate(str_memory(len)?)?;
    // SAFETY: the memory holds `len` bytes of text, in whole words, behind header and length, and
    // two texts together are UTF-8.
    unsafe {
        let start = memory.as_ptr().add(TEXT_START);
        copy_first_text(start, a);
        copy_text(start.add(a.len()), b);
        Ok(init_str(memory, len, is_ascii))
    }
}

/// Appends a text to a `Str`, which moves when there is no room behind it. Compiled code appends a
/// character by itself where there is room.
///
/// # Safety
/// `s` is a live `Str` that only the caller has a handle of, and that `text` is no part of.
#[inline]
unsafe fn extend(
    s: *mut MpRtHeader,
    text: &str,
    is_ascii: bool,
) -> Result<*mut MpRtHeader, AllocError> {
    // SAFETY: the memory of a counted `Str` is that of its length, and its text is followed by
    // another one.
    unsafe {
        let old = as_str(s).len();
        let len = old.checked_add(text.len()).ok_or(AllocError { bytes: None })?;
        let s = if len <= room(old)? { s } else { grow(s, old, len)? };
        let end = s.cast::<u8>().add(TEXT_START + old);
        copy_text(end, text);
        payload_ptr(s).cast::<u64>().write(len as u64);
        if !is_ascii && object::has_flag(s, FLAG_ASCII) {
            object::clear_flag(s, FLAG_ASCII);
        }
        Ok(s)
    }
}

/// Copies a text. Most are short: two copies of a few words, which may overlap, are faster than a call.
///
/// # Safety
/// There is room for the text at `to`, which is no part of it.
#[inline]
unsafe fn copy_text(to: *mut u8, text: &str) {
    /// # Safety
    /// There are at least as many bytes as a `T` has.
    unsafe fn ends<T>(to: *mut u8, from: *const u8, len: usize) {
        let behind = len - size_of::<T>();
        // SAFETY: both begin and end inside of the `len` bytes.
        unsafe {
            let first = from.cast::<T>().read_unaligned();
            let last = from.add(behind).cast::<T>().read_unaligned();
            to.cast::<T>().write_unaligned(first);
            to.add(behind).cast::<T>().write_unaligned(last);
        }
    }
    let (from, len) = (text.as_ptr(), text.len());
    // SAFETY: each branch knows how many bytes there are.
    unsafe {
        match len {
            0 => {}
            1 => *to = *from,
            2..4 => ends::<u16>(to, from, len),
            4..8 => ends::<u32>(to, from, len),
            8..16 => ends::<u64>(to, from, len),
            16..=32 => ends::<u128>(to, from, len),
            _ => to.copy_from_nonoverlapping(from, len),
        }
    }
}

/// Copies a text to the start of new memory. Short ones are written in whole words, which is how they
/// are read when they are compared: a word that was just written in parts is slow to read.
///
/// # Safety
/// As [`copy_text`], and there is room for whole words.
#[inline]
unsafe fn copy_first_text(to: *mut u8, text: &str) {
    /// Two parts of `size` bytes of a text of `len` as one word.
    fn join(first: u64, last: u64, size: usize, len: usize) -> u64 {
        first | last << (8 * (len - size))
    }
    let (from, len) = (text.as_ptr(), text.len());
    // SAFETY: each branch knows how many bytes there are.
    unsafe {
        let u16_at = |at: usize| u16::from_le(from.add(at).cast::<u16>().read_unaligned()).into();
        let u32_at = |at: usize| u32::from_le(from.add(at).cast::<u32>().read_unaligned()).into();
        let u64_at = |at: usize| u64::from_le(from.add(at).cast::<u64>().read_unaligned());
        let put = |n: usize, word: u64| to.cast::<u64>().add(n).write_unaligned(word.to_le());
        match len {
            0 => {}
            1 => put(0, u64::from(*from)),
            2..4 => put(0, join(u16_at(0), u16_at(len - 2), 2, len)),
            4..8 => put(0, join(u32_at(0), u32_at(len - 4), 4, len)),
            8..=16 => {
                put(0, u64_at(0));
                put(1, u64_at(len - 8).checked_shr((8 * (16 - len)) as u32).unwrap_or(0));
            }
            _ => copy_text(to, text),
        }
    }
}

/// Moves a `Str` of `old` bytes to the memory of one of `len`.
///
/// # Safety
/// `s` is a live `Str` that only the caller has a handle of.
#[cold]
#[inline(never)]
unsafe fn grow(s: *mut MpRtHeader, old: usize, len: usize) -> Result<*mut MpRtHeader, AllocError> {
    // SAFETY: the memory of a counted `Str` is that of its length.
    unsafe {
        let memory = NonNull::new_unchecked(s.cast::<u8>());
        let memory = small_memory::reallocate(memory, str_memory(old)?, str_memory(len)?)?;
        Ok(memory.as_ptr().cast())
    }
}

/// The `Str` with a text behind it: the same one, if nobody else has it. `is_ascii` says whether the
/// text is ASCII.
///
/// # Safety
/// `s` is a live `Str` and the caller gives up a strong count of it; `text` is alive without that
/// count.
#[inline]
pub(crate) unsafe fn append(s: *mut MpRtHeader, text: &str, is_ascii: bool) -> *mut MpRtHeader {
    // SAFETY: as the caller says. Where `text` is a part of `s`, somebody else has `s` too.
    unsafe {
        if object::is_only_handle(s) {
            return or_die(extend(s, text, is_ascii));
        }
        let joined = or_die(join(as_str(s), text, is_ascii && object::has_flag(s, FLAG_ASCII)));
        object::release(s);
        joined
    }
}

/// The text of a `Str`.
///
/// # Safety
/// `s` is a live `Str` that stays alive during `'a`.
#[inline]
pub unsafe fn as_str<'a>(s: *const MpRtHeader) -> &'a str {
    // SAFETY: a `Str` is a header, a length and that many bytes of UTF-8, which never change.
    unsafe {
        debug_assert_eq!((*s).type_id(), fixed::STR.0);
        let payload = payload_ptr(s.cast_mut()).cast_const();
        let len = payload.cast::<u64>().read() as usize;
        str::from_utf8_unchecked(std::slice::from_raw_parts(payload.add(TEXT_OFFSET), len))
    }
}

/// See [`magpie_types::abi::RtFn::StrConcat`].
///
/// # Safety
/// `a` and `b` are live `Str`s and the caller gives up a strong count of each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_concat(
    a: *mut MpRtHeader,
    b: *mut MpRtHeader,
) -> *mut MpRtHeader {
    // SAFETY: both are live until they are released here, or returned in place of the result.
    unsafe {
        let (text_a, text_b) = (as_str(a), as_str(b));
        let (kept, released) = match (text_a.is_empty(), text_b.is_empty()) {
            (_, true) => (a, b),
            (true, false) => (b, a),
            (false, false) => (append(a, text_b, object::has_flag(b, FLAG_ASCII)), b),
        };
        object::release(released);
        kept
    }
}

/// See [`magpie_types::abi::RtFn::StrLen`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_len(s: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    unsafe { as_str(s) }.len() as u64
}

/// See [`magpie_types::abi::RtFn::StrCompare`].
///
/// # Safety
/// `a` and `b` are live `Str`s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_compare(a: *const MpRtHeader, b: *const MpRtHeader) -> i32 {
    // SAFETY: forwarded from the caller. Bytes of UTF-8 have the order of their code points.
    let order = unsafe { as_str(a).cmp(as_str(b)) };
    order as i32
}

/// See [`magpie_types::abi::RtFn::StrEq`].
///
/// # Safety
/// `a` and `b` are live `Str`s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_eq(a: *const MpRtHeader, b: *const MpRtHeader) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe { a == b || equal(as_str(a), as_str(b)) }
}

/// Whether two texts are equal.
///
/// # Safety
/// The texts are those of live `Str`s.
#[inline]
pub(crate) unsafe fn equal(a: &str, b: &str) -> bool {
    let len = a.len();
    if len != b.len() {
        return false;
    }
    // Most texts that are compared are short: a call would take longer.
    if len == 0 || len > SHORT {
        return a == b;
    }
    // SAFETY: the memory of a `Str` is whole words.
    let differ = |n: usize| unsafe {
        let word = |text: &str| text.as_ptr().cast::<u64>().add(n).read_unaligned();
        u64::from_le(word(a) ^ word(b))
    };
    let last = (len - 1) / 8;
    let behind = 64 - 8 * (len - 8 * last);
    (0..last).all(|n| differ(n) == 0) && differ(last) << behind == 0
}

/// Bytes up to which texts are compared and hashed without a call.
const SHORT: usize = 32;

/// The hash of a text that is a key.
///
/// # Safety
/// The text is that of a live `Str`.
#[inline]
pub(crate) unsafe fn hash(text: &str) -> u64 {
    // SAFETY: the memory of a `Str` is whole words.
    unsafe {
        let len = text.len();
        let mut hasher = FxHasher::default();
        if len > SHORT {
            hasher.write(text.as_bytes());
            return hasher.finish();
        }
        let word = |n: usize| u64::from_le(text.as_ptr().cast::<u64>().add(n).read_unaligned());
        let (whole, rest) = (len / 8, len % 8);
        (0..whole).for_each(|n| hasher.write_u64(word(n)));
        if rest > 0 {
            let last = word(whole) << (64 - 8 * rest) >> (64 - 8 * rest);
            // A character needs no hasher: maps spread the bits.
            if len == 1 {
                return last;
            }
            hasher.write_u64(last);
        }
        hasher.finish()
    }
}

/// See [`magpie_types::abi::RtFn::StrSlice`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_slice(
    s: *mut MpRtHeader,
    start: i64,
    end: i64,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    let text = unsafe { as_str(s) };
    let len = text.len();
    let Some((from, to)) = checked_range(start, end, len) else {
        die(format_args!("string slice out of bounds: {start} .. {end} of a string of {len} bytes"))
    };
    if from == 0 && to == len {
        // SAFETY: the string is live.
        unsafe { object::retain(s) };
        return s;
    }
    match text.get(from..to) {
        // SAFETY: forwarded from the caller. A part of ASCII is ASCII.
        Some(part) => match (part.as_bytes(), unsafe { object::has_flag(s, FLAG_ASCII) }) {
            (&[byte], _) => characters::ascii(byte),
            (_, is_ascii) => or_die(join(part, "", is_ascii || part.is_ascii())),
        },
        None => die(format_args!(
            "string slice {start} .. {end} is not on character boundaries of the string"
        )),
    }
}

/// The range `start .. end`, if it lies within `0 .. len`.
pub(crate) fn checked_range(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    (start <= end && end <= len).then_some((start, end))
}

/// See [`magpie_types::abi::RtFn::StrBytes`].
///
/// # Safety
/// `s` is a live `Str`, `info` describes `u8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_bytes(
    s: *const MpRtHeader,
    info: *const MpRtTypeInfo,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller; infos live as long as the process.
    unsafe { or_die(array::try_from_bytes(&*info, as_str(s).as_bytes())) }
}

/// Reads a number or bool, or says why the text is none.
fn parse<T: FromStr<Err: std::fmt::Display>>(text: &str, what: &str) -> Result<T, String> {
    const SHOWN: usize = 60;
    text.parse().map_err(|error| {
        let dots = if text.chars().nth(SHOWN).is_some() { "…" } else { "" };
        let shown: String = text.chars().take(SHOWN).collect();
        format!("{shown:?}{dots} is not {what}: {error}")
    })
}

/// See [`magpie_types::abi::RtFn::StrParseI64`].
///
/// # Safety
/// `s` is a live `Str`; `out` and `out_err` are addresses to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_parse_i64(
    s: *const MpRtHeader,
    out: *mut i64,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { status::value(parse(as_str(s), "an i64"), 0, out, out_err) })
}

/// See [`magpie_types::abi::RtFn::StrParseU64`].
///
/// # Safety
/// As [`mp_rt_str_parse_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_parse_u64(
    s: *const MpRtHeader,
    out: *mut u64,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { status::value(parse(as_str(s), "a u64"), 0, out, out_err) })
}

/// See [`magpie_types::abi::RtFn::StrParseF64`].
///
/// # Safety
/// As [`mp_rt_str_parse_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_parse_f64(
    s: *const MpRtHeader,
    out: *mut f64,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { status::value(parse(as_str(s), "an f64"), 0.0, out, out_err) })
}

/// See [`magpie_types::abi::RtFn::StrParseBool`].
///
/// # Safety
/// As [`mp_rt_str_parse_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_parse_bool(
    s: *const MpRtHeader,
    out: *mut bool,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { status::value(parse(as_str(s), "a bool"), false, out, out_err) })
}

/// See [`magpie_types::abi::RtFn::HashStr`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_hash_str(s: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    fnv1a(unsafe { as_str(s) }.as_bytes())
}

/// See [`magpie_types::abi::RtFn::HashI64`]: FNV-1a of the eight bytes, lowest first.
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_hash_i64(v: i64) -> u64 {
    fnv1a(&v.to_le_bytes())
}

#[cfg(test)]
mod tests;
