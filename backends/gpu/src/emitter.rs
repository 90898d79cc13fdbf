//! [`BackendEmitter`]: what every back end for kernels offers.

use magpie_diag::Diagnostic;
use magpie_mpir::MpirFn;
use magpie_types::TypeCtx;
use magpie_types::kernel::{BlobCode, GpuBackend, KernelLayout};

/// A back end. It sees one kernel at a time, closed by inlining and free of aggregate values
/// (`docs/internals/pipeline.md`), and works on its own copy.
pub trait BackendEmitter {
    /// The number of the back end, as in the registry and in messages.
    fn backend_id(&self) -> GpuBackend;

    /// Whether the target can run the kernel.
    ///
    /// # Errors
    /// What the target lacks, each at its place in the source.
    fn validate_kernel(&self, kernel: &MpirFn, types: &TypeCtx) -> Result<(), Vec<Diagnostic>>;

    /// How arguments reach the kernel, from its original parameter types.
    ///
    /// # Errors
    /// Parameters the target cannot take.
    fn compute_layout(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
    ) -> Result<KernelLayout, Vec<Diagnostic>>;

    /// The code for a kernel that [`BackendEmitter::validate_kernel`] accepted. Equal input gives
    /// equal bytes.
    ///
    /// # Errors
    /// What shows only now: irreducible control flow, a tool that fails.
    fn emit_kernel(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<BlobCode, Vec<Diagnostic>>;

    /// File extension of an emitted kernel, without the dot: `spv metal ptx hsaco wgsl`.
    fn artifact_extension(&self) -> &'static str;
}
