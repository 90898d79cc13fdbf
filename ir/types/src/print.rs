//! `gpu.print` on devices: kernels put what they print as words into a buffer, and the runtime makes
//! lines of it after the launch.
//!
//! The buffer is the last buffer parameter of a kernel that prints, of [`WORDS`] `u32`s. The first
//! counts the words behind it that kernels asked for. A record is the number of the [`PrintSite`],
//! the `gpu.global_id` of the invocation (x, y, z), and the values in order: the low 32 bits, then the
//! high ones of types with more than 32. What does not fit is lost.

use crate::PrimType;
use crate::float16::{bf16_to_f32, f16_to_f32};

/// Words of the buffer of a launch, the counter included: 4 MiB.
pub const WORDS: u32 = 1 << 20;

/// Words of a record before the values: the site and the invocation.
pub const RECORD_HEAD: u32 = 4;

/// One `gpu.print` of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintSite {
    /// What the line is made of, separated by spaces.
    pub parts: Vec<PrintPart>,
}

/// A part of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrintPart {
    /// Known when the kernel is compiled.
    Text(String),
    /// A value of the invocation.
    Value(PrimType),
}

impl PrintSite {
    /// Words of a record of this site.
    pub fn record_words(&self) -> u32 {
        let words = self.parts.iter().map(|part| match part {
            PrintPart::Text(_) => 0,
            PrintPart::Value(prim) => value_words(*prim),
        });
        RECORD_HEAD + words.sum::<u32>()
    }

    /// The line of a record, whose values these are.
    pub fn line(&self, mut values: &[u32]) -> String {
        let mut word = || {
            let first = values.split_off_first();
            first.copied().map_or(0, u64::from)
        };
        let texts = self.parts.iter().map(|part| match part {
            PrintPart::Text(text) => text.clone(),
            PrintPart::Value(prim) => {
                let low = word();
                let high = if value_words(*prim) == 2 { word() } else { 0 };
                text_of(*prim, low | high << 32)
            }
        });
        texts.collect::<Vec<String>>().join(" ")
    }
}

/// Words that a value takes.
pub fn value_words(prim: PrimType) -> u32 {
    if prim.bit_width() > 32 { 2 } else { 1 }
}

/// A scalar as `gpu.print` prints it, from its bits.
pub fn text_of(prim: PrimType, bits: u64) -> String {
    let unused = 64 - prim.bit_width().clamp(1, 64);
    match prim {
        PrimType::Bool => (bits & 1 == 1).to_string(),
        PrimType::F16 => f64::from(f16_to_f32(bits as u16)).to_string(),
        PrimType::Bf16 => f64::from(bf16_to_f32(bits as u16)).to_string(),
        PrimType::F32 => f64::from(f32::from_bits(bits as u32)).to_string(),
        PrimType::F64 => f64::from_bits(bits).to_string(),
        prim if prim.is_signed() => ((bits << unused).cast_signed() >> unused).to_string(),
        _ => (bits << unused >> unused).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_made_of_its_parts() {
        let value = PrintPart::Value;
        let parts = vec![
            PrintPart::Text("n is".into()),
            value(PrimType::I8),
            value(PrimType::U64),
            value(PrimType::F16),
            value(PrimType::Bool),
            value(PrimType::F64),
        ];
        let site = PrintSite { parts };
        assert_eq!(site.record_words(), 4 + 1 + 2 + 1 + 1 + 2);
        let bits = 0.1f64.to_bits();
        let words = [0xfb, 1, 1, 0x7bff, 1, bits as u32, (bits >> 32) as u32];
        assert_eq!(site.line(&words), "n is -5 4294967297 65504 true 0.1");
        assert_eq!(PrintSite { parts: Vec::new() }.line(&[]), "");
    }

    #[test]
    fn numbers_have_the_width_of_their_type() {
        assert_eq!(text_of(PrimType::I32, 0xffff_ffff), "-1");
        assert_eq!(text_of(PrimType::U32, 0xffff_ffff), "4294967295");
        assert_eq!(text_of(PrimType::I64, u64::MAX), "-1");
        assert_eq!(text_of(PrimType::U64, u64::MAX), "18446744073709551615");
        assert_eq!(text_of(PrimType::F32, u64::from(0.5f32.to_bits())), "0.5");
        assert_eq!(text_of(PrimType::Bf16, 0x3f80), "1");
    }
}
