//! Kernels whose invocations may leave a region for different ones: the next region of each is kept
//! in the frame, and the spine goes on with the one whose turn is first.

use super::emit::{ENDED, Emitter};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::Switch;

impl Emitter<'_, '_, '_> {
    pub(crate) fn clear_next_regions(&mut self, then: ir::Block) {
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.def_var(self.counters.linear, zero);
        let l = self.loop_start(self.counters.linear, zero, self.launch.invocations);
        let first = self.b.ins().iconst(types::I32, i64::from(self.plan.first().turn));
        let address = self.frame_address(self.memory.next_region.unwrap_or(0), 4);
        self.b.ins().store(MemFlagsData::trusted(), first, address, 0);
        self.b.ins().jump(l.latch, &[]);
        self.loop_step(&l);
        self.b.ins().jump(then, &[]);
    }

    /// Goes on with the region that has its turn first of those that invocations wait for.
    pub(crate) fn dispatch(&mut self, entries: &[ir::Block], next: ir::Block) {
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
        self.loop_step(&l);
        let least = self.b.use_var(least);
        let mut switch = Switch::new();
        for (region, &entry) in self.plan.regions.iter().zip(entries) {
            switch.set_entry(u128::from(region.turn), entry);
        }
        switch.emit(&mut self.b, least, next);
    }
}
