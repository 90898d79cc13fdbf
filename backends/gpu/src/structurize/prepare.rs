//! Brings a function into the form that structuring starts from.

use magpie_mpir::analysis::{Cfg, Dominators, Loops};
use magpie_mpir::{Block, Flags, Inst, MpirFn, Op, Terminator};
use magpie_types::{TypeCtx, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// Drops unreachable blocks and phis with one arm, leaves no terminator with several ways to one place (but for the
/// cases of a switch) or a switch over `bool`, and moves the making of arrays to the entry block.
pub(super) fn prepare(f: &mut MpirFn, types: &TypeCtx) {
    for b in f.block_ids() {
        simplify_terminator(f, b);
    }
    let cfg = Cfg::new(f);
    f.compact(|b| cfg.is_reachable(b));
    drop_single_phis(f);
    hoist_arrays(f, types);
}

/// A phi with one arm is that arm.
fn drop_single_phis(f: &mut MpirFn) {
    let mut map = FxHashMap::default();
    for b in f.block_ids() {
        let phis: Vec<Inst> = f.phis(b).take_while(|&i| f.phi_arms(i).len() == 1).collect();
        for &phi in &phis {
            if let (Some(result), Some((_, value))) = (f.inst(phi).result(), f.phi_arms(phi).next())
            {
                map.insert(result, value);
            }
        }
        f.block_mut(b).insts.drain(..phis.len());
    }
    f.replace_uses(&map);
}

fn simplify_terminator(f: &mut MpirFn, b: Block) {
    let ty = f.block(b).term.operand().map(|v| f.ty(v));
    let term = &mut f.block_mut(b).term;
    if let Terminator::Switch { value, cases, default } = term {
        cases.retain(|&(_, t)| t != *default);
        if ty == Some(fixed::BOOL) {
            let arm = |bits| cases.iter().find(|c| c.0 == bits).map_or(*default, |c| c.1);
            *term = Terminator::Cbr { cond: *value, then: arm(1), else_: arm(0) };
        } else if cases.is_empty() {
            *term = Terminator::Br(*default);
        }
    }
    if let Terminator::Cbr { then, else_, .. } = *term
        && then == else_
    {
        *term = Terminator::Br(then);
    }
}

/// Moves every `gpu.shared` and `gpu.local` to the entry block: their values name memory and may
/// not meet in phis. A `gpu.local` inside a loop leaves a loop of stores that zeroes it again.
fn hoist_arrays(f: &mut MpirFn, types: &TypeCtx) {
    let is_array = |f: &MpirFn, i: Inst| matches!(f.inst(i).op, Op::GpuShared | Op::GpuLocal);
    let holders: Vec<Block> = f
        .block_ids()
        .skip(1)
        .filter(|&b| f.block(b).insts.iter().any(|&i| is_array(f, i)))
        .collect();
    if holders.is_empty() {
        return;
    }
    let cfg = Cfg::new(f);
    let loops = Loops::new(&cfg, &Dominators::new(&cfg));
    let mut arrays = Vec::new();
    for b in holders {
        let found: Vec<Inst> =
            f.block(b).insts.iter().copied().filter(|&i| is_array(f, i)).collect();
        let in_loop = loops.innermost(b).is_some() || !loops.is_reducible();
        // From the last to the first: splitting a block keeps what is before in place.
        for &i in found.iter().rev() {
            let at = f.block(b).insts.iter().position(|&x| x == i).unwrap_or(0);
            f.block_mut(b).insts.remove(at);
            if in_loop && f.inst(i).op == Op::GpuLocal {
                zero_again(f, types, b, at, i);
            }
        }
        arrays.extend(found);
    }
    let phis = f.phis(Block(0)).count();
    f.block_mut(Block(0)).insts.splice(phis..phis, arrays);
}

/// Splits `b` before its instruction number `at` and stores zero to each element there.
fn zero_again(f: &mut MpirFn, types: &TypeCtx, b: Block, at: usize, array: Inst) {
    let (Some(memory), TypeKind::LocalArray(elem, len)) =
        (f.inst(array).result(), types.kind(f.inst(array).ty))
    else {
        return;
    };
    let span = f.inst(array).span;
    let (header, body, rest) = (f.add_block(), f.add_block(), f.add_block());
    for s in f.successors(b) {
        let phis: Vec<Inst> = f.phis(s).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |p| if p == b { rest } else { p });
        }
    }
    let insts = f.block_mut(b).insts.split_off(at);
    let term = std::mem::replace(&mut f.block_mut(b).term, Terminator::Br(header));
    f.block_mut(rest).insts = insts;
    f.block_mut(rest).term = term;
    f.block_mut(rest).term_span = f.block(b).term_span;
    let (zero, one, end) = (f.const_u32(0), f.const_u32(1), f.const_u32(len));
    let counter = f.make_phi(fixed::U32, &[(b, zero)], span);
    f.block_mut(header).insts.push(counter);
    let index = f.inst(counter).result().unwrap_or(zero);
    let none = Flags::NONE;
    let more = f.append(header, Op::IcmpUlt, none, fixed::BOOL, &[index, end], 0, span);
    let cond = more.unwrap_or(zero);
    f.block_mut(header).term = Terminator::Cbr { cond, then: body, else_: rest };
    if types.is_aggregate(elem) {
        for (n, leaf) in types.leaves(elem).iter().enumerate() {
            let args = [memory, index, f.zero(leaf.ty)];
            let flags = Flags::UNCHECKED;
            f.append(body, Op::GpuLeafStore, flags, fixed::UNIT, &args, n as u64, span);
        }
    } else {
        let args = [memory, index, f.zero(elem)];
        f.append(body, Op::GpuBufferStore, Flags::UNCHECKED, fixed::UNIT, &args, 0, span);
    }
    let next = f.append(body, Op::IAdd, none, fixed::U32, &[index, one], 0, span).unwrap_or(one);
    f.block_mut(body).term = Terminator::Br(header);
    f.set_phi_arms(counter, &[(b, zero), (body, next)]);
    for b in [header, body] {
        f.block_mut(b).term_span = span;
    }
}
