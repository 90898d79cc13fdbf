//! From a kernel of the pipeline to a blob: legalisation, bounds checks, structure, emission.

use crate::memory::shared_bytes;
use crate::module::write_module;
use crate::target::WgslTarget;
use crate::{available, ballots};
use magpie_diag::{Code, Diagnostic};
use magpie_gpu::compile::{BodyCompiler, CompiledBody, check_features, lower_for_target};
use magpie_gpu::layout::compute_layout;
use magpie_gpu::structurize::structurize;
use magpie_mpir::MpirFn;
use magpie_mpir::passes::{IndexWidth, PassContext, dce, fold};
use magpie_types::TypeCtx;
use magpie_types::kernel::{GpuBackend, KernelLayout};

/// The name of the entry point in every module.
const ENTRY: &str = "main";

/// Compiles kernels for a WebGPU device.
#[derive(Clone, Copy, Debug)]
pub struct WgslEmitter {
    /// The device.
    pub target: WgslTarget,
}

impl BodyCompiler for WgslEmitter {
    const BACKEND: GpuBackend = GpuBackend::Wgsl;
    const EXTENSION: &'static str = "wgsl";

    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout {
        let mut layout = compute_layout(kernel, types, &self.target.layout_rules());
        layout.entry = ENTRY.to_string();
        layout.shared_bytes = shared_bytes(kernel, types);
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
        let (mut f, scratch) = lower_for_target(kernel, types, &legal, IndexWidth::Bits32);
        ballots::narrow(&mut f);
        // An operation on nothing but constants is evaluated by the reader of the text, which
        // refuses what leaves a type.
        let mut ctx = PassContext::default();
        if fold(&mut f, &scratch.types, &mut ctx) {
            dce(&mut f, &mut ctx);
        }
        let body = structurize(&mut f, &scratch.types)
            .map_err(|e| vec![e.to_diagnostic(&f, GpuBackend::Wgsl)])?;
        let (code, features) =
            write_module(&scratch.types, &f, layout, &body).map_err(|d| vec![*d])?;
        check_features(&f, features, self.target.features, Code::MPG_WGSL_1101)?;
        Ok(CompiledBody { code: code.into_bytes(), features })
    }
}
