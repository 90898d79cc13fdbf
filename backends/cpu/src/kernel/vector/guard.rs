//! Branches on the position in x, as bounds of the invocation loop.
//!
//! A guard at the start of a region, such as `x < n`, lets the invocations outside run nothing but
//! the way to the end of the region: they need not run at all. A branch inside, such as the test
//! whether a pixel lies off the border, parts the row: neighbours that take the same side run in
//! lanes, the others one by one. So does a choice between indices, such as that of the nearest pixel
//! in the image: neighbours that choose the one that grows with x load their elements at once. The
//! bounds are exact for indices that do not wrap; the check of that is part of the emitted code.

use super::super::carried::{Carried, Carry};
use super::super::regions::{Region, RegionPlan};
use super::still::{ends, is_inert};
use super::vary::Vary;
use magpie_mpir::{Block, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;
use rustc_hash::FxHashMap;

/// The most conditions at the start of a region that are looked at.
const MAX_PARTS: usize = 8;
/// The most conditions that part a row. Each is evaluated once a row.
const MAX_LANE_PARTS: usize = 24;
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
    /// `index <= bound`.
    AtMost { index: Value, bound: Value },
}

impl Part {
    /// What the condition is made of.
    pub(crate) fn values(self) -> impl Iterator<Item = Value> {
        let (first, second) = match self {
            Part::Same(cond) => (cond, None),
            Part::Below { index, bound }
            | Part::AtLeast { index, bound }
            | Part::AtMost { index, bound } => (index, Some(bound)),
        };
        std::iter::once(first).chain(second)
    }
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
    /// Choices of an index, with the one that invocations in lanes make.
    choices: FxHashMap<Value, Value>,
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

    /// What the result of a choice is for invocations in lanes.
    pub(crate) fn choice(&self, result: Value) -> Option<Value> {
        self.choices.get(&result).copied()
    }

    /// Adds parts that invocations in lanes meet. False when there are too many.
    fn add_lane_parts(&mut self, parts: Vec<Part>) -> bool {
        let fits = self.lanes.len() + parts.len() <= MAX_LANE_PARTS;
        if fits {
            self.lanes.extend(parts);
        }
        fits
    }

    /// Finds the branches and choices of a region that depend on x and can be bounds.
    pub(crate) fn find(
        f: &MpirFn,
        types: &magpie_types::TypeCtx,
        plan: &RegionPlan,
        region: &Region,
        carried: &Carried,
        vary: &Vary,
    ) -> Guard {
        let mut guard = Guard::default();
        let finder = Finder { f, types, plan, carried, vary, leader: region.leader };
        if plan.per_invocation {
            return guard;
        }
        // Skipped invocations do not choose a way out.
        if region.exits.len() + region.returns as usize == 1 {
            finder.find_start(region, &mut guard);
        }
        finder.find_inside(region, &mut guard);
        finder.find_choices(region, &mut guard);
        guard
    }
}

struct Finder<'a> {
    f: &'a MpirFn,
    types: &'a magpie_types::TypeCtx,
    plan: &'a RegionPlan,
    carried: &'a Carried,
    vary: &'a Vary,
    /// Where the region starts.
    leader: Block,
}

