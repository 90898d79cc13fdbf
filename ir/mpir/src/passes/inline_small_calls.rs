//! Inlining of small host functions.
//!
//! A call costs more than what a small function does. The callees are optimised before.
//!
//! Those that change objects of the caller are inlined before anything is lowered
//! ([`inline_changing_calls`]): then it is seen who has handles of these, so loops around the calls find
//! out once whether theirs is the only one, and where the parts are that are changed.

use super::inline_calls::{Scratch, callee, inline_into};
use super::{PassContext, promote_cells};
use crate::analysis::CallGraph;
use crate::{Domain, FnId, Module, MpirBlock, MpirFn, Terminator, Value, ownership};
use magpie_types::{RefMode, TypeCtx, TypeId, TypeKind};

/// Instructions of a function that is small.
const SMALL: usize = 40;
/// A function may grow by so many instructions; when more would come, only smaller ones are inlined.
const MAX_GROWTH: usize = 2000;

/// What is known of the functions that were optimised.
pub(super) struct Callees {
    /// The sizes of those that can be copied.
    sizes: Vec<Option<usize>>,
    /// Whether a function may call itself in the end.
    is_recursive: Vec<bool>,
    /// Of a recursive function, the only one that it calls, when that is another.
    partners: Vec<Option<FnId>>,
}

impl Callees {
    /// Nothing is optimised so far.
    pub(super) fn new(module: &Module, graph: &CallGraph) -> Callees {
        Callees {
            sizes: vec![None; module.fns.len()],
            is_recursive: module.fn_ids().map(|f| graph.is_recursive(f)).collect(),
            partners: vec![None; module.fns.len()],
        }
    }

    /// Remembers a function that was optimised.
    pub(super) fn learn(&mut self, f: &MpirFn, id: FnId) {
        let size = size(f);
        let fits = size <= SMALL && !f.blocks.is_empty();
        self.sizes[id.index()] = fits.then_some(size);
        let insts = f.blocks.iter().flat_map(|b| &b.insts);
        let mut called: Vec<FnId> = insts.filter_map(|&i| callee(f, i)).collect();
        called.retain(|c| self.is_recursive[c.index()]);
        called.sort_unstable();
        called.dedup();
        // One that became a loop is recursive no more.
        self.is_recursive[id.index()] &= !called.is_empty();
        self.partners[id.index()] = match called[..] {
            [only] if only != id => Some(only),
            _ => None,
        };
    }

    /// The size of a function that may be copied into another.
    fn size(&self, callee: FnId, into: FnId) -> Option<usize> {
        let n = callee.index();
        let once = self.partners[n] == Some(into) && self.is_recursive[into.index()];
        self.sizes[n].filter(|_| once || !self.is_recursive[n])
    }
}

/// Instructions and blocks of a function. What ends the program is done once, and counts little.
fn size(f: &MpirFn) -> usize {
    let of_block = |block: &MpirBlock| match block.term {
        Terminator::Unreachable => 1,
        Terminator::Ret(_)
        | Terminator::Br(_)
        | Terminator::Cbr { .. }
        | Terminator::Switch { .. } => block.insts.len() + 1,
    };
    f.blocks.iter().map(of_block).sum()
}

/// Replaces calls of small functions that get objects to change, in host functions that are not
/// lowered, by their bodies; what was passed through memory becomes values.
pub(super) fn inline_changing_calls(module: &mut Module, ctx: &mut PassContext) -> bool {
    let changes = module.fn_ids().map(|id| changes_objects(&module.types, module.func(id)));
    let changes: Vec<bool> = changes.collect();
    if !changes.contains(&true) {
        return false;
    }
    let graph = CallGraph::new(module);
    let mut callees = Callees::new(module, &graph);
    let mut scratch = Scratch::default();
    let mut changed = false;
    for &id in graph.bottom_up() {
        if module.func(id).domain != Domain::Host {
            continue;
        }
        if inline_small_calls(module, id, &callees, &mut scratch) {
            promote_cells(&mut module.fns[id.index()], &module.types, ctx);
            changed = true;
        }
        if changes[id.index()] && !graph.is_recursive(id) {
            callees.learn(module.func(id), id);
        }
    }
    changed
}

/// Whether a host function gets objects in storage of the caller, where it may put others.
fn changes_objects(types: &TypeCtx, f: &MpirFn) -> bool {
    let is_place = |&(_, ty): &(Value, TypeId)| match types.kind(ty) {
        TypeKind::Ref(RefMode::MutBorrow, shown) => {
            types.is_aggregate(shown) && types.leaves(shown).iter().any(|l| types.is_heap(l.ty))
        }
        _ => false,
    };
    f.domain == Domain::Host
        && !f.is_async
        && !ownership::is_view(types, f.ret_ty)
        && f.params.iter().any(is_place)
}

/// Replaces calls in a host function by the bodies of the callees that are small. Two
/// functions that call each other become one that calls itself.
pub(super) fn inline_small_calls(
    module: &mut Module,
    id: FnId,
    callees: &Callees,
    scratch: &mut Scratch,
) -> bool {
    let f = module.func(id);
    let insts = f.blocks.iter().flat_map(|b| &b.insts);
    let called: Vec<usize> = insts
        .filter_map(|&i| callees.size(callee(f, i)?, id))
        .filter(|&size| size <= SMALL)
        .collect();
    let growth = |limit: usize| called.iter().filter(|&&size| size <= limit).sum::<usize>();
    let mut limit = SMALL;
    while growth(limit) > MAX_GROWTH {
        limit /= 2;
    }
    if growth(limit) == 0 {
        return false;
    }
    let may = |callee: FnId| callees.size(callee, id).is_some_and(|size| size <= limit);
    inline_into(module, id, &may, scratch)
}
