//! Types of values in registers.

use magpie_gpu::text::Shape;
use magpie_types::PrimType;

/// The scalar of WGSL that carries a primitive type. Integers of 8 and 16 bits are carried in 32, of
/// which the upper ones mean nothing: after legalisation they are only moved and converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scalar {
    Bool,
    I32,
    U32,
    F32,
    F16,
}

impl Scalar {
    pub(crate) fn of(prim: PrimType) -> Scalar {
        match prim {
            PrimType::Bool => Scalar::Bool,
            PrimType::I8 | PrimType::I16 | PrimType::I32 => Scalar::I32,
            PrimType::F32 => Scalar::F32,
            PrimType::F16 => Scalar::F16,
            PrimType::U8
            | PrimType::U16
            | PrimType::Bf16
            | PrimType::U32
            // Refused before.
            | PrimType::Unit
            | PrimType::I64
            | PrimType::I128
            | PrimType::U64
            | PrimType::U128
            | PrimType::U1
            | PrimType::F64 => Scalar::U32,
        }
    }
}

/// The name of the type of a shape.
pub(crate) fn type_name(shape: Shape) -> &'static str {
    let lanes = (shape.lanes as usize).clamp(1, 4) - 1;
    match Scalar::of(shape.prim) {
        Scalar::Bool => ["bool", "vec2<bool>", "vec3<bool>", "vec4<bool>"][lanes],
        Scalar::I32 => ["i32", "vec2<i32>", "vec3<i32>", "vec4<i32>"][lanes],
        Scalar::U32 => ["u32", "vec2<u32>", "vec3<u32>", "vec4<u32>"][lanes],
        Scalar::F32 => ["f32", "vec2<f32>", "vec3<f32>", "vec4<f32>"][lanes],
        Scalar::F16 => ["f16", "vec2<f16>", "vec3<f16>", "vec4<f16>"][lanes],
    }
}
