//! Kernels as machine code of this process.

use super::bodies::{Bodies, bodies};
use crate::host_runtime::ProcessRuntime;
use crate::kernels::Kernels;
use magpie_codegen_cpu::{KernelBody, KernelCode, MAX_NEAR_LEN, compile_kernel, lower_kernel};
use magpie_diag::{Code, Diagnostic};
use magpie_gpu::available::refusals;
use magpie_gpu::layout::{LayoutRules, ScalarRule, compute_layout};
use magpie_mpir::FnId;
use magpie_mpir::passes::Unchecked;
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob, KernelLayout, PreOp, Precondition};

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
    let (mut layout, compiled) = kernels.with_optimized(id, |module, pipeline| {
        let mut kernel = module.func(id).clone();
        let refusals = refusals(&kernel, types, GpuBackend::Cpu, Code::MPG_CORE_1304);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let mut layout = compute_layout(&kernel, types, &RULES);
        pipeline.unroll_barriers(module, &mut kernel);
        let Bodies { robust, unchecked } = bodies(module, &kernel, pipeline);
        let mut bodies = vec![robust];
        if let Some(Unchecked { body, preconditions }) = unchecked {
            bodies.push(body);
            layout.preconditions = preconditions;
            layout.preconditions.extend(no_long_buffers(&layout));
        }
        for body in &mut bodies {
            lower_kernel(module, body, pipeline);
        }
        // The second is for the declared size.
        let sizes = [None, Some(layout.workgroup)];
        let bodies: Vec<KernelBody> = bodies
            .iter()
            .zip(sizes)
            .map(|(code, workgroup)| KernelBody { code, workgroup })
            .collect();
        let mut runtime = ProcessRuntime::new(types, &kernels.sources);
        let compiled = compile_kernel(module, &bodies, &layout, &mut runtime);
        Ok((layout, compiled))
    })?;
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

/// Hold for launches in which no buffer has more than [`MAX_NEAR_LEN`] elements: those that it has
/// more, times more than any buffer has, fit into a buffer only when there are none.
fn no_long_buffers(layout: &KernelLayout) -> Vec<Precondition> {
    let no_more = |buffer: u32| {
        let excess = [PreOp::Length(buffer), PreOp::Const(MAX_NEAR_LEN), PreOp::Sub];
        let bound = excess.into_iter().chain([PreOp::Const(u64::MAX), PreOp::Mul]).collect();
        Precondition { bound, buffer }
    };
    layout.buffers().map(|b| no_more(b.index)).collect()
}
