//! Names of LLVM types, and constants as text.

use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};
use std::fmt;

/// A scalar, or a vector of 2 to 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) prim: PrimType,
    pub(crate) lanes: u32,
}

impl Shape {
    /// The shape of values of a type that registers hold.
    pub(crate) fn of(types: &TypeCtx, ty: TypeId) -> Option<Shape> {
        let shape = |prim, lanes| Some(Shape { prim, lanes }).filter(|s| s.prim.bit_width() > 0);
        match types.kind(ty) {
            TypeKind::Vec(p, n) => shape(p, u32::from(n)),
            _ => shape(types.element_prim(ty)?, 1),
        }
    }

    /// The same with other scalars.
    pub(crate) fn with(self, prim: PrimType) -> Shape {
        Shape { prim, ..self }
    }

    /// What lies in memory: a bool is a byte.
    pub(crate) fn stored(self) -> Shape {
        match self.prim {
            PrimType::Bool => self.with(PrimType::U8),
            _ => self,
        }
    }
}

/// The LLVM type.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = scalar(self.prim);
        match self.lanes {
            1 => f.write_str(scalar),
            n => write!(f, "<{n} x {scalar}>"),
        }
    }
}

/// The LLVM type of a scalar.
pub(crate) fn scalar(p: PrimType) -> &'static str {
    match p {
        PrimType::Unit => "void",
        PrimType::Bool | PrimType::U1 => "i1",
        PrimType::I8 | PrimType::U8 => "i8",
        PrimType::I16 | PrimType::U16 => "i16",
        PrimType::I32 | PrimType::U32 => "i32",
        PrimType::I64 | PrimType::U64 => "i64",
        PrimType::I128 | PrimType::U128 => "i128",
        PrimType::F16 => "half",
        PrimType::Bf16 => "bfloat",
        PrimType::F32 => "float",
        PrimType::F64 => "double",
    }
}

/// The suffix of overloaded intrinsics.
pub(crate) fn suffix(p: PrimType) -> &'static str {
    match p {
        PrimType::F16 => "f16",
        PrimType::Bf16 => "bf16",
        PrimType::F32 => "f32",
        PrimType::F64 => "f64",
        _ => scalar(p),
    }
}

/// A scalar constant, floats by their bits.
pub(crate) fn constant(p: PrimType, bits: u64) -> String {
    match p {
        PrimType::Bool | PrimType::U1 => (bits & 1 == 1).to_string(),
        // NaN keeps its bits only as an integer.
        _ if p.is_float() && magpie_mpir::eval::float_value(p, bits).is_nan() => {
            let (int, ty) = (scalar(p.bits_type()), scalar(p));
            format!("bitcast ({int} {bits} to {ty})")
        }
        PrimType::F16 => format!("0xH{bits:04X}"),
        PrimType::Bf16 => format!("0xR{bits:04X}"),
        // An f32 is written as the f64 of the same value.
        PrimType::F32 => {
            let value = f64::from(f32::from_bits(bits as u32));
            format!("0x{:016X}", value.to_bits())
        }
        PrimType::F64 => format!("0x{bits:016X}"),
        _ => magpie_mpir::eval::sign_extend(bits, p.bit_width()).to_string(),
    }
}
