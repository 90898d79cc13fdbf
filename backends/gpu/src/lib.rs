//! The kernel model: everything between MPIR and the back ends that run kernels.
//!
//! - [`surface`]: what a language may write in a kernel for a target.
//! - [`structurize`](mod@structurize): structured control flow for SPIR-V, MSL and WGSL.
//! - [`layout`]: how arguments travel.
//! - [`BackendEmitter`]: what a back end offers; [`compile`]: what they repeat.
//! - [`text`]: what targets of structured text share.
//!
//! Nothing here knows a source language.

pub mod available;
pub mod capability;
pub mod compile;
mod emitter;
pub mod layout;
pub mod legalize;
pub mod prints;
pub mod structurize;
pub mod surface;
pub mod target;
pub mod text;

pub use emitter::BackendEmitter;
