//! Barriers that not every invocation of a workgroup reaches.

use super::short_name;
use magpie_diag::{Code, Diagnostic, sort_diagnostics};
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::{MpirFn, Op};
use magpie_types::TypeCtx;

/// Reports each barrier of a closed kernel that stands in divergent control flow
/// (`MPG_CORE_1401`).
pub fn check_barriers(kernel: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    divergent_barriers(kernel, types, Uniformity::new)
}

/// As [`check_barriers`], for a language in which what a kernel writes itself is never uniform.
pub fn check_barriers_strictly(kernel: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    divergent_barriers(kernel, types, Uniformity::of_written_memory)
}

fn divergent_barriers(
    kernel: &MpirFn,
    types: &TypeCtx,
    uniformity: fn(&MpirFn, &TypeCtx, &Cfg) -> Uniformity,
) -> Vec<Diagnostic> {
    let barriers: Vec<_> = kernel
        .block_ids()
        .flat_map(|b| kernel.block(b).insts.iter().map(move |&i| (b, i)))
        .filter(|&(_, i)| kernel.inst(i).op == Op::GpuBarrier)
        .collect();
    if barriers.is_empty() {
        return Vec::new();
    }
    let cfg = Cfg::new(kernel);
    let uniformity = uniformity(kernel, types, &cfg);
    let mut out = Vec::new();
    for (b, i) in barriers {
        if !cfg.is_reachable(b) || uniformity.is_uniform_block(b) {
            continue;
        }
        let message = format!(
            "not every invocation of a workgroup of `{}` reaches this barrier equally often",
            short_name(kernel)
        );
        let mut d = Diagnostic::new(Code::MPG_CORE_1401, kernel.inst(i).span, message);
        if let Some(branch) = uniformity.decided_by(b) {
            d = d.with_secondary(
                kernel.block(branch).term_span,
                "this branch takes invocations different ways",
            );
        }
        out.push(d.with_help(
            "move the barrier behind the place where they meet again, or branch on a value that is \
             the same for the workgroup",
        ));
    }
    // Inlining may have copied a barrier.
    sort_diagnostics(&mut out);
    out.dedup_by(|a, b| a.primary.is_some() && a.primary == b.primary);
    out
}
