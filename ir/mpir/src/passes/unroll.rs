//! Full unrolling of small loops whose number of rounds is a constant.

use super::PassContext;
use super::context::refill;
use super::insert_preheaders::loops_with_preheaders;
use super::replacements::Replacements;
use crate::analysis::{Cfg, LoopId, Loops, Positions};
use crate::eval::eval;
use crate::{Block, Domain, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;

/// Loops with more rounds stay.
const MAX_ROUNDS: usize = 32;
/// On the host longer ones are better off with vectors.
const MAX_HOST_ROUNDS: usize = 4;
/// Loops that would become more instructions and blocks stay.
const MAX_SIZE: usize = 384;
/// A function may grow by so many instructions in one run.
const MAX_GROWTH: usize = 4096;
/// The condition of the exit may depend on so many instructions.
const MAX_SLICE: usize = 16;

/// Replaces innermost loops of few rounds by that many copies of their body. Loops with convergent
/// operations stay: these keep their control dependence.
pub fn unroll(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    unroll_loops(f, ctx, |op| !op.info().convergent)
}

/// As [`unroll`], of loops with barriers too, for code generation that gains from seeing each
/// barrier by itself. All invocations make the same rounds, so they still meet at all barriers.
pub fn unroll_barriers(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    unroll_loops(f, ctx, |op| !op.info().convergent || op == Op::GpuBarrier)
}

fn unroll_loops(f: &mut MpirFn, ctx: &mut PassContext, may_copy: fn(Op) -> bool) -> bool {
    let max_rounds = match f.domain {
        Domain::Device => MAX_ROUNDS,
        Domain::LowHost => MAX_HOST_ROUNDS,
        Domain::Host => return false,
    };
    if f.blocks.len() < 2 {
        return false;
    }
    ctx.cfg.compute(f);
    let cfg = &ctx.cfg;
    let has_loop = |&b: &Block| cfg.succs(b).iter().any(|&s| cfg.is_retreating(b, s));
    if !cfg.rpo().iter().any(has_loop) {
        return false;
    }
    let mut changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, loops, positions, replacements, values, blocks, .. } = ctx;
    positions.compute(f);
    replacements.start(f);
    let mut growth = 0;
    let innermost = |l: &LoopId| loops.is_reducible() && loops.is_innermost(*l);
    for l in loops.ids().filter(innermost) {
        let Some(candidate) = candidate(f, cfg, loops, l, may_copy) else { continue };
        let rounds = rounds(f, loops, positions, l, &candidate);
        let Some(rounds) = rounds.filter(|&rounds| rounds <= max_rounds) else { continue };
        let size = candidate.size * rounds;
        if size > MAX_SIZE || growth + size > MAX_GROWTH {
            continue;
        }
        growth += size;
        blocks.clear();
        blocks.extend_from_slice(loops.blocks(l));
        blocks.extend_from_slice(&candidate.ends);
        Copier { f, blocks, candidate: &candidate, values, replacements }.run(rounds);
        changed = true;
    }
    replacements.apply(f);
    changed
}

/// A loop of the form that can be unrolled: one way in, one way back, one way out, not counted those
/// that end the program.
pub(super) struct Candidate {
    pub(super) header: Block,
    pub(super) preheader: Block,
    pub(super) latch: Block,
    /// The block that leaves the loop, the header or the latch, and where it leads.
    pub(super) exiting: Block,
    pub(super) exit: Block,
    /// Where it leads otherwise.
    pub(super) inside: Block,
    /// Blocks that only the loop leads to, and that end the program.
    pub(super) ends: Vec<Block>,
    pub(super) size: usize,
}

/// Whether a block outside of a loop ends the program, and for this loop only.
pub(super) fn ends_program(f: &MpirFn, cfg: &Cfg, loops: &Loops, l: LoopId, b: Block) -> bool {
    matches!(f.block(b).term, Terminator::Unreachable)
        && f.phis(b).next().is_none()
        && cfg.preds(b).iter().all(|&p| loops.contains(l, p))
}

fn candidate(
    f: &MpirFn,
    cfg: &Cfg,
    loops: &Loops,
    l: LoopId,
    may_copy: fn(Op) -> bool,
) -> Option<Candidate> {
    let header = loops.header(l);
    let preheader = loops.preheader(cfg, l)?;
    let mut latches = loops.latches(cfg, l);
    let (latch, None) = (latches.next()?, latches.next()) else { return None };
    if loops.blocks(l).len() > MAX_SIZE {
        return None;
    }
    let mut ends = Vec::new();
    let mut ways_out = Vec::new();
    for (from, to) in loops.exits(cfg, l) {
        if !ends_program(f, cfg, loops, l, to) {
            ways_out.push((from, to));
        } else if !ends.contains(&to) {
            ends.push(to);
        }
    }
    let [(exiting, exit)] = ways_out[..] else { return None };
    if exiting != header && exiting != latch {
        return None;
    }
    let Terminator::Cbr { then, else_, .. } = f.block(exiting).term else { return None };
    let inside = if then == exit { else_ } else { then };
    let mut size = 0;
    for &b in loops.blocks(l).iter().chain(&ends) {
        size += 1;
        for &i in &f.block(b).insts {
            let op = f.inst(i).op;
            let stays = matches!(
                op,
                Op::GpuShared | Op::GpuLocal | Op::Call | Op::GpuPrint | Op::StackSlot
            );
            if stays || !may_copy(op) {
                return None;
            }
            size += 1;
        }
        if size > MAX_SIZE {
            return None;
        }
    }
    Some(Candidate { header, preheader, latch, exiting, exit, inside, ends, size })
}

