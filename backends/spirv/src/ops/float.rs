//! Float arithmetic and functions.
//!
//! Quotients, square roots, fused multiplications and remainders that must be exact come here
//! legalised: what is left of them may have the accuracy of Vulkan.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::{Flags, Inst};
use spirv::{Decoration, GlslStd450Op as Glsl, Op};

impl Emitter<'_> {
    /// The shape of operand 0, which must be a float that SPIR-V computes with.
    pub(super) fn float_shape(&self, i: Inst) -> Emit<Shape> {
        let (shape, prim) = self.shape_of_operand(i, 0)?;
        if shape.scalar.is_float() {
            return Ok(shape);
        }
        Err(self.broken_at(i, &format!("arithmetic on {}", prim.name())))
    }

    /// Forbids fusing the operation that gives `id` with another, unless the flags allow it.
    pub(super) fn keep_exact(&mut self, i: Inst, id: Id) {
        if !self.f.inst(i).flags.contains(Flags::CONTRACT) {
            self.b.decorate(id, Decoration::NoContraction, &[]);
        }
    }

    /// Sum, difference, product or quotient.
    pub(super) fn float_binary(&mut self, i: Inst, op: Op) -> Emit {
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let operands: [Id; 2] = self.operands(i)?;
        let operands = self.guard_operands(i, op, shape, operands);
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(op, ty, id, &operands);
        self.keep_exact(i, id);
        Ok(())
    }

    pub(super) fn float_negate(&mut self, i: Inst) -> Emit {
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let operands: [Id; 1] = self.operands(i)?;
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::FNegate, ty, id, &operands);
        Ok(())
    }

    /// A function that `GLSL.std.450` has for floats of every width.
    pub(super) fn float_function(&mut self, i: Inst, op: Glsl) -> Emit {
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let f = self.f;
        let mut operands = [0; 3];
        let n = f.args(i).len().min(3);
        for (id, &v) in operands.iter_mut().zip(f.args(i)) {
            *id = self.value(v)?;
        }
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.b.ext(&mut self.body, ty, id, op, &operands[..n]);
        Ok(())
    }

    /// Smaller or larger. The functions of `GLSL.std.450` handle NaN but say nothing about the
    /// order of the two zeros: equal operands are joined bit by bit, so that a minimum has the sign
    /// bit that either has and a maximum the one that both have.
    pub(super) fn float_extremum(&mut self, i: Inst, fast: Glsl, exact: (Glsl, Op)) -> Emit {
        let flags = self.f.inst(i).flags;
        if flags.contains(Flags::NNAN.union(Flags::NSZ)) {
            return self.float_function(i, fast);
        }
        if flags.contains(Flags::NSZ) {
            return self.float_function(i, exact.0);
        }
        let shape = self.float_shape(i)?;
        let operands = self.operands(i)?;
        let extremum = self.emit_float_extremum(shape, operands, exact);
        let ty = self.b.shape(shape);
        self.set_result(i, ty, extremum);
        Ok(())
    }

    /// As [`Emitter::float_extremum`], without freedoms.
    pub(super) fn emit_float_extremum(
        &mut self,
        shape: Shape,
        operands: [Id; 2],
        (total, join): (Glsl, Op),
    ) -> Id {
        self.used_float(shape);
        let ty = self.b.shape(shape);
        let bits_ty = self.b.shape(shape.of(Scalar::int(shape.scalar.width())));
        let bool_ty = self.b.shape(shape.of(Scalar::Bool));
        let chosen = self.emit_ext(total, ty, &operands);
        let bits = operands.map(|v| self.emit(Op::Bitcast, bits_ty, &[v]));
        let joined = self.emit(join, bits_ty, &bits);
        let joined = self.emit(Op::Bitcast, ty, &[joined]);
        let equal = self.emit(Op::FOrdEqual, bool_ty, &operands);
        self.emit(Op::Select, ty, &[equal, joined, chosen])
    }
}
