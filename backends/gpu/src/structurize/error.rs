//! [`StructurizeError`]: control flow that cannot be structured.

use crate::surface::short_name;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::analysis::Cfg;
use magpie_mpir::{Block, MpirFn};
use magpie_types::kernel::GpuBackend;

/// A cycle that is entered at several blocks (irreducible control flow).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructurizeError {
    /// The blocks where control enters the cycle, in block order; at least two.
    pub entries: Vec<Block>,
    /// Their places: the first instruction with one, else the terminator.
    pub spans: Vec<Span>,
}

impl StructurizeError {
    /// The first such cycle of an irreducible function.
    pub(crate) fn find(f: &MpirFn, cfg: &Cfg) -> StructurizeError {
        let entries = super::irreducible::first_entries(cfg);
        let spans = entries.iter().map(|&b| block_span(f, b)).collect();
        StructurizeError { entries, spans }
    }

    /// The message for a kernel, at its head.
    pub fn to_diagnostic(&self, kernel: &MpirFn, backend: GpuBackend) -> Diagnostic {
        let code = match backend {
            GpuBackend::Wgsl => Code::MPG_WGSL_1001,
            GpuBackend::Spv
            | GpuBackend::Msl
            | GpuBackend::Ptx
            | GpuBackend::Hip
            | GpuBackend::Cpu
            | GpuBackend::Interp => Code::MPG_MSL_1001,
        };
        let head = kernel.gpu_meta.as_ref().map_or(kernel.span, |m| m.spans.head);
        let text = format!(
            "`{}` has irreducible control flow, which {} cannot express: a loop is entered at {} \
             places",
            short_name(kernel),
            backend.name(),
            self.entries.len(),
        );
        let mut d = Diagnostic::new(code, head, text)
            .with_help("let all jumps into the loop go to one block, with a phi for what differs");
        for (&span, n) in self.spans.iter().zip(1..) {
            d = d.with_secondary(span, format!("entry {n} of the loop"));
        }
        d
    }
}

fn block_span(f: &MpirFn, b: Block) -> Span {
    let block = f.block(b);
    let insts = block.insts.iter().map(|&i| f.inst(i).span);
    insts.chain([block.term_span]).find(|s| s.is_some()).unwrap_or(Span::NONE)
}
