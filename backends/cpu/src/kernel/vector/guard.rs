//! Branches on the position in x, as bounds of the invocation loop.
//!
//! A guard at the start of a region, such as `x < n`, lets the invocations outside run nothing but
//! the way to the end of the region: they need not run at all. A branch inside, such as the test
//! whether a pixel lies off the border, parts the row: neighbours that take the same side run in
//! lanes, the others one by one. The bounds are exact for indices that do not wrap; the check of
//! that is part of the emitted code.

use super::super::carried::{Carried, Carry};
use super::super::regions::{Region, RegionPlan};
use super::vary::Vary;
use magpie_mpir::{Block, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;

/// The most conditions that are looked at.
const MAX_PARTS: usize = 8;
/// The deepest expression that is evaluated ahead of the loop.
const MAX_DEPTH: u32 = 12;

/// One condition that every running invocation meets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The value, which does not depend on x.
    Same(Value),
    /// `index < bound`, unsigned, where the index grows by one from lane to lane.
    Below { index: Value, bound: Value },
    /// `index >= bound`.
    AtLeast { index: Value, bound: Value },
}

/// The branches of a region that bounds replace.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// Met by every invocation that must run.
    pub(crate) runs: Vec<Part>,
    /// Met, besides, by invocations that may run in lanes.
    pub(crate) lanes: Vec<Part>,
    /// Blocks that end in such a branch, with the side that meets it.
    blocks: Vec<(Block, Block)>,
}

impl Guard {
    /// Whether a block ends in a guard.
    pub(crate) fn holds(&self, b: Block) -> bool {
        self.active_side(b).is_some()
    }

    /// Where a block that ends in a guard goes for invocations that meet it.
    pub(crate) fn active_side(&self, b: Block) -> Option<Block> {
        self.blocks.iter().find(|(g, _)| *g == b).map(|&(_, to)| to)
    }

    /// Finds the branches of a region that depend on x and can be bounds.
    pub(crate) fn find(
        f: &MpirFn,
        types: &magpie_types::TypeCtx,
        plan: &RegionPlan,
        region: &Region,
        carried: &Carried,
        vary: &Vary,
    ) -> Guard {
        let mut guard = Guard::default();
        let finder = Finder { f, types, plan, carried, vary };
        if plan.per_invocation {
            return guard;
        }
        // Skipped invocations do not choose a way out.
        if region.exits.len() + region.returns as usize == 1 {
            finder.find_start(region, &mut guard);
        }
        finder.find_inside(region, &mut guard);
        guard
    }
}

struct Finder<'a> {
    f: &'a MpirFn,
    types: &'a magpie_types::TypeCtx,
    plan: &'a RegionPlan,
    carried: &'a Carried,
    vary: &'a Vary,
}

