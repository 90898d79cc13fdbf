//! Types, their ids and layouts, and the conversions that depend on them.
//!
//! The lowest crate that both the compiler and the runtime know: fixed type ids, memory layouts,
//! stable ids, 16-bit floats and the table of runtime functions ([`abi`]).

pub mod abi;
mod builtin;
mod ctx;
pub mod float16;
pub mod kernel;
pub mod kernel_codec;
mod layout;
mod prim;
pub mod print;
mod sid;

pub use builtin::{ERROR_KINDS, MEMORY_HINTS};
pub use ctx::{
    Category, EnumDef, EnumId, Field, OpaqueKind, RefMode, SigDef, SigId, StructDef, StructId,
    TypeCtx, TypeId, TypeKind, Variant, fixed,
};
pub use layout::{Layout, Leaf, ObjectLayout, place};
pub use prim::PrimType;
pub use sid::{Sid, SidKind, fnv1a};
