//! Texts of numbers and parts of texts, as Miri needs them.

use crate::array;
use crate::object::MpRtHeader;
use crate::panic::guarded;
use crate::string::{as_str, new_str};
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::float16::{f16_to_f32, f64_to_f16};

/// A float as Miri prints it.
fn float_text(v: f64, bits: i32) -> String {
    if v.is_nan() {
        return "NaN".to_string();
    }
    if v.is_infinite() {
        return if v < 0.0 { "-inf" } else { "inf" }.to_string();
    }
    // A whole number has exactly these digits.
    if v == v.trunc() {
        return format!("{v:.1}");
    }
    match bits {
        16 => {
            let same = |text: &String| {
                text.parse::<f64>().is_ok_and(|back| f64::from(f16_to_f32(f64_to_f16(back))) == v)
            };
            // The smallest value has 24 decimals.
            let texts = (1..=24).map(|decimals| format!("{v:.decimals$}"));
            texts.into_iter().find(same).unwrap_or_else(|| v.to_string())
        }
        32 => (v as f32).to_string(),
        _ => v.to_string(),
    }
}

/// See [`magpie_types::abi::RtFn::FloatText`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_float_text(v: f64, bits: i32) -> *mut MpRtHeader {
    guarded(|| new_str(&float_text(v, bits)))
}

/// See [`magpie_types::abi::RtFn::StrTransform`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_transform(s: *const MpRtHeader, how: i32) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    let text = unsafe { as_str(s) };
    guarded(|| match how {
        0 => new_str(&text.to_uppercase()),
        1 => new_str(&text.to_lowercase()),
        _ => new_str(text.trim()),
    })
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
    let rest = text.get(from..).and_then(|rest| rest.find(part));
    rest.map_or(-1, |at| (from + at) as i64)
}

/// See [`magpie_types::abi::RtFn::StrCount`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_count(s: *const MpRtHeader) -> i64 {
    // SAFETY: forwarded from the caller.
    unsafe { as_str(s) }.chars().count() as i64
}

/// See [`magpie_types::abi::RtFn::StrChars`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_str_chars(
    s: *const MpRtHeader,
    _info: *const MpRtTypeInfo,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    let text = unsafe { as_str(s) };
    guarded(|| {
        let chars: Vec<String> = text.chars().map(String::from).collect();
        array::new_str_array(&chars)
    })
}

#[cfg(test)]
mod tests {
    use super::float_text;

    #[test]
    fn floats_have_no_exponent() {
        let cases = [
            (3.0, 64, "3.0"),
            (-0.0, 64, "-0.0"),
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
            assert_eq!(float_text(v, bits), text);
        }
    }
}
