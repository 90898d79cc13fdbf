//! The frame of a work-group function: launch data, the loop over workgroups, the loops over
//! invocations, and the spine between regions.

use super::calls::{self, Callees};
use super::carried::Carried;
use super::launch::{Launch, load_launch};
use super::memory::Memory;
use super::regions::{Meeting, RegionId, RegionPlan};
use super::row::Row;
use super::vector::ALONG_ROWS;
use super::vector::guard::Guard;
use super::vector::path::Path;
use super::vector::vary::{self, Vary};
use crate::jit::Code;
use crate::pure::clif_type;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, Signature, types};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use cranelift_module::Module as _;
use magpie_mpir::{Module, MpirFn, Value};
use magpie_types::PrimType;
use magpie_types::kernel::ParamLayout;

/// The signature of [`magpie_types::kernel::HostKernelFn`].
pub(crate) fn signature(code: &Code) -> Signature {
    let mut sig = code.jit.make_signature();
    sig.params.extend([types::I64; 4].map(AbiParam::new));
    sig
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

/// What is compiled: a kernel, or a recursive function that it carries.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    pub(crate) module: &'a Module,
    pub(crate) f: &'a MpirFn,
    pub(crate) params: &'a [ParamLayout],
    pub(crate) plan: &'a RegionPlan,
    pub(crate) carried: &'a Carried,
    /// The functions that it may call.
    pub(crate) callees: &'a Callees,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A kernel, for workgroups of this size if there is one.
    Kernel(Option<[u32; 3]>),
    /// A function that is called for one invocation.
    Function,
}

pub(crate) struct Emitter<'a, 'f, 'r> {
    pub(crate) module: &'a Module,
    pub(crate) f: &'a MpirFn,
    pub(crate) params: &'a [ParamLayout],
    pub(crate) plan: &'a RegionPlan,
    pub(crate) carried: &'a Carried,
    pub(crate) callees: &'a Callees,
    /// Whether this is a function that returns to its caller.
    pub(crate) is_called: bool,
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
    /// Where the kernel keeps what functions must know of the invocation.
    pub(crate) context_slot: Option<ir::StackSlot>,
    /// Why the kernel cannot be compiled: an operation that kernels on the host do not have, or a
    /// fault of this compiler.
    pub(crate) failure: Option<String>,
}

impl<'a, 'f, 'r> Emitter<'a, 'f, 'r> {
    pub(crate) fn new(unit: Unit<'a>, mut b: FunctionBuilder<'f>, code: &'a mut Code<'r>) -> Self {
        let Unit { module, f, params, plan, carried, callees, kind } = unit;
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
        let launch = match kind {
            Kind::Kernel(size) => load_launch(&mut b, entry, module, params, size, &memory),
            Kind::Function => calls::receive(&mut b, entry, &counters, module, f, params),
        };
        b.seal_block(entry);
        Emitter {
            module,
            f,
            params,
            plan,
            carried,
            callees,
            is_called: kind == Kind::Function,
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
            leave: entry,
            ways_out: Vec::new(),
            context_slot: None,
            failure: None,
        }
    }

