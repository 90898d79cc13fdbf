//! Fused multiply-add in integer code, for devices whose own may round twice and that have no wider
//! float to compute in.

use super::format::{Format, Rounding, put_together, take_apart};
use super::seq::Seq;
use magpie_mpir::{Op, Value};

/// A number of two words.
#[derive(Clone, Copy)]
struct Wide {
    high: Value,
    low: Value,
}

/// `a × b + c` with one rounding.
pub(super) fn fma(s: &mut Seq, format: &Format, args: [Value; 3], rounding: Rounding) -> Value {
    let w = format.width();
    let f = format.fraction;
    let [ua, ub, uc] = args.map(|v| s.bits(v, format.int));
    let product_sign = s.xor(ua, ub);
    let product_sign = s.mask(product_sign, format.sign());
    let addend_sign = s.mask(uc, format.sign());
    let [ma, mb, mc] = [ua, ub, uc].map(|v| s.mask(v, format.sign() - 1));
    let [(x, ex), (y, ey), (z, ez)] = [ma, mb, mc].map(|m| take_apart(s, format, m));

    // Both terms as numbers of two words below half of their range: the product has 2f + 2 bits.
    let (high, low) = (s.same(Op::IMulHiU, &[x, y]), s.mul(x, y));
    let gap = 2 * w - (2 * f + 2) - 1;
    let raised = s.shl(high, gap);
    let carried = s.lshr(low, w - gap);
    let product = Wide { high: s.or(raised, carried), low: s.shl(low, gap) };
    let addend = Wide { high: s.shl(z, w - 2 - f), low: s.like(z, 0) };
    // Their last bits stand for these powers of two, a bias aside.
    let unit = format.bias + f as i64;
    let product_exponent = s.add(ex, ey);
    let product_exponent = s.plus(product_exponent, -(2 * unit + gap as i64));
    let addend_exponent = s.plus(ez, -(unit + (2 * w - 2 - f) as i64));

    // The term with the smaller exponent moves right; what falls off stays as its last bit. That
    // can only happen far below what a difference keeps.
    let zero = s.like(x, 0);
    let distance = s.sub(product_exponent, addend_exponent);
    let (a_zero, b_zero, c_zero) = (s.is(ma, 0), s.is(mb, 0), s.is(mc, 0));
    let product_zero = s.or(a_zero, b_zero);
    let below = s.cmp(Op::IcmpSlt, distance, zero);
    let addend_leads = {
        let yes = s.truth(true);
        let no = s.truth(false);
        let unless_zero = s.select(c_zero, no, below);
        s.select(product_zero, yes, unless_zero)
    };
    let exponent = s.select(addend_leads, addend_exponent, product_exponent);
    let first = choose(s, addend_leads, addend, product);
    let second = choose(s, addend_leads, product, addend);
    let back = s.sub(zero, distance);
    let distance = s.select(addend_leads, back, distance);
    let most = s.like(distance, 2 * w as u64 - 1);
    let distance = s.same(Op::IUmin, &[distance, most]);
    let second = shift_right(s, second, distance, w);

    let same_sign = s.cmp(Op::IcmpEq, product_sign, addend_sign);
    let sum = add(s, first, second);
    let (difference, is_negative) = subtract(s, first, second);
    let total = choose(s, same_sign, sum, difference);
    let first_sign = s.select(addend_leads, addend_sign, product_sign);
    let second_sign = s.select(addend_leads, product_sign, addend_sign);
    let sign = s.select(is_negative, second_sign, first_sign);
    let both = s.or(total.high, total.low);
    let is_zero = s.is(both, 0);
    // x - x is +0.
    let sign = s.select(is_zero, zero, sign);
    let sign = s.select(same_sign, product_sign, sign);

    // The first bit to the top.
    let zeros_high = s.same(Op::IClz, &[total.high]);
    let zeros_low = s.same(Op::IClz, &[total.low]);
    let zeros_low = s.plus(zeros_low, w as i64);
    let no_high = s.is(total.high, 0);
    let zeros = s.select(no_high, zeros_low, zeros_high);
    let significand = shift_left_to_one_word(s, total, zeros, w);
    let exponent = s.sub(exponent, zeros);
    let exponent = s.plus(exponent, 2 * w as i64 - 1 + format.bias);
    let magnitude = put_together(s, format, significand, exponent, rounding);
    let magnitude = s.select(is_zero, zero, magnitude);
    let finite = s.or(magnitude, sign);

    // Infinities, then what is no number.
    let infinity = s.like(zero, format.infinity());
    let [a_inf, b_inf, c_inf] = [ma, mb, mc].map(|m| s.is(m, format.infinity()));
    let product_inf = s.or(a_inf, b_inf);
    let infinite_product = s.or(infinity, product_sign);
    let infinite_addend = s.or(infinity, addend_sign);
    let bits = s.select(product_inf, infinite_product, finite);
    let bits = s.select(c_inf, infinite_addend, bits);
    let [a_nan, b_nan, c_nan] = [ma, mb, mc].map(|m| s.cmp(Op::IcmpUgt, m, infinity));
    let nan = s.or(a_nan, b_nan);
    let nan = s.or(nan, c_nan);
    let undefined = s.and(product_inf, product_zero);
    let nan = s.or(nan, undefined);
    let both_inf = s.and(product_inf, c_inf);
    let other_sign = s.cmp(Op::IcmpNe, product_sign, addend_sign);
    let undefined = s.and(both_inf, other_sign);
    let nan = s.or(nan, undefined);
    let quiet = s.like(zero, format.quiet_nan());
    let bits = s.select(nan, quiet, bits);
    s.bits(bits, format.float)
}

