//! The frame of a work-group function: launch data, the loop over workgroups, the loops over
//! invocations, and the spine between regions.

use super::carried::{Carried, Carry};
use super::memory::Memory;
use super::regions::{RegionId, RegionPlan};
use super::vector::guard::{Guard, Part};
use super::vector::vary::{self, Vary};
use super::vector::{LANES, Vector};
use crate::jit::Code;
use crate::pure::{clif_type, constant};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, Signature, types};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use cranelift_module::Module as _;
use magpie_mpir::{Block, Module, MpirFn, Op, Value, ValueDef};
use magpie_types::PrimType;
use magpie_types::kernel::{KernelLayout, ParamLayout};
use std::mem::{offset_of, size_of};

use magpie_types::kernel::{HostBuffer, HostLaunch};

/// The signature of [`magpie_types::kernel::HostKernelFn`].
pub(crate) fn signature(code: &Code) -> Signature {
    let mut sig = code.jit.make_signature();
    sig.params.extend([types::I64; 4].map(AbiParam::new));
    sig
}

/// Data and length of a buffer argument.
#[derive(Clone, Copy)]
pub(crate) struct BufferArg {
    pub(crate) data: ir::Value,
    pub(crate) len: ir::Value,
}

/// Values that are the same for a whole launch.
pub(crate) struct Launch {
    pub(crate) buffers: Vec<BufferArg>,
    pub(crate) scalars: ir::Value,
    /// The arguments that are one scalar, by parameter.
    pub(crate) scalar_args: Vec<Option<ir::Value>>,
    /// Whether no buffer is so long that a 32-bit index could wrap between neighbours.
    pub(crate) lanes_ok: ir::Value,
    pub(crate) grid: [ir::Value; 3],
    pub(crate) block: [ir::Value; 3],
    pub(crate) invocations: ir::Value,
    pub(crate) scratch: ir::Value,
    pub(crate) frame: ir::Value,
}

/// Loop counters of the function.
pub(crate) struct Counters {
    pub(crate) workgroup: [Variable; 3],
    /// Thread position in the workgroup.
    pub(crate) thread: [Variable; 3],
    /// Linear position in the workgroup, as `i64`.
    pub(crate) linear: Variable,
    /// The region to go on with.
    pub(crate) exit: Variable,
}

/// An edge to another region, to be filled with the stores of that region's phis.
pub(crate) struct WayOut {
    pub(crate) block: ir::Block,
    pub(crate) values: Vec<(Value, ir::Value)>,
    pub(crate) to: Option<RegionId>,
}

/// The spine's number for "this invocation has returned".
pub(crate) const ENDED: u32 = u32::MAX;

pub(crate) struct Emitter<'a, 'f, 'r> {
    pub(crate) module: &'a Module,
    pub(crate) f: &'a MpirFn,
    pub(crate) layout: &'a KernelLayout,
    pub(crate) plan: &'a RegionPlan,
    pub(crate) carried: &'a Carried,
    pub(crate) b: FunctionBuilder<'f>,
    pub(crate) code: &'a mut Code<'r>,
    pub(crate) memory: Memory,
    pub(crate) launch: Launch,
    pub(crate) counters: Counters,
    /// The carried scalars, as the regions behind their definition see them.
    pub(crate) scalar_vars: Vec<Variable>,
    /// For carried scalars that are phis of a leader: the value to enter the region with. Every
    /// invocation starts from it, so the region itself must not change it.
    pub(crate) entry_vars: Vec<Variable>,
    /// Values of the region being emitted; parameters and constants are made on demand.
    pub(crate) values: Vec<Option<ir::Value>>,
    pub(crate) touched: Vec<Value>,
    pub(crate) blocks: Vec<Option<ir::Block>>,
    pub(crate) region: RegionId,
    /// Where an invocation goes when it leaves the region.
    pub(crate) leave: ir::Block,
    pub(crate) ways_out: Vec<WayOut>,
}

