//! Loops twice: without calls, where something that no round changes says that none are needed.
//!
//! A character of a text is a byte if the text is ASCII, else the runtime finds it. What the text is
//! does not change while a loop runs, so it is asked once in front of the loop:
//!
//! ```text
//! loop: cbr %ascii, byte, call                    cbr %ascii, fast, loop
//! byte: …                                   ⇒     fast: …       (with the byte only)
//! call: rt.raw mp_rt_str_code_at …                loop: …       (as before)
//! ```
//!
//! The loop without calls is one that [`super::widen_counted`] can do several rounds of at once.

use super::PassContext;
use super::definitions::Definitions;
use super::insert_preheaders::loops_with_preheaders;
use super::unroll::ends_program;
use crate::analysis::{Cfg, Dominators, LoopId, Loops, Positions};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;
use rustc_hash::{FxHashMap, FxHashSet};

/// Loops of more instructions and blocks stay one.
const MAX_SIZE: usize = 300;
/// A function may grow by so many instructions and blocks.
const MAX_GROWTH: usize = 1500;

/// Makes two loops of each loop that calls the runtime, which only looks at something, on a condition
/// that is the same in all rounds. Outer loops come first: those inside are copied with them.
pub fn unswitch_loops(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    let looks = |&i: &Inst| looks_only(f, i);
    if f.domain != Domain::LowHost || !f.blocks.iter().flat_map(|b| &b.insts).any(looks) {
        return false;
    }
    let changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, dom, loops, positions, .. } = ctx;
    if loops.is_empty() || !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    let view = View { f, cfg, dom, loops, positions };
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut growth = 0;
    for l in loops.ids() {
        if chosen.iter().any(|c| loops.encloses(c.id, l)) {
            continue;
        }
        let found = view.choose(l).filter(|c| growth + c.size <= MAX_GROWTH);
        growth += found.as_ref().map_or(0, |c| c.size);
        chosen.extend(found);
    }
    let mut definitions = Definitions::default();
    for c in &chosen {
        copy(f, c, &mut definitions);
    }
    let inside: FxHashMap<Block, usize> = chosen
        .iter()
        .enumerate()
        .flat_map(|(n, c)| c.blocks.iter().map(move |&b| (b, n)))
        .collect();
    definitions.join(f, ctx, |home, at| inside.get(&home) == inside.get(&at));
    changed || !chosen.is_empty()
}

/// Whether an instruction calls the runtime, which changes nothing.
fn looks_only(f: &MpirFn, i: Inst) -> bool {
    f.inst(i).op == Op::RtRaw && f.inst(i).rt().only_reads()
}

/// A loop that becomes two.
struct Chosen {
    id: LoopId,
    preheader: Block,
    /// The blocks of the loop, the header first, and those to which it leads to end the program.
    blocks: Vec<Block>,
    /// What holds in the loop without calls, or does not.
    conditions: Vec<(Value, bool)>,
    /// What other values are if that is so.
    known: Vec<(Value, Value)>,
    size: usize,
}

struct View<'a> {
    f: &'a MpirFn,
    cfg: &'a Cfg,
    dom: &'a Dominators,
    loops: &'a Loops,
    positions: &'a Positions,
}

impl View<'_> {
    fn choose(&self, l: LoopId) -> Option<Chosen> {
        let &View { f, cfg, loops, .. } = self;
        let preheader = loops.preheader(cfg, l)?;
        let mut blocks = loops.blocks(l).to_vec();
        let size = |b: &Block| f.block(*b).insts.len() + 1;
        let total: usize = blocks.iter().map(size).sum();
        if total > MAX_SIZE {
            return None;
        }
        let has_slot = |b: &Block| f.block(*b).insts.iter().any(|&i| f.inst(i).op == Op::StackSlot);
        if blocks.iter().any(has_slot) {
            return None;
        }
        let mut conditions: Vec<(Value, bool)> = Vec::new();
        for &b in &blocks {
            let found = self.condition(l, b);
            conditions.extend(found.filter(|c| conditions.iter().all(|known| known.0 != c.0)));
        }
        if conditions.is_empty() {
            return None;
        }
        let known = self.known(l, &conditions);
        for (_, to) in loops.exits(cfg, l) {
            if ends_program(f, cfg, loops, l, to) && !blocks.contains(&to) {
                blocks.push(to);
            }
        }
        Some(Chosen { id: l, preheader, blocks, conditions, known, size: total })
    }

    /// The condition at the end of a block, if it is the same in all rounds and decides whether the
    /// runtime is called; and what it is when that is not.
    fn condition(&self, l: LoopId, b: Block) -> Option<(Value, bool)> {
        let Terminator::Cbr { cond, then, else_ } = self.f.block(b).term else { return None };
        let home = self.positions.def_block(self.f, cond)?;
        if self.loops.contains(l, home) {
            return None;
        }
        let calls = |to: Block| {
            let is_only_way = *self.cfg.preds(to) == [b] && self.loops.contains(l, to);
            is_only_way && self.f.block(to).insts.iter().any(|&i| looks_only(self.f, i))
        };
        match (calls(then), calls(else_)) {
            (false, true) => Some((cond, true)),
            (true, false) => Some((cond, false)),
            _ => None,
        }
    }

    /// Values in front of the loop, which it uses, that were chosen by one of the conditions.
    fn known(&self, l: LoopId, conditions: &[(Value, bool)]) -> Vec<(Value, Value)> {
        let f = self.f;
        let insts = self.loops.blocks(l).iter().flat_map(|&b| &f.block(b).insts);
        let mut seen = FxHashSet::default();
        let used = insts.flat_map(|&i| f.args(i)).copied().filter(|&v| seen.insert(v));
        used.filter_map(|v| Some((v, self.chosen_by(l, v, conditions)?))).collect()
    }

    fn chosen_by(&self, l: LoopId, v: Value, conditions: &[(Value, bool)]) -> Option<Value> {
        let &View { f, cfg, dom, .. } = self;
        let phi = f.def_inst(v).filter(|&i| f.inst(i).op == Op::Phi)?;
        let meeting = self.positions.block(phi).filter(|&b| !self.loops.contains(l, b))?;
        let branch = dom.idom(meeting)?;
        let Terminator::Cbr { cond, then, else_ } = f.block(branch).term else { return None };
        let &(_, holds) = conditions.iter().find(|c| c.0 == cond)?;
        let way = if holds { then } else { else_ };
        let from = if way == meeting { branch } else { way };
        let is_direct = way == meeting || *cfg.preds(way) == [branch];
        if then == else_ || !is_direct || cfg.preds(meeting).len() != 2 {
            return None;
        }
        let arm = f.phi_value(phi, from)?;
        let is_early = match self.positions.def_block(f, arm) {
            Some(home) => dom.dominates(home, branch),
            None => true,
        };
        is_early.then_some(arm)
    }
}

