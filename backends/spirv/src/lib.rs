//! SPIR-V 1.6 for Vulkan 1.3, written word by word.
//!
//! [`SpirvEmitter`] takes a kernel that the pipeline has closed and optimised
//! (`docs/internals/pipeline.md`), legalises a copy of it for a [`SpirvTarget`], makes its bounds
//! checks explicit, structures its control flow, and writes one module a body. [`disassemble`] shows
//! a module as text.
//!
//! # The module
//!
//! - One entry point, `main`, of the model GLCompute; logical addressing, memory model GLSL450.
//! - The workgroup size is the specialization constants 0, 1 and 2 (`LocalSizeId`).
//!   `gpu.workgroup_size` reads the same constants, so a launch with another size needs another
//!   pipeline only.
//! - Buffer parameters are storage buffers in set 0, with the bindings of the layout. Elements of
//!   value structs are structures of their leaves at the offsets of
//!   [`magpie_types::TypeCtx::leaves`]. A bool is a byte; where the device has no small elements in
//!   buffers, scalar elements of 1 or 2 bytes are words.
//! - Scalars and hidden buffer lengths are one structure in push constants, or in a uniform buffer
//!   when they are too many. Scalars of 1 or 2 bytes are read out of the words they lie in: the
//!   device need not have small types there.
//! - Integers have no sign: `i32` and `u32` are one type, and operations say what they mean. Where
//!   the device does not compute in 8 or 16 bits, such values are carried in 32.
//! - bf16 is its bits. Arithmetic on it (and on f16 where the device has none) is legalised to f32.
//! - Capabilities are declared for what is used, and [`magpie_types::kernel::KernelLayout`] lists
//!   the features behind them.
//!
//! # Memory
//!
//! - Parameters may be one buffer: all are `Aliased` when one of several is written.
//! - `gpu.barrier` is a control barrier of the workgroup that acquires and releases workgroup and
//!   buffer memory. Under GLSL450 that reaches buffers through `Coherent`, which buffers get that a
//!   kernel with a barrier writes.
//! - Atomics are relaxed; at the scope of the device in buffers, of the workgroup in shared arrays.
//!   Where the device lacks one on floats it is a loop around a compare-and-swap of the bits.
//!
//! # Numbers
//!
//! | operation | how |
//! | --- | --- |
//! | integer ops, comparisons, conversions | exact: legalised where SPIR-V is partial (division, shifts, float to integer) |
//! | `+ - ×` of floats | native; `NoContraction` unless the flags allow fusing |
//! | `÷`, `sqrt`, `fma`, `f.rem` | legalised to exact sequences; native when the flags allow it |
//! | `floor ceil trunc round abs neg` | native, exact |
//! | `f.min f.max` | `NMin NMax`, and equal operands joined bit by bit so that -0 is below +0 |
//! | `exp exp2 log log2 sin cos tan asin acos atan sinh cosh tanh atan2 pow` | `GLSL.std.450` in f32, with the accuracy that Vulkan promises; `pow` and `atan2` defined for all operands |
//! | the same in f16 and f64 | in f32: operands are rounded to it, results have its range and accuracy |
//! | vectors | kept when every vector operation is exact as it stands, else taken apart; `dot cross reflect mix` in the order of their definition unless the flags allow otherwise |
//!
//! Where the device offers them, execution modes keep zeros, infinities, NaN and subnormals and
//! round to nearest even, for the widths a kernel computes with. Without them these are the
//! device's choice.
//!
//! # Subgroups
//!
//! Operations are the native ones. A shuffle from a lane outside the subgroup, or from one that
//! takes no part, gives any value. A broadcast is a shuffle, since its lane need not be constant.

mod builder;
mod capabilities;
mod compile;
mod control_flow;
mod disassembly;
mod emitter;
mod float_controls;
mod interface;
mod lines;
mod memory;
mod opaque;
mod ops;
mod section;
mod target;
mod types;

pub use compile::SpirvEmitter;
pub use disassembly::disassemble;
pub use target::SpirvTarget;