/// How often the loop is entered again through its header: the number of complete copies. Found by
/// executing what the exit depends on.
fn rounds(
    f: &MpirFn,
    loops: &Loops,
    positions: &Positions,
    l: LoopId,
    c: &Candidate,
) -> Option<usize> {
    let Terminator::Cbr { cond, then, .. } = f.block(c.exiting).term else { return None };
    let slice = slice(f, loops, positions, l, c, cond)?;
    let mut bits: Vec<(Value, u64)> = Vec::with_capacity(slice.len());
    for &i in &slice {
        if f.inst(i).op == Op::Phi {
            let init = f.phi_value(i, c.preheader)?;
            bits.push((f.inst(i).result()?, f.as_bits(init)?));
        }
    }
    let phis = bits.len();
    let of = |bits: &[(Value, u64)], v: Value| match f.as_bits(v) {
        Some(b) => Some(b),
        None => bits.iter().find(|(known, _)| *known == v).map(|&(_, b)| b),
    };
    // A loop that leaves from its header runs its body once less than the header.
    let bottom_test = c.exiting != c.header;
    for round in 0..=MAX_ROUNDS {
        bits.truncate(phis);
        for &i in slice.iter().filter(|&&i| f.inst(i).op != Op::Phi) {
            let mut args = [0; 3];
            for (n, &v) in f.args(i).iter().enumerate() {
                *args.get_mut(n)? = of(&bits, v)?;
            }
            let typed = if f.inst(i).op == Op::Select { f.arg(i, 1) } else { f.arg(i, 0) };
            let from = PrimType::from_id(f.ty(typed))?;
            let to = PrimType::from_id(f.inst(i).ty)?;
            let result = eval(f.inst(i).op, from, to, &args[..f.args(i).len()])?;
            bits.push((f.inst(i).result()?, result));
        }
        let leaves = (of(&bits, cond)? & 1 == 1) == (then == c.exit);
        if leaves {
            return Some(round + bottom_test as usize);
        }
        let mut next = Vec::with_capacity(phis);
        for &i in slice.iter().filter(|&&i| f.inst(i).op == Op::Phi) {
            next.push(of(&bits, f.phi_value(i, c.latch)?)?);
        }
        for (slot, bits) in bits.iter_mut().zip(next) {
            slot.1 = bits;
        }
    }
    None
}

/// The instructions of the loop on which `cond` depends, in order of execution: phis of the header
/// and pure scalar operations. `None` when there is anything else, or too much.
fn slice(
    f: &MpirFn,
    loops: &Loops,
    positions: &Positions,
    l: LoopId,
    c: &Candidate,
    cond: Value,
) -> Option<Vec<Inst>> {
    let mut slice: Vec<Inst> = Vec::new();
    let mut work = vec![cond];
    while let Some(v) = work.pop() {
        let i = match f.def(v) {
            ValueDef::Const(_) => continue,
            ValueDef::Param(_) => return None,
            ValueDef::Inst(i) => i,
        };
        let b = positions.block(i)?;
        if !loops.contains(l, b) {
            return None;
        }
        if slice.contains(&i) {
            continue;
        }
        slice.push(i);
        let op = f.inst(i).op;
        let is_counter = op == Op::Phi && b == c.header;
        if slice.len() > MAX_SLICE || !is_counter && (!op.is_pure() || f.args(i).is_empty()) {
            return None;
        }
        if is_counter {
            work.push(f.phi_value(i, c.latch)?);
        } else {
            work.extend_from_slice(f.args(i));
        }
    }
    // Operands come before their users when both are sorted by block and place.
    let place = |&i: &Inst| {
        let b = positions.block(i).unwrap_or(c.header);
        let block = loops.blocks(l).iter().position(|&x| x == b);
        (block, f.block(b).insts.iter().position(|&x| x == i))
    };
    slice.sort_by_key(place);
    Some(slice)
}

/// Makes the copies of one loop.
pub(super) struct Copier<'a> {
    pub(super) f: &'a mut MpirFn,
    /// The blocks of the loop, the header first.
    pub(super) blocks: &'a [Block],
    pub(super) candidate: &'a Candidate,
    /// What a value of the loop is in the current copy.
    pub(super) values: &'a mut Vec<Value>,
    pub(super) replacements: &'a mut Replacements,
}

