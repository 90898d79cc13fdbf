//! The instructions of a kernel for one invocation.

use super::emit::{Emitter, WayOut, prim_of};
use super::launch::BufferArg;
use super::memory::array_bytes;
use crate::pure::{Pure, clif_type, constant};
use crate::terminators::Terminators;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AtomicRmwOp, BlockArg, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types,
};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::{AddressSpace, Block, Const, Inst, Op, Value, ValueDef};
use magpie_types::kernel::{HOST_SUBGROUP_SIZE, ParamLayout};
use magpie_types::{PrimType, TypeId, TypeKind};

/// Two parameters may be one buffer, so nothing is assumed about aliasing; elements are aligned, and
/// the address was proved to lie inside.
const ACCESS: MemFlagsData = MemFlagsData::trusted();

impl Emitter<'_, '_, '_> {
    pub(crate) fn block(&mut self, block: Block) {
        let f = self.f;
        for &i in &f.block(block).insts {
            let data = f.inst(i);
            let Some(v) = data.result() else {
                self.inst(i);
                continue;
            };
            let value = match data.op {
                Op::Phi => self.values[v.index()],
                _ => self.inst(i),
            };
            if let Some(value) = value {
                self.set(v, value);
                self.export(v, value);
            }
        }
        self.terminator(block, &self.f.block(block).term);
        self.fill_ways_out();
    }

    pub(crate) fn value(&mut self, v: Value) -> ir::Value {
        if let Some(value) = self.values[v.index()] {
            return value;
        }
        let prim = prim_of(self.module, self.f.ty(v));
        match self.f.def(v) {
            ValueDef::Param(n) => self.param(n, prim),
            ValueDef::Const(Const::Bits(bits)) => constant(&mut self.b, prim, bits),
            ValueDef::Const(Const::Zero) => constant(&mut self.b, prim, 0),
            // The verifier proves that every other value was made on the way here.
            ValueDef::Const(Const::Unit | Const::Str(_)) | ValueDef::Inst(_) => self.missing(v),
        }
    }

    /// Notes that a value is used where there is none, and gives something of its type.
    pub(crate) fn missing(&mut self, v: Value) -> ir::Value {
        self.fail(|| format!("%{} is used where it was not made", v.0));
        let prim = prim_of(self.module, self.f.ty(v));
        constant(&mut self.b, prim, 0)
    }

    fn param(&mut self, n: u32, prim: PrimType) -> ir::Value {
        match &self.params[n as usize] {
            ParamLayout::Buffer(p) => self.launch.buffers[p.index as usize].data,
            &ParamLayout::Scalar { offset, ty, .. } if self.vector(ty).is_some() => {
                self.b.ins().iadd_imm_s(self.launch.scalars, offset as i64)
            }
            ParamLayout::Scalar { .. } => match self.launch.scalar_args[n as usize] {
                Some(v) => v,
                // Aggregates are read leaf by leaf.
                None => constant(&mut self.b, prim, 0),
            },
        }
    }

    fn load_scalar(&mut self, offset: u32, prim: PrimType) -> ir::Value {
        let flags = MemFlagsData::trusted().with_readonly();
        self.b.ins().load(clif_type(prim), flags, self.launch.scalars, offset as i32)
    }

    pub(crate) fn buffer(&self, v: Value) -> Option<BufferArg> {
        let ValueDef::Param(n) = self.f.def(v) else { return None };
        match &self.params[n as usize] {
            ParamLayout::Buffer(p) => Some(self.launch.buffers[p.index as usize]),
            ParamLayout::Scalar { .. } => None,
        }
    }

    /// The address of a buffer or a shared array, read from memory at this point.
    pub(crate) fn fetch_base(&mut self, array: Value) -> Option<ir::Value> {
        match (self.f.def(array), self.f.def_inst(array)) {
            (ValueDef::Param(n), _) => match &self.params[n as usize] {
                ParamLayout::Buffer(p) => Some(self.launch.fetch_data(&mut self.b, p.index)),
                ParamLayout::Scalar { .. } => None,
            },
            (_, Some(i)) if self.f.inst(i).op == Op::GpuShared => {
                let offset = self.memory.shared(i)?;
                let scratch = self.launch.fetch_scratch(&mut self.b);
                Some(self.b.ins().iadd_imm_s(scratch, offset as i64))
            }
            _ => None,
        }
    }

    /// The value of an instruction, or `None` when it has none.
    pub(crate) fn inst(&mut self, i: Inst) -> Option<ir::Value> {
        let f = self.f;
        let data = f.inst(i);
        let dim = (data.dim() as usize).min(2);
        match data.op {
            Op::GpuThreadId => Some(self.b.use_var(self.counters.thread[dim])),
            Op::GpuWorkgroupId => Some(self.b.use_var(self.counters.workgroup[dim])),
            Op::GpuWorkgroupSize => Some(self.launch.block[dim]),
            Op::GpuNumWorkgroups => Some(self.launch.grid[dim]),
            Op::GpuGlobalId => {
                let group = self.b.use_var(self.counters.workgroup[dim]);
                let base = self.b.ins().imul(group, self.launch.block[dim]);
                let thread = self.b.use_var(self.counters.thread[dim]);
                Some(self.b.ins().iadd(base, thread))
            }
            Op::LeafGet => self.param_leaf(i),
            Op::GpuBufferLen => Some(self.length(i)),
            Op::GpuBufferLoad | Op::GpuLeafLoad => {
                let address = self.address(f.arg(i, 0), f.arg(i, 1), data.imm_lo());
                if self.vector(data.ty).is_some() {
                    return Some(address);
                }
                let ty = clif_type(prim_of(self.module, data.ty));
                Some(self.b.ins().load(ty, ACCESS, address, 0))
            }
            Op::GpuBufferStore | Op::GpuLeafStore => {
                let address = self.address(f.arg(i, 0), f.arg(i, 1), data.imm_lo());
                if let Some((p, n)) = self.vector(f.ty(f.arg(i, 2))) {
                    self.store_vector(address, f.arg(i, 2), p, n);
                    return None;
                }
                let value = self.value(f.arg(i, 2));
                self.b.ins().store(ACCESS, value, address, 0);
                None
            }
            Op::GpuShared => {
                let offset = self.memory.shared(i)?;
                Some(self.b.ins().iadd_imm_s(self.launch.scratch, offset as i64))
            }
            Op::GpuLocal => Some(self.local_array(i)),
            Op::GpuAtomicAdd
            | Op::GpuAtomicSub
            | Op::GpuAtomicMin
            | Op::GpuAtomicMax
            | Op::GpuAtomicAnd
            | Op::GpuAtomicOr
            | Op::GpuAtomicXor
            | Op::GpuAtomicExchange
            | Op::GpuAtomicCas => Some(self.atomic(i)),
            Op::GpuSubgroupSize => {
                Some(self.b.ins().iconst(types::I32, i64::from(HOST_SUBGROUP_SIZE)))
            }
            Op::GpuSubgroupLaneId => Some(self.lane_id()),
            Op::Call => self.call(i),
            // Whoever uses it looks at its components.
            Op::VecNew => None,
            Op::VecExtract => Some(self.vector_component(i)),
            magpie_mpir::integer_ops!()
            | magpie_mpir::float_ops!()
            | magpie_mpir::icmp_ops!()
            | magpie_mpir::fcmp_ops!()
            | Op::Cast
            | Op::BitsCast
            | Op::Select => {
                let args: Vec<_> = f.args(i).iter().map(|&v| self.value(v)).collect();
                // `select` has its condition first.
                let first = f.args(i).get((data.op == Op::Select) as usize);
                let from = first.map_or(PrimType::U32, |&v| self.prim(v));
                let to = prim_of(self.module, data.ty);
                self.pure(data.op, from, to, &args)
            }
            // Regions end there.
            Op::GpuBarrier | Op::Phi => None,
            // What the callers of the compiler refuse or have lowered.
            magpie_mpir::struct_ops!()
            | magpie_mpir::lowered_vector_ops!()
            | Op::GpuMetalSimdShuffle
            | Op::GpuMetalSimdSum
            | Op::GpuMetalSimdPrefixSum
            | Op::GpuPrint
            | magpie_mpir::host_code_ops!() => {
                self.fail(|| format!("`{}` in a kernel", data.op.name()));
                None
            }
            magpie_mpir::subgroup_ops!() => self.subgroup_result(i),
        }
    }

    fn param_leaf(&mut self, i: Inst) -> Option<ir::Value> {
        let f = self.f;
        let ValueDef::Param(n) = f.def(f.arg(i, 0)) else { return None };
        let ParamLayout::Scalar { offset, ty, .. } = self.params[n as usize] else {
            return None;
        };
        let leaf = *self.module.types.leaves(ty).get(f.inst(i).imm_lo() as usize)?;
        if self.vector(leaf.ty).is_some() {
            let at = (offset + leaf.offset) as i64;
            return Some(self.b.ins().iadd_imm_s(self.launch.scalars, at));
        }
        Some(self.load_scalar(offset + leaf.offset, prim_of(self.module, leaf.ty)))
    }

    fn length(&mut self, i: Inst) -> ir::Value {
        let f = self.f;
        let v = f.arg(i, 0);
        let len = match (self.buffer(v), self.module.types.kind(f.ty(v))) {
            (Some(b), _) => b.len,
            (None, TypeKind::SharedArray(_, n) | TypeKind::LocalArray(_, n)) => {
                self.b.ins().iconst(types::I64, n as i64)
            }
            (None, _) => self.b.ins().iconst(types::I64, 0),
        };
        if prim_of(self.module, f.inst(i).ty).bit_width() == 64 {
            return len;
        }
        let most = self.b.ins().iconst(types::I64, u32::MAX as i64);
        let long = self.b.ins().icmp(IntCC::UnsignedGreaterThan, len, most);
        let len = self.b.ins().select(long, most, len);
        self.b.ins().ireduce(types::I32, len)
    }

    /// The element type of a buffer or an array.
    fn element(&self, v: Value) -> TypeId {
        match self.module.types.kind(self.f.ty(v)) {
            TypeKind::Buffer(t) | TypeKind::SharedArray(t, _) | TypeKind::LocalArray(t, _) => t,
            _ => self.f.ty(v),
        }
    }

    /// Bytes between elements of a buffer or an array.
    pub(crate) fn element_stride(&self, array: Value) -> u32 {
        self.module.types.stride(self.element(array)).max(1)
    }

    fn address(&mut self, array: Value, index: Value, leaf: u32) -> ir::Value {
        let base = self.value(array);
        let at = self.value(index);
        let address = self.element_address(base, array, at, self.f.ty(index));
        match self.leaf_offset(array, leaf) {
            0 => address,
            offset => self.b.ins().iadd_imm_s(address, i64::from(offset)),
        }
    }

    /// How many bytes behind an element's address a leaf of it is.
    pub(crate) fn leaf_offset(&self, array: Value, leaf: u32) -> i32 {
        let elem = self.element(array);
        match self.module.types.is_aggregate(elem) {
            true => {
                self.module.types.leaves(elem).get(leaf as usize).map_or(0, |l| l.offset as i32)
            }
            false => 0,
        }
    }

    /// The address of element `at`, which has type `index_ty`. Accesses are unchecked here.
    pub(crate) fn element_address(
        &mut self,
        base: ir::Value,
        array: Value,
        at: ir::Value,
        index_ty: TypeId,
    ) -> ir::Value {
        let stride = self.element_stride(array);
        let p = prim_of(self.module, index_ty);
        let index = match (p.bit_width(), p.is_signed()) {
            (64, _) => at,
            (_, true) => self.b.ins().sextend(types::I64, at),
            (_, false) => self.b.ins().uextend(types::I64, at),
        };
        let bytes = match stride.is_power_of_two() {
            true => self.b.ins().ishl_imm_u(index, stride.trailing_zeros() as i64),
            false => self.b.ins().imul_imm_s(index, stride as i64),
        };
        self.b.ins().iadd(base, bytes)
    }

    fn local_array(&mut self, i: Inst) -> ir::Value {
        let bytes = array_bytes(&self.module.types, self.f.inst(i).ty).next_multiple_of(16);
        let address = match self.memory.local(i) {
            Some(offset) => self.frame_address(offset, bytes),
            None => {
                let slot = self.b.create_sized_stack_slot(StackSlotData::new(
                    StackSlotKind::ExplicitSlot,
                    bytes,
                    4,
                ));
                self.b.ins().stack_addr(types::I64, slot, 0)
            }
        };
        self.zero(address, bytes);
        address
    }

    fn zero(&mut self, address: ir::Value, bytes: u32) {
        let zero = self.b.ins().iconst(types::I64, 0);
        if bytes <= 128 {
            for offset in (0..bytes).step_by(8) {
                self.b.ins().store(MemFlagsData::trusted(), zero, address, offset as i32);
            }
            return;
        }
        let at = self.b.declare_var(types::I64);
        let words = self.b.ins().iconst(types::I64, bytes as i64 / 8);
        let l = self.loop_start(at, zero, words);
        let n = self.b.use_var(at);
        let n = self.b.ins().ishl_imm_u(n, 3);
        let p = self.b.ins().iadd(address, n);
        self.b.ins().store(MemFlagsData::trusted(), zero, p, 0);
        self.b.ins().jump(l.latch, &[]);
        self.loop_step(&l);
    }

    fn atomic(&mut self, i: Inst) -> ir::Value {
        let f = self.f;
        let op = f.inst(i).op;
        let prim = prim_of(self.module, f.inst(i).ty);
        let address = self.address(f.arg(i, 0), f.arg(i, 1), 0);
        let v = self.value(f.arg(i, 2));
        let new = f.args(i).get(3).copied().map(|r| self.value(r));
        if f.space(&self.module.types, i) != AddressSpace::Buffer {
            // One thread runs the whole workgroup.
            let old = self.b.ins().load(clif_type(prim), MemFlagsData::trusted(), address, 0);
            let value = self.combine(op, prim, old, v, new);
            self.b.ins().store(MemFlagsData::trusted(), value, address, 0);
            return old;
        }
        let flags = MemFlagsData::trusted();
        let ty = clif_type(prim);
        let signed = prim.is_signed();
        let native = match op {
            Op::GpuAtomicAdd => Some(AtomicRmwOp::Add),
            Op::GpuAtomicSub => Some(AtomicRmwOp::Sub),
            Op::GpuAtomicMin if signed => Some(AtomicRmwOp::Smin),
            Op::GpuAtomicMin => Some(AtomicRmwOp::Umin),
            Op::GpuAtomicMax if signed => Some(AtomicRmwOp::Smax),
            Op::GpuAtomicMax => Some(AtomicRmwOp::Umax),
            Op::GpuAtomicAnd => Some(AtomicRmwOp::And),
            Op::GpuAtomicOr => Some(AtomicRmwOp::Or),
            Op::GpuAtomicXor => Some(AtomicRmwOp::Xor),
            Op::GpuAtomicExchange => Some(AtomicRmwOp::Xchg),
            _ => None,
        };
        match (native, new, prim.is_float()) {
            (Some(native), _, false) => self.b.ins().atomic_rmw(ty, flags, native, address, v),
            (None, Some(new), false) => self.b.ins().atomic_cas(flags, address, v, new),
            _ => self.atomic_float(op, prim, address, v, new),
        }
    }

    /// The element after an atomic.
    fn combine(
        &mut self,
        op: Op,
        p: PrimType,
        old: ir::Value,
        v: ir::Value,
        new: Option<ir::Value>,
    ) -> ir::Value {
        let pick = |signed, unsigned, float| match (p.is_float(), p.is_signed()) {
            (true, _) => float,
            (false, true) => signed,
            (false, false) => unsigned,
        };
        let plain = match op {
            Op::GpuAtomicAdd => pick(Op::IAdd, Op::IAdd, Op::FAdd),
            Op::GpuAtomicSub => pick(Op::ISub, Op::ISub, Op::FSub),
            Op::GpuAtomicMin => pick(Op::ISmin, Op::IUmin, Op::FMin),
            Op::GpuAtomicMax => pick(Op::ISmax, Op::IUmax, Op::FMax),
            Op::GpuAtomicAnd => Op::IAnd,
            Op::GpuAtomicOr => Op::IOr,
            Op::GpuAtomicXor => Op::IXor,
            _ => {
                let Some(new) = new else { return v };
                let p = p.bits_type();
                let bits = |s: &mut Self, x| {
                    Pure { b: &mut s.b, calls: s.code }.emit(Op::BitsCast, p, p, &[x])
                };
                let (a, b) = (bits(self, old).unwrap_or(old), bits(self, v).unwrap_or(v));
                let same = self.b.ins().icmp(IntCC::Equal, a, b);
                return self.b.ins().select(same, new, old);
            }
        };
        Pure { b: &mut self.b, calls: self.code }.emit(plain, p, p, &[old, v]).unwrap_or(old)
    }

    /// A compare-and-swap loop on the bits of a float.
    fn atomic_float(
        &mut self,
        op: Op,
        p: PrimType,
        address: ir::Value,
        v: ir::Value,
        new: Option<ir::Value>,
    ) -> ir::Value {
        let bits = p.bits_type();
        let (again, done) = (self.b.create_block(), self.b.create_block());
        let seen = self.b.append_block_param(again, clif_type(bits));
        let flags = MemFlagsData::trusted();
        let first = self.b.ins().load(clif_type(bits), flags, address, 0);
        self.b.ins().jump(again, &[BlockArg::Value(first)]);
        self.b.switch_to_block(again);
        let cast = |s: &mut Self, from, to, x| {
            Pure { b: &mut s.b, calls: s.code }.emit(Op::BitsCast, from, to, &[x]).unwrap_or(x)
        };
        let old = cast(self, bits, p, seen);
        let value = self.combine(op, p, old, v, new);
        let value = cast(self, p, bits, value);
        let found = self.b.ins().atomic_cas(flags, address, seen, value);
        let same = self.b.ins().icmp(IntCC::Equal, found, seen);
        self.b.ins().brif(same, done, &[], again, &[BlockArg::Value(found)]);
        self.b.seal_block(again);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        old
    }

    /// Stores phi values for another region, or gives the arguments of an internal jump.
    fn fill_ways_out(&mut self) {
        for way in std::mem::take(&mut self.ways_out) {
            self.b.seal_block(way.block);
            self.b.switch_to_block(way.block);
            for (phi, v) in way.values {
                self.export_phi(phi, v);
            }
            self.leave_region(way.to);
        }
    }
}

