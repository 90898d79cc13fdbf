//! Comparisons and choice.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::Op;

impl Emitter<'_> {
    fn set_bool(&mut self, i: Inst, shape: Shape, op: Op, operands: [Id; 2]) -> Emit {
        let (ty, id) = (self.b.shape(shape.of(Scalar::Bool)), self.result(i));
        self.body.value(op, ty, id, &operands);
        Ok(())
    }

    /// Equality of integers or bools.
    pub(super) fn int_equal(&mut self, i: Inst, int: Op, bool: Op) -> Emit {
        let (shape, _) = self.shape_of_operand(i, 0)?;
        let operands = self.operands(i)?;
        self.set_bool(i, shape, if shape.scalar == Scalar::Bool { bool } else { int }, operands)
    }

    /// The order of integers; bools are compared by `bool` as the numbers 0 and 1.
    pub(super) fn int_order(&mut self, i: Inst, int: Op, bool: Op) -> Emit {
        let (shape, _) = self.shape_of_operand(i, 0)?;
        let operands: [Id; 2] = self.operands(i)?;
        if shape.scalar != Scalar::Bool {
            return self.set_bool(i, shape, int, operands);
        }
        let word = shape.of(Scalar::Int32);
        let numbers = operands.map(|v| self.bool_to_number(v, word));
        self.set_bool(i, shape, bool, numbers)
    }

    pub(super) fn float_compare(&mut self, i: Inst, op: Op) -> Emit {
        let f = self.f;
        let itself = f.args(i).first() == f.args(i).get(1);
        match op {
            // A number equals itself, NaN does not.
            Op::FOrdEqual | Op::FOrdLessThanEqual | Op::FOrdGreaterThanEqual if itself => {
                return self.float_ordered(i);
            }
            Op::FUnordNotEqual | Op::FUnordLessThan | Op::FUnordGreaterThan if itself => {
                return self.float_unordered(i);
            }
            _ => {}
        }
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let operands = self.operands(i)?;
        self.set_bool(i, shape, op, operands)
    }

    /// Whether neither operand is NaN.
    pub(super) fn float_ordered(&mut self, i: Inst) -> Emit {
        self.check_nan(i, Op::ULessThanEqual, Op::LogicalAnd)
    }

    /// Whether either operand is NaN.
    pub(super) fn float_unordered(&mut self, i: Inst) -> Emit {
        self.check_nan(i, Op::UGreaterThan, Op::LogicalOr)
    }

    /// Compares the bits of both operands without their signs with infinity: a driver may be wrong
    /// about what can be NaN, as Mesa is, and take a comparison of floats for true.
    fn check_nan(&mut self, i: Inst, compare: Op, join: Op) -> Emit {
        let shape = self.float_shape(i)?;
        let operands: [Id; 2] = self.operands(i)?;
        let bool_ty = self.b.shape(shape.of(Scalar::Bool));
        let checked = operands.map(|v| {
            // Every f16 is an f32.
            let (v, float) = match shape.scalar {
                Scalar::Float16 => {
                    let single = shape.of(Scalar::Float32);
                    let ty = self.b.shape(single);
                    (self.emit(Op::FConvert, ty, &[v]), single)
                }
                _ => (v, shape),
            };
            let (mask, infinity) = match float.scalar {
                Scalar::Float64 => (i64::MAX as u64, f64::INFINITY.to_bits()),
                _ => (i32::MAX as u64, f32::INFINITY.to_bits() as u64),
            };
            let bits = float.of(Scalar::int(float.scalar.width()));
            let ty = self.b.shape(bits);
            let (mask, infinity) = (self.b.constant(bits, mask), self.b.constant(bits, infinity));
            let all = self.emit(Op::Bitcast, ty, &[v]);
            let magnitude = self.emit(Op::BitwiseAnd, ty, &[all, mask]);
            self.emit(compare, bool_ty, &[magnitude, infinity])
        });
        self.set_bool(i, shape, join, checked)
    }

    pub(super) fn select(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let operands: [Id; 3] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::Select, ty, id, &operands);
        Ok(())
    }
}
