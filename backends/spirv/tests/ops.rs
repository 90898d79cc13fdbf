//! Every pure scalar op on every type it takes: validated, run on the device, and compared bit for
//! bit with its meaning; functions of which a target promises an accuracy only, within what Vulkan
//! promises.

mod support;

use magpie_kernel_tests::{accuracy, ops};
use magpie_types::kernel::DeviceFeatures;
use support::{SMALL, on_device, target_of, vulkan, without};

fn check_without(features: DeviceFeatures) {
    let Some(gpu) = vulkan() else { return };
    let target = without(target_of(&gpu), features);
    ops::check_all(&on_device(&gpu, target), accuracy::agrees);
}

#[test]
fn every_op_on_every_type() {
    check_without(DeviceFeatures::default());
}

#[test]
fn every_op_on_a_device_without_small_types() {
    check_without(SMALL | DeviceFeatures::STORAGE8 | DeviceFeatures::STORAGE16);
}

#[test]
fn every_op_on_a_device_that_stores_small_types_only() {
    check_without(SMALL);
}
