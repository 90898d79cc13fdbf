//! Integer arithmetic.
//!
//! What is partial in PTX comes here legalised: no divisor is zero, no quotient leaves its type, no
//! shift amount reaches the width; integers below 32 bits are not computed with.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::Class;
use magpie_mpir::Inst;

impl Emitter<'_, '_> {
    /// The width of operand 0, which must be an integer of 32 or 64 bits.
    fn int_width(&self, i: Inst) -> Emit<u32> {
        let p = self.operand_prim(i)?;
        match p.bit_width() {
            width @ (32 | 64) if p.is_int() => Ok(width),
            _ => Err(self.broken_at(i, &format!("arithmetic on {}", p.name()))),
        }
    }

    /// An instruction of two operands, named without its width.
    pub(super) fn int_binary(&mut self, i: Inst, op: &str) -> Emit {
        let width = self.int_width(i)?;
        let [a, b] = self.operands(i)?;
        let d = self.result(i)?;
        ptx!(self, "{op}{width} {d}, {a}, {b}");
        Ok(())
    }

    /// A bitwise operation, on predicates too.
    pub(super) fn bit_binary(&mut self, i: Inst, op: &str) -> Emit {
        let [a, b] = self.operands(i)?;
        let d = self.result(i)?;
        match d.class {
            Class::Pred => ptx!(self, "{op}.pred {d}, {a}, {b}"),
            // Bits of 16-bit floats that are carried in 32 bits come here too.
            Class::B32 => ptx!(self, "{op}.b32 {d}, {a}, {b}"),
            Class::B64 => ptx!(self, "{op}.b64 {d}, {a}, {b}"),
            Class::B16 | Class::F32 | Class::F64 => {
                return Err(self.broken_at(i, "bits of a float"));
            }
        }
        Ok(())
    }

    /// A shift; the amount has 32 bits in PTX.
    pub(super) fn shift(&mut self, i: Inst, op: &str) -> Emit {
        let width = self.int_width(i)?;
        let [a, b] = self.operands(i)?;
        let amount = if width == 64 { self.low_half(b) } else { b };
        let d = self.result(i)?;
        ptx!(self, "{op}{width} {d}, {a}, {amount}");
        Ok(())
    }

    /// Bit counts of 32 bits.
    pub(super) fn count_bits(&mut self, i: Inst, op: &str) -> Emit {
        if self.int_width(i)? != 32 {
            return Err(self.broken_at(i, "not in 32 bits"));
        }
        let (a, d) = (self.first_reg(i)?, self.result(i)?);
        ptx!(self, "{op}.b32 {d}, {a}");
        Ok(())
    }

    /// The leading zeros of the reversed bits.
    pub(super) fn trailing_zeros(&mut self, i: Inst) -> Emit {
        if self.int_width(i)? != 32 {
            return Err(self.broken_at(i, "not in 32 bits"));
        }
        let (a, reversed, d) = (self.first_reg(i)?, self.fresh(Class::B32), self.result(i)?);
        ptx!(self, "brev.b32 {reversed}, {a}");
        ptx!(self, "clz.b32 {d}, {reversed}");
        Ok(())
    }
}
