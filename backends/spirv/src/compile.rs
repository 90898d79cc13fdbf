//! From a kernel of the pipeline to a blob: legalisation, bounds checks, structure, emission.

use crate::available;
use crate::emitter::Emitter;
use crate::target::SpirvTarget;
use crate::vectors::keeps_vectors;
use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_gpu::BackendEmitter;
use magpie_gpu::layout::compute_layout;
use magpie_gpu::legalize::legalize;
use magpie_gpu::structurize::structurize_any;
use magpie_mpir::passes::{IndexWidth, PassContext, Pipeline, Unchecked, lower_vectors};
use magpie_mpir::{FnId, Module, MpirFn};
use magpie_types::TypeCtx;
use magpie_types::kernel::{BlobCode, DeviceFeatures, GpuBackend, KernelBlob, KernelLayout};

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

/// A module with the features it needs.
struct Emitted {
    words: Vec<u32>,
    features: DeviceFeatures,
}

impl SpirvEmitter<'_> {
    /// Compiles a kernel of a module: closed by inlining, optimised, without aggregate values
    /// besides its parameters. Equal input gives equal bytes.
    ///
    /// # Errors
    /// What the target cannot run.
    pub fn emit(&self, module: &Module, kernel: FnId) -> Result<KernelBlob, Vec<Diagnostic>> {
        self.emit_bodies(module.func(kernel), None, &module.types)
    }

    /// As [`SpirvEmitter::emit`], with a second body for launches that meet preconditions.
    ///
    /// # Errors
    /// What the target cannot run.
    pub fn emit_bodies(
        &self,
        robust: &MpirFn,
        unchecked: Option<&Unchecked>,
        types: &TypeCtx,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let mut layout = self.compute_layout(robust, types)?;
        let code = self.emit_body(robust, types, &layout)?;
        let mut features = code.features;
        let unchecked = match unchecked {
            None => None,
            Some(Unchecked { body, preconditions }) => {
                let code = self.emit_body(body, types, &layout)?;
                features |= code.features;
                layout.preconditions.clone_from(preconditions);
                Some(blob_code(&code.words))
            }
        };
        layout.features = features;
        let code = blob_code(&code.words);
        Ok(KernelBlob { backend: GpuBackend::Spv, layout, code, unchecked })
    }

    fn emit_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<Emitted, Vec<Diagnostic>> {
        let refusals = available::refusals(kernel);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        // A module without functions, for passes that look at types.
        let mut scratch = Module::new();
        scratch.types = types.clone();
        let mut f = kernel.clone();
        let legal = self.target.legal_ops();
        if !keeps_vectors(&f, types, &legal) {
            lower_vectors(&mut f, types, &mut PassContext::default());
        }
        legalize(&mut f, &mut scratch.types, &legal);
        Pipeline::new().lower_bounds_checks(&scratch, &mut f, IndexWidth::Bits32);
        let body = structurize_any(&mut f, &scratch.types)
            .map_err(|e| vec![e.to_diagnostic(&f, GpuBackend::Spv)])?;
        let emitter = Emitter::new(&scratch.types, &f, layout, self.target.features, self.sources);
        let (words, features) = emitter.module(&body).map_err(|d| vec![*d])?;
        let missing = features.minus(self.target.features);
        if missing != DeviceFeatures::default() {
            let message = format!(
                "kernel `{}` needs what the device does not offer: {}",
                f.name,
                missing.names().join(", ")
            );
            let d = Diagnostic::new(Code::MPG_SPV_1101, f.span, message);
            return Err(vec![d.with_help("run it on another device, such as `--device cpu`")]);
        }
        Ok(Emitted { words, features })
    }
}

impl BackendEmitter for SpirvEmitter<'_> {
    fn backend_id(&self) -> GpuBackend {
        GpuBackend::Spv
    }

    fn validate_kernel(&self, kernel: &MpirFn, types: &TypeCtx) -> Result<(), Vec<Diagnostic>> {
        let layout = self.compute_layout(kernel, types)?;
        self.emit_body(kernel, types, &layout).map(drop)
    }

    fn compute_layout(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
    ) -> Result<KernelLayout, Vec<Diagnostic>> {
        let mut layout = compute_layout(kernel, types, &self.target.layout_rules());
        layout.entry = ENTRY.to_string();
        Ok(layout)
    }

    fn emit_kernel(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<BlobCode, Vec<Diagnostic>> {
        Ok(blob_code(&self.emit_body(kernel, types, layout)?.words))
    }

    fn artifact_extension(&self) -> &'static str {
        "spv"
    }
}

fn blob_code(words: &[u32]) -> BlobCode {
    BlobCode::Bytes(words.iter().flat_map(|w| w.to_le_bytes()).collect())
}
