//! Every pure scalar op on every type it takes: checked by naga and by tint, and compared with its
//! meaning on a WebGPU device.

mod support;

use magpie_kernel_tests::accuracy;
use magpie_kernel_tests::ops::check_cases;
use magpie_mpir::eval::float_value;
use magpie_mpir::testing::has_exact_result;
use magpie_mpir::testing::ops::OpCase;
use magpie_types::PrimType;
use support::{accepted_by_tint, checked, on_device, targets, targets_of, webgpu};

/// Whether WGSL has the types of a case.
fn is_available(case: &OpCase) -> bool {
    let has = |p: &PrimType| p.bit_width() < 64;
    case.from.iter().chain([&case.to]).all(has)
}

/// Whether a result is right. WGSL promises what Vulkan does, but for finite numbers only: functions of
/// others may give anything.
fn agrees(case: &OpCase, operands: &[u64], got: u64) -> bool {
    let is_finite = |p: PrimType, bits| !p.is_float() || float_value(p, bits).is_finite();
    let mut all = operands.iter().zip(&case.from).map(|(&bits, &p)| is_finite(p, bits));
    let finite = all.all(|f| f) && is_finite(case.to, case.eval(operands));
    !finite && !has_exact_result(case.op) || accuracy::agrees(case, operands, got)
}

#[test]
fn every_op_is_accepted() {
    for target in targets() {
        check_cases(&checked(target), is_available, |_, _, _| true);
    }
    accepted_by_tint();
}

#[test]
fn every_op_on_a_device() {
    let Some(gpu) = webgpu() else { return };
    for target in targets_of(&gpu) {
        check_cases(&on_device(&gpu, target), is_available, agrees);
    }
}
