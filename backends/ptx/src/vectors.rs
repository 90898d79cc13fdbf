//! Vectors come from memory and parameters and go to memory; in between they are their components.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Operand, lanes_of};
use magpie_mpir::{Const, Inst, Op, Value, ValueDef};

impl Emitter<'_, '_> {
    /// The components of a vector.
    pub(crate) fn vector(&mut self, v: Value) -> Emit<Vec<Operand>> {
        let Some((prim, count)) = lanes_of(self.types, self.f.ty(v)) else {
            return Err(self.broken("a vector that no registers hold"));
        };
        if !self.has_lanes(v) {
            let lanes = match self.f.def(v) {
                ValueDef::Param(n) => self.param_lanes(n, 0, count)?,
                ValueDef::Const(Const::Zero) => vec![self.constant(prim, 0); count as usize],
                ValueDef::Const(_) | ValueDef::Inst(_) => {
                    return Err(self.broken("a vector without components"));
                }
            };
            self.set_param_lanes(v, &lanes);
        }
        Ok(self.lanes(v)?.to_vec())
    }

    /// `vec.extract`.
    pub(crate) fn vec_extract(&mut self, i: Inst) -> Emit {
        let (f, lane) = (self.f, self.f.inst(i).imm_lo() as usize);
        let lanes = match f.args(i).first() {
            Some(&v) => self.vector(v)?,
            None => return Err(self.broken_at(i, "operands are missing")),
        };
        match lanes.get(lane) {
            Some(&operand) => self.set_result(i, operand),
            None => Err(self.broken_at(i, "no such component")),
        }
    }

    /// `vec.new`.
    pub(crate) fn vec_new(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let mut lanes = Vec::with_capacity(f.args(i).len());
        for &v in f.args(i) {
            let operand = self.value(v)?;
            lanes.push(match f.def_op(v) {
                // Its register will change.
                Some(Op::Phi) => {
                    let d = self.fresh(self.class(v)?);
                    ptx!(self, "mov.{} {d}, {operand}", d.class.ty());
                    d.into()
                }
                _ => operand,
            });
        }
        self.set_lanes(i, &lanes);
        Ok(())
    }
}