impl<'f> Terminators<'f> for Emitter<'_, 'f, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'f> {
        &mut self.b
    }

    fn prim(&self, v: Value) -> PrimType {
        prim_of(self.module, self.f.ty(v))
    }

    fn decider(&mut self, v: Value) -> ir::Value {
        self.value(v)
    }

    fn edge(&mut self, from: Block, to: Block) -> (ir::Block, Vec<BlockArg>) {
        let f = self.f;
        let mut values = Vec::new();
        for phi in f.phis(to) {
            if let (Some(v), Some(p)) = (f.phi_value(phi, from), f.inst(phi).result()) {
                values.push((p, self.value(v)));
            }
        }
        if self.plan.is_internal(from, to) {
            let block = self.blocks[to.index()].expect("blocks of the region were made");
            return (block, values.into_iter().map(|(_, v)| BlockArg::Value(v)).collect());
        }
        // The stores need a block of their own: this edge may be one of several of a branch. It is
        // filled once the branch stands.
        let block = self.b.create_block();
        self.ways_out.push(WayOut { block, values, to: self.plan.region_of(to) });
        (block, Vec::new())
    }

    fn ret(&mut self, v: Option<Value>) {
        match self.is_called {
            true => self.return_value(v),
            false => self.leave_region(None),
        }
    }
}
