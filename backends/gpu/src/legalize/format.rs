//! Float formats in integer code: taking numbers apart and putting them together again.

use super::seq::Seq;
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// The shape of a float format.
pub(super) struct Format {
    pub(super) float: PrimType,
    /// The unsigned integer of the same width, in which everything is computed.
    pub(super) int: PrimType,
    /// Bits of the fraction field.
    pub(super) fraction: u32,
    /// Exponent field of 1.0.
    pub(super) bias: i64,
}

pub(super) const F32: Format =
    Format { float: PrimType::F32, int: PrimType::U32, fraction: 23, bias: 127 };
pub(super) const F64: Format =
    Format { float: PrimType::F64, int: PrimType::U64, fraction: 52, bias: 1023 };

impl Format {
    pub(super) fn width(&self) -> u32 {
        self.int.bit_width()
    }

    pub(super) fn sign(&self) -> u64 {
        1 << (self.width() - 1)
    }

    pub(super) fn hidden(&self) -> u64 {
        1 << self.fraction
    }

    pub(super) fn infinity(&self) -> u64 {
        (self.sign() - 1) & !(self.hidden() - 1)
    }

    pub(super) fn quiet_nan(&self) -> u64 {
        self.infinity() | self.hidden() >> 1
    }

    /// The exponent field of infinity.
    fn top(&self) -> u64 {
        self.infinity() >> self.fraction
    }
}

/// Significand and exponent of a magnitude: the number is `significand × 2^(exponent - bias -
/// fraction)`, the significand has `fraction + 1` bits unless the number is zero. The exponent is
/// a signed number in the bits of the format's integer.
pub(super) fn take_apart(s: &mut Seq, format: &Format, magnitude: Value) -> (Value, Value) {
    let exponent = s.lshr(magnitude, format.fraction);
    let fraction = s.mask(magnitude, format.hidden() - 1);
    let subnormal = s.is(exponent, 0);
    let hidden = s.like(fraction, format.hidden());
    let normal = s.or(fraction, hidden);
    let zeros = s.same(Op::IClz, &[fraction]);
    let surplus = format.width() as i64 - 1 - format.fraction as i64;
    let shift = s.plus(zeros, -surplus);
    let amount = s.mask(shift, format.width() as u64 - 1);
    let shifted = s.same(Op::IShl, &[fraction, amount]);
    let one = s.like(shift, 1);
    let low = s.sub(one, shift);
    (s.select(subnormal, shifted, normal), s.select(subnormal, low, exponent))
}

/// How a result that does not fit is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To nearest, ties to even.
    NearestEven,
    /// Toward zero, with the last bit set when something was lost: rounding that to a narrower
    /// format rounds once (Boldo and Melquiond, 2008).
    Odd,
}

/// The magnitude of a number with exponent field `exponent` (signed) whose significand has its
/// first bit at the top of the word, and as its last bit whether something below was lost.
pub(super) fn put_together(
    s: &mut Seq,
    format: &Format,
    significand: Value,
    exponent: Value,
    rounding: Rounding,
) -> Value {
    let w = format.width() as u64;
    // Subnormal results have fewer bits.
    let zero = s.like(exponent, 0);
    let one = s.like(exponent, 1);
    let most = s.like(exponent, w - 1);
    let deficit = s.sub(one, exponent);
    let deficit = s.smax(deficit, zero);
    let deficit = s.smin(deficit, most);
    let kept = s.same(Op::ILshr, &[significand, deficit]);
    let back = s.same(Op::IShl, &[kept, deficit]);
    let lost = s.cmp(Op::IcmpNe, back, significand);
    let sticky = s.bit(lost, kept);
    let kept = s.or(kept, sticky);
    let drop = w as u32 - 1 - format.fraction;
    let bits = s.lshr(kept, drop);
    let rest = s.mask(kept, (1 << drop) - 1);
    let up = match rounding {
        Rounding::NearestEven => {
            let odd = s.mask(bits, 1);
            let biased = s.add(rest, odd);
            let half = s.like(biased, 1 << (drop - 1));
            s.cmp(Op::IcmpUgt, biased, half)
        }
        Rounding::Odd => {
            let none = s.like(rest, 0);
            s.cmp(Op::IcmpNe, rest, none)
        }
    };
    let up = s.bit(up, bits);
    let bits = match rounding {
        Rounding::NearestEven => s.add(bits, up),
        Rounding::Odd => s.or(bits, up),
    };
    // The hidden bit counts as one in the exponent field.
    let below = s.plus(exponent, -1);
    let below = s.smax(below, zero);
    let field = s.shl(below, format.fraction);
    let sum = s.add(field, bits);
    let top = s.like(exponent, format.top());
    let over = s.cmp(Op::IcmpSge, exponent, top);
    let infinity = s.like(sum, format.infinity());
    let largest = match rounding {
        Rounding::NearestEven => infinity,
        Rounding::Odd => s.plus(infinity, -1),
    };
    s.select(over, largest, sum)
}