    /// Notes why the kernel cannot be compiled; the first reason counts. What is emitted goes nowhere.
    pub(crate) fn fail(&mut self, reason: impl FnOnce() -> String) {
        self.failure.get_or_insert_with(reason);
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

        self.b.seal_block(body);
        self.b.switch_to_block(body);
        self.workgroup(next);

        self.b.seal_block(next);
        self.b.switch_to_block(next);
        let n = self.b.use_var(number);
        let n = self.b.ins().iadd_imm_s(n, 1);
        self.b.def_var(number, n);
        self.next_workgroup();
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);

        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.b.ins().return_(&[]);
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
        self.seal_inner_first(&entries);
        if let Some(dispatch) = dispatch {
            self.b.seal_block(dispatch);
        }
    }

    /// Seals blocks to which no jump will be added, in reverse postorder. A loop is sealed after what
    /// it contains: then counters that it does not change stay what they are outside of it, and what
    /// is computed from them can be computed there.
    pub(crate) fn seal_inner_first(&mut self, blocks: &[ir::Block]) {
        blocks.iter().rev().for_each(|&b| self.b.seal_block(b));
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
        let plan = self.plan;
        let region = &plan.regions[self.region.0 as usize];
        if let Meeting::Subgroup(op) = region.meeting {
            self.subgroup_operation(op, region.turn);
        }
        if region.runs_once {
            let behind = self.b.create_block();
            self.leave = behind;
            self.region_body();
            self.b.seal_block(behind);
            self.b.switch_to_block(behind);
            return;
        }
        let vary = Vary::new(self.f, region, self.carried, ALONG_ROWS);
        let guard = Guard::find(self.f, &self.module.types, self.plan, region, self.carried, &vary);
        let in_lanes = vary::is_eligible(self.f, self.plan, region, &vary, &guard);
        let path = in_lanes.then(|| Path::find(self.f, self.plan, region, &vary, &guard)).flatten();
        let ranges = self.ranges_of_all_rows(region, &guard, in_lanes);
        let row = Row { vary: &vary, guard: &guard, path: path.as_ref(), ranges };
        let z = self.loop_start(tz, zero, self.launch.block[2]);
        let y = self.loop_start(ty, zero, self.launch.block[1]);
        self.row(&row);
        self.b.ins().jump(y.latch, &[]);
        self.loop_step(&y);
        self.b.ins().jump(z.latch, &[]);
        self.loop_step(&z);
    }

    pub(crate) fn forget_values(&mut self) {
        for v in self.touched.drain(..) {
            self.values[v.index()] = None;
        }
    }

    /// Starts a loop that runs at least once and leaves the builder in its body.
    pub(crate) fn loop_start(&mut self, var: Variable, from: ir::Value, limit: ir::Value) -> Loop {
        let latch = self.b.create_block();
        self.b.def_var(var, from);
        if (self.known(from), self.known(limit)) == (Some(0), Some(1)) {
            return Loop { var, limit, latch, round: None };
        }
        let (head, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        Loop { var, limit, latch, round: Some((head, after)) }
    }

    /// Fills the latch, to which the body has jumped: counts and goes round or on. Leaves the builder
    /// behind the loop.
    pub(crate) fn loop_step(&mut self, l: &Loop) {
        self.b.seal_block(l.latch);
        self.b.switch_to_block(l.latch);
        let Some((head, after)) = l.round else { return };
        let v = self.b.use_var(l.var);
        let v = self.b.ins().iadd_imm_s(v, 1);
        self.b.def_var(l.var, v);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, v, l.limit);
        self.b.ins().brif(more, head, &[], after, &[]);
        self.b.seal_block(head);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
    }

    /// One region for one invocation, from the current block to `self.leave`.
    pub(crate) fn region_body(&mut self) {
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
            let mine = self.b.ins().icmp_imm_u(IntCC::Equal, wanted, i64::from(region.turn));
            let go = self.b.create_block();
            self.b.ins().brif(mine, go, &[], self.leave, &[]);
            self.b.seal_block(go);
            self.b.switch_to_block(go);
        }
        self.enter(region.leader);
        for &b in &region.blocks {
            if let Some(block) = self.blocks[b.index()] {
                self.b.switch_to_block(block);
                self.block(b);
            }
        }
        let made: Vec<ir::Block> =
            region.blocks.iter().filter_map(|b| self.blocks[b.index()]).collect();
        self.seal_inner_first(&made);
    }
}

/// A loop under construction.
pub(crate) struct Loop {
    var: Variable,
    limit: ir::Value,
    pub(crate) latch: ir::Block,
    /// Where it starts again and where it ends, unless it is known to have one round.
    round: Option<(ir::Block, ir::Block)>,
}

/// The scalar behind a value of a kernel: arrays and buffers are addresses.
pub(crate) fn prim_of(module: &Module, ty: magpie_types::TypeId) -> PrimType {
    module.types.prim(ty).unwrap_or(PrimType::U64)
}
