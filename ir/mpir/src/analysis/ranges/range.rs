//! [`Range`]: a set of integers of one type, as bounds of its unsigned and of its signed reading.

use crate::Op;
use crate::analysis::predicate::{Predicate, Relation};
use crate::eval::sign_extend;
use magpie_types::PrimType;

/// Bounds of a value of an integer type or `bool`, all inclusive. Both pairs hold at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Bounds of the bits as an unsigned number.
    pub umin: u64,
    #[allow(missing_docs)]
    pub umax: u64,
    /// Bounds of the bits as a signed number.
    pub smin: i64,
    #[allow(missing_docs)]
    pub smax: i64,
}

impl Range {
    /// Every value of a type; of one wider than 64 bits, nothing is said.
    pub fn full(p: PrimType) -> Range {
        let umax = p.mask();
        let half = (umax >> 1) as i64;
        Range { umin: 0, umax, smin: -half - 1, smax: half }
    }

    /// One value.
    pub fn exact(p: PrimType, bits: u64) -> Range {
        let bits = bits & p.mask();
        let signed = sign_extend(bits, p.bit_width());
        Range { umin: bits, umax: bits, smin: signed, smax: signed }
    }

    /// The values between two unsigned numbers.
    pub fn unsigned(p: PrimType, umin: u64, umax: u64) -> Range {
        Range { umin, umax, ..Range::full(p) }.tightened(p)
    }

    /// The values between two signed numbers.
    pub fn signed(p: PrimType, smin: i64, smax: i64) -> Range {
        Range { smin, smax, ..Range::full(p) }.tightened(p)
    }

    /// The value, if there is only one.
    pub fn as_exact(self) -> Option<u64> {
        (self.umin == self.umax).then_some(self.umin)
    }

    /// Whether no value is negative.
    pub fn is_nonnegative(self) -> bool {
        self.smin >= 0
    }

    /// Whether `other` lies inside.
    pub fn contains(self, other: Range) -> bool {
        self.umin <= other.umin
            && other.umax <= self.umax
            && self.smin <= other.smin
            && other.smax <= self.smax
    }

    /// The smallest range with the values of both.
    pub fn union(self, other: Range) -> Range {
        Range {
            umin: self.umin.min(other.umin),
            umax: self.umax.max(other.umax),
            smin: self.smin.min(other.smin),
            smax: self.smax.max(other.smax),
        }
    }

    /// The values in both; `self` when there is none, which happens only in dead code.
    pub fn intersect(self, p: PrimType, other: Range) -> Range {
        let both = Range {
            umin: self.umin.max(other.umin),
            umax: self.umax.min(other.umax),
            smin: self.smin.max(other.smin),
            smax: self.smax.min(other.smax),
        };
        let tight = both.tightened(p);
        let is_empty = |r: Range| r.umin > r.umax || r.smin > r.smax;
        if is_empty(both) || is_empty(tight) { self } else { tight }
    }

    /// Bounds that grew since `before` go to the end of the type. The reading that is not the
    /// type's own is given up: it would slow the growth down without saying more.
    pub(super) fn widened(self, p: PrimType, before: Range) -> Range {
        let mut r = Range::full(p);
        if p.is_signed() {
            if self.smin >= before.smin {
                r.smin = before.smin;
            }
            if self.smax <= before.smax {
                r.smax = before.smax;
            }
        } else {
            if self.umin >= before.umin {
                r.umin = before.umin;
            }
            if self.umax <= before.umax {
                r.umax = before.umax;
            }
        }
        r.tightened(p)
    }

    /// Uses what each reading says about the other.
    fn tightened(self, p: PrimType) -> Range {
        let mut r = self;
        let most = (p.mask() >> 1) as i64;
        let w = p.bit_width();
        if r.umax <= most as u64 {
            r.smin = r.smin.max(r.umin as i64);
            r.smax = r.smax.min(r.umax as i64);
        } else if r.umin > most as u64 {
            r.smin = r.smin.max(sign_extend(r.umin, w));
            r.smax = r.smax.min(sign_extend(r.umax, w));
        }
        if r.smin >= 0 {
            r.umin = r.umin.max(r.smin as u64);
            r.umax = r.umax.min(r.smax.max(0) as u64);
        } else if r.smax < 0 {
            r.umin = r.umin.max(r.smin as u64 & p.mask());
            r.umax = r.umax.min(r.smax as u64 & p.mask());
        }
        r
    }

