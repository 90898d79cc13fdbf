//! Integer ops whose native forms are partial or missing: totality of division, shifts, rotations,
//! bit counts, high products, overflow tests.

use super::LegalOps;
use super::seq::Seq;
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// The replacement of an integer op, or `None` when it is legal as it is.
pub(super) fn expand(s: &mut Seq, legal: &LegalOps, op: Op, args: &[Value]) -> Option<Value> {
    let a = *args.first()?;
    let b = args.get(1).copied().unwrap_or(a);
    let p = s.prim(a);
    let w = p.bit_width();
    match op {
        Op::ISdiv | Op::IUdiv | Op::ISrem | Op::IUrem if !legal.total_division => {
            let signed = matches!(op, Op::ISdiv | Op::ISrem);
            if is_safe_divisor(s, b, signed, w) && op != Op::ISrem {
                return None;
            }
            let d = safe_divisor(s, a, b, signed, w);
            Some(match op {
                // a - (a / d) * d: the native signed remainder is undefined for negative operands.
                Op::ISrem => {
                    let q = s.same(Op::ISdiv, &[a, d]);
                    let product = s.mul(q, d);
                    s.sub(a, product)
                }
                _ => s.same(op, &[a, d]),
            })
        }
        Op::IShl | Op::ILshr | Op::IAshr if !legal.masked_shifts => {
            if s.f.as_bits(b).is_some_and(|n| n < w as u64) {
                return None;
            }
            let amount = s.mask(b, w as u64 - 1);
            Some(s.same(op, &[a, amount]))
        }
        Op::IRotl | Op::IRotr if !legal.rotates => {
            let n = s.mask(b, w as u64 - 1);
            let zero = s.like(b, 0);
            let back = s.sub(zero, n);
            let back = s.mask(back, w as u64 - 1);
            let (left, right) = if op == Op::IRotl { (n, back) } else { (back, n) };
            let high = s.same(Op::IShl, &[a, left]);
            let low = s.same(Op::ILshr, &[a, right]);
            Some(s.or(high, low))
        }
        Op::IPopcount | Op::IClz | Op::ICtz if w != 32 || (op == Op::ICtz && !legal.ctz) => {
            Some(count(s, legal, op, a, p))
        }
        Op::IMulHiS | Op::IMulHiU if w < 32 => {
            let signed = op == Op::IMulHiS;
            let (x, y) = (extended(s, a, p, signed), extended(s, b, p, signed));
            let product = s.mul(x, y);
            let high = s.lshr(product, w);
            Some(s.cast(high, p))
        }
        Op::IAddOverflows | Op::ISubOverflows | Op::IMulOverflows => Some(overflow(s, op, a, b, p)),
        _ => None,
    }
}

/// Whether a divisor is a constant for which the native division is defined.
fn is_safe_divisor(s: &Seq, b: Value, signed: bool, w: u32) -> bool {
    s.f.as_bits(b).is_some_and(|bits| {
        let n = magpie_mpir::eval::sign_extend(bits, w);
        n != 0 && !(signed && n == -1)
    })
}

/// The divisor, or 1 where the quotient must be the dividend: for 0, and for -1 under the smallest
/// number.
fn safe_divisor(s: &mut Seq, a: Value, b: Value, signed: bool, w: u32) -> Value {
    if is_safe_divisor(s, b, signed, w) {
        return b;
    }
    let mut bad = s.is(b, 0);
    if signed {
        let minus = s.is(b, u64::MAX);
        let min = s.is(a, 1 << (w - 1));
        let both = s.and(minus, min);
        bad = s.or(bad, both);
    }
    let one = s.like(b, 1);
    s.select(bad, one, b)
}

/// A number below 32 bits as a 32-bit one, its bits read as signed or not whatever the type.
fn extended(s: &mut Seq, v: Value, p: PrimType, signed: bool) -> Value {
    let bits = s.cast(v, PrimType::U32);
    let n = 32 - p.bit_width();
    let high = s.shl(bits, n);
    if signed { s.ashr(high, n) } else { s.lshr(high, n) }
}

