//! The two bodies of a kernel: one that is right for every launch, and one without the bounds
//! checks that most launches do not need.

use magpie_mpir::analysis::LaunchFacts;
use magpie_mpir::passes::{PassContext, Pipeline, Unchecked, elide_bounds_checks};
use magpie_mpir::{Flags, Memory, Module, MpirFn};
use magpie_types::kernel::{PreOp, Precondition};
use magpie_types::{TypeCtx, TypeKind};

/// The bodies of a kernel.
pub(super) struct Bodies {
    /// Out-of-bounds accesses are harmless.
    pub(super) robust: MpirFn,
    /// For launches with the declared workgroup size that meet the preconditions.
    pub(super) unchecked: Option<Unchecked>,
}

/// Makes the bodies of an optimised kernel of a module. Nothing is assumed of launches for the
/// robust one; the other may rely on the workgroup size, which becomes its first precondition.
pub(super) fn bodies(module: &Module, kernel: &MpirFn, pipeline: &mut Pipeline) -> Bodies {
    let mut robust = kernel.clone();
    let facts = LaunchFacts::default();
    elide_bounds_checks(&mut robust, &module.types, facts, &mut PassContext::new());
    let unchecked = unchecked(module, &robust, pipeline);
    Bodies { robust, unchecked }
}

fn unchecked(module: &Module, robust: &MpirFn, pipeline: &mut Pipeline) -> Option<Unchecked> {
    let declared = has_declared_workgroup(robust, &module.types)?;
    let mut body = robust.clone();
    let found = pipeline.prove_bounds(module, &mut body, LaunchFacts::of(robust));
    let mut unchecked = match found {
        Some(unchecked) => unchecked,
        None if checks(&body) < checks(robust) => Unchecked { body, preconditions: Vec::new() },
        None => return None,
    };
    unchecked.preconditions.insert(0, declared);
    Some(unchecked)
}

/// Number of memory accesses that are not marked `unchecked`.
fn checks(f: &MpirFn) -> usize {
    let insts = f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i));
    let accesses = insts.filter(|inst| match inst.op.info().memory {
        Memory::Read | Memory::Write | Memory::Atomic => true,
        Memory::None | Memory::Fence | Memory::Any => false,
    });
    accesses.filter(|inst| !inst.flags.contains(Flags::UNCHECKED)).count()
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
    use magpie_mpir::{FnId, parse};

    fn module(body: &str, params: &str) -> Module {
        let head = format!("gpu fn m.@k({params}) -> unit workgroup(64, 1, 1)");
        parse(&format!("{head} {{\n{body}}}\n"), FileId(0)).unwrap()
    }

    fn bodies_of(m: &Module) -> Bodies {
        bodies(m, m.func(FnId(0)), &mut Pipeline::new())
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
        let Bodies { robust, unchecked } = bodies_of(&m);
        assert_eq!(checks(&robust), 3);
        let unchecked = unchecked.unwrap();
        assert_eq!(checks(&unchecked.body), 0);
        assert_eq!(unchecked.preconditions.len(), 2);
        assert_eq!(unchecked.preconditions[0].bound.last(), Some(&PreOp::Mul));
    }

    #[test]
    fn kernels_with_nothing_to_check_have_one_body() {
        let m = module("bb0:\n  ret\n", "%a: gpu.TBuffer<f32>");
        assert!(bodies_of(&m).unchecked.is_none());
        let m = module("bb0:\n  ret\n", "%n: u32");
        assert!(bodies_of(&m).unchecked.is_none());
        // Nothing bounds this index.
        let m = module(
            "bb0:\n  %i: u32 = gpu.buffer_load %a, u32 0\n  gpu.buffer_store %a, %i, %i\n  ret\n",
            "%a: gpu.TBuffer<u32>",
        );
        let Bodies { robust, unchecked } = bodies_of(&m);
        assert_eq!(checks(&robust), 2);
        assert!(unchecked.is_none_or(|u| checks(&u.body) == 1));
    }
}
