//! Branches in a row that lead to one place are one branch.
//!
//! ```text
//! bb1: %a = icmp.eq %c, 32                         bb1: %a = icmp.eq %c, 32
//!      cbr %a, bb9, bb2                                 %b = icmp.eq %c, 10
//! bb2: %b = icmp.eq %c, 10               ⇒              %e = i.or %a, %b
//!      cbr %b, bb9, bb3                                 cbr %e, bb9, bb3
//! ```
//!
//! What is compared the second time is then compared in any case, so it may only be a comparison, with
//! a difference or other conditions in it.

use super::PassContext;
use super::context::refill;
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;

/// So many comparisons become one condition: more take longer than branches that are foreseen.
const MAX_FUSED: u32 = 8;

/// Joins branches whose ways meet, if only a comparison stands between them. Works on lowered host
/// functions.
pub fn fuse_branches(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost {
        return false;
    }
    let PassContext { cfg, numbers: fused, .. } = ctx;
    cfg.compute(f);
    // How many comparisons the condition of a block has beyond its own.
    refill(fused, f.blocks.len(), 0);
    let mut changed = false;
    // The last branch of a row first.
    for &b in cfg.rpo().iter().rev() {
        let Terminator::Cbr { then, else_, .. } = f.block(b).term else { continue };
        for next in [else_, then] {
            let count = fused[next.index()] + 1;
            if cfg.preds(next) == [b]
                && count < MAX_FUSED
                && let Some(fusion) = Fusion::find(f, b, next)
            {
                fusion.run(f);
                fused[b.index()] = count;
                changed = true;
                break;
            }
        }
    }
    changed
}

/// The branch of `b` goes to `meet` or to `next`, that of `next` to `meet` or to `other`.
struct Fusion {
    b: Block,
    next: Block,
    meet: Block,
    other: Block,
    /// The conditions, and whether they lead to `meet` where they hold.
    first: (Value, bool),
    second: (Value, bool),
}

impl Fusion {
    fn find(f: &MpirFn, b: Block, next: Block) -> Option<Fusion> {
        let Terminator::Cbr { cond, then, else_ } = f.block(b).term else { return None };
        let (meet, first) =
            if next == else_ { (then, (cond, true)) } else { (else_, (cond, false)) };
        let Terminator::Cbr { cond, then, else_ } = f.block(next).term else { return None };
        let (other, second) = match meet {
            m if m == then => (else_, (cond, true)),
            m if m == else_ => (then, (cond, false)),
            _ => return None,
        };
        let is_condition = |&i: &Inst| {
            let op = f.inst(i).op;
            matches!(op, crate::icmp_ops!() | Op::ISub | Op::IAnd | Op::IOr | Op::IXor)
        };
        let is_cheap = f.block(next).insts.iter().all(is_condition);
        let is_apart = meet != next && other != next && other != meet && meet != b && other != b;
        let is_same = |i: Inst| f.phi_value(i, b) == f.phi_value(i, next);
        (is_cheap && is_apart && f.phis(meet).all(is_same)).then_some(Fusion {
            b,
            next,
            meet,
            other,
            first,
            second,
        })
    }

    fn run(self, f: &mut MpirFn) {
        let insts = std::mem::take(&mut f.block_mut(self.next).insts);
        f.block_mut(self.b).insts.extend(insts);
        let span = f.block(self.b).term_span;
        // The way to `meet`: one of two, or one that is not taken where both conditions hold.
        let to_meet = self.first.1 || self.second.1;
        let flip = |f: &mut MpirFn, (cond, leads): (Value, bool)| match leads == to_meet {
            true => Some(cond),
            false => {
                let yes = f.const_bool(true);
                f.append(self.b, Op::IXor, Flags::NONE, fixed::BOOL, &[cond, yes], 0, span)
            }
        };
        let first = flip(f, self.first);
        let second = flip(f, self.second);
        let op = if to_meet { Op::IOr } else { Op::IAnd };
        let args: Vec<Value> = [first, second].into_iter().flatten().collect();
        let Some(cond) = f.append(self.b, op, Flags::NONE, fixed::BOOL, &args, 0, span) else {
            return;
        };
        let (then, else_) = if to_meet { (self.meet, self.other) } else { (self.other, self.meet) };
        f.block_mut(self.b).term = Terminator::Cbr { cond, then, else_ };
        f.block_mut(self.next).term = Terminator::Unreachable;
        let phis: Vec<Inst> = f.phis(self.other).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |p| if p == self.next { self.b } else { p });
        }
        let phis: Vec<Inst> = f.phis(self.meet).collect();
        for phi in phis {
            let arms: Vec<(Block, Value)> =
                f.phi_arms(phi).filter(|arm| arm.0 != self.next).collect();
            f.set_phi_arms(phi, &arms);
        }
    }
}
