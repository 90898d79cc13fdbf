//! Partial unrolling of counted loops of lowered host code.
//!
//! In front of a loop that counts up by one comes one that does several rounds for each comparison,
//! as long as so many are left and its index checks are known to hold. The loop itself does the
//! rest, so that whatever goes wrong goes wrong where it did before:
//!
//! ```text
//! while i < min(n, lengths…) - 3
//!     body(i), body(i + 1), body(i + 2), body(i + 3)     // without these index checks
//!     i += 4
//! while i < n
//!     body(i)
//!     i += 1
//! ```

use super::context::refill;
use super::replacements::Replacements;
use super::unroll::{Candidate, Copier};
use super::{PassContext, insert_preheaders};
use crate::analysis::{Cfg, Dominators, LoopId, Loops, Positions};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::{TypeId, fixed};

/// Rounds for each comparison.
const ROUNDS: usize = 4;
/// In loops of at most [`SMALL_SIZE`] instructions.
const ROUNDS_OF_SMALL: usize = 8;
const SMALL_SIZE: usize = 16;
/// Loops with fewer rounds, when their number is known, stay.
const MIN_ROUNDS: u64 = 16;
/// Loops with more instructions stay.
const MAX_SIZE: usize = 40;
/// A function may grow by so many instructions.
const MAX_GROWTH: usize = 2048;
/// Index checks that are left out of one loop.
const MAX_CHECKS: usize = 4;
/// The largest number that is added to the counter in such an index.
const MAX_OFFSET: u64 = 1 << 16;
/// Operations between the counter and an address.
const MAX_DEPTH: usize = 6;

/// Unrolls innermost loops that count up by one to a bound and call nothing.
pub fn unroll_counted(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost || f.blocks.len() < 2 {
        return false;
    }
    let changed = insert_preheaders(f, ctx);
    let PassContext { cfg, dom, loops, positions, replacements, values, .. } = ctx;
    cfg.compute(f);
    dom.compute(cfg);
    loops.compute(cfg, dom);
    if !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    replacements.start(f);
    let mut growth = 0;
    for l in loops.ids().filter(|&l| loops.is_innermost(l)) {
        let finder = Finder { f, cfg, dom, loops, positions, l };
        let Some(counted) = finder.counted() else { continue };
        if growth + counted.rounds * counted.candidate.size > MAX_GROWTH {
            break;
        }
        growth += counted.rounds * counted.candidate.size;
        counted.unroll(f, values, replacements);
    }
    replacements.apply(f);
    changed || growth > 0
}

/// A loop that is worth it.
struct Counted {
    candidate: Candidate,
    /// Rounds for each comparison.
    rounds: usize,
    /// The blocks of the loop, the header first, and those in which its checks end the program.
    blocks: Vec<Block>,
    counter: Value,
    bound: Value,
    checks: Vec<Check>,
    accesses: Vec<Access>,
}

/// An index check: whether the counter and `offset` is less than `length`.
struct Check {
    holds: Value,
    offset: u64,
    length: Value,
}

/// An access to memory whose address grows by so many bytes each round.
struct Access {
    inst: Inst,
    address: Value,
    step: i64,
}

/// Looks at one loop.
struct Finder<'a> {
    f: &'a MpirFn,
    cfg: &'a Cfg,
    dom: &'a Dominators,
    loops: &'a Loops,
    positions: &'a Positions,
    l: LoopId,
}

