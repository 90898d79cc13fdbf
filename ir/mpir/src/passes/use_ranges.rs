//! What the ranges of numbers decide in lowered host code.

use super::PassContext;
use crate::analysis::predicate::{Predicate, Relation};
use crate::analysis::{LaunchFacts, Range};
use crate::{Domain, Inst, MpirFn, Op, Value};
use magpie_types::PrimType;

/// Comparisons of numbers whose ranges tell the answer become constants; signed divisions of
/// numbers that are not negative become unsigned ones, which cost less for many divisors.
pub fn use_ranges(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost {
        return false;
    }
    let PassContext { cfg, dom, ranges, replacements, values: wanted, insts: found, .. } = ctx;
    wanted.clear();
    for &i in f.blocks.iter().flat_map(|b| &b.insts).filter(|&&i| is_asked(f, i)) {
        wanted.extend_from_slice(f.args(i));
    }
    if wanted.is_empty() {
        return false;
    }
    cfg.compute(f);
    dom.compute(cfg);
    ranges.compute_for(f, cfg, dom, LaunchFacts::default(), wanted.iter().copied());
    found.clear();
    let mut decided: Vec<(Value, bool)> = Vec::new();
    ranges.start_walk();
    for &b in dom.preorder() {
        ranges.enter(f, dom, b);
        for &i in f.block(b).insts.iter().filter(|&&i| is_asked(f, i)) {
            let (x, y) = (ranges.here(f, f.arg(i, 0)), ranges.here(f, f.arg(i, 1)));
            match Predicate::of(f.inst(i).op) {
                Some(predicate) => {
                    decided.extend(f.inst(i).result().zip(decide(predicate, x, y)));
                }
                None if x.is_nonnegative() && y.is_nonnegative() => found.push(i),
                None => {}
            }
        }
    }
    for &i in found.iter() {
        let inst = f.inst_mut(i);
        inst.op = if inst.op == Op::ISdiv { Op::IUdiv } else { Op::IUrem };
    }
    replacements.start(f);
    for &(v, holds) in &decided {
        let constant = f.const_bool(holds);
        replacements.set(v, constant);
    }
    replacements.apply(f);
    !found.is_empty() || !decided.is_empty()
}

/// Whether an instruction is a comparison or a signed division of scalars.
fn is_asked(f: &MpirFn, i: Inst) -> bool {
    let op = f.inst(i).op;
    let is_division = matches!(op, Op::ISdiv | Op::ISrem);
    (is_division || Predicate::of(op).is_some())
        && PrimType::from_id(f.ty(f.arg(i, 0))).is_some_and(|p| p.is_int() && p.bit_width() <= 64)
}

/// Whether a comparison of any two numbers of these ranges holds, if it is the same for all.
fn decide(predicate: Predicate, x: Range, y: Range) -> Option<bool> {
    let apart = x.umax < y.umin || y.umax < x.umin || x.smax < y.smin || y.smax < x.smin;
    let equal = x.as_exact().is_some_and(|x| y.as_exact() == Some(x));
    // Whether it holds for all, and whether for none.
    let less = |or_equal: bool, x: Range, y: Range| match (predicate.signed, or_equal) {
        (true, false) => (x.smax < y.smin, x.smin >= y.smax),
        (true, true) => (x.smax <= y.smin, x.smin > y.smax),
        (false, false) => (x.umax < y.umin, x.umin >= y.umax),
        (false, true) => (x.umax <= y.umin, x.umin > y.umax),
    };
    let (all, none) = match predicate.relation {
        Relation::Eq => (equal, apart),
        Relation::Ne => (apart, equal),
        Relation::Lt => less(false, x, y),
        Relation::Le => less(true, x, y),
        Relation::Gt => less(false, y, x),
        Relation::Ge => less(true, y, x),
    };
    match (all, none) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        // Both are said only of code that is not reached.
        _ => None,
    }
}
