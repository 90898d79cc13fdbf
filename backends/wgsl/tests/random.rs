//! Random kernels: checked by naga and by tint, and compared with the reference interpreter on a
//! WebGPU device.

mod support;

use magpie_kernel_tests::random::check;
use magpie_mpir::testing::{KernelConfig, has_exact_result, random_kernel};
use magpie_types::PrimType;
use support::{accepted_by_tint, checked, on_device, targets, targets_of, webgpu};

/// Operations whose result is the same everywhere, on the types that WGSL has or can do without.
fn exact() -> KernelConfig {
    use PrimType::*;
    KernelConfig {
        types: vec![I8, I16, I32, U8, U16, U32, F16, Bf16, F32],
        ops: has_exact_result,
        // Of these, buffers cannot have parts of less than 32 bits.
        vectors: false,
        structs: false,
        // WebGPU refuses it.
        aliasing: false,
        ..KernelConfig::all()
    }
}

fn words() -> KernelConfig {
    let types = KernelConfig::portable().types;
    KernelConfig { types, vectors: true, structs: true, ..exact() }
}

fn control_flow() -> KernelConfig {
    KernelConfig { size: 200, depth: 6, ..KernelConfig::portable() }
}

fn subgroups() -> KernelConfig {
    KernelConfig { subgroups: true, ..KernelConfig::portable() }
}

/// How invocations of a workgroup with several dimensions form subgroups is up to the device.
fn is_linear(seed: u64) -> bool {
    random_kernel(seed, &subgroups()).block[1..] == [1, 1]
}

#[test]
fn random_kernels_are_accepted() {
    for target in targets() {
        let subject = checked(target);
        (0..40).for_each(|seed| check(&subject, seed, &exact()));
        (1000..1030).for_each(|seed| check(&subject, seed, &words()));
        (2000..2010).for_each(|seed| check(&subject, seed, &control_flow()));
        (3000..3010).for_each(|seed| check(&subject, seed, &subgroups()));
    }
    accepted_by_tint();
}

#[test]
fn random_kernels_do_what_the_interpreter_does() {
    let Some(gpu) = webgpu() else { return };
    for target in targets_of(&gpu) {
        let subject = on_device(&gpu, target);
        (0..50).for_each(|seed| check(&subject, seed, &exact()));
        (1000..1040).for_each(|seed| check(&subject, seed, &words()));
    }
}

#[test]
fn random_kernels_of_nothing_but_control_flow() {
    let Some(gpu) = webgpu() else { return };
    let target = targets_of(&gpu).next().unwrap();
    let subject = on_device(&gpu, target);
    (2000..2030).for_each(|seed| check(&subject, seed, &control_flow()));
    (3000..3090).filter(|&s| is_linear(s)).for_each(|seed| check(&subject, seed, &subgroups()));
}
