//! Devices, buffers, kernels and launches.
//!
//! The law of this module: one trait ([`device::Device`]) with a driver a file behind it, and
//! everything that is the same for all drivers above it, once. What a launch needs is in its
//! kernel's `KernelLayout` (`magpie_types::kernel`). Drivers are opened at run time; a missing one
//! is [`ErrorKind::BackendUnavailable`], never a link error. Every fallible operation gives a
//! [`GpuError`] whose message names the operation, the sizes and the device.

pub mod abi;
mod buffer;
mod cache_file;
mod clock;
mod config;
mod context;
mod cpu;
mod device;
mod discovery;
mod error;
mod fallback;
mod host_device;
mod host_memory;
mod launch;
#[cfg(any(target_os = "macos", test))]
mod metal;
mod precondition;
mod prints;
pub mod profile;
mod properties;
mod registry;
mod resident;
mod ring;
mod runtime;
mod stream;
mod telemetry;
#[cfg(test)]
mod tests;
mod transfer_sizes;
mod vulkan;
mod webgpu;
mod widen;

pub use buffer::{Buffer, Element};
pub use config::{DeviceChoice, GpuConfig};
pub use context::{Context, Fence, MemoryStats};
pub use device::MemoryHint;
pub use discovery::DeviceSummary;
pub use error::{ErrorKind, GpuError, GpuResult};
pub use host_device::{ExecutorLaunch, KernelExecutor};
pub use launch::LaunchSize;
pub use properties::{DeviceLimits, DeviceProperties, DeviceType, DriverKind, PciAddress};
pub use registry::BlobProvider;
pub use runtime::Runtime;
