//! The invocations of a row in x: which of them run, and which side by side.

use super::carried::Carry;
use super::emit::Emitter;
use super::regions::Region;
use super::vector::guard::{Guard, Part};
use super::vector::vary::Vary;
use super::vector::{ACROSS_ROWS, LANES, Vector};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use magpie_mpir::{Value, ValueDef};

/// Invocations of a row: positions `from .. to`, and whether all of them meet the guard.
#[derive(Clone, Copy)]
struct Range {
    from: ir::Value,
    to: ir::Value,
    exact: ir::Value,
}

/// What the guard says about the invocations of every row, and the parts of it that depend on the row.
pub(crate) struct RowRanges {
    runs: Range,
    runs_by_row: Vec<Part>,
    /// Those that may run in lanes.
    lanes: Option<(Range, Vec<Part>)>,
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

    /// The invocations of one row in x: those that the guard lets through, in lanes where
    /// neighbours take the same way, else one by one.
    pub(crate) fn row(&mut self, vary: &Vary, guard: &Guard, ranges: RowRanges) {
        let tx = self.counters.thread[0];
        let row = self.row_start();
        let by_row = self.range(&ranges.runs_by_row);
        let runs = self.both(ranges.runs, by_row);
        let lanes = ranges.lanes.map(|(all_rows, by_row)| {
            let by_row = self.range(&by_row);
            let lanes = self.both(all_rows, by_row);
            let Range { from, to, exact } = self.both(runs, lanes);
            let exact = self.b.ins().band(exact, self.launch.lanes_ok);
            let none = self.b.ins().iconst(types::I32, 0);
            (from, self.b.ins().select(exact, to, none))
        });
        self.b.def_var(tx, runs.from);
        let (head, body, latch, done) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let x = self.b.use_var(tx);
        let next = self.b.create_block();
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, x, runs.to);
        self.b.ins().brif(more, next, &[], done, &[]);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
        if let Some((from, to)) = lanes {
            let (side_by_side, lanes_latch) = (self.b.create_block(), self.b.create_block());
            let begun = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, x, from);
            let fits = self.fits(x, to);
            let go = self.b.ins().band(begun, fits);
            self.b.ins().brif(go, side_by_side, &[], body, &[]);
            self.b.switch_to_block(side_by_side);
            self.set_linear(row);
            self.leave = lanes_latch;
            let mut lanes = Vector::new(self, vary, guard);
            lanes.region(self);
            self.b.seal_block(lanes_latch);
            self.b.switch_to_block(lanes_latch);
            let x = self.b.use_var(tx);
            let x = self.b.ins().iadd_imm_s(x, LANES as i64);
            self.b.def_var(tx, x);
            let fits = self.fits(x, to);
            self.b.ins().brif(fits, side_by_side, &[], head, &[]);
            self.b.seal_block(side_by_side);
        } else {
            self.b.ins().jump(body, &[]);
        }
        self.b.seal_block(body);
        self.b.switch_to_block(body);
        self.set_linear(row);
        self.leave = latch;
        self.region_body();
        self.b.seal_block(latch);
        self.b.switch_to_block(latch);
        let x = self.b.use_var(tx);
        let x = self.b.ins().iadd_imm_s(x, 1);
        self.b.def_var(tx, x);
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
    }

    /// Whether all lanes from `x` on lie below `to`. `x + LANES` cannot wrap: a workgroup is far
    /// smaller.
    fn fits(&mut self, x: ir::Value, to: ir::Value) -> ir::Value {
        let end = self.b.ins().iadd_imm_s(x, LANES as i64);
        self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, to)
    }

    /// The linear position of the first invocation of the row.
    fn row_start(&mut self) -> ir::Value {
        let [_, ty, tz] = self.counters.thread.map(|v| self.b.use_var(v));
        let rows = self.b.ins().imul(tz, self.launch.block[1]);
        let rows = self.b.ins().iadd(rows, ty);
        let start = self.b.ins().imul(rows, self.launch.block[0]);
        self.b.ins().uextend(types::I64, start)
    }

    fn set_linear(&mut self, row: ir::Value) {
        let x = self.b.use_var(self.counters.thread[0]);
        let x = self.b.ins().uextend(types::I64, x);
        let linear = self.b.ins().iadd(row, x);
        self.b.def_var(self.counters.linear, linear);
    }

    /// The range, computed at this point and not where it is used, which is in a loop: code
    /// generation places what is computed as late as it can.
    fn pinned_range(&mut self, parts: &[Part]) -> Range {
        let range = self.range(parts);
        if !parts.is_empty() {
            let Range { from, to, exact } = range;
            for v in [from, to, exact] {
                self.b.ins().stack_store(types::I64, v, self.launch.pin, 0);
            }
        }
        range
    }

    /// What two ranges have in common.
    fn both(&mut self, a: Range, b: Range) -> Range {
        let from = self.b.ins().umax(a.from, b.from);
        let to = self.b.ins().umin(a.to, b.to);
        Range { from, to, exact: self.b.ins().band(a.exact, b.exact) }
    }

    /// The positions in x that meet all parts of a guard.
    fn range(&mut self, parts: &[Part]) -> Range {
        let tx = self.counters.thread[0];
        let zero32 = self.b.ins().iconst(types::I32, 0);
        let zero = self.b.ins().iconst(types::I64, 0);
        let all32 = self.launch.block[0];
        let all = self.b.ins().uextend(types::I64, all32);
        let (mut from, mut to) = (zero, all);
        let mut exact = self.b.ins().iconst(types::I8, 1);
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
                    to = self.b.ins().select(cond, to, zero);
                    continue;
                }
                Part::Below { index, bound } => (index, bound, true, 0),
                Part::AtMost { index, bound } => (index, bound, true, 1),
                Part::AtLeast { index, bound } => (index, bound, false, 0),
            };
            let (index, bound) = (self.evaluate(index), self.evaluate(bound));
            let index = self.b.ins().uextend(types::I64, index);
            let bound = self.b.ins().uextend(types::I64, bound);
            let bound = if past == 0 { bound } else { self.b.ins().iadd_imm_s(bound, past) };
            // Without wrapping, invocation x has index `index + x`.
            let last = self.b.ins().iadd(index, all);
            let space = self.b.ins().iconst(types::I64, 1 << 32);
            let no_wrap = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, last, space);
            let gap = self.b.ins().isub(bound, index);
            let gap = self.b.ins().smax(gap, zero);
            let gap = self.b.ins().smin(gap, all);
            if below {
                // From a start just below zero the index wraps once: `x - 2 < n` at x = 0. The
                // invocations in front of the wrap are too large for any bound below the start.
                let skip = self.b.ins().isub(space, index);
                let skip = self.b.ins().smin(skip, all);
                let behind = self.b.ins().iadd(skip, bound);
                let behind = self.b.ins().smin(behind, all);
                let in_front = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, bound, index);
                let known = self.b.ins().bor(no_wrap, in_front);
                exact = self.b.ins().band(exact, known);
                let start = self.b.ins().select(no_wrap, zero, skip);
                let end = self.b.ins().select(no_wrap, gap, behind);
                from = self.b.ins().smax(from, start);
                to = self.b.ins().smin(to, end);
            } else {
                exact = self.b.ins().band(exact, no_wrap);
                from = self.b.ins().smax(from, gap);
            }
        }
        self.forget_values();
        let to = self.b.ins().smax(to, from);
        let (from, to) =
            (self.b.ins().select(exact, from, zero), self.b.ins().select(exact, to, all));
        let from = self.b.ins().ireduce(types::I32, from);
        let to = self.b.ins().ireduce(types::I32, to);
        Range { from, to, exact }
    }

    /// A pure expression, computed here.
    fn evaluate(&mut self, v: Value) -> ir::Value {
        if self.values[v.index()].is_none()
            && let ValueDef::Inst(i) = self.f.def(v)
        {
            if let Carry::Scalar(n) = self.carried.get(v) {
                // What this region makes itself does not exist yet, but for what it starts with.
                let plan = self.plan;
                let region = &plan.regions[self.region.0 as usize];
                if self.f.phis(region.leader).any(|phi| phi == i) {
                    return self.b.use_var(self.entry_vars[n as usize]);
                }
                if self.carried.home(i) != Some(self.region) {
                    return self.b.use_var(self.scalar_vars[n as usize]);
                }
            }
            for n in 0..self.f.args(i).len() {
                let arg = self.f.arg(i, n);
                self.evaluate(arg);
            }
            if let Some(value) = self.inst(i) {
                self.set(v, value);
            }
        }
        self.value(v)
    }
}
