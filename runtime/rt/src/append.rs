//! Texts that grow piece by piece: the pieces of Miri's formatted strings and sums.

use crate::decimal::{self, Digits};
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::string::{append, as_str};
use magpie_types::abi::object_layout::FLAG_ASCII;
use magpie_types::float16::{f16_to_f32, f64_to_f16};
use std::fmt;

/// See [`magpie_types::abi::RtFn::StrAppend`].
///
/// # Safety
/// `s` and `t` are live `Str`s and the caller gives up a strong count of `s`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_append(
    s: *mut MpRtHeader,
    t: *mut MpRtHeader,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe {
        let text = as_str(t);
        if text.is_empty() {
            return s;
        }
        if as_str(s).is_empty() {
            object::retain(t);
            object::release(s);
            return t;
        }
        append(s, text, object::has_flag(t, FLAG_ASCII))
    }
}

/// See [`magpie_types::abi::RtFn::StrAppendI64`].
///
/// # Safety
/// `s` is a live `Str` and the caller gives up a strong count of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_append_i64(s: *mut MpRtHeader, v: i64) -> *mut MpRtHeader {
    let mut digits = Digits::default();
    // SAFETY: forwarded from the caller.
    unsafe { append(s, decimal::i64_text(v, &mut digits), true) }
}

/// See [`magpie_types::abi::RtFn::StrAppendU64`].
///
/// # Safety
/// As [`mp_rt_str_append_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_append_u64(s: *mut MpRtHeader, v: u64) -> *mut MpRtHeader {
    let mut digits = Digits::default();
    // SAFETY: forwarded from the caller.
    unsafe { append(s, decimal::u64_text(v, &mut digits), true) }
}

/// See [`magpie_types::abi::RtFn::StrAppendFloat`].
///
/// # Safety
/// As [`mp_rt_str_append_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_append_float(
    s: *mut MpRtHeader,
    v: f64,
    bits: i32,
) -> *mut MpRtHeader {
    let mut end = End(s);
    // Writing to the end does not fail.
    guarded(|| _ = write_float(&mut end, v, bits));
    end.0
}

/// See [`magpie_types::abi::RtFn::StrAppendBool`].
///
/// # Safety
/// As [`mp_rt_str_append_i64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_append_bool(s: *mut MpRtHeader, v: bool) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { append(s, if v { "true" } else { "false" }, true) }
}

/// The end of a `Str` that is owned, to write numbers to.
struct End(*mut MpRtHeader);

impl fmt::Write for End {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: the text is owned, and what is written to it is no part of it.
        self.0 = unsafe { append(self.0, text, true) };
        Ok(())
    }
}

/// Whole numbers below this are exact as integers.
const EXACT: f64 = (1u64 << 53) as f64;

/// Writes a float as Miri prints it.
fn write_float(out: &mut impl fmt::Write, v: f64, bits: i32) -> fmt::Result {
    if v.is_nan() {
        return out.write_str("NaN");
    }
    if v.is_infinite() {
        return out.write_str(if v < 0.0 { "-inf" } else { "inf" });
    }
    // A whole number has exactly these digits.
    if v == v.trunc() {
        if v.abs() >= EXACT {
            return write!(out, "{v:.1}");
        }
        if v.is_sign_negative() {
            out.write_char('-')?;
        }
        let mut digits = Digits::default();
        out.write_str(decimal::u64_text(v.abs() as u64, &mut digits))?;
        return out.write_str(".0");
    }
    match bits {
        16 => {
            let same = |text: &String| {
                text.parse::<f64>().is_ok_and(|back| f64::from(f16_to_f32(f64_to_f16(back))) == v)
            };
            // The smallest value has 24 decimals.
            let mut texts = (1..=24).map(|decimals| format!("{v:.decimals$}"));
            out.write_str(&texts.find(same).unwrap_or_else(|| v.to_string()))
        }
        32 => write!(out, "{}", v as f32),
        _ => write!(out, "{v}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::string::new_str;
    use crate::testing::without_leaks;

    #[test]
    fn floats_have_no_exponent() {
        let cases = [
            (3.0, 64, "3.0"),
            (-17.0, 64, "-17.0"),
            (-0.0, 64, "-0.0"),
            (9007199254740991.0, 64, "9007199254740991.0"),
            (-9007199254740992.0, 64, "-9007199254740992.0"),
            (1e20, 64, "100000000000000000000.0"),
            (1e23, 64, "99999999999999991611392.0"),
            (0.1, 64, "0.1"),
            (1e-7, 64, "0.0000001"),
            (0.1f32 as f64, 32, "0.1"),
            (1.0f32 as f64 / 3.0f32 as f64, 32, "0.33333334"),
            (1e20f32 as f64, 32, "100000002004087734272.0"),
            (0.0999755859375, 16, "0.1"),
            (f64::INFINITY, 64, "inf"),
            (f64::NEG_INFINITY, 32, "-inf"),
            (f64::NAN, 64, "NaN"),
        ];
        for (v, bits, text) in cases {
            let mut out = String::new();
            write_float(&mut out, v, bits).unwrap();
            assert_eq!(out, text);
        }
    }

    #[test]
    fn pieces_are_appended_in_place() {
        without_leaks(|| {
            // SAFETY: each text is live until it is given away or released.
            unsafe {
                let (word, empty) = (new_str("wort"), new_str(""));
                let mut s = mp_rt_str_append(new_str(""), word);
                assert_eq!(s, word);
                let mut expected = "wort".to_string();
                let mut moves = 0;
                for n in 0..1000 {
                    let before = s;
                    s = mp_rt_str_append_i64(s, -n);
                    s = mp_rt_str_append_u64(s, u64::MAX);
                    s = mp_rt_str_append_float(s, 0.5, 64);
                    s = mp_rt_str_append_bool(s, n % 2 == 0);
                    s = mp_rt_str_append(s, word);
                    s = mp_rt_str_append(s, empty);
                    moves += usize::from(s != before);
                    expected += &format!("{}{}0.5{}wort", -n, u64::MAX, n % 2 == 0);
                    assert_eq!(as_str(s), expected);
                }
                assert!(moves < 60, "{moves}");
                // What somebody else has stays as it is.
                object::retain(s);
                let longer = mp_rt_str_append(s, s);
                assert_eq!((as_str(s), as_str(longer)), (&*expected, &*expected.repeat(2)));
                for o in [s, longer, word, empty] {
                    object::release(o);
                }
            }
        });
    }
}
