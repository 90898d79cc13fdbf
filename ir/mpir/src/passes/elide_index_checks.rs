//! Elision of index checks of host code that are proved.

use super::PassContext;
use crate::analysis::guards::Bound;
use crate::analysis::predicate::Relation;
use crate::analysis::{LaunchFacts, Ranges};
use crate::{Domain, Inst, MpirFn, Op, Value};

/// Makes `true` of the comparisons `index < length` (unsigned, so that a negative index fails them
/// too) of lowered host code that hold: by the ranges of both, or because a loop has just compared
/// the same two as signed numbers and the index is not negative.
pub fn elide_index_checks(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    let is_check = |&i: &Inst| f.inst(i).op == Op::IcmpUlt;
    if f.domain != Domain::LowHost || !f.blocks.iter().flat_map(|b| &b.insts).any(is_check) {
        return false;
    }
    let PassContext { cfg, dom, ranges, replacements, values: wanted, insts: proved, .. } = ctx;
    cfg.compute(f);
    dom.compute(cfg);
    wanted.clear();
    for &i in f.blocks.iter().flat_map(|b| &b.insts).filter(|i| is_check(i)) {
        wanted.extend_from_slice(f.args(i));
    }
    ranges.compute_for(f, cfg, dom, LaunchFacts::default(), wanted.iter().copied());
    proved.clear();
    ranges.start_walk();
    for &b in dom.preorder() {
        ranges.enter(f, dom, b);
        let checks = f.block(b).insts.iter().filter(|i| is_check(i));
        proved.extend(checks.filter(|&&i| is_below(f, ranges, f.arg(i, 0), f.arg(i, 1))));
    }
    replacements.start(f);
    let holds = f.const_bool(true);
    for &i in proved.iter() {
        if let Some(v) = f.inst(i).result() {
            replacements.set(v, holds);
        }
    }
    replacements.apply(f);
    !proved.is_empty()
}

/// Whether `index < length` holds in the current block, both read as unsigned numbers.
fn is_below(f: &MpirFn, ranges: &Ranges, index: Value, length: Value) -> bool {
    let range = ranges.here(f, index);
    if range.umax < ranges.here(f, length).umin {
        return true;
    }
    if !range.is_nonnegative() {
        return false;
    }
    // An index below another one, and not negative, is inside when that one is.
    let larger = f.def_inst(index).and_then(|i| {
        let &[x, by] = f.args(i) else { return None };
        let is_less = f.inst(i).op == Op::ISub && ranges.here(f, by).is_nonnegative();
        (is_less && ranges.here(f, x).is_nonnegative()).then_some(x)
    });
    [Some(index), larger].into_iter().flatten().any(|v| {
        // Both are not negative, so the signed comparison says the same as the unsigned one.
        ranges.scope.facts(v).any(|fact| {
            fact.predicate.relation == Relation::Lt && fact.other == Bound::Value(length)
        })
    })
}
