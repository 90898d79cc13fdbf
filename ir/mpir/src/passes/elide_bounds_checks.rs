//! Elision of bounds checks that are proved.

use super::PassContext;
use super::bounds::{checked_access, is_signed_index};
use crate::analysis::guards::Bound;
use crate::analysis::predicate::Relation;
use crate::analysis::{Cfg, LaunchFacts, Positions, Ranges};
use crate::{Domain, Flags, Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeCtx, TypeKind};

/// Marks accesses `unchecked` whose index is proved to lie inside: by its range, by a comparison
/// with the length that holds there, or by both for what it was computed from. `facts` must hold
/// for every launch of the code.
pub fn elide_bounds_checks(
    f: &mut MpirFn,
    types: &TypeCtx,
    facts: LaunchFacts,
    ctx: &mut PassContext,
) -> bool {
    let is_checked = |&i: &Inst| checked_access(f, i).is_some();
    if f.domain != Domain::Device || !f.blocks.iter().flat_map(|b| &b.insts).any(is_checked) {
        return false;
    }
    prepare(f, facts, ctx);
    elide(f, types, ctx)
}

/// Computes what proofs about the indices of checked accesses need.
pub(super) fn prepare(f: &MpirFn, facts: LaunchFacts, ctx: &mut PassContext) {
    let PassContext { cfg, dom, positions, ranges, values: wanted, .. } = ctx;
    cfg.compute(f);
    dom.compute(cfg);
    positions.compute(f);
    wanted.clear();
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        wanted.extend(checked_access(f, i).map(|(_, index)| index));
        // The length that an index is compared with.
        if f.inst(i).op == Op::GpuBufferLen {
            wanted.extend(f.inst(i).result());
        }
    }
    ranges.compute_for(f, cfg, dom, facts, wanted.iter().copied());
}

/// Elides what is proved, after [`prepare`].
pub(super) fn elide(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    let PassContext { cfg, dom, positions, ranges, insts: proved, .. } = ctx;
    let lengths = lengths(f, cfg);
    proved.clear();
    ranges.start_walk();
    for &b in dom.preorder() {
        ranges.enter(f, dom, b);
        for &i in &f.block(b).insts {
            if let Some((array, index)) = checked_access(f, i) {
                let first = lengths.partition_point(|l| l.0 < array);
                let last = lengths.partition_point(|l| l.0 <= array);
                let lengths = &lengths[first..last];
                let mut prover =
                    Prover { f, types, cfg, positions, ranges, lengths, array, steps: 0 };
                if prover.is_inside(index) {
                    proved.push(i);
                }
            }
        }
    }
    for &i in proved.iter() {
        let inst = f.inst_mut(i);
        inst.flags = inst.flags.union(Flags::UNCHECKED);
    }
    !proved.is_empty()
}

/// The lengths that are computed: buffer and value, by buffer.
fn lengths(f: &MpirFn, cfg: &Cfg) -> Vec<(Value, Value)> {
    let insts = cfg.rpo().iter().flat_map(|&b| &f.block(b).insts);
    let mut lengths: Vec<(Value, Value)> = insts
        .filter(|&&i| f.inst(i).op == Op::GpuBufferLen)
        .filter_map(|&i| Some((f.arg(i, 0), f.inst(i).result()?)))
        .collect();
    lengths.sort_unstable();
    lengths
}

/// Steps that one proof may take.
const MAX_STEPS: usize = 128;
/// Equal lengths that are looked at.
const MAX_LENGTHS: usize = 4;
/// Depth of one proof.
const MAX_DEPTH: usize = 10;

/// Looks for the proof of one access.
struct Prover<'a> {
    f: &'a MpirFn,
    types: &'a TypeCtx,
    cfg: &'a Cfg,
    positions: &'a Positions,
    ranges: &'a Ranges,
    /// The lengths of the array.
    lengths: &'a [(Value, Value)],
    array: Value,
    steps: usize,
}