/// Bit counts of any width by the 32-bit ones.
fn count(s: &mut Seq, legal: &LegalOps, op: Op, a: Value, p: PrimType) -> Value {
    let w = p.bit_width();
    if w == 64 {
        let low = s.cast(a, PrimType::U32);
        let high = s.lshr(a, 32);
        let high = s.cast(high, PrimType::U32);
        let n = match op {
            Op::IPopcount => {
                let (x, y) = (s.same(op, &[low]), s.same(op, &[high]));
                s.add(x, y)
            }
            Op::IClz => halves(s, legal, op, high, low),
            _ => halves(s, legal, op, low, high),
        };
        return s.cast(n, p);
    }
    if w == 32 {
        // Trailing zeros: the ones of (x & -x) - 1; for 0 that is all ones.
        let zero = s.like(a, 0);
        let negative = s.sub(zero, a);
        let lowest = s.and(a, negative);
        let below = s.plus(lowest, -1);
        return s.same(Op::IPopcount, &[below]);
    }
    let wide = extended(s, a, p, false);
    let n = match op {
        Op::IPopcount => s.same(op, &[wide]),
        Op::IClz => {
            let n = s.same(op, &[wide]);
            s.plus(n, w as i64 - 32)
        }
        _ => {
            let stop = s.u32(1 << w);
            let stopped = s.or(wide, stop);
            trailing(s, legal, stopped)
        }
    };
    s.cast(n, p)
}

fn trailing(s: &mut Seq, legal: &LegalOps, v: Value) -> Value {
    match legal.ctz {
        true => s.same(Op::ICtz, &[v]),
        false => count(s, legal, Op::ICtz, v, PrimType::U32),
    }
}

/// Leading or trailing zeros of 64 bits: of `first`, or 32 and those of `second`.
fn halves(s: &mut Seq, legal: &LegalOps, op: Op, first: Value, second: Value) -> Value {
    let zeros = |s: &mut Seq, v| match op {
        Op::IClz => s.same(Op::IClz, &[v]),
        _ => trailing(s, legal, v),
    };
    let (x, y) = (zeros(s, first), zeros(s, second));
    let y = s.plus(y, 32);
    let none = s.is(first, 0);
    s.select(none, y, x)
}

fn overflow(s: &mut Seq, op: Op, a: Value, b: Value, p: PrimType) -> Value {
    let signed = p.is_signed();
    let w = p.bit_width();
    if w < 32 {
        // Exact in 32 bits: outside when narrowing changes it.
        let (x, y) = (extended(s, a, p, signed), extended(s, b, p, signed));
        let exact = match op {
            Op::IAddOverflows => s.add(x, y),
            Op::ISubOverflows => s.sub(x, y),
            _ => s.mul(x, y),
        };
        let back = {
            let n = 32 - w;
            let high = s.shl(exact, n);
            if signed { s.ashr(high, n) } else { s.lshr(high, n) }
        };
        return s.cmp(Op::IcmpNe, exact, back);
    }
    let negative = |s: &mut Seq, v| {
        let zero = s.like(v, 0);
        s.cmp(Op::IcmpSlt, v, zero)
    };
    match (op, signed) {
        (Op::IAddOverflows, false) => {
            let sum = s.add(a, b);
            s.cmp(Op::IcmpUlt, sum, a)
        }
        (Op::IAddOverflows, true) => {
            let sum = s.add(a, b);
            let (x, y) = (s.xor(a, sum), s.xor(b, sum));
            let both = s.and(x, y);
            negative(s, both)
        }
        (Op::ISubOverflows, false) => s.cmp(Op::IcmpUlt, a, b),
        (Op::ISubOverflows, true) => {
            let difference = s.sub(a, b);
            let (x, y) = (s.xor(a, b), s.xor(a, difference));
            let both = s.and(x, y);
            negative(s, both)
        }
        (_, false) => {
            let high = s.same(Op::IMulHiU, &[a, b]);
            let zero = s.like(a, 0);
            s.cmp(Op::IcmpNe, high, zero)
        }
        (_, true) => {
            let high = s.same(Op::IMulHiS, &[a, b]);
            let low = s.mul(a, b);
            let sign = s.ashr(low, w - 1);
            s.cmp(Op::IcmpNe, high, sign)
        }
    }
}
