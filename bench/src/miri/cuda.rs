//! What a Miri program's launches on an NVIDIA GPU cost, beside the driver itself.

use magpie_rt::gpu::DriverKind;

use super::Program;
use super::driver::{Driver, Function, Memory};
use crate::cuda::cubin;
use crate::harness::{Benchmark, Contender, Work};

const COPY: &str = "cuMemcpyDtoD";
const LAUNCH: &str = "cuLaunchKernel";

/// Elements and rounds of `device_saxpy.mi`.
const LEN: usize = 1 << 26;
const ROUNDS: usize = 1000;
/// Launches of `launches.mi`, and the elements that each changes.
const LAUNCHES: usize = 10_000;
const SMALL: u32 = 256;

pub(crate) const BENCHMARKS: &[Benchmark] = &[
    // Saxpy moves 12 bytes an element, a copy 8.
    Benchmark {
        name: "cuda_miri_saxpy",
        work: Work { amount: 12.0 * (LEN * ROUNDS) as f64, unit: "B" },
        peer: COPY,
        tolerance: 0.0,
        contenders: |_| {
            let ours = Program::new("miri", "device_saxpy.mi", DriverKind::Cuda);
            vec![Box::new(Copies::new()), Box::new(ours)]
        },
    },
    Benchmark {
        name: "cuda_miri_launches",
        work: Work { amount: LAUNCHES as f64, unit: "launch" },
        peer: LAUNCH,
        tolerance: 0.0,
        contenders: |_| {
            let ours = Program::new("miri", "launches.mi", DriverKind::Cuda);
            vec![Box::new(Launches::new()), Box::new(ours)]
        },
    },
];

/// Copies inside the memory of the device that move as many bytes as all rounds of saxpy.
struct Copies {
    driver: Driver,
    from: Memory,
    to: Memory,
}

impl Copies {
    fn new() -> Copies {
        let driver = Driver::new();
        let [from, to] = [driver.memory(4 * LEN), driver.memory(4 * LEN)];
        Copies { driver, from, to }
    }
}

impl Contender for Copies {
    fn name(&self) -> &str {
        COPY
    }

    fn run(&mut self) {
        for _ in 0..ROUNDS * 12 / 8 {
            self.driver.copy(self.to, self.from, 4 * LEN);
        }
        self.driver.wait();
    }

    fn checksum(&self) -> f64 {
        f64::from(self.driver.first_word(self.to))
    }
}

/// A loop of launches, as small as can be.
struct Launches {
    driver: Driver,
    function: Function,
    counts: Memory,
}

impl Launches {
    fn new() -> Launches {
        let driver = Driver::new();
        let function = driver.function(&cubin(), c"count");
        let counts = driver.memory(4 * SMALL as usize);
        Launches { driver, function, counts }
    }
}

impl Contender for Launches {
    fn name(&self) -> &str {
        LAUNCH
    }

    fn run(&mut self) {
        self.driver.clear(self.counts, 4 * SMALL as usize);
        for _ in 0..LAUNCHES {
            self.driver.launch(&self.function, self.counts, SMALL);
        }
        self.driver.wait();
    }

    fn checksum(&self) -> f64 {
        f64::from(self.driver.first_word(self.counts))
    }
}
