//! Ballots of which only the first 32 lanes are looked at. WGSL has no `u64`, but four words for a
//! ballot, and kernels may want the first.

use magpie_mpir::{Inst, MpirFn, Op, Terminator};
use magpie_types::{TypeCtx, fixed};

/// Whether nobody reads the upper half of a ballot: it goes to conversions to 32 bits or less.
pub(crate) fn is_narrow(f: &MpirFn, types: &TypeCtx, ballot: Inst) -> bool {
    let Some(value) = f.inst(ballot).result() else { return true };
    let mut insts = f.blocks.iter().flat_map(|b| &b.insts);
    let is_read_whole = insts.any(|&i| {
        let prim = types.prim(f.inst(i).ty);
        let narrows =
            f.inst(i).op == Op::Cast && prim.is_some_and(|p| p.is_int() && p.bit_width() <= 32);
        f.args(i).contains(&value) && !narrows
    });
    let decides = f.blocks.iter().any(|b| match b.term {
        Terminator::Switch { value: v, .. } => v == value,
        Terminator::Ret(v) => v == Some(value),
        Terminator::Br(_) | Terminator::Cbr { .. } | Terminator::Unreachable => false,
    });
    !is_read_whole && !decides
}

/// Lets ballots be words. All are narrow.
pub(crate) fn narrow(f: &mut MpirFn) {
    let insts = f.blocks.iter().flat_map(|b| &b.insts).copied();
    let ballots: Vec<Inst> = insts.filter(|&i| f.inst(i).op == Op::GpuSubgroupBallot).collect();
    for i in ballots {
        f.inst_mut(i).ty = fixed::U32;
        if let Some(v) = f.inst(i).result() {
            f.locals[v.index()].ty = fixed::U32;
        }
    }
}
