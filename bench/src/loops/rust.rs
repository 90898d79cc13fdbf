//! The plain Rust loops with their data.

use super::inputs::{self, total, total_size};
use super::{BLUR_SIZE, MANDELBROT_LIMIT, MANDELBROT_SIZE, MATMUL_SIZE, NBODY_LEN, Run};
use crate::peers::{blur, mandelbrot, matmul, nbody, reduction, saxpy};

pub(super) struct Saxpy {
    threads: usize,
    x: Vec<f32>,
    y: Vec<f32>,
    factor: f32,
}

impl Saxpy {
    pub(super) fn new(threads: usize) -> Saxpy {
        Saxpy { threads, x: inputs::coarse(1), y: inputs::coarse(2), factor: 0.0 }
    }
}

impl Run for Saxpy {
    fn run(&mut self) {
        self.factor = inputs::next_factor(self.factor);
        saxpy::saxpy(self.factor, &self.x, &mut self.y, self.threads);
    }

    fn checksum(&self) -> f64 {
        total(&self.y) - f64::from(self.factor.max(0.0)) * total(&self.x)
    }
}

pub(super) struct Blur {
    threads: usize,
    input: Vec<f32>,
    weights: [f32; blur::SIZE * blur::SIZE],
    output: Vec<f32>,
}

impl Blur {
    pub(super) fn new(threads: usize) -> Blur {
        Blur {
            threads,
            input: inputs::image(),
            weights: inputs::weights(),
            output: vec![0.0; BLUR_SIZE * BLUR_SIZE],
        }
    }
}

impl Run for Blur {
    fn run(&mut self) {
        blur::blur(&self.input, BLUR_SIZE, &self.weights, &mut self.output, self.threads);
    }

    fn checksum(&self) -> f64 {
        total_size(&self.output)
    }
}

pub(super) struct Nbody {
    threads: usize,
    bodies: Vec<[f32; 4]>,
    accelerations: Vec<[f32; 4]>,
}

impl Nbody {
    pub(super) fn new(threads: usize) -> Nbody {
        Nbody { threads, bodies: inputs::bodies(), accelerations: vec![[0.0; 4]; NBODY_LEN] }
    }
}

impl Run for Nbody {
    fn run(&mut self) {
        nbody::accelerations(&self.bodies, &mut self.accelerations, self.threads);
    }

    fn checksum(&self) -> f64 {
        total_size(self.accelerations.as_flattened())
    }
}

pub(super) struct Mandelbrot {
    threads: usize,
    steps: Vec<u32>,
}

impl Mandelbrot {
    pub(super) fn new(threads: usize) -> Mandelbrot {
        Mandelbrot { threads, steps: vec![0; MANDELBROT_SIZE * MANDELBROT_SIZE] }
    }
}

impl Run for Mandelbrot {
    fn run(&mut self) {
        mandelbrot::mandelbrot(MANDELBROT_SIZE, MANDELBROT_LIMIT, &mut self.steps, self.threads);
    }

    fn checksum(&self) -> f64 {
        self.steps.iter().map(|&steps| f64::from(steps)).sum()
    }
}

pub(super) struct Reduction {
    threads: usize,
    numbers: Vec<f32>,
    sum: f32,
}

impl Reduction {
    pub(super) fn new(threads: usize) -> Reduction {
        Reduction { threads, numbers: inputs::positive(), sum: 0.0 }
    }
}

impl Run for Reduction {
    fn run(&mut self) {
        self.sum = reduction::sum(&self.numbers, self.threads);
    }

    fn checksum(&self) -> f64 {
        f64::from(self.sum)
    }
}

pub(super) struct Matmul {
    threads: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Matmul {
    pub(super) fn new(threads: usize) -> Matmul {
        let c = vec![0.0; MATMUL_SIZE * MATMUL_SIZE];
        Matmul { threads, a: inputs::matrix(6), b: inputs::matrix(7), c }
    }
}

impl Run for Matmul {
    fn run(&mut self) {
        matmul::matmul(&self.a, &self.b, &mut self.c, MATMUL_SIZE, self.threads);
    }

    fn checksum(&self) -> f64 {
        total_size(&self.c)
    }
}
