//! Branches that only choose between values become selects.

use super::PassContext;
use crate::analysis::Cfg;
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value};

/// A branch is kept when more values than this depend on it.
const MAX_SELECTS: usize = 4;
/// Phis with more arms are not searched.
const MAX_ARMS: usize = 32;

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
        let Terminator::Cbr { cond, then, else_ } = f.block(b).term else { continue };
        if let Some((then, else_, meet)) = ways(f, cfg, b, then, else_) {
            changed |= convert(f, b, cond, (then, else_), meet);
        }
    }
    changed
}

/// The predecessors of the block where both ways of a branch meet, and that block.
fn ways(
    f: &MpirFn,
    cfg: &Cfg,
    b: Block,
    then: Block,
    else_: Block,
) -> Option<(Block, Block, Block)> {
    let through = |way: Block| match f.block(way).term {
        Terminator::Br(next) if f.block(way).insts.is_empty() && cfg.preds(way) == [b] => {
            Some(next)
        }
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
    distinct.then_some((from_then, from_else, meet))
}

fn convert(f: &mut MpirFn, b: Block, cond: Value, ways: (Block, Block), meet: Block) -> bool {
    let mut choices: Vec<(Inst, Value, Value)> = Vec::new();
    for i in f.phis(meet) {
        if f.args(i).len() > MAX_ARMS {
            return false;
        }
        let (Some(x), Some(y)) = (f.phi_value(i, ways.0), f.phi_value(i, ways.1)) else {
            return false;
        };
        choices.push((i, x, y));
    }
    if choices.iter().filter(|c| c.1 != c.2).count() > MAX_SELECTS {
        return false;
    }
    for (phi, x, y) in choices {
        let inst = *f.inst(phi);
        let chosen = if x == y {
            x
        } else {
            let args = [cond, x, y];
            let select = f.append(b, Op::Select, Flags::NONE, inst.ty, &args, 0, inst.span);
            select.unwrap_or(x)
        };
        let mut arms: Vec<(Block, Value)> =
            f.phi_arms(phi).filter(|(p, _)| *p != ways.0 && *p != ways.1).collect();
        arms.push((b, chosen));
        f.set_phi_arms(phi, &arms);
    }
    f.block_mut(b).term = Terminator::Br(meet);
    for way in [ways.0, ways.1] {
        if way != b {
            f.block_mut(way).term = Terminator::Unreachable;
        }
    }
    true
}
