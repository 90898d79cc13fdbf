//! From a kernel of the pipeline to a blob: legalisation, bounds checks, emission.

use crate::emitter::{Emitter, Function, ModuleText};
use crate::llvm::emit_ptx_llvm;
use crate::target::{Codegen, PtxTarget};
use magpie_codegen_llvm::tool::{Llvm, Target, ToolError};
use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_gpu::available::refusals;
use magpie_gpu::compile::{BodyCompiler, CompiledBody, lower_callees, lower_for_target};
use magpie_gpu::layout::compute_layout;
use magpie_gpu::structurize::{PhiCopies, edge_copies};
use magpie_mpir::MpirFn;
use magpie_mpir::passes::{IndexWidth, PassContext, dce, lower_vectors};
use magpie_types::TypeCtx;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelLayout};

/// Compiles kernels for an NVIDIA GPU.
#[derive(Clone, Copy, Debug)]
pub struct PtxEmitter<'a> {
    /// The device.
    pub target: PtxTarget,
    /// Where source locations in the text (`.loc`) come from; `None` leaves them out.
    pub sources: Option<&'a SourceMap>,
    /// An LLVM with the NVPTX target, when there is one; [`PtxTarget::codegen`] says whether it is
    /// used.
    pub llvm: Option<&'a Llvm>,
}

impl PtxEmitter<'_> {
    /// The text of the direct writer.
    fn write(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<String, Vec<Diagnostic>> {
        let legal = self.target.legal_ops();
        let (mut f, mut scratch) = lower_for_target(kernel, types, &legal, IndexWidth::Bits64);
        let mut callees = lower_callees(kernel, &mut scratch, &legal, IndexWidth::Bits64);
        let mut ctx = PassContext::default();
        let mut finish = |f: &mut MpirFn| {
            // What is exact on vectors is so on their components.
            lower_vectors(f, &scratch.types, &mut ctx);
            // Where nobody looks at the old value, an atomic operation need not bring it.
            dce(f, &mut ctx);
            edge_copies(f)
        };
        let kernel_copies = finish(&mut f);
        let copies: Vec<PhiCopies> = callees.iter_mut().map(|(_, f)| finish(f)).collect();
        let rules = self.target.layout_rules();
        let layouts = kernel.callees.iter().map(|(id, callee)| {
            // Entries have no `$` in their name.
            let entry = format!("device${}", id.0);
            KernelLayout { entry, ..compute_layout(callee, types, &rules) }
        });
        let functions: Vec<Function> = callees
            .iter()
            .zip(layouts)
            .map(|((id, f), layout)| Function { id: *id, f, layout })
            .collect();
        let mut module = ModuleText::new(self.sources);
        let mut write = |f, copies, layout| {
            let emitter = Emitter::new(
                &scratch.types,
                f,
                copies,
                layout,
                &functions,
                &self.target,
                &mut module,
            );
            emitter.write().map_err(|d| vec![*d])
        };
        for (function, copies) in functions.iter().zip(&copies) {
            write(function.f, copies, &function.layout)?;
        }
        write(&f, &kernel_copies, layout)?;
        Ok(module.finish(&self.target))
    }

    fn check_shared(&self, kernel: &MpirFn, layout: &KernelLayout) -> Result<(), Vec<Diagnostic>> {
        let (bytes, limit) = (layout.shared_bytes, self.target.shared_limit);
        if bytes <= limit {
            return Ok(());
        }
        let name = &kernel.name;
        let message =
            format!("kernel `{name}` has {bytes} bytes of shared memory; the limit is {limit}");
        let d = Diagnostic::new(Code::MPG_PTX_2001, kernel.span, message);
        let help = "make its shared arrays smaller, or set `shared_opt_in = true` under [gpu.ptx] \
                    for devices that have more";
        Err(vec![d.with_help(help)])
    }
}

impl BodyCompiler for PtxEmitter<'_> {
    const BACKEND: GpuBackend = GpuBackend::Ptx;
    const EXTENSION: &'static str = "ptx";

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        let mut layout = compute_layout(kernel, types, &self.target.layout_rules());
        // The one name that PTX keeps for itself.
        if layout.entry == "WARP_SZ" {
            layout.entry.push('_');
        }
        layout
    }

    fn is_slow(&self) -> bool {
        self.target.codegen != Codegen::Direct && self.llvm.is_some()
    }

    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>> {
        let refusals = refusals(kernel, types, GpuBackend::Ptx, Code::MPG_PTX_1101);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        self.check_shared(kernel, layout)?;
        let text = match (self.target.codegen, self.llvm) {
            (Codegen::Direct, _) | (Codegen::Auto, None) => self.write(kernel, types, layout)?,
            (Codegen::Auto | Codegen::Llvm, Some(llvm)) => {
                emit_ptx_llvm(kernel, types, layout, &self.target, llvm, self.sources)?
            }
            (Codegen::Llvm, None) => {
                let e = ToolError::not_found(Target::Nvptx, Vec::new());
                return Err(vec![e.to_diagnostic(Code::MPG_PTX_2002, kernel.span)]);
            }
        };
        Ok(CompiledBody { code: text.into_bytes(), features: DeviceFeatures::default() })
    }
}
