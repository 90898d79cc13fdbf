//! Guards against drivers that simplify strict arithmetic as if there were no NaN, no infinity and
//! one zero only, whatever the execution modes say: Mesa's software driver (22.3) takes `x * 0` and
//! `x - x` for zero and `x + 0` for `x`.
//!
//! An operand that the driver cannot see through keeps it from doing so.

use crate::builder::Id;
use crate::emitter::Emitter;
use crate::types::Shape;
use magpie_mpir::{Const, Flags, Inst, Value};
use spirv::{BuiltIn, Op};

/// Opaque values, each made at first use at the start of the function.
#[derive(Default)]
pub(crate) struct Opaque {
    /// A condition that never holds and of which no driver knows that.
    never: Id,
    zeros: Vec<(Shape, Id)>,
}

impl Emitter<'_> {
    /// Operands for a float sum, difference or product `op` of `shape` that is to be computed as it
    /// stands.
    pub(crate) fn guard_operands(
        &mut self,
        i: Inst,
        op: Op,
        shape: Shape,
        mut operands: [Id; 2],
    ) -> [Id; 2] {
        let f = self.f;
        let free = Flags::NNAN.union(Flags::NSZ);
        if f.inst(i).flags.contains(free) {
            return operands;
        }
        let [a, b] = [f.arg(i, 0), f.arg(i, 1)];
        if op == Op::FSub && a == b {
            let (ty, never) = (self.b.shape(shape), self.never());
            let zero = self.b.constant(shape, 0);
            operands[1] = self.emit(Op::Select, ty, &[never, zero, operands[1]]);
        }
        for (id, v) in operands.iter_mut().zip([a, b]) {
            if self.is_zero(v) {
                *id = self.opaque_zero(shape);
            }
        }
        operands
    }

    fn is_zero(&self, v: Value) -> bool {
        matches!(self.f.as_const(v), Some(Const::Bits(0) | Const::Zero))
    }

    fn never(&mut self) -> Id {
        if self.opaque.never == 0 {
            // A launch without workgroups.
            let groups = self.builtin_component(BuiltIn::NumWorkgroups, 0);
            let (ty, zero) = (self.b.shape(Shape::BOOL), self.b.u32(0));
            self.opaque.never = self.in_prologue(Op::IEqual, ty, &[groups, zero]);
        }
        self.opaque.never
    }

    fn opaque_zero(&mut self, shape: Shape) -> Id {
        if let Some(&(_, id)) = self.opaque.zeros.iter().find(|z| z.0 == shape) {
            return id;
        }
        let (ty, never) = (self.b.shape(shape), self.never());
        let (one, zero) = (self.b.constant(shape, shape.scalar.one()), self.b.constant(shape, 0));
        let id = self.in_prologue(Op::Select, ty, &[never, one, zero]);
        self.opaque.zeros.push((shape, id));
        id
    }
}
