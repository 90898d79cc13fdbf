//! Rules of addresses in lowered host code: a constant distance is part of the access.

use super::{Folder, Outcome};
use crate::{Inst, Op, Value};

pub(super) fn ptr_add(fx: &mut Folder, i: Inst) -> Outcome {
    let [base, by] = fx.args(i);
    let Some(by) = fx.bits(by) else { return Outcome::Keep };
    if by == 0 {
        return Outcome::Value(base);
    }
    let Some((before, distance)) = constant_distance(fx, base) else { return Outcome::Keep };
    let ty = fx.f.ty(fx.f.arg(i, 1));
    let sum = fx.f.const_bits(ty, distance.wrapping_add(by));
    fx.rewrite(i, Op::PtrAdd, &[before, sum])
}

/// Gives a load or a store the constant distance of its address as offset; whether it has one.
pub(super) fn shorten(fx: &mut Folder, i: Inst) -> bool {
    if !matches!(fx.f.inst(i).op, Op::MemLoad | Op::MemStore) {
        return false;
    }
    let Some((base, distance)) = constant_distance(fx, fx.f.arg(i, 0)) else { return false };
    let offset = fx.f.inst(i).imm.wrapping_add(distance);
    // Machine code has room for so much.
    if i32::try_from(offset).is_err() {
        return false;
    }
    fx.f.args_mut(i)[0] = base;
    fx.f.inst_mut(i).imm = offset;
    true
}

/// The address from which another one is a constant distance away.
fn constant_distance(fx: &Folder, address: Value) -> Option<(Value, u64)> {
    let [base, by] = fx.operands(address, Op::PtrAdd)?;
    Some((base, fx.bits(by)?))
}