impl Copier<'_> {
    fn run(&mut self, rounds: usize) {
        let c = self.candidate;
        let none = Value(u32::MAX);
        refill(self.values, self.f.locals.len(), none);
        let top_test = c.exiting == c.header;
        let mut from = c.preheader;
        for round in 0..rounds {
            let is_last = !top_test && round + 1 == rounds;
            let copies: Vec<Block> = self.blocks.iter().map(|_| self.f.add_block()).collect();
            self.enter(from, copies[0], round);
            self.copy_insts(&copies, self.blocks.len());
            for n in 0..self.blocks.len() {
                self.copy_terminator(n, &copies, is_last);
            }
            from = copies[self.position(c.latch)];
        }
        if top_test {
            // The header once more, to leave.
            let copies = vec![self.f.add_block()];
            self.enter(from, copies[0], rounds);
            self.copy_insts(&copies, 1);
            let span = self.f.block(c.header).term_span;
            let block = self.f.block_mut(copies[0]);
            block.term = Terminator::Br(c.exit);
            block.term_span = span;
            from = copies[0];
        }
        self.leave(from);
    }

    pub(super) fn position(&self, b: Block) -> usize {
        self.blocks.iter().position(|&x| x == b).unwrap_or(0)
    }

    /// Sends the end of the copy before, or the preheader, into the next header.
    pub(super) fn enter(&mut self, from: Block, header: Block, round: usize) {
        let c = self.candidate;
        self.f.block_mut(from).term = Terminator::Br(header);
        let phis: Vec<Inst> = self.f.phis(c.header).collect();
        let pred = if round == 0 { c.preheader } else { c.latch };
        let incoming: Vec<Option<(Value, Value)>> = phis
            .iter()
            .map(|&i| {
                let v = self.f.phi_value(i, pred)?;
                let v = if round == 0 { v } else { self.value(v) };
                Some((self.f.inst(i).result()?, v))
            })
            .collect();
        for (phi, v) in incoming.into_iter().flatten() {
            self.values[phi.index()] = v;
        }
    }

    /// What `v` is in the current copy.
    pub(super) fn value(&self, v: Value) -> Value {
        match self.values.get(v.index()) {
            Some(&copy) if copy.0 != u32::MAX => copy,
            _ => v,
        }
    }

    /// Copies the instructions of the first blocks; gives back each with its copy.
    pub(super) fn copy_insts(&mut self, copies: &[Block], blocks: usize) -> Vec<(Inst, Inst)> {
        let mut made = Vec::new();
        for (n, &to) in copies.iter().enumerate().take(blocks) {
            let from = self.blocks[n];
            for at in 0..self.f.block(from).insts.len() {
                let i = self.f.block(from).insts[at];
                let inst = *self.f.inst(i);
                let copy = if inst.op != Op::Phi {
                    let args: Vec<Value> = self.f.args(i).iter().map(|&v| self.value(v)).collect();
                    self.f.make_inst(inst.op, inst.flags, inst.ty, &args, inst.imm, inst.span)
                } else if n == 0 {
                    continue;
                } else {
                    self.f.make_phi(inst.ty, &[], inst.span)
                };
                made.push((i, copy));
                self.f.block_mut(to).insts.push(copy);
                if let Some((v, copied)) = inst.result().zip(self.f.inst(copy).result()) {
                    self.values[v.index()] = copied;
                }
            }
        }
        for &(i, copy) in &made {
            if self.f.inst(i).op == Op::Phi {
                let arms: Vec<_> = self
                    .f
                    .phi_arms(i)
                    .map(|(p, v)| (copies[self.position(p)], self.value(v)))
                    .collect();
                self.f.set_phi_arms(copy, &arms);
            }
        }
        made
    }

    pub(super) fn copy_terminator(&mut self, n: usize, copies: &[Block], is_last: bool) {
        let c = self.candidate;
        let b = self.blocks[n];
        let mut term = self.f.block(b).term.clone();
        if b == c.exiting {
            term = Terminator::Br(if is_last { c.exit } else { c.inside });
        }
        if let Some(v) = term.operand_mut() {
            *v = self.value(*v);
        }
        // A branch to the header is replaced when the next copy is entered.
        term.map_targets(|t| match self.blocks.iter().position(|&x| x == t) {
            Some(target) => copies[target],
            None => t,
        });
        let span = self.f.block(b).term_span;
        let copy = self.f.block_mut(copies[n]);
        copy.term = term;
        copy.term_span = span;
    }

    /// Makes everything behind the loop use the last copy, and the loop unreachable.
    fn leave(&mut self, last: Block) {
        let c = self.candidate;
        let mut n = 0;
        while let Some(&i) = self.f.block(c.exit).insts.get(n) {
            if self.f.inst(i).op != Op::Phi {
                break;
            }
            n += 1;
            let arms: Vec<_> = self
                .f
                .phi_arms(i)
                .map(|(p, v)| if p == c.exiting { (last, self.value(v)) } else { (p, v) })
                .collect();
            self.f.set_phi_arms(i, &arms);
        }
        for &b in self.blocks {
            for at in 0..self.f.block(b).insts.len() {
                let i = self.f.block(b).insts[at];
                if let Some(v) = self.f.inst(i).result() {
                    let last = self.value(v);
                    if last != v {
                        self.replacements.set(v, last);
                    }
                }
            }
            let block = self.f.block_mut(b);
            block.insts.clear();
            block.term = Terminator::Unreachable;
        }
    }
}
