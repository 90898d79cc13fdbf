//! The same loops as kernels of `examples/magpie`, launched on the CPU device.

use super::inputs::{self, total, total_size};
use super::{
    BLUR_SIZE, MANDELBROT_LIMIT, MANDELBROT_SIZE, MATMUL_SIZE, NBODY_LEN, REDUCTION_LEN, Run,
    SAXPY_LEN,
};
use crate::kernels::{Kernels, floats, load, words};
use magpie_rt::gpu::{Buffer, DriverKind};

pub(super) struct Saxpy {
    kernels: Kernels,
    x: Buffer,
    y: Buffer,
    factor: f32,
}

impl Saxpy {
    pub(super) fn new() -> Saxpy {
        let kernels = load("saxpy.mp", DriverKind::Cpu);
        let [x, y] = [1, 2].map(|seed| kernels.buffer(&inputs::coarse(seed)));
        Saxpy { kernels, x, y, factor: 0.0 }
    }
}

impl Run for Saxpy {
    fn run(&mut self) {
        self.factor = inputs::next_factor(self.factor);
        let scalars = [self.factor.to_ne_bytes(), (SAXPY_LEN as u32).to_ne_bytes()];
        let grid = [SAXPY_LEN.div_ceil(256), 1];
        self.kernels.launch("saxpy", grid, [256, 1], &[&self.x, &self.y], &scalars);
    }

    fn checksum(&self) -> f64 {
        total(&floats(&self.y)) - f64::from(self.factor.max(0.0)) * total(&floats(&self.x))
    }
}

pub(super) struct Blur {
    kernels: Kernels,
    input: Buffer,
    weights: Buffer,
    output: Buffer,
}

impl Blur {
    pub(super) fn new() -> Blur {
        let kernels = load("blur.mp", DriverKind::Cpu);
        let input = kernels.buffer(&inputs::image());
        let weights = kernels.buffer(&inputs::weights());
        let output = kernels.zeros(BLUR_SIZE * BLUR_SIZE);
        Blur { kernels, input, weights, output }
    }
}

impl Run for Blur {
    fn run(&mut self) {
        let size = (BLUR_SIZE as i32).to_ne_bytes();
        let grid = [BLUR_SIZE.div_ceil(64), BLUR_SIZE.div_ceil(4)];
        let buffers = [&self.input, &self.output, &self.weights];
        self.kernels.launch("blur", grid, [64, 4], &buffers, &[size, size]);
    }

    fn checksum(&self) -> f64 {
        total_size(&floats(&self.output))
    }
}

pub(super) struct Nbody {
    kernels: Kernels,
    bodies: Buffer,
    accelerations: Buffer,
}

impl Nbody {
    pub(super) fn new() -> Nbody {
        let kernels = load("nbody.mp", DriverKind::Cpu);
        let bodies = kernels.quads(&inputs::bodies());
        let accelerations = kernels.quads(&vec![[0.0; 4]; NBODY_LEN]);
        Nbody { kernels, bodies, accelerations }
    }
}

impl Run for Nbody {
    fn run(&mut self) {
        let buffers = [&self.bodies, &self.accelerations];
        let n = (NBODY_LEN as u32).to_ne_bytes();
        self.kernels.launch(
            "accelerations",
            [NBODY_LEN.div_ceil(256), 1],
            [256, 1],
            &buffers,
            &[n],
        );
    }

    fn checksum(&self) -> f64 {
        total_size(&floats(&self.accelerations))
    }
}

pub(super) struct Mandelbrot {
    kernels: Kernels,
    steps: Buffer,
}

impl Mandelbrot {
    pub(super) fn new() -> Mandelbrot {
        let kernels = load("mandelbrot.mp", DriverKind::Cpu);
        let steps = kernels.words(MANDELBROT_SIZE * MANDELBROT_SIZE);
        Mandelbrot { kernels, steps }
    }
}

impl Run for Mandelbrot {
    fn run(&mut self) {
        let scalars = [(MANDELBROT_SIZE as u32).to_ne_bytes(), MANDELBROT_LIMIT.to_ne_bytes()];
        let grid = [MANDELBROT_SIZE.div_ceil(64), MANDELBROT_SIZE.div_ceil(4)];
        self.kernels.launch("mandelbrot", grid, [64, 4], &[&self.steps], &scalars);
    }

    fn checksum(&self) -> f64 {
        words(&self.steps).map(f64::from).sum()
    }
}

/// Each level adds 256 numbers in a workgroup, until one is left.
pub(super) struct Reduction {
    kernels: Kernels,
    levels: Vec<Buffer>,
}

impl Reduction {
    pub(super) fn new() -> Reduction {
        let kernels = load("reduce.mp", DriverKind::Cpu);
        let mut levels = vec![kernels.buffer(&inputs::positive())];
        let mut len = REDUCTION_LEN;
        while len > 1 {
            len = len.div_ceil(256);
            levels.push(kernels.zeros(len));
        }
        Reduction { kernels, levels }
    }
}

impl Run for Reduction {
    fn run(&mut self) {
        for pair in self.levels.windows(2) {
            let [from, to] = pair else { continue };
            self.kernels.launch("reduce", [to.len() as usize, 1], [256, 1], &[from, to], &[]);
        }
    }

    fn checksum(&self) -> f64 {
        self.levels.last().map_or(0.0, |sum| total(&floats(sum)))
    }
}

pub(super) struct Matmul {
    kernels: Kernels,
    a: Buffer,
    b: Buffer,
    c: Buffer,
}

impl Matmul {
    pub(super) fn new() -> Matmul {
        let kernels = load("matmul.mp", DriverKind::Cpu);
        let [a, b] = [6, 7].map(|seed| kernels.buffer(&inputs::matrix(seed)));
        let c = kernels.zeros(MATMUL_SIZE * MATMUL_SIZE);
        Matmul { kernels, a, b, c }
    }
}

impl Run for Matmul {
    fn run(&mut self) {
        let grid = [MATMUL_SIZE.div_ceil(16); 2];
        let n = (MATMUL_SIZE as u32).to_ne_bytes();
        self.kernels.launch("matmul", grid, [16, 16], &[&self.a, &self.b, &self.c], &[n]);
    }

    fn checksum(&self) -> f64 {
        total_size(&floats(&self.c))
    }
}
