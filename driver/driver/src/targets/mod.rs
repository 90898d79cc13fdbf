//! Kernel → blob: [`Compiler`], with one file a back end.

mod bodies;
mod checkers;
mod cpu;
mod hip;
mod interp;
mod msl;
mod ptx;
mod spv;
mod wgsl;

use crate::cache::{Cache, Key};
use crate::kernels::Kernels;
use crate::manifest::{Manifest, PtxCodegen, PtxKeys};
use crate::options::Options;
use crate::session::Log;
use bodies::{Bodies, bodies};
use magpie_codegen_llvm::tool::{Environment, Linker, Llvm, Target, ToolError, ToolPaths};
use magpie_diag::Diagnostic;
use magpie_gpu::compile::{BodyCompiler, STACK};
use magpie_mpir::FnId;
use magpie_rt::gpu::DeviceProperties;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelBlob};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use interp::Interpreter;

/// Compiles the kernels of a program.
pub(crate) struct Compiler {
    cache: Cache,
    ptx: PtxKeys,
    tool_paths: ToolPaths,
    tools: Tools,
}

/// What of LLVM was found, each looked for when it is first needed.
#[derive(Default)]
struct Tools {
    nvptx: OnceLock<Result<Llvm, ToolError>>,
    amdgpu: OnceLock<Result<Llvm, ToolError>>,
    linker: OnceLock<Linker>,
}

impl Compiler {
    /// A compiler as the manifest and the options want it.
    pub(crate) fn new(options: &Options, manifest: &Manifest, log: Log) -> Compiler {
        Compiler::with_cache(manifest, Cache::new(options, log))
    }

    /// A compiler that keeps nothing.
    pub(crate) fn uncached(manifest: &Manifest, log: Log) -> Compiler {
        Compiler::with_cache(manifest, Cache::none(log))
    }

    /// A compiler that keeps nothing and starts no tool.
    pub(crate) fn for_checks(manifest: &Manifest, log: Log) -> Compiler {
        let mut compiler = Compiler::uncached(manifest, log);
        compiler.ptx.codegen = PtxCodegen::Direct;
        compiler
    }

    fn with_cache(manifest: &Manifest, cache: Cache) -> Compiler {
        let crate::manifest::Tools { llc, lld } = manifest.tools.clone();
        let tool_paths = ToolPaths { llc, lld };
        Compiler { cache, ptx: manifest.ptx, tool_paths, tools: Tools::default() }
    }

    /// Compiles a kernel for a back end: for this device, or for any that the back end knows.
    ///
    /// # Errors
    /// Why the target cannot run the kernel, or what is missing to compile it.
    pub(crate) fn compile(
        &self,
        kernels: &Kernels,
        id: FnId,
        backend: GpuBackend,
        device: Option<&DeviceProperties>,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        match backend {
            GpuBackend::Cpu => cpu::compile(kernels, id),
            GpuBackend::Interp => Ok(interp::compile(kernels, id)),
            GpuBackend::Spv => self.spv(kernels, id, device),
            GpuBackend::Msl => self.msl(kernels, id),
            GpuBackend::Ptx => self.ptx(kernels, id, device),
            GpuBackend::Hip => self.hip(kernels, id, device),
            GpuBackend::Wgsl => self.wgsl(kernels, id, device),
        }
    }

    /// What is to be said about a kernel that a back end compiles.
    pub(crate) fn warning(
        &self,
        kernels: &Kernels,
        id: FnId,
        backend: GpuBackend,
        device: Option<&DeviceProperties>,
    ) -> Option<Diagnostic> {
        match backend {
            GpuBackend::Ptx => self.ptx_warning(kernels, id, device),
            GpuBackend::Spv
            | GpuBackend::Msl
            | GpuBackend::Hip
            | GpuBackend::Wgsl
            | GpuBackend::Cpu
            | GpuBackend::Interp => None,
        }
    }

