//! Kernels as WGSL.

use super::Compiler;
use crate::kernels::Kernels;
use magpie_diag::Diagnostic;
use magpie_gpu_wgsl::{WgslEmitter, WgslTarget};
use magpie_mpir::FnId;
use magpie_rt::gpu::DeviceProperties;
use magpie_types::kernel::KernelBlob;

impl Compiler {
    pub(super) fn wgsl(
        &self,
        kernels: &Kernels,
        id: FnId,
        device: Option<&DeviceProperties>,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let features = device.map_or(WgslTarget::COMMON.features, |device| device.features);
        let emitter = WgslEmitter { target: WgslTarget { features } };
        self.cached(kernels, id, &emitter, features, "")
    }
}
