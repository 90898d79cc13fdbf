//! Conversions.
//!
//! Integers of 8 and 16 bits are only moved and converted here; a float becomes an integer of 32 or
//! 64 bits, and an integer no f16.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Class, Operand, Reg};
use magpie_mpir::Inst;
use magpie_types::PrimType;

impl Emitter<'_, '_> {
    pub(super) fn cast(&mut self, i: Inst) -> Emit {
        let (from, to) = (self.operand_prim(i)?, self.result_prim(i)?);
        match (from.is_float(), to.is_float()) {
            _ if from == PrimType::Bool || to == PrimType::Bool => {
                Err(self.broken_at(i, "conversion of a bool"))
            }
            (false, false) => self.resize(i, from, to),
            (false, true) => self.int_to_float(i, from, to),
            (true, false) => self.float_to_int(i, from, to),
            (true, true) => self.float_to_float(i, from, to),
        }
    }

    /// An integer as one of another width or sign.
    fn resize(&mut self, i: Inst, from: PrimType, to: PrimType) -> Emit {
        let f = self.f;
        let Some(&v) = f.args(i).first() else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let sign = if from.is_signed() { 's' } else { 'u' };
        let (narrow, wide) = (from.bit_width(), to.bit_width());
        if narrow < wide {
            let (a, d) = (self.value_reg(v)?, self.result(i)?);
            // From 8 to 16 bits the carrier is filled.
            let wide = wide.max(32);
            ptx!(self, "cvt.{sign}{wide}.{sign}{narrow} {d}, {a}");
            return Ok(());
        }
        match (narrow, wide) {
            (64, 64) => self.set_result_to_value(i, v),
            (64, _) => {
                let (a, d) = (self.value_reg(v)?, self.result(i)?);
                ptx!(self, "cvt.u32.u64 {d}, {a}");
                Ok(())
            }
            // The upper bits of the carrier mean nothing.
            _ => self.set_result_to_value(i, v),
        }
    }

    fn int_to_float(&mut self, i: Inst, from: PrimType, to: PrimType) -> Emit {
        let (a, d) = (self.first_reg(i)?, self.result(i)?);
        let sign = if from.is_signed() { 's' } else { 'u' };
        let width = from.bit_width();
        let ty = match to {
            PrimType::F64 => "f64",
            PrimType::Bf16 => "bf16",
            PrimType::F32 => "f32",
            _ => return Err(self.broken_at(i, "an integer to f16")),
        };
        ptx!(self, "cvt.rn.{ty}.{sign}{width} {d}, {a}");
        Ok(())
    }

    /// Truncates and saturates; NaN gives 0.
    fn float_to_int(&mut self, i: Inst, from: PrimType, to: PrimType) -> Emit {
        let width = to.bit_width();
        if width < 32 {
            return Err(self.broken_at(i, "a float to a small integer"));
        }
        let (mut a, d) = (self.first_reg(i)?, self.result(i)?);
        if from.bit_width() == 16 {
            a = self.widen(from, a.into());
        }
        let sign = if to.is_signed() { 's' } else { 'u' };
        let float = if from == PrimType::F64 { "f64" } else { "f32" };
        if width == 32 && float == "f32" {
            ptx!(self, "cvt.rzi.{sign}32.f32 {d}, {a}");
            return Ok(());
        }
        // Where 64 bits take part NaN gives the top bit.
        let (n, is_number) = (self.fresh(d.class), self.fresh(Class::Pred));
        ptx!(self, "cvt.rzi.{sign}{width}.{float} {n}, {a}");
        ptx!(self, "setp.num.{float} {is_number}, {a}, {a}");
        ptx!(self, "selp.b{width} {d}, {n}, 0, {is_number}");
        Ok(())
    }

    fn float_to_float(&mut self, i: Inst, from: PrimType, to: PrimType) -> Emit {
        let (a, d) = (self.first_reg(i)?, self.result(i)?);
        match (from, to) {
            (PrimType::F32, PrimType::F64) => ptx!(self, "cvt.f64.f32 {d}, {a}"),
            (PrimType::F64, PrimType::F32) => ptx!(self, "cvt.rn.f32.f64 {d}, {a}"),
            (PrimType::F32, _) => self.narrow(to, a, d),
            (PrimType::F64, PrimType::F16) => ptx!(self, "cvt.rn.f16.f64 {d}, {a}"),
            (PrimType::F64, _) => ptx!(self, "cvt.rn.bf16.f64 {d}, {a}"),
            // Exact in f32.
            (_, PrimType::F64) => {
                let single = self.widen(from, a.into());
                ptx!(self, "cvt.f64.f32 {d}, {single}");
            }
            (_, PrimType::F32) => {
                let single = self.widen(from, a.into());
                ptx!(self, "mov.f32 {d}, {single}");
            }
            (..) => {
                let single = self.widen(from, a.into());
                self.narrow(to, single, d);
            }
        }
        Ok(())
    }

    /// The same bits as another type.
    pub(super) fn bit_cast(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let Some(&v) = f.args(i).first() else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        if self.class(v)? == Class::of(self.result_prim(i)?).unwrap_or(Class::Pred) {
            return self.set_result_to_value(i, v);
        }
        let (a, d) = (self.value_reg(v)?, self.result(i)?);
        self.move_bits(a, d);
        Ok(())
    }

    /// Moves bits between registers of two classes of one width; 16-bit integers lie in 32 bits.
    pub(crate) fn move_bits(&mut self, a: Reg, d: Reg) {
        match (a.class, d.class) {
            (Class::B16, Class::B32) => ptx!(self, "cvt.u32.u16 {d}, {a}"),
            (Class::B32, Class::B16) => ptx!(self, "cvt.u16.u32 {d}, {a}"),
            (_, Class::B64 | Class::F64) => ptx!(self, "mov.b64 {d}, {a}"),
            _ => ptx!(self, "mov.b32 {d}, {a}"),
        }
    }

    /// A scalar as bits in a register for integers of at least 32 bits; bools are 1 and 0.
    pub(super) fn as_bits(&mut self, v: Operand, class: Class) -> Operand {
        let d = match (class, v) {
            (Class::B32 | Class::B64, _) => return v,
            (Class::Pred, _) => {
                let d = self.fresh(Class::B32);
                ptx!(self, "selp.b32 {d}, 1, 0, {v}");
                d
            }
            (Class::F64, _) => {
                let d = self.fresh(Class::B64);
                ptx!(self, "mov.b64 {d}, {v}");
                d
            }
            (Class::F32, _) => {
                let d = self.fresh(Class::B32);
                ptx!(self, "mov.b32 {d}, {v}");
                d
            }
            (Class::B16, _) => {
                let d = self.fresh(Class::B32);
                ptx!(self, "cvt.u32.u16 {d}, {v}");
                d
            }
        };
        d.into()
    }

    /// Puts what [`Emitter::as_bits`] made into a register of its own class.
    pub(super) fn put_bits(&mut self, bits: Reg, d: Reg) {
        match d.class {
            Class::Pred => ptx!(self, "setp.ne.s32 {d}, {bits}, 0"),
            Class::B16 | Class::B32 | Class::B64 | Class::F32 | Class::F64 => {
                self.move_bits(bits, d);
            }
        }
    }
}
