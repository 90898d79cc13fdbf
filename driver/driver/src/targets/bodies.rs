//! The two bodies of a kernel: one that is right for every launch, and one without the bounds
//! checks that most launches do not need.

use magpie_mpir::MpirFn;
use magpie_mpir::analysis::LaunchFacts;
use magpie_mpir::passes::{PassContext, Unchecked, elide_bounds_checks, preconditions};
use magpie_types::kernel::{PreOp, Precondition};
use magpie_types::{TypeCtx, TypeKind};

/// The bodies of a kernel.
pub(super) struct Bodies {
    /// Out-of-bounds accesses are harmless.
    pub(super) robust: MpirFn,
    /// For launches with the declared workgroup size that meet the preconditions.
    pub(super) unchecked: Option<Unchecked>,
}

/// Makes the bodies of an optimised kernel. Nothing is assumed of launches for the robust one; the
/// other may rely on the workgroup size, which becomes its first precondition.
pub(super) fn bodies(kernel: &MpirFn, types: &TypeCtx) -> Bodies {
    let mut ctx = PassContext::new();
    let mut robust = kernel.clone();
    elide_bounds_checks(&mut robust, types, LaunchFacts::default(), &mut ctx);
    let unchecked = unchecked(&robust, types, &mut ctx);
    Bodies { robust, unchecked }
}

fn unchecked(robust: &MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> Option<Unchecked> {
    let declared = has_declared_workgroup(robust, types)?;
    let facts = LaunchFacts::of(robust);
    let mut body = robust.clone();
    let elided = elide_bounds_checks(&mut body, types, facts, ctx);
    let found = preconditions(&body, types, facts, ctx);
    let mut unchecked = match found {
        Some(unchecked) => unchecked,
        None if elided => Unchecked { body, preconditions: Vec::new() },
        None => return None,
    };
    unchecked.preconditions.insert(0, declared);
    Some(unchecked)
}

/// Holds for launches with the declared workgroup size: the sum of the differences, times more than
/// any buffer has elements, fits into a buffer only when it is zero. `None` for kernels without
/// buffers, which have nothing to check.
fn has_declared_workgroup(kernel: &MpirFn, types: &TypeCtx) -> Option<Precondition> {
    let is_buffer = |ty| matches!(types.kind(ty), TypeKind::Buffer(_));
    kernel.params.iter().find(|&&(_, ty)| is_buffer(ty))?;
    let meta = kernel.gpu_meta.as_ref()?;
    let mut bound = vec![PreOp::Const(0)];
    for (dim, &size) in (0u8..).zip(&meta.workgroup) {
        let both = [PreOp::Block(dim), PreOp::Const(size.into())];
        bound.extend(both);
        bound.push(PreOp::Max);
        bound.extend(both);
        bound.extend([PreOp::Min, PreOp::Sub, PreOp::Add]);
    }
    bound.extend([PreOp::Const(u64::MAX), PreOp::Mul]);
    Some(Precondition { bound, buffer: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_diag::FileId;
    use magpie_mpir::{Flags, FnId, Module, parse};

    fn module(body: &str, params: &str) -> Module {
        let head = format!("gpu fn m.@k({params}) -> unit workgroup(64, 1, 1)");
        parse(&format!("{head} {{\n{body}}}\n"), FileId(0)).unwrap()
    }

    fn checks(f: &MpirFn) -> usize {
        let insts = f.blocks.iter().flat_map(|b| &b.insts);
        let accesses = insts.filter(|&&i| f.inst(i).op.name().starts_with("gpu.buffer_"));
        accesses.filter(|&&i| !f.inst(i).flags.contains(Flags::UNCHECKED)).count()
    }

    #[test]
    fn checks_that_depend_on_the_launch_become_preconditions() {
        let m = module(
            "bb0:
  %i: u32 = gpu.global_id dim=0
  %x: f32 = gpu.buffer_load %a, %i
  %t: u32 = gpu.thread_id dim=0
  %s: shared_array<64, f32> = gpu.shared
  gpu.buffer_store %s, %t, %x
  gpu.buffer_store %a, %i, %x
  ret
",
            "%a: gpu.TBuffer<f32>",
        );
        let Bodies { robust, unchecked } = bodies(m.func(FnId(0)), &m.types);
        assert_eq!(checks(&robust), 3);
        let unchecked = unchecked.unwrap();
        assert_eq!(checks(&unchecked.body), 0);
        assert_eq!(unchecked.preconditions.len(), 2);
        assert_eq!(unchecked.preconditions[0].bound.last(), Some(&PreOp::Mul));
    }

    #[test]
    fn kernels_with_nothing_to_check_have_one_body() {
        let m = module("bb0:\n  ret\n", "%a: gpu.TBuffer<f32>");
        assert!(bodies(m.func(FnId(0)), &m.types).unchecked.is_none());
        let m = module("bb0:\n  ret\n", "%n: u32");
        assert!(bodies(m.func(FnId(0)), &m.types).unchecked.is_none());
        // Nothing bounds this index.
        let m = module(
            "bb0:\n  %i: u32 = gpu.buffer_load %a, u32 0\n  gpu.buffer_store %a, %i, %i\n  ret\n",
            "%a: gpu.TBuffer<u32>",
        );
        let Bodies { robust, unchecked } = bodies(m.func(FnId(0)), &m.types);
        assert_eq!(checks(&robust), 2);
        assert!(unchecked.is_none_or(|u| checks(&u.body) == 1));
    }
}
