//! Primitive types and their fixed ids (language reference, section 5.1).

use crate::TypeId;

/// A scalar type. The discriminant is its fixed [`TypeId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PrimType {
    /// The type with one value; occupies nothing.
    Unit = 0,
    /// `bool` (= `i1`): one byte, 0 or 1.
    Bool = 1,
    /// Signed integers.
    I8 = 2,
    #[allow(missing_docs)]
    I16 = 3,
    #[allow(missing_docs)]
    I32 = 4,
    #[allow(missing_docs)]
    I64 = 5,
    #[allow(missing_docs)]
    I128 = 6,
    /// Unsigned integers.
    U8 = 7,
    #[allow(missing_docs)]
    U16 = 8,
    #[allow(missing_docs)]
    U32 = 9,
    #[allow(missing_docs)]
    U64 = 10,
    #[allow(missing_docs)]
    U128 = 11,
    /// One bit, unsigned.
    U1 = 12,
    /// IEEE 754 binary16.
    F16 = 13,
    /// IEEE 754 binary32.
    F32 = 14,
    /// IEEE 754 binary64.
    F64 = 15,
    /// The upper half of a binary32.
    Bf16 = 16,
}

impl PrimType {
    /// Every primitive type, in id order.
    pub const ALL: [PrimType; 17] = [
        PrimType::Unit,
        PrimType::Bool,
        PrimType::I8,
        PrimType::I16,
        PrimType::I32,
        PrimType::I64,
        PrimType::I128,
        PrimType::U8,
        PrimType::U16,
        PrimType::U32,
        PrimType::U64,
        PrimType::U128,
        PrimType::U1,
        PrimType::F16,
        PrimType::F32,
        PrimType::F64,
        PrimType::Bf16,
    ];

    /// The type of a fixed id below 17.
    pub fn from_id(id: TypeId) -> Option<PrimType> {
        PrimType::ALL.get(id.0 as usize).copied()
    }

    /// The fixed id.
    pub const fn id(self) -> TypeId {
        TypeId(self as u32)
    }

    /// The name in source text and `.mpir`.
    pub fn name(self) -> &'static str {
        match self {
            PrimType::Unit => "unit",
            PrimType::Bool => "bool",
            PrimType::I8 => "i8",
            PrimType::I16 => "i16",
            PrimType::I32 => "i32",
            PrimType::I64 => "i64",
            PrimType::I128 => "i128",
            PrimType::U8 => "u8",
            PrimType::U16 => "u16",
            PrimType::U32 => "u32",
            PrimType::U64 => "u64",
            PrimType::U128 => "u128",
            PrimType::U1 => "u1",
            PrimType::F16 => "f16",
            PrimType::F32 => "f32",
            PrimType::F64 => "f64",
            PrimType::Bf16 => "bf16",
        }
    }

    /// Finds a type by its name; `i1` is `bool`.
    pub fn from_name(name: &str) -> Option<PrimType> {
        if name == "i1" {
            return Some(PrimType::Bool);
        }
        PrimType::ALL.into_iter().find(|p| p.name() == name)
    }

    /// `f16 f32 f64 bf16`.
    pub fn is_float(self) -> bool {
        matches!(self, PrimType::F16 | PrimType::F32 | PrimType::F64 | PrimType::Bf16)
    }

    /// The integer types, without `bool`.
    pub fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, PrimType::Unit | PrimType::Bool)
    }

    /// Whether negative values exist.
    pub fn is_signed(self) -> bool {
        self.is_float()
            || matches!(
                self,
                PrimType::I8 | PrimType::I16 | PrimType::I32 | PrimType::I64 | PrimType::I128
            )
    }

    /// Number of value bits: 1 for `bool`, 0 for `unit`.
    pub fn bit_width(self) -> u32 {
        match self {
            PrimType::Unit => 0,
            PrimType::Bool | PrimType::U1 => 1,
            PrimType::I8 | PrimType::U8 => 8,
            PrimType::I16 | PrimType::U16 | PrimType::F16 | PrimType::Bf16 => 16,
            PrimType::I32 | PrimType::U32 | PrimType::F32 => 32,
            PrimType::I64 | PrimType::U64 | PrimType::F64 => 64,
            PrimType::I128 | PrimType::U128 => 128,
        }
    }

    /// Size in memory in bytes; equal to the alignment except for `unit` (alignment 1).
    pub fn size(self) -> u32 {
        self.bit_width().div_ceil(8)
    }

    /// The mask of value bits in a 64-bit word; all ones from 64 bits up.
    pub fn mask(self) -> u64 {
        match self.bit_width() {
            w if w >= 64 => u64::MAX,
            w => (1 << w) - 1,
        }
    }

    /// The integer type of the same width that holds the bits of this one, at most 64 bits.
    pub fn bits_type(self) -> PrimType {
        match self.bit_width() {
            0 | 1 => self,
            8 => PrimType::U8,
            16 => PrimType::U16,
            32 => PrimType::U32,
            64 => PrimType::U64,
            _ => PrimType::U128,
        }
    }
}
