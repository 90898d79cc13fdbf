//! Kernels as Metal Shading Language.

use super::Compiler;
use crate::kernels::Kernels;
use magpie_diag::Diagnostic;
use magpie_gpu_msl::{MslEmitter, MslTarget};
use magpie_mpir::FnId;
use magpie_types::kernel::{DeviceFeatures, KernelBlob};

impl Compiler {
    /// For every Metal device: what newer ones have besides would make kernels no better.
    pub(super) fn msl(&self, kernels: &Kernels, id: FnId) -> Result<KernelBlob, Vec<Diagnostic>> {
        let emitter = MslEmitter { target: MslTarget::COMMON };
        self.cached(kernels, id, &emitter, DeviceFeatures::default(), "2.4")
    }
}
