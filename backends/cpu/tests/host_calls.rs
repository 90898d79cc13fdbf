//! Random functions that call themselves and each other mean the same as machine code before and
//! after the passes for the host.

mod host_support;

use host_support::Process;
use magpie_codegen_cpu::compile_host;
use magpie_diag::FileId;
use magpie_mpir::passes::{Pipeline, lower_arc, lower_host};
use magpie_mpir::testing::random_calls;
use magpie_mpir::{Module, Stage, parse, print_module, verify_module};

/// Programs of the usual run.
const PROGRAMS: u64 = 400;

fn verify(module: &Module, seed: u64) {
    if let Err(faults) = verify_module(module, Stage::Core) {
        panic!("seed {seed}: {}\n{}", faults[0].message, print_module(module));
    }
}

/// What `@main` returns for some arguments.
fn results(module: &Module) -> Vec<i64> {
    let main = module.find_fn("@main").unwrap();
    let code = compile_host(module, &[main], &mut Process(&module.types)).expect("compiles");
    // SAFETY: `@main` takes two numbers and returns one; the code is kept until the end.
    let main: extern "C" fn(i64, i64) -> i64 =
        unsafe { std::mem::transmute(code.address(main).unwrap()) };
    let arguments = (0..7).flat_map(|fuel| [-3, 0, 1, 10].map(|a| (fuel, a)));
    arguments.map(|(fuel, a)| main(fuel, a)).collect()
}

/// More programs: `MAGPIE_SEEDS=10000 cargo test -p magpie_codegen_cpu --test host_calls`.
#[test]
fn passes_preserve_calls() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first = number("MAGPIE_FIRST_SEED").unwrap_or(0);
    let (mut loops, mut programs) = (0, 0);
    for seed in first..first + number("MAGPIE_SEEDS").unwrap_or(PROGRAMS) {
        let text = random_calls(seed);
        let mut module = parse(&text, FileId(0))
            .unwrap_or_else(|errors| panic!("seed {seed}: {}\n{text}", errors[0].message));
        verify(&module, seed);
        lower_arc(&mut module);
        lower_host(&mut module, &|_| None);
        verify(&module, seed);
        let wanted = results(&module);
        let calls = |m: &Module| print_module(m).matches(" = call fn=").count();
        let before = calls(&module);
        Pipeline::new().optimize_host(&mut module);
        verify(&module, seed);
        let got = results(&module);
        assert!(
            wanted == got,
            "seed {seed}: {wanted:?} {got:?}\n{text}\n{}",
            print_module(&module)
        );
        programs += 1;
        loops += usize::from(calls(&module) < before);
    }
    // What is tested is there.
    assert!(2 * loops > programs, "{loops} of {programs} programs have fewer calls");
}
