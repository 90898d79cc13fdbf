//! What no Metal device can do.

use magpie_diag::{Code, Diagnostic, Span};
use magpie_gpu::available;
use magpie_gpu::legalize::mentions;
use magpie_mpir::{Memory, MpirFn};
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, TypeCtx, TypeId};

/// A refusal for each parameter and instruction that has no form in MSL.
pub(crate) fn refusals(f: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let mut out = available::refusals(f, types, GpuBackend::Msl, Code::MPG_MSL_1101);
    out.extend(doubles(f, types));
    out.extend(wide_atomics(f, types));
    out
}

/// Parameters with f64 in them; without any, the first instruction that gives one.
fn doubles(f: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let is_double = |ty: TypeId| mentions(types, ty, &|p| p == PrimType::F64);
    let refuse = |at: Span, thing: String| {
        let d = Diagnostic::new(Code::MPG_CORE_1200, at, format!("{thing}: msl has no `f64`"));
        d.with_help("use `f32`, or another target")
    };
    let params = f.params.iter().zip(f.param_names.iter().zip(&f.param_spans));
    let of_params = params.filter(|((_, ty), _)| is_double(*ty)).map(|(_, (name, &span))| {
        let at = if span.is_some() { span } else { f.span };
        refuse(at, format!("parameter `{name}`"))
    });
    let mut out: Vec<Diagnostic> = of_params.collect();
    if out.is_empty() {
        let mut insts = f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i));
        let first = insts.find(|inst| is_double(inst.ty));
        out.extend(first.map(|inst| refuse(inst.span, format!("`{}`", inst.op.name()))));
    }
    out
}

fn wide_atomics(f: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let insts = f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i));
    let wide = insts.filter(|inst| {
        inst.op.info().memory == Memory::Atomic
            && matches!(types.prim(inst.ty), Some(PrimType::I64 | PrimType::U64))
    });
    let refuse = |inst: &magpie_mpir::InstData| {
        let message = format!("`{}` of 64 bits is not available on msl", inst.op.name());
        let d = Diagnostic::new(Code::MPG_MSL_1101, inst.span, message);
        d.with_help("use elements of 32 bits, or another target")
    };
    wide.map(refuse).collect()
}
