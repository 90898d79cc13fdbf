//! Rules of conversions.

use super::{Folder, Outcome};
use crate::{Inst, Op};
use magpie_types::PrimType;

pub(super) fn cast(fx: &mut Folder, i: Inst) -> Outcome {
    let [x] = fx.args(i);
    let to = fx.f.inst(i).ty;
    if fx.f.ty(x) == to {
        return Outcome::Value(x);
    }
    let Some([inner]) = fx.operands(x, Op::Cast) else { return Outcome::Keep };
    let (Some(a), Some(b), Some(c)) = (fx.prim(inner), fx.prim(x), PrimType::from_id(to)) else {
        return Outcome::Keep;
    };
    if !may_skip(a, b, c) {
        return Outcome::Keep;
    }
    if a == c { Outcome::Value(inner) } else { fx.rewrite(i, Op::Cast, &[inner]) }
}

/// Whether a → b → c is a → c.
fn may_skip(a: PrimType, b: PrimType, c: PrimType) -> bool {
    if a.is_float() {
        // Widening is exact.
        return b.is_float() && c.is_float() && holds_float(b, a);
    }
    if a == PrimType::Bool {
        return b.is_int() && b.bit_width() > 1 && (c.is_int() || c == a);
    }
    if !a.is_int() || !b.is_int() || !c.is_int() {
        return false;
    }
    let (wa, wb, wc) = (a.bit_width(), b.bit_width(), c.bit_width());
    // Only low bits that both conversions keep are needed; or the number itself is kept by b.
    wc <= wa.min(wb) || wb > wa && (!a.is_signed() || b.is_signed())
}

fn holds_float(wide: PrimType, narrow: PrimType) -> bool {
    match wide {
        PrimType::F64 => true,
        PrimType::F32 => narrow != PrimType::F64,
        _ => wide == narrow,
    }
}

pub(super) fn bits_cast(fx: &mut Folder, i: Inst) -> Outcome {
    let [x] = fx.args(i);
    let to = fx.f.inst(i).ty;
    if fx.f.ty(x) == to {
        return Outcome::Value(x);
    }
    let Some([inner]) = fx.operands(x, Op::BitsCast) else { return Outcome::Keep };
    match fx.f.ty(inner) == to {
        true => Outcome::Value(inner),
        false => fx.rewrite(i, Op::BitsCast, &[inner]),
    }
}
