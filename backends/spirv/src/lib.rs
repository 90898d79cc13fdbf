//! SPIR-V 1.6 for Vulkan 1.3, written by hand.

mod builder;
mod capabilities;
mod control_flow;
pub mod disassembly;
mod emitter;
mod float_controls;
mod interface;
mod lines;
mod memory;
mod ops;
mod section;
mod types;

use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_gpu::structurize::structurize;
use magpie_mpir::MpirFn;
use magpie_types::TypeCtx;
use magpie_types::kernel::{DeviceFeatures, KernelLayout};

/// The words of a kernel and the features it needs.
pub fn emit_words(
    f: &MpirFn,
    types: &TypeCtx,
    layout: &KernelLayout,
    features: DeviceFeatures,
    sources: Option<&SourceMap>,
) -> Result<(Vec<u32>, DeviceFeatures), Box<Diagnostic>> {
    let mut f = f.clone();
    let body = structurize(&mut f, types).map_err(|_| {
        Box::new(Diagnostic::new(Code::MPG_SPV_1101, f.span, "irreducible control flow"))
    })?;
    emitter::Emitter::new(types, &f, layout, features, sources).module(&body)
}
