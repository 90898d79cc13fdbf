//! Accesses of buffers, shared and private arrays.

use super::kernel::{Generator, SLOTS};
use crate::{Op, Value};
use magpie_types::{PrimType, TypeId, TypeKind, fixed};

/// An output buffer.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub(super) array: Value,
    pub(super) element: TypeId,
}

impl Generator<'_> {
    /// An index of any of the four types, mostly near the beginning.
    fn index(&mut self) -> Value {
        let prims = [PrimType::U32, PrimType::I32, PrimType::U64, PrimType::I64];
        let usable: Vec<PrimType> = prims.into_iter().filter(|p| self.types.contains(p)).collect();
        let p = self.rng.pick(&usable).unwrap_or(PrimType::U32);
        let v = self.scalar(p);
        let mask = self.f.const_bits(p.id(), 15);
        match self.rng.below(4) {
            0 => v,
            1 => {
                let len = self.f.const_bits(p.id(), 5);
                self.emit(Op::IUrem, p.id(), &[v, len])
            }
            _ => self.emit(Op::IAnd, p.id(), &[v, mask]),
        }
    }

    /// The index of an element that belongs to this invocation.
    fn own_index(&mut self) -> Value {
        let slots = self.f.const_u32(SLOTS);
        let first = self.emit(Op::IMul, fixed::U32, &[self.global_id, slots]);
        let slot = match self.rng.below(2) {
            0 => self.f.const_bits(fixed::U32, self.rng.below(SLOTS as usize) as u64),
            _ => {
                let v = self.scalar(PrimType::U32);
                let mask = self.f.const_u32(SLOTS - 1);
                self.emit(Op::IAnd, fixed::U32, &[v, mask])
            }
        };
        let index = self.emit(Op::IAdd, fixed::U32, &[first, slot]);
        let prims = [PrimType::I32, PrimType::U64, PrimType::I64];
        match self.rng.pick(&prims).filter(|p| self.types.contains(p)) {
            Some(p) if self.rng.chance(30) => self.emit(Op::Cast, p.id(), &[index]),
            _ => index,
        }
    }

    pub(super) fn memory_access(&mut self) {
        match self.rng.below(11) {
            0..4 => self.input_load(),
            4 | 5 => self.guarded_load(),
            6 => self.grid_load(),
            7 | 8 => self.own_store(),
            9 => self.own_load(),
            _ => self.atomic(),
        }
    }

    fn input_load(&mut self) {
        let Some((array, element)) = self.rng.pick(&self.inputs) else { return };
        let index = self.index();
        self.load(array, element, index);
    }

    fn load(&mut self, array: Value, element: TypeId, index: Value) {
        let leaves = self.module.types.leaves(element);
        let v = match self.module.types.is_aggregate(element) && self.rng.chance(40) {
            true => {
                let leaf = self.rng.below(leaves.len());
                self.emit_imm(Op::GpuLeafLoad, leaves[leaf].ty, &[array, index], leaf as u64)
            }
            false => self.emit(Op::GpuBufferLoad, element, &[array, index]),
        };
        self.values.push(v);
    }

    /// An access behind a comparison with the length, or with a number of the launch.
    fn guarded_load(&mut self) {
        let Some((array, element)) = self.rng.pick(&self.inputs) else { return };
        if self.types.contains(&PrimType::I32) && self.rng.chance(30) {
            self.signed_guarded_load(array, element);
            return;
        }
        let limit = match self.launch_number() {
            Some(n) if self.rng.chance(50) => n,
            _ => self.emit(Op::GpuBufferLen, fixed::U32, &[array]),
        };
        let index = if self.rng.chance(50) { self.global_id } else { self.scalar(PrimType::U32) };
        let guard = self.emit(Op::IcmpUlt, fixed::BOOL, &[index, limit]);
        self.values.push(limit);
        self.load_where(guard, array, element, |g| {
            let off = g.f.const_bits(fixed::U32, g.rng.below(2) as u64);
            let op = if g.rng.chance(50) { Op::ISub } else { Op::IAdd };
            g.emit(op, fixed::U32, &[index, off])
        });
    }

    /// A signed index, negative now and then, behind a signed comparison.
    fn signed_guarded_load(&mut self, array: Value, element: TypeId) {
        let len = self.emit(Op::GpuBufferLen, fixed::U32, &[array]);
        let len = self.emit(Op::Cast, fixed::I32, &[len]);
        let index = self.scalar(PrimType::I32);
        let mut guard = self.emit(Op::IcmpSlt, fixed::BOOL, &[index, len]);
        if self.rng.chance(50) {
            let zero = self.f.zero(fixed::I32);
            let low = self.emit(Op::IcmpSge, fixed::BOOL, &[index, zero]);
            guard = self.emit(Op::IAnd, fixed::BOOL, &[guard, low]);
        }
        self.load_where(guard, array, element, |_| index);
    }

    /// An access of a row and a column of a grid whose size comes with the launch, signed or
    /// unsigned, with the neighbours now and then.
    fn grid_load(&mut self) {
        let Some((array, element)) = self.rng.pick(&self.inputs) else { return };
        let (Some(width), Some(height)) = (self.launch_number(), self.launch_number()) else {
            return;
        };
        let signed = self.types.contains(&PrimType::I32) && self.rng.chance(40);
        let ty = if signed { fixed::I32 } else { fixed::U32 };
        let less = if signed { Op::IcmpSlt } else { Op::IcmpUlt };
        let ids = [Op::GpuGlobalId, Op::GpuThreadId];
        let place = [0, 1].map(|dim| {
            let op = self.rng.pick(&ids).unwrap_or(Op::GpuGlobalId);
            self.emit_imm(op, fixed::U32, &[], dim)
        });
        let convert = |g: &mut Self, v| if signed { g.emit(Op::Cast, ty, &[v]) } else { v };
        let [column, row] = place.map(|v| convert(self, v));
        let (width, height) = (convert(self, width), convert(self, height));
        let border = self.f.const_bits(ty, self.rng.below(2) as u64);
        let last = self.emit(Op::ISub, ty, &[width, border]);
        let in_row = self.emit(less, fixed::BOOL, &[column, last]);
        let in_column = self.emit(less, fixed::BOOL, &[row, height]);
        let guard = self.emit(Op::IAnd, fixed::BOOL, &[in_row, in_column]);
        self.load_where(guard, array, element, |g| {
            let start = g.emit(Op::IMul, ty, &[row, width]);
            let near = if g.rng.chance(50) { border } else { g.f.zero(ty) };
            let first = g.emit(Op::IAdd, ty, &[start, column]);
            g.emit(Op::IAdd, ty, &[first, near])
        });
    }

    /// A `u32` that is the same for the whole launch.
    fn launch_number(&mut self) -> Option<Value> {
        let numbers: Vec<Value> = self.f.params.iter().map(|p| p.0).collect();
        let numbers: Vec<Value> =
            numbers.into_iter().filter(|&v| self.f.ty(v) == fixed::U32).collect();
        self.rng.pick(&numbers)
    }

    /// A load that happens where `guard` holds.
    fn load_where(
        &mut self,
        guard: Value,
        array: Value,
        element: TypeId,
        index: impl FnOnce(&mut Self) -> Value,
    ) {
        let was_uniform = std::mem::replace(&mut self.is_uniform, false);
        self.branch_on(guard, |g| {
            let index = index(g);
            g.load(array, element, index);
            let v = g.values.last().copied();
            v.filter(|&v| g.f.ty(v) == element)
        });
        self.is_uniform = was_uniform;
    }

    fn own_store(&mut self) {
        let Some((Output { array, element }, index)) = self.own_place() else { return };
        let leaves = self.module.types.leaves(element);
        if self.module.types.is_aggregate(element) && self.rng.chance(40) {
            let leaf = self.rng.below(leaves.len());
            let v = self.any_value(leaves[leaf].ty);
            self.emit_imm(Op::GpuLeafStore, fixed::UNIT, &[array, index, v], leaf as u64);
        } else {
            let v = self.any_value(element);
            self.emit(Op::GpuBufferStore, fixed::UNIT, &[array, index, v]);
        }
    }

    fn own_load(&mut self) {
        let Some((Output { array, element }, index)) = self.own_place() else { return };
        self.load(array, element, index);
    }

    /// An element of an output that belongs to this invocation; often one that was accessed before.
    fn own_place(&mut self) -> Option<(Output, Value)> {
        if let Some(place) = self.rng.pick(&self.places).filter(|_| self.rng.chance(50)) {
            return Some(place);
        }
        let place = (self.rng.pick(&self.outputs)?, self.own_index());
        self.places.push(place);
        Some(place)
    }

    fn atomic(&mut self) {
        let Some((array, op)) = self.counters else { return };
        let TypeKind::Buffer(element) = self.module.types.kind(self.f.ty(array)) else { return };
        let index = self.index();
        let v = self.any_value(element);
        self.emit(op, element, &[array, index, v]);
    }

    /// Exchanges values between the invocations of a workgroup. Needs uniform control flow.
    pub(super) fn exchange(&mut self) {
        let p = self.random_prim();
        let p = if p == PrimType::Bool { PrimType::U32 } else { p };
        let len = self.f.gpu_meta.as_ref().map_or(1, |m| m.workgroup.iter().product());
        let ty = self.module.types.intern(TypeKind::SharedArray(p.id(), len));
        let array = self.emit(Op::GpuShared, ty, &[]);
        let v = self.scalar(p);
        self.emit(Op::GpuBufferStore, fixed::UNIT, &[array, self.local_id, v]);
        self.emit(Op::GpuBarrier, fixed::UNIT, &[]);
        for _ in 0..1 + self.rng.below(2) {
            let index = match self.rng.below(2) {
                0 => self.index(),
                _ => {
                    let off = self.f.const_bits(fixed::U32, self.rng.below(9) as u64);
                    self.emit(Op::IXor, fixed::U32, &[self.local_id, off])
                }
            };
            self.load(array, p.id(), index);
        }
        self.emit(Op::GpuBarrier, fixed::UNIT, &[]);
    }

    pub(super) fn private_array(&mut self) {
        let p = self.random_prim();
        let p = if p == PrimType::Bool { PrimType::U32 } else { p };
        let len = 1 + self.rng.below(8) as u32;
        let ty = self.module.types.intern(TypeKind::LocalArray(p.id(), len));
        let array = self.emit(Op::GpuLocal, ty, &[]);
        for _ in 0..1 + self.rng.below(3) {
            let (index, v) = (self.index(), self.scalar(p));
            self.emit(Op::GpuBufferStore, fixed::UNIT, &[array, index, v]);
            let index = self.index();
            self.load(array, p.id(), index);
        }
    }

    /// Stores late values of every output type, so that what was computed matters.
    pub(super) fn store_results(&mut self) {
        for n in 0..self.outputs.len() {
            let Output { array, element } = self.outputs[n];
            let index = self.own_index();
            let v = self.any_value(element);
            self.emit(Op::GpuBufferStore, fixed::UNIT, &[array, index, v]);
        }
        // Every other type is folded into a number.
        let Some(&Output { array, .. }) = self.outputs.iter().find(|o| o.element == fixed::U32)
        else {
            return;
        };
        for p in self.types.clone() {
            let Some(v) = self.value_of(p.id()) else { continue };
            let number = match p {
                p if p.is_float() => {
                    let other = self.constant(p);
                    self.emit(Op::FcmpOlt, fixed::BOOL, &[v, other])
                }
                _ => v,
            };
            let number = self.emit(Op::Cast, fixed::U32, &[number]);
            let index = self.own_index();
            self.emit(Op::GpuBufferStore, fixed::UNIT, &[array, index, number]);
        }
    }
}
