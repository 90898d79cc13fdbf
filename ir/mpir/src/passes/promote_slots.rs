//! Stack slots of lowered host code become values, where their address is not given away.
//!
//! What a view shows is in a slot of the function that has it to give, and, when it travels by value,
//! in one of the callee: all that happens to such a slot are loads and stores that can be seen.

use super::PassContext;
use super::context::refill;
use crate::analysis::{Cfg, Dominators, User, Uses};
use crate::{Block, Domain, Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeId};
use rustc_hash::FxHashMap;

/// Entries of the table of values by block and location.
const MAX_TABLE: usize = 1 << 18;

/// A scalar in a slot: all that is loaded and stored there has one type.
type Location = (Value, u64);

/// Replaces loads from slots by what was stored, with phis where ways meet.
pub fn promote_slots(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    let is_slot = |&i: &Inst| f.inst(i).op == Op::StackSlot;
    if f.domain != Domain::LowHost || !f.blocks.iter().flat_map(|b| &b.insts).any(is_slot) {
        return false;
    }
    let PassContext { cfg, dom, uses, replacements, insts: kept, .. } = ctx;
    uses.compute(f);
    let (types, numbers) = locations(f, uses);
    if types.is_empty() {
        return false;
    }
    cfg.compute(f);
    dom.compute(cfg);
    let count = types.len();
    let phis = place_phis(f, cfg, dom, &types, &numbers);
    replacements.start(f);
    // What is in each location at the end of each block.
    let mut behind = vec![None; f.blocks.len() * count];
    let mut now: Vec<Value> = Vec::new();
    for &b in dom.preorder() {
        now.clear();
        match dom.idom(b) {
            Some(above) => {
                let from = above.index() * count;
                now.extend(behind[from..from + count].iter().flatten());
            }
            None => now.extend(types.iter().map(|&ty| f.zero(ty))),
        }
        for &(_, n, phi) in of_block(&phis, b) {
            now[n] = f.inst(phi).result().unwrap_or(now[n]);
        }
        kept.clear();
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        for &i in &insts {
            let Some(n) = accessed(f, &numbers, i) else {
                kept.push(i);
                continue;
            };
            match f.inst(i).result() {
                Some(loaded) => replacements.set(loaded, now[n]),
                None => now[n] = replacements.get(f.arg(i, 1)),
            }
        }
        insts.clear();
        insts.extend(of_block(&phis, b).iter().map(|phi| phi.2));
        insts.extend_from_slice(kept);
        f.block_mut(b).insts = insts;
        for (slot, &v) in behind[b.index() * count..].iter_mut().zip(&now) {
            *slot = Some(v);
        }
    }
    for &(b, n, phi) in &phis {
        let arm = |&p: &Block| (p, behind[p.index() * count + n]);
        let arms: Vec<_> = cfg.preds(b).iter().map(arm).collect();
        // Nothing comes from where nobody gets to.
        let arms = arms.into_iter().map(|(p, v)| (p, v.unwrap_or_else(|| f.zero(types[n]))));
        let arms: Vec<(Block, Value)> = arms.collect();
        f.set_phi_arms(phi, &arms);
    }
    replacements.apply(f);
    true
}

/// The types of the locations of the slots that can go, and their numbers.
fn locations(f: &MpirFn, uses: &Uses) -> (Vec<TypeId>, FxHashMap<Location, usize>) {
    let (mut types, mut numbers) = (Vec::new(), FxHashMap::default());
    let mut found: Vec<(u64, TypeId)> = Vec::new();
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        let Some(slot) = f.inst(i).result().filter(|_| f.inst(i).op == Op::StackSlot) else {
            continue;
        };
        found.clear();
        let is_plain = uses.of(slot).iter().all(|&user| match accessed_type(f, user) {
            Some(at) => {
                found.push(at);
                true
            }
            None => false,
        });
        found.sort_unstable();
        found.dedup();
        let apart = found.windows(2).all(|w| w[0].0 + size(w[0].1) <= w[1].0);
        let fits = (types.len() + found.len()) * f.blocks.len() <= MAX_TABLE;
        if is_plain && apart && fits {
            for &(offset, ty) in &found {
                numbers.insert((slot, offset), types.len());
                types.push(ty);
            }
        }
    }
    (types, numbers)
}

/// Offset and type of what a user of a slot loads or stores there; `None` for other uses.
fn accessed_type(f: &MpirFn, user: User) -> Option<(u64, TypeId)> {
    let User::Inst(i, 0) = user else { return None };
    let data = f.inst(i);
    match data.op {
        Op::MemLoad => Some((data.imm, data.ty)),
        Op::MemStore => Some((data.imm, f.ty(f.arg(i, 1)))),
        _ => None,
    }
}

/// Bytes of a scalar or an address.
fn size(ty: TypeId) -> u64 {
    PrimType::from_id(ty).map_or(8, |p| u64::from(p.bit_width().div_ceil(8)))
}

/// The number of the location that an instruction loads from or stores to.
fn accessed(f: &MpirFn, numbers: &FxHashMap<Location, usize>, i: Inst) -> Option<usize> {
    let data = f.inst(i);
    match data.op {
        Op::MemLoad | Op::MemStore => numbers.get(&(f.arg(i, 0), data.imm)).copied(),
        _ => None,
    }
}

/// Makes phis where ways with different content meet, sorted by block. They have no arms yet.
fn place_phis(
    f: &mut MpirFn,
    cfg: &Cfg,
    dom: &Dominators,
    types: &[TypeId],
    numbers: &FxHashMap<Location, usize>,
) -> Vec<(Block, usize, Inst)> {
    // Where the dominance of each block ends.
    let mut ends: Vec<(Block, Block)> = Vec::new();
    for &b in cfg.rpo().iter().filter(|b| cfg.preds(**b).len() > 1) {
        for &p in cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)) {
            let mut at = Some(p);
            while let Some(block) = at.filter(|_| at != dom.idom(b)) {
                ends.push((block, b));
                at = dom.idom(block);
            }
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let mut stored: Vec<(usize, Block)> = Vec::new();
    for &b in cfg.rpo() {
        let insts = f.block(b).insts.iter().filter(|&&i| f.inst(i).op == Op::MemStore);
        stored.extend(insts.filter_map(|&i| Some((accessed(f, numbers, i)?, b))));
    }
    stored.sort_unstable();
    stored.dedup();
    let (mut has_phi, mut work) = (Vec::new(), Vec::new());
    let mut phis = Vec::new();
    for stores in stored.chunk_by(|a, b| a.0 == b.0) {
        let n = stores[0].0;
        refill(&mut has_phi, f.blocks.len(), false);
        work.extend(stores.iter().map(|s| s.1));
        while let Some(b) = work.pop() {
            let first = ends.partition_point(|end| end.0 < b);
            for &(_, end) in ends[first..].iter().take_while(|end| end.0 == b) {
                if !std::mem::replace(&mut has_phi[end.index()], true) {
                    let span = f.block(end).term_span;
                    phis.push((end, n, f.make_phi(types[n], &[], span)));
                    work.push(end);
                }
            }
        }
    }
    phis.sort_unstable_by_key(|&(b, n, _)| (b, n));
    phis
}

/// The phis of a block.
fn of_block(phis: &[(Block, usize, Inst)], b: Block) -> &[(Block, usize, Inst)] {
    let first = phis.partition_point(|phi| phi.0 < b);
    let count = phis[first..].partition_point(|phi| phi.0 == b);
    &phis[first..first + count]
}
