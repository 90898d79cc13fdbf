//! Kernels over random control-flow graphs, reducible and not, checked, run and compared with the
//! reference interpreter.

use crate::Subject;
use magpie_gpu::compile::BodyCompiler;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::testing::{GraphShape, RandomArgument, RandomKernel, random_graph_kernel};
use magpie_rt::gpu::LaunchSize;

/// Compiles, checks, runs and compares the kernel of a seed.
pub fn check<C: BodyCompiler>(
    subject: &Subject<'_, C>,
    seed: u64,
    shape: GraphShape,
    nodes: usize,
) {
    check_kernel(subject, random_graph_kernel(seed, shape, nodes), seed, shape);
}

/// As [`check`], in workgroups of one invocation.
pub fn check_alone<C: BodyCompiler>(
    subject: &Subject<'_, C>,
    seed: u64,
    shape: GraphShape,
    nodes: usize,
) {
    let mut kernel = random_graph_kernel(seed, shape, nodes);
    let invocations = kernel.grid[0] * kernel.block[0];
    (kernel.grid, kernel.block) = ([invocations, 1, 1], [1, 1, 1]);
    if let Some(meta) = &mut kernel.module.fns[kernel.kernel.index()].gpu_meta {
        meta.workgroup = kernel.block;
    }
    check_kernel(subject, kernel, seed, shape);
}

fn check_kernel<C: BodyCompiler>(
    subject: &Subject<'_, C>,
    kernel: RandomKernel,
    seed: u64,
    shape: GraphShape,
) {
    let blob = subject.compiler.emit(&kernel.module, kernel.kernel);
    let blob = blob.unwrap_or_else(|errors| panic!("{errors:?}"));
    let what = format!("seed {seed}, {shape:?}");
    subject.check(&what, &blob);
    let Some(gpu) = subject.gpu else { return };

    let mut scalars = vec![0; blob.layout.scalar_size as usize];
    let mut arguments = Vec::new();
    for argument in &kernel.arguments {
        arguments.push(match argument {
            RandomArgument::Buffer(n) => Argument::Buffer(*n),
            RandomArgument::Scalar(bytes) => {
                // The only one.
                scalars[..bytes.len()].copy_from_slice(bytes);
                Argument::Scalar(bytes.clone())
            }
        });
    }
    let mut expected = kernel.buffers[0].bytes.clone();
    let mut views = [Buffer { bytes: &mut expected }];
    let launch = Launch::new(kernel.grid, kernel.block);
    let ran =
        run_kernel(&kernel.module, kernel.kernel, launch, &arguments, &mut views, &mut |_| {});
    ran.expect("the interpreter runs it");
    let mut memory = vec![kernel.buffers[0].bytes.clone()];
    let size = LaunchSize { grid: kernel.grid, block: kernel.block };
    gpu.run_named(&blob, &mut memory, &[0], &scalars, size);
    let text = || magpie_mpir::print_module(&kernel.module);
    assert!(memory[0] == expected, "{what}: {:?} {expected:?}\n{}", memory[0], text());
}
