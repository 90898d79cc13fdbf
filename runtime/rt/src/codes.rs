//! Characters without an object: a text of at most one character as a number. It is the code point,
//! or [`CODE_EMPTY`]; what is longer has no code.

use crate::characters::{at, character, from};
use crate::object::MpRtHeader;
use crate::string::{append, as_str, new_str};
use crate::text;
use magpie_types::abi::object_layout::{CODE_EMPTY, CODE_LONGER};
use std::ffi::c_char;

/// The character of a code.
fn char_of(code: i32) -> Option<char> {
    u32::try_from(code).ok().and_then(char::from_u32)
}

/// The code of at most one character.
fn code_of(c: Option<char>) -> i32 {
    c.map_or(CODE_EMPTY, |c| c as i32)
}

/// See [`magpie_types::abi::RtFn::StrCodeAt`].
///
/// # Safety
/// `s` is a live `Str`, `place` a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_code_at(
    s: *const MpRtHeader,
    index: i64,
    place: *const c_char,
) -> i32 {
    // SAFETY: forwarded from the caller.
    unsafe { at(s, index, place) as i32 }
}

/// See [`magpie_types::abi::RtFn::StrCodeFrom`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_code_from(s: *const MpRtHeader, at: i64) -> i32 {
    // SAFETY: forwarded from the caller.
    code_of(unsafe { from(s, at) })
}

/// See [`magpie_types::abi::RtFn::StrCode`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_code(s: *const MpRtHeader) -> i32 {
    // SAFETY: forwarded from the caller.
    let mut chars = unsafe { as_str(s) }.chars();
    let first = chars.next();
    if chars.as_str().is_empty() { code_of(first) } else { CODE_LONGER }
}

/// See [`magpie_types::abi::RtFn::CodeText`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_code_text(code: i32) -> *mut MpRtHeader {
    char_of(code).map_or_else(|| new_str(""), character)
}

/// See [`magpie_types::abi::RtFn::CodeLen`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_code_len(code: i32) -> i64 {
    char_of(code).map_or(0, |c| c.len_utf8() as i64)
}

/// See [`magpie_types::abi::RtFn::CodeToI64`].
///
/// # Safety
/// `out` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_code_to_i64(code: i32, out: *mut i64) -> bool {
    let Some(digit) = char_of(code).and_then(|c| c.to_digit(10)) else { return false };
    // SAFETY: forwarded from the caller.
    unsafe { out.write(digit.into()) };
    true
}

/// See [`magpie_types::abi::RtFn::CodeTransform`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_code_transform(code: i32, how: i32) -> *mut MpRtHeader {
    match char_of(code) {
        Some(c) if c.is_ascii() && how == 0 => character(c.to_ascii_uppercase()),
        Some(c) if c.is_ascii() && how == 1 => character(c.to_ascii_lowercase()),
        Some(c) => text::transformed(c.encode_utf8(&mut [0; 4]), how),
        None => new_str(""),
    }
}

/// See [`magpie_types::abi::RtFn::StrAppendCode`].
///
/// # Safety
/// `s` is a live `Str` and the caller gives up a strong count of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_append_code(s: *mut MpRtHeader, code: i32) -> *mut MpRtHeader {
    match char_of(code) {
        // SAFETY: forwarded from the caller.
        Some(c) => unsafe { append(s, c.encode_utf8(&mut [0; 4]), c.is_ascii()) },
        None => s,
    }
}

/// See [`magpie_types::abi::RtFn::StrContainsCode`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_contains_code(s: *const MpRtHeader, code: i32) -> bool {
    // SAFETY: forwarded from the caller.
    char_of(code).is_none_or(|c| unsafe { as_str(s) }.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::testing::without_leaks;
    use magpie_types::abi::object_layout::FLAG_ASCII;
    use std::ptr;

    const CHARACTERS: [&str; 10] =
        ["a", "Z", "7", "\0", "\u{7f}", "ß", "Ω", "\u{d7ff}", "\u{e000}", "🍏"];

    /// # Safety
    /// `s` is an owned `Str`.
    unsafe fn take(s: *mut MpRtHeader) -> String {
        // SAFETY: forwarded from the caller.
        unsafe {
            let text = as_str(s).to_string();
            assert_eq!(object::has_flag(s, FLAG_ASCII), text.is_ascii());
            object::release(s);
            text
        }
    }

    #[test]
    fn texts_and_codes() {
        without_leaks(|| {
            for text in CHARACTERS.into_iter().chain([""]) {
                let s = new_str(text);
                // SAFETY: the text is live until its release.
                unsafe {
                    let code = mp_rt_str_code(s);
                    assert_eq!(code, text.chars().next().map_or(-1, |c| c as i32));
                    assert_eq!(take(mp_rt_code_text(code)), text);
                    assert_eq!(mp_rt_code_len(code), text.len() as i64);
                    assert_eq!(mp_rt_str_code_from(s, 0), code);
                    assert_eq!(mp_rt_str_code_from(s, text.len() as i64), CODE_EMPTY);
                    assert_eq!(take(mp_rt_code_transform(code, 0)), text.to_uppercase());
                    assert_eq!(take(mp_rt_code_transform(code, 1)), text.to_lowercase());
                    assert_eq!(take(mp_rt_code_transform(code, 2)), text.trim());
                    object::release(s);
                }
            }
            for text in ["ab", "aß", "ßa", "🍏🍏"] {
                let s = new_str(text);
                // SAFETY: the text is live until its release.
                unsafe {
                    assert_eq!(mp_rt_str_code(s), CODE_LONGER);
                    let second = text.chars().nth(1).unwrap() as i32;
                    assert_eq!(mp_rt_str_code_at(s, 1, ptr::null()), second);
                    object::release(s);
                }
            }
        });
    }

    #[test]
    fn numbers_of_digits() {
        for code in -2..0x700 {
            let mut number = 77;
            // SAFETY: the out storage is ours.
            let found = unsafe { mp_rt_code_to_i64(code, &mut number) };
            let expected = char_of(code).and_then(|c| c.to_string().parse().ok());
            assert_eq!((found, number), (expected.is_some(), expected.unwrap_or(77)));
        }
    }

    #[test]
    fn codes_are_appended_and_found() {
        without_leaks(|| {
            let (mut s, mut expected) = (new_str(""), String::new());
            for text in CHARACTERS {
                let code = text.chars().next().unwrap() as i32;
                // SAFETY: the text is live until its release.
                unsafe {
                    assert!(!mp_rt_str_contains_code(s, code));
                    s = mp_rt_str_append_code(s, code);
                    s = mp_rt_str_append_code(s, CODE_EMPTY);
                    expected += text;
                    assert_eq!(as_str(s), expected);
                    assert_eq!(object::has_flag(s, FLAG_ASCII), expected.is_ascii());
                    assert!(mp_rt_str_contains_code(s, code));
                    assert!(mp_rt_str_contains_code(s, CODE_EMPTY));
                }
            }
            // SAFETY: the text is ours.
            unsafe { object::release(s) };
        });
    }
}
