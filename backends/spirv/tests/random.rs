//! Random kernels, compiled through the whole pipeline, validated, run on the device and compared
//! with the reference interpreter on the kernel as it was made.

mod support;

use magpie_kernel_tests::random::check;
use magpie_mpir::testing::{KernelConfig, has_exact_result, random_kernel};
use support::{SMALL, on_device, target_of, vulkan, without};

/// Operations whose result Vulkan fixes.
fn exact() -> KernelConfig {
    KernelConfig { ops: has_exact_result, ..KernelConfig::all() }
}

#[test]
fn random_kernels_do_what_the_interpreter_does() {
    let Some(gpu) = vulkan() else { return };
    let subject = on_device(&gpu, target_of(&gpu));
    (0..100).for_each(|seed| check(&subject, seed, &exact()));
}

#[test]
fn random_kernels_on_a_device_without_small_types() {
    let Some(gpu) = vulkan() else { return };
    let subject = on_device(&gpu, without(target_of(&gpu), SMALL));
    (1000..1050).for_each(|seed| check(&subject, seed, &exact()));
}

#[test]
fn random_kernels_of_nothing_but_control_flow() {
    let Some(gpu) = vulkan() else { return };
    let subject = on_device(&gpu, target_of(&gpu));
    let config = KernelConfig { size: 200, depth: 6, ..KernelConfig::portable() };
    (2000..2050).for_each(|seed| check(&subject, seed, &config));
}

#[test]
fn random_kernels_with_subgroups() {
    let Some(gpu) = vulkan() else { return };
    let subject = on_device(&gpu, target_of(&gpu));
    let config = KernelConfig { subgroups: true, ..KernelConfig::portable() };
    // How invocations of a workgroup with several dimensions form subgroups is up to the device.
    let is_linear = |&seed: &u64| random_kernel(seed, &config).block[1..] == [1, 1];
    (3000..3150).filter(is_linear).for_each(|seed| check(&subject, seed, &config));
}
