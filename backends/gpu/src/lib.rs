//! The kernel model: everything between MPIR and the back ends that run kernels.
//!
//! - [`surface`]: what a language may write in a kernel for a target.
//! - [`structurize`](mod@structurize): structured control flow for SPIR-V, MSL and WGSL.
//! - [`layout`]: how arguments travel.
//! - [`BackendEmitter`]: what a back end offers.
//!
//! Nothing here knows a language, and nothing here emits code.

pub mod capability;
mod emitter;
pub mod layout;
pub mod legalize;
pub mod structurize;
pub mod surface;
pub mod target;

pub use emitter::BackendEmitter;