fn choose(s: &mut Seq, cond: Value, a: Wide, b: Wide) -> Wide {
    Wide { high: s.select(cond, a.high, b.high), low: s.select(cond, a.low, b.low) }
}

fn add(s: &mut Seq, a: Wide, b: Wide) -> Wide {
    let low = s.add(a.low, b.low);
    let carry = s.cmp(Op::IcmpUlt, low, a.low);
    let carry = s.bit(carry, low);
    let high = s.add(a.high, b.high);
    Wide { high: s.add(high, carry), low }
}

/// The distance of two numbers below half of the range, and whether `b` is the larger one.
fn subtract(s: &mut Seq, a: Wide, b: Wide) -> (Wide, Value) {
    let zero = s.like(a.low, 0);
    let low = s.sub(a.low, b.low);
    let borrow = s.cmp(Op::IcmpUlt, a.low, b.low);
    let borrow = s.bit(borrow, low);
    let high = s.sub(a.high, b.high);
    let high = s.sub(high, borrow);
    let is_negative = s.cmp(Op::IcmpSlt, high, zero);
    let minus_low = s.sub(zero, low);
    let minus_high = s.sub(zero, high);
    let has_low = s.cmp(Op::IcmpNe, low, zero);
    let has_low = s.bit(has_low, high);
    let minus_high = s.sub(minus_high, has_low);
    let positive = Wide { high, low };
    let negative = Wide { high: minus_high, low: minus_low };
    (choose(s, is_negative, negative, positive), is_negative)
}

/// Shifts right by less than two words; what falls off makes the last bit one.
fn shift_right(s: &mut Seq, v: Wide, n: Value, w: u32) -> Wide {
    let zero = s.like(n, 0);
    let word = s.like(n, w as u64);
    let inside = s.mask(n, w as u64 - 1);
    let rest = s.sub(word, inside);
    let rest = s.mask(rest, w as u64 - 1);
    let is_whole = s.is(inside, 0);
    let is_far = s.cmp(Op::IcmpUge, n, word);
    // By the part below a word. Shifting up by `rest` gives what moves to the word below, and
    // nothing for a whole word.
    let across = |s: &mut Seq, v: Value| {
        let moved = s.same(Op::IShl, &[v, rest]);
        s.select(is_whole, zero, moved)
    };
    let high = s.same(Op::ILshr, &[v.high, inside]);
    let from_high = across(s, v.high);
    let low = s.same(Op::ILshr, &[v.low, inside]);
    let low = s.or(low, from_high);
    let lost_low = across(s, v.low);
    // A whole word further.
    let lost_far = s.or(from_high, v.low);
    let lost = s.select(is_far, lost_far, lost_low);
    let low = s.select(is_far, high, low);
    let high = s.select(is_far, zero, high);
    let sticky = s.cmp(Op::IcmpNe, lost, zero);
    let sticky = s.bit(sticky, low);
    Wide { high, low: s.or(low, sticky) }
}

/// Shifts left by up to two words so that the first bit is at the top, and keeps one word; whether
/// the other one has bits becomes its last bit.
fn shift_left_to_one_word(s: &mut Seq, v: Wide, n: Value, w: u32) -> Value {
    let zero = s.like(n, 0);
    let word = s.like(n, w as u64);
    let inside = s.mask(n, w as u64 - 1);
    let rest = s.sub(word, inside);
    let rest = s.mask(rest, w as u64 - 1);
    let is_whole = s.is(inside, 0);
    let is_far = s.cmp(Op::IcmpUge, n, word);
    let up = s.same(Op::IShl, &[v.high, inside]);
    let across = s.same(Op::ILshr, &[v.low, rest]);
    let across = s.select(is_whole, zero, across);
    let near = s.or(up, across);
    let low = s.same(Op::IShl, &[v.low, inside]);
    let high = s.select(is_far, low, near);
    let left = s.select(is_far, zero, low);
    let sticky = s.cmp(Op::IcmpNe, left, zero);
    let sticky = s.bit(sticky, high);
    s.or(high, sticky)
}
