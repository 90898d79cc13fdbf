//! `TStrBuilder`: text that grows. Its memory is laid out like a `Str` from the start, so that
//! building the string moves no text.

use crate::decimal::{self, Digits};
use crate::memory::{AllocError, or_die};
use crate::native::NativeType;
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::small_memory;
use crate::string::{self, TEXT_START, as_str, str_memory};
use magpie_types::fixed;
use std::fmt::{self, Write};
use std::ptr::NonNull;

static BUILDER: NativeType<StrBuf> = NativeType::new(fixed::STR_BUILDER, c"TStrBuilder");

/// Growing text in the memory of a future `Str`.
pub(crate) struct StrBuf {
    /// Memory of a `Str` of `cap` bytes; only its text is written. Dangling while `cap` is 0.
    memory: NonNull<u8>,
    len: usize,
    cap: usize,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for StrBuf {}
// SAFETY: as above; changing it takes `&mut`.
unsafe impl Sync for StrBuf {}

impl StrBuf {
    pub(crate) const fn new() -> StrBuf {
        StrBuf { memory: NonNull::dangling(), len: 0, cap: 0 }
    }

    /// Makes room for `more` bytes behind the text.
    #[inline]
    fn try_reserve(&mut self, more: usize) -> Result<(), AllocError> {
        if self.cap - self.len >= more { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) -> Result<(), AllocError> {
        let needed = self.len.checked_add(more).ok_or(AllocError { bytes: None })?;
        self.resize(needed.max(self.cap.saturating_mul(2)).max(24))
    }

    /// Changes the capacity to `cap`, at least the length and at least 1.
    fn resize(&mut self, cap: usize) -> Result<(), AllocError> {
        let new = str_memory(cap)?;
        self.memory = match self.cap {
            0 => small_memory::allocate(new)?,
            // SAFETY: the memory has the layout of the present capacity.
            _ => unsafe { small_memory::reallocate(self.memory, str_memory(self.cap)?, new)? },
        };
        self.cap = cap;
        Ok(())
    }

    /// Appends text.
    #[inline]
    pub(crate) fn push_str(&mut self, text: &str) {
        or_die(self.try_reserve(text.len()));
        // SAFETY: there is room for the text, which lies elsewhere.
        unsafe {
            let end = self.memory.as_ptr().add(TEXT_START + self.len);
            end.copy_from_nonoverlapping(text.as_ptr(), text.len());
        }
        self.len += text.len();
    }

    /// The text as a `Str` with one strong count.
    pub(crate) fn into_str(mut self) -> Result<*mut MpRtHeader, AllocError> {
        if self.len == 0 {
            return string::try_new_str("");
        }
        // A `Str` does not know of spare room: its memory is as long as its text.
        self.resize(self.len)?;
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the memory is that of a `Str` of `len` bytes with UTF-8 text in place.
        unsafe {
            let start = this.memory.as_ptr().add(TEXT_START);
            let is_ascii = std::slice::from_raw_parts(start, this.len).is_ascii();
            Ok(string::init_str(this.memory, this.len, is_ascii))
        }
    }
}

impl Drop for StrBuf {
    fn drop(&mut self) {
        if self.cap != 0
            && let Ok(layout) = str_memory(self.cap)
        {
            // SAFETY: the memory was allocated with this layout.
            unsafe { small_memory::free(self.memory, layout) }
        }
    }
}

impl fmt::Write for StrBuf {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

/// See [`magpie_types::abi::RtFn::SbNew`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_sb_new() -> *mut MpRtHeader {
    BUILDER.alloc(StrBuf::new())
}

/// See [`magpie_types::abi::RtFn::SbAppendStr`].
///
/// # Safety
/// `b` is a live builder that nobody else uses, `s` a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_sb_append_str(b: *mut MpRtHeader, s: *const MpRtHeader) {
    // SAFETY: forwarded from the caller.
    unsafe { BUILDER.get_mut(b).push_str(as_str(s)) }
}

/// See [`magpie_types::abi::RtFn::SbAppendI64`].
///
/// # Safety
/// `b` is a live builder that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_sb_append_i64(b: *mut MpRtHeader, v: i64) {
    let mut digits = Digits::default();
    // SAFETY: forwarded from the caller.
    unsafe { BUILDER.get_mut(b).push_str(decimal::i64_text(v, &mut digits)) }
}

