//! Conversions.
//!
//! Conversions from float to integer come here legalised: the value lies inside the result type.
//! So do those with two roundings in hardware: integer and f64 to f16, and everything with bf16.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
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
            (Kind::Int, Kind::Int) => self.resize(value, (from, from_prim), (to, to_prim)),
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

    /// An integer as one of another width.
    fn resize(&mut self, mut value: Id, from: (Shape, PrimType), to: (Shape, PrimType)) -> Id {
        let ((from, from_prim), (to, to_prim)) = (from, to);
        let signed = from_prim.is_signed();
        let unused = from.scalar.width() - from_prim.bit_width();
        if unused > 0 && to_prim.bit_width() > from_prim.bit_width() {
            // The upper bits of the carrier mean nothing yet.
            let ty = self.b.shape(from);
            let amount = self.b.constant(from, unused as u64);
            let high = self.emit(Op::ShiftLeftLogical, ty, &[value, amount]);
            let back = if signed { Op::ShiftRightArithmetic } else { Op::ShiftRightLogical };
            value = self.emit(back, ty, &[high, amount]);
        }
        if from.scalar == to.scalar {
            return value;
        }
        let ty = self.b.storage_shape(to);
        self.emit(if signed { Op::SConvert } else { Op::UConvert }, ty, &[value])
    }

    /// The same bits as another type.
    pub(super) fn bit_cast(&mut self, i: Inst) -> Emit {
        let (from, _) = self.shape_of_operand(i, 0)?;
        let (to, _) = self.shape_of_result(i)?;
        let [value] = self.operands(i)?;
        let ty = self.b.shape(to);
        let value = match (from.scalar, to.scalar) {
            _ if from == to => value,
            // 16 bits in a 32-bit carrier.
            (Scalar::Float16, Scalar::Int32) if from.lanes == to.lanes => {
                self.encode(value, from, to)
            }
            (Scalar::Int32, Scalar::Float16) if from.lanes == to.lanes => {
                self.decode(value, from, to)
            }
            _ => {
                self.b.shape(from);
                self.emit(Op::Bitcast, ty, &[value])
            }
        };
        self.set_result(i, ty, value);
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
