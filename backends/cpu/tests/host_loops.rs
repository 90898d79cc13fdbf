//! Random loops over memory mean the same before and after the passes for the host: what they
//! return, what they leave in memory, and which index ends the program.

mod host_support;

use host_support::Process;
use magpie_codegen_cpu::{HostCode, compile_host};
use magpie_diag::{FileId, Span};
use magpie_mpir::passes::Pipeline;
use magpie_mpir::testing::{LoopProgram, Rng, random_loop};
use magpie_mpir::{
    Flags, FnId, Module, MpirFn, Op, Stage, Terminator, parse, print_module, verify_module,
};
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, fixed};
use std::ffi::c_void;

/// Programs of the usual run.
const PROGRAMS: u64 = 400;
/// Runs of each, with other numbers of rounds and other places in memory.
const RUNS: u64 = 6;
/// Words of each block of memory.
const WORDS: usize = 96;

/// Three arrays, of which the first two lie in one block of memory, the numbers of their elements,
/// and the first and last counter.
#[derive(Clone, Copy, Debug)]
struct Arguments {
    offsets: [usize; 3],
    lengths: [i64; 3],
    from: i64,
    to: i64,
}

type Blocks = [Vec<u64>; 2];
type Entry = extern "C" fn(*mut c_void, *mut c_void, *mut c_void, i64, i64, i64, i64, i64) -> i64;

fn arguments(rng: &mut Rng, program: &LoopProgram) -> Arguments {
    let sizes = [program.first.size(), program.first.size(), program.second.size()];
    let rounds = if rng.chance(70) { 24 } else { 90 };
    let from = rng.below(4) as i64;
    let to = from + rng.below(rounds) as i64;
    let offsets = sizes.map(|size| rng.below(12) * size as usize);
    let lengths = sizes.map(|size| {
        let room = (WORDS as i64 * 8 - 12 * i64::from(size)) / i64::from(size);
        // Near the last index, so that some checks fail in the middle.
        let near = to + 6 - rng.below(9) as i64;
        if rng.chance(50) { room } else { near.clamp(0, room) }
    });
    Arguments { offsets, lengths, from, to }
}

/// Memory of random elements: few different ones, so that comparisons go both ways.
fn memory(rng: &mut Rng, program: &LoopProgram) -> Blocks {
    [program.first, program.second].map(|p| {
        let size = p.size() as usize;
        let element = |rng: &mut Rng| match p {
            PrimType::F32 => u64::from((rng.below(64) as f32 * 0.75 - 20.0).to_bits()),
            PrimType::F64 => (rng.below(64) as f64 * 0.75 - 20.0).to_bits(),
            PrimType::Bool => rng.below(2) as u64,
            _ if rng.chance(30) => rng.bits(),
            _ => (rng.below(32) as u64).wrapping_sub(8),
        };
        let mut words = Vec::with_capacity(WORDS);
        for _ in 0..WORDS {
            let bytes = (0..8 / size).flat_map(|_| {
                let bytes = element(rng).to_le_bytes();
                bytes.into_iter().take(size)
            });
            let bytes: Vec<u8> = bytes.collect();
            words.push(u64::from_le_bytes(bytes.try_into().unwrap()));
        }
        words
    })
}

fn run(code: &HostCode, main: FnId, arguments: Arguments, blocks: &mut Blocks) -> i64 {
    let Arguments { offsets, lengths, from, to } = arguments;
    let [a, b, c] = [(0, 0), (0, 1), (1, 2)].map(|(block, n): (usize, usize)| {
        let start = blocks[block].as_mut_ptr().cast::<u8>();
        start.wrapping_add(offsets[n]).cast::<c_void>()
    });
    // SAFETY: the function was compiled with these parameters and this result, and the lengths are
    // such that all that passes its checks lies in the blocks.
    let entry: Entry = unsafe { std::mem::transmute(code.address(main).unwrap()) };
    entry(a, b, c, lengths[0], lengths[1], lengths[2], from, to)
}

/// The upper bits of what a program returns when a check fails.
const FAILED: i64 = 0x5eed << 48;

