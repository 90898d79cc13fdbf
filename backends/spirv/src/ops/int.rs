//! Integer arithmetic.
//!
//! Divisions come here legalised: no divisor is zero and no quotient leaves its type.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::{GlslStd450Op as Glsl, Op};

impl Emitter<'_> {
    /// The shape of operand 0, which must be an integer.
    pub(super) fn int_shape(&self, i: Inst) -> Emit<Shape> {
        let (shape, prim) = self.shape_of_operand(i, 0)?;
        match shape.scalar {
            Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => Ok(shape),
            Scalar::Bool | Scalar::Float16 | Scalar::Float32 | Scalar::Float64 => {
                Err(self.broken_at(i, &format!("arithmetic on {}", prim.name())))
            }
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

    /// a - (a / b) * b: Vulkan leaves `OpSRem` undefined for negative operands.
    pub(super) fn signed_remainder(&mut self, i: Inst) -> Emit {
        let shape = self.int_shape(i)?;
        let [a, b] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        let quotient = self.emit(Op::SDiv, ty, &[a, b]);
        let product = self.emit(Op::IMul, ty, &[quotient, b]);
        self.body.value(Op::ISub, ty, id, &[a, product]);
        Ok(())
    }

    pub(super) fn mul_high(&mut self, i: Inst, signed: bool) -> Emit {
        let shape = self.int_shape(i)?;
        let [a, b] = self.operands(i)?;
        let high = self.emit_mul_high(shape, a, b, signed);
        let ty = self.b.shape(shape);
        self.set_result(i, ty, high);
        Ok(())
    }

    /// The upper half of the product.
    fn emit_mul_high(&mut self, shape: Shape, a: Id, b: Id, signed: bool) -> Id {
        let ty = self.b.shape(shape);
        let width = shape.scalar.width();
        if width >= 32 {
            let op = if signed { Op::SMulExtended } else { Op::UMulExtended };
            let pair = self.b.pair(ty);
            let both = self.emit(op, pair, &[a, b]);
            return self.emit(Op::CompositeExtract, ty, &[both, 1]);
        }
        let wide = shape.of(Scalar::Int32);
        let wide_ty = self.b.shape(wide);
        let extend = if signed { Op::SConvert } else { Op::UConvert };
        let (a, b) = (self.emit(extend, wide_ty, &[a]), self.emit(extend, wide_ty, &[b]));
        let product = self.emit(Op::IMul, wide_ty, &[a, b]);
        let amount = self.b.constant(wide, width as u64);
        let high = self.emit(Op::ShiftRightLogical, wide_ty, &[product, amount]);
        self.emit(Op::UConvert, ty, &[high])
    }

    /// Smaller or larger of two integers.
    pub(super) fn int_extremum(&mut self, i: Inst, op: Glsl) -> Emit {
        let shape = self.int_shape(i)?;
        let operands: [Id; 2] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.b.ext(&mut self.body, ty, id, op, &operands);
        Ok(())
    }

    // ----- overflow -----

    pub(super) fn add_overflows(&mut self, i: Inst) -> Emit {
        let shape = self.int_shape(i)?;
        let [a, b] = self.operands(i)?;
        let ty = self.b.shape(shape);
        let sum = self.emit(Op::IAdd, ty, &[a, b]);
        if !self.is_signed(i)? {
            return self.set_compare(i, shape, Op::ULessThan, [sum, a]);
        }
        // The sum has the sign that neither operand has.
        let from_a = self.emit(Op::BitwiseXor, ty, &[sum, a]);
        let from_b = self.emit(Op::BitwiseXor, ty, &[sum, b]);
        self.sign_of_both(i, shape, from_a, from_b)
    }

    pub(super) fn sub_overflows(&mut self, i: Inst) -> Emit {
        let shape = self.int_shape(i)?;
        let [a, b] = self.operands(i)?;
        if !self.is_signed(i)? {
            return self.set_compare(i, shape, Op::ULessThan, [a, b]);
        }
        let ty = self.b.shape(shape);
        let difference = self.emit(Op::ISub, ty, &[a, b]);
        let operands = self.emit(Op::BitwiseXor, ty, &[a, b]);
        let changed = self.emit(Op::BitwiseXor, ty, &[a, difference]);
        self.sign_of_both(i, shape, operands, changed)
    }

    pub(super) fn mul_overflows(&mut self, i: Inst) -> Emit {
        let shape = self.int_shape(i)?;
        let [a, b] = self.operands(i)?;
        let signed = self.is_signed(i)?;
        let high = self.emit_mul_high(shape, a, b, signed);
        if !signed {
            let zero = self.b.constant(shape, 0);
            return self.set_compare(i, shape, Op::INotEqual, [high, zero]);
        }
        // The exact product fits when its upper half is nothing but the sign of the lower half.
        let ty = self.b.shape(shape);
        let low = self.emit(Op::IMul, ty, &[a, b]);
        let last = self.b.constant(shape, shape.scalar.width() as u64 - 1);
        let sign = self.emit(Op::ShiftRightArithmetic, ty, &[low, last]);
        self.set_compare(i, shape, Op::INotEqual, [high, sign])
    }

    fn sign_of_both(&mut self, i: Inst, shape: Shape, a: Id, b: Id) -> Emit {
        let ty = self.b.shape(shape);
        let both = self.emit(Op::BitwiseAnd, ty, &[a, b]);
        let zero = self.b.constant(shape, 0);
        self.set_compare(i, shape, Op::SLessThan, [both, zero])
    }

    fn is_signed(&self, i: Inst) -> Emit<bool> {
        Ok(self.shape_of_operand(i, 0)?.1.is_signed())
    }

    fn set_compare(&mut self, i: Inst, shape: Shape, op: Op, operands: [Id; 2]) -> Emit {
        let (ty, id) = (self.b.shape(shape.of(Scalar::Bool)), self.result(i));
        self.body.value(op, ty, id, &operands);
        Ok(())
    }
}
