//! Subgroup operations.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::{BuiltIn, Capability, GroupOperation, Op, Scope};

impl Emitter<'_> {
    fn subgroup_scope(&mut self) -> Id {
        self.b.u32(Scope::Subgroup as u32)
    }

    pub(super) fn subgroup_builtin(&mut self, i: Inst, builtin: BuiltIn) -> Emit {
        self.b.capability(Capability::GroupNonUniform);
        let id = self.builtin_scalar(builtin);
        self.set_u32(i, id)
    }

    /// A shuffle of operand 0 by operand 1. A broadcast is one too: its lane need not be constant.
    pub(super) fn subgroup_shuffle(&mut self, i: Inst, op: Op) -> Emit {
        let relative = matches!(op, Op::GroupNonUniformShuffleUp | Op::GroupNonUniformShuffleDown);
        self.b.capability(Capability::GroupNonUniform);
        self.b.capability(if relative {
            Capability::GroupNonUniformShuffleRelative
        } else {
            Capability::GroupNonUniformShuffle
        });
        let (shape, _) = self.shape_of_result(i)?;
        let [value, lane] = self.operands(i)?;
        let scope = self.subgroup_scope();
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(op, ty, id, &[scope, value, lane]);
        Ok(())
    }

    /// Sum, or the sum over the lanes before this one.
    pub(super) fn subgroup_sum(&mut self, i: Inst, group: GroupOperation) -> Emit {
        self.subgroup_arithmetic(i, group, |scalar| match scalar {
            s if s.is_float() => Op::GroupNonUniformFAdd,
            _ => Op::GroupNonUniformIAdd,
        })
    }

    /// Smallest or largest: signed, unsigned and float form.
    pub(super) fn subgroup_extremum(&mut self, i: Inst, ops: [Op; 3]) -> Emit {
        let (_, prim) = self.shape_of_result(i)?;
        let [signed, unsigned, float] = ops;
        self.subgroup_arithmetic(i, GroupOperation::Reduce, |scalar| match scalar {
            s if s.is_float() => float,
            _ if prim.is_signed() => signed,
            _ => unsigned,
        })
    }

    fn subgroup_arithmetic(
        &mut self,
        i: Inst,
        group: GroupOperation,
        op: impl Fn(Scalar) -> Op,
    ) -> Emit {
        self.b.capability(Capability::GroupNonUniform);
        self.b.capability(Capability::GroupNonUniformArithmetic);
        let (shape, _) = self.shape_of_result(i)?;
        if shape.scalar == Scalar::Bool {
            return Err(self.broken_at(i, "arithmetic on bool"));
        }
        let [value] = self.operands(i)?;
        let scope = self.subgroup_scope();
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(op(shape.scalar), ty, id, &[scope, group as u32, value]);
        Ok(())
    }

    pub(super) fn subgroup_vote(&mut self, i: Inst, op: Op) -> Emit {
        self.b.capability(Capability::GroupNonUniform);
        self.b.capability(Capability::GroupNonUniformVote);
        let [value] = self.operands(i)?;
        let scope = self.subgroup_scope();
        let (ty, id) = (self.b.shape(Shape::BOOL), self.result(i));
        self.body.value(op, ty, id, &[scope, value]);
        Ok(())
    }

    /// The first 64 bits of the ballot.
    pub(super) fn subgroup_ballot(&mut self, i: Inst) -> Emit {
        self.b.capability(Capability::GroupNonUniform);
        self.b.capability(Capability::GroupNonUniformBallot);
        let [value] = self.operands(i)?;
        let scope = self.subgroup_scope();
        let four = self.b.shape(Shape { scalar: Scalar::Int32, lanes: 4 });
        let two = self.b.shape(Shape { scalar: Scalar::Int32, lanes: 2 });
        let all = self.emit(Op::GroupNonUniformBallot, four, &[scope, value]);
        let first = self.emit(Op::VectorShuffle, two, &[all, all, 0, 1]);
        // The first component becomes the lower half.
        let (ty, id) = (self.b.shape(Shape::one(Scalar::Int64)), self.result(i));
        self.body.value(Op::Bitcast, ty, id, &[first]);
        Ok(())
    }
}