impl Finder<'_> {
    /// The guards in front of everything that has an effect.
    fn find_start(&self, region: &Region, guard: &mut Guard) {
        let (f, plan, finder) = (self.f, self.plan, self);
        let mut b = region.leader;
        let mut steps = 0;
        while finder.is_inert(b) && steps < MAX_PARTS {
            steps += 1;
            match &f.block(b).term {
                Terminator::Br(to) if plan.is_internal(b, *to) && *to != region.leader => b = *to,
                Terminator::Cbr { cond, then, else_ } => {
                    let (active, negated) = match (finder.ends(*else_, b), finder.ends(*then, b)) {
                        (true, false) => (*then, false),
                        (false, true) => (*else_, true),
                        _ => break,
                    };
                    let mut parts = Vec::new();
                    if !plan.is_internal(b, active)
                        || active == region.leader
                        || !finder.parts(*cond, negated, &mut parts)
                        || guard.runs.len() + parts.len() > MAX_PARTS
                    {
                        break;
                    }
                    guard.runs.extend(parts);
                    guard.blocks.push((b, active));
                    b = active;
                }
                _ => break,
            }
        }
    }

    /// Branches that depend on x anywhere else.
    fn find_inside(&self, region: &Region, guard: &mut Guard) {
        for &b in &region.blocks {
            let Terminator::Cbr { cond, then, else_ } = self.f.block(b).term else { continue };
            if !self.vary.get(cond) || guard.holds(b) {
                continue;
            }
            let mut parts = Vec::new();
            let mut active = then;
            if !self.parts(cond, false, &mut parts) || self.is_narrow(&parts) {
                parts.clear();
                active = else_;
                if !self.parts(cond, true, &mut parts) {
                    continue;
                }
            }
            if guard.lanes.len() + parts.len() <= MAX_PARTS {
                guard.lanes.extend(parts);
                guard.blocks.push((b, active));
            }
        }
    }

    /// Whether hardly any invocation meets the parts: the other side is the usual one.
    fn is_narrow(&self, parts: &[Part]) -> bool {
        parts.iter().any(|p| match *p {
            Part::Below { bound, .. } => self.f.as_bits(bound).is_some_and(|n| n < 8),
            Part::Same(_) | Part::AtLeast { .. } => false,
        })
    }

    /// Whether executing a block changes nothing that others can see.
    fn is_inert(&self, b: Block) -> bool {
        self.f.block(b).insts.iter().all(|&i| {
            let data = self.f.inst(i);
            let kept = data
                .result()
                .is_some_and(|v| matches!(self.carried.get(v), Carry::Frame(_) | Carry::Scalar(_)));
            data.op.is_removable() && !kept
        })
    }

    /// Whether everything from a block on is the end of the region and nothing else.
    fn ends(&self, mut b: Block, mut from: Block) -> bool {
        for _ in 0..4 {
            if !self.plan.is_internal(from, b) {
                return self.f.phis(b).next().is_none();
            }
            if !self.is_inert(b) {
                return false;
            }
            match &self.f.block(b).term {
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

    /// Takes a condition apart. False when it is none that bounds can express.
    fn parts(&self, cond: Value, negated: bool, out: &mut Vec<Part>) -> bool {
        if !self.is_simple(cond, MAX_DEPTH) {
            return false;
        }
        let Some(i) = self.f.def_inst(cond) else {
            out.push(Part::Same(cond));
            return !negated;
        };
        let (op, args) = (self.f.inst(i).op, self.f.args(i));
        match op {
            Op::IAnd if !negated => {
                return self.parts(args[0], false, out) && self.parts(args[1], false, out);
            }
            Op::IcmpUlt | Op::IcmpUgt | Op::IcmpUle | Op::IcmpUge => {}
            _ => {
                out.push(Part::Same(cond));
                return !negated && !self.vary.get(cond);
            }
        }
        if !self.vary.get(cond) {
            out.push(Part::Same(cond));
            return !negated;
        }
        let (index, bound, swapped) = match (self.is_index(args[0]), self.is_index(args[1])) {
            (true, _) if !self.vary.get(args[1]) => (args[0], args[1], false),
            (_, true) if !self.vary.get(args[0]) => (args[1], args[0], true),
            _ => return false,
        };
        // As `index < bound` or `index >= bound`.
        let below = match (op, swapped) {
            (Op::IcmpUlt, false) | (Op::IcmpUgt, true) => !negated,
            (Op::IcmpUge, false) | (Op::IcmpUle, true) => negated,
            _ => return false,
        };
        out.push(if below { Part::Below { index, bound } } else { Part::AtLeast { index, bound } });
        true
    }

    /// Whether a value is a 32-bit number that grows by one from lane to lane.
    fn is_index(&self, v: Value) -> bool {
        self.types.prim(self.f.ty(v)) == Some(PrimType::U32) && self.stride(v) == Some(1)
    }

    fn stride(&self, v: Value) -> Option<i64> {
        if !self.vary.get(v) {
            return Some(0);
        }
        let i = self.f.def_inst(v)?;
        let args = self.f.args(i);
        match self.f.inst(i).op {
            Op::GpuThreadId | Op::GpuGlobalId => Some(1),
            Op::IAdd => Some(self.stride(args[0])? + self.stride(args[1])?),
            Op::ISub => Some(self.stride(args[0])? - self.stride(args[1])?),
            _ => None,
        }
    }

    /// Whether a value is made of pure ops and can be evaluated ahead of the loop.
    fn is_simple(&self, v: Value, depth: u32) -> bool {
        let ValueDef::Inst(i) = self.f.def(v) else { return true };
        if matches!(self.carried.get(v), Carry::Scalar(_)) {
            return true;
        }
        depth > 0 && self.is_evaluable(i) && {
            self.f.args(i).iter().all(|&a| self.is_simple(a, depth - 1))
        }
    }

    fn is_evaluable(&self, i: Inst) -> bool {
        let op = self.f.inst(i).op;
        op.is_pure() && op != Op::GpuShared
    }
}
