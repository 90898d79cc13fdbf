//! Kernels over random control-flow graphs, reducible and not, validated, run on the device and
//! compared with the reference interpreter.
//!
//! Workgroups have one invocation: Mesa's software driver (22.3) loses values of invocations that
//! leave a loop before others of their group, when these were computed inside a branch.

mod support;

use magpie_kernel_tests::graphs::check_alone;
use magpie_mpir::testing::GraphShape;
use support::{on_device, target_of, vulkan};

#[test]
fn reducible_graphs() {
    let Some(gpu) = vulkan() else { return };
    let subject = on_device(&gpu, target_of(&gpu));
    let nodes = |seed: u64| 4 + seed as usize % 40;
    (0..150).for_each(|seed| check_alone(&subject, seed, GraphShape::Reducible, nodes(seed)));
}

#[test]
fn any_graphs() {
    let Some(gpu) = vulkan() else { return };
    let subject = on_device(&gpu, target_of(&gpu));
    let nodes = |seed: u64| 4 + seed as usize % 12;
    (0..100).for_each(|seed| check_alone(&subject, seed, GraphShape::Any, nodes(seed)));
}
