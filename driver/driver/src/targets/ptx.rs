//! Kernels as PTX.

use super::Compiler;
use crate::kernels::Kernels;
use crate::manifest::PtxCodegen;
use magpie_codegen_llvm::tool::Target;
use magpie_diag::{Code, Diagnostic};
use magpie_gpu_ptx::{Codegen, PtxEmitter, PtxTarget, capability_warning};
use magpie_mpir::FnId;
use magpie_rt::gpu::DeviceProperties;
use magpie_types::kernel::{CUDA_MOST_SHARED, DeviceFeatures, KernelBlob};

impl Compiler {
    /// What PTX is made for: the device, or any that is not too old.
    fn ptx_target(&self, device: Option<&DeviceProperties>) -> PtxTarget {
        let mut target = PtxTarget::DEFAULT;
        if let Some(sm) = device.and_then(|device| capability(&device.architecture)) {
            target.sm = sm;
        }
        if self.ptx.shared_opt_in {
            target.shared_limit =
                device.map_or(CUDA_MOST_SHARED, |device| device.limits.shared_bytes);
        }
        target.codegen = match self.ptx.codegen {
            PtxCodegen::Auto => Codegen::Auto,
            PtxCodegen::Llvm => Codegen::Llvm,
            PtxCodegen::Direct => Codegen::Direct,
        };
        target
    }

    /// A warning for a kernel that the device is too old for.
    pub(super) fn ptx_warning(
        &self,
        kernels: &Kernels,
        id: FnId,
        device: Option<&DeviceProperties>,
    ) -> Option<Diagnostic> {
        capability_warning(kernels.func(id), &kernels.module.types, &self.ptx_target(device))
    }

    pub(super) fn ptx(
        &self,
        kernels: &Kernels,
        id: FnId,
        device: Option<&DeviceProperties>,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let target = self.ptx_target(device);
        let llvm = match target.codegen {
            Codegen::Direct => None,
            Codegen::Auto | Codegen::Llvm => match self.llvm(Target::Nvptx) {
                Ok(llvm) => Some(llvm),
                // None is needed; but one that the user names has to do.
                Err(e) if target.codegen == Codegen::Auto && !e.is_named => None,
                Err(e) => {
                    return Err(vec![e.to_diagnostic(Code::MPG_PTX_2002, kernels.func(id).span)]);
                }
            },
        };
        let writer = match llvm {
            Some(llvm) => format!("LLVM {} {}", llvm.version(), llvm.path().display()),
            None => "direct".to_string(),
        };
        let text = format!("sm_{} {} {writer}", target.sm, target.shared_limit);
        let emitter = PtxEmitter { target, sources: Some(&kernels.sources), llvm };
        self.cached(kernels, id, &emitter, DeviceFeatures::default(), &text)
    }
}

/// The compute capability in the name of an architecture: 90 for `sm_90`.
fn capability(architecture: &str) -> Option<u32> {
    architecture.strip_prefix("sm_")?.parse().ok()
}
