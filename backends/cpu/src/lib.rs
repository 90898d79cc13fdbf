//! Machine code for the CPU, by Cranelift: host functions, and kernels as work-group functions.

mod helpers;
mod host;
mod jit;
mod kernel;
mod pure;
mod runtime;
mod simd;
mod terminators;

pub use host::{HostCode, compile_host};
pub use jit::{Executable, JitError};
pub use kernel::{KernelBody, KernelCode, MAX_NEAR_LEN, compile_kernel, lower_kernel};
pub use runtime::Runtime;
