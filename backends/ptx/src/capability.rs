//! What a device is too old for, and what is done instead.

use crate::target::{NATIVE_BFLOAT16, PtxTarget};
use magpie_diag::{Code, Diagnostic};
use magpie_gpu::legalize::first_computing;
use magpie_mpir::MpirFn;
use magpie_types::{PrimType, TypeCtx};

/// A warning for a kernel that uses what the compute capability of the target does not have.
pub fn capability_warning(
    kernel: &MpirFn,
    types: &TypeCtx,
    target: &PtxTarget,
) -> Option<Diagnostic> {
    if target.has_bfloat16() {
        return None;
    }
    let inst = kernel.inst(first_computing(kernel, types, &|p| p == PrimType::Bf16)?);
    let (name, sm) = (&kernel.name, target.sm);
    let message = format!(
        "kernel `{name}` computes with bf16, which sm_{sm} does not: every operation is done in f32 \
         and rounded"
    );
    let help = format!(
        "results are the same and take longer; sm_{NATIVE_BFLOAT16} and newer compute with bf16, and \
         f32 is native everywhere"
    );
    Some(Diagnostic::new(Code::MPG_PTX_2003, inst.span, message).with_help(help))
}
