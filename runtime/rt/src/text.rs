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

/// Where a byte stands first: eight are compared at once.
fn find_byte(bytes: &[u8], wanted: u8) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    let (words, rest) = bytes.as_chunks();
    for (n, &word) in words.iter().enumerate() {
        // The lowest byte that is zero borrows in the subtraction; those above it may do so too.
        let differs = u64::from_le_bytes(word) ^ (LOW * u64::from(wanted));
        let found = differs.wrapping_sub(LOW) & !differs & (LOW << 7);
        if found != 0 {
            return Some(8 * n + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| byte == wanted)?;
    Some(8 * words.len() + at)
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
    // A search for one byte needs no preparation, and most find it after a few.
    let at = match *part.as_bytes() {
        [byte] => find_byte(rest.as_bytes(), byte),
        _ => rest.find(part),
    };
    at.map_or(-1, |at| (from + at) as i64)
}

#[cfg(test)]
mod tests {
    use super::find_byte;

    #[test]
    fn bytes_are_found_anywhere() {
        let bytes: Vec<u8> = (0..40u8).map(|n| n.wrapping_mul(97) ^ 0x80).collect();
        for len in 0..bytes.len() {
            for wanted in [0, 1, 0x7f, 0x80, 0x81, 0xff].into_iter().chain(bytes.iter().copied()) {
                let found = bytes[..len].iter().position(|&byte| byte == wanted);
                assert_eq!(find_byte(&bytes[..len], wanted), found, "{wanted} in {len}");
            }
        }
        assert_eq!(find_byte(b"\x01\x00\x01\x00abcdef", 0), Some(1));
    }
}
