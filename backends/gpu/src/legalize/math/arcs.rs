//! Arc sine, arc cosine and the angle of a point.

use super::super::seq::Seq;
use super::divide;
use super::library::{HALF_PI, Library, PI, abs, add, mul, sub};
use magpie_mpir::{Op, Value};

/// What arc sine and arc cosine share.
struct Arc {
    /// Whether the operand is closer to 1 or -1 than to 0.
    far: Value,
    /// The arc sine of its size, or half the arc from the nearer of 1 and -1.
    arc: Value,
}

fn arc(s: &mut Seq, lib: &Library, x: Value) -> Arc {
    let size = abs(s, x);
    let (half, one) = (lib.number(s, 0.5), lib.number(s, 1.0));
    let far = s.cmp(Op::FcmpOgt, size, half);
    let gap = sub(s, one, size);
    let gap = mul(s, gap, half);
    let root = divide(s, Op::FSqrt, &[gap]);
    let square = mul(s, size, size);
    let r = s.select(far, root, size);
    let z = s.select(far, gap, square);
    Arc { far, arc: lib.odd_of_square(s, lib.asin, r, z) }
}

pub(super) fn asin(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let Arc { far, arc } = arc(s, lib, x);
    let twice = add(s, arc, arc);
    let from_end = lib.less_than(s, HALF_PI, twice);
    let v = s.select(far, from_end, arc);
    let sign = lib.sign_of(s, x);
    lib.flip(s, v, sign)
}

pub(super) fn acos(s: &mut Seq, lib: &Library, x: Value) -> Value {
    let Arc { far, arc } = arc(s, lib, x);
    let sign = lib.sign_of(s, x);
    let signed = lib.flip(s, arc, sign);
    let near = lib.less_than(s, HALF_PI, signed);
    let twice = add(s, arc, arc);
    let from_end = lib.less_than(s, PI, twice);
    let zero = lib.number(s, 0.0);
    let negative = s.cmp(Op::FcmpOlt, x, zero);
    let beyond = s.select(negative, from_end, twice);
    s.select(far, beyond, near)
}

/// The angle of the point with the coordinates x and y.
pub(super) fn atan2(s: &mut Seq, lib: &Library, y: Value, x: Value) -> Value {
    let (width, height) = (abs(s, x), abs(s, y));
    let steep = s.cmp(Op::FcmpOgt, height, width);
    let (short, long) = (s.select(steep, width, height), s.select(steep, height, width));
    let ratio = divide(s, Op::FDiv, &[short, long]);
    // Zeros and infinities have no quotient, but equal coordinates a direction.
    let (zero, one) = (lib.number(s, 0.0), lib.number(s, 1.0));
    let at_zero = s.cmp(Op::FcmpOeq, long, zero);
    let of_equal = s.select(at_zero, zero, one);
    let equal = s.cmp(Op::FcmpOeq, short, long);
    let ratio = s.select(equal, of_equal, ratio);
    let v = lib.odd(s, lib.atan, ratio);
    let across = lib.less_than(s, HALF_PI, v);
    let v = s.select(steep, across, v);
    let back = lib.less_than(s, PI, v);
    let sign = lib.sign_of(s, x);
    let right = s.is(sign, 0);
    let v = s.select(right, v, back);
    let sign = lib.sign_of(s, y);
    lib.flip(s, v, sign)
}
