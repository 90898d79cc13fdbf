//! Tests of devices through the Rust face. `conformance` holds what must be true on every device;
//! each device runs it with the same kernels in its own form.

mod abi;
pub(crate) mod allocations;
pub(super) mod conformance;
mod cpu;
mod host_device;
pub(crate) mod library;
mod registry;
pub(super) mod support;
