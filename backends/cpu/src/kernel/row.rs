//! The invocations of a row in x: which of them run, and which side by side.

use super::emit::Emitter;
use super::range::{Range, RowRanges};
use super::vector::guard::Guard;
use super::vector::path::Path;
use super::vector::vary::Vary;
use super::vector::{LANES, Vector};
use crate::pure::constant;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use magpie_mpir::Op;
use magpie_types::PrimType;

/// What a region does for the invocations of a row.
pub(crate) struct Row<'a> {
    pub(crate) vary: &'a Vary,
    pub(crate) guard: &'a Guard,
    /// The blocks that invocations in lanes execute, when they are the same for all rows.
    pub(crate) path: Option<&'a Path>,
    pub(crate) ranges: RowRanges,
}

impl Row<'_> {
    /// How many groups of lanes a round of the fastest loop has.
    fn groups(&self) -> u32 {
        self.path.map_or(1, Path::groups)
    }
}

/// Positions in x that are known when code is generated.
struct KnownRow {
    from: u32,
    /// Up to here neighbours run in lanes.
    lanes_to: u32,
    to: u32,
}

impl Emitter<'_, '_, '_> {
    /// The invocations of one row in x: those that the guard lets through, in lanes where
    /// neighbours take the same way, else one by one.
    pub(crate) fn row(&mut self, row: &Row) {
        let start = self.row_start();
        let by_row = self.range(&row.ranges.runs_by_row);
        let runs = self.both(row.ranges.runs, by_row);
        let lanes = row.ranges.lanes.as_ref().map(|(all_rows, by_row)| {
            let by_row = self.range(by_row);
            let lanes = self.both(*all_rows, by_row);
            let Range { from, to, exact } = self.both(runs, lanes);
            const BOOL: PrimType = PrimType::Bool;
            let exact = self.integer_op(Op::IAnd, [BOOL; 2], &[exact, self.launch.lanes_ok]);
            let none = constant(&mut self.b, PrimType::U32, 0);
            (from, self.integer_op(Op::Select, [PrimType::U32; 2], &[exact, to, none]))
        });
        match self.known_row(runs, lanes) {
            Some(known) => self.known_invocations(row, start, &known),
            None => self.any_invocations(row, start, runs, lanes),
        }
    }

    /// The row, when it is known and starts with neighbours that run in lanes if any do.
    fn known_row(&self, runs: Range, lanes: Option<(ir::Value, ir::Value)>) -> Option<KnownRow> {
        let known = |v| self.known(v).map(|bits| bits as u32);
        let (from, to) = (known(runs.from)?, known(runs.to)?);
        let lanes_to = match lanes {
            Some((lanes_from, lanes_to)) => {
                let (start, end) = (known(lanes_from)?, known(lanes_to)?);
                match start <= from {
                    true => end.max(from),
                    false if end <= start => from,
                    false => return None,
                }
            }
            None => from,
        };
        Some(KnownRow { from, lanes_to, to })
    }

    /// Loops of known length; those of one round are none.
    fn known_invocations(&mut self, row: &Row, start: ir::Value, known: &KnownRow) {
        let KnownRow { mut from, lanes_to, to } = *known;
        let mut groups = row.groups();
        while groups > 0 {
            let step = groups * LANES;
            let end = from + (lanes_to - from) / step * step;
            self.rounds([from, end], step, |e| e.side_by_side(row, start, groups));
            from = end;
            groups /= 2;
        }
        self.rounds([from, to], 1, |e| e.one(start));
    }

    /// Emits a body for every `step`-th position; it leaves the builder behind it.
    fn rounds(&mut self, [from, to]: [u32; 2], step: u32, body: impl FnOnce(&mut Self)) {
        if from >= to {
            return;
        }
        let tx = self.counters.thread[0];
        let first = constant(&mut self.b, PrimType::U32, from.into());
        self.b.def_var(tx, first);
        if to - from <= step {
            body(self);
            return;
        }
        let (head, done) = (self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let x = self.b.use_var(tx);
        body(self);
        let next = self.b.ins().iadd_imm_s(x, i64::from(step));
        self.b.def_var(tx, next);
        let more = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, next, i64::from(to));
        self.b.ins().brif(more, head, &[], done, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
    }

    /// Loops that find out where lanes begin and end.
    fn any_invocations(
        &mut self,
        row: &Row,
        start: ir::Value,
        runs: Range,
        lanes: Option<(ir::Value, ir::Value)>,
    ) {
        let tx = self.counters.thread[0];
        self.b.def_var(tx, runs.from);
        let (head, done) = (self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let x = self.b.use_var(tx);
        let mut next = self.b.create_block();
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, x, runs.to);
        self.b.ins().brif(more, next, &[], done, &[]);
        if let Some((from, to)) = lanes {
            self.b.seal_block(next);
            self.b.switch_to_block(next);
            let (first, one_by_one) = (self.b.create_block(), self.b.create_block());
            let begun = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, x, from);
            self.b.ins().brif(begun, first, &[], one_by_one, &[]);
            next = first;
            // Several groups, then one.
            let several = Some(row.groups()).filter(|&groups| groups > 1);
            for groups in several.into_iter().chain([1]) {
                let body = self.b.create_block();
                let fewer = if groups == 1 { one_by_one } else { self.b.create_block() };
                self.b.seal_block(next);
                self.b.switch_to_block(next);
                let x = self.b.use_var(tx);
                let fits = self.fits(x, groups, to);
                self.b.ins().brif(fits, body, &[], fewer, &[]);
                self.b.switch_to_block(body);
                let x = self.b.use_var(tx);
                self.side_by_side(row, start, groups);
                let x = self.b.ins().iadd_imm_s(x, i64::from(groups * LANES));
                self.b.def_var(tx, x);
                let fits = self.fits(x, groups, to);
                self.b.ins().brif(fits, body, &[], head, &[]);
                self.b.seal_block(body);
                next = fewer;
            }
        }
        self.b.seal_block(next);
        self.b.switch_to_block(next);
        self.one(start);
        let x = self.b.use_var(tx);
        let x = self.b.ins().iadd_imm_s(x, 1);
        self.b.def_var(tx, x);
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
    }

    /// Groups of lanes, the first of which starts at the position in x.
    fn side_by_side(&mut self, row: &Row, start: ir::Value, groups: u32) {
        let tx = self.counters.thread[0];
        let x = self.b.use_var(tx);
        self.set_linear(start);
        let mut lanes = Vector::new(self, row.vary, row.guard, row.path);
        for group in 0..groups {
            let before = constant(&mut self.b, PrimType::U32, u64::from(group * LANES));
            let x = self.integer_op(Op::IAdd, [PrimType::U32; 2], &[x, before]);
            self.b.def_var(tx, x);
            let behind = self.b.create_block();
            self.leave = behind;
            lanes.region(self, group);
            self.b.seal_block(behind);
            self.b.switch_to_block(behind);
        }
    }

    /// The invocation at the position in x.
    fn one(&mut self, start: ir::Value) {
        self.set_linear(start);
        let behind = self.b.create_block();
        self.leave = behind;
        self.region_body();
        self.b.seal_block(behind);
        self.b.switch_to_block(behind);
    }

    /// Whether all lanes of so many groups from `x` on lie below `to`. The sum cannot wrap: a
    /// workgroup is far smaller.
    fn fits(&mut self, x: ir::Value, groups: u32, to: ir::Value) -> ir::Value {
        let end = self.b.ins().iadd_imm_s(x, i64::from(groups * LANES));
        self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, to)
    }

    /// The linear position of the first invocation of the row.
    fn row_start(&mut self) -> ir::Value {
        let [_, ty, tz] = self.counters.thread.map(|v| self.b.use_var(v));
        let [bx, by, _] = self.launch.block;
        const WORD: [PrimType; 2] = [PrimType::U32; 2];
        let rows = self.integer_op(Op::IMul, WORD, &[tz, by]);
        let rows = self.integer_op(Op::IAdd, WORD, &[rows, ty]);
        let start = self.integer_op(Op::IMul, WORD, &[rows, bx]);
        self.b.ins().uextend(types::I64, start)
    }

    fn set_linear(&mut self, row: ir::Value) {
        let x = self.b.use_var(self.counters.thread[0]);
        let x = self.b.ins().uextend(types::I64, x);
        let linear = self.b.ins().iadd(row, x);
        self.b.def_var(self.counters.linear, linear);
    }
}