    /// The values `x` of this range for which `x predicate y` may hold.
    pub(crate) fn refined(self, p: PrimType, predicate: Predicate, y: Range) -> Range {
        let mut other = Range::full(p);
        match (predicate.relation, predicate.signed) {
            (Relation::Eq, _) => other = y,
            (Relation::Ne, _) => {
                let Some(c) = y.as_exact() else { return self };
                let signed = sign_extend(c, p.bit_width());
                if c == self.umin && self.umin < self.umax {
                    other.umin = c + 1;
                }
                if c == self.umax && self.umin < self.umax {
                    other.umax = c - 1;
                }
                if signed == self.smin && self.smin < self.smax {
                    other.smin = signed + 1;
                }
                if signed == self.smax && self.smin < self.smax {
                    other.smax = signed - 1;
                }
            }
            (Relation::Lt, false) => other.umax = y.umax.saturating_sub(1),
            (Relation::Le, false) => other.umax = y.umax,
            (Relation::Gt, false) => other.umin = y.umin.saturating_add(1).min(p.mask()),
            (Relation::Ge, false) => other.umin = y.umin,
            (Relation::Lt, true) => other.smax = y.smax.saturating_sub(1).max(other.smin),
            (Relation::Le, true) => other.smax = y.smax,
            (Relation::Gt, true) => other.smin = y.smin.saturating_add(1).min(other.smax),
            (Relation::Ge, true) => other.smin = y.smin,
        }
        self.intersect(p, other)
    }
}

/// The range of a sum, difference or product from exact bounds: `None` when some but not all
/// results leave the type.
fn exact_bounds(p: PrimType, unsigned: Option<(i128, i128)>, signed: (i128, i128)) -> Range {
    let full = Range::full(p);
    let mut r = full;
    if let Some((low, high)) = unsigned {
        // All results may wrap by the same multiple of 2^N.
        let w = p.bit_width();
        let wraps = low >> w;
        if wraps == high >> w {
            r.umin = (low - (wraps << w)) as u64;
            r.umax = (high - (wraps << w)) as u64;
        }
    }
    let (low, high) = signed;
    if low >= full.smin as i128 && high <= full.smax as i128 {
        r.smin = low as i64;
        r.smax = high as i64;
    }
    r.tightened(p)
}

/// The largest number with no more bits than `v`.
fn fill(v: u64) -> u64 {
    match v.leading_zeros() {
        64 => 0,
        z => u64::MAX >> z,
    }
}

/// The range of the result of an op on operands in `a` and `b`, all of type `p`.
type Transfer = fn(PrimType, Range, Range) -> Range;

const TRANSFER: [(Op, Transfer); 23] = [
    (Op::IAdd, add),
    (Op::ISub, sub),
    (Op::IMul, mul),
    (Op::IMulHiU, mulhi),
    (Op::IUdiv, udiv),
    (Op::ISdiv, sdiv),
    (Op::IUrem, urem),
    (Op::ISrem, srem),
    (Op::IAnd, |p, a, b| Range::unsigned(p, 0, a.umax.min(b.umax))),
    (Op::IOr, |p, a, b| Range::unsigned(p, a.umin.max(b.umin), fill(a.umax | b.umax))),
    (Op::IXor, |p, a, b| Range::unsigned(p, 0, fill(a.umax | b.umax))),
    (Op::IShl, shl),
    (Op::ILshr, lshr),
    (Op::IAshr, ashr),
    (Op::IUmin, |p, a, b| Range::unsigned(p, a.umin.min(b.umin), a.umax.min(b.umax))),
    (Op::IUmax, |p, a, b| Range::unsigned(p, a.umin.max(b.umin), a.umax.max(b.umax))),
    (Op::ISmin, |p, a, b| Range::signed(p, a.smin.min(b.smin), a.smax.min(b.smax))),
    (Op::ISmax, |p, a, b| Range::signed(p, a.smin.max(b.smin), a.smax.max(b.smax))),
    (Op::IPopcount, count),
    (Op::IClz, count),
    (Op::ICtz, count),
    (Op::IRotl, |p, _, _| Range::full(p)),
    (Op::IRotr, |p, _, _| Range::full(p)),
];

/// Where an op stands in [`TRANSFER`].
static ROW: [u8; 256] = {
    let mut row = [u8::MAX; 256];
    let mut n = 0;
    while n < TRANSFER.len() {
        row[TRANSFER[n].0 as usize] = n as u8;
        n += 1;
    }
    row
};

/// The range of the result of a pure integer op of type `p`; `None` for other ops.
pub(super) fn transfer(op: Op, p: PrimType, a: Range, b: Range) -> Option<Range> {
    let (_, transfer) = TRANSFER.get(ROW[op as usize] as usize)?;
    Some(transfer(p, a, b))
}

fn add(p: PrimType, a: Range, b: Range) -> Range {
    let unsigned = (a.umin as i128 + b.umin as i128, a.umax as i128 + b.umax as i128);
    let signed = (a.smin as i128 + b.smin as i128, a.smax as i128 + b.smax as i128);
    exact_bounds(p, Some(unsigned), signed)
}

