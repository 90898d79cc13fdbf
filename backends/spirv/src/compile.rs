//! From a kernel of the pipeline to a blob: legalisation, bounds checks, structure, emission.

use crate::emitter::Emitter;
use crate::target::SpirvTarget;
use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_gpu::available::refusals;
use magpie_gpu::compile::{BodyCompiler, CompiledBody, check_features, lower_for_target};
use magpie_gpu::layout::compute_layout;
use magpie_gpu::structurize::structurize_any;
use magpie_mpir::MpirFn;
use magpie_mpir::passes::IndexWidth;
use magpie_types::TypeCtx;
use magpie_types::kernel::{GpuBackend, KernelLayout};

/// The name of the entry point in every module.
const ENTRY: &str = "main";

/// Compiles kernels for a Vulkan device.
#[derive(Clone, Copy, Debug)]
pub struct SpirvEmitter<'a> {
    /// The device.
    pub target: SpirvTarget,
    /// Where source locations in the module (`OpLine`) come from; `None` leaves them out.
    pub sources: Option<&'a SourceMap>,
}

impl BodyCompiler for SpirvEmitter<'_> {
    const BACKEND: GpuBackend = GpuBackend::Spv;
    const EXTENSION: &'static str = "spv";

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        let mut layout = compute_layout(kernel, types, &self.target.layout_rules());
        layout.entry = ENTRY.to_string();
        layout
    }

    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>> {
        let refusals = refusals(kernel, types, GpuBackend::Spv, Code::MPG_SPV_1101);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let legal = self.target.legal_ops();
        let (mut f, scratch) = lower_for_target(kernel, types, &legal, IndexWidth::Bits32);
        let body = structurize_any(&mut f, &scratch.types)
            .map_err(|e| vec![e.to_diagnostic(&f, GpuBackend::Spv)])?;
        let emitter = Emitter::new(&scratch.types, &f, layout, self.target.features, self.sources);
        let (words, features) = emitter.module(&body).map_err(|d| vec![*d])?;
        check_features(&f, features, self.target.features, Code::MPG_SPV_1101)?;
        Ok(CompiledBody { code: words.iter().flat_map(|w| w.to_le_bytes()).collect(), features })
    }
}
