//! WGSL for WebGPU, written as text.
//!
//! [`WgslEmitter`] takes a kernel that the pipeline has closed and optimised
//! (`docs/internals/pipeline.md`), legalises a copy of it for a [`WgslTarget`], makes its bounds
//! checks explicit, structures its control flow, and writes one module a body by
//! [`magpie_gpu::text`].
//!
//! # The module
//!
//! - One entry point, `main`; the workgroup size is a literal, so a launch cannot choose another.
//! - Buffer parameters are storage buffers in group 0 with the bindings of the layout: `read` when
//!   the kernel never writes them, else `read_write`. Their names are those of the source, changed
//!   where WGSL needs the word. Elements are words: bools and scalars of 8 and 16 bits are widened by
//!   the layout. Elements of value structs are structures of their leaves with the host's offsets.
//! - Vectors and value structs with parts of 1 or 2 bytes lie as on the host: their buffers are arrays
//!   of words, and a store to a part changes its bits by two atomic operations, for the words belong
//!   to neighbours, too.
//! - A buffer or shared array that an atomic operation names has `atomic` elements, and plain accesses
//!   to it are atomic loads and stores.
//! - Scalars and hidden buffer lengths are one structure, `scalars`, in a uniform buffer behind the
//!   last buffer. Scalars of 1 or 2 bytes are taken out of the words they lie in.
//! - A module with subgroup operations begins with `enable subgroups;` and
//!   `diagnostic(off, subgroup_uniformity);`, as Chrome wants it. wgpu-native refuses the first and does
//!   not know the second: its driver leaves both lines out.
//! - `enable f16;` stands where the target has `shader-f16` and the kernel computes with it; elsewhere
//!   f16 is legalised to f32, and bf16 is everywhere.
//!
//! # Numbers
//!
//! | operation | how |
//! | --- | --- |
//! | integer ops, comparisons, conversions | exact: legalised where WGSL is partial; the upper half of a product is a function of the module |
//! | `+ - ×` of floats | native, with operands that no compiler sees through where it could fuse, reorder or simplify: `x ^ zero` on the bits, where `zero` comes from the launch |
//! | `÷`, `sqrt`, `fma`, `f.rem` | legalised to exact sequences; native when the flags allow it |
//! | tests for NaN | on bits; comparisons that are true for NaN are functions of the module |
//! | `f.min f.max`, `pow`, `atan2` | functions of the module that are defined for all operands |
//! | other functions | WGSL's, in f32, with the accuracy it promises |
//! | infinities and NaN as constants | bits combined with `zero`: a constant expression may not give them |
//!
//! # Uniformity
//!
//! WGSL decides by its own rules whether control flow around a barrier is uniform. A load at a
//! uniform index from writable memory that decides whether a barrier is reached goes through
//! `workgroupUniformLoad`.

mod atomic;
mod available;
mod ballots;
mod compile;
mod convert;
mod exact;
mod functions;
mod interface;
mod keywords;
mod language;
mod memory;
mod module;
mod ops;
mod packed;
mod target;
mod types;
mod uniform_loads;

pub use compile::WgslEmitter;
pub use target::WgslTarget;