impl Finder<'_> {
    /// The guards in front of everything that has an effect.
    fn find_start(&self, region: &Region, guard: &mut Guard) {
        let (f, plan, finder) = (self.f, self.plan, self);
        let mut b = region.leader;
        let mut steps = 0;
        while is_inert(f, finder.carried, b) && steps < MAX_PARTS {
            steps += 1;
            match &f.block(b).term {
                Terminator::Br(to) if plan.is_internal(b, *to) && *to != region.leader => b = *to,
                Terminator::Cbr { cond, then, else_ } => {
                    let ends = |to| ends(f, plan, finder.carried, to, b);
                    let (active, negated) = match (ends(*else_), ends(*then)) {
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
            let Some((parts, holds)) = self.usual_side(cond) else { continue };
            if guard.add_lane_parts(parts) {
                guard.blocks.push((b, if holds { then } else { else_ }));
            }
        }
    }

    /// The parts of the side of a condition that most invocations are on, and whether the condition
    /// holds there.
    fn usual_side(&self, cond: Value) -> Option<(Vec<Part>, bool)> {
        let mut parts = Vec::new();
        if self.parts(cond, false, &mut parts) && !self.is_narrow(&parts) {
            return Some((parts, true));
        }
        parts.clear();
        self.parts(cond, true, &mut parts).then_some((parts, false))
    }

    /// Choices between an index that grows with x and another number.
    fn find_choices(&self, region: &Region, guard: &mut Guard) {
        for &i in region.blocks.iter().flat_map(|&b| &self.f.block(b).insts) {
            let Some(result) = self.f.inst(i).result().filter(|&v| self.vary.get(v)) else {
                continue;
            };
            let Some((parts, chosen)) = self.usual_choice(i, guard) else { continue };
            if guard.add_lane_parts(parts) {
                guard.choices.insert(result, chosen);
            }
        }
    }

    /// The index that a choice usually makes, and where it does.
    fn usual_choice(&self, i: Inst, guard: &Guard) -> Option<(Vec<Part>, Value)> {
        let resolved = |v: Value| guard.choice(v).unwrap_or(v);
        match (self.f.inst(i).op, self.f.args(i)) {
            (Op::Select, &[cond, x, y]) => {
                let (parts, holds) = self.usual_side(cond)?;
                let chosen = resolved(if holds { x } else { y });
                self.is_index(chosen).then_some((parts, chosen))
            }
            (op @ (Op::IUmin | Op::IUmax), &[x, y]) => {
                let (x, y) = (resolved(x), resolved(y));
                let (index, bound) = if self.is_index(x) { (x, y) } else { (y, x) };
                let can_be_bound = self.is_index(index)
                    && !self.vary.get(bound)
                    && self.is_simple(index, MAX_DEPTH)
                    && self.is_simple(bound, MAX_DEPTH);
                let part = match op {
                    Op::IUmin => Part::AtMost { index, bound },
                    _ => Part::AtLeast { index, bound },
                };
                can_be_bound.then(|| (vec![part], index))
            }
            _ => None,
        }
    }

    /// Whether hardly any invocation meets the parts: the other side is the usual one.
    fn is_narrow(&self, parts: &[Part]) -> bool {
        let is_single = parts.windows(2).any(|pair| match *pair {
            [Part::AtLeast { index, bound }, Part::AtMost { index: i, bound: b }] => {
                (index, bound) == (i, b)
            }
            _ => false,
        });
        is_single
            || parts.iter().any(|p| match *p {
                Part::Below { bound, .. } | Part::AtMost { bound, .. } => {
                    self.f.as_bits(bound).is_some_and(|n| n < 8)
                }
                Part::Same(_) | Part::AtLeast { .. } => false,
            })
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
            Op::IcmpUlt | Op::IcmpUgt | Op::IcmpUle | Op::IcmpUge | Op::IcmpEq => {}
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
        let (below, at_least) = (Part::Below { index, bound }, Part::AtLeast { index, bound });
        let at_most = Part::AtMost { index, bound };
        let part = match (op, swapped, negated) {
            (Op::IcmpUlt, false, false) | (Op::IcmpUgt, true, false) => below,
            (Op::IcmpUlt, false, true) | (Op::IcmpUgt, true, true) => at_least,
            (Op::IcmpUge, false, false) | (Op::IcmpUle, true, false) => at_least,
            (Op::IcmpUge, false, true) | (Op::IcmpUle, true, true) => below,
            (Op::IcmpUle, false, false) | (Op::IcmpUge, true, false) => at_most,
            (Op::IcmpUgt, false, true) | (Op::IcmpUlt, true, true) => at_most,
            (Op::IcmpEq, _, false) => {
                out.push(at_least);
                at_most
            }
            _ => return false,
        };
        out.push(part);
        true
    }

    /// Whether a value is a 32-bit number that grows by one from lane to lane.
    fn is_index(&self, v: Value) -> bool {
        self.types.prim(self.f.ty(v)) == Some(PrimType::U32)
            && self.vary.stride(self.f, v) == Some(1)
    }

    /// Whether a value is made of pure ops and can be evaluated ahead of the loop.
    fn is_simple(&self, v: Value, depth: u32) -> bool {
        let ValueDef::Inst(i) = self.f.def(v) else { return true };
        let is_made_before = self.carried.home(i) != self.plan.region_of(self.leader)
            || self.f.phis(self.leader).any(|phi| phi == i);
        if matches!(self.carried.get(v), Carry::Scalar(_)) && is_made_before {
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
