//! Integer arithmetic.
//!
//! What is partial in SPIR-V comes here legalised: no divisor is zero, no quotient leaves its type,
//! no shift amount reaches the width, and bits are counted in 32-bit integers only.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::{GlslStd450Op as Glsl, Op};

impl Emitter<'_> {
    /// The shape of operand 0, which must be an integer.
    fn int_shape(&self, i: Inst) -> Emit<Shape> {
        let (shape, prim) = self.shape_of_operand(i, 0)?;
        match shape.scalar {
            Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => Ok(shape),
            Scalar::Bool | Scalar::Float16 | Scalar::Float32 | Scalar::Float64 => {
                Err(self.broken_at(i, &format!("arithmetic on {}", prim.name())))
            }
        }
    }

    /// The shape of operand 0, which must be an integer of 32 bits.
    fn int32_shape(&self, i: Inst) -> Emit<Shape> {
        let shape = self.int_shape(i)?;
        match shape.scalar {
            Scalar::Int32 => Ok(shape),
            _ => Err(self.broken_at(i, "not in 32 bits")),
        }
    }

    /// An op that SPIR-V has for integers of every width.
    pub(super) fn int_binary(&mut self, i: Inst, op: Op) -> Emit {
        let shape = self.int_shape(i)?;
        let operands: [Id; 2] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(op, ty, id, &operands);
        Ok(())
    }

    /// An op that is one thing on integers and another on bools.
    pub(super) fn bit_binary(&mut self, i: Inst, int: Op, bool: Op) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        if shape.scalar != Scalar::Bool {
            return self.int_binary(i, int);
        }
        let operands: [Id; 2] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(bool, ty, id, &operands);
        Ok(())
    }

    /// The upper half of a product, of `op` that gives both.
    pub(super) fn mul_high(&mut self, i: Inst, op: Op) -> Emit {
        let shape = self.int_shape(i)?;
        if shape.scalar.width() < 32 {
            return Err(self.broken_at(i, "below 32 bits"));
        }
        let operands: [Id; 2] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        let pair = self.b.pair(ty);
        let both = self.emit(op, pair, &operands);
        self.body.value(Op::CompositeExtract, ty, id, &[both, 1]);
        Ok(())
    }

    /// Smaller or larger of two integers.
    pub(super) fn int_extremum(&mut self, i: Inst, op: Glsl) -> Emit {
        let shape = self.int_shape(i)?;
        let operands: [Id; 2] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.b.ext(&mut self.body, ty, id, op, &operands);
        Ok(())
    }

    pub(super) fn popcount(&mut self, i: Inst) -> Emit {
        let shape = self.int32_shape(i)?;
        let operands: [Id; 1] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::BitCount, ty, id, &operands);
        Ok(())
    }

    pub(super) fn leading_zeros(&mut self, i: Inst) -> Emit {
        let shape = self.int32_shape(i)?;
        let operands: [Id; 1] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        // The position of the highest one, -1 for 0.
        let top = self.emit_ext(Glsl::FindUMsb, ty, &operands);
        let last = self.b.constant(shape, 31);
        self.body.value(Op::ISub, ty, id, &[last, top]);
        Ok(())
    }

    pub(super) fn trailing_zeros(&mut self, i: Inst) -> Emit {
        let shape = self.int32_shape(i)?;
        let operands: [Id; 1] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        // The position of the lowest one; -1, which is largest, for 0.
        let lowest = self.emit_ext(Glsl::FindILsb, ty, &operands);
        let none = self.b.constant(shape, 32);
        self.b.ext(&mut self.body, ty, id, Glsl::UMin, &[lowest, none]);
        Ok(())
    }
}
