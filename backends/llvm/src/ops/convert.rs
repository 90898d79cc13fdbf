//! Conversions.

use crate::emitter::{Emit, Emitter, Operand};
use crate::types::{Shape, scalar, suffix};
use magpie_mpir::Inst;
use magpie_types::PrimType;

impl Emitter<'_> {
    pub(super) fn cast(&mut self, i: Inst) -> Emit {
        let (from, to) = (self.first_prim(i)?, self.result_shape(i)?.prim);
        let v = self.arg(i, 0)?;
        let shape = Shape { prim: to, lanes: 1 };
        match (from.is_float(), to.is_float()) {
            (false, false) => {
                let word = match (from.bit_width(), to.bit_width()) {
                    (a, b) if a == b => return self.define_as(i, shape, &v),
                    (a, b) if a > b => "trunc",
                    _ if from.is_signed() => "sext",
                    _ => "zext",
                };
                self.define(i, format_args!("{word} {} {v} to {shape}", scalar(from)))
            }
            (false, true) => {
                let word = if from.is_signed() { "sitofp" } else { "uitofp" };
                self.define(i, format_args!("{word} {} {v} to {shape}", scalar(from)))
            }
            (true, false) => self.float_to_int(i, v, from, to),
            (true, true) => {
                // Two formats of 16 bits: f32 holds either.
                let (v, from) = match from.bit_width() == to.bit_width() && from != to {
                    true => (self.widen(&v, from), PrimType::F32),
                    false => (v, from),
                };
                let word = match (from.bit_width(), to.bit_width()) {
                    (a, b) if a == b => return self.define_as(i, shape, &v),
                    (a, b) if a > b => "fptrunc",
                    _ => "fpext",
                };
                self.define(i, format_args!("{word} {} {v} to {shape}", scalar(from)))
            }
        }
    }

    fn widen(&mut self, v: &Operand, from: PrimType) -> Operand {
        self.emit(format_args!("fpext {} {v} to float", scalar(from)))
    }

    /// Truncates; the ends of the type hold what lies outside, NaN gives 0.
    fn float_to_int(&mut self, i: Inst, v: Operand, from: PrimType, to: PrimType) -> Emit {
        let (v, from) = match from.bit_width() {
            16 => (self.widen(&v, from), PrimType::F32),
            _ => (v, from),
        };
        let word = if to.is_signed() { "fptosi" } else { "fptoui" };
        let name = format!("llvm.{word}.sat.{}.{}", suffix(to), suffix(from));
        let call = self.call(&name, scalar(to), scalar(from), &[&v]);
        self.define(i, format_args!("call {call}"))
    }

    pub(super) fn bit_cast(&mut self, i: Inst) -> Emit {
        let (from, to) = (self.shape_of(self.arg_value(i, 0)?)?, self.result_shape(i)?);
        let v = self.arg(i, 0)?;
        self.define(i, format_args!("bitcast {from} {v} to {to}"))
    }

    pub(super) fn select(&mut self, i: Inst) -> Emit {
        let shape = self.result_shape(i)?;
        let (cond, a, b) = (self.arg(i, 0)?, self.arg(i, 1)?, self.arg(i, 2)?);
        self.define(i, format_args!("select i1 {cond}, {shape} {a}, {shape} {b}"))
    }

    pub(super) fn vec_extract(&mut self, i: Inst) -> Emit {
        let shape = self.shape_of(self.arg_value(i, 0)?)?;
        let (v, lane) = (self.arg(i, 0)?, self.f.inst(i).imm_lo());
        self.define(i, format_args!("extractelement {shape} {v}, i32 {lane}"))
    }

    pub(super) fn vec_new(&mut self, i: Inst) -> Emit {
        let shape = self.result_shape(i)?;
        let (scalar, last) = (shape.prim, self.f.args(i).len() - 1);
        let mut sum = Operand::Text("poison".to_string());
        for n in 0..=last {
            let v = self.arg(i, n)?;
            let ty = crate::types::scalar(scalar);
            let text = format!("insertelement {shape} {sum}, {ty} {v}, i32 {n}");
            if n == last {
                return self.define(i, format_args!("{text}"));
            }
            sum = self.emit(format_args!("{text}"));
        }
        Ok(())
    }
}
