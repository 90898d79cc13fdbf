//! Random kernels: assembled, and compared with the reference interpreter on a CUDA device when there
//! is one.

mod support;

use magpie_kernel_tests::random::check;
use magpie_mpir::testing::{KernelConfig, has_exact_result, random_kernel};
use support::{assembled, assembler, cuda, on_device, targets_of};

/// Operations whose result is the same everywhere.
fn exact() -> KernelConfig {
    KernelConfig { ops: has_exact_result, ..KernelConfig::all() }
}

fn control_flow() -> KernelConfig {
    KernelConfig { size: 200, depth: 6, ..KernelConfig::portable() }
}

fn subgroups() -> KernelConfig {
    KernelConfig { subgroups: true, ..KernelConfig::portable() }
}

#[test]
fn random_kernels_are_assembled() {
    for (n, sm) in [70, 80, 90].into_iter().enumerate() {
        let validate = assembler(sm);
        let subject = assembled(sm, &validate);
        let first = 100 * n as u64;
        (first..first + 12).for_each(|seed| check(&subject, seed, &KernelConfig::all()));
        (first..first + 4).for_each(|seed| check(&subject, seed, &control_flow()));
        (first..first + 4).for_each(|seed| check(&subject, seed, &subgroups()));
    }
}

#[test]
fn random_kernels_do_what_the_interpreter_does() {
    let Some(gpu) = cuda() else { return };
    for sm in targets_of(&gpu) {
        let subject = on_device(&gpu, sm);
        (0..150).for_each(|seed| check(&subject, seed, &exact()));
    }
}

#[test]
fn random_kernels_of_nothing_but_control_flow() {
    let Some(gpu) = cuda() else { return };
    let subject = on_device(&gpu, 70);
    (2000..2100).for_each(|seed| check(&subject, seed, &control_flow()));
}

#[test]
fn random_kernels_with_subgroups() {
    let Some(gpu) = cuda() else { return };
    for sm in targets_of(&gpu) {
        let subject = on_device(&gpu, sm);
        (3000..3150).for_each(|seed| check(&subject, seed, &subgroups()));
    }
    assert!((3000..3150).any(|seed| random_kernel(seed, &subgroups()).block[1..] != [1, 1]));
}
