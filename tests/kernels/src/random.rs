//! Random kernels, compiled through the whole pipeline, checked, run and compared with the reference
//! interpreter on the kernel as it was made.

use crate::Subject;
use magpie_gpu::compile::BodyCompiler;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::analysis::LaunchFacts;
use magpie_mpir::passes::{
    PassContext, Pipeline, elide_bounds_checks, inline_calls, preconditions,
};
use magpie_mpir::testing::{KernelConfig, RandomArgument, RandomKernel, random_kernel};
use magpie_rt::gpu::LaunchSize;
use magpie_types::kernel::{KernelBlob, ParamLayout};

/// The blob of a kernel, made by the passes that the driver runs.
fn compile<C: BodyCompiler>(compiler: &C, kernel: &RandomKernel) -> KernelBlob {
    let mut module = kernel.module.clone();
    let mut errors = Vec::new();
    inline_calls(&mut module, &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    Pipeline::new().optimize_device(&mut module, kernel.kernel);
    let types = &module.types;
    let mut ctx = PassContext::new();
    let mut robust = module.func(kernel.kernel).clone();
    elide_bounds_checks(&mut robust, types, LaunchFacts::default(), &mut ctx);
    // The launch has the declared workgroup size.
    let unchecked = preconditions(&robust, types, LaunchFacts::of(&robust), &mut ctx);
    let emitted = compiler.emit_bodies(&robust, unchecked.as_ref(), types);
    emitted.unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn expected(kernel: &RandomKernel, subgroup_size: u32) -> Vec<Vec<u8>> {
    let arguments: Vec<Argument> = kernel
        .arguments
        .iter()
        .map(|a| match a {
            RandomArgument::Buffer(n) => Argument::Buffer(*n),
            RandomArgument::Scalar(bytes) => Argument::Scalar(bytes.clone()),
        })
        .collect();
    let mut memory: Vec<Vec<u8>> = kernel.buffers.iter().map(|b| b.bytes.clone()).collect();
    let mut views: Vec<Buffer> = memory.iter_mut().map(|bytes| Buffer { bytes }).collect();
    let launch = Launch { subgroup_size, ..Launch::new(kernel.grid, kernel.block) };
    let ran =
        run_kernel(&kernel.module, kernel.kernel, launch, &arguments, &mut views, &mut |_| {});
    ran.expect("the interpreter runs it");
    memory
}

/// Compiles, checks, runs and compares the kernel of a seed.
pub fn check<C: BodyCompiler>(subject: &Subject<'_, C>, seed: u64, config: &KernelConfig) {
    let kernel = random_kernel(seed, config);
    let blob = compile(&subject.compiler, &kernel);
    let what = format!("seed {seed}");
    subject.check(&what, &blob);
    let Some(gpu) = subject.gpu else { return };
    let mut memory: Vec<Vec<u8>> = kernel.buffers.iter().map(|b| b.bytes.clone()).collect();
    let mut scalars = vec![0; blob.layout.scalar_size as usize];
    let mut named = Vec::new();
    for (argument, param) in kernel.arguments.iter().zip(&blob.layout.params) {
        match (argument, param) {
            (RandomArgument::Buffer(n), _) => named.push(*n),
            (RandomArgument::Scalar(bytes), ParamLayout::Scalar { offset, .. }) => {
                scalars[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            (RandomArgument::Scalar(_), ParamLayout::Buffer(_)) => panic!("a scalar is a buffer"),
        }
    }
    let size = LaunchSize { grid: kernel.grid, block: kernel.block };
    gpu.run_named(&blob, &mut memory, &named, &scalars, size);
    let expected = expected(&kernel, subject.subgroup_size());
    for (n, buffer) in kernel.buffers.iter().enumerate() {
        let types = &kernel.module.types;
        if let Some(at) = buffer.first_difference(types, &memory[n], &expected[n]) {
            let stride = types.stride(buffer.element) as usize;
            let element = |m: &Vec<u8>| m[at * stride..][..stride].to_vec();
            let text = magpie_mpir::print_module(&kernel.module);
            let (got, wanted) = (element(&memory[n]), element(&expected[n]));
            let name = &subject.name;
            panic!(
                "{what} for {name}: buffer {n}[{at}]: {got:02x?} instead of {wanted:02x?}\n{text}"
            );
        }
    }
}
