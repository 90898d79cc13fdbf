//! The driver on a real Vulkan device. Without one the tests say `skipped: needs Vulkan`, and fail
//! where `CI` is set.

mod assembler;
mod driver;
mod kernels;
mod library;
mod memory;

use super::{VulkanDriver, VulkanOptions};
use crate::gpu::discovery::Driver;
use crate::gpu::runtime::Runtime;
use crate::gpu::tests::conformance::Subject;
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, SPIN, only, signature};
use crate::gpu::{DriverKind, GpuError};
use assembler::spirv_blob;

/// What the tests ask for unless they say otherwise: the validation layer, no files.
fn options() -> VulkanOptions {
    VulkanOptions { validate: true, ..Default::default() }
}

/// Whether there is a Vulkan device.
fn has_vulkan() -> bool {
    match VulkanDriver::new(VulkanOptions::default()).adapters() {
        Ok(_) => true,
        Err(reason) => {
            skip(&reason);
            false
        }
    }
}

fn skip(reason: &GpuError) {
    assert!(std::env::var_os("CI").is_none(), "needs Vulkan: {reason}");
    println!("skipped: needs Vulkan ({reason})");
}

/// A runtime over one Vulkan driver, with all kernels.
fn runtime(options: VulkanOptions, uniform: bool) -> Runtime {
    let driver: Box<dyn Driver> = Box::new(VulkanDriver::new(options));
    let runtime = Runtime::with_drivers(only(DriverKind::Vulkan), vec![driver]);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        let blob = spirv_blob(kernel, uniform);
        runtime.register_kernel(kernel, signature(kernel).0, vec![blob], None);
    }
    runtime
}

/// A device to test; `None` when there is none.
fn subject(options: VulkanOptions) -> Option<Subject> {
    has_vulkan().then(|| Subject::new(runtime(options, false)))
}
