//! Atomic operations on buffers and shared arrays: relaxed, at the scope that the memory has.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::memory::Place;
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::{Capability, Op, Scope, StorageClass};

const FLOAT_ADD: &str = "SPV_EXT_shader_atomic_float_add";
const FLOAT_MIN_MAX: &str = "SPV_EXT_shader_atomic_float_min_max";

impl Emitter<'_> {
    /// `gpu.atomic.add` and `gpu.atomic.sub`.
    pub(super) fn atomic_add(&mut self, i: Inst, negate: bool) -> Emit {
        let place = self.atomic_place(i)?;
        let mut value = self.atomic_operand(i, 2, &place)?;
        let stored = place.leaf.stored;
        if !stored.scalar.is_float() {
            return self.atomic(
                i,
                &place,
                if negate { Op::AtomicISub } else { Op::AtomicIAdd },
                value,
            );
        }
        self.float_atomic(i, stored.scalar, FLOAT_ADD, |s| match s {
            Scalar::Float32 => Some(Capability::AtomicFloat32AddEXT),
            Scalar::Float64 => Some(Capability::AtomicFloat64AddEXT),
            _ => None,
        })?;
        if negate {
            let ty = self.b.shape(stored);
            value = self.emit(Op::FNegate, ty, &[value]);
        }
        self.atomic(i, &place, Op::AtomicFAddEXT, value)
    }

    /// `gpu.atomic.min` and `gpu.atomic.max`: signed, unsigned and float form.
    pub(super) fn atomic_extremum(&mut self, i: Inst, ops: [Op; 3]) -> Emit {
        let place = self.atomic_place(i)?;
        let value = self.atomic_operand(i, 2, &place)?;
        let (_, prim) = self.shape_of_result(i)?;
        let [signed, unsigned, float] = ops;
        let op = if !place.leaf.stored.scalar.is_float() {
            if prim.is_signed() { signed } else { unsigned }
        } else {
            self.float_atomic(i, place.leaf.stored.scalar, FLOAT_MIN_MAX, |s| match s {
                Scalar::Float32 => Some(Capability::AtomicFloat32MinMaxEXT),
                Scalar::Float64 => Some(Capability::AtomicFloat64MinMaxEXT),
                _ => None,
            })?;
            float
        };
        self.atomic(i, &place, op, value)
    }

    /// An operation on the bits of integers (and of floats, for an exchange).
    pub(super) fn atomic_int(&mut self, i: Inst, op: Op) -> Emit {
        let place = self.atomic_place(i)?;
        let value = self.atomic_operand(i, 2, &place)?;
        self.atomic(i, &place, op, value)
    }

    /// `gpu.atomic.cas`.
    pub(super) fn atomic_cas(&mut self, i: Inst) -> Emit {
        let place = self.atomic_place(i)?;
        let compare = self.atomic_operand(i, 2, &place)?;
        let replacement = self.atomic_operand(i, 3, &place)?;
        let (scope, relaxed) = (self.scope(&place), self.b.u32(0));
        let ty = self.b.shape(place.leaf.stored);
        let words = [place.pointer, scope, relaxed, relaxed, replacement, compare];
        let old = self.emit(Op::AtomicCompareExchange, ty, &words);
        self.set_old(i, &place, old)
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

    fn atomic_place(&mut self, i: Inst) -> Emit<Place> {
        let place = self.place(i, 0)?;
        let Shape { scalar, lanes } = place.leaf.stored;
        if lanes != 1 || scalar.width() < 32 || place.leaf.value.scalar.width() < 32 {
            let (_, prim) = self.shape_of_result(i)?;
            let message = format!(
                "`{}` on elements of type {} is not available on spv",
                self.f.inst(i).op.name(),
                prim.name()
            );
            return Err(self.refuse(i, message, "use elements of 32 or 64 bits"));
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

    fn float_atomic(
        &mut self,
        i: Inst,
        scalar: Scalar,
        extension: &'static str,
        capability: impl Fn(Scalar) -> Option<Capability>,
    ) -> Emit {
        let Some(capability) = capability(scalar) else {
            return Err(self.broken_at(i, "an atomic operation on f16"));
        };
        self.b.capability(capability);
        self.b.extension(extension);
        Ok(())
    }

    fn scope(&mut self, place: &Place) -> Id {
        let scope = match place.class {
            StorageClass::Workgroup => Scope::Workgroup,
            _ => Scope::Device,
        };
        self.b.u32(scope as u32)
    }
}
