//! Every pure scalar op on every type it takes: checked by naga and by tint, and compared with its
//! meaning on a WebGPU device.

mod support;

use magpie_kernel_tests::ops::{check_cases, within_ulps};
use magpie_mpir::testing::ops::OpCase;
use magpie_types::PrimType;
use support::{checked, on_device, targets, targets_of, webgpu};

/// Whether WGSL has the types of a case.
fn is_available(case: &OpCase) -> bool {
    let has = |p: &PrimType| p.bit_width() < 64;
    case.from.iter().chain([&case.to]).all(has)
}

#[test]
fn every_op_is_accepted() {
    for target in targets() {
        check_cases(&checked(target), is_available, |_, _, _| true);
    }
}

#[test]
fn every_op_on_a_device() {
    let Some(gpu) = webgpu() else { return };
    for target in targets_of(&gpu) {
        check_cases(&on_device(&gpu, target), is_available, |case, operands, got| {
            within_ulps(case, operands, got, 4.0)
        });
    }
}
