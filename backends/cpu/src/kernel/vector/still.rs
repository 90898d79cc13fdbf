//! What executes without changing anything that others can see, and which loads may therefore move.

use super::super::carried::{Carried, Carry};
use super::super::regions::{Region, RegionPlan};
use magpie_mpir::{Block, Memory, MpirFn, Op, Terminator, Value, ValueDef};
use rustc_hash::FxHashSet;

/// Whether executing a block changes nothing that others can see.
pub(super) fn is_inert(f: &MpirFn, carried: &Carried, b: Block) -> bool {
    f.block(b).insts.iter().all(|&i| {
        let data = f.inst(i);
        let kept = data
            .result()
            .is_some_and(|v| matches!(carried.get(v), Carry::Frame(_) | Carry::Scalar(_)));
        data.op.is_removable() && !kept
    })
}

/// Whether everything from a block on is the end of the region and nothing else.
pub(super) fn ends(
    f: &MpirFn,
    plan: &RegionPlan,
    carried: &Carried,
    mut b: Block,
    mut from: Block,
) -> bool {
    for _ in 0..4 {
        if !plan.is_internal(from, b) {
            return f.phis(b).next().is_none();
        }
        if !is_inert(f, carried, b) {
            return false;
        }
        match &f.block(b).term {
            Terminator::Ret(_) => return true,
            Terminator::Br(to) => {
                from = b;
                b = *to;
            }
            Terminator::Cbr { .. } | Terminator::Switch { .. } | Terminator::Unreachable => {
                return false;
            }
        }
    }
    false
}

/// With fewer loads there is nothing to gain.
const MIN_LOADS: usize = 8;

/// The arrays that a region loads from, when its loads may execute anywhere between its start and
/// the uses of their results: it has no loops, hands nothing to other regions that they could
/// compute later, and writes, if at all, once and as its last act.
pub(super) fn arrays_of_free_loads(
    f: &MpirFn,
    plan: &RegionPlan,
    carried: &Carried,
    region: &Region,
) -> Vec<Value> {
    let mut arrays = Vec::new();
    let mut loads = 0;
    let mut write = None;
    let mut seen = FxHashSet::default();
    for &b in &region.blocks {
        let block = f.block(b);
        seen.insert(b);
        let loops = |to: Block| plan.is_internal(b, to) && seen.contains(&to);
        if f.successors(b).into_iter().any(loops) {
            return Vec::new();
        }
        for (at, &i) in block.insts.iter().enumerate() {
            let data = f.inst(i);
            if data.result().is_some_and(|v| matches!(carried.get(v), Carry::Scalar(_))) {
                return Vec::new();
            }
            let array = f.args(i).first().copied();
            if let (Op::GpuBufferLoad | Op::GpuLeafLoad, Some(array)) = (data.op, array) {
                loads += 1;
                if !arrays.contains(&array) {
                    arrays.push(array);
                }
            }
            let is_write = !matches!(data.op.info().memory, Memory::None | Memory::Read);
            if is_write && write.replace((b, at)).is_some() {
                return Vec::new();
            }
        }
        let hands_on = |to: Block| {
            !plan.is_internal(b, to)
                && f.phis(to).any(|phi| {
                    let result = f.inst(phi).result();
                    let carry = result.map_or(Carry::No, |v| carried.get(v));
                    let value = f.phi_value(phi, b);
                    let is_computed = value.is_some_and(|v| matches!(f.def(v), ValueDef::Inst(_)));
                    is_computed && matches!(carry, Carry::Scalar(_))
                })
        };
        if f.successors(b).into_iter().any(hands_on) {
            return Vec::new();
        }
    }
    let is_last = |(b, at): (Block, usize)| {
        let block = f.block(b);
        at + 1 == block.insts.len()
            && match &block.term {
                Terminator::Ret(_) => true,
                Terminator::Br(to) => ends(f, plan, carried, *to, b),
                Terminator::Cbr { .. } | Terminator::Switch { .. } | Terminator::Unreachable => {
                    false
                }
            }
    };
    match write.is_none_or(is_last) && loads >= MIN_LOADS {
        true => arrays,
        false => Vec::new(),
    }
}
