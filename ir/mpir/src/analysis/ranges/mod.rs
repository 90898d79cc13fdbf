//! [`Ranges`]: bounds of integer values.
//!
//! A walk down the dominator tree, in which the comparisons that branches prove narrow the ranges
//! below. Values that go round loops start optimistic; those that the loop makes larger are
//! widened to the end of their type on the side where they grew, until a whole walk confirms
//! every range. One more walk then uses what the loops' conditions say of the widened ones.

mod range;
mod scope;
mod slice;

pub use range::Range;
pub(crate) use scope::Scope;

use super::guards::Guards;
use super::{Cfg, Dominators};
use crate::{Block, Const, Flags, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;
use slice::Slice;

/// What is known of every launch of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LaunchFacts {
    /// The size of workgroups, when the code is for this size only.
    pub workgroup: Option<[u32; 3]>,
}

impl LaunchFacts {
    /// The kernel's own workgroup size, taken as fixed.
    pub fn of(f: &MpirFn) -> LaunchFacts {
        LaunchFacts { workgroup: f.gpu_meta.as_ref().map(|m| m.workgroup) }
    }
}

/// Walks in which ranges are widened before all values of loops count as unbounded.
const MAX_WIDENINGS: usize = 4;
/// Of phis with more arms nothing is known.
const MAX_ARMS: usize = 64;

/// The ranges of all values of an integer type of at most 64 bits or `bool`.
#[derive(Clone, Default, Debug)]
pub struct Ranges {
    of_value: Vec<Range>,
    facts: LaunchFacts,
    pub(crate) scope: Scope,
    pub(crate) guards: Guards,
    /// By instruction, for phis: what came over edges forwards in the current walk, and over edges
    /// back.
    forward: Vec<Option<Range>>,
    back: Vec<Option<Range>>,
    /// What is assumed to come over edges back; nothing at first.
    assumed: Vec<Option<Range>>,
    /// Phis with edges back.
    loop_phis: Vec<(Inst, PrimType)>,
    slice: Slice,
}

impl Ranges {
    /// The ranges of a function.
    pub fn new(f: &MpirFn, cfg: &Cfg, dom: &Dominators, facts: LaunchFacts) -> Ranges {
        let mut r = Ranges::default();
        r.compute(f, cfg, dom, facts);
        r
    }

    /// Recomputes the ranges, reusing memory.
    pub fn compute(&mut self, f: &MpirFn, cfg: &Cfg, dom: &Dominators, facts: LaunchFacts) {
        let all = (0..f.locals.len()).map(Value::new);
        self.compute_for(f, cfg, dom, facts, all);
    }

    /// Recomputes the ranges of some values and of what they depend on; those of others are the
    /// whole type.
    pub(crate) fn compute_for(
        &mut self,
        f: &MpirFn,
        cfg: &Cfg,
        dom: &Dominators,
        facts: LaunchFacts,
        wanted: impl Iterator<Item = Value>,
    ) {
        self.facts = facts;
        self.guards.compute(f, cfg, dom);
        self.slice.compute(f, cfg, dom, &self.guards, wanted);
        self.of_value.clear();
        self.of_value.extend(f.locals.iter().map(|local| {
            let p = PrimType::from_id(local.ty).filter(|&p| has_range(p));
            match (p, local.def) {
                (Some(p), ValueDef::Const(Const::Bits(bits))) => Range::exact(p, bits),
                (p, _) => Range::full(p.unwrap_or(PrimType::U64)),
            }
        }));
        self.scope.start(&self.of_value);
        for list in [&mut self.forward, &mut self.back, &mut self.assumed] {
            list.clear();
            list.resize(f.num_insts(), None);
        }
        self.loop_phis.clear();
        for &b in cfg.rpo() {
            if cfg.preds(b).iter().any(|&p| cfg.is_reachable(p) && cfg.is_retreating(p, b)) {
                for i in f.phis(b) {
                    let v = f.inst(i).result().filter(|&v| self.slice.contains(v));
                    self.loop_phis.extend(v.and_then(|v| Some((i, ranged(f, v)?))));
                }
            }
        }
        for round in 0.. {
            self.walk(f, cfg, dom);
            if !self.widen(f, round) {
                break;
            }
        }
        // Everything is confirmed: what came back may now replace what was assumed.
        if !self.loop_phis.is_empty() {
            for &(i, _) in &self.loop_phis {
                self.assumed[i.index()] = self.back[i.index()];
            }
            self.walk(f, cfg, dom);
        }
    }

