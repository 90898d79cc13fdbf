//! The six loops that kernels on the CPU are measured with.

use crate::harness::{Benchmark, Contender, Work};
use crate::peers::{blur, mandelbrot, matmul, nbody, numbers, reduction, saxpy};

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
        contenders: |threads| on_threads(threads, Saxpy::new),
    },
    Benchmark {
        name: "blur",
        work: Work { amount: (BLUR_SIZE * BLUR_SIZE) as f64, unit: "pixel" },
        peer: PEER,
        tolerance: 1e-6,
        contenders: |threads| on_threads(threads, Blur::new),
    },
    Benchmark {
        name: "nbody",
        work: Work { amount: (NBODY_LEN * NBODY_LEN) as f64, unit: "pair" },
        peer: PEER,
        tolerance: 1e-4,
        contenders: |threads| on_threads(threads, Nbody::new),
    },
    Benchmark {
        name: "mandelbrot",
        work: Work { amount: (MANDELBROT_SIZE * MANDELBROT_SIZE) as f64, unit: "pixel" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |threads| on_threads(threads, Mandelbrot::new),
    },
    Benchmark {
        name: "reduction",
        work: Work { amount: 4.0 * REDUCTION_LEN as f64, unit: "B" },
        peer: PEER,
        tolerance: 1e-3,
        contenders: |threads| on_threads(threads, Reduction::new),
    },
    Benchmark {
        name: "matmul",
        work: Work { amount: (2 * MATMUL_SIZE * MATMUL_SIZE * MATMUL_SIZE) as f64, unit: "flop" },
        peer: PEER,
        tolerance: 1e-4,
        contenders: |threads| on_threads(threads, Matmul::new),
    },
];

/// A plain loop with its data.
struct Loop<D> {
    name: &'static str,
    threads: usize,
    data: D,
}

/// What differs from loop to loop.
trait Run {
    fn run(&mut self, threads: usize);
    fn checksum(&self) -> f64;
}

impl<D: Run> Contender for Loop<D> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        self.data.run(self.threads);
    }

    fn checksum(&self) -> f64 {
        self.data.checksum()
    }
}

/// The loop on all threads, and on one when there are more.
fn on_threads<D: Run + 'static>(threads: usize, data: fn() -> D) -> Vec<Box<dyn Contender>> {
    let mut contenders: Vec<Box<dyn Contender>> =
        vec![Box::new(Loop { name: PEER, threads, data: data() })];
    if threads > 1 {
        contenders.push(Box::new(Loop { name: "rust, 1 thread", threads: 1, data: data() }));
    }
    contenders
}

fn total(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}

struct Saxpy {
    x: Vec<f32>,
    y: Vec<f32>,
    factor: f32,
}

impl Saxpy {
    fn new() -> Saxpy {
        // Few enough digits that no run rounds.
        let coarse = |seed| -> Vec<f32> {
            numbers(SAXPY_LEN, seed).into_iter().map(|n| (n * 256.0).round() / 256.0).collect()
        };
        Saxpy { x: coarse(1), y: coarse(2), factor: 0.0 }
    }
}

impl Run for Saxpy {
    fn run(&mut self, threads: usize) {
        // Turning the sign brings `y` back with every second run, so that it does not grow.
        self.factor = if self.factor > 0.0 { -0.5 } else { 0.5 };
        saxpy::saxpy(self.factor, &self.x, &mut self.y, threads);
    }

    fn checksum(&self) -> f64 {
        let factor = if self.factor > 0.0 { 0.5 } else { 0.0 };
        total(&self.y) - factor * total(&self.x)
    }
}

struct Blur {
    input: Vec<f32>,
    weights: [f32; blur::SIZE * blur::SIZE],
    output: Vec<f32>,
}

impl Blur {
    fn new() -> Blur {
        let row = [1.0, 4.0, 6.0, 4.0, 1.0];
        Blur {
            input: numbers(BLUR_SIZE * BLUR_SIZE, 3),
            weights: std::array::from_fn(|i| row[i / blur::SIZE] * row[i % blur::SIZE] / 256.0),
            output: vec![0.0; BLUR_SIZE * BLUR_SIZE],
        }
    }
}

impl Run for Blur {
    fn run(&mut self, threads: usize) {
        blur::blur(&self.input, BLUR_SIZE, &self.weights, &mut self.output, threads);
    }

    fn checksum(&self) -> f64 {
        self.output.iter().map(|&pixel| f64::from(pixel.abs())).sum()
    }
}

struct Nbody {
    bodies: Vec<[f32; 4]>,
    accelerations: Vec<[f32; 4]>,
}

impl Nbody {
    fn new() -> Nbody {
        let bodies = numbers(4 * NBODY_LEN, 4);
        Nbody {
            bodies: bodies.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3].abs()]).collect(),
            accelerations: vec![[0.0; 4]; NBODY_LEN],
        }
    }
}

impl Run for Nbody {
    fn run(&mut self, threads: usize) {
        nbody::accelerations(&self.bodies, &mut self.accelerations, threads);
    }

    fn checksum(&self) -> f64 {
        self.accelerations.iter().flatten().map(|&part| f64::from(part.abs())).sum()
    }
}

struct Mandelbrot {
    steps: Vec<u32>,
}

impl Mandelbrot {
    fn new() -> Mandelbrot {
        Mandelbrot { steps: vec![0; MANDELBROT_SIZE * MANDELBROT_SIZE] }
    }
}

impl Run for Mandelbrot {
    fn run(&mut self, threads: usize) {
        mandelbrot::mandelbrot(MANDELBROT_SIZE, MANDELBROT_LIMIT, &mut self.steps, threads);
    }

    fn checksum(&self) -> f64 {
        self.steps.iter().map(|&steps| f64::from(steps)).sum()
    }
}

struct Reduction {
    numbers: Vec<f32>,
    sum: f32,
}

impl Reduction {
    fn new() -> Reduction {
        let numbers = numbers(REDUCTION_LEN, 5);
        Reduction { numbers: numbers.iter().map(|number| number.abs()).collect(), sum: 0.0 }
    }
}

impl Run for Reduction {
    fn run(&mut self, threads: usize) {
        self.sum = reduction::sum(&self.numbers, threads);
    }

    fn checksum(&self) -> f64 {
        f64::from(self.sum)
    }
}

struct Matmul {
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Matmul {
    fn new() -> Matmul {
        let len = MATMUL_SIZE * MATMUL_SIZE;
        Matmul { a: numbers(len, 6), b: numbers(len, 7), c: vec![0.0; len] }
    }
}

impl Run for Matmul {
    fn run(&mut self, threads: usize) {
        matmul::matmul(&self.a, &self.b, &mut self.c, MATMUL_SIZE, threads);
    }

    fn checksum(&self) -> f64 {
        self.c.iter().map(|&value| f64::from(value.abs())).sum()
    }
}
