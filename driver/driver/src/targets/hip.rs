//! Kernels as code objects for AMD GPUs.

use super::Compiler;
use crate::kernels::Kernels;
use magpie_codegen_llvm::tool::{Target, ToolError};
use magpie_diag::{Code, Diagnostic};
use magpie_gpu::layout::{LayoutRules, compute_layout};
use magpie_gpu_hip::{HipEmitter, HipTarget, check_kernel};
use magpie_mpir::FnId;
use magpie_rt::gpu::DeviceProperties;
use magpie_types::kernel::{DeviceFeatures, KernelBlob};

impl Compiler {
    pub(super) fn hip(
        &self,
        kernels: &Kernels,
        id: FnId,
        device: Option<&DeviceProperties>,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let span = kernels.func(id).span;
        let target = match device.map(|device| device.architecture.as_str()) {
            None | Some("") => HipTarget::for_kernel(kernels.func(id)),
            Some(name) => HipTarget::new(name)
                .map_err(|why| vec![Diagnostic::new(Code::MPG_HIP_2002, span, why)])?,
        };
        let missing = |e: &ToolError| vec![e.to_diagnostic(Code::MPG_HIP_2002, span)];
        let llvm = self.llvm(Target::Amdgpu).map_err(missing)?;
        let text = format!("{} LLVM {} {}", target.name(), llvm.version(), llvm.path().display());
        let (sources, linker) = (Some(&kernels.sources), self.linker());
        let emitter = HipEmitter { target: &target, sources, llvm, linker };
        self.cached(kernels, id, &emitter, DeviceFeatures::default(), &text)
    }
}

/// What keeps a kernel from running on AMD GPUs, as far as that shows without tools.
pub(super) fn check(kernels: &Kernels, id: FnId) -> Vec<Diagnostic> {
    kernels.with_optimized(id, |module, _| {
        let (kernel, types) = (module.func(id), &module.types);
        let layout = compute_layout(kernel, types, &LayoutRules::ARGUMENTS);
        let target = HipTarget::for_kernel(kernel);
        check_kernel(kernel, types, &layout, &target).err().unwrap_or_default()
    })
}
