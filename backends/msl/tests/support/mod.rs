//! Emitted kernels on the CPU: compiled as C++ against the tests' own `metal_stdlib`, loaded, and
//! run by the runtime's CPU device.
//!
//! A compiler process costs more than a kernel, so everything is done twice: the first time kernels
//! are emitted only, then all of them are compiled, the second time they are run.

// Each test file uses a part of it.
#![allow(dead_code)]

mod wrapper;

use magpie_diag::Diagnostic;
use magpie_gpu::compile::{BodyCompiler, CompiledBody};
use magpie_gpu_msl::{MslEmitter, MslTarget};
use magpie_kernel_tests::{Gpu, Subject, bytes, skip};
use magpie_mpir::MpirFn;
use magpie_rt::gpu::{DriverKind, LaunchSize};
use magpie_types::TypeCtx;
use magpie_types::kernel::{BlobCode, GpuBackend, HostKernel, KernelBlob, KernelLayout};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Invocations of a SIMD group in `metal_stdlib/launch.hpp`.
pub(crate) const SIMD_WIDTH: u32 = 32;

/// Kernels that one process compiles.
const KERNELS_A_PROCESS: usize = 16;

const COMPILER: &str = "clang++-19";

/// Exact arithmetic as Metal without fast-math has it, and reports of what C++ leaves undefined.
const FLAGS: &str = "-x c++ -std=c++20 -O1 -fPIC -shared -w -ffp-contract=off \
    -Xclang -ffloat16-excess-precision=none -fsanitize=undefined,float-cast-overflow \
    -fno-sanitize=vptr,function -fsanitize-minimal-runtime";

/// The back end, which remembers what it emits.
pub(crate) struct Recorder {
    emitter: MslEmitter,
    sources: Mutex<Sources>,
}

#[derive(Default)]
struct Sources {
    /// Each source as C++, with a function that the runtime can call.
    wrapped: Vec<String>,
    numbers: HashMap<Vec<u8>, usize>,
}

impl BodyCompiler for Recorder {
    const BACKEND: GpuBackend = GpuBackend::Msl;
    const EXTENSION: &'static str = MslEmitter::EXTENSION;

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        self.emitter.layout(kernel, types)
    }

    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>> {
        let body = self.emitter.compile_body(kernel, types, layout)?;
        self.sources.lock().unwrap().add(&body.code, layout);
        Ok(body)
    }
}

impl Sources {
    fn add(&mut self, code: &[u8], layout: &KernelLayout) {
        if !self.numbers.contains_key(code) {
            let number = self.wrapped.len();
            let source = std::str::from_utf8(code).unwrap();
            self.wrapped.push(wrapper::wrap(number, source, layout));
            self.numbers.insert(code.to_vec(), number);
        }
    }
}

