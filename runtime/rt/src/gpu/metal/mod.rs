//! The Metal driver.
//!
//! It compiles MSL when a kernel is loaded, without fast-math. `adapter` finds devices, `memory` and
//! `recycler` hold their memory, `queue` and `progress` their work, `kernel` and `arguments` what
//! they run. What does not call Metal is tested on every platform; the rest is built on macOS only.

mod arguments;
mod error;
mod progress;
mod recycler;

#[cfg(target_os = "macos")]
mod adapter;
#[cfg(target_os = "macos")]
mod device;
#[cfg(target_os = "macos")]
mod kernel;
#[cfg(target_os = "macos")]
mod memory;
#[cfg(target_os = "macos")]
mod queue;
#[cfg(all(test, target_os = "macos"))]
mod tests;

#[cfg(target_os = "macos")]
pub(crate) use adapter::MetalDriver;
