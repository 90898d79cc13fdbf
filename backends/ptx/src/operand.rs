//! Registers and immediate values, and how they are printed.

use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};
use std::fmt;

/// The kinds of registers in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Pred,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    pub(crate) const ALL: [Class; 6] =
        [Class::Pred, Class::B16, Class::B32, Class::B64, Class::F32, Class::F64];

    /// What carries values of a primitive type. `None` for types that kernels do not have.
    pub(crate) fn of(p: PrimType) -> Option<Class> {
        Some(match p {
            PrimType::Bool => Class::Pred,
            PrimType::I8
            | PrimType::U8
            | PrimType::I16
            | PrimType::U16
            | PrimType::I32
            | PrimType::U32 => Class::B32,
            PrimType::I64 | PrimType::U64 => Class::B64,
            PrimType::F16 | PrimType::Bf16 => Class::B16,
            PrimType::F32 => Class::F32,
            PrimType::F64 => Class::F64,
            PrimType::Unit | PrimType::U1 | PrimType::I128 | PrimType::U128 => return None,
        })
    }

    /// The type in declarations and moves.
    pub(crate) fn ty(self) -> &'static str {
        match self {
            Class::Pred => "pred",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }

    /// What names of registers start with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%p",
            Class::B16 => "%h",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::F64 => "%fd",
        }
    }
}

/// A virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reg {
    pub(crate) class: Class,
    pub(crate) number: u32,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.number)
    }
}

/// What an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    Reg(Reg),
    Int(i64),
    F32(u32),
    F64(u64),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(r) => r.fmt(f),
            Operand::Int(n) => n.fmt(f),
            Operand::F32(bits) => write!(f, "0f{bits:08X}"),
            Operand::F64(bits) => write!(f, "0d{bits:016X}"),
        }
    }
}

impl From<Reg> for Operand {
    fn from(r: Reg) -> Operand {
        Operand::Reg(r)
    }
}

/// Scalar type and number of components of a type that registers hold; `None` for aggregates.
pub(crate) fn lanes_of(types: &TypeCtx, ty: TypeId) -> Option<(PrimType, u32)> {
    let (prim, lanes) = match types.kind(ty) {
        TypeKind::Prim(p) => (p, 1),
        TypeKind::Vec(p, n) => (p, u32::from(n)),
        // A value enum is its tag.
        TypeKind::Enum(_) if !types.is_heap(ty) => (PrimType::I32, 1),
        _ => return None,
    };
    Class::of(prim).map(|_| (prim, lanes))
}