impl Prover<'_> {
    fn is_inside(&mut self, index: Value) -> bool {
        let range = self.ranges.here(self.f, index);
        let signed = is_signed_index(self.f, index);
        match self.types.kind(self.f.ty(self.array)) {
            TypeKind::SharedArray(_, n) | TypeKind::LocalArray(_, n) => {
                range.umax < n as u64 && (!signed || range.is_nonnegative())
            }
            _ => (!signed || range.is_nonnegative()) && self.below(index, 0, 0),
        }
    }

    /// The least number of elements that the array is known to have.
    fn least_length(&self) -> i128 {
        let of_array = self.lengths.iter().take(MAX_LENGTHS);
        of_array.map(|l| self.ranges.here(self.f, l.1).umin as i128).max().unwrap_or(0)
    }

    /// Whether `v + k < length`, `v` read as an unsigned number and the sum taken exactly.
    fn below(&mut self, v: Value, k: i128, depth: usize) -> bool {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
            return false;
        }
        if self.is_length(v) {
            return k < 0;
        }
        let Some(p) = self.integer(v) else { return false };
        let range = self.ranges.here(self.f, v);
        if range.umax as i128 + k < self.least_length() {
            return true;
        }
        self.by_facts(v, k, p, range.is_nonnegative(), depth) || self.by_operands(v, k, depth)
    }

    fn is_length(&self, v: Value) -> bool {
        let length = self.f.def_inst(v).filter(|&i| self.f.inst(i).op == Op::GpuBufferLen);
        length.is_some_and(|i| self.f.arg(i, 0) == self.array)
    }

    fn integer(&self, v: Value) -> Option<PrimType> {
        let p = PrimType::from_id(self.f.ty(v))?;
        ((p.is_int() || p == PrimType::Bool) && p.bit_width() <= 64).then_some(p)
    }

    /// By a comparison `v < w` or `v <= w`.
    fn by_facts(
        &mut self,
        v: Value,
        k: i128,
        p: PrimType,
        nonnegative: bool,
        depth: usize,
    ) -> bool {
        let ranges = self.ranges;
        ranges.scope.facts(v).any(|fact| {
            // What lies above a number that is not negative is not negative either, so that the
            // signed comparison says the same as the unsigned one.
            if fact.predicate.signed && !nonnegative {
                return false;
            }
            let k = match fact.predicate.relation {
                Relation::Lt => k - 1,
                Relation::Le | Relation::Eq => k,
                Relation::Ne | Relation::Gt | Relation::Ge => return false,
            };
            match fact.other {
                Bound::Value(w) => self.below(w, k, depth + 1),
                Bound::Bits(c) => ((c & p.mask()) as i128) + k < self.least_length(),
            }
        })
    }

    /// By what `v` was computed from. A sum or product that wraps is smaller than the exact one,
    /// so bounds from above need no care there.
    fn by_operands(&mut self, v: Value, k: i128, depth: usize) -> bool {
        let f = self.f;
        let Some(i) = f.def_inst(v) else { return false };
        let op = f.inst(i).op;
        let args = f.args(i);
        let range = |v| self.ranges.here(f, v);
        let next = depth + 1;
        if op == Op::Phi {
            return self.by_arms(i, k, next);
        }
        let Some(&x) = args.first() else { return false };
        let y = args.get(1).copied().unwrap_or(x);
        if op == Op::Cast || op == Op::BitsCast {
            let (Some(from), Some(to)) = (self.integer(x), self.integer(v)) else { return false };
            let widens_sign = from.is_signed() && to.bit_width() > from.bit_width();
            return (!widens_sign || range(x).is_nonnegative()) && self.below(x, k, next);
        }
        if op == Op::IAdd {
            let (most_x, most_y) = (range(x).umax as i128, range(y).umax as i128);
            return self.below(x, k + most_y, next) || self.below(y, k + most_x, next);
        }
        if op == Op::ISub {
            let (a, b) = (range(x), range(y));
            return a.umin >= b.umax && self.below(x, k - b.umin as i128, next);
        }
        if op == Op::IAnd || op == Op::IUmin {
            return self.below(x, k, next) || self.below(y, k, next);
        }
        if op == Op::ILshr || op == Op::IUdiv {
            return self.below(x, k, next);
        }
        if op == Op::IUrem {
            return self.below(x, k, next) || range(y).umin >= 1 && self.below(y, k - 1, next);
        }
        if op == Op::ISmin || op == Op::ISmax {
            if !range(x).is_nonnegative() || !range(y).is_nonnegative() {
                return false;
            }
            return match op == Op::ISmin {
                true => self.below(x, k, next) || self.below(y, k, next),
                false => self.below(x, k, next) && self.below(y, k, next),
            };
        }
        if op == Op::IUmax {
            return self.below(x, k, next) && self.below(y, k, next);
        }
        if op == Op::Select {
            let z = args.get(2).copied().unwrap_or(y);
            return self.below(y, k, next) && self.below(z, k, next);
        }
        false
    }

    /// By all arms of a phi where ways forward meet. (In a loop an arm may be a value of the round
    /// before, of which the facts here do not speak.)
    fn by_arms(&mut self, phi: Inst, k: i128, depth: usize) -> bool {
        let Some(b) = self.positions.block(phi) else { return false };
        let cfg = self.cfg;
        if cfg.preds(b).iter().any(|&p| cfg.is_retreating(p, b)) {
            return false;
        }
        let f = self.f;
        f.args(phi).iter().all(|&v| self.below(v, k, depth))
    }
}
