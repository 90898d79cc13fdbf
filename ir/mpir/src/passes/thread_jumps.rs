//! Branches whose way is known for some of the blocks before them.
//!
//! Where a call that gives an option was inlined, its ways meet, with a tag for each, and the caller
//! branches on the tag at once. Whoever comes with a known tag goes to where the branch leads him;
//! what stands between is copied for him.

use super::PassContext;
use super::context::refill;
use super::definitions::Definitions;
use crate::analysis::{Cfg, Dominators};
use crate::eval::eval;
use crate::{Block, Domain, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::{PrimType, TypeCtx};
use rustc_hash::FxHashMap;

/// Instructions in front of a branch that are copied.
const MAX_COPIED: usize = 8;
/// Ways that one run opens.
const MAX_WAYS: usize = 256;
/// Branches above a block that are asked for what they tell.
const MAX_FACTS: usize = 8;

/// Blocks above a block that are looked at for them.
const MAX_ABOVE: usize = 256;
/// Operations between a condition and what is known.
const MAX_DEPTH: usize = 4;

/// A block before a branch, the block of the branch, and where it leads from there.
struct Way {
    from: Block,
    through: Block,
    to: Block,
}

/// Sends branches past other branches whose way is known there.
pub fn thread_jumps(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost || f.blocks.len() < 3 {
        return false;
    }
    ctx.find_loops(f);
    let mut changed = false;
    let mut ways = Vec::new();
    for &b in ctx.cfg.rpo() {
        if !matches!(f.block(b).term, Terminator::Cbr { .. } | Terminator::Switch { .. }) {
            continue;
        }
        let facts = Facts::of(f, &ctx.cfg, &ctx.dom, b);
        if let Some(to) = f.block(b).term.operand().and_then(|v| facts.target(f, b, v)) {
            drop_arms(f, b, to);
            f.block_mut(b).term = Terminator::Br(to);
            changed = true;
        } else if b != Block(0) && !ctx.loops.is_header(b) && may_be_copied(f, types, b) {
            find_ways(f, &ctx.cfg, &ctx.dom, b, &mut ways);
        }
    }
    if changed {
        // The graph that the ways were found in is no more.
        return true;
    }
    if ways.is_empty() {
        return false;
    }
    keep_independent(f, &mut ways, ctx);
    let mut definitions = Definitions::default();
    for way in &ways {
        open(f, way, &mut definitions);
    }
    // Copies of a block read the copies of its values.
    definitions.join(f, ctx, |home, at| at == home);
    !ways.is_empty()
}

/// Drops ways that bring values of other blocks which will be there twice: first those are joined.
fn keep_independent(f: &MpirFn, ways: &mut Vec<Way>, ctx: &mut PassContext) {
    let PassContext { marks, positions, .. } = ctx;
    positions.compute(f);
    refill(marks, f.blocks.len(), false);
    ways.iter().for_each(|way| marks[way.through.index()] = true);
    ways.retain(|way| {
        let mut arms = f.phis(way.through).filter_map(|phi| f.phi_value(phi, way.from));
        !arms.any(|v| positions.def_block(f, v).is_some_and(|home| marks[home.index()]))
    });
}

/// Whether what is in front of the branch of a block may be there twice.
fn may_be_copied(f: &MpirFn, types: &TypeCtx, b: Block) -> bool {
    let insts = &f.block(b).insts;
    let phis = f.phis(b).count();
    let one_value = |i: &Inst| !types.is_aggregate(f.inst(*i).ty) && f.inst(*i).op != Op::StackSlot;
    phis > 0 && insts.len() - phis <= MAX_COPIED && insts.iter().all(one_value)
}

fn find_ways(f: &MpirFn, cfg: &Cfg, dom: &Dominators, b: Block, ways: &mut Vec<Way>) {
    let Some(condition) = f.block(b).term.operand() else { return };
    // Without a phi of the block, all that come know the same.
    if !depends_on_phi(f, b, condition, MAX_DEPTH) {
        return;
    }
    let is_way = |&&p: &&Block| cfg.is_reachable(p) && !cfg.is_retreating(p, b);
    for &p in cfg.preds(b).iter().filter(is_way) {
        if ways.len() >= MAX_WAYS {
            return;
        }
        let facts = Facts::at_edge(f, cfg, dom, p, b);
        let to = facts.target(f, b, condition);
        if let Some(to) = to.filter(|&to| to != b && !cfg.is_retreating(b, to)) {
            ways.push(Way { from: p, through: b, to });
        }
    }
}

fn depends_on_phi(f: &MpirFn, b: Block, v: Value, depth: usize) -> bool {
    let Some(i) = f.def_inst(v) else { return false };
    match f.inst(i).op {
        Op::Phi => f.block(b).insts.contains(&i),
        op if depth > 0 && op.is_pure() => {
            f.args(i).iter().any(|&v| depends_on_phi(f, b, v, depth - 1))
        }
        _ => false,
    }
}

/// Removes the arms for a branch in the blocks that it will not lead to.
fn drop_arms(f: &mut MpirFn, b: Block, to: Block) {
    for other in f.successors(b).into_iter().filter(|&s| s != to) {
        remove_arm(f, other, b);
    }
}

fn remove_arm(f: &mut MpirFn, block: Block, pred: Block) {
    for phi in f.phis(block).collect::<Vec<_>>() {
        let arms: Vec<(Block, Value)> = f.phi_arms(phi).filter(|arm| arm.0 != pred).collect();
        f.set_phi_arms(phi, &arms);
    }
}

/// What branches tell at a place.
struct Facts {
    /// Conditions, and whether they hold.
    conditions: Vec<(Value, bool)>,
    /// The edge on which the phis of its end are asked.
    edge: Option<(Block, Block)>,
}

impl Facts {
    /// At the end of a block.
    fn of(f: &MpirFn, cfg: &Cfg, dom: &Dominators, b: Block) -> Facts {
        let mut conditions = Vec::new();
        let mut at = b;
        for _ in 0..MAX_ABOVE {
            let Some(above) = dom.idom(at) else { break };
            if let [only] = *cfg.preds(at) {
                conditions.extend(told(f, only, at));
            }
            if conditions.len() >= MAX_FACTS {
                break;
            }
            at = above;
        }
        Facts { conditions, edge: None }
    }

    /// On an edge.
    fn at_edge(f: &MpirFn, cfg: &Cfg, dom: &Dominators, from: Block, to: Block) -> Facts {
        let mut facts = Facts::of(f, cfg, dom, from);
        facts.conditions.extend(told(f, from, to));
        facts.edge = Some((from, to));
        facts
    }

    /// Where the branch at the end of a block leads.
    fn target(&self, f: &MpirFn, b: Block, condition: Value) -> Option<Block> {
        let bits = self.known(f, condition, MAX_DEPTH)?;
        match &f.block(b).term {
            &Terminator::Cbr { then, else_, .. } => Some(if bits & 1 == 1 { then } else { else_ }),
            Terminator::Switch { cases, default, .. } => {
                Some(cases.iter().find(|c| c.0 == bits).map_or(*default, |c| c.1))
            }
            Terminator::Ret(_) | Terminator::Br(_) | Terminator::Unreachable => None,
        }
    }

    fn known(&self, f: &MpirFn, v: Value, depth: usize) -> Option<u64> {
        if let Some(bits) = f.as_bits(v) {
            return Some(bits);
        }
        if let Some(&(_, holds)) = self.conditions.iter().find(|c| c.0 == v) {
            return Some(u64::from(holds));
        }
        if let Some(bits) = self.conditions.iter().find_map(|&c| is_constant(f, v, c)) {
            return Some(bits);
        }
        let i = f.def_inst(v).filter(|_| depth > 0)?;
        let inst = f.inst(i);
        if inst.op == Op::Phi {
            let (from, to) = self.edge?;
            // An arm that is a phi of the same block is what that was a round before.
            let arm = f.phi_value(i, from).filter(|_| f.block(to).insts.contains(&i))?;
            let before = Facts { conditions: self.conditions.clone(), edge: None };
            return before.known(f, arm, depth - 1);
        }
        let args = f.args(i);
        if !inst.op.is_pure() || args.is_empty() || args.len() > 3 {
            return None;
        }
        let typed = args[usize::from(inst.op == Op::Select)];
        let (from, to) = (PrimType::from_id(f.ty(typed))?, PrimType::from_id(inst.ty)?);
        let mut bits = [0; 3];
        for (slot, &arg) in bits.iter_mut().zip(args) {
            *slot = self.known(f, arg, depth - 1)?;
        }
        eval(inst.op, from, to, &bits[..args.len()])
    }
}

/// What a branch tells those that it leads to `to`.
fn told(f: &MpirFn, from: Block, to: Block) -> Option<(Value, bool)> {
    match f.block(from).term {
        Terminator::Cbr { cond, then, else_ } if then != else_ => Some((cond, then == to)),
        _ => None,
    }
}

/// The constant that a value is because of a comparison with it.
fn is_constant(f: &MpirFn, v: Value, (condition, holds): (Value, bool)) -> Option<u64> {
    let i = f.def_inst(condition)?;
    let equal = match f.inst(i).op {
        Op::IcmpEq => holds,
        Op::IcmpNe => !holds,
        _ => false,
    };
    (equal && f.arg(i, 0) == v).then(|| f.as_bits(f.arg(i, 1)))?
}

/// Makes a copy of the block that the way goes through, for those that come that way.
fn open(f: &mut MpirFn, way: &Way, definitions: &mut Definitions) {
    let &Way { from, through, to } = way;
    // Another way may have begun where this one goes through.
    if !f.successors(through).contains(&to) {
        return;
    }
    let copy = f.add_block();
    f.block_mut(copy).term = Terminator::Br(to);
    f.block_mut(copy).term_span = f.block(through).term_span;
    let mut values: FxHashMap<Value, Value> = FxHashMap::default();
    for i in f.block(through).insts.clone() {
        let inst = *f.inst(i);
        let value = if inst.op == Op::Phi {
            f.phi_value(i, from)
        } else {
            let resolve = |v: &Value| values.get(v).copied().unwrap_or(*v);
            let args: Vec<Value> = f.args(i).iter().map(resolve).collect();
            f.append(copy, inst.op, inst.flags, inst.ty, &args, inst.imm, inst.span)
        };
        if let Some((v, value)) = inst.result().zip(value) {
            values.insert(v, value);
            definitions.add(v, through, copy, value);
        }
    }
    for phi in f.phis(to).collect::<Vec<_>>() {
        if let Some(v) = f.phi_value(phi, through) {
            let mut arms: Vec<(Block, Value)> = f.phi_arms(phi).collect();
            arms.push((copy, values.get(&v).copied().unwrap_or(v)));
            f.set_phi_arms(phi, &arms);
        }
    }
    remove_arm(f, through, from);
    f.block_mut(from).term.map_targets(|t| if t == through { copy } else { t });
}
