use super::*;
use crate::testing::{outputs, without_leaks};
use crate::typeinfo;
use std::ptr;

/// # Safety
/// `s` is an owned `Str`.
unsafe fn take(s: *mut MpRtHeader) -> String {
    // SAFETY: forwarded from the caller.
    unsafe {
        let text = as_str(s).to_string();
        object::release(s);
        text
    }
}

#[test]
fn room_is_in_steps() {
    for len in 0..5000usize {
        let end = room(len).unwrap() + TEXT_START;
        let used = len + TEXT_START;
        let step = (used.next_power_of_two() / 2).max(STR_MEMORY_STEP as usize);
        assert_eq!(end, used.next_multiple_of(step).max(64), "{len}");
    }
    assert!(room(usize::MAX).is_err() && room(usize::MAX - TEXT_START).is_err());
}

#[test]
fn texts_of_any_length_are_joined() {
    let text = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
    without_leaks(|| {
        for len in 0..text.len() {
            // SAFETY: two new strings are consumed, the result is released.
            let joined =
                unsafe { take(mp_rt_str_concat(new_str(&text[..7]), new_str(&text[..len]))) };
            assert_eq!(joined, format!("{}{}", &text[..7], &text[..len]));
        }
    });
}

#[test]
fn texts_of_any_length_are_compared_and_hashed() {
    let text = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
    without_leaks(|| {
        let whole = new_str(text);
        for len in 0..text.len() {
            // SAFETY: the texts are live until their release.
            unsafe {
                // One was copied, one has grown, and one was part of another.
                let made = new_str(&text[..len]);
                let grown = text[..len]
                    .chars()
                    .fold(new_str(""), |s, c| append(s, c.encode_utf8(&mut [0; 4]), true));
                let part = mp_rt_str_slice(whole, 0, len as i64);
                for other in [grown, part] {
                    assert!(mp_rt_str_eq(made, other) && object::has_flag(other, FLAG_ASCII));
                    assert_eq!(hash(as_str(made)), hash(as_str(other)));
                    assert_eq!(as_str(other), &text[..len]);
                    object::release(other);
                }
                for at in 0..len {
                    let mut bytes = text.as_bytes()[..len].to_vec();
                    bytes[at] = b'!';
                    let different = new_str(str::from_utf8(&bytes).unwrap());
                    assert!(!mp_rt_str_eq(made, different), "{len} {at}");
                    assert_ne!(hash(as_str(made)), hash(as_str(different)), "{len} {at}");
                    object::release(different);
                }
                object::release(made);
            }
        }
        // SAFETY: the text is live.
        unsafe { object::release(whole) };
    });
}

#[test]
fn concatenation_consumes_both() {
    without_leaks(|| {
        for (a, b) in [("", ""), ("a", ""), ("", "b"), ("grün", "e Äpfel")] {
            // SAFETY: two new strings are consumed, the result is released.
            let text = unsafe { take(mp_rt_str_concat(new_str(a), new_str(b))) };
            assert_eq!(text, format!("{a}{b}"));
        }
        let s = new_str("ab");
        // SAFETY: one string, given twice, has two counts.
        unsafe {
            object::retain(s);
            assert_eq!(take(mp_rt_str_concat(s, s)), "abab");
        }
    });
}

#[test]
fn length_and_equality_are_of_bytes() {
    without_leaks(|| {
        let (a, b, c) = (new_str("Ä\0x"), new_str("Ä\0x"), new_str("Ä\0y"));
        // SAFETY: all are live until released.
        unsafe {
            assert_eq!(mp_rt_str_len(a), 4);
            assert!(mp_rt_str_eq(a, b));
            assert!(!mp_rt_str_eq(a, c));
            assert_eq!(mp_rt_hash_str(a), fnv1a("Ä\0x".as_bytes()));
            for s in [a, b, c] {
                object::release(s);
            }
        }
    });
}

#[test]
fn equality_of_any_length() {
    without_leaks(|| {
        let text = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
        for len in 0..text.len() {
            let (a, b) = (new_str(&text[..len]), new_str(&text[..len]));
            // SAFETY: all are live until released.
            unsafe {
                assert!(mp_rt_str_eq(a, b) && mp_rt_str_eq(a, a));
                for at in 0..len {
                    let mut other = text[..len].to_string();
                    other.replace_range(at..at + 1, "!");
                    let c = new_str(&other);
                    assert!(!mp_rt_str_eq(a, c), "{len} {at}");
                    object::release(c);
                }
                object::release(a);
                object::release(b);
            }
        }
    });
}

