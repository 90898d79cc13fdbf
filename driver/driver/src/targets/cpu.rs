//! Kernels as machine code of this process.

use super::bodies::{Bodies, bodies};
use crate::host_runtime::ProcessRuntime;
use crate::kernels::Kernels;
use magpie_codegen_cpu::{KernelCode, compile_kernel, lower_kernel};
use magpie_diag::{Code, Diagnostic};
use magpie_gpu::available::refusals;
use magpie_gpu::layout::{LayoutRules, ScalarRule, compute_layout};
use magpie_mpir::passes::Unchecked;
use magpie_mpir::{FnId, MpirFn};
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob};

/// How arguments reach a kernel on the host.
pub(super) const RULES: LayoutRules = LayoutRules {
    scalars: ScalarRule::Arguments,
    storage8: true,
    storage16: true,
    hidden_length: 0,
    fixed_workgroup: false,
};

/// Compiles a kernel. The code stays in memory until the process ends, because the runtime may
/// launch it until then.
pub(super) fn compile(kernels: &Kernels, id: FnId) -> Result<KernelBlob, Vec<Diagnostic>> {
    let types = &kernels.module.types;
    let mut layout = compute_layout(kernels.func(id), types, &RULES);
    let refusals = refusals(kernels.func(id), types, GpuBackend::Cpu, Code::MPG_CORE_1304);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let compiled = kernels.with_optimized(id, |module, pipeline| {
        let Bodies { robust, unchecked } = bodies(module, module.func(id), pipeline);
        let mut bodies = vec![robust];
        if let Some(Unchecked { body, preconditions }) = unchecked {
            bodies.push(body);
            layout.preconditions = preconditions;
        }
        for body in &mut bodies {
            lower_kernel(module, body, pipeline);
        }
        let bodies: Vec<&MpirFn> = bodies.iter().collect();
        let mut runtime = ProcessRuntime::new(types, &kernels.sources);
        compile_kernel(module, &bodies, &layout, &mut runtime)
    });
    let KernelCode { bodies, shared_bytes, code } = compiled.map_err(|error| {
        let f = kernels.func(id);
        let message = format!("kernel `{}`: {error}", kernels.name(id));
        vec![Diagnostic::new(Code::MPG_CORE_1300, f.span, message)]
    })?;
    std::mem::forget(code);
    layout.shared_bytes = shared_bytes;
    let mut bodies = bodies.into_iter().map(BlobCode::Host);
    let code = bodies.next().unwrap_or(BlobCode::Bytes(Vec::new()));
    Ok(KernelBlob { backend: GpuBackend::Cpu, layout, code, unchecked: bodies.next() })
}
