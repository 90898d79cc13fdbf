//! The kernel model: everything between MPIR and the back ends that run kernels.
//!
//! - [`structurize`](mod@structurize): structured control flow for SPIR-V, MSL and WGSL.
//! - [`layout`]: how arguments travel.
//! - [`BackendEmitter`]: what a back end offers.
//!
//! Nothing here knows a language, and nothing here emits code.

mod emitter;
pub mod layout;
pub mod legalize;
pub mod structurize;

pub use emitter::BackendEmitter;