    /// Compiles kernels for any device of their back ends, several at a time. The results are in the
    /// order of the jobs.
    pub(crate) fn compile_all(
        &self,
        kernels: &Kernels,
        jobs: &[(FnId, GpuBackend)],
        options: &Options,
    ) -> Vec<Result<KernelBlob, Vec<Diagnostic>>> {
        let results: Vec<OnceLock<_>> = jobs.iter().map(|_| OnceLock::new()).collect();
        // What takes longest comes first, so that in the end no thread waits for another.
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&n| match jobs[n].1 {
            GpuBackend::Hip => 0,
            GpuBackend::Ptx => 1,
            GpuBackend::Spv
            | GpuBackend::Msl
            | GpuBackend::Wgsl
            | GpuBackend::Cpu
            | GpuBackend::Interp => 2,
        });
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let Some(&n) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let ((id, backend), result) = (jobs[n], &results[n]);
                result.get_or_init(|| self.compile(kernels, id, backend, None));
            }
        };
        std::thread::scope(|scope| {
            // The system is asked for its cores only when there is something to share.
            let helpers = if jobs.len() > 1 { options.threads().min(jobs.len()) - 1 } else { 0 };
            for _ in 0..helpers {
                // What no thread can be had for is done by this one.
                let _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            }
            work();
        });
        let done = results.into_iter().zip(jobs).map(|(result, &(id, backend))| {
            result.into_inner().unwrap_or_else(|| self.compile(kernels, id, backend, None))
        });
        done.collect()
    }

    /// What keeps a kernel from running on a target, as far as that shows without tools.
    pub(crate) fn check(
        &self,
        kernels: &Kernels,
        id: FnId,
        backend: GpuBackend,
    ) -> Vec<Diagnostic> {
        match backend {
            GpuBackend::Hip => hip::check(kernels, id),
            GpuBackend::Spv
            | GpuBackend::Msl
            | GpuBackend::Ptx
            | GpuBackend::Wgsl
            | GpuBackend::Cpu
            | GpuBackend::Interp => match self.compile(kernels, id, backend, None) {
                Ok(_) => self.warning(kernels, id, backend, None).into_iter().collect(),
                Err(errors) => errors,
            },
        }
    }

    /// Compiles a kernel with a back end's emitter, or takes it from the cache. `target` tells
    /// apart what the features do not.
    fn cached<C: BodyCompiler>(
        &self,
        kernels: &Kernels,
        id: FnId,
        emitter: &C,
        features: DeviceFeatures,
        target: &str,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let make = || {
            let Bodies { robust, unchecked } = kernels
                .with_optimized(id, |module, pipeline| bodies(module, module.func(id), pipeline));
            // Other kernels may be optimised meanwhile; that makes no types.
            let types = &kernels.module.types;
            let blob = emitter.emit_bodies(&robust, unchecked.as_ref(), types)?;
            checkers::check(&blob, kernels.name(id), kernels.func(id).span).map(|()| blob)
        };
        if self.cache.folder().is_none() {
            return make();
        }
        let name = kernels.name(id);
        let key = Key::new(&kernels.canonical_text(id), C::BACKEND, features, target);
        if let Some(blob) = self.cache.get(key, name) {
            return Ok(blob);
        }
        let blob = make()?;
        self.cache.put(key, name, &blob);
        Ok(blob)
    }

    /// The LLVM for a target.
    fn llvm(&self, target: Target) -> Result<&Llvm, &ToolError> {
        let slot = match target {
            Target::Nvptx => &self.tools.nvptx,
            Target::Amdgpu => &self.tools.amdgpu,
        };
        let find = || Llvm::find(target, &self.tool_paths, &Environment::of_process());
        slot.get_or_init(find).as_ref()
    }

    /// The linker of AMD code objects.
    fn linker(&self) -> &Linker {
        let linker = || Linker::new(&self.tool_paths, Environment::of_process());
        self.tools.linker.get_or_init(linker)
    }
}
