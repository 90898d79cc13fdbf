//! Comparisons.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Class, Operand};
use magpie_mpir::Inst;

impl Emitter<'_, '_> {
    /// A comparison of integers or bools, named without its width.
    pub(super) fn int_compare(&mut self, i: Inst, test: &str) -> Emit {
        let p = self.operand_prim(i)?;
        let [mut a, mut b] = self.operands(i)?;
        let width = match p.bit_width() {
            // As a signed number, true is -1; as an unsigned one it is above 0 too.
            1 => {
                [a, b] = [a, b].map(|v| {
                    let d = self.fresh(Class::B32);
                    ptx!(self, "selp.b32 {d}, -1, 0, {v}");
                    Operand::Reg(d)
                });
                32
            }
            width @ (32 | 64) => width,
            _ => return Err(self.broken_at(i, &format!("comparison of {}", p.name()))),
        };
        let d = self.result(i)?;
        ptx!(self, "setp.{test}{width} {d}, {a}, {b}");
        Ok(())
    }

    pub(super) fn float_compare(&mut self, i: Inst, test: &str) -> Emit {
        let ty = self.float_type(i)?;
        let [a, b] = self.operands(i)?;
        let d = self.result(i)?;
        ptx!(self, "setp.{test}.{ty} {d}, {a}, {b}");
        Ok(())
    }
}
