//! Metal Shading Language, written as text.
//!
//! [`MslEmitter`] takes a kernel that the pipeline has closed and optimised
//! (`docs/internals/pipeline.md`), legalises a copy of it for an [`MslTarget`], makes its bounds
//! checks explicit, structures its control flow, and writes one source a body. What the text has in
//! common with other languages is in [`magpie_gpu::text`].
//!
//! # The source
//!
//! - One kernel function, named after the kernel. Buffers have the slots `[[buffer(0)]]`,
//!   `[[buffer(1)]]` … in parameter order; behind them one `constant` argument a scalar, in order;
//!   behind those one with the lengths of the buffers whose length is needed.
//! - Ids and sizes are `uint3` arguments, of which only those in use are declared.
//! - Elements of value structs are structures of their leaves, with explicit padding where the
//!   offsets of [`magpie_types::TypeCtx::leaves`] ask for it. A bool is a byte.
//! - Where two buffers may be one and one is written, buffer arguments bear the word `MAY_ALIAS`:
//!   nothing by default. Metal lets its compiler assume that buffers do not overlap, so a launch
//!   whose buffers do takes code compiled with `MAY_ALIAS` defined as `volatile`.
//! - The workgroup size is no part of the source: it is given at launch.
//!
//! # Memory
//!
//! - `gpu.barrier` is `threadgroup_barrier` for device and threadgroup memory.
//! - Atomics are relaxed. Those on `f32` work on the bits: exchanges as they are, arithmetic in a
//!   loop around a compare-and-swap. There are none of 64 bits.
//!
//! # Control flow
//!
//! C++ lets a compiler assume that loops end. Loops of which that is not known here test a
//! `volatile` variable, so that a loop without end stays one (`magpie_mpir::analysis::counters_of_finite_loops`).
//!
//! # Numbers
//!
//! The driver compiles without fast-math, and the source forbids contraction unless the whole
//! kernel allows it. Then Metal rounds `+ - × ÷`, `sqrt`, `fma` and conversions correctly.
//!
//! | operation | how |
//! | --- | --- |
//! | integer `+ - ×` | in unsigned integers, which wrap |
//! | division, shifts, float to integer | legalised where C++ is partial |
//! | 8- and 16-bit integers | computed in 32 bits |
//! | `f.min f.max` | `fmin fmax`, and equal operands joined bit by bit so that -0 is below +0 |
//! | `exp log sin pow` and their like | `precise::` in f32, `fast::` where the flags allow it |
//! | `f.rem` | legalised |
//! | bf16 | carried as bits, computed in f32; conversions are `bfloat`'s own under MSL 3.1 |
//! | f64 | refused |
//!
//! # SIMD groups
//!
//! Subgroup operations and the `gpu.metal` ones are the native functions, which take at most 32
//! bits: 64-bit values are exchanged in halves and reduced in a loop over the active lanes.

mod arguments;
mod atomics;
mod available;
mod compile;
mod expressions;
mod functions;
mod language;
mod memory;
mod simd;
mod statements;
mod target;
mod types;
mod words;

pub use compile::MslEmitter;
pub use target::{MslTarget, MslVersion};
