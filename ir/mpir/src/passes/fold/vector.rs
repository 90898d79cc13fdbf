//! Rules of values made of parts: vectors, aggregates, arrays.

use super::{Folder, Outcome};
use crate::{Inst, Op};
use magpie_types::TypeKind;

pub(super) fn extract(fx: &mut Folder, i: Inst) -> Outcome {
    let [v] = fx.args(i);
    let lane = fx.f.inst(i).imm_lo();
    if fx.is_const(v) {
        return Outcome::Value(fx.f.zero(fx.f.inst(i).ty));
    }
    if let Some([x]) = fx.operands(v, Op::VecSplat) {
        return Outcome::Value(x);
    }
    if let Some([rest, x]) = fx.operands(v, Op::VecInsert) {
        let inserted = fx.f.def_inst(v).map(|d| fx.f.inst(d).imm_lo());
        if inserted == Some(lane) {
            return Outcome::Value(x);
        }
        fx.f.args_mut(i)[0] = rest;
        return Outcome::Rewritten;
    }
    part(fx, v, Op::VecNew, lane)
}

pub(super) fn insert(fx: &mut Folder, i: Inst) -> Outcome {
    let [v, x] = fx.args(i);
    let lane = fx.f.inst(i).imm_lo();
    let Some([from]) = fx.operands(x, Op::VecExtract) else { return Outcome::Keep };
    let extracted = fx.f.def_inst(x).map(|d| fx.f.inst(d).imm_lo());
    if from == v && extracted == Some(lane) { Outcome::Value(v) } else { Outcome::Keep }
}

pub(super) fn member(fx: &mut Folder, i: Inst) -> Outcome {
    let [v] = fx.args(i);
    if fx.is_const(v) {
        return Outcome::Value(fx.f.zero(fx.f.inst(i).ty));
    }
    part(fx, v, Op::StructNew, fx.f.inst(i).imm_lo())
}

/// Operand `n` of the `op` that made `v`.
fn part(fx: &Folder, v: crate::Value, op: Op, n: u32) -> Outcome {
    let made = fx.f.def_inst(v).filter(|&d| fx.f.inst(d).op == op);
    let part = made.and_then(|d| fx.f.args(d).get(n as usize));
    part.map_or(Outcome::Keep, |&x| Outcome::Value(x))
}

pub(super) fn len(fx: &mut Folder, i: Inst) -> Outcome {
    let [array] = fx.args(i);
    match fx.types.kind(fx.f.ty(array)) {
        TypeKind::SharedArray(_, n) | TypeKind::LocalArray(_, n) => {
            fx.constant(fx.f.inst(i).ty, n as u64)
        }
        _ => Outcome::Keep,
    }
}
