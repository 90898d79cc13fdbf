//! [`Shape`]: the types of values in text.

use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

/// A scalar, or a vector of 2 to 4 scalars.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// The type of the scalar.
    pub prim: PrimType,
    /// 1 for a scalar.
    pub lanes: u8,
}

impl Shape {
    /// A truth value.
    pub const BOOL: Shape = Shape::one(PrimType::Bool);
    /// An unsigned word.
    pub const U32: Shape = Shape::one(PrimType::U32);

    /// A scalar.
    pub const fn one(prim: PrimType) -> Shape {
        Shape { prim, lanes: 1 }
    }

    /// As many lanes of another scalar.
    pub fn of(self, prim: PrimType) -> Shape {
        Shape { prim, ..self }
    }

    /// The shape of a type; a value enum is its tag. `None` for types that no register holds.
    pub fn of_type(types: &TypeCtx, ty: TypeId) -> Option<Shape> {
        match types.kind(ty) {
            TypeKind::Prim(PrimType::Unit) => None,
            TypeKind::Prim(prim) => Some(Shape::one(prim)),
            TypeKind::Vec(prim, lanes) => Some(Shape { prim, lanes }),
            TypeKind::Enum(_) if !types.is_heap(ty) => Some(Shape::one(PrimType::I32)),
            _ => None,
        }
    }

    /// Unsigned integers of the same width.
    pub fn unsigned(self) -> Shape {
        self.of(match self.prim.bit_width() {
            8 => PrimType::U8,
            16 => PrimType::U16,
            64 => PrimType::U64,
            _ => PrimType::U32,
        })
    }

    /// Signed integers of the same width.
    pub fn signed(self) -> Shape {
        self.of(match self.prim.bit_width() {
            8 => PrimType::I8,
            16 => PrimType::I16,
            64 => PrimType::I64,
            _ => PrimType::I32,
        })
    }
}
