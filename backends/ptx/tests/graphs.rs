//! Kernels over random control-flow graphs, reducible and not: assembled, and compared with the
//! reference interpreter on a CUDA device when there is one.

mod support;

use magpie_kernel_tests::graphs::check;
use magpie_mpir::testing::GraphShape;
use support::{assembled, assembler, cuda, on_device};

#[test]
fn graphs_are_assembled() {
    let validate = assembler(70);
    let subject = assembled(70, &validate);
    (0..10).for_each(|seed| check(&subject, seed, GraphShape::Reducible, 4 + 4 * seed as usize));
    (0..10).for_each(|seed| check(&subject, seed, GraphShape::Any, 4 + 2 * seed as usize));
}

#[test]
fn graphs_do_what_the_interpreter_does() {
    let Some(gpu) = cuda() else { return };
    let subject = on_device(&gpu, 70);
    let nodes = |seed: u64, most: usize| 4 + seed as usize % most;
    (0..150).for_each(|seed| check(&subject, seed, GraphShape::Reducible, nodes(seed, 40)));
    (0..150).for_each(|seed| check(&subject, seed, GraphShape::Any, nodes(seed, 24)));
}
