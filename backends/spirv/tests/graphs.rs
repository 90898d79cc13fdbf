//! Kernels over random control-flow graphs, reducible and not, validated, run on the device and
//! compared with the reference interpreter.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::SpirvEmitter;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::testing::{GraphShape, RandomArgument, random_graph_kernel};
use magpie_rt::gpu::LaunchSize;
use support::{Gpu, bytes, validate};

/// Workgroups have one invocation: Mesa's software driver (22.3) loses values of invocations that
/// leave a loop before others of their group, when these were computed inside a branch.
fn check(gpu: &Gpu, seed: u64, shape: GraphShape, nodes: usize) {
    let mut kernel = random_graph_kernel(seed, shape, nodes);
    let invocations = kernel.grid[0] * kernel.block[0];
    (kernel.grid, kernel.block) = ([invocations, 1, 1], [1, 1, 1]);
    if let Some(meta) = &mut kernel.module.fns[kernel.kernel.index()].gpu_meta {
        meta.workgroup = kernel.block;
    }
    let emitter = SpirvEmitter { target: gpu.target(), sources: None };
    let blob = emitter.emit(&kernel.module, kernel.kernel).unwrap();
    let what = format!("seed {seed}, {shape:?}");
    validate(&what, bytes(&blob.code));

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
    run_kernel(&kernel.module, kernel.kernel, launch, &arguments, &mut views, &mut |_| {}).unwrap();
    let mut memory = vec![kernel.buffers[0].bytes.clone()];
    let size = LaunchSize { grid: kernel.grid, block: kernel.block };
    gpu.run_named(&blob, &mut memory, &[0], &scalars, size);
    let text = || magpie_mpir::print_module(&kernel.module);
    assert!(memory[0] == expected, "{what}: {:?} {expected:?}\n{}", memory[0], text());
}

#[test]
fn reducible_graphs() {
    let Some(gpu) = Gpu::open() else { return };
    for seed in 0..150 {
        check(&gpu, seed, GraphShape::Reducible, 4 + seed as usize % 40);
    }
}

#[test]
fn any_graphs() {
    let Some(gpu) = Gpu::open() else { return };
    for seed in 0..100 {
        check(&gpu, seed, GraphShape::Any, 4 + seed as usize % 12);
    }
}