impl Finder<'_> {
    fn counted(&self) -> Option<Counted> {
        let &Finder { f, cfg, loops, l, .. } = self;
        let header = loops.header(l);
        let preheader = loops.preheader(cfg, l)?;
        let mut latches = loops.latches(cfg, l);
        let (latch, None) = (latches.next()?, latches.next()) else { return None };
        let Terminator::Br(_) = f.block(latch).term else { return None };
        let Terminator::Cbr { cond, then: inside, else_: exit } = f.block(header).term else {
            return None;
        };
        if !loops.contains(l, inside) || loops.contains(l, exit) || inside == header {
            return None;
        }
        let less = f.def_inst(cond).filter(|&i| f.inst(i).op == Op::IcmpSlt)?;
        let &[counter, bound] = f.args(less) else { return None };
        if self.is_inside(bound) || f.ty(counter) != fixed::I64 {
            return None;
        }
        let phi = f
            .def_inst(counter)
            .filter(|&i| f.inst(i).op == Op::Phi && self.positions.block(i) == Some(header))?;
        let first = f.phi_value(phi, preheader)?;
        if self.offset(f.phi_value(phi, latch)?, counter) != Some(1) {
            return None;
        }
        if let (Some(from), Some(to)) = (f.as_bits(first), f.as_bits(bound))
            && to.wrapping_sub(from) < MIN_ROUNDS
        {
            return None;
        }
        let size = self.size()?;
        let mut blocks = loops.blocks(l).to_vec();
        let mut checks = Vec::new();
        for (from, to) in loops.exits(cfg, l) {
            if from == header {
                continue;
            }
            if !self.is_end(to) {
                return None;
            }
            if !blocks.contains(&to) {
                blocks.push(to);
            }
            if f.as_bits(first).is_some_and(|bits| bits as i64 >= 0) && checks.len() < MAX_CHECKS {
                checks.extend(self.check(from, to, counter));
            }
        }
        let rounds = if size <= SMALL_SIZE { ROUNDS_OF_SMALL } else { ROUNDS };
        let accesses = self.accesses(counter, latch, rounds);
        let candidate = Candidate { header, preheader, latch, exiting: header, exit, inside, size };
        Some(Counted { candidate, rounds, blocks, counter, bound, checks, accesses })
    }

    fn is_inside(&self, v: Value) -> bool {
        let block = self.positions.def_block(self.f, v);
        block.is_some_and(|b| self.loops.contains(self.l, b))
    }

    /// The constant that `v` is more than `base`.
    fn offset(&self, v: Value, base: Value) -> Option<u64> {
        if v == base {
            return Some(0);
        }
        let i = self.f.def_inst(v).filter(|&i| self.f.inst(i).op == Op::IAdd)?;
        let &[x, y] = self.f.args(i) else { return None };
        let by = if x == base { y } else { x };
        if x == base || y == base { self.f.as_bits(by) } else { None }
    }

    /// The number of instructions, if none of them stays single.
    fn size(&self) -> Option<usize> {
        let mut size = 0;
        for &b in self.loops.blocks(self.l) {
            size += 1 + self.f.block(b).insts.len();
            let stays = |&i: &Inst| {
                let op = self.f.inst(i).op;
                matches!(op, Op::Call | Op::CallAddr | Op::RtRaw | Op::StackSlot)
            };
            if size > MAX_SIZE || self.f.block(b).insts.iter().any(stays) {
                return None;
            }
        }
        Some(size)
    }

    /// Whether a block outside of the loop ends the program, and for this loop only.
    fn is_end(&self, b: Block) -> bool {
        let block = self.f.block(b);
        let mut preds = self.cfg.preds(b).iter();
        matches!(block.term, Terminator::Unreachable)
            && self.f.phis(b).next().is_none()
            && preds.all(|&p| self.loops.contains(self.l, p))
    }

    /// The index check of an edge to the end of the program.
    fn check(&self, from: Block, end: Block, counter: Value) -> Option<Check> {
        let Terminator::Cbr { cond, then, else_ } = self.f.block(from).term else { return None };
        let below = self.f.def_inst(cond).filter(|&i| self.f.inst(i).op == Op::IcmpUlt)?;
        let &[index, length] = self.f.args(below) else { return None };
        let offset = self.offset(index, counter).filter(|&offset| offset <= MAX_OFFSET)?;
        let is_check = else_ == end && then != end && !self.is_inside(length);
        is_check.then_some(Check { holds: cond, offset, length })
    }

    /// The accesses that can use the address of the first round in all.
    fn accesses(&self, counter: Value, latch: Block, rounds: usize) -> Vec<Access> {
        let f = self.f;
        let mut accesses = Vec::new();
        for &inst in self.loops.blocks(self.l).iter().flat_map(|&b| &f.block(b).insts) {
            if !matches!(f.inst(inst).op, Op::MemLoad | Op::MemStore) {
                continue;
            }
            let address = f.arg(inst, 0);
            let Some(step) = self.step(address, counter, 0) else { continue };
            let is_always_there = self.is_inside(address)
                && self
                    .positions
                    .def_block(f, address)
                    .is_some_and(|b| self.dom.dominates(b, latch));
            // Offsets are numbers of 31 bits.
            let offset = i128::from(f.inst(inst).imm as i64);
            let last = offset + i128::from(step) * (rounds as i128 - 1);
            let fits = |offset: i128| i32::try_from(offset).is_ok_and(|offset| offset >= 0);
            if is_always_there && fits(offset) && fits(last) {
                accesses.push(Access { inst, address, step });
            }
        }
        accesses
    }

    /// By how much a number of 64 bits, or an address, grows each round; it wraps as these do.
    fn step(&self, v: Value, counter: Value, depth: usize) -> Option<i64> {
        if v == counter {
            return Some(1);
        }
        if !self.is_inside(v) {
            return Some(0);
        }
        let ValueDef::Inst(i) = self.f.def(v) else { return Some(0) };
        let &[x, y] = self.f.args(i) else { return None };
        let op = self.f.inst(i).op;
        if depth == MAX_DEPTH || op == Op::Phi {
            return None;
        }
        let of = |v| self.step(v, counter, depth + 1);
        if op == Op::IAdd || op == Op::PtrAdd {
            return Some(of(x)?.wrapping_add(of(y)?));
        }
        if op == Op::ISub {
            return Some(of(x)?.wrapping_sub(of(y)?));
        }
        let by = self.f.as_bits(y);
        if op == Op::IMul {
            return Some(of(x)?.wrapping_mul(by? as i64));
        }
        if op == Op::IShl {
            return Some(of(x)?.wrapping_shl(by? as u32 & 63));
        }
        None
    }
}

