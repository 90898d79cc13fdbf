//! SPIR-V 1.6 for Vulkan 1.3.

mod available;
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
mod ops;
mod section;
mod target;
mod types;
mod vectors;

pub use compile::SpirvEmitter;
pub use disassembly::disassemble;
pub use target::SpirvTarget;
