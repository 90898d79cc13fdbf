//! Conversions.
//!
//! Conversions from float to integer come here legalised: the value lies inside the result type.
//! So do those with two roundings in hardware: integer and f64 to f16, and everything with bf16.

use crate::emitter::{Emit, Emitter};
use crate::types::Scalar;
use magpie_mpir::Inst;
use magpie_types::PrimType;
use spirv::Op;

impl Emitter<'_> {
    pub(super) fn cast(&mut self, i: Inst) -> Emit {
        let (from, from_prim) = self.shape_of_operand(i, 0)?;
        let (to, to_prim) = self.shape_of_result(i)?;
        let [value] = self.operands(i)?;
        if from_prim != to_prim && (from_prim == PrimType::Bf16 || to_prim == PrimType::Bf16) {
            return Err(self.broken_at(i, "conversion of bf16"));
        }
        let signed = from_prim.is_signed();
        let converted = match (kind(from.scalar), kind(to.scalar)) {
            (Kind::Bool, Kind::Bool) => value,
            (Kind::Bool, Kind::Int | Kind::Float) => self.bool_to_number(value, to),
            (Kind::Int, Kind::Bool) => {
                let (ty, zero) = (self.b.shape(to), self.b.constant(from, 0));
                self.emit(Op::INotEqual, ty, &[value, zero])
            }
            (Kind::Int, Kind::Int) if from.scalar == to.scalar => value,
            (Kind::Int, Kind::Int) => {
                let ty = self.b.storage_shape(to);
                self.emit(if signed { Op::SConvert } else { Op::UConvert }, ty, &[value])
            }
            (Kind::Int, Kind::Float) => {
                self.used_float(to);
                let ty = self.b.shape(to);
                self.b.shape(from);
                self.emit(if signed { Op::ConvertSToF } else { Op::ConvertUToF }, ty, &[value])
            }
            (Kind::Float, Kind::Int) => {
                let ty = self.b.shape(to);
                self.b.shape(from);
                let signed = to_prim.is_signed();
                self.emit(if signed { Op::ConvertFToS } else { Op::ConvertFToU }, ty, &[value])
            }
            (Kind::Float, Kind::Float) if from.scalar == to.scalar => value,
            (Kind::Float, Kind::Float) => {
                self.used_float(from);
                self.used_float(to);
                let ty = self.b.storage_shape(to);
                self.emit(Op::FConvert, ty, &[value])
            }
            (Kind::Float, Kind::Bool) => return Err(self.broken_at(i, "float to bool")),
        };
        let ty = self.b.storage_shape(to);
        self.set_result(i, ty, converted);
        Ok(())
    }

    /// The same bits as another type.
    pub(super) fn bit_cast(&mut self, i: Inst) -> Emit {
        let (from, _) = self.shape_of_operand(i, 0)?;
        let (to, _) = self.shape_of_result(i)?;
        let [value] = self.operands(i)?;
        if from == to {
            let ty = self.b.storage_shape(to);
            self.set_result(i, ty, value);
            return Ok(());
        }
        self.b.shape(from);
        let (ty, id) = (self.b.shape(to), self.result(i));
        self.body.value(Op::Bitcast, ty, id, &[value]);
        Ok(())
    }
}

enum Kind {
    Bool,
    Int,
    Float,
}

fn kind(scalar: Scalar) -> Kind {
    match scalar {
        Scalar::Bool => Kind::Bool,
        Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => Kind::Int,
        Scalar::Float16 | Scalar::Float32 | Scalar::Float64 => Kind::Float,
    }
}