impl Counted {
    fn unroll(&self, f: &mut MpirFn, values: &mut Vec<Value>, replacements: &mut Replacements) {
        let c = &self.candidate;
        let limit = self.limit(f);
        refill(values, f.locals.len(), Value(u32::MAX));
        let head = f.add_block();
        let phis: Vec<Inst> = f.phis(c.header).collect();
        let mut carried = Vec::with_capacity(phis.len());
        for &phi in &phis {
            let inst = *f.inst(phi);
            let (Some(v), Some(first)) = (inst.result(), f.phi_value(phi, c.preheader)) else {
                continue;
            };
            let copy = f.make_phi(inst.ty, &[(c.preheader, first)], inst.span);
            f.block_mut(head).insts.push(copy);
            let Some(copied) = f.inst(copy).result() else { continue };
            carried.push((phi, copy, first, copied));
            values[v.index()] = copied;
        }
        let counter = values[self.counter.index()];
        let span = f.block(c.header).term_span;
        let goes_on =
            f.make_inst(Op::IcmpSlt, Flags::NONE, fixed::BOOL, &[counter, limit], 0, span);
        f.block_mut(head).insts.push(goes_on);
        f.block_mut(c.preheader).term = Terminator::Br(head);
        let holds = f.const_bool(true);

        let mut copier = Copier { f, blocks: &self.blocks, candidate: c, values, replacements };
        let (mut first_block, mut from) = (head, head);
        let mut addresses = Vec::new();
        for round in 0..self.rounds {
            let copies: Vec<Block> = self.blocks.iter().map(|_| copier.f.add_block()).collect();
            if round == 0 {
                first_block = copies[0];
            } else {
                copier.enter(from, copies[0], round);
            }
            let made = copier.copy_insts(&copies, self.blocks.len());
            for n in 0..self.blocks.len() {
                copier.copy_terminator(n, &copies, false);
            }
            if round == 0 {
                addresses.extend(self.accesses.iter().map(|a| copier.value(a.address)));
            }
            for (i, copy) in made {
                if let Some(n) = self.accesses.iter().position(|a| a.inst == i) {
                    copier.f.args_mut(copy)[0] = addresses[n];
                    let inst = copier.f.inst_mut(copy);
                    let moved = self.accesses[n].step * round as i64;
                    inst.imm = (inst.imm as i64 + moved) as u64;
                }
            }
            for check in &self.checks {
                copier.replacements.set(copier.value(check.holds), holds);
            }
            from = copies[copier.position(c.latch)];
        }
        // The next values of the phis, before the loop itself gets other first ones.
        let next: Vec<Option<Value>> = carried
            .iter()
            .map(|&(phi, ..)| copier.f.phi_value(phi, c.latch).map(|v| copier.value(v)))
            .collect();
        f.block_mut(from).term = Terminator::Br(head);
        for (&(phi, copy, first, copied), next) in carried.iter().zip(next) {
            let Some(next) = next else { continue };
            f.set_phi_arms(copy, &[(c.preheader, first), (from, next)]);
            let arms: Vec<_> = f
                .phi_arms(phi)
                .map(|(p, v)| if p == c.preheader { (head, copied) } else { (p, v) })
                .collect();
            f.set_phi_arms(phi, &arms);
        }
        if let Some(cond) = f.inst(goes_on).result() {
            let block = f.block_mut(head);
            block.term = Terminator::Cbr { cond, then: first_block, else_: c.header };
            block.term_span = span;
        }
    }

    /// What the counter must be less than for all rounds of one comparison to be done, without a
    /// failing check; computed in the preheader.
    fn limit(&self, f: &mut MpirFn) -> Value {
        let b = self.candidate.preheader;
        let mut limit = self.bound;
        for check in &self.checks {
            // A length below the offset leaves no index; the counter is not negative.
            let offset = f.const_bits(fixed::I64, check.offset);
            let length = append(f, b, Op::ISmax, fixed::I64, &[check.length, offset]);
            let end = append(f, b, Op::ISub, fixed::I64, &[length, offset]);
            limit = append(f, b, Op::ISmin, fixed::I64, &[limit, end]);
        }
        let others = self.rounds as i64 - 1;
        let least = f.const_bits(fixed::I64, (i64::MIN + others) as u64);
        let others = f.const_bits(fixed::I64, others as u64);
        let none = f.const_bits(fixed::I64, i64::MIN as u64);
        let last = append(f, b, Op::ISub, fixed::I64, &[limit, others]);
        let wraps = append(f, b, Op::IcmpSlt, fixed::BOOL, &[limit, least]);
        append(f, b, Op::Select, fixed::I64, &[wraps, none, last])
    }
}

/// Appends an operation to a block.
fn append(f: &mut MpirFn, b: Block, op: Op, ty: TypeId, args: &[Value]) -> Value {
    let span = f.block(b).term_span;
    let i = f.make_inst(op, Flags::NONE, ty, args, 0, span);
    f.block_mut(b).insts.push(i);
    f.inst(i).result().unwrap_or(args[0])
}
