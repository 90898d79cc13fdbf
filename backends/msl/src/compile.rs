//! From a kernel of the pipeline to a blob: legalisation, bounds checks, structure, emission.

use crate::available;
use crate::language::write_source;
use crate::target::MslTarget;
use crate::words::is_reserved;
use magpie_diag::Diagnostic;
use magpie_gpu::compile::{BodyCompiler, CompiledBody, lower_for_target};
use magpie_gpu::layout::compute_layout;
use magpie_gpu::structurize::structurize;
use magpie_mpir::MpirFn;
use magpie_mpir::analysis::counters_of_finite_loops;
use magpie_mpir::passes::IndexWidth;
use magpie_types::TypeCtx;
use magpie_types::kernel::{GpuBackend, KernelLayout};

/// Compiles kernels for Metal devices.
#[derive(Clone, Copy, Debug)]
pub struct MslEmitter {
    /// The device.
    pub target: MslTarget,
}

impl BodyCompiler for MslEmitter {
    const BACKEND: GpuBackend = GpuBackend::Msl;
    const EXTENSION: &'static str = "metal";

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        let mut layout = compute_layout(kernel, types, &self.target.layout_rules());
        if is_reserved(&layout.entry) {
            layout.entry.push_str("_kernel");
        }
        layout
    }

    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>> {
        let refusals = available::refusals(kernel, types);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let legal = self.target.legal_ops();
        let (mut f, scratch) = lower_for_target(kernel, types, &legal, IndexWidth::Bits64);
        let body = structurize(&mut f, &scratch.types)
            .map_err(|e| vec![e.to_diagnostic(&f, GpuBackend::Msl)])?;
        let finite = counters_of_finite_loops(&f);
        let (source, features) =
            write_source(&scratch.types, &f, layout, &body, &finite).map_err(|d| vec![*d])?;
        Ok(CompiledBody { code: source.into_bytes(), features })
    }
}
