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
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What the tests ask for unless they say otherwise: the validation layer, no files.
fn options() -> VulkanOptions {
    VulkanOptions { validate: true, ..Default::default() }
}

/// Waits for the other tests; `None` when there is no Vulkan device. Drivers for hardware have been
/// seen to lock up when one thread ends an instance while others use theirs.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    static MISSING: OnceLock<Option<GpuError>> = OnceLock::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let missing =
        MISSING.get_or_init(|| VulkanDriver::new(VulkanOptions::default()).adapters().err());
    let Some(reason) = missing else { return Some(turn) };
    assert!(std::env::var_os("CI").is_none(), "needs Vulkan: {reason}");
    println!("skipped: needs Vulkan ({reason})");
    None
}

/// A device to test, alone.
struct Running {
    subject: Subject,
    _turn: MutexGuard<'static, ()>,
}

impl Deref for Running {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// A device with all kernels; `None` when there is none.
fn subject(options: VulkanOptions) -> Option<Running> {
    subject_with(options, false)
}

/// The same, scalars in push constants or in uniform blocks.
fn subject_with(options: VulkanOptions, uniform: bool) -> Option<Running> {
    let turn = turn()?;
    let driver: Box<dyn Driver> = Box::new(VulkanDriver::new(options));
    let runtime = Runtime::with_drivers(only(DriverKind::Vulkan), vec![driver]);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        let blob = spirv_blob(kernel, uniform);
        runtime.register_kernel(kernel, signature(kernel).0, vec![blob], None);
    }
    Some(Running { subject: Subject::new(runtime), _turn: turn })
}
