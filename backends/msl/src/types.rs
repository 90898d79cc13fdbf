//! How types are called, in registers and in memory.

use magpie_gpu::text::{Emit, Shape, Text};
use magpie_types::{PrimType, TypeId, TypeKind};
use std::fmt::Write;

/// The name of a type in a register. Types that no kernel has after legalisation have none.
pub(crate) fn type_name(shape: Shape) -> &'static str {
    let lanes: [&'static str; 4] = match shape.prim {
        PrimType::Bool | PrimType::U1 => ["bool", "bool2", "bool3", "bool4"],
        PrimType::I8 => ["char", "char2", "char3", "char4"],
        PrimType::U8 => ["uchar", "uchar2", "uchar3", "uchar4"],
        PrimType::I16 => ["short", "short2", "short3", "short4"],
        PrimType::U16 => ["ushort", "ushort2", "ushort3", "ushort4"],
        PrimType::I32 => ["int", "int2", "int3", "int4"],
        PrimType::U32 => ["uint", "uint2", "uint3", "uint4"],
        PrimType::I64 => ["long", "long2", "long3", "long4"],
        PrimType::U64 => ["ulong", "ulong2", "ulong3", "ulong4"],
        PrimType::F16 => ["half", "half2", "half3", "half4"],
        PrimType::F32 => ["float", "float2", "float3", "float4"],
        PrimType::Bf16 => ["bfloat", "bfloat2", "bfloat3", "bfloat4"],
        // Refused before: see `available.rs`.
        PrimType::F64 | PrimType::I128 | PrimType::U128 | PrimType::Unit => ["void"; 4],
    };
    lanes[(shape.lanes as usize).clamp(1, 4) - 1]
}

/// The shape that stands for a value in memory: a bool is a byte.
pub(crate) fn stored(shape: Shape) -> Shape {
    match shape.prim {
        PrimType::Bool => shape.of(PrimType::U8),
        _ => shape,
    }
}

/// A scalar or vector of an element.
#[derive(Clone, Copy)]
pub(crate) struct Leaf {
    /// What the kernel computes with.
    pub(crate) value: Shape,
    /// A 3-vector inside a structure is an array: as a vector it would take the room of four.
    pub(crate) is_array: bool,
}

/// The elements of a buffer or array.
#[derive(Clone)]
pub(crate) struct Element {
    pub(crate) type_name: String,
    /// Whether leaf `n` is the member `m` and this number.
    pub(crate) is_struct: bool,
    pub(crate) leaves: Vec<Leaf>,
}

/// The structures that a kernel declares.
#[derive(Default)]
pub(crate) struct Structs {
    pub(crate) text: String,
    known: Vec<(TypeId, Element)>,
}

impl Structs {
    /// The element of a type, which is declared when it is a structure. `take_name` makes an
    /// identifier out of a word.
    pub(crate) fn element(
        &mut self,
        text: &mut Text<'_>,
        ty: TypeId,
        take_name: impl FnOnce(&mut Text<'_>, &str) -> String,
    ) -> Emit<Element> {
        if !text.types.is_aggregate(ty) {
            let value = text.shape_of_type(ty)?;
            let leaves = vec![Leaf { value, is_array: false }];
            let type_name = type_name(stored(value)).to_string();
            return Ok(Element { type_name, is_struct: false, leaves });
        }
        if let Some((_, element)) = self.known.iter().find(|(known, _)| *known == ty) {
            return Ok(element.clone());
        }
        let full = text.types.name(ty);
        let word = full.trim_end_matches(".legal").rsplit('.').next().unwrap_or("element");
        let type_name = take_name(text, word);
        let leaves = self.declare(text, ty, &type_name)?;
        let element = Element { type_name, is_struct: true, leaves };
        self.known.push((ty, element.clone()));
        Ok(element)
    }

    /// Declares a structure whose members lie where the leaves of `ty` lie.
    fn declare(&mut self, text: &Text<'_>, ty: TypeId, name: &str) -> Emit<Vec<Leaf>> {
        let types = text.types;
        let mut leaves = Vec::new();
        let mut end = 0;
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "struct {name} {{");
        for (n, leaf) in types.leaves(ty).iter().enumerate() {
            let value = text.shape_of_type(leaf.ty)?;
            let is_array = matches!(types.kind(leaf.ty), TypeKind::Vec(_, 3));
            let align = match is_array {
                true => value.prim.size(),
                false => types.layout(leaf.ty).align,
            };
            self.pad(n, end, leaf.offset, align);
            let memory = stored(value);
            let (member, count) = match is_array {
                true => (type_name(Shape::one(memory.prim)), "[3]"),
                false => (type_name(memory), ""),
            };
            let _ = writeln!(self.text, "    {member} m{n}{count};");
            end = leaf.offset + types.layout(leaf.ty).size;
            leaves.push(Leaf { value, is_array });
        }
        self.pad(leaves.len(), end, types.stride(ty), types.layout(ty).align);
        self.text.push_str("};\n\n");
        Ok(leaves)
    }

    /// Bytes between the end of what is declared and `offset`, unless the alignment of what comes
    /// next makes them.
    fn pad(&mut self, n: usize, end: u32, offset: u32, align: u32) {
        if end.next_multiple_of(align.max(1)) < offset {
            let _ = writeln!(self.text, "    uchar pad{n}[{}];", offset - end);
        }
    }
}
