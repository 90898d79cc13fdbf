//! Where compiled code finds the parts of runtime objects: byte offsets from the object header,
//! whose address is the handle.

/// Size of the object header; the payload follows.
pub const HEADER_SIZE: u32 = 32;
/// Strong count, `u64`, atomic.
pub const STRONG: u32 = 0;
/// Weak count, `u64`, atomic. All strong handles together hold one.
pub const WEAK: u32 = 8;
/// Run-time type id, `u32`.
pub const TYPE_ID: u32 = 16;
/// Flags, `u32`.
pub const FLAGS: u32 = 20;
/// The address of the object's type info.
pub const INFO: u32 = 24;
/// Type info: the run-time type id, `u32`; an offset from the info, not from an object.
pub const INFO_TYPE_ID: u32 = 0;
/// Flag: the object is never counted and never freed (string literals).
pub const FLAG_IMMORTAL: u32 = 1;

/// Flag: a weak handle was made at some time. While it is clear, a strong count of 1 means that the
/// object has one handle altogether: a thread that makes a weak one sets the flag before it gives up
/// its own strong count.
pub const FLAG_HAD_WEAK: u32 = 2;
/// Flag: a text is ASCII. Every `Str` of ASCII text has it.
pub const FLAG_ASCII: u32 = 4;

/// The code of an empty text ([`super::RtFn::StrCode`]).
pub const CODE_EMPTY: i32 = -1;
/// What a text of several characters has instead of a code.
pub const CODE_LONGER: i32 = -2;

/// `Str`: number of bytes, `u64`.
pub const STR_LEN: u32 = 32;
/// `Str`: the bytes of its UTF-8 text. The memory there is whole words of 8 bytes, at least one,
/// whatever the length.
pub const STR_BYTES: u32 = 40;
/// The memory of a counted `Str`, header included, is a multiple of this.
pub const STR_MEMORY_STEP: u32 = 32;

/// `Array`: number of elements, `u64`.
pub const ARR_LEN: u32 = 32;
/// `Array`: number of elements that fit without growing, `u64`.
pub const ARR_CAP: u32 = 40;
/// `Array`: address of the first element, 16-byte aligned or as the element needs; not null.
pub const ARR_DATA: u32 = 48;

/// `TCallable`: the code address. The captures follow ([`crate::TypeCtx::callable_layout`]).
pub const CALLABLE_CODE: u32 = 32;

/// The bytes of an immortal `Str` for the read-only data of a program, to be aligned to 8.
pub fn str_literal(text: &str) -> Vec<u8> {
    let mut image = vec![0; STR_BYTES as usize];
    let mut put = |offset: u32, bytes: &[u8]| {
        image[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    };
    put(STRONG, &1u64.to_ne_bytes());
    put(WEAK, &1u64.to_ne_bytes());
    put(TYPE_ID, &crate::fixed::STR.0.to_ne_bytes());
    let ascii = if text.is_ascii() { FLAG_ASCII } else { 0 };
    put(FLAGS, &(FLAG_IMMORTAL | ascii).to_ne_bytes());
    put(STR_LEN, &(text.len() as u64).to_ne_bytes());
    image.extend_from_slice(text.as_bytes());
    let padded = STR_BYTES as usize + text.len().next_multiple_of(8).max(8);
    image.resize(padded, 0);
    image
}
