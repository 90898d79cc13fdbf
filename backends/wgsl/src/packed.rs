//! Elements with parts of 1 or 2 bytes: they lie as on the host, and kernels reach them through the
//! words of the buffer.
//!
//! A word belongs to several parts, and those to several invocations. So a store clears the bits of its
//! part and then sets them, by an atomic operation each: what others write beside them stays.

use crate::types::{Scalar, type_name};
use magpie_gpu::text::{Emit, Shape, Text};
use magpie_types::{PrimType, TypeId};

/// How elements lie in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packing {
    /// Bytes between elements.
    pub(crate) stride: u32,
    pub(crate) is_written: bool,
}

impl Packing {
    /// The type of a word.
    pub(crate) fn word(self) -> &'static str {
        if self.is_written { "atomic<u32>" } else { "u32" }
    }
}

/// Whether an element that is no single scalar has parts that WGSL cannot store: all below 32 bits but
/// f16, which lies as such where the kernel computes with it.
pub(crate) fn has_narrow_parts(text: &Text<'_>, elem: TypeId) -> Emit<bool> {
    let mut shapes = Vec::new();
    for leaf in text.types.leaves(elem) {
        shapes.push(text.shape_of_type(leaf.ty)?);
    }
    let is_scalar = !text.types.is_aggregate(elem) && shapes.iter().all(|s| s.lanes == 1);
    Ok(!is_scalar && shapes.iter().any(|s| s.prim.size() < 4 && s.prim != PrimType::F16))
}

/// Some bytes of words.
pub(crate) struct PackedPlace {
    pub(crate) buffer: String,
    /// The name of the number of the first byte.
    pub(crate) at: String,
    pub(crate) shape: Shape,
    pub(crate) packing: Packing,
}

impl PackedPlace {
    fn lanes(&self) -> impl Iterator<Item = u32> {
        0..self.shape.lanes as u32
    }

    /// The word with a lane, and by how many bits it is shifted.
    fn word_and_shift(&self, lane: u32) -> (String, String) {
        let (at, bytes) = (&self.at, lane * self.shape.prim.size());
        let word = format!("{}[({at} + {bytes}u) >> 2u]", self.buffer);
        (word, format!("((({at} + {bytes}u) & 3u) * 8u)"))
    }

    /// An expression for the value.
    pub(crate) fn load(&self) -> String {
        let lane = |lane| {
            let (word, shift) = self.word_and_shift(lane);
            let word = match self.packing.is_written {
                true => format!("atomicLoad(&{word})"),
                false => word,
            };
            match self.shape.prim.size() {
                4 => format!("bitcast<{}>({word})", type_name(Shape::one(self.shape.prim))),
                _ => from_bits(self.shape.prim, &format!("({word} >> {shift})")),
            }
        };
        let lanes: Vec<String> = self.lanes().map(lane).collect();
        match lanes.len() {
            1 => lanes.concat(),
            _ => format!("{}({})", type_name(self.shape), lanes.join(", ")),
        }
    }

    /// The statements that store a value with a name.
    pub(crate) fn store(&self, value: &str) -> Vec<String> {
        let prim = self.shape.prim;
        let lane = |lane: u32| {
            let (word, shift) = self.word_and_shift(lane);
            let value = match self.shape.lanes {
                1 => value.to_string(),
                _ => format!("{value}[{lane}]"),
            };
            if prim.size() == 4 {
                return vec![format!("atomicStore(&{word}, bitcast<u32>({value}));")];
            }
            let mask = if prim.size() == 1 { "0xffu" } else { "0xffffu" };
            let bits = to_bits(prim, &value);
            vec![
                format!("atomicAnd(&{word}, ~({mask} << {shift}));"),
                format!("atomicOr(&{word}, ({bits} & {mask}) << {shift});"),
            ]
        };
        self.lanes().flat_map(lane).collect()
    }
}

/// The value of a scalar in the lowest bits of a word, whatever the upper ones are.
pub(crate) fn from_bits(prim: PrimType, bits: &str) -> String {
    match Scalar::of(prim) {
        Scalar::Bool => format!("(({bits} & 0xffu) != 0u)"),
        Scalar::F16 => format!("f16(unpack2x16float({bits}).x)"),
        // The upper bits mean nothing.
        Scalar::I32 => format!("i32({bits})"),
        Scalar::U32 | Scalar::F32 => bits.to_string(),
    }
}

/// A scalar in the lowest bits of a word.
fn to_bits(prim: PrimType, value: &str) -> String {
    match Scalar::of(prim) {
        Scalar::Bool => format!("select(0u, 1u, {value})"),
        Scalar::F16 => format!("pack2x16float(vec2<f32>(f32({value}), 0.0))"),
        Scalar::I32 => format!("u32({value})"),
        Scalar::U32 | Scalar::F32 => value.to_string(),
    }
}