    /// The range of a value where it is computed.
    pub fn of(&self, v: Value) -> Range {
        self.of_value[v.index()]
    }

    /// Begins another walk down the dominator tree.
    pub(crate) fn start_walk(&mut self) {
        self.scope.restart();
    }

    /// Goes on to a block of the walk.
    pub(crate) fn enter(&mut self, f: &MpirFn, dom: &Dominators, b: Block) {
        self.scope.enter(f, &self.guards, &self.slice, dom, b);
    }

    /// The range of a value in the current block of the walk, computed again from its operands.
    pub(crate) fn here(&self, f: &MpirFn, v: Value) -> Range {
        const DEPTH: u32 = 12;
        self.scope.recomputed(f, &self.facts, v, DEPTH)
    }

    fn walk(&mut self, f: &MpirFn, cfg: &Cfg, dom: &Dominators) {
        self.forward.fill(None);
        self.back.fill(None);
        self.start_walk();
        for (n, &b) in dom.preorder().iter().enumerate() {
            self.enter(f, dom, b);
            for &i in self.slice.insts(n) {
                let inst = f.inst(i);
                let Some(v) = inst.result() else { continue };
                let Some(p) = PrimType::from_id(inst.ty).filter(|&p| has_range(p)) else {
                    continue;
                };
                let scope = &self.scope;
                let range = if inst.op == Op::Phi {
                    let arms = [self.forward[i.index()], self.assumed[i.index()]];
                    arms.into_iter().flatten().reduce(Range::union)
                } else {
                    op_range(f, &self.facts, i, |v, given| match given {
                        Some((cond, truth)) => scope.given(f, cond, truth, v),
                        None => scope.range(f, v),
                    })
                };
                let range = range.unwrap_or(Range::full(p));
                self.of_value[v.index()] = range;
                self.scope.define(v, range);
            }
            for &s in cfg.succs(b) {
                self.leave(f, cfg, b, s);
            }
        }
    }

    /// Takes the values of an edge to the phis behind it.
    fn leave(&mut self, f: &MpirFn, cfg: &Cfg, from: Block, to: Block) {
        let mut position = None;
        for phi in f.phis(to) {
            let Some(result) = f.inst(phi).result().filter(|&v| self.slice.contains(v)) else {
                continue;
            };
            let Some(p) = ranged(f, result) else { continue };
            // The phis of a block mostly have their arms in one order.
            let in_order = position.and_then(|n| f.phi_arms(phi).nth(n));
            let v = match in_order.filter(|arm| arm.0 == from) {
                Some((_, v)) => Some(v),
                None if f.args(phi).len() > MAX_ARMS => None,
                None => {
                    position = f.phi_arms(phi).position(|arm| arm.0 == from);
                    position.map(|n| f.args(phi)[n])
                }
            };
            let range = match (v, &f.block(from).term) {
                (Some(v), &Terminator::Cbr { cond, then, else_ }) if then != else_ => {
                    self.scope.given(f, cond, to == then, v)
                }
                (Some(v), _) => self.scope.range(f, v),
                (None, _) => Range::full(p),
            };
            let back = cfg.is_retreating(from, to);
            let list = if back { &mut self.back } else { &mut self.forward };
            let slot = &mut list[phi.index()];
            *slot = Some(slot.map_or(range, |known| known.union(range)));
        }
    }

    /// Compares what came back with what was assumed, and assumes more where it was too little.
    fn widen(&mut self, f: &MpirFn, round: usize) -> bool {
        let mut again = false;
        for &(i, p) in &self.loop_phis {
            let (Some(v), Some(back)) = (f.inst(i).result(), self.back[i.index()]) else {
                continue;
            };
            let before = self.of_value[v.index()];
            if before.contains(back) {
                continue;
            }
            again = true;
            self.assumed[i.index()] = Some(match round < MAX_WIDENINGS {
                true => before.union(back).widened(p, before),
                false => Range::full(p),
            });
        }
        if again && round > MAX_WIDENINGS {
            for &(i, p) in &self.loop_phis {
                self.assumed[i.index()] = Some(Range::full(p));
            }
        }
        again
    }
}

/// Whether ranges are kept of a type.
fn has_range(p: PrimType) -> bool {
    (p.is_int() || p == PrimType::Bool) && p.bit_width() <= 64
}

/// The type of a value of which ranges are kept.
fn ranged(f: &MpirFn, v: Value) -> Option<PrimType> {
    PrimType::from_id(f.ty(v)).filter(|&p| has_range(p))
}

