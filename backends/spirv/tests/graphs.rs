//! Kernels over random control-flow graphs, reducible and not, validated, run on the device and
//! compared with the reference interpreter.

mod support;

use magpie_gpu_spirv::SpirvEmitter;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::testing::{GraphShape, RandomArgument, random_graph_kernel};
use magpie_rt::gpu::LaunchSize;
use support::{Gpu, bytes, validate};

fn check(gpu: &Gpu, seed: u64, shape: GraphShape, nodes: usize) {
    let kernel = random_graph_kernel(seed, shape, nodes);
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

#[test]
#[ignore]
fn zz_min() {
    let Some(gpu) = Gpu::open() else { return };
    std::panic::set_hook(Box::new(|_| {}));
    let mut total = 0;
    let mut bad = 0;
    for nodes in 2..24 {
        for seed in 0..60 {
            total += 1;
            let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                check(&gpu, seed, GraphShape::Reducible, nodes)
            }));
            if r.is_err() {
                bad += 1;
                println!("nodes {nodes} seed {seed}");
                if bad > 12 {
                    return;
                }
            }
        }
    }
    println!("{bad} of {total}");
}

#[test]
#[ignore]
fn zz_show() {
    let kernel = random_graph_kernel(21, GraphShape::Reducible, 6);
    println!("{}", magpie_mpir::print_module(&kernel.module));
    let gpu = Gpu::open().unwrap();
    let emitter = SpirvEmitter { target: gpu.target(), sources: None };
    let blob = emitter.emit(&kernel.module, kernel.kernel).unwrap();
    std::fs::write("/tmp/k.spv", bytes(&blob.code)).unwrap();
    let mut f = kernel.module.func(kernel.kernel).clone();
    let body = magpie_gpu::structurize::structurize(&mut f, &kernel.module.types).unwrap();
    println!("{}", magpie_mpir::print_fn(&kernel.module, &f));
    let mut d = 0usize;
    body.walk(|e| {
        use magpie_gpu::structurize::Event::*;
        if matches!(e, Else | EndIf | EndLoop | EndCase | EndSwitch | Continuing { .. }) {
            d -= 1;
        }
        println!("{}{e:?}", "  ".repeat(d));
        if matches!(
            e,
            If { .. }
                | Else
                | Loop { .. }
                | Switch { .. }
                | Case { .. }
                | Default
                | Continuing { .. }
        ) {
            d += 1;
        }
    });
}

#[test]
#[ignore]
fn zz_run() {
    let kernel = random_graph_kernel(21, GraphShape::Reducible, 6);
    let gpu = Gpu::open().unwrap();
    let emitter = SpirvEmitter { target: gpu.target(), sources: None };
    let mut blob = emitter.emit(&kernel.module, kernel.kernel).unwrap();
    let file = std::env::var("SPV").unwrap();
    blob.code = magpie_types::kernel::BlobCode::Bytes(std::fs::read(file).unwrap());
    let mut scalars = vec![0; blob.layout.scalar_size as usize];
    scalars[..4].copy_from_slice(&21u32.to_le_bytes());
    let mut memory = vec![kernel.buffers[0].bytes.clone()];
    gpu.run_named(
        &blob,
        &mut memory,
        &[0],
        &scalars,
        LaunchSize { grid: kernel.grid, block: kernel.block },
    );
    println!(
        "OUT {:?}",
        memory[0].chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect::<Vec<_>>()
    );
}
