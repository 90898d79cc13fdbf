//! LLVM IR of GPU kernels, run on the CPU: the same text with other names for what only a GPU has
//! (`host.cpp`), compiled by clang for this machine and launched by the runtime's CPU device.

use magpie_codegen_llvm::{Flavor, write_kernel};
use magpie_diag::Diagnostic;
use magpie_gpu::compile::{BodyCompiler, CompiledBody};
use magpie_gpu::layout::{LayoutRules, compute_layout};
use magpie_kernel_tests::{Gpu, Subject, bytes, skip};
use magpie_mpir::MpirFn;
use magpie_rt::gpu::DriverKind;
use magpie_types::TypeCtx;
use magpie_types::kernel::{
    BlobCode, DeviceFeatures, GpuBackend, HostKernel, KernelBlob, KernelLayout, ParamLayout,
};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

const COMPILER: &str = "clang++-19";

/// The LLVM that the text is for.
const LLVM: u32 = 19;

/// The writer of a flavour. What it gives as code is the text for the CPU.
pub(crate) struct Writer {
    pub(crate) flavor: Flavor,
}

impl BodyCompiler for Writer {
    const BACKEND: GpuBackend = GpuBackend::Ptx;
    const EXTENSION: &'static str = "ll";

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        compute_layout(kernel, types, &LayoutRules::ARGUMENTS)
    }

    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>> {
        let text = write_kernel(kernel, types, layout, self.flavor, LLVM, None)?;
        let code = on_host(&text, layout).into_bytes();
        Ok(CompiledBody { code, features: DeviceFeatures::default() })
    }
}

/// The module of a GPU kernel as one of the CPU, with a function `run` that the runtime calls.
fn on_host(text: &str, layout: &KernelLayout) -> String {
    let mut out = String::new();
    for line in text.lines().filter(|l| !l.starts_with("target") && !l.starts_with('!')) {
        let mut line = line
            .replace("ptx_kernel ", "")
            .replace("amdgpu_kernel ", "")
            .replace(", addrspace(5)", "")
            .replace("@llvm.nvvm.", "@host.nvvm.")
            .replace("@llvm.amdgcn.", "@host.amdgcn.")
            .replace("@llvm.fma.f16", "@host.fma.f16")
            .replace("llvm.memset.p5", "llvm.memset.p0")
            .replace("asm sideeffect \"activemask.b32 $0;\", \"=r\"() #1", "@host.activemask()");
        for space in [" addrspace(1)", " addrspace(3)", " addrspace(4)", " addrspace(5)"] {
            line = line.replace(space, "");
        }
        line = line.replace("internal global", "internal thread_local global");
        while let Some(at) = line.find("byval(").or_else(|| line.find("byref(")) {
            let end = at + line[at..].find(')').unwrap();
            line.replace_range(at..=end, "");
        }
        out.push_str(&line);
        out.push('\n');
    }
    let head = out.lines().find(|l| l.starts_with("define")).unwrap();
    let (_, params) = head.split_once('(').unwrap();
    let params = params.rsplit_once(')').unwrap().0;
    let types: Vec<&str> = params.split(", ").filter_map(|p| p.split_whitespace().next()).collect();
    let mut body = String::from(
        "declare i32 @host.activemask()\ndeclare void @host_run(ptr, i64, i64, ptr)\n\
         define void @run(ptr %l, i64 %f, i64 %e, ptr %s) {\n  \
         call void @host_run(ptr %l, i64 %f, i64 %e, ptr @body)\n  ret void\n}\n\
         define internal void @body(ptr %l) {\n  %buffers = load ptr, ptr %l\n  \
         %at = getelementptr i8, ptr %l, i64 8\n  %scalars = load ptr, ptr %at\n",
    );
    let mut arguments = Vec::new();
    for (n, &ty) in types.iter().enumerate() {
        let (base, offset) = match layout.params.get(n) {
            Some(ParamLayout::Buffer(b)) => ("%buffers", b.index * 16),
            Some(ParamLayout::Scalar { offset, .. }) => ("%scalars", *offset),
            None => {
                let hidden = &layout.hidden[n - layout.params.len()];
                ("%buffers", hidden.buffer * 16 + 8)
            }
        };
        let _ = writeln!(body, "  %p{n} = getelementptr i8, ptr {base}, i64 {offset}");
        if ty == "ptr" && base == "%scalars" {
            arguments.push(format!("ptr %p{n}"));
        } else {
            let _ = writeln!(body, "  %q{n} = load {ty}, ptr %p{n}, align 1");
            arguments.push(format!("{ty} %q{n}"));
        }
    }
    let arguments = arguments.join(", ");
    let _ = writeln!(body, "  call void @{}({arguments})\n  ret void\n}}", layout.entry);
    out.push_str(&body);
    out
}

