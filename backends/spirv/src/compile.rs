//! From a kernel of the pipeline to a blob: legalisation, bounds checks, structure, emission.

use crate::emitter::Emitter;
use crate::target::SpirvTarget;
use crate::vectors::keeps_vectors;
use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_gpu::BackendEmitter;
use magpie_gpu::layout::compute_layout;
use magpie_gpu::legalize::legalize;
use magpie_gpu::structurize::{lower_irreducible, structurize};
use magpie_mpir::passes::{IndexWidth, PassContext, Pipeline, lower_vectors};
use magpie_mpir::{Flags, FnId, Memory, Module, MpirFn};
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
    /// The unchecked body is made when the layout has preconditions for it.
    ///
    /// # Errors
    /// What the target cannot run.
    pub fn emit(&self, module: &Module, kernel: FnId) -> Result<KernelBlob, Vec<Diagnostic>> {
        let f = module.func(kernel);
        let mut layout = self.compute_layout(f, &module.types)?;
        let legal = Legalized::new(f, &module.types, &self.target);
        let robust = self.emit_body(&legal, &layout, true)?;
        layout.features = robust.features;
        let unchecked = match layout.preconditions.is_empty() {
            true => None,
            false => {
                let body = self.emit_body(&legal, &layout, false)?;
                layout.features |= body.features;
                Some(body)
            }
        };
        Ok(KernelBlob {
            backend: GpuBackend::Spv,
            layout,
            code: blob_code(&robust.words),
            unchecked: unchecked.map(|body| blob_code(&body.words)),
        })
    }

    /// One body of a kernel, with its bounds checks or without.
    fn emit_body(
        &self,
        legal: &Legalized,
        layout: &KernelLayout,
        checks: bool,
    ) -> Result<Emitted, Vec<Diagnostic>> {
        let Legalized { f, scratch } = legal;
        let mut f = f.clone();
        if checks {
            Pipeline::new().lower_bounds_checks(scratch, &mut f, IndexWidth::Bits32);
        } else {
            drop_checks(&mut f);
        }
        let body = match structurize(&mut f, &scratch.types) {
            Ok(body) => body,
            Err(_) => {
                lower_irreducible(&mut f, &scratch.types);
                structurize(&mut f, &scratch.types)
                    .map_err(|e| vec![e.to_diagnostic(&f, GpuBackend::Spv)])?
            }
        };
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
        let legal = Legalized::new(kernel, types, &self.target);
        self.emit_body(&legal, &layout, true).map(drop)
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
        let legal = Legalized::new(kernel, types, &self.target);
        Ok(blob_code(&self.emit_body(&legal, layout, true)?.words))
    }

    fn artifact_extension(&self) -> &'static str {
        "spv"
    }
}

/// A copy of a kernel in which everything is legal, with the types it has now.
struct Legalized {
    f: MpirFn,
    /// A module without functions, for passes that look at types.
    scratch: Module,
}

impl Legalized {
    fn new(kernel: &MpirFn, types: &TypeCtx, target: &SpirvTarget) -> Legalized {
        let mut f = kernel.clone();
        let mut scratch = Module::new();
        scratch.types = types.clone();
        let legal = target.legal_ops();
        if !keeps_vectors(&f, &scratch.types, &legal) {
            lower_vectors(&mut f, &scratch.types, &mut PassContext::default());
        }
        legalize(&mut f, &mut scratch.types, &legal);
        Legalized { f, scratch }
    }
}

/// Marks every access as one that lies inside.
fn drop_checks(f: &mut MpirFn) {
    for b in f.block_ids() {
        for n in 0..f.block(b).insts.len() {
            let inst = f.block(b).insts[n];
            let data = f.inst_mut(inst);
            let memory = data.op.info().memory;
            if matches!(memory, Memory::Read | Memory::Write | Memory::Atomic) {
                data.flags = data.flags.union(Flags::UNCHECKED);
            }
        }
    }
}

fn blob_code(words: &[u32]) -> BlobCode {
    BlobCode::Bytes(words.iter().flat_map(|w| w.to_le_bytes()).collect())
}
