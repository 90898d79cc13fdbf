//! Shifts, rotations and the counting of bits.
//!
//! Vulkan counts bits of 32-bit integers only, so other widths go through those.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::{GlslStd450Op as Glsl, Op};

impl Emitter<'_> {
    /// A shift; the amount is taken modulo the width.
    pub(super) fn shift(&mut self, i: Inst, op: Op) -> Emit {
        let shape = self.int_shape(i)?;
        let [value, _] = self.operands(i)?;
        let amount = self.shift_amount(i, shape)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(op, ty, id, &[value, amount]);
        Ok(())
    }

    /// A rotation: `near` by the amount, joined with `far` by what is left of the width.
    pub(super) fn rotate(&mut self, i: Inst, near: Op, far: Op) -> Emit {
        let shape = self.int_shape(i)?;
        let [value, raw] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        let amount = self.shift_amount(i, shape)?;
        // Modulo the width, so that a rotation by 0 shifts by 0 twice.
        let mask = self.b.constant(shape, shape.scalar.width() as u64 - 1);
        let negated = self.emit(Op::SNegate, ty, &[raw]);
        let rest = self.emit(Op::BitwiseAnd, ty, &[negated, mask]);
        let near = self.emit(near, ty, &[value, amount]);
        let far = self.emit(far, ty, &[value, rest]);
        self.body.value(Op::BitwiseOr, ty, id, &[near, far]);
        Ok(())
    }

    /// Operand 1 modulo the width; a constant that is small enough stays as it is.
    fn shift_amount(&mut self, i: Inst, shape: Shape) -> Emit<Id> {
        let [_, amount] = self.operands(i)?;
        let width = shape.scalar.width() as u64;
        let f = self.f;
        if f.as_bits(f.arg(i, 1)).is_some_and(|n| n < width) {
            return Ok(amount);
        }
        let ty = self.b.shape(shape);
        let mask = self.b.constant(shape, width - 1);
        Ok(self.emit(Op::BitwiseAnd, ty, &[amount, mask]))
    }

    // ----- counting -----

    pub(super) fn popcount(&mut self, i: Inst) -> Emit {
        self.count(
            i,
            |e, shape, part| e.emit_u32(shape, Op::BitCount, &[part]),
            |e, shape, n, _| e.emit_u32(shape, Op::IAdd, &[n[0], n[1]]),
        )
    }

    pub(super) fn leading_zeros(&mut self, i: Inst) -> Emit {
        let width = self.int_shape(i)?.scalar.width();
        self.count(
            i,
            |e, shape, part| {
                // The position of the highest one, -1 for 0.
                let ty = e.b.shape(shape);
                let top = e.emit_ext(Glsl::FindUMsb, ty, &[part]);
                let last = e.b.constant(shape, width.min(32) as u64 - 1);
                e.emit_u32(shape, Op::ISub, &[last, top])
            },
            |e, shape, n, parts| e.choose(shape, parts[1], n[1], n[0]),
        )
    }

    pub(super) fn trailing_zeros(&mut self, i: Inst) -> Emit {
        let width = self.int_shape(i)?.scalar.width();
        self.count(
            i,
            |e, shape, part| {
                // The position of the lowest one; -1, which is largest, for 0.
                let ty = e.b.shape(shape);
                let lowest = e.emit_ext(Glsl::FindILsb, ty, &[part]);
                let none = e.b.constant(shape, width.min(32) as u64);
                e.emit_ext(Glsl::UMin, ty, &[lowest, none])
            },
            |e, shape, n, parts| e.choose(shape, parts[0], n[0], n[1]),
        )
    }

    /// Counts with `one` in 32 bits; for 64 bits in the lower and the upper half, joined by `join`
    /// from the two counts and the two halves.
    fn count(
        &mut self,
        i: Inst,
        one: impl Fn(&mut Self, Shape, Id) -> Id,
        join: impl Fn(&mut Self, Shape, [Id; 2], [Id; 2]) -> Id,
    ) -> Emit {
        let shape = self.int_shape(i)?;
        let [value] = self.operands(i)?;
        let word = shape.of(Scalar::Int32);
        let ty = self.b.shape(shape);
        let counted = match shape.scalar.width() {
            32 => one(self, word, value),
            64 => {
                let amount = self.b.constant(shape, 32);
                let upper = self.emit(Op::ShiftRightLogical, ty, &[value, amount]);
                let parts = [
                    self.emit_u32(word, Op::UConvert, &[value]),
                    self.emit_u32(word, Op::UConvert, &[upper]),
                ];
                let counts = [one(self, word, parts[0]), one(self, word, parts[1])];
                join(self, word, counts, parts)
            }
            _ => {
                let wide = self.emit_u32(word, Op::UConvert, &[value]);
                one(self, word, wide)
            }
        };
        let counted = match shape.scalar {
            Scalar::Int32 => counted,
            _ => self.emit(Op::UConvert, ty, &[counted]),
        };
        self.set_result(i, ty, counted);
        Ok(())
    }

    /// `first` when `part` has a one, else 32 more than `second`.
    fn choose(&mut self, shape: Shape, part: Id, first: Id, second: Id) -> Id {
        let bool_ty = self.b.shape(shape.of(Scalar::Bool));
        let (zero, half) = (self.b.constant(shape, 0), self.b.constant(shape, 32));
        let found = self.emit(Op::INotEqual, bool_ty, &[part, zero]);
        let beyond = self.emit_u32(shape, Op::IAdd, &[second, half]);
        self.emit_u32(shape, Op::Select, &[found, first, beyond])
    }

    fn emit_u32(&mut self, shape: Shape, op: Op, operands: &[Id]) -> Id {
        let ty = self.b.shape(shape);
        self.emit(op, ty, operands)
    }
}
