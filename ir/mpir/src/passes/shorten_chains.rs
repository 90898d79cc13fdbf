//! Sums that go from round to round wait for one addition only.
//!
//! `total += a` and then `total += b` make each round of a loop wait for two additions of the round
//! before. What is added is added up first, beside that:
//!
//! ```text
//! bb1: %t = phi [bb0: i64 0], [bb1: %y]        bb1: %t = phi [bb0: i64 0], [bb1: %y]
//!      %x = i.add %t, %a                   ⇒        %x = i.add %a, %b
//!      %y = i.add %x, %b                            %y = i.add %t, %x
//! ```
//!
//! Integers wrap around, so the sum is the same.

use super::PassContext;
use crate::analysis::{LoopId, Loops, Positions, Uses};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Value};
use magpie_types::PrimType;

/// Sums of more terms are added up as they are.
const MAX_TERMS: usize = 64;

/// Adds up what loops add to a number that they carry, where it stands in one block. Works on lowered
/// host functions.
pub fn shorten_chains(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost {
        return false;
    }
    ctx.find_loops(f);
    let PassContext { loops, positions, uses, .. } = ctx;
    if loops.is_empty() {
        return false;
    }
    positions.compute(f);
    uses.compute(f);
    let mut changed = false;
    for l in loops.ids() {
        let phis: Vec<Inst> = f.phis(loops.header(l)).collect();
        for phi in phis {
            if let Some((b, links)) = chain(f, loops, positions, uses, l, phi) {
                shorten(f, b, phi, &links);
                changed = true;
            }
        }
    }
    changed
}

/// An addition or subtraction, and what it adds or takes away.
type Link = (Inst, Value);

/// The additions and subtractions that make the next value of a phi of its present one, from first to
/// last, and their block; two or more of which the first is an addition.
fn chain(
    f: &MpirFn,
    loops: &Loops,
    positions: &Positions,
    uses: &Uses,
    l: LoopId,
    phi: Inst,
) -> Option<(Block, Vec<Link>)> {
    let start = f.inst(phi).result()?;
    PrimType::from_id(f.inst(phi).ty).filter(|p| p.is_int())?;
    let mut back = f.phi_arms(phi).filter(|&(p, _)| loops.contains(l, p)).map(|arm| arm.1);
    let mut at = back.next().filter(|&v| back.all(|other| other == v))?;
    let block = positions.block(f.def_inst(at)?)?;
    // In an inner loop the number is another one in each of its rounds.
    if loops.innermost(block) != Some(l) {
        return None;
    }
    let is_link = |v| {
        let link = f.def_inst(v).filter(|&i| matches!(f.inst(i).op, Op::IAdd | Op::ISub));
        link.is_some_and(|i| positions.block(i) == Some(block))
    };
    let mut links = Vec::new();
    while at != start {
        let i = f.def_inst(at).filter(|&i| positions.block(i) == Some(block))?;
        let is_last = links.is_empty();
        if !is_last && uses.of(at).len() > 1 || links.len() == MAX_TERMS {
            return None;
        }
        let (before, term) = match (f.inst(i).op, f.args(i)) {
            (Op::IAdd, &[x, y]) if x == start || y != start && is_link(x) => (x, y),
            (Op::IAdd, &[x, y]) => (y, x),
            (Op::ISub, &[x, y]) => (x, y),
            _ => return None,
        };
        links.push((i, term));
        at = before;
    }
    links.reverse();
    let is_sum = links.len() > 1 && f.inst(links[0].0).op == Op::IAdd;
    is_sum.then_some((block, links))
}

/// Adds up the terms of a chain, and that to the value of the phi.
fn shorten(f: &mut MpirFn, b: Block, phi: Inst, links: &[Link]) {
    let (Some(start), Some(&(last, _))) = (f.inst(phi).result(), links.last()) else { return };
    let mut sum = links[0].1;
    for &(i, term) in &links[1..] {
        let op = f.inst(i).op;
        if i == last {
            let data = *f.inst(i);
            let all = f.make_inst(op, Flags::NONE, data.ty, &[sum, term], 0, data.span);
            let insts = &mut f.block_mut(b).insts;
            let at = insts.iter().position(|&other| other == last).unwrap_or(insts.len());
            insts.insert(at, all);
            sum = f.inst(all).result().unwrap_or(sum);
        } else {
            f.rewrite(i, op, &[sum, term], 0);
            sum = f.inst(i).result().unwrap_or(sum);
        }
    }
    f.rewrite(last, Op::IAdd, &[start, sum], 0);
}
