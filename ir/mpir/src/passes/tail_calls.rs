//! Calls of a function by itself, at its end, become rounds of a loop.
//!
//! What such a call gives back may still be added to something, or joined with it by another
//! operation for which the order does not matter: then the loop carries what was joined so far.
//!
//! ```text
//! f(n): if n == 0 { return 1 }        f(n): so_far = 1
//!       return n * f(n - 1)                 loop: if n == 0 { return so_far * 1 }
//!                                                 so_far = so_far * n; n = n - 1
//! ```

use crate::{Block, Domain, Flags, FnId, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::{PrimType, TypeCtx, TypeId, fixed};
use rustc_hash::FxHashMap;

/// Instructions behind a call that are looked at.
const MAX_BEHIND: usize = 16;

/// Blocks between a call and the end of the function.
const MAX_ENDS: usize = 4;

/// A call behind which a block returns.
struct Site {
    block: Block,
    call: Inst,
    /// Instructions that read what the call gives back, directly or not.
    readers: Vec<Inst>,
    /// By value that the function returns: what the value of the call is joined with.
    joined: Vec<Option<(Op, Value)>>,
}

/// Makes a loop of a function that calls itself at its end. `id` is its own.
pub fn tail_calls(f: &mut MpirFn, id: FnId, types: &TypeCtx) -> bool {
    let mut insts = f.blocks.iter().flat_map(|b| &b.insts);
    let calls_itself = insts.any(|&i| is_call_of(f, i, id));
    if f.domain != Domain::LowHost || !calls_itself || slots_are_given_away(f) {
        return false;
    }
    return_at_once(f, id);
    let values = |b: Block| match f.block(b).term {
        Terminator::Ret(result) => returned(f, types, result),
        _ => None,
    };
    let returns = |b: &Block| matches!(f.block(*b).term, Terminator::Ret(_));
    let returning: Vec<Block> = f.block_ids().filter(returns).collect();
    let mut sites: Vec<Site> = Vec::new();
    let mut ops: Vec<Option<Op>> = Vec::new();
    for &b in &returning {
        // Everything that is returned is joined with what came before.
        let Some(values) = values(b) else { return false };
        let Some(site) = find_site(f, b, id, &values) else { continue };
        ops.resize(site.joined.len(), None);
        let mut pairs = ops.iter().zip(&site.joined);
        let agrees = |(op, joined): (&Option<Op>, &Option<(Op, Value)>)| {
            op.zip(*joined).is_none_or(|(op, (other, _))| op == other)
        };
        if pairs.all(agrees) {
            for (op, joined) in ops.iter_mut().zip(&site.joined) {
                *op = op.or(joined.map(|j| j.0));
            }
            sites.push(site);
        }
    }
    // One that cannot end but by running out of stack is left to do so.
    if sites.is_empty() || sites.len() == returning.len() {
        return false;
    }
    Loop::make(f, &ops).close(f, types, &sites, &returning);
    true
}

fn is_call_of(f: &MpirFn, i: Inst, id: FnId) -> bool {
    f.inst(i).op == Op::Call && f.inst(i).func() == id
}

/// Whether the address of a slot may be in the arguments of a call.
fn slots_are_given_away(f: &MpirFn) -> bool {
    let is_slot = |v: Value| f.def_op(v) == Some(Op::StackSlot);
    f.blocks.iter().flat_map(|b| &b.insts).any(|&i| {
        let from = match f.inst(i).op {
            // The runtime does not keep the places where it puts its results.
            Op::RtRaw | Op::MemLoad => return false,
            Op::MemStore => 1,
            _ => 0,
        };
        f.args(i)[from..].iter().any(|&v| is_slot(v))
    })
}

/// Blocks that call the function and then go to where values meet that are returned, return by
/// themselves.
fn return_at_once(f: &mut MpirFn, id: FnId) {
    for b in f.block_ids() {
        if !f.block(b).insts.iter().any(|&i| is_call_of(f, i, id)) {
            continue;
        }
        let Some(ends) = way_out(f, b) else { continue };
        let mut here: FxHashMap<Value, Value> = FxHashMap::default();
        let resolve = |here: &FxHashMap<Value, Value>, v: Value| *here.get(&v).unwrap_or(&v);
        let mut from = b;
        for &end in &ends {
            for i in f.block(end).insts.clone() {
                let inst = *f.inst(i);
                let value = if inst.op == Op::Phi {
                    f.phi_value(i, from).map(|v| resolve(&here, v))
                } else {
                    let args: Vec<Value> = f.args(i).iter().map(|&v| resolve(&here, v)).collect();
                    f.append(b, inst.op, inst.flags, inst.ty, &args, inst.imm, inst.span)
                };
                here.extend(inst.result().zip(value));
            }
            from = end;
        }
        for phi in f.phis(ends[0]).collect::<Vec<_>>() {
            let others: Vec<(Block, Value)> = f.phi_arms(phi).filter(|arm| arm.0 != b).collect();
            f.set_phi_arms(phi, &others);
        }
        if let Terminator::Ret(result) = f.block(from).term {
            f.block_mut(b).term = Terminator::Ret(result.map(|v| resolve(&here, v)));
        }
    }
}

/// The blocks from the end of one to the end of the function, when they do nothing else.
fn way_out(f: &MpirFn, b: Block) -> Option<Vec<Block>> {
    let mut ends = Vec::new();
    let mut at = b;
    while let Terminator::Br(end) = f.block(at).term {
        let is_short = |&i: &Inst| matches!(f.inst(i).op, Op::Phi | Op::StructNew);
        if end == b || ends.len() == MAX_ENDS || !f.block(end).insts.iter().all(is_short) {
            return None;
        }
        ends.push(end);
        at = end;
    }
    (matches!(f.block(at).term, Terminator::Ret(_)) && !ends.is_empty()).then_some(ends)
}

/// The values that a function returns: those of the struct, when it is one that is put together.
fn returned(f: &MpirFn, types: &TypeCtx, result: Option<Value>) -> Option<Vec<Value>> {
    let Some(v) = result.filter(|_| f.ret_ty != fixed::UNIT) else { return Some(Vec::new()) };
    if !types.is_aggregate(f.ret_ty) {
        return Some(vec![v]);
    }
    let put_together = f.def_inst(v).filter(|&i| f.inst(i).op == Op::StructNew)?;
    Some(f.args(put_together).to_vec())
}

/// The last call in a block that returns `values`, if nothing else happens behind it.
fn find_site(f: &MpirFn, b: Block, id: FnId, values: &[Value]) -> Option<Site> {
    let insts = &f.block(b).insts;
    let at = insts.iter().rposition(|&i| is_call_of(f, i, id))?;
    let (call, behind) = (insts[at], &insts[at + 1..]);
    if behind.len() > MAX_BEHIND || !behind.iter().all(|&i| f.inst(i).op.is_pure()) {
        return None;
    }
    // By value that depends on the call: which of its values it is, if it is one.
    let mut given: FxHashMap<Value, Option<usize>> = FxHashMap::default();
    if let Some(v) = f.inst(call).result() {
        given.insert(v, Some(0));
    }
    let mut readers = Vec::new();
    for &i in behind {
        let inst = f.inst(i);
        if !f.args(i).iter().any(|v| given.contains_key(v)) {
            continue;
        }
        readers.push(i);
        let part = (inst.op == Op::StructGet).then_some(inst.imm_lo() as usize);
        given.extend(inst.result().map(|v| (v, part)));
    }
    let join = |(n, &v): (usize, &Value)| {
        let is_given = |v: Value| given.get(&v) == Some(&Some(n));
        if is_given(v) {
            return Some(None);
        }
        let i = f.def_inst(v).filter(|i| readers.contains(i))?;
        let op = f.inst(i).op;
        identity(op, f.ty(v))?;
        let (x, y) = (f.arg(i, 0), f.arg(i, 1));
        match (given.contains_key(&x), given.contains_key(&y)) {
            (true, false) if is_given(x) => Some(Some((op, y))),
            (false, true) if is_given(y) => Some(Some((op, x))),
            _ => None,
        }
    };
    let joined = values.iter().enumerate().map(join).collect::<Option<Vec<_>>>()?;
    Some(Site { block: b, call, readers, joined })
}

/// What changes nothing when it is joined, for operations that may be done in any order.
fn identity(op: Op, ty: TypeId) -> Option<u64> {
    let p = PrimType::from_id(ty)?;
    match op {
        Op::IAdd | Op::IOr | Op::IXor => Some(0),
        Op::IMul => Some(1),
        Op::IAnd => Some(p.mask()),
        _ => None,
    }
}

/// A value that changes from round to round.
struct Carried {
    phi: Inst,
    value: Value,
    arms: Vec<(Block, Value)>,
}

impl Carried {
    fn new(f: &mut MpirFn, first: Value) -> Carried {
        let (ty, span) = (f.ty(first), f.span);
        let phi = f.make_phi(ty, &[], span);
        let value = f.inst(phi).result().unwrap_or(first);
        Carried { phi, value, arms: vec![(Block(0), first)] }
    }
}

/// The loop that a function becomes.
struct Loop {
    head: Block,
    params: Vec<Carried>,
    /// By value that is returned: what was joined so far.
    so_far: Vec<Option<(Op, Carried)>>,
    /// By parameter: what it is in a round.
    now: FxHashMap<Value, Value>,
}

impl Loop {
    /// Puts the head of the loop between the entry, which keeps the slots, and the rest.
    fn make(f: &mut MpirFn, ops: &[Option<Op>]) -> Loop {
        let head = f.add_block();
        let entry = f.block_mut(Block(0));
        let insts = std::mem::take(&mut entry.insts);
        let term = std::mem::replace(&mut entry.term, Terminator::Br(head));
        let span = entry.term_span;
        let (slots, rest) = insts.into_iter().partition(|&i| f.inst(i).op == Op::StackSlot);
        f.block_mut(Block(0)).insts = slots;
        let block = f.block_mut(head);
        (block.insts, block.term, block.term_span) = (rest, term, span);
        for b in f.block_ids() {
            for phi in f.phis(b).collect::<Vec<_>>() {
                f.map_phi_blocks(phi, |p| if p == Block(0) { head } else { p });
            }
        }
        let mut params: Vec<Carried> = Vec::new();
        for (v, _) in f.params.clone() {
            params.push(Carried::new(f, v));
        }
        let now: FxHashMap<Value, Value> =
            f.params.iter().zip(&params).map(|(p, carried)| (p.0, carried.value)).collect();
        f.replace_uses(&now);
        Loop { head, params, so_far: ops.iter().map(|_| None).collect(), now }
    }

    fn close(mut self, f: &mut MpirFn, types: &TypeCtx, sites: &[Site], returning: &[Block]) {
        for (n, so_far) in self.so_far.iter_mut().enumerate() {
            let joined = sites.iter().find_map(|site| site.joined[n]);
            let Some((op, v)) = joined else { continue };
            let ty = f.ty(v);
            let first = f.const_bits(ty, identity(op, ty).unwrap_or(0));
            *so_far = Some((op, Carried::new(f, first)));
        }
        for &b in returning {
            let site = sites.iter().find(|site| site.block == b);
            // What was in the entry is in the head now.
            let b = if b == Block(0) { self.head } else { b };
            match site {
                Some(site) => self.go_back(f, b, site),
                None => self.leave(f, types, b),
            }
        }
        let so_far = self.so_far.into_iter().flatten().map(|(_, carried)| carried);
        let mut phis = Vec::new();
        for carried in self.params.into_iter().chain(so_far) {
            f.set_phi_arms(carried.phi, &carried.arms);
            phis.push(carried.phi);
        }
        f.block_mut(self.head).insts.splice(0..0, phis);
    }

    /// A block that called the function goes to the next round.
    fn go_back(&mut self, f: &mut MpirFn, b: Block, site: &Site) {
        for (param, &arg) in self.params.iter_mut().zip(f.args(site.call)) {
            param.arms.push((b, arg));
        }
        f.block_mut(b).insts.retain(|i| *i != site.call && !site.readers.contains(i));
        for (so_far, joined) in self.so_far.iter_mut().zip(&site.joined) {
            let Some((op, carried)) = so_far else { continue };
            let before = carried.value;
            let next = joined.and_then(|(_, with)| {
                let with = *self.now.get(&with).unwrap_or(&with);
                let (ty, span) = (f.ty(before), f.inst(site.call).span);
                f.append(b, *op, Flags::NONE, ty, &[before, with], 0, span)
            });
            carried.arms.push((b, next.unwrap_or(before)));
        }
        f.block_mut(b).term = Terminator::Br(self.head);
    }

    /// A block that returns joins its values with those before.
    fn leave(&self, f: &mut MpirFn, types: &TypeCtx, b: Block) {
        let Terminator::Ret(result) = f.block(b).term else { return };
        let Some(mut values) = returned(f, types, result) else { return };
        let span = f.block(b).term_span;
        for (value, so_far) in values.iter_mut().zip(&self.so_far) {
            if let Some((op, carried)) = so_far {
                let args = [carried.value, *value];
                let ty = f.ty(carried.value);
                *value = f.append(b, *op, Flags::NONE, ty, &args, 0, span).unwrap_or(*value);
            }
        }
        let result = match (types.is_aggregate(f.ret_ty), values.first()) {
            (true, _) => {
                let ty = f.ret_ty;
                f.append(b, Op::StructNew, Flags::NONE, ty, &values, 0, span)
            }
            (false, Some(&value)) => Some(value),
            (false, None) => result,
        };
        f.block_mut(b).term = Terminator::Ret(result);
    }
}
