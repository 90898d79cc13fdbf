//! Kernels over random reducible control-flow graphs: checked by naga and by tint, and compared with
//! the reference interpreter on a WebGPU device.

mod support;

use magpie_gpu_wgsl::WgslTarget;
use magpie_kernel_tests::graphs::check;
use magpie_mpir::testing::GraphShape::Reducible;
use support::{accepted_by_tint, checked, on_device, webgpu};

#[test]
fn graphs_are_accepted() {
    let subject = checked(WgslTarget::COMMON);
    (0..40).for_each(|seed| check(&subject, seed, Reducible, 4 + seed as usize));
    accepted_by_tint();
}

#[test]
fn graphs_do_what_the_interpreter_does() {
    let Some(gpu) = webgpu() else { return };
    let subject = on_device(&gpu, WgslTarget::COMMON);
    (0..150).for_each(|seed| check(&subject, seed, Reducible, 4 + seed as usize % 40));
}
