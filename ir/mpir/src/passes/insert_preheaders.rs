//! Preheaders: a block of its own in front of each loop.

use super::PassContext;
use crate::{Block, MpirFn, Op, Terminator};

/// [`insert_preheaders`], and leaves the loops in the context as they are then.
pub(super) fn loops_with_preheaders(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    let changed = insert_preheaders(f, ctx);
    if changed {
        ctx.find_loops(f);
    }
    changed
}

/// Gives every loop a block that is the only way into it and leads nowhere else, so that code can
/// be moved there.
pub fn insert_preheaders(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    ctx.find_loops(f);
    let PassContext { cfg, loops, blocks: outside, .. } = ctx;
    let mut changed = false;
    for l in loops.ids() {
        if loops.preheader(cfg, l).is_some() {
            continue;
        }
        let header = loops.header(l);
        outside.clear();
        outside.extend(cfg.preds(header).iter().filter(|&&p| !loops.contains(l, p)));
        let preheader = f.add_block();
        for &p in outside.iter() {
            f.block_mut(p).term.map_targets(|t| if t == header { preheader } else { t });
        }
        f.block_mut(preheader).term = Terminator::Br(header);
        f.block_mut(preheader).term_span = f.block(header).term_span;
        move_phi_arms(f, header, preheader, |p| !loops.contains(l, p));
        changed = true;
    }
    changed
}

/// Joins the arms of the header's phis that come from outside in phis of the preheader.
fn move_phi_arms(
    f: &mut MpirFn,
    header: Block,
    preheader: Block,
    is_outside: impl Fn(Block) -> bool,
) {
    let mut n = 0;
    while let Some(&phi) = f.block(header).insts.get(n).filter(|&&i| f.inst(i).op == Op::Phi) {
        n += 1;
        let (entering, mut arms): (Vec<_>, Vec<_>) =
            f.phi_arms(phi).partition(|&(p, _)| is_outside(p));
        let value = match entering[..] {
            [] => continue,
            [(_, only)] => only,
            _ => {
                let inst = *f.inst(phi);
                let joined = f.make_phi(inst.ty, &entering, inst.span);
                f.block_mut(preheader).insts.push(joined);
                f.inst(joined).result().unwrap_or(entering[0].1)
            }
        };
        arms.push((preheader, value));
        f.set_phi_arms(phi, &arms);
    }
}