impl<'a, 'f, 'r> Emitter<'a, 'f, 'r> {
    pub(crate) fn new(
        module: &'a Module,
        f: &'a MpirFn,
        layout: &'a KernelLayout,
        plan: &'a RegionPlan,
        carried: &'a Carried,
        mut b: FunctionBuilder<'f>,
        code: &'a mut Code<'r>,
    ) -> Self {
        let memory = Memory::new(f, &module.types, plan, carried);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let counters = Counters {
            workgroup: [(); 3].map(|()| b.declare_var(types::I32)),
            thread: [(); 3].map(|()| b.declare_var(types::I32)),
            linear: b.declare_var(types::I64),
            exit: b.declare_var(types::I32),
        };
        let mut variables = || -> Vec<Variable> {
            carried
                .scalars
                .iter()
                .map(|&ty| b.declare_var(clif_type(prim_of(module, ty))))
                .collect()
        };
        let scalar_vars = variables();
        let entry_vars = variables();
        let launch = load_launch(&mut b, entry, module, layout, &memory);
        let leave = b.create_block();
        Emitter {
            module,
            f,
            layout,
            plan,
            carried,
            b,
            code,
            memory,
            launch,
            counters,
            scalar_vars,
            entry_vars,
            values: vec![None; f.locals.len()],
            touched: Vec::new(),
            blocks: vec![None; f.blocks.len()],
            region: RegionId(0),
            leave,
            ways_out: Vec::new(),
        }
    }

    pub(crate) fn frame_bytes(&self) -> u32 {
        self.memory.frame_bytes
    }

    pub(crate) fn shared_bytes(&self) -> u32 {
        self.memory.shared_bytes
    }

    /// The whole function: a loop over workgroups around the regions.
    pub(crate) fn function(&mut self) {
        let entry = self.b.current_block().expect("the entry block is being filled");
        let (first, last) = {
            let p = self.b.block_params(entry);
            (p[1], p[2])
        };
        let number = self.b.declare_var(types::I64);
        self.start_workgroups(first);
        self.b.def_var(number, first);

        let (head, body, next, done) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let n = self.b.use_var(number);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, n, last);
        self.b.ins().brif(more, body, &[], done, &[]);

        self.b.switch_to_block(body);
        self.workgroup(next);

        self.b.switch_to_block(next);
        let n = self.b.use_var(number);
        let n = self.b.ins().iadd_imm_s(n, 1);
        self.b.def_var(number, n);
        self.next_workgroup();
        self.b.ins().jump(head, &[]);

