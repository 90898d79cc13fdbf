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
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let operands = self.operands(i)?;
        self.set_bool(i, shape, op, operands)
    }

    /// Whether neither (or either) operand is NaN: each is compared with itself by `op`.
    pub(super) fn float_ordered(&mut self, i: Inst, op: Op, join: Op) -> Emit {
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let operands: [Id; 2] = self.operands(i)?;
        let ty = self.b.shape(shape.of(Scalar::Bool));
        let itself = operands.map(|v| self.emit(op, ty, &[v, v]));
        self.set_bool(i, shape, join, itself)
    }

    pub(super) fn select(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let operands: [Id; 3] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::Select, ty, id, &operands);
        Ok(())
    }
}