/// The range of what an instruction computes. `operand` gives the range of an operand, or that
/// where a condition is known. `None` when nothing is known.
fn op_range(
    f: &MpirFn,
    facts: &LaunchFacts,
    i: Inst,
    operand: impl Fn(Value, Option<(Value, bool)>) -> Range,
) -> Option<Range> {
    let inst = f.inst(i);
    let p = PrimType::from_id(inst.ty).filter(|&p| has_range(p))?;
    let Some((&x, rest)) = f.args(i).split_first() else {
        let size = facts.workgroup.map(|w| w[inst.dim().min(2) as usize] as u64);
        return match size {
            Some(n) if inst.op == Op::GpuThreadId => {
                Some(Range::unsigned(p, 0, n.saturating_sub(1)))
            }
            Some(n) if inst.op == Op::GpuWorkgroupSize => Some(Range::exact(p, n)),
            _ => matches!(inst.op, Op::GpuWorkgroupSize | Op::GpuNumWorkgroups)
                .then(|| Range::unsigned(p, 1, p.mask())),
        };
    };
    if inst.op == Op::GpuBufferLen {
        // No address space is larger.
        return Some(Range::unsigned(p, 0, p.mask() >> (p == PrimType::U64) as u32));
    }
    if inst.op == Op::MemLoad && inst.flags.contains(Flags::HEADER) && p == PrimType::I64 {
        // What describes an object in this type is how many elements or bytes it has room for or holds.
        return Some(Range::signed(p, 0, i64::MAX));
    }
    let from = ranged(f, x)?;
    if inst.op == Op::Cast {
        return Some(range::cast(from, p, operand(x, None)));
    }
    if inst.op == Op::BitsCast {
        return Some(operand(x, None));
    }
    if inst.op == Op::Select {
        let [a, b] = *rest else { return None };
        return Some(operand(a, Some((x, true))).union(operand(b, Some((x, false)))));
    }
    let y = rest.first().copied().unwrap_or(x);
    range::transfer(inst.op, p, operand(x, None), operand(y, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_diag::FileId;

    /// The unsigned bounds of the results of a kernel, in order.
    fn bounds(body: &str) -> Vec<(u64, u64)> {
        let text = format!(
            "gpu fn t.@k(%b: gpu.TBuffer<u32>, %n: u32) -> unit workgroup(64, 1, 1) {{\n{body}\n}}\n"
        );
        let m = crate::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
        let f = &m.fns[0];
        let cfg = Cfg::new(f);
        let ranges = Ranges::new(f, &cfg, &Dominators::new(&cfg), LaunchFacts::of(f));
        let results = f.blocks.iter().flat_map(|b| &b.insts).filter_map(|&i| f.inst(i).result());
        results.map(|v| (ranges.of(v).umin, ranges.of(v).umax)).collect()
    }

    #[test]
    fn a_counter_stops_at_its_bound() {
        let found = bounds(
            "bb0:
            br bb1
            bb1:
            %i: u32 = phi [bb0: u32 2], [bb2: %next]
            %in: bool = icmp.ult %i, u32 10
            cbr %in, bb2, bb3
            bb2:
            %twice: u32 = i.shl %i, u32 1
            %next: u32 = i.add %i, u32 3
            br bb1
            bb3:
            ret",
        );
        assert_eq!(found, [(2, 12), (0, 1), (4, 18), (5, 12)]);
    }

    #[test]
    fn what_grows_later_is_seen() {
        // The first value follows the second one round later.
        let found = bounds(
            "bb0:
            br bb1
            bb1:
            %a: u32 = phi [bb0: u32 5], [bb1: %late]
            %late: u32 = phi [bb0: u32 5], [bb1: %less]
            %less: u32 = i.lshr %late, u32 1
            %more: bool = icmp.ne %less, u32 0
            cbr %more, bb1, bb2
            bb2:
            ret",
        );
        assert_eq!(found, [(0, 5), (1, 5), (0, 2), (0, 1)]);
    }

    #[test]
    fn ids_and_clamps() {
        let found = bounds(
            "bb0:
            %t: u32 = gpu.thread_id dim=0
            %y: u32 = gpu.thread_id dim=1
            %r: u32 = i.urem %n, u32 7
            %m: u32 = i.umin %n, u32 9
            %large: bool = icmp.ugt %n, u32 100
            %c: u32 = select %large, u32 100, %n
            ret",
        );
        assert_eq!(found, [(0, 63), (0, 0), (0, 6), (0, 9), (0, 1), (0, 100)]);
    }
}
