//! Random kernels through the whole pipeline, on the CPU, compared with the reference interpreter.

mod support;

use magpie_gpu_msl::{MslTarget, MslVersion};
use magpie_kernel_tests::{graphs, random};
use magpie_mpir::testing::{GraphShape, KernelConfig, has_exact_result};
use magpie_types::PrimType;
use support::on_cpu;

/// Everything that Metal has and whose result is fixed.
fn config() -> KernelConfig {
    let mut config = KernelConfig { ops: has_exact_result, ..KernelConfig::all() };
    config.types.retain(|&p| p != PrimType::F64);
    config
}

fn check(version: MslVersion, seeds: std::ops::Range<u64>, config: &KernelConfig) {
    on_cpu(MslTarget { version }, config.aliasing, |subject| {
        seeds.clone().for_each(|seed| random::check(subject, seed, config));
    });
}

#[test]
fn random_kernels_do_what_the_interpreter_does() {
    check(MslVersion::V2_4, 0..30, &config());
    check(MslVersion::V3_1, 50..60, &config());
}

#[test]
fn random_kernels_with_bf16() {
    let types = vec![PrimType::Bf16, PrimType::F32, PrimType::I32];
    check(MslVersion::V3_1, 100..112, &KernelConfig { types, ..config() });
}

#[test]
fn random_kernels_of_nothing_but_control_flow() {
    let config = KernelConfig { size: 200, depth: 6, ..KernelConfig::portable() };
    check(MslVersion::V2_4, 2000..2020, &config);
}

#[test]
fn random_kernels_with_subgroups() {
    let portable = KernelConfig { subgroups: true, ..KernelConfig::portable() };
    check(MslVersion::V2_4, 3000..3012, &portable);
    check(MslVersion::V3_1, 3020..3030, &KernelConfig { subgroups: true, ..config() });
}

/// Buffers that do not overlap: the compiler may use that.
#[test]
fn random_kernels_without_aliases() {
    check(MslVersion::V3_1, 4000..4010, &KernelConfig { aliasing: false, ..config() });
}

#[test]
fn reducible_graphs() {
    on_cpu(MslTarget::COMMON, false, |subject| {
        for seed in 0..50 {
            graphs::check(subject, seed, GraphShape::Reducible, 4 + seed as usize % 40);
        }
    });
}
