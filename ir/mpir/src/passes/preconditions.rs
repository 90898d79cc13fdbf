//! Launch preconditions: bounds checks that depend on the launch alone.
//!
//! An index that a guard keeps below a parameter, or that is computed from ids, sizes and
//! parameters, is bounded from above by an expression that the host can evaluate. When that bound
//! fits into the buffer for a launch, the access needs no check in it.
//!
//! Bounds are numbers without width. A sum or product that wraps in the kernel is smaller than the
//! exact one, so a bound from above holds in any case. A difference that wraps is not; where only
//! the launch can tell, the bound gets a penalty term that makes it larger than any buffer. The
//! same is done for signed numbers that could be negative.

use super::PassContext;
use super::bounds::{checked_access, is_signed_index};
use super::elide_bounds_checks::{elide, prepare};
use crate::analysis::guards::Bound;
use crate::analysis::predicate::Relation;
use crate::analysis::{Cfg, LaunchFacts, Positions, Ranges};
use crate::{Flags, Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::kernel::{PreOp, Precondition};
use magpie_types::{Leaf, PrimType, TypeCtx, TypeKind, place};

/// The body of a kernel for launches that meet preconditions.
#[derive(Clone, Debug)]
pub struct Unchecked {
    /// The kernel with those accesses marked `unchecked` that the preconditions cover. Others may
    /// remain.
    pub body: MpirFn,
    /// What must hold.
    pub preconditions: Vec<Precondition>,
}

/// A kernel has at most so many preconditions; further accesses stay checked.
const MAX_PRECONDITIONS: usize = 48;
/// After so many accesses that would need one more, no others are looked at.
const MAX_WITHOUT: usize = 64;
/// Steps of one bound's program.
const MAX_PROGRAM: usize = 48;
/// Depth of the expression a bound is computed from.
const MAX_DEPTH: usize = 8;
/// Parts that are looked at for one access.
const MAX_STEPS: usize = 96;

/// Finds preconditions for the accesses of buffers that are still checked; `None` when there is
/// none to be found. `facts` must hold for every launch of the code. Aggregate parameters are read
/// with `leaf.get`.
pub fn preconditions(
    f: &MpirFn,
    types: &TypeCtx,
    facts: LaunchFacts,
    ctx: &mut PassContext,
) -> Option<Unchecked> {
    if !f.is_kernel() || !has_checks(f) {
        return None;
    }
    prepare(f, facts, ctx);
    find(f, types, facts, ctx)
}

/// [`super::elide_bounds_checks`] and then [`preconditions`], with one analysis for both.
pub(super) fn elide_or_find(
    f: &mut MpirFn,
    types: &TypeCtx,
    facts: LaunchFacts,
    ctx: &mut PassContext,
) -> Option<Unchecked> {
    if !f.is_kernel() || !has_checks(f) {
        return None;
    }
    prepare(f, facts, ctx);
    elide(f, types, ctx);
    find(f, types, facts, ctx)
}

fn has_checks(f: &MpirFn) -> bool {
    f.blocks.iter().flat_map(|b| &b.insts).any(|&i| checked_access(f, i).is_some())
}

fn find(
    f: &MpirFn,
    types: &TypeCtx,
    facts: LaunchFacts,
    ctx: &mut PassContext,
) -> Option<Unchecked> {
    let PassContext { cfg, dom, positions, ranges, .. } = ctx;
    let launch = Launch::of(f, types, facts);
    let mut found: Vec<Precondition> = Vec::new();
    let mut covered = Vec::new();
    let mut without = 0;
    ranges.start_walk();
    for &b in dom.preorder() {
        ranges.enter(f, dom, b);
        for &i in &f.block(b).insts {
            let Some((array, index)) = checked_access(f, i) else { continue };
            let Some(buffer) = launch.buffer(f, array).filter(|_| without < MAX_WITHOUT) else {
                continue;
            };
            let mut bounds = Bounds { f, cfg, positions, ranges, launch: &launch, steps: 0 };
            let Some(bound) = bounds.one_past(index) else { continue };
            if add(&mut found, Precondition { bound, buffer }) {
                covered.push(i);
            } else {
                without += 1;
            }
        }
    }
    if covered.is_empty() {
        return None;
    }
    let mut body = f.clone();
    for i in covered {
        let inst = body.inst_mut(i);
        inst.flags = inst.flags.union(Flags::UNCHECKED);
    }
    Some(Unchecked { body, preconditions: found })
}

/// Adds a precondition unless others say as much already; `false` when there are too many.
fn add(found: &mut Vec<Precondition>, new: Precondition) -> bool {
    if let [PreOp::Const(bound)] = new.bound[..] {
        for known in found.iter_mut().filter(|known| known.buffer == new.buffer) {
            if let [PreOp::Const(other)] = &mut known.bound[..] {
                *other = bound.max(*other);
                return true;
            }
        }
    }
    if !found.contains(&new) {
        if found.len() == MAX_PRECONDITIONS {
            return false;
        }
        found.push(new);
    }
    true
}

/// Where parameters stand in a launch.
struct Launch {
    /// By parameter position: the number of a buffer, or the offset in the scalar block.
    params: Vec<Place>,
    /// By parameter position: the leaves.
    leaves: Vec<Vec<Leaf>>,
    facts: LaunchFacts,
}

#[derive(Clone, Copy)]
enum Place {
    Buffer(u32),
    Scalar(u32),
}

impl Launch {
    fn of(f: &MpirFn, types: &TypeCtx, facts: LaunchFacts) -> Launch {
        let is_buffer = |ty| matches!(types.kind(ty), TypeKind::Buffer(_));
        let scalars = f.params.iter().filter(|p| !is_buffer(p.1));
        let mut offsets = place(scalars.map(|p| types.layout(p.1))).0.into_iter();
        let mut buffers = 0..;
        let params = f.params.iter().map(|p| match is_buffer(p.1) {
            true => Place::Buffer(buffers.next().unwrap_or(u32::MAX)),
            false => Place::Scalar(offsets.next().unwrap_or(u32::MAX)),
        });
        Launch {
            params: params.collect(),
            leaves: f.params.iter().map(|p| types.leaves(p.1)).collect(),
            facts,
        }
    }

    /// The number of a buffer parameter.
    fn buffer(&self, f: &MpirFn, v: Value) -> Option<u32> {
        match *self.params.get(parameter(f, v)?)? {
            Place::Buffer(n) => Some(n),
            Place::Scalar(_) => None,
        }
    }

    /// A leaf of a parameter, when it is an integer of a whole number of bytes.
    fn scalar(&self, f: &MpirFn, v: Value, leaf: usize) -> Option<PreOp> {
        let position = parameter(f, v)?;
        let Place::Scalar(offset) = *self.params.get(position)? else { return None };
        let leaf = self.leaves.get(position)?.get(leaf)?;
        let p = PrimType::from_id(leaf.ty).filter(|p| p.is_int())?;
        matches!(p.bit_width(), 8 | 16 | 32 | 64)
            .then(|| PreOp::Scalar { offset: offset + leaf.offset, size: p.size() })
    }
}

/// The position of a parameter.
fn parameter(f: &MpirFn, v: Value) -> Option<usize> {
    match f.def(v) {
        ValueDef::Param(n) => Some(n as usize),
        ValueDef::Inst(_) | ValueDef::Const(_) => None,
    }
}

/// A bound as a postfix program.
type Program = Vec<PreOp>;

fn then(mut a: Program, b: Program, op: PreOp) -> Program {
    a.extend(b);
    a.push(op);
    a
}

/// Nothing when `a <= most`, else more than any buffer has elements.
fn unless_at_most(a: Program, most: u64) -> Program {
    let excess = then(a, vec![PreOp::Const(most)], PreOp::Sub);
    then(excess, vec![PreOp::Const(u64::MAX)], PreOp::Mul)
}

/// The smaller of two bounds when both are known.
fn smaller(a: Option<Program>, b: Option<Program>) -> Option<Program> {
    match (a, b) {
        (Some(a), Some(b)) if a == b => Some(a),
        (Some(a), Some(b)) => Some(then(a, b, PreOp::Min)),
        (one, other) => one.or(other),
    }
}

/// Computes the bounds of one access.
struct Bounds<'a> {
    f: &'a MpirFn,
    cfg: &'a Cfg,
    positions: &'a Positions,
    ranges: &'a Ranges,
    launch: &'a Launch,
    steps: usize,
}

