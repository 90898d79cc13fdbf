//! Parts of texts, as Miri needs them.

use crate::object::MpRtHeader;
use crate::panic::guarded;
use crate::string::{as_str, new_str};
use std::str::FromStr;

/// See [`magpie_types::abi::RtFn::StrTransform`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_transform(s: *const MpRtHeader, how: i32) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    transformed(unsafe { as_str(s) }, how)
}

/// See [`magpie_types::abi::RtFn::StrTransform`].
pub(crate) fn transformed(text: &str, how: i32) -> *mut MpRtHeader {
    guarded(|| match how {
        0 => new_str(&text.to_uppercase()),
        1 => new_str(&text.to_lowercase()),
        _ => new_str(text.trim()),
    })
}

/// See [`magpie_types::abi::RtFn::StrContains`].
///
/// # Safety
/// `s` and `part` are live `Str`s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_contains(s: *const MpRtHeader, part: *const MpRtHeader) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe { mp_rt_str_find(s, part, 0) >= 0 }
}

/// Writes a number to `out`, if the text is one.
///
/// # Safety
/// `s` is a live `Str`, `out` can be written to.
unsafe fn number<T: FromStr>(s: *const MpRtHeader, out: *mut T) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe {
        let Ok(number) = as_str(s).parse() else { return false };
        out.write(number);
        true
    }
}

/// See [`magpie_types::abi::RtFn::StrToI64`].
///
/// # Safety
/// `s` is a live `Str`, `out` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_to_i64(s: *const MpRtHeader, out: *mut i64) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe { number(s, out) }
}

/// See [`magpie_types::abi::RtFn::StrToF64`].
///
/// # Safety
/// As [`mp_rt_str_to_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_to_f64(s: *const MpRtHeader, out: *mut f64) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe { number(s, out) }
}

/// Where a byte is. It is often near, so the first words are looked at without a call.
#[inline]
fn find_byte(byte: u8, text: &[u8]) -> Option<usize> {
    const NEAR: usize = 2;
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let (words, _) = text.as_chunks::<8>();
    for (n, word) in words.iter().take(NEAR).enumerate() {
        let differs = u64::from_le_bytes(*word) ^ (ONES * u64::from(byte));
        // The lowest high bit that is set is that of the first byte that does not differ.
        let equal = differs.wrapping_sub(ONES) & !differs & HIGH;
        if equal != 0 {
            return Some(n * 8 + equal.trailing_zeros() as usize / 8);
        }
    }
    let seen = (NEAR * 8).min(words.len() * 8);
    memchr::memchr(byte, &text[seen..]).map(|at| seen + at)
}

/// See [`magpie_types::abi::RtFn::StrFind`].
///
/// # Safety
/// `s` and `part` are live `Str`s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_find(
    s: *const MpRtHeader,
    part: *const MpRtHeader,
    from: i64,
) -> i64 {
    // SAFETY: forwarded from the caller.
    let (text, part) = unsafe { (as_str(s), as_str(part)) };
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let Some(rest) = text.get(from..) else { return -1 };
    // A search for one byte needs no preparation.
    let at = match *part.as_bytes() {
        [byte] => find_byte(byte, rest.as_bytes()),
        _ => rest.find(part),
    };
    at.map_or(-1, |at| (from + at) as i64)
}

#[cfg(test)]
mod tests {
    use super::find_byte;

    #[test]
    fn bytes_are_found_near_and_far() {
        for len in 0..50 {
            for at in 0..len {
                for (byte, other) in
                    [(b'a', b'b'), (b'b', b'a'), (0x80, 0), (0, 0x80), (1, 0), (255, 254)]
                {
                    let mut text = vec![other; len];
                    assert_eq!(find_byte(byte, &text), None);
                    text[at] = byte;
                    text[len - 1] = byte;
                    assert_eq!(find_byte(byte, &text), Some(at), "{len} {at}");
                }
            }
        }
    }
}
