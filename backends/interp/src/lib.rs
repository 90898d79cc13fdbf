//! The reference interpreter of kernels: the meaning every back end is compared with.
//!
//! It runs MPIR of any stage of the kernel pipeline, one workgroup after the other. Invocations of
//! a workgroup run one by one until each has reached a barrier or its end; invocations of a
//! subgroup meet at subgroup operations. Scalars are evaluated by [`magpie_mpir::eval`]. Written to
//! be read: nothing here is clever.
//!
//! What is undefined on a device is a [`Fault`] here: an unchecked access outside, a barrier that
//! not all invocations reach, `unreachable`.

mod exec;
mod machine;
mod memory;
mod value;

pub use machine::{Argument, Fault, Launch, run_kernel};
pub use memory::Buffer;