/// Makes checks that fail return instead of ending the process: a number for the index and the
/// length.
fn return_at_ends(f: &mut MpirFn) {
    for b in f.block_ids() {
        let last = f.block(b).insts.last().copied();
        let Some(end) = last.filter(|&i| f.inst(i).op == Op::RtRaw) else { continue };
        assert_eq!(f.inst(end).rt(), RtFn::PanicBuiltin);
        f.block_mut(b).insts.pop();
        let (index, length) = (f.arg(end, 2), f.arg(end, 3));
        let [factor, failed] = [1 << 20, FAILED as u64].map(|n| f.const_bits(fixed::I64, n));
        let mut emit =
            |op, x, y| f.append(b, op, Flags::NONE, fixed::I64, &[x, y], 0, Span::NONE).unwrap();
        let scaled = emit(Op::IMul, index, factor);
        let both = emit(Op::IAdd, scaled, length);
        let number = emit(Op::IXor, both, failed);
        f.block_mut(b).term = Terminator::Ret(Some(number));
    }
}

/// Elements as they are compared: which NaN it is does not matter.
fn elements(p: PrimType, words: &[u64]) -> Vec<u64> {
    let halves = |w: &u64| [*w as u32, (*w >> 32) as u32];
    match p {
        PrimType::F32 => words
            .iter()
            .flat_map(halves)
            .map(|bits| if f32::from_bits(bits).is_nan() { u64::MAX } else { bits.into() })
            .collect(),
        PrimType::F64 => words
            .iter()
            .map(|&bits| if f64::from_bits(bits).is_nan() { u64::MAX } else { bits })
            .collect(),
        _ => words.to_vec(),
    }
}

fn compile(module: &Module, main: FnId) -> HostCode {
    compile_host(module, &[main], &mut Process(&module.types)).expect("compiles")
}

fn verify(module: &Module, what: &str) {
    if let Err(faults) = verify_module(module, Stage::Core) {
        panic!("{what}: {}\n{}", faults[0].message, print_module(module));
    }
}

/// More programs: `MAGPIE_SEEDS=10000 cargo test -p magpie_codegen_cpu --test host_loops`.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let start = number("MAGPIE_FIRST_SEED").unwrap_or(0);
    start..start + number("MAGPIE_SEEDS").unwrap_or(PROGRAMS)
}

/// The same in code for any processor of the architecture: vectors then do without many instructions.
#[test]
fn older_processors_preserve_loops() {
    let this = std::env::current_exe().unwrap();
    let mut again = std::process::Command::new(this);
    again.args(["--exact", "passes_preserve_loops"]).env("MAGPIE_CPU", "baseline");
    let ended = again.output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn passes_preserve_loops() {
    let (mut on_vectors, mut failed, mut programs) = (0, 0, 0);
    for seed in seeds() {
        let program = random_loop(seed);
        let mut plain = parse(&program.text, FileId(0)).unwrap_or_else(|errors| {
            panic!("seed {seed}: {}\n{}", errors[0].message, program.text)
        });
        verify(&plain, &format!("seed {seed}"));
        let main = plain.find_fn("@main").unwrap();
        let mut widened = plain.clone();
        Pipeline::new().optimize_host(&mut widened);
        verify(&widened, &format!("seed {seed}, optimised"));
        programs += 1;
        on_vectors += usize::from(print_module(&widened).contains("vec<"));
        return_at_ends(&mut plain.fns[main.index()]);
        return_at_ends(&mut widened.fns[main.index()]);
        let codes = [&plain, &widened].map(|module| compile(module, main));
        let mut rng = Rng::new(seed);
        for _ in 0..RUNS {
            let arguments = arguments(&mut rng, &program);
            let before = memory(&mut rng, &program);
            let [wanted, got] = [0, 1].map(|n: usize| {
                let mut blocks = before.clone();
                let result = run(&codes[n], main, arguments, &mut blocks);
                let first = elements(program.first, &blocks[0]);
                (result, first, elements(program.second, &blocks[1]))
            });
            failed += usize::from(wanted.0 >> 48 == FAILED >> 48);
            assert!(
                wanted == got,
                "seed {seed}, {arguments:?}: {} and {}\n{}\n{}",
                wanted.0,
                got.0,
                program.text,
                print_module(&widened)
            );
        }
    }
    // What is tested is there.
    assert!(4 * on_vectors > programs, "{on_vectors} of {programs} programs on vectors");
    assert!(failed > programs / 4, "{failed} runs of {programs} programs failed");
}