#[test]
fn slices_share_or_copy() {
    without_leaks(|| {
        let s = new_str("abcDEF");
        // SAFETY: the string is live until its release.
        unsafe {
            assert_eq!(take(mp_rt_str_slice(s, 1, 5)), "bcDE");
            assert_eq!(take(mp_rt_str_slice(s, 6, 6)), "");
            assert_eq!(mp_rt_str_slice(s, 0, 6), s);
            object::release(s);
            object::release(s);
        }
    });
}

#[test]
fn bad_slices_panic() {
    // SAFETY: the strings are live.
    let cases: [fn(); 4] = unsafe {
        [
            || _ = mp_rt_str_slice(new_str("äb"), 1, 3),
            || _ = mp_rt_str_slice(new_str("abc"), -1, 2),
            || _ = mp_rt_str_slice(new_str("abc"), 2, 1),
            || _ = mp_rt_str_slice(new_str("abc"), 0, 4),
        ]
    };
    let messages = [
        "string slice 1 .. 3 is not on character boundaries of the string",
        "string slice out of bounds: -1 .. 2 of a string of 3 bytes",
        "string slice out of bounds: 2 .. 1 of a string of 3 bytes",
        "string slice out of bounds: 0 .. 4 of a string of 3 bytes",
    ];
    for (output, message) in outputs("string::tests::bad_slices_panic", &cases).iter().zip(messages)
    {
        assert_eq!((output.0, &*output.2), (Some(101), &*format!("panic: {message}\n")));
    }
}

#[test]
fn bytes_become_an_array() {
    without_leaks(|| {
        let s = new_str("Ä!");
        // SAFETY: both objects are live until released.
        unsafe {
            let array = mp_rt_str_bytes(s, &typeinfo::U8);
            assert_eq!(array::bytes(array), "Ä!".as_bytes());
            object::release(array);
            object::release(s);
        }
    });
}

type Parse<T> = unsafe extern "C" fn(*const MpRtHeader, *mut T, *mut *mut MpRtHeader) -> i32;

fn parsed<T: Default>(parse: Parse<T>, text: &str) -> Result<T, String> {
    let s = new_str(text);
    let (mut out, mut error) = (T::default(), ptr::dangling_mut());
    // SAFETY: the string is live, the out storage is ours.
    unsafe {
        let status = parse(s, &mut out, &mut error);
        object::release(s);
        match status {
            0 => {
                assert!(error.is_null());
                Ok(out)
            }
            _ => Err(take(error)),
        }
    }
}

#[test]
fn numbers_are_read() {
    without_leaks(|| {
        assert_eq!(parsed(mp_rt_str_parse_i64, "-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(parsed(mp_rt_str_parse_u64, "18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parsed(mp_rt_str_parse_f64, "-2.5e3"), Ok(-2500.0));
        assert_eq!(parsed(mp_rt_str_parse_f64, "-inf"), Ok(f64::NEG_INFINITY));
        assert_eq!(parsed(mp_rt_str_parse_bool, "true"), Ok(true));
    });
}

#[test]
fn other_text_is_an_error_that_shows_it() {
    without_leaks(|| {
        let error = parsed(mp_rt_str_parse_i64, "12x");
        assert_eq!(error.unwrap_err(), "\"12x\" is not an i64: invalid digit found in string");
        let error = parsed(mp_rt_str_parse_u64, "-1").unwrap_err();
        assert!(error.starts_with("\"-1\" is not a u64"), "{error}");
        let error = parsed(mp_rt_str_parse_i64, "9223372036854775808").unwrap_err();
        assert!(error.ends_with("number too large to fit in target type"), "{error}");
        let error = parsed(mp_rt_str_parse_f64, &"ä".repeat(100)).unwrap_err();
        assert!(error.starts_with(&format!("\"{}\"… is not an f64", "ä".repeat(60))), "{error}");
        assert!(parsed(mp_rt_str_parse_bool, "True").is_err());
        assert!(parsed(mp_rt_str_parse_i64, " 1").is_err());
    });
}

#[test]
fn an_error_that_nobody_takes_is_released() {
    without_leaks(|| {
        let s = new_str("?");
        let mut out = 7;
        // SAFETY: the string is live, the out storage is ours, and `out_err` may be null.
        unsafe {
            assert_eq!(mp_rt_str_parse_i64(s, &mut out, ptr::null_mut()), -1);
            object::release(s);
        }
        assert_eq!(out, 0);
    });
}