/// What GPU kernels need of the CPU, and the kernels that were loaded.
struct Host {
    folder: tempfile::TempDir,
    support: PathBuf,
    loaded: Mutex<Vec<libloading::Library>>,
}

impl Host {
    /// `None` when there is no compiler.
    fn new(lanes: u32) -> Option<Host> {
        let folder = tempfile::tempdir().unwrap();
        let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../msl/tests/metal_stdlib");
        let launch = std::fs::read_to_string(format!("{shared}/launch.hpp")).unwrap();
        let wanted = format!("simd_width = {lanes};");
        let launch = launch.replace("simd_width = 32;", &wanted);
        assert!(launch.contains(&wanted));
        std::fs::write(folder.path().join("launch.hpp"), launch).unwrap();
        let source = folder.path().join("host.cpp");
        std::fs::write(&source, include_str!("host.cpp")).unwrap();
        let support = folder.path().join("libhost.so");
        let flags = "-std=c++20 -O1 -fPIC -shared -w";
        let output = Command::new(COMPILER)
            .args(flags.split_whitespace())
            .args(["-I", shared, "-o"])
            .args([&support, &source])
            .output();
        let Ok(output) = output else {
            skip(COMPILER);
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: it was made just now; only the C++ runtime initialises anything.
        let library = unsafe { libloading::Library::new(&support) }.unwrap();
        Some(Host { folder, support, loaded: Mutex::new(vec![library]) })
    }

    fn load(&self, code: &BlobCode) -> BlobCode {
        let mut loaded = self.loaded.lock().unwrap();
        let name = format!("kernel{}", loaded.len());
        let text = self.folder.path().join(&name).with_extension("ll");
        let library = text.with_extension("so");
        std::fs::write(&text, bytes(code)).unwrap();
        let output = Command::new(COMPILER)
            .args(["-x", "ir", "-O0", "-w", "-fPIC", "-shared"])
            .arg(&text)
            .args(["-x", "none"])
            .arg(&self.support)
            .arg("-o")
            .arg(&library)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        let source = String::from_utf8_lossy(bytes(code));
        assert!(output.status.success(), "{message}\n{source}");
        // SAFETY: it was made just now and initialises nothing.
        let library = unsafe { libloading::Library::new(&library) }.unwrap();
        // SAFETY: the symbol is a function; only its address is taken.
        let symbol = unsafe { library.get::<unsafe extern "C" fn()>(b"run") };
        let entry = *symbol.unwrap() as usize;
        loaded.push(library);
        BlobCode::Host(HostKernel { entry, frame_bytes: 0 })
    }
}

/// Runs `checks` with the kernels of a flavour on the CPU.
pub(crate) fn on_cpu(flavor: Flavor, checks: impl Fn(&Subject<'_, Writer>)) {
    let lanes = if flavor == (Flavor::Amdgcn { wave64: true }) { 64 } else { 32 };
    let Some(host) = Host::new(lanes) else { return };
    let translate = Box::new(move |blob: KernelBlob| KernelBlob {
        backend: GpuBackend::Cpu,
        layout: blob.layout,
        code: host.load(&blob.code),
        unchecked: blob.unchecked.map(|code| host.load(&code)),
    });
    let gpu = Gpu::translated(DriverKind::Cpu, lanes, translate).unwrap();
    let name = format!("{flavor:?}");
    let compiler = Writer { flavor };
    checks(&Subject { name, compiler, validate: &|_, _| (), gpu: Some(&gpu) });
}
