//! How values get from region to region: received where a region starts, exported where they are
//! defined and on the edges out of it.

use super::carried::Carry;
use super::emit::{ENDED, Emitter, prim_of};
use super::regions::RegionId;
use crate::pure::{clif_type, constant};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use magpie_mpir::{Block, Op, Value, ValueDef};
use magpie_types::PrimType;

impl Emitter<'_, '_, '_> {
    /// Jumps to the leader with the phi values that were carried here, after making available
    /// what the region takes from others.
    pub(crate) fn enter(&mut self, leader: Block) {
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

    /// The address of a frame slot of the first invocation.
    pub(crate) fn frame_of_all(&mut self, offset: u32) -> ir::Value {
        let base = self.b.ins().imul_imm_s(self.launch.invocations, offset as i64);
        self.b.ins().iadd(self.launch.frame, base)
    }

    /// The address of this invocation's part of a frame slot.
    pub(crate) fn frame_address(&mut self, offset: u32, size: u32) -> ir::Value {
        let base = self.frame_of_all(offset);
        let linear = self.b.use_var(self.counters.linear);
        let at = self.b.ins().imul_imm_s(linear, size as i64);
        self.b.ins().iadd(base, at)
    }

    pub(crate) fn load_slot(&mut self, offset: u32, prim: PrimType) -> ir::Value {
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
        match self.memory.next_region {
            Some(offset) => {
                let turn = to.map_or(ENDED, |r| self.plan.regions[r.0 as usize].turn);
                let turn = self.b.ins().iconst(types::I32, i64::from(turn));
                let address = self.frame_address(offset, 4);
                self.b.ins().store(MemFlagsData::trusted(), turn, address, 0);
            }
            None => {
                let number = self.b.ins().iconst(types::I32, to.map_or(ENDED, |r| r.0) as i64);
                self.b.def_var(self.counters.exit, number);
            }
        }
        self.b.ins().jump(self.leave, &[]);
    }
}
