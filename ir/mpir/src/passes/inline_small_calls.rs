//! Inlining of small host functions.
//!
//! A call costs more than what a small function does. The callees are optimised before.

use super::inline_calls::{Scratch, callee, inline_into};
use crate::{FnId, Module, MpirFn};

/// Instructions of a function that is small.
const SMALL: usize = 40;
/// A function may grow by so many instructions; when more would come, only smaller ones are inlined.
const MAX_GROWTH: usize = 2000;

/// Replaces calls in a host function by the bodies of the callees that are small. `sizes`
/// has the size of each function that may be copied.
pub(super) fn inline_small_calls(
    module: &mut Module,
    id: FnId,
    sizes: &[Option<usize>],
    scratch: &mut Scratch,
) -> bool {
    let f = module.func(id);
    let insts = f.blocks.iter().flat_map(|b| &b.insts);
    let called: Vec<usize> =
        insts.filter_map(|&i| sizes[callee(f, i)?.index()]).filter(|&size| size <= SMALL).collect();
    let growth = |limit: usize| called.iter().filter(|&&size| size <= limit).sum::<usize>();
    let mut limit = SMALL;
    while growth(limit) > MAX_GROWTH {
        limit /= 2;
    }
    if growth(limit) == 0 {
        return false;
    }
    let may = |callee: FnId| sizes[callee.index()].is_some_and(|size| size <= limit);
    inline_into(module, id, &may, scratch)
}

/// The size of a function for its callers, if it can be copied at all.
pub(super) fn size_as_callee(f: &MpirFn) -> Option<usize> {
    let size = f.live_inst_count() + f.blocks.len();
    (size <= SMALL && !f.blocks.is_empty()).then_some(size)
}
