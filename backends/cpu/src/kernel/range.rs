//! What guards say about the invocations of a row in x, as ranges of positions.

use super::carried::Carry;
use super::emit::Emitter;
use super::regions::Region;
use super::vector::ACROSS_ROWS;
use super::vector::guard::{Guard, Part};
use super::vector::vary::Vary;
use crate::pure::constant;
use cranelift_codegen::ir::{self, InstBuilder, types};
use magpie_mpir::{Inst, Op, Value, ValueDef};
use magpie_types::PrimType;

/// Bounds are computed in this type, in which nothing wraps.
const WIDE: PrimType = PrimType::I64;

/// Invocations of a row: positions `from .. to`, and whether all of them meet the guard.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) from: ir::Value,
    pub(crate) to: ir::Value,
    pub(crate) exact: ir::Value,
}

/// What the guard says about the invocations of every row, and the parts of it that depend on the row.
pub(crate) struct RowRanges {
    pub(crate) runs: Range,
    pub(crate) runs_by_row: Vec<Part>,
    /// Those that may run in lanes.
    pub(crate) lanes: Option<(Range, Vec<Part>)>,
}

impl Emitter<'_, '_, '_> {
    /// Evaluates the parts of a guard that are the same for all rows, once a workgroup.
    pub(crate) fn ranges_of_all_rows(
        &mut self,
        region: &Region,
        guard: &Guard,
        in_lanes: bool,
    ) -> RowRanges {
        let differs = Vary::new(self.f, region, self.carried, ACROSS_ROWS);
        let split = |parts: &[Part]| -> (Vec<Part>, Vec<Part>) {
            parts.iter().partition(|part| part.values().any(|v| differs.get(v)))
        };
        let (runs_by_row, runs) = split(&guard.runs);
        let runs = self.pinned_range(&runs);
        let lanes = in_lanes.then(|| {
            let (by_row, all_rows) = split(&guard.lanes);
            (self.pinned_range(&all_rows), by_row)
        });
        RowRanges { runs, runs_by_row, lanes }
    }

    /// The range, computed at this point and not where it is used, which is in a loop: code
    /// generation places what is computed as late as it can.
    fn pinned_range(&mut self, parts: &[Part]) -> Range {
        let range = self.range(parts);
        let Range { from, to, exact } = range;
        for v in [from, to, exact] {
            if !parts.is_empty() && self.known(v).is_none() {
                self.b.ins().stack_store(types::I64, v, self.launch.pin, 0);
            }
        }
        range
    }

    /// What two ranges have in common.
    pub(crate) fn both(&mut self, a: Range, b: Range) -> Range {
        let mut on = |op, prim, a, b| self.integer(op, prim, [a, b]);
        Range {
            from: on(Op::IUmax, PrimType::U32, a.from, b.from),
            to: on(Op::IUmin, PrimType::U32, a.to, b.to),
            exact: on(Op::IAnd, PrimType::Bool, a.exact, b.exact),
        }
    }

    /// The positions in x that meet all parts of a guard.
    pub(crate) fn range(&mut self, parts: &[Part]) -> Range {
        let tx = self.counters.thread[0];
        let zero32 = constant(&mut self.b, PrimType::U32, 0);
        let zero = constant(&mut self.b, WIDE, 0);
        let all32 = self.launch.block[0];
        let all = self.widened(all32);
        let (mut from, mut to) = (zero, all);
        let mut exact = constant(&mut self.b, PrimType::Bool, 1);
        if parts.is_empty() {
            return Range { from: zero32, to: all32, exact };
        }
        // Guards are evaluated for the first invocation of the row.
        self.b.def_var(tx, zero32);
        self.forget_values();
        for &part in parts {
            let (index, bound, below, past) = match part {
                Part::Same(cond) => {
                    let cond = self.evaluate(cond);
                    to = self.choice(cond, to, zero);
                    continue;
                }
                Part::Below { index, bound } => (index, bound, true, 0),
                Part::AtMost { index, bound } => (index, bound, true, 1),
                Part::AtLeast { index, bound } => (index, bound, false, 0),
            };
            let (index, bound) = (self.evaluate(index), self.evaluate(bound));
            let (index, bound) = (self.widened(index), self.widened(bound));
            let past = constant(&mut self.b, WIDE, past);
            let bound = self.integer(Op::IAdd, WIDE, [bound, past]);
            // Without wrapping, invocation x has index `index + x`.
            let last = self.integer(Op::IAdd, WIDE, [index, all]);
            let space = constant(&mut self.b, WIDE, 1 << 32);
            let no_wrap = self.at_most(last, space);
            let gap = self.integer(Op::ISub, WIDE, [bound, index]);
            let gap = self.integer(Op::ISmax, WIDE, [gap, zero]);
            let gap = self.integer(Op::ISmin, WIDE, [gap, all]);
            if below {
                // From a start just below zero the index wraps once: `x - 2 < n` at x = 0. The
                // invocations in front of the wrap are too large for any bound below the start.
                let skip = self.integer(Op::ISub, WIDE, [space, index]);
                let skip = self.integer(Op::ISmin, WIDE, [skip, all]);
                let behind = self.integer(Op::IAdd, WIDE, [skip, bound]);
                let behind = self.integer(Op::ISmin, WIDE, [behind, all]);
                let in_front = self.at_most(bound, index);
                let known = self.integer(Op::IOr, PrimType::Bool, [no_wrap, in_front]);
                exact = self.integer(Op::IAnd, PrimType::Bool, [exact, known]);
                let start = self.choice(no_wrap, zero, skip);
                let end = self.choice(no_wrap, gap, behind);
                from = self.integer(Op::ISmax, WIDE, [from, start]);
                to = self.integer(Op::ISmin, WIDE, [to, end]);
            } else {
                exact = self.integer(Op::IAnd, PrimType::Bool, [exact, no_wrap]);
                from = self.integer(Op::ISmax, WIDE, [from, gap]);
            }
        }
        self.forget_values();
        let to = self.integer(Op::ISmax, WIDE, [to, from]);
        let from = self.choice(exact, from, zero);
        let to = self.choice(exact, to, all);
        let [from, to] = [from, to].map(|v| self.integer_op(Op::Cast, [WIDE, PrimType::U32], &[v]));
        Range { from, to, exact }
    }

    fn widened(&mut self, v: ir::Value) -> ir::Value {
        self.integer_op(Op::Cast, [PrimType::U32, WIDE], &[v])
    }

    /// An op on two integers of a type.
    fn integer(&mut self, op: Op, prim: PrimType, args: [ir::Value; 2]) -> ir::Value {
        self.integer_op(op, [prim, prim], &args)
    }

    /// Whether `a <= b`, unsigned.
    fn at_most(&mut self, a: ir::Value, b: ir::Value) -> ir::Value {
        self.integer_op(Op::IcmpUle, [WIDE, PrimType::Bool], &[a, b])
    }

    fn choice(&mut self, cond: ir::Value, then: ir::Value, other: ir::Value) -> ir::Value {
        self.integer_op(Op::Select, [WIDE, WIDE], &[cond, then, other])
    }

    /// A pure expression, computed here.
    fn evaluate(&mut self, v: Value) -> ir::Value {
        if self.values[v.index()].is_none()
            && let ValueDef::Inst(i) = self.f.def(v)
        {
            let value = match self.made_before(i, v) {
                Some(value) => Some(value),
                None => {
                    for n in 0..self.f.args(i).len() {
                        let arg = self.f.arg(i, n);
                        self.evaluate(arg);
                    }
                    self.inst(i)
                }
            };
            if let Some(value) = value {
                self.set(v, value);
            }
        }
        self.value(v)
    }

    /// A value of the spine that exists where the region starts. What the region makes itself does
    /// not, but for what it starts with.
    fn made_before(&mut self, i: Inst, v: Value) -> Option<ir::Value> {
        let Carry::Scalar(n) = self.carried.get(v) else { return None };
        let plan = self.plan;
        let region = &plan.regions[self.region.0 as usize];
        if self.f.phis(region.leader).any(|phi| phi == i) {
            return Some(self.b.use_var(self.entry_vars[n as usize]));
        }
        let is_made = self.carried.home(i) != Some(self.region);
        is_made.then(|| self.b.use_var(self.scalar_vars[n as usize]))
    }
}
