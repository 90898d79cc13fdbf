//! Source text to what a driver loads, in process and without a cache: what a user waits for.
//!
//! The contenders get the same kernel, each in its own language. Magpie parses, checks, optimises
//! and makes both bodies of a kernel; naga and glslang parse, validate and write.

mod cuda_peers;
mod folder;
mod shader_peers;
mod sources;

use magpie_driver::{Options, Session, compile_kernels};
use magpie_types::kernel::{BlobCode, GpuBackend};

use crate::harness::{Benchmark, Contender, Work};
use cuda_peers::{Nvcc, Nvrtc, Triton};
use folder::Folder;
use shader_peers::{Glslang, Naga};

const PEER: &str = "naga";

pub(crate) const BENCHMARKS: &[Benchmark] = &[
    of_ops("compile_50", 50, |_| contenders(50)),
    of_ops("compile_5000", 5_000, |_| contenders(5_000)),
    of_ops("compile_50000", 50_000, |_| contenders(50_000)),
    // naga would take minutes.
    Benchmark {
        peer: "magpie",
        ..of_ops("compile_500000", 500_000, |_| vec![Box::new(Magpie::new(500_000))])
    },
    Benchmark { peer: "spv", ..of_ops("compile_targets", 50, |_| targets()) },
    Benchmark { peer: NVRTC, ..of_ops(CUDA, 50, |_| for_cuda()) },
];

const CUDA: &str = "cuda_compile";
const NVRTC: &str = "nvrtc";
const PTX_DIRECT: &str = "ptx direct";

/// One kernel of 50 operations to each target, and to all at the same time; `ptx` and `hip` by the LLVM
/// of this machine.
fn targets() -> Vec<Box<dyn Contender>> {
    let targets: [(_, &[GpuBackend]); 7] = [
        ("spv", &[GpuBackend::Spv]),
        ("wgsl", &[GpuBackend::Wgsl]),
        ("msl", &[GpuBackend::Msl]),
        (PTX_DIRECT, &[GpuBackend::Ptx]),
        ("ptx", &[GpuBackend::Ptx]),
        ("hip", &[GpuBackend::Hip]),
        ("all five", &GpuBackend::TARGETS),
    ];
    let contender = |(name, backends)| -> Box<dyn Contender> {
        Box::new(Magpie::for_targets(name, backends, 50))
    };
    targets.into_iter().map(contender).collect()
}

/// The kernel of 50 operations to PTX, beside the compilers of a machine with the CUDA toolkit.
fn for_cuda() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Nvrtc::new(50)),
        Box::new(Nvcc::new(50)),
        Box::new(Triton::new(50)),
        Box::new(Magpie::for_targets("magpie, LLVM", &[GpuBackend::Ptx], 50)),
        Box::new(Magpie::for_targets(PTX_DIRECT, &[GpuBackend::Ptx], 50)),
    ]
}

const fn of_ops(
    name: &'static str,
    ops: usize,
    contenders: fn(usize) -> Vec<Box<dyn Contender>>,
) -> Benchmark {
    // What the contenders make differs, so there is nothing to compare.
    let work = Work { amount: ops as f64, unit: "op" };
    Benchmark { name, work, peer: PEER, tolerance: f64::INFINITY, contenders }
}

fn contenders(ops: usize) -> Vec<Box<dyn Contender>> {
    let mut all: Vec<Box<dyn Contender>> =
        vec![Box::new(Naga::new(ops)), Box::new(Magpie::new(ops))];
    if let Some(glslang) = Glslang::find(ops) {
        all.push(Box::new(glslang));
    }
    all
}

struct Magpie {
    name: &'static str,
    backends: Vec<GpuBackend>,
    /// Holds the source and a manifest.
    folder: Folder,
    bytes: usize,
}

impl Magpie {
    fn new(ops: usize) -> Magpie {
        Magpie::for_targets("magpie", &[GpuBackend::Spv], ops)
    }

    fn for_targets(name: &'static str, backends: &[GpuBackend], ops: usize) -> Magpie {
        let unique = format!("{ops}-{}", name.replace([' ', ','], "-"));
        let folder = Folder::new(&unique, "main.mp", &sources::magpie(ops));
        if name == PTX_DIRECT {
            folder.write("Magpie.toml", "[gpu.ptx]\ncodegen = \"direct\"\n");
        }
        Magpie { name, backends: backends.to_vec(), folder, bytes: 0 }
    }
}

impl Contender for Magpie {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        let entry = Some(self.folder.path().join("main.mp"));
        let mut session = Session::new(Options { entry, ..Options::new("check") });
        let blobs = compile_kernels(&mut session, &self.backends)
            .unwrap_or_else(|_| panic!("{:?}", session.take_findings()));
        let size =
            |code: &BlobCode| if let BlobCode::Bytes(bytes) = code { bytes.len() } else { 0 };
        self.bytes = blobs.iter().map(|(_, blob)| size(&blob.code)).sum();
    }

    fn checksum(&self) -> f64 {
        self.bytes as f64
    }
}