/// See [`magpie_types::abi::RtFn::SbAppendU64`].
///
/// # Safety
/// `b` is a live builder that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_sb_append_u64(b: *mut MpRtHeader, v: u64) {
    let mut digits = Digits::default();
    // SAFETY: forwarded from the caller.
    unsafe { BUILDER.get_mut(b).push_str(decimal::u64_text(v, &mut digits)) }
}

/// See [`magpie_types::abi::RtFn::SbAppendF64`].
///
/// # Safety
/// `b` is a live builder that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_sb_append_f64(b: *mut MpRtHeader, v: f64) {
    // Writing to the builder does not fail.
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { _ = write!(BUILDER.get_mut(b), "{v}") })
}

/// See [`magpie_types::abi::RtFn::SbAppendBool`].
///
/// # Safety
/// `b` is a live builder that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_sb_append_bool(b: *mut MpRtHeader, v: bool) {
    // SAFETY: forwarded from the caller.
    unsafe { BUILDER.get_mut(b).push_str(if v { "true" } else { "false" }) }
}

/// See [`magpie_types::abi::RtFn::SbBuild`].
///
/// # Safety
/// `b` is a live builder that nobody else uses; the caller gives up its strong count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_sb_build(b: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe {
        let text = std::mem::replace(BUILDER.get_mut(b), StrBuf::new());
        object::release(b);
        or_die(text.into_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::without_leaks;
    use proptest::prelude::*;

    /// # Safety
    /// `b` is an owned builder.
    unsafe fn build(b: *mut MpRtHeader) -> String {
        // SAFETY: forwarded from the caller.
        unsafe {
            let s = mp_rt_sb_build(b);
            let text = as_str(s).to_string();
            assert_eq!((*s).strong_count(), 1);
            object::release(s);
            text
        }
    }

    fn float_text(v: f64) -> String {
        let b = mp_rt_sb_new();
        // SAFETY: the builder is new and consumed.
        unsafe {
            mp_rt_sb_append_f64(b, v);
            build(b)
        }
    }

    #[test]
    fn parts_are_appended_in_order() {
        without_leaks(|| {
            let (b, s) = (mp_rt_sb_new(), string::new_str("abcDEF"));
            // SAFETY: builder and string are live until consumed and released.
            unsafe {
                mp_rt_sb_append_str(b, s);
                mp_rt_sb_append_i64(b, i64::MIN);
                mp_rt_sb_append_u64(b, u64::MAX);
                mp_rt_sb_append_bool(b, true);
                mp_rt_sb_append_bool(b, false);
                mp_rt_sb_append_f64(b, 2.5);
                object::release(s);
                let expected = "abcDEF-922337203685477580818446744073709551615truefalse2.5";
                assert_eq!(build(b), expected);
                assert_eq!(build(mp_rt_sb_new()), "");
            }
        });
    }

    #[test]
    fn floats_are_printed_in_full() {
        let cases = [
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (1e21, "1000000000000000000000"),
            (f64::from(0.1f32), "0.10000000149011612"),
        ];
        for (value, text) in cases {
            assert_eq!(float_text(value), text);
        }
        assert_eq!(float_text(f64::MAX).len(), 309);
        assert!(float_text(5e-324).starts_with("0.000"));
    }

    #[test]
    fn an_unfinished_builder_is_freed() {
        without_leaks(|| {
            let b = mp_rt_sb_new();
            // SAFETY: the builder is new.
            unsafe {
                mp_rt_sb_append_i64(b, 123);
                object::release(b);
            }
        });
    }

    proptest! {
        #[test]
        fn text_of_any_length_survives(parts in prop::collection::vec(".{0,40}", 0..50)) {
            let b = mp_rt_sb_new();
            for part in &parts {
                let s = string::new_str(part);
                // SAFETY: builder and string are live.
                unsafe {
                    mp_rt_sb_append_str(b, s);
                    object::release(s);
                }
            }
            // SAFETY: the builder is ours.
            prop_assert_eq!(unsafe { build(b) }, parts.concat());
        }

        #[test]
        fn printed_floats_read_back(value: f64) {
            let back: f64 = float_text(value).parse().unwrap();
            prop_assert!(back.to_bits() == value.to_bits() || back.is_nan() && value.is_nan());
        }
    }
}
