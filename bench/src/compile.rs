//! Source text to SPIR-V, in process and without a cache: what a user waits for.
//!
//! The contenders get the same kernel, each in its own language. Magpie parses, checks, optimises
//! and makes both bodies of a kernel; naga parses, validates and writes.

use magpie_driver::{Options, Session, compile_kernels};
use magpie_types::kernel::{BlobCode, GpuBackend};
use std::fmt::Write;
use std::path::PathBuf;

use crate::harness::{Benchmark, Contender, Work};

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
];

const PTX_DIRECT: &str = "ptx direct";

/// One kernel of 50 operations to each target; `ptx` and `hip` by the LLVM of this machine.
fn targets() -> Vec<Box<dyn Contender>> {
    [
        ("spv", GpuBackend::Spv),
        ("wgsl", GpuBackend::Wgsl),
        ("msl", GpuBackend::Msl),
        (PTX_DIRECT, GpuBackend::Ptx),
        ("ptx", GpuBackend::Ptx),
        ("hip", GpuBackend::Hip),
    ]
    .into_iter()
    .map(|(name, backend)| -> Box<dyn Contender> {
        Box::new(Magpie::for_target(name, backend, 50))
    })
    .collect()
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
    vec![Box::new(Naga::new(ops)), Box::new(Magpie::new(ops))]
}

/// One step of the kernel in both languages: an operation on the last value and one of the loaded
/// ones. None folds away.
const STEPS: [(&str, &str); 4] = [
    ("f.mul { lhs=%v{last}, rhs=%a }", "v{last} * a"),
    ("f.add { lhs=%v{last}, rhs=%b }", "v{last} + b"),
    ("f.sub { lhs=%b, rhs=%v{last} }", "b - v{last}"),
    ("f.max { lhs=%v{last}, rhs=%a }", "max(v{last}, a)"),
];

fn magpie_source(ops: usize) -> String {
    let mut text = "module bench.chain
exports { @chain }
imports { }
digest \"0000000000000000\"

gpu fn @chain(%x: gpu.TBuffer<f32>, %y: gpu.TBuffer<f32>) -> unit target(spv) workgroup(64, 1, 1) {
bb0:
  %i: u32 = gpu.global_id { dim=const.u32 0 }
  %a: f32 = gpu.buffer_load<f32> { buf=%x, idx=%i }
  %b: f32 = gpu.buffer_load<f32> { buf=%y, idx=%i }
  %v0: f32 = f.add { lhs=%a, rhs=%b }
"
    .to_string();
    for op in 1..ops {
        let step = STEPS[op % STEPS.len()].0.replace("{last}", &(op - 1).to_string());
        let _ = writeln!(text, "  %v{op}: f32 = {step}");
    }
    let last = ops - 1;
    let _ = write!(text, "  gpu.buffer_store<f32> {{ buf=%y, idx=%i, v=%v{last} }}\n  ret\n}}\n");
    text
}

fn wgsl_source(ops: usize) -> String {
    let mut text = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn chain(@builtin(global_invocation_id) gid: vec3<u32>) {
  let i = gid.x;
  let a = x[i];
  let b = y[i];
  let v0 = a + b;
"
    .to_string();
    for op in 1..ops {
        let step = STEPS[op % STEPS.len()].1.replace("{last}", &(op - 1).to_string());
        let _ = writeln!(text, "  let v{op} = {step};");
    }
    let _ = write!(text, "  y[i] = v{};\n}}\n", ops - 1);
    text
}

struct Magpie {
    name: &'static str,
    backend: GpuBackend,
    /// Holds the source and a manifest.
    folder: PathBuf,
    bytes: usize,
}

impl Magpie {
    fn new(ops: usize) -> Magpie {
        Magpie::for_target("magpie", GpuBackend::Spv, ops)
    }

    fn for_target(name: &'static str, backend: GpuBackend, ops: usize) -> Magpie {
        let folder =
            format!("magpie-bench-{}-{ops}-{}", std::process::id(), name.replace(' ', "-"));
        let folder = std::env::temp_dir().join(folder);
        let write = |file: &str, text: &str| std::fs::write(folder.join(file), text);
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| write("main.mp", &magpie_source(ops)))
            .and_then(|()| match name {
                PTX_DIRECT => write("Magpie.toml", "[gpu.ptx]\ncodegen = \"direct\"\n"),
                _ => Ok(()),
            });
        written.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Magpie { name, backend, folder, bytes: 0 }
    }
}

impl Drop for Magpie {
    fn drop(&mut self) {
        // A folder left among temporary files does no harm.
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

impl Contender for Magpie {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        let entry = Some(self.folder.join("main.mp"));
        let mut session = Session::new(Options { entry, ..Options::new("check") });
        let blobs = compile_kernels(&mut session, self.backend)
            .unwrap_or_else(|_| panic!("{:?}", session.take_findings()));
        let size =
            |code: &BlobCode| if let BlobCode::Bytes(bytes) = code { bytes.len() } else { 0 };
        self.bytes = blobs.iter().map(|(_, blob)| size(&blob.code)).sum();
    }

    fn checksum(&self) -> f64 {
        self.bytes as f64
    }
}

struct Naga {
    source: String,
    words: usize,
}

impl Naga {
    fn new(ops: usize) -> Naga {
        Naga { source: wgsl_source(ops), words: 0 }
    }
}

impl Contender for Naga {
    fn name(&self) -> &str {
        PEER
    }

    fn run(&mut self) {
        let module = naga::front::wgsl::parse_str(&self.source).unwrap_or_else(|e| panic!("{e}"));
        let flags = naga::valid::ValidationFlags::all();
        let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::all());
        let info = validator.validate(&module).unwrap_or_else(|error| panic!("{error}"));
        let options = naga::back::spv::Options { lang_version: (1, 6), ..Default::default() };
        let words = naga::back::spv::write_vec(&module, &info, &options, None);
        self.words = words.unwrap_or_else(|error| panic!("{error}")).len();
    }

    fn checksum(&self) -> f64 {
        self.words as f64
    }
}
