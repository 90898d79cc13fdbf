//! Code objects for AMD GPUs (HSACO), by LLVM.
//!
//! [`HipEmitter`] takes a kernel that the pipeline has closed and optimised, writes it as LLVM IR
//! (`magpie_codegen_llvm`, which also says what operations become), lets an LLVM generate an object,
//! links it (by a process only what is unusual, or when a linker is named), and reads the result back: a code object whose metadata does not say what
//! the layout says is refused.
//!
//! # The code object
//!
//! - Version 5. One kernel with the name of the layout; the driver finds it by `NAME.kd`.
//! - Arguments lie in memory in the order of the kernel at natural alignment: 8 bytes a buffer,
//!   scalars by value (a bool is a byte), value structs and vectors as their bytes, then 8 bytes a
//!   buffer length. The driver adds implicit ones behind them, of which kernels read the sizes and
//!   numbers of workgroups.
//! - The flat workgroup size is that of the source, which bounds registers; a larger launch needs
//!   another code object.

mod code_object;
mod emitter;
mod link;
mod message_pack;
mod target;

pub use code_object::{ArgFacts, KernelFacts, read as read_code_object};
pub use emitter::{HipEmitter, check_kernel};
pub use target::HipTarget;
