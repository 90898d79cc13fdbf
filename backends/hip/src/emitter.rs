//! [`HipEmitter`]: from a kernel of the pipeline to a code object.

use crate::code_object::{self, KernelFacts};
use crate::link::link;
use crate::target::{HipTarget, needs_wave64};
use magpie_codegen_llvm::tool::{Job, Linker, Llvm, Output, ToolError};
use magpie_codegen_llvm::write_kernel;
use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_gpu::available::refusals;
use magpie_gpu::capability::Capability;
use magpie_gpu::compile::{BodyCompiler, CompiledBody};
use magpie_gpu::layout::{LayoutRules, compute_layout};
use magpie_gpu::target::TargetLimits;
use magpie_mpir::MpirFn;
use magpie_types::TypeCtx;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelLayout, ParamLayout};

/// Compiles kernels for an AMD GPU.
#[derive(Clone, Copy, Debug)]
pub struct HipEmitter<'a> {
    /// The device.
    pub target: &'a HipTarget,
    /// Where the line table of the code object comes from; `None` leaves it out.
    pub sources: Option<&'a SourceMap>,
    /// An LLVM with the AMDGPU target.
    pub llvm: &'a Llvm,
    /// What links objects that are more than the own link step knows, or all if it was named.
    pub linker: &'a Linker,
}

impl HipEmitter<'_> {
    /// The LLVM IR of a body, as it is given to LLVM.
    ///
    /// # Errors
    /// What the target cannot run.
    pub fn write_ir(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<String, Vec<Diagnostic>> {
        check_kernel(kernel, types, layout, self.target)?;
        let (version, first) = (self.llvm.version(), self.target.first_llvm());
        if version.major < first {
            let (name, path) = (self.target.processor(), self.llvm.path().display());
            let message = format!("LLVM {version} (`{path}`) does not know {name}");
            let d = Diagnostic::new(Code::MPG_HIP_2002, kernel.span, message);
            let help = format!("install LLVM {first} or newer, or name one under [gpu.tools]");
            return Err(vec![d.with_help(help)]);
        }
        let flavor = self.target.flavor();
        write_kernel(kernel, types, layout, flavor, version.major, self.sources)
    }

    /// Makes a code object of an object.
    fn link(&self, object: &[u8]) -> Result<Vec<u8>, ToolError> {
        if self.linker.is_named() {
            return self.linker.link(object);
        }
        link(object).or_else(|why| {
            let note = format!("the object has {why}, for which a linker is needed");
            self.linker.link(object).map_err(|mut e| {
                e.notes.push(note);
                e
            })
        })
    }
}

/// What keeps a kernel from running on a processor, as far as that shows without tools.
///
/// # Errors
/// What the target cannot run.
pub fn check_kernel(
    kernel: &MpirFn,
    types: &TypeCtx,
    layout: &KernelLayout,
    target: &HipTarget,
) -> Result<(), Vec<Diagnostic>> {
    let mut found = refusals(kernel, types, GpuBackend::Hip, Code::MPG_HIP_1101);
    let (bytes, limit) = (layout.shared_bytes, TargetLimits::of(GpuBackend::Hip).shared_bytes);
    if bytes > limit {
        let name = &kernel.name;
        let message =
            format!("kernel `{name}` has {bytes} bytes of shared memory; the limit is {limit}");
        let d = Diagnostic::new(Code::MPG_HIP_2001, kernel.span, message);
        found.push(d.with_help("make its shared arrays smaller"));
    }
    if let Some(meta) = kernel.gpu_meta.as_ref().filter(|_| needs_wave64(kernel))
        && !target.has_wave64()
    {
        let (word, name) = (Capability::HipWave64.word(), target.processor());
        let message = format!("`{word}` is required, but wavefronts of {name} have 32 lanes");
        let d = Diagnostic::new(Code::MPG_CORE_1200, meta.spans.requires, message);
        found.push(d.with_help("compile for a processor with 64, such as gfx90a or gfx942"));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

impl BodyCompiler for HipEmitter<'_> {
    const BACKEND: GpuBackend = HipTarget::BACKEND;
    const EXTENSION: &'static str = "hsaco";

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        compute_layout(kernel, types, &LayoutRules::ARGUMENTS)
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>> {
        let ir = self.write_ir(kernel, types, layout)?;
        let job = Job {
            ir: &ir,
            triple: self.target.flavor().triple(),
            cpu: self.target.processor(),
            features: &self.target.features(),
            output: Output::Object,
        };
        let linked = self.llvm.compile(&job).and_then(|object| self.link(&object));
        let code = linked.map_err(|e| vec![e.to_diagnostic(Code::MPG_HIP_2002, kernel.span)])?;
        let checked = code_object::read(&code, &layout.entry).and_then(|k| agrees(&k, layout));
        checked.map_err(|why| {
            let (name, llvm) = (&kernel.name, self.llvm.path().display());
            let message =
                format!("the code object of kernel `{name}` from `{llvm}` is not usable: {why}");
            let d = Diagnostic::new(Code::MPG_HIP_2002, kernel.span, message);
            vec![d.with_help("install another version of LLVM, or name one under [gpu.tools]")]
        })?;
        Ok(CompiledBody { code, features: DeviceFeatures::default() })
    }
}

/// Whether the arguments of a kernel are those of its layout.
fn agrees(kernel: &KernelFacts, layout: &KernelLayout) -> Result<(), String> {
    let size = |p: &ParamLayout| match p {
        ParamLayout::Buffer(_) => 8,
        ParamLayout::Scalar { size, .. } => u64::from(*size),
    };
    let hidden = layout.hidden.iter().map(|h| u64::from(h.size));
    let wanted: Vec<u64> = layout.params.iter().map(size).chain(hidden).collect();
    let found: Vec<u64> = kernel.args.iter().filter(|a| !a.is_hidden()).map(|a| a.size).collect();
    if wanted != found {
        return Err(format!("arguments of {found:?} bytes instead of {wanted:?}"));
    }
    let end = kernel.args.iter().map(|a| a.offset + a.size).max().unwrap_or(0);
    if end > kernel.kernarg_size {
        return Err(format!("arguments up to {end} in {} bytes", kernel.kernarg_size));
    }
    let invocations: u64 = layout.workgroup.iter().map(|&n| u64::from(n)).product();
    if kernel.max_workgroup < invocations {
        return Err(format!("workgroups of {} instead of {invocations}", kernel.max_workgroup));
    }
    Ok(())
}