fn sub(p: PrimType, a: Range, b: Range) -> Range {
    let unsigned = (a.umin as i128 - b.umax as i128, a.umax as i128 - b.umin as i128);
    let signed = (a.smin as i128 - b.smax as i128, a.smax as i128 - b.smin as i128);
    exact_bounds(p, Some(unsigned), signed)
}

fn mul(p: PrimType, a: Range, b: Range) -> Range {
    let product = |x: i64, y: i64| x as i128 * y as i128;
    let ends = [
        product(a.smin, b.smin),
        product(a.smin, b.smax),
        product(a.smax, b.smin),
        product(a.smax, b.smax),
    ];
    let signed = ends.iter().fold((ends[0], ends[0]), |(l, h), &e| (l.min(e), h.max(e)));
    let highest = a.umax.checked_mul(b.umax).filter(|&m| m <= p.mask());
    let unsigned = highest.map(|high| (a.umin as i128 * b.umin as i128, high as i128));
    exact_bounds(p, unsigned, signed)
}

fn mulhi(p: PrimType, a: Range, b: Range) -> Range {
    let high = |x: u64, y: u64| ((x as u128 * y as u128) >> p.bit_width()) as u64;
    Range::unsigned(p, high(a.umin, b.umin), high(a.umax, b.umax))
}

fn udiv(p: PrimType, a: Range, b: Range) -> Range {
    match b.umin {
        // x / 0 is x.
        0 => Range::unsigned(p, 0, a.umax),
        _ => Range::unsigned(p, a.umin / b.umax.max(1), a.umax / b.umin),
    }
}

fn sdiv(p: PrimType, a: Range, b: Range) -> Range {
    match a.smin >= 0 && b.smin >= 0 {
        true => udiv(p, a, b),
        false => Range::full(p),
    }
}

fn urem(p: PrimType, a: Range, b: Range) -> Range {
    match a.umax < b.umin {
        true => a,
        // x % 0 is 0.
        false => Range::unsigned(p, 0, a.umax.min(b.umax.saturating_sub(1))),
    }
}

fn srem(p: PrimType, a: Range, b: Range) -> Range {
    let most = b.smin.unsigned_abs().max(b.smax.unsigned_abs()).saturating_sub(1);
    let most = most.min(i64::MAX as u64) as i64;
    let low = if a.smin >= 0 { 0 } else { a.smin.max(-most) };
    let high = if a.smax <= 0 { 0 } else { a.smax.min(most) };
    Range::signed(p, low, high)
}

/// The amount of a shift by a constant.
fn amount(p: PrimType, b: Range) -> Option<u32> {
    b.as_exact().map(|c| (c % p.bit_width().max(1) as u64) as u32)
}

fn shl(p: PrimType, a: Range, b: Range) -> Range {
    match amount(p, b) {
        Some(c) if a.umax <= p.mask() >> c => Range::unsigned(p, a.umin << c, a.umax << c),
        _ => Range::full(p),
    }
}

fn lshr(p: PrimType, a: Range, b: Range) -> Range {
    match b.umax < p.bit_width() as u64 {
        true => Range::unsigned(p, a.umin >> b.umax, a.umax >> b.umin),
        false => Range::unsigned(p, 0, a.umax),
    }
}

fn ashr(p: PrimType, a: Range, b: Range) -> Range {
    match amount(p, b) {
        Some(c) => Range::signed(p, a.smin >> c, a.smax >> c),
        None => Range::signed(p, a.smin.min(0), a.smax.max(-1)),
    }
}

/// A number of bits.
fn count(p: PrimType, _: Range, _: Range) -> Range {
    Range::unsigned(p, 0, (p.bit_width() as u64).min(p.mask()))
}

/// The range of a conversion between integer types or from `bool`.
pub(super) fn cast(from: PrimType, to: PrimType, a: Range) -> Range {
    let (low, high) = match from.is_signed() {
        true => (a.smin as i128, a.smax as i128),
        false => (a.umin as i128, a.umax as i128),
    };
    if to == PrimType::Bool {
        let always = low > 0 || high < 0;
        return Range::unsigned(to, always as u64, (low != 0 || high != 0) as u64);
    }
    let ends = |p: PrimType| match p.is_signed() {
        true => (-(1i128 << (p.bit_width() - 1)), (p.mask() >> 1) as i128),
        false => (0, p.mask() as i128),
    };
    let (least, most) = ends(to);
    if low < least || high > most {
        return Range::full(to);
    }
    let mut r = Range::full(to);
    if to.is_signed() {
        (r.smin, r.smax) = (low as i64, high as i64);
    } else {
        (r.umin, r.umax) = (low as u64, high as u64);
    }
    r.tightened(to)
}
