//! The characters of texts. Miri has no type of characters: each is a text.

use crate::object::{self, MpRtHeader};
use crate::panic::mp_rt_panic_builtin;
use crate::string::{as_str, new_str};
use magpie_types::abi::PanicKind;
use magpie_types::abi::object_layout::FLAG_ASCII;
use magpie_types::fixed;
use std::ffi::c_char;
use std::ptr;

/// An immortal `Str` of one byte.
#[repr(C)]
struct OneByte {
    header: MpRtHeader,
    len: u64,
    text: [u8; 8],
}

/// The texts of one ASCII character.
static ASCII: [OneByte; 128] = {
    let mut n = 0;
    let mut all = [const {
        let header = MpRtHeader::immortal(fixed::STR.0, FLAG_ASCII);
        OneByte { header, len: 1, text: [0; 8] }
    }; 128];
    while n < 128 {
        all[n].text[0] = n as u8;
        n += 1;
    }
    all
};

/// The text of an ASCII character.
#[inline]
pub(crate) fn ascii(byte: u8) -> *mut MpRtHeader {
    ptr::from_ref(&ASCII[usize::from(byte & 127)]).cast::<MpRtHeader>().cast_mut()
}

/// A text of one character.
pub(crate) fn character(c: char) -> *mut MpRtHeader {
    if c.is_ascii() { ascii(c as u8) } else { new_str(c.encode_utf8(&mut [0; 4])) }
}

/// See [`magpie_types::abi::RtFn::StrCount`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_count(s: *const MpRtHeader) -> i64 {
    // SAFETY: forwarded from the caller.
    let (text, is_ascii) = unsafe { (as_str(s), object::has_flag(s, FLAG_ASCII)) };
    if is_ascii { text.len() as i64 } else { text.chars().count() as i64 }
}

/// The character at an index; panics outside.
///
/// # Safety
/// `s` is a live `Str`, `place` a C string or null.
pub(crate) unsafe fn at(s: *const MpRtHeader, index: i64, place: *const c_char) -> char {
    // SAFETY: forwarded from the caller.
    let (text, is_ascii) = unsafe { (as_str(s), object::has_flag(s, FLAG_ASCII)) };
    let found = usize::try_from(index).ok().and_then(|index| match is_ascii {
        true => text.as_bytes().get(index).map(|&byte| char::from(byte)),
        false => text.chars().nth(index),
    });
    match found {
        Some(character) => character,
        // SAFETY: forwarded from the caller.
        None => unsafe {
            let count = mp_rt_str_count(s);
            mp_rt_panic_builtin(PanicKind::IndexOutOfBounds as i32, place, index, count)
        },
    }
}

/// The character that begins at a byte, if one does.
///
/// # Safety
/// `s` is a live `Str`.
pub(crate) unsafe fn from(s: *const MpRtHeader, at: i64) -> Option<char> {
    let at = usize::try_from(at).ok()?;
    // SAFETY: forwarded from the caller.
    unsafe { as_str(s) }.get(at..)?.chars().next()
}

/// See [`magpie_types::abi::RtFn::StrCharAt`].
///
/// # Safety
/// `s` is a live `Str`, `place` a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_char_at(
    s: *const MpRtHeader,
    index: i64,
    place: *const c_char,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    character(unsafe { at(s, index, place) })
}

/// See [`magpie_types::abi::RtFn::StrCharFrom`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_char_from(s: *const MpRtHeader, at: i64) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { from(s, at) }.map_or_else(|| new_str(""), character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::string::append;
    use crate::testing::{outputs, without_leaks};

    /// # Safety
    /// `s` is a live `Str`.
    unsafe fn by_index(s: *mut MpRtHeader) -> String {
        // SAFETY: forwarded from the caller; the characters are owned.
        unsafe {
            let mut all = String::new();
            for i in 0..mp_rt_str_count(s) {
                let c = mp_rt_str_char_at(s, i, ptr::null());
                all += as_str(c);
                object::release(c);
            }
            all
        }
    }

    /// # Safety
    /// `s` is a live `Str`.
    unsafe fn by_walking(s: *mut MpRtHeader) -> String {
        // SAFETY: forwarded from the caller; the characters are owned.
        unsafe {
            let mut all = String::new();
            while all.len() < as_str(s).len() {
                let c = mp_rt_str_char_from(s, all.len() as i64);
                assert_eq!(as_str(c).chars().count(), 1);
                all += as_str(c);
                object::release(c);
            }
            all
        }
    }

    #[test]
    fn characters_of_any_text() {
        without_leaks(|| {
            for text in ["", "a", "plain \0 text~\u{7f}", "Äpfel 🍏 und ß", "日本"] {
                let s = new_str(text);
                // SAFETY: the text is live until its release.
                unsafe {
                    assert_eq!(mp_rt_str_count(s), text.chars().count() as i64);
                    assert_eq!((by_index(s), by_walking(s)), (text.into(), text.into()));
                    // No character begins at these bytes.
                    let none = mp_rt_str_char_from(s, text.len() as i64);
                    assert_eq!(as_str(none), "");
                    object::release(none);
                    object::release(s);
                }
            }
        });
    }

    #[test]
    fn growth_is_noticed() {
        without_leaks(|| {
            // SAFETY: the text is live until its release.
            unsafe {
                let mut s = new_str("abc");
                assert_eq!(mp_rt_str_count(s), 3);
                s = append(s, "de", true);
                assert!(object::has_flag(s, FLAG_ASCII));
                assert_eq!(mp_rt_str_count(s), 5);
                s = append(s, "äö", false);
                assert!(!object::has_flag(s, FLAG_ASCII));
                assert_eq!(mp_rt_str_count(s), 7);
                assert_eq!(by_index(s), "abcdeäö");
                object::release(s);
            }
        });
    }

    #[test]
    fn an_index_outside_panics() {
        // SAFETY: the texts are live, the place is a C string.
        let cases: [fn(); 3] = unsafe {
            [
                || _ = mp_rt_str_char_at(new_str("abc"), 3, c"a.mi:1:2".as_ptr()),
                || _ = mp_rt_str_char_at(new_str("äb"), 2, ptr::null()),
                || _ = mp_rt_str_char_at(new_str(""), -1, ptr::null()),
            ]
        };
        let shown = ["3", "2", "-1"];
        let found = outputs("characters::tests::an_index_outside_panics", &cases);
        for (output, shown) in found.iter().zip(shown) {
            assert_eq!(output.0, Some(101));
            assert!(output.2.contains(shown), "{output:?}");
        }
    }
}
