//! Decimal text of integers, without the detour through formatting.

/// Room for the longest number: 20 digits of a `u64`, or a sign and 19 digits.
pub(crate) type Digits = [u8; 20];

/// The text of a number, written to the end of `buffer`.
#[inline]
pub(crate) fn u64_text(value: u64, buffer: &mut Digits) -> &str {
    let start = write_digits(value, buffer);
    ascii(&buffer[start..])
}

/// The text of a number, written to the end of `buffer`.
#[inline]
pub(crate) fn i64_text(value: i64, buffer: &mut Digits) -> &str {
    let mut start = write_digits(value.unsigned_abs(), buffer);
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    ascii(&buffer[start..])
}

/// The numbers 0 to 99 in two digits each.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut i = 0;
    while i < 100 {
        pairs[2 * i] = b'0' + i as u8 / 10;
        pairs[2 * i + 1] = b'0' + i as u8 % 10;
        i += 1;
    }
    pairs
};

/// Writes the digits to the end of `buffer` and returns where they start.
#[inline]
fn write_digits(mut value: u64, buffer: &mut Digits) -> usize {
    let mut start = buffer.len();
    while value >= 10 {
        let pair = 2 * (value % 100) as usize;
        value /= 100;
        start -= 2;
        buffer[start..start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    // Of a number of even length nothing is left, except of 0.
    if value > 0 || start == buffer.len() {
        start -= 1;
        buffer[start] = b'0' + value as u8;
    }
    start
}

fn ascii(text: &[u8]) -> &str {
    // SAFETY: the callers pass digits and a sign.
    unsafe { str::from_utf8_unchecked(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_the_standard_library_writes_them(value: u64, bits in 0u32..64) {
            let value = value >> bits;
            let mut buffer = Digits::default();
            prop_assert_eq!(u64_text(value, &mut buffer), value.to_string());
            prop_assert_eq!(i64_text(value as i64, &mut buffer), (value as i64).to_string());
        }
    }

    #[test]
    fn extremes() {
        let mut buffer = Digits::default();
        assert_eq!(u64_text(0, &mut buffer), "0");
        assert_eq!(u64_text(u64::MAX, &mut buffer), "18446744073709551615");
        assert_eq!(i64_text(i64::MIN, &mut buffer), "-9223372036854775808");
    }
}
