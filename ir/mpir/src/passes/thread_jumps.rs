//! Branches on what is known on the way to them are taken there.
//!
//! `a or b` gives a phi of `true` and `b`, and a branch on it: where `a` holds, the way leads on at
//! once.
//!
//! ```text
//! bb1: cbr %a, bb3, bb2                            bb1: cbr %a, bb4, bb2
//! bb2: br bb3                                      bb2: br bb3
//! bb3: %c = phi [bb1: true], [bb2: %b]       ⇒     bb3: %c = phi [bb2: %b]
//!      cbr %c, bb4, bb5                                 cbr %c, bb4, bb5
//! ```

use super::PassContext;
use crate::analysis::{Loops, User, Uses};
use crate::{Block, Domain, Inst, MpirFn, Op, Terminator, Value};

/// Blocks with more predecessors are left alone.
const MAX_ARMS: usize = 32;

/// Sends predecessors of blocks that hold phis and a branch on one of them to where the branch
/// leads, if they say where. Loops keep their headers. Works on lowered host functions.
pub fn thread_jumps(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    let is_candidate = |b: Block| branch_on_phi(f, b).is_some();
    if f.domain != Domain::LowHost || !f.block_ids().any(is_candidate) {
        return false;
    }
    ctx.find_loops(f);
    let PassContext { cfg, loops, uses, .. } = ctx;
    uses.compute(f);
    let mut changed = false;
    for &b in cfg.rpo() {
        if let Some(branch) = branch_on_phi(f, b)
            && !loops.is_header(b)
            && is_read_behind(f, uses, b, branch)
        {
            changed |= thread(f, loops, b, branch);
        }
    }
    changed
}

/// A branch of a block on one of its phis.
#[derive(Clone, Copy)]
struct Branch {
    phi: Inst,
    then: Block,
    else_: Block,
}

/// The branch of a block that holds nothing but phis.
fn branch_on_phi(f: &MpirFn, b: Block) -> Option<Branch> {
    let Terminator::Cbr { cond, then, else_ } = f.block(b).term else { return None };
    let phi = f.def_inst(cond)?;
    let insts = &f.block(b).insts;
    let is_phi = |&i: &Inst| f.inst(i).op == Op::Phi;
    let fits = insts.contains(&phi) && insts.iter().all(is_phi) && f.args(phi).len() <= MAX_ARMS;
    (fits && then != else_ && then != b && else_ != b).then_some(Branch { phi, then, else_ })
}

/// Whether the phis of a block are read by its branch and, along its edges, by other phis: then
/// nobody misses them who comes another way.
fn is_read_behind(f: &MpirFn, uses: &Uses, b: Block, branch: Branch) -> bool {
    f.block(b).insts.iter().filter_map(|&i| f.inst(i).result()).all(|v| {
        uses.of(v).iter().all(|&user| match user {
            User::Terminator(at) => at == b,
            User::Inst(i, _) => {
                let mut targets = f.phis(branch.then).chain(f.phis(branch.else_));
                targets.any(|phi| phi == i) && f.phi_arms(i).all(|(p, arm)| arm != v || p == b)
            }
        })
    })
}

fn thread(f: &mut MpirFn, loops: &Loops, b: Block, branch: Branch) -> bool {
    let known: Vec<(Block, u64)> =
        f.phi_arms(branch.phi).filter_map(|(pred, v)| Some((pred, f.as_bits(v)?))).collect();
    let mut changed = false;
    for (pred, bits) in known {
        let target = if bits & 1 == 1 { branch.then } else { branch.else_ };
        let mut is_there = false;
        f.block(pred).term.for_each_target(|t| is_there |= t == target);
        if is_there || loops.is_header(target) || loops.innermost(pred) != loops.innermost(b) {
            continue;
        }
        let phis: Vec<Inst> = f.phis(target).collect();
        for phi in phis {
            let Some(v) = f.phi_value(phi, b) else { continue };
            let mut arms: Vec<(Block, Value)> = f.phi_arms(phi).collect();
            arms.push((pred, value_from(f, b, pred, v)));
            f.set_phi_arms(phi, &arms);
        }
        f.block_mut(pred).term.map_targets(|t| if t == b { target } else { t });
        let phis: Vec<Inst> = f.phis(b).collect();
        for phi in phis {
            let arms: Vec<(Block, Value)> = f.phi_arms(phi).filter(|arm| arm.0 != pred).collect();
            f.set_phi_arms(phi, &arms);
        }
        changed = true;
    }
    changed
}

/// What a value is at the end of `b` for who comes from `pred`.
fn value_from(f: &MpirFn, b: Block, pred: Block, v: Value) -> Value {
    let phi = f.def_inst(v).filter(|i| f.block(b).insts.contains(i));
    phi.and_then(|phi| f.phi_value(phi, pred)).unwrap_or(v)
}
