//! Branches that only choose between values become selects.

use super::PassContext;
use crate::analysis::{Cfg, LoopId, Loops, Positions};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::PrimType;

/// A branch is kept when more values than this depend on it.
const MAX_SELECTS: usize = 4;
/// The same on the host.
const MAX_HOST_SELECTS: usize = 2;
/// On the host, so many operations may be computed that one way only would have needed.
const MAX_COMPUTED: usize = 3;
/// Phis with more arms are not searched.
const MAX_ARMS: usize = 32;
/// What a condition is made of is followed so far.
const MAX_FOLLOWED: usize = 64;

/// Replaces a branch whose ways are empty and meet at once by a `select` for each phi there. What
/// is chosen from is computed anyway, so nothing is executed that was not before.
pub fn if_convert(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host {
        return false;
    }
    let cfg = &mut ctx.cfg;
    cfg.compute(f);
    let mut changed = false;
    // Inner branches come first, but only blocks that are joined later make outer ones empty.
    for &b in cfg.rpo().iter().rev() {
        let Some(branch) = Branch::find(f, cfg, b, |way| f.block(way).insts.is_empty()) else {
            continue;
        };
        let choices = branch.choices(f);
        if let Some(choices) = choices.filter(|c| selected(c).count() <= MAX_SELECTS) {
            branch.convert(f, &choices, Branch::select);
            changed = true;
        }
    }
    changed
}

/// The same for branches in loops, for lowered host code, where the ways may compute a little: a
/// processor that guesses a branch wrong loses more time than that takes. Where a condition waits for
/// memory whose address the branch decides, as in a binary search, guessing is better.
pub fn if_convert_loops(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host {
        return false;
    }
    let PassContext { cfg, dom, loops, positions, .. } = ctx;
    cfg.compute(f);
    dom.compute(cfg);
    loops.compute(cfg, dom);
    positions.compute(f);
    let mut changed = false;
    for &b in cfg.rpo().iter().rev() {
        let Some(l) = loops.innermost(b) else { continue };
        let is_cheap = |way: Block| f.block(way).insts.iter().all(|&i| is_cheap(f, i));
        let Some(branch) = Branch::find(f, cfg, b, is_cheap) else { continue };
        if branch.computed(f) > MAX_COMPUTED || !loops.contains(l, branch.meet) {
            continue;
        }
        let Some(choices) = branch.choices(f) else { continue };
        let is_good = selected(&choices).count() <= MAX_HOST_SELECTS
            && selected(&choices).all(|c| is_selectable(f, branch.cond, c))
            && !waits_for_address(f, loops, positions, l, branch.cond);
        if is_good {
            branch.hoist_ways(f);
            branch.convert(f, &choices, Branch::select_or_add);
            changed = true;
        }
    }
    changed
}

/// Whether an operation costs less than a branch that is guessed wrong, and cannot fail.
fn is_cheap(f: &MpirFn, i: Inst) -> bool {
    let data = f.inst(i);
    if !PrimType::from_id(data.ty).is_some_and(is_selected) {
        return false;
    }
    let by = || f.args(i).get(1).and_then(|&v| f.as_bits(v));
    let is_integer = || PrimType::from_id(f.ty(f.arg(i, 0))).is_some_and(is_selected);
    matches!(data.op, Op::IAdd | Op::ISub | Op::IAnd | Op::IOr | Op::IXor | Op::Select)
        || matches!(data.op, crate::icmp_ops!())
        || matches!(data.op, Op::IShl | Op::ILshr | Op::IAshr | Op::IMul) && by().is_some()
        || matches!(data.op, Op::IUdiv | Op::ISdiv) && by().is_some_and(u64::is_power_of_two)
        || data.op == Op::Cast && is_integer()
}

/// Whether a processor selects values of a type without a jump.
fn is_selected(p: PrimType) -> bool {
    p.is_int() || p == PrimType::Bool
}

/// Whether a processor makes a choice without a jump: of integers, and of the smaller or larger of two
/// floats.
fn is_selectable(f: &MpirFn, cond: Value, &(phi, x, y): &Choice) -> bool {
    match PrimType::from_id(f.inst(phi).ty) {
        Some(p) if is_selected(p) => true,
        Some(PrimType::F32 | PrimType::F64) => {
            let Some(i) = f.def_inst(cond).filter(|&i| f.inst(i).op == Op::FcmpOlt) else {
                return false;
            };
            matches!(f.args(i), &[a, b] if (a, b) == (x, y) || (a, b) == (y, x))
        }
        Some(_) | None => false,
    }
}

/// Whether a condition is read from memory at an address that goes its own way from round to round, or
/// in one that was unrolled: a choice may lead it.
fn waits_for_address(
    f: &MpirFn,
    loops: &Loops,
    positions: &Positions,
    l: LoopId,
    cond: Value,
) -> bool {
    let header = loops.header(l);
    let is_made_outside = |v| positions.def_block(f, v).is_some_and(|b| !loops.contains(l, b));
    let mut work = vec![(cond, false)];
    let mut at = 0;
    while let Some(&(v, is_address)) = work.get(at) {
        at += 1;
        let Some(i) = f.def_inst(v) else { continue };
        let is_carried = f.inst(i).op == Op::Phi && positions.block(i) == Some(header);
        if is_carried {
            if is_address && !is_counter(f, i) {
                return true;
            }
            continue;
        }
        let behind = is_address || f.inst(i).op == Op::MemLoad;
        for &v in f.args(i) {
            if f.def_inst(v).is_some() && !is_made_outside(v) && !work.contains(&(v, behind)) {
                work.push((v, behind));
            }
        }
        if work.len() > MAX_FOLLOWED {
            return true;
        }
    }
    false
}