impl Bounds<'_> {
    /// One past the largest index.
    fn one_past(&mut self, index: Value) -> Option<Program> {
        let mut bound = self.upper(index, 0)?;
        if is_signed_index(self.f, index) {
            let penalty = self.unless_nonnegative(index, 0)?;
            if let Some(penalty) = penalty {
                bound = then(bound, penalty, PreOp::Add);
            }
        }
        let bound = then(bound, vec![PreOp::Const(1)], PreOp::Add);
        (bound.len() <= MAX_PROGRAM).then_some(bound)
    }

    /// A bound of `v`, read as an unsigned number.
    fn upper(&mut self, v: Value, depth: usize) -> Option<Program> {
        let p = integer(self.f, v)?;
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
            return None;
        }
        if let Some(bits) = self.f.as_bits(v) {
            return Some(vec![PreOp::Const(bits)]);
        }
        let range = self.ranges.here(self.f, v);
        // A bound that is a constant is as good as any, unless it is the end of the type.
        let constant = (range.umax < p.mask() >> 1).then(|| vec![PreOp::Const(range.umax)]);
        let computed = match self.exact(v, depth) {
            Some(exact) => Some(exact),
            None => self.by_operands(v, depth),
        };
        let computed = computed.filter(|c| c.len() <= MAX_PROGRAM);
        let by_facts = self.by_facts(v, p, computed.as_ref(), depth);
        let bound = smaller(by_facts, computed);
        smaller(bound, constant).filter(|b| b.len() <= MAX_PROGRAM)
    }

    /// By comparisons that hold here.
    fn by_facts(
        &mut self,
        v: Value,
        p: PrimType,
        computed: Option<&Program>,
        depth: usize,
    ) -> Option<Program> {
        let nonnegative = self.ranges.here(self.f, v).is_nonnegative();
        let mut bound = None;
        let facts: Vec<_> = self.ranges.scope.facts(v).collect();
        for fact in facts {
            let strict = match fact.predicate.relation {
                Relation::Lt => true,
                Relation::Le | Relation::Eq => false,
                Relation::Ne | Relation::Gt | Relation::Ge => continue,
            };
            // A signed comparison says the same as the unsigned one when v is not negative.
            let penalty = match (fact.predicate.signed && !nonnegative, computed) {
                (false, _) => None,
                (true, Some(c)) => Some(unless_at_most(c.clone(), p.mask() >> 1)),
                (true, None) => continue,
            };
            let other = match fact.other {
                Bound::Bits(c) => Some(vec![PreOp::Const(c & p.mask())]),
                Bound::Value(w) => self.upper(w, depth + 1),
            };
            let Some(mut other) = other else { continue };
            if strict {
                other.push(PreOp::Dec);
            }
            if let Some(penalty) = penalty {
                other = then(other, penalty, PreOp::Add);
            }
            bound = smaller(bound, Some(other));
        }
        bound
    }

    /// The value itself, when it is the same in the whole launch: exact where nothing wraps, larger
    /// than any buffer where a difference would. Sums and products that wrap are larger than what
    /// the kernel computes.
    fn exact(&mut self, v: Value, depth: usize) -> Option<Program> {
        if let Some(bits) = self.f.as_bits(v) {
            return Some(vec![PreOp::Const(bits)]);
        }
        let i = match self.f.def(v) {
            ValueDef::Param(_) => return Some(vec![self.launch.scalar(self.f, v, 0)?]),
            ValueDef::Inst(i) => i,
            ValueDef::Const(_) => return None,
        };
        let inst = self.f.inst(i);
        let dim = inst.dim().min(2);
        if inst.op == Op::LeafGet {
            let leaf = inst.imm_lo() as usize;
            return Some(vec![self.launch.scalar(self.f, self.f.arg(i, 0), leaf)?]);
        }
        if inst.op == Op::GpuWorkgroupSize {
            return Some(vec![PreOp::Block(dim)]);
        }
        if inst.op == Op::GpuNumWorkgroups {
            return Some(vec![PreOp::Grid(dim)]);
        }
        if inst.op == Op::GpuBufferLen {
            return Some(vec![PreOp::Length(self.launch.buffer(self.f, self.f.arg(i, 0))?)]);
        }
        if depth > MAX_DEPTH {
            return None;
        }
        if inst.op == Op::ISub {
            // Both must be exact: a subtrahend that is larger than the kernel's is no bound.
            let a = self.exact_without_wrap(self.f.arg(i, 0), depth + 1)?;
            let b = self.exact_without_wrap(self.f.arg(i, 1), depth + 1)?;
            let wraps = then(b.clone(), a.clone(), PreOp::Sub);
            let penalty = then(wraps, vec![PreOp::Const(u64::MAX)], PreOp::Mul);
            return Some(then(then(a, b, PreOp::Sub), penalty, PreOp::Add));
        }
        None
    }

    /// The value of a launch constant, exactly, or larger than any buffer where a sum or product in
    /// it wraps.
    fn exact_without_wrap(&mut self, v: Value, depth: usize) -> Option<Program> {
        if let Some(i) = self.f.def_inst(v).filter(|_| depth <= MAX_DEPTH) {
            let op = self.f.inst(i).op;
            if op == Op::ISub {
                return None;
            }
            if op == Op::IAdd || op == Op::IMul {
                let a = self.exact_without_wrap(self.f.arg(i, 0), depth + 1)?;
                let b = self.exact_without_wrap(self.f.arg(i, 1), depth + 1)?;
                let all = then(a, b, if op == Op::IAdd { PreOp::Add } else { PreOp::Mul });
                let penalty = unless_at_most(all.clone(), integer(self.f, v)?.mask());
                return Some(then(all, penalty, PreOp::Add));
            }
            // A length of 32 bits saturates.
            if op == Op::GpuBufferLen && integer(self.f, v)? == PrimType::U32 {
                let len = self.exact(v, depth)?;
                return Some(then(len, vec![PreOp::Const(u32::MAX as u64)], PreOp::Min));
            }
            if op == Op::Cast || op == Op::BitsCast {
                let x = self.f.arg(i, 0);
                let (from, to) = (integer(self.f, x)?, integer(self.f, v)?);
                let keeps = from.bit_width() == to.bit_width()
                    || from.bit_width() < to.bit_width() && !from.is_signed();
                return if keeps { self.exact_without_wrap(x, depth + 1) } else { None };
            }
        }
        self.exact(v, depth)
    }

    /// By what `v` was computed from.
    fn by_operands(&mut self, v: Value, depth: usize) -> Option<Program> {
        let f = self.f;
        let i = f.def_inst(v)?;
        let inst = f.inst(i);
        let op = inst.op;
        let dim = inst.dim().min(2);
        let next = depth + 1;
        let last = |size| Some(vec![size, PreOp::Dec]);
        if op == Op::GpuThreadId {
            let size = self.launch.facts.workgroup.map(|w| w[dim as usize] as u64);
            return last(size.map_or(PreOp::Block(dim), PreOp::Const));
        }
        if op == Op::GpuGlobalId {
            return last(PreOp::Extent(dim));
        }
        if op == Op::GpuWorkgroupId {
            return last(PreOp::Grid(dim));
        }
        if op == Op::Phi {
            return self.by_arms(i, next);
        }
        let args = f.args(i);
        let &x = args.first()?;
        let y = args.get(1).copied().unwrap_or(x);
        let range = |v| self.ranges.here(f, v);
        if op == Op::Cast || op == Op::BitsCast {
            let (from, to) = (integer(f, x)?, integer(f, v)?);
            let bound = self.upper(x, next)?;
            if !from.is_signed() || to.bit_width() <= from.bit_width() {
                return Some(bound);
            }
            // The sign is widened too.
            return match self.unless_nonnegative(x, next)? {
                Some(penalty) => Some(then(bound, penalty, PreOp::Add)),
                None => Some(bound),
            };
        }
        if op == Op::IAdd || op == Op::IOr || op == Op::IXor {
            return Some(then(self.upper(x, next)?, self.upper(y, next)?, PreOp::Add));
        }
        if op == Op::IMul {
            return Some(then(self.upper(x, next)?, self.upper(y, next)?, PreOp::Mul));
        }
        if op == Op::IShl {
            let p = integer(f, v)?;
            let factor = 1u64.checked_shl((f.as_bits(y)? % p.bit_width() as u64) as u32)?;
            return Some(then(self.upper(x, next)?, vec![PreOp::Const(factor)], PreOp::Mul));
        }
        if op == Op::ISub {
            let (a, b) = (range(x), range(y));
            if a.umin < b.umax {
                return None;
            }
            let bound = self.upper(x, next)?;
            return Some(match b.umin {
                0 => bound,
                least => then(bound, vec![PreOp::Const(least)], PreOp::Sub),
            });
        }
        if op == Op::ILshr || op == Op::IUdiv {
            return self.upper(x, next);
        }
        if op == Op::IUrem {
            // x % 0 is 0.
            let by_divisor = self.upper(y, next).map(|mut bound| {
                bound.push(PreOp::Dec);
                bound
            });
            return by_divisor.or_else(|| self.upper(x, next));
        }
        if op == Op::IAnd || op == Op::IUmin {
            let (x, y) = (self.upper(x, next), self.upper(y, next));
            return smaller(x, y);
        }
        if op == Op::IUmax {
            return Some(then(self.upper(x, next)?, self.upper(y, next)?, PreOp::Max));
        }
        if op == Op::ISmin || op == Op::ISmax {
            return self.signed_min_max(x, y, op == Op::ISmin, next);
        }
        if op == Op::Select {
            let &z = args.get(2)?;
            return Some(then(self.upper(y, next)?, self.upper(z, next)?, PreOp::Max));
        }
        None
    }

    /// The smaller or larger of two signed numbers; like the unsigned one when none is negative.
    fn signed_min_max(
        &mut self,
        x: Value,
        y: Value,
        is_min: bool,
        depth: usize,
    ) -> Option<Program> {
        let penalties = [self.unless_nonnegative(x, depth)?, self.unless_nonnegative(y, depth)?];
        let (a, b) = (self.upper(x, depth), self.upper(y, depth));
        let mut bound = match is_min {
            true => smaller(a, b)?,
            false => then(a?, b?, PreOp::Max),
        };
        for penalty in penalties.into_iter().flatten() {
            bound = then(bound, penalty, PreOp::Add);
        }
        Some(bound)
    }

    /// A penalty unless `v`, read as a signed number, is not negative: no penalty when that is
    /// known, `None` when it cannot be told.
    fn unless_nonnegative(&mut self, v: Value, depth: usize) -> Option<Option<Program>> {
        if self.ranges.here(self.f, v).is_nonnegative() {
            return Some(None);
        }
        let p = integer(self.f, v)?;
        let bound = self.upper(v, depth)?;
        Some(Some(unless_at_most(bound, p.mask() >> 1)))
    }

    /// By all arms of a phi where ways forward meet.
    fn by_arms(&mut self, phi: Inst, depth: usize) -> Option<Program> {
        let b = self.positions.block(phi)?;
        let cfg = self.cfg;
        if cfg.preds(b).iter().any(|&p| cfg.is_retreating(p, b)) {
            return None;
        }
        let f = self.f;
        let mut bound: Option<Program> = None;
        for &v in f.args(phi) {
            let arm = self.upper(v, depth)?;
            bound = Some(match bound {
                Some(bound) if bound == arm => bound,
                Some(bound) => then(bound, arm, PreOp::Max),
                None => arm,
            });
        }
        bound
    }
}

/// The type of a value that is an integer of at most 64 bits.
fn integer(f: &MpirFn, v: Value) -> Option<PrimType> {
    PrimType::from_id(f.ty(v)).filter(|p| p.is_int() && p.bit_width() <= 64)
}
