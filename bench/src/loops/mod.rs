//! The six loops that kernels on the CPU are measured with: as plain Rust, and as the kernels of
//! `examples/magpie`.

mod inputs;
mod magpie;
mod rust;

use crate::harness::{Benchmark, Contender, Work};

/// The peer in every race here: the plain Rust loop on all threads.
const PEER: &str = "rust";

const SAXPY_LEN: usize = 1 << 26;
const BLUR_SIZE: usize = 4096;
const NBODY_LEN: usize = 16_384;
const MANDELBROT_SIZE: usize = 2048;
const MANDELBROT_LIMIT: u32 = 256;
const REDUCTION_LEN: usize = 1 << 26;
const MATMUL_SIZE: usize = 1024;

pub(crate) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "saxpy",
        work: Work { amount: 12.0 * SAXPY_LEN as f64, unit: "B" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |threads| contenders(threads, rust::Saxpy::new, magpie::Saxpy::new),
    },
    Benchmark {
        name: "blur",
        work: Work { amount: (BLUR_SIZE * BLUR_SIZE) as f64, unit: "pixel" },
        peer: PEER,
        tolerance: 1e-6,
        contenders: |threads| contenders(threads, rust::Blur::new, magpie::Blur::new),
    },
    Benchmark {
        name: "nbody",
        work: Work { amount: (NBODY_LEN * NBODY_LEN) as f64, unit: "pair" },
        peer: PEER,
        tolerance: 1e-4,
        contenders: |threads| contenders(threads, rust::Nbody::new, magpie::Nbody::new),
    },
    Benchmark {
        name: "mandelbrot",
        work: Work { amount: (MANDELBROT_SIZE * MANDELBROT_SIZE) as f64, unit: "pixel" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |threads| contenders(threads, rust::Mandelbrot::new, magpie::Mandelbrot::new),
    },
    Benchmark {
        name: "reduction",
        work: Work { amount: 4.0 * REDUCTION_LEN as f64, unit: "B" },
        peer: PEER,
        tolerance: 1e-3,
        contenders: |threads| contenders(threads, rust::Reduction::new, magpie::Reduction::new),
    },
    Benchmark {
        name: "matmul",
        work: Work { amount: (2 * MATMUL_SIZE * MATMUL_SIZE * MATMUL_SIZE) as f64, unit: "flop" },
        peer: PEER,
        tolerance: 1e-4,
        contenders: |threads| contenders(threads, rust::Matmul::new, magpie::Matmul::new),
    },
];

/// A plain loop, or a kernel, with its data.
struct Named<D> {
    name: &'static str,
    data: D,
}

/// What differs from loop to loop.
trait Run {
    fn run(&mut self);
    fn checksum(&self) -> f64;
}

impl<D: Run> Contender for Named<D> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        self.data.run();
    }

    fn checksum(&self) -> f64 {
        self.data.checksum()
    }
}

/// The loop on all threads, on one when there are more, and the kernel. The CPU device always uses
/// all threads, so it takes part only when the loop may too.
fn contenders<L: Run + 'static, K: Run + 'static>(
    threads: usize,
    rust: fn(usize) -> L,
    kernel: fn() -> K,
) -> Vec<Box<dyn Contender>> {
    let mut contenders: Vec<Box<dyn Contender>> =
        vec![Box::new(Named { name: PEER, data: rust(threads) })];
    if threads > 1 {
        contenders.push(Box::new(Named { name: "rust, 1 thread", data: rust(1) }));
    }
    if threads == crate::all_threads() {
        contenders.push(Box::new(Named { name: "magpie", data: kernel() }));
    }
    contenders
}
