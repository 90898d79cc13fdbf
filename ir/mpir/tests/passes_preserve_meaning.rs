//! Random kernels mean the same before and after every pass, by the reference interpreter.

use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::analysis::{Cfg, Dominators, LaunchFacts, Loops, Uniformity};
use magpie_mpir::passes::*;
use magpie_mpir::testing::{KernelConfig, RandomArgument, RandomKernel, random_kernel};
use magpie_mpir::{Inst, Module, MpirFn, Op, Stage, print_module, verify_module};
use magpie_types::TypeCtx;

type Pass = fn(&mut MpirFn, &TypeCtx, &mut PassContext) -> bool;

/// Every pass on one function. Each is tried alone and after all that stand before it.
const PASSES: &[(&str, Pass)] = &[
    ("simplify_cfg", |f, _, ctx| simplify_cfg(f, ctx)),
    ("fold", fold),
    ("gvn", gvn),
    ("sccp", |f, _, ctx| sccp(f, ctx)),
    ("dce", |f, _, ctx| dce(f, ctx)),
    ("if_convert", |f, _, ctx| if_convert(f, ctx)),
    ("if_convert_loops", |f, _, ctx| if_convert_loops(f, ctx)),
    ("insert_preheaders", |f, _, ctx| insert_preheaders(f, ctx)),
    ("licm", licm),
    ("unroll", |f, _, ctx| unroll(f, ctx)),
    ("unroll_barriers", |f, _, ctx| unroll_barriers(f, ctx)),
    ("lower_structs", lower_structs),
    ("lower_vectors", lower_vectors),
    ("compact", |f, _, _| {
        f.compact(|_| true);
        true
    }),
    ("elide_bounds_checks", |f, types, ctx| elide_bounds_checks(f, types, LaunchFacts::of(f), ctx)),
    ("lower_bounds_checks", |f, types, ctx| lower_bounds_checks(f, types, IndexWidth::Bits64, ctx)),
];

fn run(k: &RandomKernel, module: &Module) -> Result<Vec<Vec<u8>>, String> {
    let mut contents: Vec<Vec<u8>> = k.buffers.iter().map(|b| b.bytes.clone()).collect();
    let arguments: Vec<Argument> = k
        .arguments
        .iter()
        .map(|a| match a {
            RandomArgument::Buffer(n) => Argument::Buffer(*n),
            RandomArgument::Scalar(bytes) => Argument::Scalar(bytes.clone()),
        })
        .collect();
    let mut buffers: Vec<Buffer> = contents.iter_mut().map(|bytes| Buffer { bytes }).collect();
    let launch = Launch { max_steps: 1 << 20, ..Launch::new(k.grid, k.block) };
    run_kernel(module, k.kernel, launch, &arguments, &mut buffers, &mut |_| {})
        .map_err(|fault| fault.message)?;
    Ok(contents)
}

fn check(k: &RandomKernel, wanted: &[Vec<u8>], module: &Module, what: &str) {
    if let Err(faults) = verify_module(module, Stage::Core) {
        let faults: Vec<String> = faults.iter().map(|d| d.message.clone()).collect();
        panic!("{what} breaks the rules:\n{}\n{}", faults.join("\n"), print_module(module));
    }
    if let Some(broken) = broken_law(module.func(k.kernel), &module.types) {
        panic!("{what}: {broken}\n{}\n{}", print_module(&k.module), print_module(module));
    }
    let got = match run(k, module) {
        Ok(got) => got,
        Err(fault) => panic!("{what}: {fault}\n{}", print_module(module)),
    };
    for (n, buffer) in k.buffers.iter().enumerate() {
        if let Some(at) = buffer.first_difference(&module.types, &wanted[n], &got[n]) {
            panic!(
                "{what}: element {at} of buffer {n} differs\nbefore:\n{}\nafter:\n{}",
                print_module(&k.module),
                print_module(module)
            );
        }
    }
}

/// What no pass may do to a kernel that is reducible and has all barriers in uniform control flow.
fn broken_law(f: &MpirFn, types: &TypeCtx) -> Option<&'static str> {
    let cfg = Cfg::new(f);
    if !Loops::new(&cfg, &Dominators::new(&cfg)).is_reducible() {
        return Some("irreducible control flow");
    }
    let uniformity = Uniformity::new(f, types, &cfg);
    let is_barrier = |&i: &Inst| f.inst(i).op == Op::GpuBarrier;
    let divided = cfg
        .rpo()
        .iter()
        .any(|&b| !uniformity.is_uniform_block(b) && f.block(b).insts.iter().any(is_barrier));
    divided.then_some("a barrier in divergent control flow")
}

fn check_seed(seed: u64, config: &KernelConfig) {
    let k = random_kernel(seed, config);
    if let Err(faults) = verify_module(&k.module, Stage::Core) {
        panic!("seed {seed}: {}\n{}", faults[0].message, print_module(&k.module));
    }
    assert_eq!(broken_law(k.module.func(k.kernel), &k.module.types), None, "seed {seed}");
    let wanted = match run(&k, &k.module) {
        Ok(wanted) => wanted,
        Err(fault) => panic!("seed {seed}: {fault}\n{}", print_module(&k.module)),
    };
    let mut closed = k.module.clone();
    let mut errors = Vec::new();
    inline_calls(&mut closed, &mut errors);
    assert!(errors.is_empty());
    check(&k, &wanted, &closed, &format!("seed {seed}, inline_calls"));

    let mut ctx = PassContext::new();
    let mut all = closed.clone();
    for &(name, pass) in PASSES {
        let mut alone = closed.clone();
        let f = &mut alone.fns[k.kernel.index()];
        if pass(f, &closed.types, &mut ctx) {
            check(&k, &wanted, &alone, &format!("seed {seed}, {name}"));
        }
        if pass(&mut all.fns[k.kernel.index()], &closed.types, &mut ctx) {
            check(&k, &wanted, &all, &format!("seed {seed}, all passes up to {name}"));
        }
    }

    let mut optimized = closed.clone();
    let mut pipeline = Pipeline::new();
    pipeline.optimize_device(&mut optimized, k.kernel);
    check(&k, &wanted, &optimized, &format!("seed {seed}, the pipeline"));
    let mut f = optimized.func(k.kernel).clone();
    pipeline.lower_bounds_checks(&optimized, &mut f, IndexWidth::Bits32);
    optimized.fns[k.kernel.index()] = f;
    check(&k, &wanted, &optimized, &format!("seed {seed}, the pipeline and checks"));
}

/// More seeds: `MAGPIE_SEEDS=100000 cargo test -p magpie_mpir --test passes_preserve_meaning`.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("MAGPIE_SEEDS").ok().and_then(|n| n.parse().ok());
    let start = std::env::var("MAGPIE_FIRST_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    start..start + wanted.unwrap_or(usual)
}

#[test]
fn everything() {
    seeds(300).for_each(|seed| check_seed(seed, &KernelConfig::all()));
}

#[test]
fn control_flow() {
    let config = KernelConfig {
        types: vec![magpie_types::PrimType::I32, magpie_types::PrimType::U8],
        size: 120,
        depth: 5,
        vectors: false,
        structs: false,
        ..KernelConfig::all()
    };
    seeds(200).for_each(|seed| check_seed(seed, &config));
}

#[test]
fn large_kernels() {
    let config = KernelConfig { size: 1500, depth: 6, ..KernelConfig::all() };
    seeds(6).for_each(|seed| check_seed(seed, &config));
}