/// Runs `checks` without a device, and then with kernels on the CPU. `aliased` says whether buffers
/// of a launch may overlap.
pub(crate) fn on_cpu(target: MslTarget, aliased: bool, checks: impl Fn(&Subject<'_, Recorder>)) {
    let name = format!("{:?}", target.version);
    let sources = Mutex::default();
    let compiler = Recorder { emitter: MslEmitter { target }, sources };
    let mut subject = Subject { name, compiler, validate: &|_, _| (), gpu: None };
    checks(&subject);
    let Some(library) =
        Library::compile(std::mem::take(&mut *subject.compiler.sources.lock().unwrap()), aliased)
    else {
        return;
    };
    let library = Arc::new(library);
    let translator = Arc::clone(&library);
    let translate = Box::new(move |blob| translator.host_blob(blob));
    let gpu = Gpu::translated(DriverKind::Cpu, SIMD_WIDTH, translate).unwrap();
    subject.gpu = Some(&gpu);
    checks(&subject);
    library.check_faults();
}

/// Runs a source that somebody wrote, `blob`, in one workgroup; panics when it does not compile or
/// does what is undefined. False when there is no compiler.
pub(crate) fn run_source(blob: &KernelBlob, buffers: &mut [Vec<u8>], block: [u32; 3]) -> bool {
    let mut sources = Sources::default();
    sources.add(bytes(&blob.code), &blob.layout);
    let Some(library) = Library::compile(sources, false) else { return false };
    let library = Arc::new(library);
    let translator = Arc::clone(&library);
    let translate = Box::new(move |blob| translator.host_blob(blob));
    let gpu = Gpu::translated(DriverKind::Cpu, SIMD_WIDTH, translate).unwrap();
    gpu.run(blob, buffers, &[], LaunchSize { grid: [1; 3], block });
    library.check_faults();
    true
}

/// Compiled kernels.
struct Library {
    entries: Vec<usize>,
    numbers: HashMap<Vec<u8>, usize>,
    loaded: Vec<libloading::Library>,
}

impl Library {
    fn compile(sources: Sources, aliased: bool) -> Option<Library> {
        let folder = tempfile::tempdir().unwrap();
        let parts: Vec<String> =
            sources.wrapped.chunks(KERNELS_A_PROCESS).map(wrapper::join).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = true;
            while let Some((n, part)) = take(&next, &parts) {
                done &= compile(&folder.path().join(n.to_string()), part, aliased);
            }
            done
        };
        let compiled = std::thread::scope(|scope| {
            let other = scope.spawn(work);
            let mine = work();
            mine & other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if !compiled {
            return None;
        }
        let load = |n: usize| {
            let path = folder.path().join(format!("{n}.so"));
            // SAFETY: the library was made by the compiler just now and has no initialisers but
            // those of the C++ runtime.
            unsafe { libloading::Library::new(path) }.unwrap_or_else(|error| panic!("{error}"))
        };
        let loaded: Vec<libloading::Library> = (0..parts.len()).map(load).collect();
        let entry = |n: usize| {
            let name = format!("run_{n}");
            // SAFETY: the symbol is a function; only its address is taken.
            let symbol = unsafe {
                loaded[n / KERNELS_A_PROCESS].get::<unsafe extern "C" fn()>(name.as_bytes())
            };
            *symbol.unwrap() as usize
        };
        let entries = (0..sources.wrapped.len()).map(entry).collect();
        Some(Library { entries, numbers: sources.numbers, loaded })
    }

    /// The kernel of an MSL blob as one for the CPU device.
    fn host_blob(&self, blob: KernelBlob) -> KernelBlob {
        let host = |code: BlobCode| {
            let entry = self.entries[self.numbers[bytes(&code)]];
            BlobCode::Host(HostKernel { entry, frame_bytes: 0 })
        };
        KernelBlob {
            backend: GpuBackend::Cpu,
            layout: blob.layout,
            code: host(blob.code),
            unchecked: blob.unchecked.map(host),
        }
    }

    /// Panics when a kernel did what C++ or Metal leaves undefined.
    fn check_faults(&self) {
        for library in &self.loaded {
            // SAFETY: the symbol is this function (`wrapper::join`).
            let faults = unsafe {
                let take = library.get::<unsafe extern "C" fn() -> i32>(b"magpie_take_faults");
                take.unwrap()()
            };
            assert!(faults & 1 == 0, "a barrier that not all invocations reach");
            assert!(faults & 2 == 0, "arithmetic that C++ leaves undefined");
        }
    }
}

/// The next part that nobody has taken, with its number.
fn take<'a>(next: &AtomicUsize, parts: &'a [String]) -> Option<(usize, &'a String)> {
    let n = next.fetch_add(1, Ordering::Relaxed);
    Some((n, parts.get(n)?))
}

/// Compiles a source to a shared object beside it; false when there is no compiler.
fn compile(path: &Path, source: &str, aliased: bool) -> bool {
    let (cpp, so) = (path.with_extension("cpp"), path.with_extension("so"));
    std::fs::write(&cpp, source).unwrap();
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/metal_stdlib");
    let alias = if aliased { "-DMAY_ALIAS=volatile" } else { "-DMAY_ALIAS=" };
    let mut command = Command::new(COMPILER);
    command.args(FLAGS.split_whitespace()).args(["-I", header, alias]);
    let Ok(output) = command.arg(&cpp).arg("-o").arg(&so).output() else {
        skip(COMPILER);
        return false;
    };
    if !output.status.success() {
        let kept = std::env::temp_dir().join("magpie-msl-refused.cpp");
        std::fs::write(&kept, source).unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        let start: String = message.chars().take(6000).collect();
        panic!("{} does not compile:\n{start}", kept.display());
    }
    true
}