/// Makes the loop without calls.
fn copy(f: &mut MpirFn, chosen: &Chosen, definitions: &mut Definitions) {
    let copies: Vec<Block> = chosen.blocks.iter().map(|_| f.add_block()).collect();
    let target: FxHashMap<Block, Block> =
        chosen.blocks.iter().copied().zip(copies.iter().copied()).collect();
    let mut values: FxHashMap<Value, Value> = chosen.known.iter().copied().collect();
    for &(cond, holds) in &chosen.conditions {
        values.insert(cond, f.const_bool(holds));
    }
    let mut made: Vec<(Inst, Inst)> = Vec::new();
    for (&from, &to) in chosen.blocks.iter().zip(&copies) {
        for i in f.block(from).insts.clone() {
            let inst = *f.inst(i);
            let copy = match inst.op {
                Op::Phi => f.make_phi(inst.ty, &[], inst.span),
                op => {
                    let args = f.args(i).to_vec();
                    f.make_inst(op, inst.flags, inst.ty, &args, inst.imm, inst.span)
                }
            };
            f.block_mut(to).insts.push(copy);
            made.push((i, copy));
            if let Some((v, copied)) = inst.result().zip(f.inst(copy).result()) {
                values.insert(v, copied);
                definitions.add(v, from, to, copied);
            }
        }
        f.block_mut(to).term_span = f.block(from).term_span;
    }
    let value = |v: Value| values.get(&v).copied().unwrap_or(v);
    let block = |b: Block| target.get(&b).copied().unwrap_or(b);
    for &(i, copy) in &made {
        if f.inst(i).op == Op::Phi {
            let arms: Vec<_> = f.phi_arms(i).map(|(p, v)| (block(p), value(v))).collect();
            f.set_phi_arms(copy, &arms);
        } else {
            f.args_mut(copy).iter_mut().for_each(|v| *v = value(*v));
        }
    }
    for (&from, &to) in chosen.blocks.iter().zip(&copies) {
        let mut term = f.block(from).term.clone();
        if let Some(v) = term.operand_mut() {
            *v = value(*v);
        }
        term.for_each_target(|t| {
            if !target.contains_key(&t) {
                add_arms(f, t, from, to, value);
            }
        });
        term.map_targets(block);
        f.block_mut(to).term = term;
    }
    enter(f, chosen, copies[0]);
}

/// Those who come to a block from the copy of another one bring the copies of its values.
fn add_arms(f: &mut MpirFn, b: Block, from: Block, copy: Block, value: impl Fn(Value) -> Value) {
    for phi in f.phis(b).collect::<Vec<_>>() {
        let arm = f.phi_value(phi, from).filter(|_| f.phi_value(phi, copy).is_none());
        if let Some(v) = arm {
            let mut arms: Vec<_> = f.phi_arms(phi).collect();
            arms.push((copy, value(v)));
            f.set_phi_arms(phi, &arms);
        }
    }
}

/// Asks in front of the loop.
fn enter(f: &mut MpirFn, chosen: &Chosen, copy: Block) {
    let (preheader, header) = (chosen.preheader, chosen.blocks[0]);
    let span = f.block(preheader).term_span;
    let append = |f: &mut MpirFn, op, args: &[Value]| {
        f.append(preheader, op, Flags::NONE, fixed::BOOL, args, 0, span).unwrap_or(args[0])
    };
    let mut all = None;
    for &(cond, holds) in &chosen.conditions {
        let cond = match holds {
            true => cond,
            false => {
                let yes = f.const_bool(true);
                append(f, Op::IXor, &[cond, yes])
            }
        };
        all = Some(all.map_or(cond, |all| append(f, Op::IAnd, &[all, cond])));
    }
    if let Some(cond) = all {
        f.block_mut(preheader).term = Terminator::Cbr { cond, then: copy, else_: header };
    }
}
