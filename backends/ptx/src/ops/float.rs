//! Float arithmetic.
//!
//! The `.rn` forms round once to nearest even and are never fused with others. Functions other
//! than these come here legalised, but for fast approximations.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Class, Operand, Reg};
use magpie_mpir::{Flags, Inst};
use magpie_types::PrimType;

impl Emitter<'_, '_> {
    /// The type of operand 0, which must be a float, as instructions call it.
    pub(super) fn float_type(&self, i: Inst) -> Emit<&'static str> {
        match self.operand_prim(i)? {
            PrimType::F16 => Ok("f16"),
            PrimType::Bf16 => Ok("bf16"),
            PrimType::F32 => Ok("f32"),
            PrimType::F64 => Ok("f64"),
            p => Err(self.broken_at(i, &format!("float arithmetic on {}", p.name()))),
        }
    }

    /// Sum, difference or product. Without a rounding mode it may be fused with another.
    pub(super) fn float_arithmetic(&mut self, i: Inst, op: &str) -> Emit {
        let ty = self.float_type(i)?;
        let [a, b] = self.operands(i)?;
        let d = self.result(i)?;
        let rounding = match self.f.inst(i).flags.contains(Flags::CONTRACT) {
            true => "",
            false => ".rn",
        };
        ptx!(self, "{op}{rounding}.{ty} {d}, {a}, {b}");
        Ok(())
    }

    /// Quotient.
    pub(super) fn float_divide(&mut self, i: Inst) -> Emit {
        let p = self.operand_prim(i)?;
        let fast = self.f.inst(i).flags.contains(Flags::AFN);
        let [a, b] = self.operands(i)?;
        let d = self.result(i)?;
        match p {
            PrimType::F64 => ptx!(self, "div.rn.f64 {d}, {a}, {b}"),
            // The quotient of two 16-bit floats, rounded to f32, rounds to the right one.
            _ => self.in_f32(p, [a, b], d, |e, [a, b], d| {
                let how = if fast { "approx" } else { "rn" };
                ptx!(e, "div.{how}.f32 {d}, {a}, {b}");
            }),
        }
        Ok(())
    }

    /// Square root.
    pub(super) fn float_root(&mut self, i: Inst) -> Emit {
        let p = self.operand_prim(i)?;
        let fast = self.f.inst(i).flags.contains(Flags::AFN);
        let [a] = self.operands(i)?;
        let d = self.result(i)?;
        match p {
            PrimType::F64 => ptx!(self, "sqrt.rn.f64 {d}, {a}"),
            _ => self.in_f32(p, [a], d, |e, [a], d| {
                let how = if fast { "approx" } else { "rn" };
                ptx!(e, "sqrt.{how}.f32 {d}, {a}");
            }),
        }
        Ok(())
    }

    /// Sign flipped or cleared.
    pub(super) fn float_sign(&mut self, i: Inst, op: &str) -> Emit {
        let ty = self.float_type(i)?;
        let (a, d) = (self.first_reg(i)?, self.result(i)?);
        ptx!(self, "{op}.{ty} {d}, {a}");
        Ok(())
    }

    /// Smaller or larger: the other operand when one is NaN, -0 below +0.
    pub(super) fn float_extremum(&mut self, i: Inst, op: &str) -> Emit {
        let (p, ty) = (self.operand_prim(i)?, self.float_type(i)?);
        let [a, b] = self.operands(i)?;
        let d = self.result(i)?;
        if p.bit_width() == 16 && self.target.sm < 80 {
            self.in_f32(p, [a, b], d, |e, [a, b], d| ptx!(e, "{op}.f32 {d}, {a}, {b}"));
        } else {
            ptx!(self, "{op}.{ty} {d}, {a}, {b}");
        }
        Ok(())
    }

    pub(super) fn float_fma(&mut self, i: Inst) -> Emit {
        let ty = self.float_type(i)?;
        let [a, b, c] = self.operands(i)?;
        let d = self.result(i)?;
        ptx!(self, "fma.rn.{ty} {d}, {a}, {b}, {c}");
        Ok(())
    }

    /// Rounds to an integer.
    pub(super) fn float_round(&mut self, i: Inst, mode: &str) -> Emit {
        let p = self.operand_prim(i)?;
        let (a, d) = (self.first_reg(i)?, self.result(i)?);
        match p {
            PrimType::F64 => ptx!(self, "cvt.{mode}.f64.f64 {d}, {a}"),
            // The integer part of a 16-bit float is one.
            _ => self.in_f32(p, [a.into()], d, |e, [a], d| {
                ptx!(e, "cvt.{mode}.f32.f32 {d}, {a}");
            }),
        }
        Ok(())
    }

    /// A function of f32 that the hardware approximates.
    pub(super) fn approximation(&mut self, i: Inst, op: &str) -> Emit {
        if self.operand_prim(i)? != PrimType::F32 || !self.f.inst(i).flags.contains(Flags::AFN) {
            return Err(self.broken_at(i, "must be lowered before emission"));
        }
        let (a, d) = (self.first_reg(i)?, self.result(i)?);
        ptx!(self, "{op}.approx.f32 {d}, {a}");
        Ok(())
    }

    /// Computes in f32 what operands of type `p` give.
    fn in_f32<const N: usize>(
        &mut self,
        p: PrimType,
        operands: [Operand; N],
        d: Reg,
        compute: impl FnOnce(&mut Self, [Operand; N], Reg),
    ) {
        if p.bit_width() != 16 {
            return compute(self, operands, d);
        }
        let wide = operands.map(|v| Operand::Reg(self.widen(p, v)));
        let single = self.fresh(Class::F32);
        compute(self, wide, single);
        self.narrow(p, single, d);
    }

    /// A 16-bit float as f32, exactly.
    pub(super) fn widen(&mut self, p: PrimType, v: Operand) -> Reg {
        let d = self.fresh(Class::F32);
        match p {
            PrimType::Bf16 => ptx!(self, "cvt.f32.bf16 {d}, {v}"),
            _ => ptx!(self, "cvt.f32.f16 {d}, {v}"),
        }
        d
    }

    /// Rounds an f32 to a 16-bit float.
    pub(super) fn narrow(&mut self, p: PrimType, v: Reg, d: Reg) {
        match p {
            PrimType::Bf16 => ptx!(self, "cvt.rn.bf16.f32 {d}, {v}"),
            _ => ptx!(self, "cvt.rn.f16.f32 {d}, {v}"),
        }
    }
}
