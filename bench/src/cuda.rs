//! Kernels on an NVIDIA GPU, beside the same kernels from nvcc (`bench/cuda`). Both are launched by
//! the runtime, on the same buffers and with the same checks of their launches.
//!
//! `MAGPIE_LIBLLVM_PATH=off` measures the direct PTX writer where LLVM is installed.

use std::path::Path;
use std::process::Command;

use magpie_driver::compile_kernels;
use magpie_rt::gpu::{Buffer, DriverKind, Runtime};
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob};

use crate::harness::{Benchmark, Contender, Work};
use crate::kernels::{Kernels, floats, load, session};
use crate::peers::numbers;

/// What the names of these benchmarks start with.
pub(crate) const PREFIX: &str = "cuda_";

const PEER: &str = "nvcc -O3";
const LEN: usize = 1 << 27;
const MATMUL_SIZE: usize = 4096;

pub(crate) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "cuda_saxpy",
        work: Work { amount: 12.0 * LEN as f64, unit: "B" },
        peer: PEER,
        tolerance: 1e-6,
        contenders: |_| contenders(Case::SAXPY),
    },
    Benchmark {
        name: "cuda_reduction",
        work: Work { amount: 4.0 * LEN as f64, unit: "B" },
        peer: PEER,
        tolerance: 0.0,
        contenders: |_| contenders(Case::REDUCTION),
    },
    Benchmark {
        name: "cuda_matmul",
        work: Work { amount: (2 * MATMUL_SIZE * MATMUL_SIZE * MATMUL_SIZE) as f64, unit: "flop" },
        peer: PEER,
        tolerance: 1e-4,
        contenders: |_| contenders(Case::MATMUL),
    },
];

/// A launch of an example's kernel.
#[derive(Clone, Copy)]
struct Case {
    example: &'static str,
    kernel: &'static str,
    grid: [usize; 2],
    block: [u32; 2],
    /// Elements of each buffer; the last one is the result.
    buffers: &'static [usize],
    scalars: &'static [[u8; 4]],
}

impl Case {
    const SAXPY: Case = Case {
        example: "saxpy.mp",
        kernel: "saxpy",
        grid: [LEN / 256, 1],
        block: [256, 1],
        buffers: &[LEN, LEN],
        // Nothing is added, so that every run gives the same.
        scalars: &[0f32.to_ne_bytes(), (LEN as u32).to_ne_bytes()],
    };
    const REDUCTION: Case = Case {
        example: "reduce.mp",
        kernel: "reduce",
        grid: [LEN / 256, 1],
        block: [256, 1],
        buffers: &[LEN, LEN / 256],
        scalars: &[],
    };
    const MATMUL: Case = Case {
        example: "matmul.mp",
        kernel: "matmul",
        grid: [MATMUL_SIZE / 16; 2],
        block: [16, 16],
        buffers: &[MATMUL_SIZE * MATMUL_SIZE; 3],
        scalars: &[(MATMUL_SIZE as u32).to_ne_bytes()],
    };
}

/// A kernel with its buffers.
struct OnGpu {
    name: &'static str,
    case: Case,
    hash: u64,
    kernels: Kernels,
    buffers: Vec<Buffer>,
}

fn contenders(case: Case) -> Vec<Box<dyn Contender>> {
    let ours = OnGpu::new("magpie", case, None);
    let peer = OnGpu::new(PEER, case, Some(cubin()));
    vec![Box::new(peer), Box::new(ours)]
}

impl OnGpu {
    /// The example's own kernel, or the one of that name in machine code.
    fn new(name: &'static str, case: Case, code: Option<Vec<u8>>) -> OnGpu {
        let kernels = load(case.example, DriverKind::Cuda);
        let own = kernels.hash(case.kernel);
        let hash = match code {
            None => own,
            Some(code) => {
                // A number that no kernel of the example has.
                let hash = !own;
                let blob = with_code(case, code);
                Runtime::global().register_kernel(hash, name, vec![blob], None);
                hash
            }
        };
        let buffers = (0u32..).zip(case.buffers).map(|(n, &len)| kernels.buffer(&numbers(len, n)));
        let buffers = buffers.collect();
        OnGpu { name, case, hash, kernels, buffers }
    }
}

impl Contender for OnGpu {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        let Case { grid, block, scalars, .. } = self.case;
        let buffers: Vec<&Buffer> = self.buffers.iter().collect();
        self.kernels.launch_hash(self.hash, grid, block, &buffers, scalars);
    }

    fn checksum(&self) -> f64 {
        let result = self.buffers.last().map(floats).unwrap_or_default();
        result.iter().map(|&number| f64::from(number.abs())).sum()
    }
}

/// The kernel of a case with other code, which takes its parameters and nothing else.
fn with_code(case: Case, code: Vec<u8>) -> KernelBlob {
    let mut session = session(case.example, DriverKind::Cuda);
    let blobs = compile_kernels(&mut session, &[GpuBackend::Ptx])
        .unwrap_or_else(|_| panic!("{:?}", session.take_findings()));
    let found = blobs.into_iter().find(|(name, _)| name.trim_start_matches('@') == case.kernel);
    let (_, mut blob) = found.unwrap_or_else(|| panic!("no kernel `{}`", case.kernel));
    blob.layout.hidden.clear();
    blob.layout.block_size = blob.layout.scalar_size;
    blob.layout.preconditions.clear();
    blob.layout.entry = case.kernel.to_string();
    KernelBlob { code: BlobCode::Bytes(code), unchecked: None, ..blob }
}

/// What nvcc makes of the kernels for the GPU of this machine.
pub(crate) fn cubin() -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda/kernels.cu");
    let target = std::env::temp_dir().join(format!("magpie-bench-{}.cubin", std::process::id()));
    let status = Command::new("nvcc")
        .args(["-O3", "-arch=native", "-cubin", "-o"])
        .args([&target, &source])
        .status()
        .unwrap_or_else(|error| panic!("nvcc is needed for this benchmark: {error}"));
    assert!(status.success(), "nvcc refuses {}", source.display());
    let code = std::fs::read(&target).unwrap_or_else(|error| panic!("{error}"));
    // A file left in the temporary folder does no harm.
    std::fs::remove_file(&target).ok();
    code
}
