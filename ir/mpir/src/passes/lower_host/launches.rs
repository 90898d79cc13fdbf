//! Launches of kernels: the argument block and the call of the runtime.

use super::FnLowering;
use crate::{Inst, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{Layout, TypeId, TypeKind, fixed};

/// Where the arguments of a kernel lie in the block that the runtime gets
/// ([`magpie_types::kernel`]).
struct ArgumentBlock {
    /// Byte offsets of the arguments, in parameter order.
    offsets: Vec<u32>,
    size: u32,
}

impl FnLowering<'_, '_, '_> {
    /// 8 bytes a buffer, in parameter order; then the scalars in parameter order, each at its
    /// natural alignment of at most 16 from the start of the scalars, rounded up to 16.
    fn argument_block(&self, params: &[TypeId]) -> ArgumentBlock {
        let types = self.l.types();
        let is_buffer = |&ty: &TypeId| matches!(types.kind(ty), TypeKind::Buffer(_));
        let scalars_at = 8 * params.iter().filter(|ty| is_buffer(ty)).count() as u32;
        let (mut buffers, mut scalars) = (0, 0u32);
        let offsets = params.iter().map(|ty| {
            if is_buffer(ty) {
                buffers += 8;
                return buffers - 8;
            }
            let Layout { size, align } = types.layout(*ty);
            let at = scalars.next_multiple_of(align.clamp(1, 16));
            scalars = at + size;
            scalars_at + at
        });
        let offsets = offsets.collect();
        ArgumentBlock { offsets, size: scalars_at + scalars.next_multiple_of(16) }
    }

    pub(super) fn launch(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let data = old.inst(i);
        let (rt, heads) = match data.op {
            Op::GpuLaunchAsync => (RtFn::GpuLaunchAsync, 1),
            Op::GpuLaunchProfiled => (RtFn::GpuProfileLaunch, 2),
            _ if data.imm_hi() & 1 == 1 => (RtFn::GpuLaunchSyncFallback, 1),
            _ => (RtFn::GpuLaunchSync, 1),
        };
        let kernel = data.func();
        let params = self.l.conventions[kernel.index()].params.clone();
        let block = self.argument_block(&params);
        let (heads, rest) = old.args(i).split_at(heads);
        let (shape, args) = rest.split_at(6);
        let address = if block.size == 0 {
            self.b.func().zero(self.l.address)
        } else {
            self.scratch(Layout { size: block.size, align: 16 })
        };
        for ((&v, &param), &offset) in args.iter().zip(&params).zip(&block.offsets) {
            let leaves = self.get(v);
            self.store(param, address, offset, &leaves);
        }
        let hash = self.l.m.func(kernel).sid.hash();
        let mut call: Vec<Value> = heads.iter().map(|&v| self.one(v)).collect();
        call.push(self.b.const_bits(fixed::U64, hash));
        call.extend(shape.iter().map(|&v| self.one(v)));
        call.push(address);
        call.push(self.i64(block.size as i64));
        self.rt_result(rt, &call, data.ty)
    }
}
