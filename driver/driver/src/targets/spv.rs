//! Kernels as SPIR-V.

use super::Compiler;
use crate::kernels::Kernels;
use magpie_diag::Diagnostic;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_mpir::FnId;
use magpie_rt::gpu::DeviceProperties;
use magpie_types::kernel::KernelBlob;

impl Compiler {
    pub(super) fn spv(
        &self,
        kernels: &Kernels,
        id: FnId,
        device: Option<&DeviceProperties>,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let features = device.map_or(SpirvTarget::COMMON.features, |device| device.features);
        let target = SpirvTarget { features, ..SpirvTarget::COMMON };
        let emitter = SpirvEmitter { target, sources: Some(&kernels.sources) };
        self.cached(kernels, id, &emitter, features, "")
    }
}