        self.b.switch_to_block(done);
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
    }

    fn start_workgroups(&mut self, first: ir::Value) {
        let [gx, gy, _] = self.launch.grid;
        let (gx, gy) = (self.b.ins().uextend(types::I64, gx), self.b.ins().uextend(types::I64, gy));
        let x = self.b.ins().urem(first, gx);
        let rest = self.b.ins().udiv(first, gx);
        let y = self.b.ins().urem(rest, gy);
        let z = self.b.ins().udiv(rest, gy);
        for (var, v) in self.counters.workgroup.into_iter().zip([x, y, z]) {
            let v = self.b.ins().ireduce(types::I32, v);
            self.b.def_var(var, v);
        }
    }

    fn next_workgroup(&mut self) {
        let [vx, vy, vz] = self.counters.workgroup;
        let [gx, gy, _] = self.launch.grid;
        let zero = self.b.ins().iconst(types::I32, 0);
        let mut carry = self.b.ins().iconst(types::I32, 1);
        for (var, limit) in [(vx, gx), (vy, gy)] {
            let v = self.b.use_var(var);
            let v = self.b.ins().iadd(v, carry);
            let wraps = self.b.ins().icmp(IntCC::Equal, v, limit);
            let v = self.b.ins().select(wraps, zero, v);
            self.b.def_var(var, v);
            carry = self.b.ins().uextend(types::I32, wraps);
        }
        let v = self.b.use_var(vz);
        let v = self.b.ins().iadd(v, carry);
        self.b.def_var(vz, v);
    }

    /// All regions of one workgroup; `next` is where the workgroup ends.
    fn workgroup(&mut self, next: ir::Block) {
        let entries: Vec<ir::Block> =
            self.plan.regions.iter().map(|_| self.b.create_block()).collect();
        let dispatch = self.plan.per_invocation.then(|| self.b.create_block());
        if let Some(dispatch) = dispatch {
            self.clear_next_regions(dispatch);
            self.b.switch_to_block(dispatch);
            self.dispatch(&entries, next);
        } else {
            self.b.ins().jump(entries[0], &[]);
        }
        for (n, &entry) in entries.iter().enumerate() {
            self.b.switch_to_block(entry);
            self.region = RegionId(n as u32);
            self.invocations();
            match dispatch {
                Some(dispatch) => {
                    self.b.ins().jump(dispatch, &[]);
                }
                None => self.spine_edge(&entries, next),
            }
        }
    }

    /// Where the workgroup goes after a region all invocations of which agree.
    fn spine_edge(&mut self, entries: &[ir::Block], next: ir::Block) {
        let r = &self.plan.regions[self.region.0 as usize];
        match (r.exits.as_slice(), r.returns) {
            ([], _) => {
                self.b.ins().jump(next, &[]);
            }
            ([only], false) => {
                self.b.ins().jump(entries[only.0 as usize], &[]);
            }
            (exits, _) => {
                let exit = self.b.use_var(self.counters.exit);
                let mut switch = Switch::new();
                for e in exits {
                    switch.set_entry(e.0 as u128, entries[e.0 as usize]);
                }
                switch.emit(&mut self.b, exit, next);
            }
        }
    }

    /// The loops over the invocations of the workgroup around one region. Ends in the block behind.
    fn invocations(&mut self) {
        let [_, ty, tz] = self.counters.thread;
        let zero = self.b.ins().iconst(types::I32, 0);
        let region = &self.plan.regions[self.region.0 as usize];
        let vary = Vary::new(self.f, region, self.carried);
        let guard = Guard::find(self.f, &self.module.types, self.plan, region, self.carried, &vary);
        let in_lanes = vary::is_eligible(self.f, self.plan, region, &vary, &guard);
        let z = self.loop_start(tz, zero, self.launch.block[2]);
        let y = self.loop_start(ty, zero, self.launch.block[1]);
        self.row(&vary, &guard, in_lanes);
        self.b.ins().jump(y.latch, &[]);
        self.b.switch_to_block(y.latch);
        self.loop_step(&y);
        self.b.ins().jump(z.latch, &[]);
        self.b.switch_to_block(z.latch);
        self.loop_step(&z);
    }

    /// The invocations of one row in x: those that the guard lets through, in lanes where
    /// neighbours take the same way, else one by one.
    fn row(&mut self, vary: &Vary, guard: &Guard, in_lanes: bool) {
        let tx = self.counters.thread[0];
        let row = self.row_start();
        let runs = self.range(&guard.runs);
        let lanes = in_lanes.then(|| {
            let lanes = self.range(&guard.lanes);
            let from = self.b.ins().umax(runs.from, lanes.from);
            let to = self.b.ins().umin(runs.to, lanes.to);
            let exact = self.b.ins().band(runs.exact, lanes.exact);
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
            self.b.switch_to_block(lanes_latch);
            let x = self.b.use_var(tx);
            let x = self.b.ins().iadd_imm_s(x, LANES as i64);
            self.b.def_var(tx, x);
            let fits = self.fits(x, to);
            self.b.ins().brif(fits, side_by_side, &[], head, &[]);
        } else {
            self.b.ins().jump(body, &[]);
        }
        self.b.switch_to_block(body);
        self.set_linear(row);
        self.leave = latch;
        self.region_body();
        self.b.switch_to_block(latch);
        let x = self.b.use_var(tx);
        let x = self.b.ins().iadd_imm_s(x, 1);
        self.b.def_var(tx, x);
        self.b.ins().jump(head, &[]);
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
            let (index, bound, below) = match part {
                Part::Same(cond) => {
                    let cond = self.evaluate(cond);
                    to = self.b.ins().select(cond, to, zero);
                    continue;
                }
                Part::Below { index, bound } => (index, bound, true),
                Part::AtLeast { index, bound } => (index, bound, false),
            };
            let (index, bound) = (self.evaluate(index), self.evaluate(bound));
            let index = self.b.ins().uextend(types::I64, index);
            let bound = self.b.ins().uextend(types::I64, bound);
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

    fn forget_values(&mut self) {
        for v in self.touched.drain(..) {
            self.values[v.index()] = None;
        }
    }

    /// A pure expression, computed here.
    fn evaluate(&mut self, v: Value) -> ir::Value {
        if self.values[v.index()].is_none()
            && let ValueDef::Inst(i) = self.f.def(v)
        {
            if let Carry::Scalar(n) = self.carried.get(v) {
                return self.b.use_var(self.scalar_vars[n as usize]);
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

    /// Starts a loop that runs at least once and leaves the builder in its body.
    pub(crate) fn loop_start(&mut self, var: Variable, from: ir::Value, limit: ir::Value) -> Loop {
        let (head, latch, after) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.def_var(var, from);
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        Loop { var, limit, head, latch, after }
    }

    /// Ends the latch: counts and goes round or on. Leaves the builder behind the loop.
    pub(crate) fn loop_step(&mut self, l: &Loop) {
        let v = self.b.use_var(l.var);
        let v = self.b.ins().iadd_imm_s(v, 1);
        self.b.def_var(l.var, v);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, v, l.limit);
        self.b.ins().brif(more, l.head, &[], l.after, &[]);
        self.b.switch_to_block(l.after);
    }

    /// One region for one invocation, from the current block to `self.leave`.
    fn region_body(&mut self) {
        let plan = self.plan;
        let region = &plan.regions[self.region.0 as usize];
        self.forget_values();
        for &b in &region.blocks {
            self.blocks[b.index()] = Some(self.b.create_block());
        }
        for &b in &region.blocks {
            let Some(block) = self.blocks[b.index()] else { continue };
            let phis: Vec<_> = self.f.phis(b).collect();
            for phi in phis {
                let data = self.f.inst(phi);
                if let Some(v) = data.result() {
                    let ty = clif_type(prim_of(self.module, data.ty));
                    let value = self.b.append_block_param(block, ty);
                    self.set(v, value);
                }
            }
        }
        if let Some(offset) = self.memory.next_region {
            let address = self.frame_address(offset, 4);
            let wanted = self.b.ins().load(types::I32, MemFlagsData::trusted(), address, 0);
            let mine = self.b.ins().icmp_imm_u(IntCC::Equal, wanted, self.region.0 as i64);
            let go = self.b.create_block();
            self.b.ins().brif(mine, go, &[], self.leave, &[]);
            self.b.switch_to_block(go);
        }
        self.enter(region.leader);
        for &b in &region.blocks {
            if let Some(block) = self.blocks[b.index()] {
                self.b.switch_to_block(block);
                self.block(b);
            }
        }
    }

    /// Jumps to the leader with the phi values that were carried here, after making available
    /// what the region takes from others.
    fn enter(&mut self, leader: Block) {
        self.receive();
        let mut args = Vec::new();
        for phi in self.f.phis(leader) {
            let Some(v) = self.f.inst(phi).result() else { continue };
            let prim = prim_of(self.module, self.f.ty(v));
            args.push(ir::BlockArg::Value(match self.carried.get(v) {
                Carry::Scalar(n) => self.b.use_var(self.entry_vars[n as usize]),
                Carry::Frame(offset) => self.load_slot(offset, prim),
                // Entered by internal edges only; never read.
                Carry::No | Carry::Again => constant(&mut self.b, prim, 0),
            }));
        }
        let block = self.blocks[leader.index()].expect("blocks of the region were made");
        self.b.ins().jump(block, &args);
    }

    /// Loads or recomputes every value that the region uses and another one defines.
    fn receive(&mut self) {
        let f = self.f;
        let plan = self.plan;
        if plan.regions.len() <= 1 {
            return;
        }
        let region = &plan.regions[self.region.0 as usize];
        for &b in &region.blocks {
            for &i in &f.block(b).insts {
                if f.inst(i).op != Op::Phi {
                    f.args(i).iter().for_each(|&v| self.import(v));
                }
            }
            if let Some(v) = f.block(b).term.operand() {
                self.import(v);
            }
            for s in f.successors(b) {
                for phi in f.phis(s) {
                    if let Some(v) = f.phi_value(phi, b) {
                        self.import(v);
                    }
                }
            }
        }
    }

    fn import(&mut self, v: Value) {
        if self.values[v.index()].is_some() || self.is_local_definition(v) {
            return;
        }
        let prim = || prim_of(self.module, self.f.ty(v));
        match self.carried.get(v) {
            Carry::No => {}
            Carry::Scalar(n) => {
                let value = self.b.use_var(self.scalar_vars[n as usize]);
                self.set(v, value);
            }
            Carry::Frame(offset) => {
                let value = match self.f.def_inst(v).and_then(|i| self.memory.local(i)) {
                    Some(at) => {
                        let bytes = super::memory::array_bytes(&self.module.types, self.f.ty(v));
                        self.frame_address(at, bytes.next_multiple_of(16))
                    }
                    None => self.load_slot(offset, prim()),
                };
                self.set(v, value);
            }
            Carry::Again => {
                let Some(i) = self.f.def_inst(v) else { return };
                for n in 0..self.f.args(i).len() {
                    self.import(self.f.arg(i, n));
                }
                if let Some(value) = self.inst(i) {
                    self.set(v, value);
                }
            }
        }
    }

    /// Whether the value is defined in the region being emitted, or needs no import.
    fn is_local_definition(&self, v: Value) -> bool {
        match self.f.def(v) {
            ValueDef::Param(_) | ValueDef::Const(_) => true,
            ValueDef::Inst(i) => self.home(i) == Some(self.region),
        }
    }

    fn home(&self, i: magpie_mpir::Inst) -> Option<RegionId> {
        self.carried.home(i)
    }

    pub(crate) fn set(&mut self, v: Value, value: ir::Value) {
        self.values[v.index()] = Some(value);
        self.touched.push(v);
    }

    /// The address of this invocation's part of a frame slot.
    pub(crate) fn frame_address(&mut self, offset: u32, size: u32) -> ir::Value {
        let base = self.b.ins().imul_imm_s(self.launch.invocations, offset as i64);
        let base = self.b.ins().iadd(self.launch.frame, base);
        let linear = self.b.use_var(self.counters.linear);
        let at = self.b.ins().imul_imm_s(linear, size as i64);
        self.b.ins().iadd(base, at)
    }

    fn load_slot(&mut self, offset: u32, prim: PrimType) -> ir::Value {
        let address = self.frame_address(self.memory.slots + offset, prim.size());
        self.b.ins().load(clif_type(prim), MemFlagsData::trusted(), address, 0)
    }

    /// Stores the value of a leader's phi on an edge into its region.
    pub(crate) fn export_phi(&mut self, phi: Value, value: ir::Value) {
        match self.carried.get(phi) {
            Carry::Scalar(n) => self.b.def_var(self.entry_vars[n as usize], value),
            Carry::No | Carry::Again | Carry::Frame(_) => self.export(phi, value),
        }
    }

    /// Stores a carried value where other regions find it.
    pub(crate) fn export(&mut self, v: Value, value: ir::Value) {
        match self.carried.get(v) {
            Carry::No | Carry::Again => {}
            Carry::Scalar(n) => self.b.def_var(self.scalar_vars[n as usize], value),
            Carry::Frame(offset) => {
                if self.f.def_inst(v).and_then(|i| self.memory.local(i)).is_some() {
                    return;
                }
                let prim = prim_of(self.module, self.f.ty(v));
                let address = self.frame_address(self.memory.slots + offset, prim.size());
                self.b.ins().store(MemFlagsData::trusted(), value, address, 0);
            }
        }
    }

    /// Leaves the region: to another one, or for good when `to` is `None`.
    pub(crate) fn leave_region(&mut self, to: Option<RegionId>) {
        let number = to.map_or(ENDED, |r| r.0);
        let number = self.b.ins().iconst(types::I32, number as i64);
        match self.memory.next_region {
            Some(offset) => {
                let address = self.frame_address(offset, 4);
                self.b.ins().store(MemFlagsData::trusted(), number, address, 0);
            }
            None => self.b.def_var(self.counters.exit, number),
        }
        self.b.ins().jump(self.leave, &[]);
    }

    fn clear_next_regions(&mut self, then: ir::Block) {
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.def_var(self.counters.linear, zero);
        let l = self.loop_start(self.counters.linear, zero, self.launch.invocations);
        let first = self.b.ins().iconst(types::I32, 0);
        let address = self.frame_address(self.memory.next_region.unwrap_or(0), 4);
        self.b.ins().store(MemFlagsData::trusted(), first, address, 0);
        self.b.ins().jump(l.latch, &[]);
        self.b.switch_to_block(l.latch);
        self.loop_step(&l);
        self.b.ins().jump(then, &[]);
    }

    /// Goes on with the first region (in reverse postorder) that an invocation waits for.
    fn dispatch(&mut self, entries: &[ir::Block], next: ir::Block) {
        let least = self.b.declare_var(types::I32);
        let ended = self.b.ins().iconst(types::I32, ENDED as i64);
        self.b.def_var(least, ended);
        let zero = self.b.ins().iconst(types::I64, 0);
        let l = self.loop_start(self.counters.linear, zero, self.launch.invocations);
        let address = self.frame_address(self.memory.next_region.unwrap_or(0), 4);
        let wanted = self.b.ins().load(types::I32, MemFlagsData::trusted(), address, 0);
        let so_far = self.b.use_var(least);
        let smaller = self.b.ins().icmp(IntCC::UnsignedLessThan, wanted, so_far);
        let new = self.b.ins().select(smaller, wanted, so_far);
        self.b.def_var(least, new);
        self.b.ins().jump(l.latch, &[]);
        self.b.switch_to_block(l.latch);
        self.loop_step(&l);
        let least = self.b.use_var(least);
        let mut switch = Switch::new();
        for (n, &entry) in entries.iter().enumerate() {
            switch.set_entry(n as u128, entry);
        }
        switch.emit(&mut self.b, least, next);
    }
}

/// Invocations of a row: positions `from .. to`, and whether all of them meet the guard.
struct Range {
    from: ir::Value,
    to: ir::Value,
    exact: ir::Value,
}

/// A loop under construction.
pub(crate) struct Loop {
    var: Variable,
    limit: ir::Value,
    head: ir::Block,
    pub(crate) latch: ir::Block,
    after: ir::Block,
}

/// The scalar behind a value of a kernel: arrays and buffers are addresses.
pub(crate) fn prim_of(module: &Module, ty: magpie_types::TypeId) -> PrimType {
    module.types.prim(ty).unwrap_or(PrimType::U64)
}

fn load_launch(
    b: &mut FunctionBuilder,
    entry: ir::Block,
    module: &Module,
    layout: &KernelLayout,
    memory: &Memory,
) -> Launch {
    let (launch, scratch) = {
        let p = b.block_params(entry);
        (p[0], p[3])
    };
    let flags = MemFlagsData::trusted().with_readonly();
    let at = |offset: usize| offset as i32;
    let buffers = b.ins().load(types::I64, flags, launch, at(offset_of!(HostLaunch, buffers)));
    let scalars = b.ins().load(types::I64, flags, launch, at(offset_of!(HostLaunch, scalars)));
    let mut three =
        |base: usize| [0, 4, 8].map(|o| b.ins().load(types::I32, flags, launch, at(base + o)));
    let grid = three(offset_of!(HostLaunch, grid));
    let block = three(offset_of!(HostLaunch, block));
    let args: Vec<BufferArg> = layout
        .params
        .iter()
        .filter(|p| matches!(p, ParamLayout::Buffer(_)))
        .enumerate()
        .map(|(n, _)| {
            let base = n * size_of::<HostBuffer>();
            BufferArg {
                data: b.ins().load(
                    types::I64,
                    flags,
                    buffers,
                    at(base + offset_of!(HostBuffer, data)),
                ),
                len: b.ins().load(
                    types::I64,
                    flags,
                    buffers,
                    at(base + offset_of!(HostBuffer, len)),
                ),
            }
        })
        .collect();
    let scalar_args = layout
        .params
        .iter()
        .map(|p| match *p {
            ParamLayout::Scalar { offset, ty, .. } if !module.types.is_aggregate(ty) => {
                let ty = clif_type(prim_of(module, ty));
                Some(b.ins().load(ty, flags, scalars, offset as i32))
            }
            ParamLayout::Scalar { .. } | ParamLayout::Buffer(_) => None,
        })
        .collect();
    let mut lanes_ok = b.ins().iconst(types::I8, 1);
    for arg in &args {
        let most = b.ins().iconst(types::I64, u32::MAX as i64 + 1 - LANES as i64);
        let short = b.ins().icmp(IntCC::UnsignedLessThanOrEqual, arg.len, most);
        lanes_ok = b.ins().band(lanes_ok, short);
    }
    let xy = b.ins().imul(block[0], block[1]);
    let xyz = b.ins().imul(xy, block[2]);
    let invocations = b.ins().uextend(types::I64, xyz);
    let shared = memory.shared_bytes.next_multiple_of(64);
    let frame = b.ins().iadd_imm_s(scratch, shared as i64);
    Launch {
        buffers: args,
        scalars,
        scalar_args,
        lanes_ok,
        grid,
        block,
        invocations,
        scratch,
        frame,
    }
}
