//! Which values of a region differ between neighbours, and whether the region can run in lanes.

use super::super::carried::{Carried, Carry};
use super::super::regions::{Region, RegionPlan};
use super::guard::Guard;
use magpie_mpir::eval::SubgroupOp;
use magpie_mpir::{Inst, MpirFn, Op, Value, ValueDef};

/// Larger regions are not worth a second copy.
const MAX_INSTS: usize = 4000;

/// For each value, whether it differs along some of the three dimensions of a workgroup.
pub(crate) struct Vary {
    along: [bool; 3],
    vary: Vec<bool>,
}

impl Vary {
    pub(crate) fn get(&self, v: Value) -> bool {
        self.vary[v.index()]
    }

    /// By how much an integer grows from neighbour to neighbour, when that is the same everywhere.
    pub(crate) fn stride(&self, f: &MpirFn, v: Value) -> Option<i64> {
        if !self.get(v) {
            return Some(0);
        }
        let i = f.def_inst(v)?;
        let args = f.args(i);
        match f.inst(i).op {
            Op::GpuThreadId | Op::GpuGlobalId => Some(1),
            Op::IAdd => Some(self.stride(f, args[0])? + self.stride(f, args[1])?),
            Op::ISub => Some(self.stride(f, args[0])? - self.stride(f, args[1])?),
            _ => None,
        }
    }

    /// Finds what varies in a region. Phis start as the same and change when an arm varies.
    pub(crate) fn new(f: &MpirFn, region: &Region, carried: &Carried, along: [bool; 3]) -> Vary {
        let mut s = Vary { along, vary: vec![false; f.locals.len()] };
        let mut changed = true;
        while changed {
            changed = false;
            for &b in &region.blocks {
                for &i in &f.block(b).insts {
                    let data = f.inst(i);
                    let Some(v) = data.result() else { continue };
                    if s.vary[v.index()] {
                        continue;
                    }
                    let varies = match data.op {
                        Op::GpuSubgroupLaneId => true,
                        Op::GpuThreadId | Op::GpuGlobalId => s.along[data.dim() as usize % 3],
                        Op::Phi => {
                            let entered =
                                region.leader == b && matches!(carried.get(v), Carry::Frame(_));
                            entered || f.phi_arms(i).any(|(_, a)| s.operand(f, a, carried))
                        }
                        _ => f.args(i).iter().any(|&a| s.operand(f, a, carried)),
                    };
                    if varies {
                        s.vary[v.index()] = true;
                        changed = true;
                    }
                }
            }
        }
        // What only branches and other regions use of values from elsewhere.
        for &b in &region.blocks {
            if let Some(v) = f.block(b).term.operand() {
                s.operand(f, v, carried);
            }
            for to in f.successors(b) {
                for v in f.phis(to).filter_map(|phi| f.phi_value(phi, b)) {
                    s.operand(f, v, carried);
                }
            }
        }
        s
    }

    /// Whether an operand varies; values of other regions are judged by how they arrive.
    fn operand(&mut self, f: &MpirFn, v: Value, carried: &Carried) -> bool {
        if self.vary[v.index()] {
            return true;
        }
        let ValueDef::Inst(i) = f.def(v) else { return false };
        let varies = match carried.get(v) {
            Carry::Frame(_) => true,
            Carry::Again => self.expression(f, i, carried),
            Carry::No | Carry::Scalar(_) => false,
        };
        self.vary[v.index()] |= varies;
        varies
    }

    fn expression(&mut self, f: &MpirFn, i: Inst, carried: &Carried) -> bool {
        match f.inst(i).op {
            Op::GpuSubgroupLaneId => true,
            Op::GpuThreadId | Op::GpuGlobalId => self.along[f.inst(i).dim() as usize % 3],
            _ => (0..f.args(i).len()).any(|n| self.operand(f, f.arg(i, n), carried)),
        }
    }
}

/// Whether a region can run in lanes.
pub(crate) fn is_eligible(
    f: &MpirFn,
    plan: &RegionPlan,
    region: &Region,
    vary: &Vary,
    guard: &Guard,
) -> bool {
    let insts: usize = region.blocks.iter().map(|&b| f.block(b).insts.len()).sum();
    if plan.per_invocation || insts > MAX_INSTS {
        return false;
    }
    let varies = region.blocks.iter().flat_map(|&b| &f.block(b).insts);
    let computes = varies.clone().any(|&i| f.inst(i).result().is_some_and(|v| vary.get(v)));
    // All that some regions do is to hand a value on, such as a sum from one round to the next.
    let hands_on = || {
        let edges =
            region.blocks.iter().flat_map(|&b| f.successors(b).into_iter().map(move |s| (b, s)));
        edges
            .filter(|&(b, s)| !plan.is_internal(b, s))
            .any(|(b, s)| f.phis(s).any(|phi| f.phi_value(phi, b).is_some_and(|v| vary.get(v))))
    };
    (computes || hands_on())
        && varies.clone().all(|&i| runs_in_lanes(f.inst(i).op))
        && region
            .blocks
            .iter()
            .all(|&b| guard.holds(b) || f.block(b).term.operand().is_none_or(|v| !vary.get(v)))
}

/// Whether neighbours may execute the op side by side.
fn runs_in_lanes(op: Op) -> bool {
    use magpie_mpir::Memory;
    match op {
        Op::GpuBufferLoad
        | Op::GpuBufferStore
        | Op::GpuLeafLoad
        | Op::GpuLeafStore
        | Op::GpuBufferLen
        | Op::GpuShared
        | Op::Phi => true,
        op if SubgroupOp::of(op).is_some() => true,
        Op::GpuLocal | Op::GpuPrint | Op::VecNew | Op::VecExtract => false,
        op => op.info().memory == Memory::None && !op.info().convergent && !op.info().may_trap,
    }
}
