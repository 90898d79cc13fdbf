//! The scalar and vector types a kernel computes with, as SPIR-V sees them.
//!
//! Integers are declared without sign: what an operation does with the sign is said by the
//! operation, so `i32` and `u32` are one SPIR-V type and conversions between them are nothing.

use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};
use spirv::Capability;

/// A scalar type of SPIR-V.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Scalar {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Float32,
    Float64,
}

impl Scalar {
    /// How many scalar types there are.
    pub(crate) const COUNT: usize = 8;

    /// The scalar of a primitive type. bf16 is its bits: arithmetic on it has been legalised away.
    /// `None` for the types that kernels do not have.
    fn of(p: PrimType) -> Option<Scalar> {
        Some(match p {
            PrimType::Bool => Scalar::Bool,
            PrimType::I8 | PrimType::U8 => Scalar::Int8,
            PrimType::I16 | PrimType::U16 | PrimType::Bf16 => Scalar::Int16,
            PrimType::I32 | PrimType::U32 => Scalar::Int32,
            PrimType::I64 | PrimType::U64 => Scalar::Int64,
            PrimType::F16 => Scalar::Float16,
            PrimType::F32 => Scalar::Float32,
            PrimType::F64 => Scalar::Float64,
            PrimType::Unit | PrimType::U1 | PrimType::I128 | PrimType::U128 => return None,
        })
    }

    /// Bits of a value; 1 for bool.
    pub(crate) fn width(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::Int8 => 8,
            Scalar::Int16 | Scalar::Float16 => 16,
            Scalar::Int32 | Scalar::Float32 => 32,
            Scalar::Int64 | Scalar::Float64 => 64,
        }
    }

    /// Bytes of a value in memory; 1 for bool.
    pub(crate) fn memory_bytes(self) -> u32 {
        self.width().div_ceil(8)
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Scalar::Float16 | Scalar::Float32 | Scalar::Float64)
    }

    /// The integer type of 8, 16, 32 or 64 bits.
    pub(crate) fn int(width: u32) -> Scalar {
        match width {
            8 => Scalar::Int8,
            16 => Scalar::Int16,
            64 => Scalar::Int64,
            _ => Scalar::Int32,
        }
    }

    /// The bits of 1.
    pub(crate) fn one(self) -> u64 {
        match self {
            Scalar::Float16 => 0x3c00,
            Scalar::Float32 => 1f32.to_bits() as u64,
            Scalar::Float64 => 1f64.to_bits(),
            Scalar::Bool | Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => 1,
        }
    }

    /// What a module that computes with the type must declare.
    pub(crate) fn capability(self) -> Option<Capability> {
        match self {
            Scalar::Int8 => Some(Capability::Int8),
            Scalar::Int16 => Some(Capability::Int16),
            Scalar::Int64 => Some(Capability::Int64),
            Scalar::Float16 => Some(Capability::Float16),
            Scalar::Float64 => Some(Capability::Float64),
            Scalar::Bool | Scalar::Int32 | Scalar::Float32 => None,
        }
    }
}

/// A scalar or a vector of 2 to 4 scalars.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub(crate) scalar: Scalar,
    /// 1 for a scalar.
    pub(crate) lanes: u8,
}

impl Shape {
    pub(crate) const BOOL: Shape = Shape::one(Scalar::Bool);
    pub(crate) const U32: Shape = Shape::one(Scalar::Int32);

    pub(crate) const fn one(scalar: Scalar) -> Shape {
        Shape { scalar, lanes: 1 }
    }

    /// As many lanes of another scalar.
    pub(crate) fn of(self, scalar: Scalar) -> Shape {
        Shape { scalar, ..self }
    }

    /// The shape of a type in memory, with the primitive type of its lanes. `None` for types that
    /// no SPIR-V value has, such as aggregates.
    pub(crate) fn of_type(types: &TypeCtx, ty: TypeId) -> Option<(Shape, PrimType)> {
        let (prim, lanes) = match types.kind(ty) {
            TypeKind::Prim(p) => (p, 1),
            TypeKind::Vec(p, n) => (p, n),
            // A value enum is its tag.
            TypeKind::Enum(_) if !types.is_heap(ty) => (PrimType::I32, 1),
            _ => return None,
        };
        Some((Shape { scalar: Scalar::of(prim)?, lanes }, prim))
    }
}
