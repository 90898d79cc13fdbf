//! Random kernels, compiled through the whole pipeline, validated, run on the device and compared
//! with the reference interpreter on the kernel as it was made.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::analysis::LaunchFacts;
use magpie_mpir::passes::{
    PassContext, Pipeline, elide_bounds_checks, inline_calls, preconditions,
};
use magpie_mpir::testing::{
    KernelConfig, RandomArgument, RandomKernel, has_exact_result, random_kernel,
};
use magpie_rt::gpu::LaunchSize;
use magpie_types::kernel::{DeviceFeatures, KernelBlob, ParamLayout};
use support::{Gpu, bytes, validate};

/// The blob of a kernel, made by the passes that the driver runs.
fn compile(kernel: &RandomKernel, target: SpirvTarget) -> KernelBlob {
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
    let emitter = SpirvEmitter { target, sources: None };
    emitter.emit_bodies(&robust, unchecked.as_ref(), types).unwrap()
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
    run_kernel(&kernel.module, kernel.kernel, launch, &arguments, &mut views, &mut |_| {}).unwrap();
    memory
}

fn check(gpu: &Gpu, target: SpirvTarget, seed: u64, config: &KernelConfig) {
    let kernel = random_kernel(seed, config);
    let blob = compile(&kernel, target);
    let what = format!("seed {seed} for {:?}", target.features.names());
    validate(&what, bytes(&blob.code));
    if let Some(code) = &blob.unchecked {
        validate(&what, bytes(code));
    }
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
    let expected = expected(&kernel, gpu.subgroup_size());
    for (n, buffer) in kernel.buffers.iter().enumerate() {
        let types = &kernel.module.types;
        if let Some(at) = buffer.first_difference(types, &memory[n], &expected[n]) {
            let stride = types.stride(buffer.element) as usize;
            let element = |m: &Vec<u8>| m[at * stride..][..stride].to_vec();
            let text = magpie_mpir::print_module(&kernel.module);
            let (got, wanted) = (element(&memory[n]), element(&expected[n]));
            panic!("{what}: buffer {n}[{at}]: {got:02x?} instead of {wanted:02x?}\n{text}");
        }
    }
}

/// Operations whose result Vulkan fixes.
fn config() -> KernelConfig {
    KernelConfig { ops: has_exact_result, ..KernelConfig::all() }
}

#[test]
fn random_kernels_do_what_the_interpreter_does() {
    let Some(gpu) = Gpu::open() else { return };
    for seed in 0..100 {
        check(&gpu, gpu.target(), seed, &config());
    }
}

#[test]
fn random_kernels_on_a_device_without_small_types() {
    let Some(gpu) = Gpu::open() else { return };
    let small = DeviceFeatures::INT8 | DeviceFeatures::INT16 | DeviceFeatures::FLOAT16;
    let target = gpu.target();
    let target = SpirvTarget { features: target.features.minus(small), ..target };
    for seed in 1000..1050 {
        check(&gpu, target, seed, &config());
    }
}

#[test]
fn random_kernels_of_nothing_but_control_flow() {
    let Some(gpu) = Gpu::open() else { return };
    let config = KernelConfig { size: 200, depth: 6, ..KernelConfig::portable() };
    for seed in 2000..2050 {
        check(&gpu, gpu.target(), seed, &config);
    }
}

#[test]
fn random_kernels_with_subgroups() {
    let Some(gpu) = Gpu::open() else { return };
    let config = KernelConfig { subgroups: true, ..KernelConfig::portable() };
    // How invocations of a workgroup with several dimensions form subgroups is up to the device.
    let is_linear = |&seed: &u64| random_kernel(seed, &config).block[1..] == [1, 1];
    for seed in (3000..3150).filter(is_linear) {
        check(&gpu, gpu.target(), seed, &config);
    }
}
