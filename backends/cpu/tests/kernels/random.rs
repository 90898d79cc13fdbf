//! Random kernels through the passes that the driver runs, against the interpreter on the kernel as
//! it was made.

use super::interpret;
use super::support::{Case, execute};
use magpie_codegen_cpu::lower_kernel;
use magpie_interp::Argument;
use magpie_mpir::analysis::LaunchFacts;
use magpie_mpir::passes::{
    PassContext, Pipeline, elide_bounds_checks, inline_calls, preconditions,
};
use magpie_mpir::testing::{KernelConfig, RandomArgument, RandomKernel, random_kernel};
use magpie_mpir::{Module, MpirFn, print_module};
use std::ops::Range;

/// A module with the bodies of a kernel as the back end takes them.
fn lowered(kernel: &RandomKernel) -> Vec<Module> {
    let mut module = kernel.module.clone();
    let mut errors = Vec::new();
    inline_calls(&mut module, &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    let mut pipeline = Pipeline::new();
    pipeline.optimize_device(&mut module, kernel.kernel);
    let mut ctx = PassContext::new();
    let mut robust = module.func(kernel.kernel).clone();
    pipeline.unroll_barriers(&module, &mut robust);
    elide_bounds_checks(&mut robust, &module.types, LaunchFacts::default(), &mut ctx);
    let facts = LaunchFacts::of(&robust);
    let unchecked = preconditions(&robust, &module.types, facts, &mut ctx);
    // Whether a launch meets the preconditions is for the runtime to say; a body without any is
    // for every launch of this size.
    let free = unchecked.filter(|u| u.preconditions.is_empty()).map(|u| u.body);
    let mut lower = |mut body: MpirFn| {
        lower_kernel(&module, &mut body, &mut pipeline);
        let mut lowered = module.clone();
        lowered.fns[kernel.kernel.index()] = body;
        lowered
    };
    std::iter::once(robust).chain(free).map(&mut lower).collect()
}

fn check(seeds: Range<u64>, config: &KernelConfig) {
    for seed in seeds {
        let kernel = random_kernel(seed, config);
        let arguments: Vec<Argument> = kernel
            .arguments
            .iter()
            .map(|a| match a {
                RandomArgument::Buffer(n) => Argument::Buffer(*n),
                RandomArgument::Scalar(bytes) => Argument::Scalar(bytes.clone()),
            })
            .collect();
        let buffers: Vec<Vec<u8>> = kernel.buffers.iter().map(|b| b.bytes.clone()).collect();
        let case = Case {
            grid: kernel.grid,
            block: kernel.block,
            arguments: &arguments,
            buffers: &buffers,
        };
        let expected = interpret(&kernel.module, kernel.kernel, &case);
        for body in lowered(&kernel) {
            let got = execute(&body, kernel.kernel, &case);
            for (n, buffer) in kernel.buffers.iter().enumerate() {
                let at = buffer.first_difference(&kernel.module.types, &got[n], &expected[n]);
                let text = || print_module(&kernel.module);
                assert!(at.is_none(), "seed {seed}: buffer {n}, element {at:?}\n{}", text());
            }
        }
    }
}

#[test]
fn everything() {
    let all = KernelConfig { subgroups: true, ..KernelConfig::all() };
    check(0..150, &all);
}

#[test]
fn what_runs_in_lanes() {
    let config = KernelConfig {
        local_memory: false,
        atomics: false,
        calls: false,
        ..KernelConfig::portable()
    };
    check(1000..1150, &config);
    check(2000..2100, &KernelConfig { size: 200, control_flow: false, ..config });
}

#[test]
fn subgroups() {
    let config = KernelConfig { subgroups: true, size: 30, ..KernelConfig::portable() };
    check(3000..3150, &config);
}
