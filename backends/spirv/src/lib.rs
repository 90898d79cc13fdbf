//! SPIR-V 1.6 for Vulkan 1.3, written by hand.

mod builder;
mod capabilities;
mod control_flow;
mod emitter;
mod float_controls;
mod interface;
mod lines;
mod memory;
mod ops;
mod section;
mod types;
