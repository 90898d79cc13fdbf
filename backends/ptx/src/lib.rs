//! PTX for NVIDIA GPUs, written directly or by LLVM.
//!
//! [`PtxEmitter`] takes a kernel that the pipeline has closed and optimised
//! (`docs/internals/pipeline.md`), legalises a copy of it for a [`PtxTarget`], makes its bounds
//! checks explicit, and writes one module a body in one pass. No other tool takes part; the
//! device's driver assembles the text. Where there is an LLVM, [`emit_ptx_llvm`] has it optimise and
//! write kernels instead, with the same entry, parameters and meaning; [`Codegen`] is the user's
//! choice. What follows is about the direct writer.
//!
//! # The module
//!
//! - One `.entry` with the name of the layout, after the `.func`s of recursive functions that it
//!   calls. Parameters in the order of the kernel: the address
//!   of a buffer is a `.u64`, a scalar is by value, a value struct or vector is an array of its
//!   bytes. The lengths of buffers follow, as `.u64`.
//! - `.maxntid` is the workgroup size of the source, so that registers are shared out among that
//!   many invocations. `gpu.workgroup_size` reads what the launch says: a launch with another
//!   size needs the same text with another `.maxntid`.
//! - Registers are of one assignment each, but for those of phis, which the ends of blocks assign.
//!   The control-flow graph is the kernel's own, reducible or not; a branch that the invocations
//!   of a workgroup take together is `bra.uni`.
//! - `bool` is a predicate, integers of 8 and 16 bits lie in 32-bit registers whose upper bits mean
//!   nothing.
//!
//! # Memory
//!
//! - Buffers are `.global`, elements as on the host. Loads are plain ones: two parameters may be one
//!   buffer, and another invocation may write what one reads.
//! - Vectors move as `v2` and `v4` where their alignment allows it.
//! - Shared arrays are `.shared`, in one dynamic array when they need more than
//!   [`magpie_types::kernel::CUDA_STATIC_SHARED`].
//! - `gpu.barrier` is `bar.sync 0`, which also orders the workgroup's accesses.
//! - Atomics are relaxed, at the scope of the device for buffers and of the workgroup for shared
//!   arrays; `red` where nobody looks at the old value. Minimum and maximum of floats are loops
//!   around a compare-and-swap of the bits.
//!
//! # Numbers
//!
//! | operation | how |
//! | --- | --- |
//! | integer ops, comparisons, conversions | native where total, else legalised (division, shifts, float to 64 bits) |
//! | `+ - ×`, `÷`, `sqrt`, `fma` of f32 and f64 | the `.rn` forms, which are correctly rounded and never fused; those without `.rn` where the flags allow it |
//! | f16 | native; `÷` and `sqrt` through f32 |
//! | bf16 | native from sm_90; else carried as its bits and computed in f32 |
//! | `f.rem` | exact, in integer code |
//! | `exp log sin cos pow` and their like | legalised to arithmetic; `ex2 lg2 sin cos` `.approx` where the flags allow it |
//!
//! Subnormal numbers are kept (no `.ftz`), except that hardware flushes them in atomic additions of
//! f32 in buffers.
//!
//! # Subgroups
//!
//! A subgroup is a warp of 32. Where all invocations of the workgroup are together, those that
//! have not returned take part; elsewhere those that happen to run together. Reductions of a full
//! warp take five exchanges, of a part of one they go from lane to lane.

mod calls;
mod capability;
mod compile;
mod control_flow;
mod emitter;
mod lines;
mod llvm;
mod memory;
mod operand;
mod ops;
mod params;
mod target;
mod vectors;

pub use capability::capability_warning;
pub use compile::PtxEmitter;
pub use llvm::emit_ptx_llvm;
pub use target::{Codegen, MIN_SM, PtxTarget};
