//! Atomic operations on buffers and shared arrays: relaxed, at the scope that the memory has.
//!
//! A device that lacks an operation on floats gets a loop around a compare-and-swap of their bits.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::memory::Place;
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use magpie_types::kernel::DeviceFeatures;
use spirv::{Capability, GlslStd450Op as Glsl, LoopControl, Op, Scope, StorageClass};

impl Emitter<'_> {
    /// `gpu.atomic.add` and `gpu.atomic.sub`.
    pub(super) fn atomic_add(&mut self, i: Inst, negate: bool) -> Emit {
        if self.is_atomic_loop(i) {
            return self.atomic_loop(i, |e, shape, operands| {
                let ty = e.b.shape(shape);
                e.used_float(shape);
                let new = e.emit(if negate { Op::FSub } else { Op::FAdd }, ty, &operands);
                e.keep_exact(i, new);
                new
            });
        }
        let place = self.atomic_place(i)?;
        let mut value = self.atomic_operand(i, 2, &place)?;
        let stored = place.leaf.stored;
        if !stored.scalar.is_float() {
            let op = if negate { Op::AtomicISub } else { Op::AtomicIAdd };
            return self.atomic(i, &place, op, value);
        }
        self.b.extension("SPV_EXT_shader_atomic_float_add");
        self.b.capability(match stored.scalar {
            Scalar::Float64 => Capability::AtomicFloat64AddEXT,
            _ => Capability::AtomicFloat32AddEXT,
        });
        if negate {
            let ty = self.b.shape(stored);
            value = self.emit(Op::FNegate, ty, &[value]);
        }
        self.atomic(i, &place, Op::AtomicFAddEXT, value)
    }

    /// `gpu.atomic.min` and `gpu.atomic.max`: signed, unsigned and float form, and what a loop
    /// computes instead.
    pub(super) fn atomic_extremum(&mut self, i: Inst, ops: [Op; 3], exact: (Glsl, Op)) -> Emit {
        if self.is_atomic_loop(i) {
            return self.atomic_loop(i, |e, shape, operands| {
                e.emit_float_extremum(shape, operands, exact)
            });
        }
        let place = self.atomic_place(i)?;
        let value = self.atomic_operand(i, 2, &place)?;
        let (_, prim) = self.shape_of_result(i)?;
        let [signed, unsigned, float] = ops;
        let op = match place.leaf.stored.scalar {
            s if s.is_float() => {
                self.b.extension("SPV_EXT_shader_atomic_float_min_max");
                self.b.capability(Capability::AtomicFloat32MinMaxEXT);
                float
            }
            _ if prim.is_signed() => signed,
            _ => unsigned,
        };
        self.atomic(i, &place, op, value)
    }

    /// An operation that takes one operand and is the same for signed and unsigned integers; an
    /// exchange takes floats too.
    pub(super) fn atomic_bits(&mut self, i: Inst, op: Op) -> Emit {
        let place = self.atomic_place(i)?;
        let value = self.atomic_operand(i, 2, &place)?;
        if place.leaf.stored.scalar.is_float() {
            // No capability speaks of it, but a device that adds floats also exchanges them.
            self.needs |= match place.leaf.stored.scalar {
                Scalar::Float64 => DeviceFeatures::ATOMIC_FLOAT64_ADD,
                _ => DeviceFeatures::ATOMIC_FLOAT32_ADD,
            };
        }
        self.atomic(i, &place, op, value)
    }

    /// `gpu.atomic.cas`.
    pub(super) fn atomic_cas(&mut self, i: Inst) -> Emit {
        let place = self.atomic_place(i)?;
        let compare = self.atomic_operand(i, 2, &place)?;
        let replacement = self.atomic_operand(i, 3, &place)?;
        let old = self.b.id();
        self.compare_exchange(&place, old, compare, replacement);
        self.set_old(i, &place, old)
    }

    /// Gives the element as `old`; it becomes `replacement` when it equals `compare`.
    fn compare_exchange(&mut self, place: &Place, old: Id, compare: Id, replacement: Id) {
        let (scope, relaxed) = (self.scope(place), self.b.u32(0));
        let ty = self.b.shape(place.leaf.stored);
        let words = [place.pointer, scope, relaxed, relaxed, replacement, compare];
        self.body.value(Op::AtomicCompareExchange, ty, old, &words);
    }

    fn atomic(&mut self, i: Inst, place: &Place, op: Op, value: Id) -> Emit {
        let (scope, relaxed) = (self.scope(place), self.b.u32(0));
        let ty = self.b.shape(place.leaf.stored);
        let old = self.emit(op, ty, &[place.pointer, scope, relaxed, value]);
        self.set_old(i, place, old)
    }

    fn set_old(&mut self, i: Inst, place: &Place, old: Id) -> Emit {
        let old = self.decode(old, place.leaf.stored, place.leaf.value);
        let ty = self.b.shape(place.leaf.value);
        self.set_result(i, ty, old);
        Ok(())
    }

    /// Arithmetic on a float whose bits lie in memory: computes the new value from the one seen
    /// last until nobody has changed it meanwhile.
    fn atomic_loop(
        &mut self,
        i: Inst,
        update: impl FnOnce(&mut Self, Shape, [Id; 2]) -> Id,
    ) -> Emit {
        let place = self.atomic_place(i)?;
        let Some(&operand) = self.f.args(i).get(2) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let operand = self.value(operand)?;
        let (scope, relaxed) = (self.scope(&place), self.b.u32(0));
        let (bits, float) = (self.b.shape(place.leaf.stored), self.b.shape(place.leaf.value));
        let bool_ty = self.b.shape(Shape::BOOL);
        let first = self.emit(Op::AtomicLoad, bits, &[place.pointer, scope, relaxed]);
        let before = self.here;
        let [head, again, done, expected, seen] = std::array::from_fn(|_| self.b.id());
        self.body.op(Op::Branch, &[head]);
        self.begin_block(head);
        self.body.value(Op::Phi, bits, expected, &[first, before, seen, again]);
        self.body.op(Op::LoopMerge, &[done, again, LoopControl::NONE.bits()]);
        self.body.op(Op::Branch, &[again]);
        self.begin_block(again);
        let old = self.emit(Op::Bitcast, float, &[expected]);
        let new = update(self, place.leaf.value, [old, operand]);
        let new = self.emit(Op::Bitcast, bits, &[new]);
        self.compare_exchange(&place, seen, expected, new);
        let unchanged = self.emit(Op::IEqual, bool_ty, &[seen, expected]);
        self.body.op(Op::BranchConditional, &[unchanged, done, head]);
        self.begin_block(done);
        self.set_result(i, float, old);
        Ok(())
    }

    fn atomic_place(&mut self, i: Inst) -> Emit<Place> {
        let place = self.place(i, 0)?;
        let Shape { scalar, lanes } = place.leaf.stored;
        if lanes != 1 || place.leaf.value.scalar.width() < 32 {
            return Err(self.broken_at(i, "elements that no atomic operation takes"));
        }
        if place.class == StorageClass::Function {
            return Err(self.broken_at(i, "an atomic operation on a private array"));
        }
        if scalar == Scalar::Int64 {
            self.b.capability(Capability::Int64Atomics);
        }
        Ok(place)
    }

    fn atomic_operand(&mut self, i: Inst, n: usize, place: &Place) -> Emit<Id> {
        let Some(&v) = self.f.args(i).get(n) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let value = self.value(v)?;
        Ok(self.encode(value, place.leaf.value, place.leaf.stored))
    }

    fn scope(&mut self, place: &Place) -> Id {
        let scope = match place.class {
            StorageClass::Workgroup => Scope::Workgroup,
            _ => Scope::Device,
        };
        self.b.u32(scope as u32)
    }
}