/// Whether a phi is one of its arms plus or minus a constant, or plus bytes, each round.
fn is_counter(f: &MpirFn, phi: Inst) -> bool {
    let Some(v) = f.inst(phi).result() else { return false };
    f.args(phi).iter().any(|&arm| {
        let Some(step) = f.def_inst(arm) else { return false };
        let moves = matches!(f.inst(step).op, Op::IAdd | Op::ISub | Op::PtrAdd);
        moves && matches!(f.args(step), &[x, by] if x == v && f.as_const(by).is_some())
    })
}

/// A phi and what it is on the two ways of a branch.
type Choice = (Inst, Value, Value);

/// The choices between different values.
fn selected(choices: &[Choice]) -> impl Iterator<Item = &Choice> {
    choices.iter().filter(|c| c.1 != c.2)
}

/// A branch whose ways meet at once.
struct Branch {
    b: Block,
    cond: Value,
    /// The predecessors of `meet`; one of them may be `b`.
    ways: [Block; 2],
    meet: Block,
}

impl Branch {
    fn find(f: &MpirFn, cfg: &Cfg, b: Block, may_stand: impl Fn(Block) -> bool) -> Option<Branch> {
        let Terminator::Cbr { cond, then, else_ } = f.block(b).term else { return None };
        let through = |way: Block| match f.block(way).term {
            Terminator::Br(next) if cfg.preds(way) == [b] && may_stand(way) => Some(next),
            _ => None,
        };
        let (next_then, next_else) = (through(then), through(else_));
        let (from_then, from_else, meet) = if next_then.is_some() && next_then == next_else {
            (then, else_, next_then?)
        } else if next_then == Some(else_) {
            (then, b, else_)
        } else if next_else == Some(then) {
            (b, else_, then)
        } else {
            return None;
        };
        // A way back in a loop is no way to meet.
        let distinct = then != else_ && meet != b && !cfg.is_retreating(b, meet);
        distinct.then_some(Branch { b, cond, ways: [from_then, from_else], meet })
    }

    fn choices(&self, f: &MpirFn) -> Option<Vec<Choice>> {
        let [then, else_] = self.ways;
        f.phis(self.meet)
            .map(|phi| {
                let is_small = f.args(phi).len() <= MAX_ARMS;
                let (x, y) = f.phi_value(phi, then).zip(f.phi_value(phi, else_))?;
                is_small.then_some((phi, x, y))
            })
            .collect()
    }

    fn own_ways(&self) -> impl Iterator<Item = Block> + use<> {
        let b = self.b;
        self.ways.into_iter().filter(move |&way| way != b)
    }

    /// How many instructions stand on the ways.
    fn computed(&self, f: &MpirFn) -> usize {
        self.own_ways().map(|way| f.block(way).insts.len()).sum()
    }

    /// Puts what the ways compute in front of the branch.
    fn hoist_ways(&self, f: &mut MpirFn) {
        for way in self.own_ways() {
            let insts = std::mem::take(&mut f.block_mut(way).insts);
            f.block_mut(self.b).insts.extend(insts);
        }
    }

    fn select(&self, f: &mut MpirFn, (phi, x, y): Choice) -> Value {
        self.append(f, phi, Op::Select, &[self.cond, x, y])
    }

    /// A choice between a number and the same with something added to it, or taken from it, is the
    /// number with that or zero: what goes from round to round waits for the addition alone.
    fn select_or_add(&self, f: &mut MpirFn, (phi, x, y): Choice) -> Value {
        let changed = |from: Value, to: Value| {
            let i = f.def_inst(to)?;
            let op = f.inst(i).op;
            match *f.args(i) {
                [a, by] if a == from && matches!(op, Op::IAdd | Op::ISub) => Some((op, by)),
                [by, b] if b == from && op == Op::IAdd => Some((op, by)),
                _ => None,
            }
        };
        let sums = (changed(y, x), changed(x, y));
        let zero = f.zero(f.inst(phi).ty);
        let (base, op, by) = match sums {
            (Some((op, by)), _) if f.as_bits(by) == Some(1) => {
                (y, op, self.append(f, phi, Op::Cast, &[self.cond]))
            }
            (Some((op, by)), _) => (y, op, self.select(f, (phi, by, zero))),
            (None, Some((op, by))) => (x, op, self.select(f, (phi, zero, by))),
            (None, None) => return self.select(f, (phi, x, y)),
        };
        self.append(f, phi, op, &[base, by])
    }

    /// An operation at the end of `b`, of the type of a phi.
    fn append(&self, f: &mut MpirFn, phi: Inst, op: Op, args: &[Value]) -> Value {
        let inst = *f.inst(phi);
        let made = f.append(self.b, op, Flags::NONE, inst.ty, args, 0, inst.span);
        made.unwrap_or(args[0])
    }

    /// Makes a choice of the branch, with `choose` where the ways give different values.
    fn convert(
        &self,
        f: &mut MpirFn,
        choices: &[Choice],
        choose: fn(&Branch, &mut MpirFn, Choice) -> Value,
    ) {
        let b = self.b;
        for &(phi, x, y) in choices {
            let chosen = if x == y { x } else { choose(self, f, (phi, x, y)) };
            let mut arms: Vec<(Block, Value)> =
                f.phi_arms(phi).filter(|(p, _)| !self.ways.contains(p)).collect();
            arms.push((b, chosen));
            f.set_phi_arms(phi, &arms);
        }
        f.block_mut(b).term = Terminator::Br(self.meet);
        for way in self.own_ways() {
            f.block_mut(way).term = Terminator::Unreachable;
        }
    }
}
