//! Two comparisons that hold a number between zero and an end are one.
//!
//! ```text
//! %a = icmp.sge %x, 0
//! %b = icmp.slt %x, %n          ⇒     %c = icmp.ult %x, %n
//! %c = i.and %a, %b
//! ```
//!
//! The end must not be negative. Of a number that is negative the unsigned comparison sees one past all
//! ends. The contrary, `%x < 0 or %x >= %n`, becomes `icmp.uge`.

use super::PassContext;
use crate::analysis::LaunchFacts;
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Value};
use magpie_types::fixed;

/// Conditions of one chain that are looked at.
const MAX_CONDITIONS: usize = 16;

/// A chain of conditions that all hold, or of which one holds.
struct Chain {
    block: Block,
    /// The last operation of the chain.
    root: Inst,
    conditions: Vec<Value>,
    /// The number and the end of each pair, and where the two conditions stand in the chain.
    pairs: Vec<(Value, Value, [usize; 2])>,
}

/// Joins such comparisons of lowered host functions, where chains of conditions have both.
pub fn fuse_range_tests(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost {
        return false;
    }
    let PassContext { cfg, dom, ranges, values: ends, .. } = ctx;
    let mut chains = chains(f);
    if chains.is_empty() {
        return false;
    }
    ends.clear();
    ends.extend(chains.iter().flat_map(|chain| &chain.pairs).map(|pair| pair.1));
    cfg.compute(f);
    dom.compute(cfg);
    ranges.compute_for(f, cfg, dom, LaunchFacts::default(), ends.iter().copied());
    ranges.start_walk();
    for &b in dom.preorder() {
        ranges.enter(f, dom, b);
        // They are in the order of their blocks.
        let first = chains.partition_point(|chain| chain.block < b);
        for chain in chains[first..].iter_mut().take_while(|chain| chain.block == b) {
            chain.pairs.retain(|&(_, end, _)| ranges.here(f, end).is_nonnegative());
        }
    }
    chains.retain(|chain| cfg.is_reachable(chain.block) && !chain.pairs.is_empty());
    for chains in chains.chunk_by(|a, b| a.block == b.block) {
        let block = chains[0].block;
        let old = std::mem::take(&mut f.block_mut(block).insts);
        let mut new = Vec::with_capacity(old.len());
        let mut chains = chains.iter().peekable();
        for i in old {
            if let Some(chain) = chains.next_if(|chain| chain.root == i) {
                rewrite(f, chain, &mut new);
            }
            new.push(i);
        }
        f.block_mut(block).insts = new;
    }
    !chains.is_empty()
}

/// Finds the chains with pairs, each by its last operation.
fn chains(f: &MpirFn) -> Vec<Chain> {
    let is_chain = |i: Inst| {
        matches!(f.inst(i).op, Op::IAnd | Op::IOr)
            && f.inst(i).result().is_some_and(|v| f.ty(v) == fixed::BOOL)
    };
    let all = || f.block_ids().flat_map(|b| f.block(b).insts.iter().map(move |&i| (b, i)));
    let mut inner: Vec<Inst> = Vec::new();
    for (_, i) in all().filter(|&(_, i)| is_chain(i)) {
        let parts = f.args(i).iter().filter_map(|&v| f.def_inst(v));
        inner.extend(parts.filter(|&part| f.inst(part).op == f.inst(i).op));
    }
    inner.sort_unstable();
    let mut chains = Vec::new();
    for (block, root) in all().filter(|&(_, i)| is_chain(i)) {
        if inner.binary_search(&root).is_err() {
            let conditions = conditions(f, root);
            let pairs = pairs(f, f.inst(root).op, &conditions);
            if !pairs.is_empty() {
                chains.push(Chain { block, root, conditions, pairs });
            }
        }
    }
    chains
}

/// The conditions of a chain, in their order.
fn conditions(f: &MpirFn, root: Inst) -> Vec<Value> {
    let op = f.inst(root).op;
    let mut conditions = Vec::new();
    let mut work: Vec<Value> = f.args(root).iter().rev().copied().collect();
    while let Some(v) = work.pop() {
        let has_room = conditions.len() + work.len() < MAX_CONDITIONS;
        match f.def_inst(v).filter(|&i| has_room && f.inst(i).op == op) {
            Some(part) => work.extend(f.args(part).iter().rev()),
            None if conditions.contains(&v) => {}
            None => conditions.push(v),
        }
    }
    conditions
}

fn pairs(f: &MpirFn, op: Op, conditions: &[Value]) -> Vec<(Value, Value, [usize; 2])> {
    let is_zero = |v: Value| f.as_bits(v) == Some(0);
    let all_hold = op == Op::IAnd;
    let mut pairs: Vec<(Value, Value, [usize; 2])> = Vec::new();
    for (n, &low) in conditions.iter().enumerate() {
        // `0 <= x` of those that all hold, `x < 0` of the others.
        let number = match (all_hold, less(f, low)) {
            (true, Some((zero, x, true))) if is_zero(zero) => x,
            (false, Some((x, zero, false))) if is_zero(zero) => x,
            _ => continue,
        };
        // `x < end`, or `end <= x`.
        let end_of = |&high: &Value| match (all_hold, less(f, high)?) {
            (true, (x, end, false)) if x == number => Some(end),
            (false, (end, x, true)) if x == number => Some(end),
            _ => None,
        };
        let is_free = |at: &usize| pairs.iter().all(|pair| !pair.2.contains(at));
        let high = (0..conditions.len()).filter(|&at| at != n && is_free(&at));
        let found = high.filter_map(|at| Some((at, end_of(&conditions[at])?))).next();
        if let Some((at, end)) = found {
            pairs.push((number, end, [n, at]));
        }
    }
    pairs
}

/// A signed comparison as `a < b`, or `a <= b` when the last is set.
fn less(f: &MpirFn, v: Value) -> Option<(Value, Value, bool)> {
    let i = f.def_inst(v)?;
    let or_equal = match f.inst(i).op {
        Op::IcmpSlt | Op::IcmpSgt => false,
        Op::IcmpSle | Op::IcmpSge => true,
        _ => return None,
    };
    let &[a, b] = f.args(i) else { return None };
    match f.inst(i).op {
        Op::IcmpSlt | Op::IcmpSle => Some((a, b, or_equal)),
        _ => Some((b, a, or_equal)),
    }
}

/// Makes the chain again with one comparison for each pair: all but the last operation are added to
/// `made`, that one takes the place of the root.
fn rewrite(f: &mut MpirFn, chain: &Chain, made: &mut Vec<Inst>) {
    let Chain { root, conditions, pairs, .. } = chain;
    let (op, span) = (f.inst(*root).op, f.inst(*root).span);
    let compare = if op == Op::IAnd { Op::IcmpUlt } else { Op::IcmpUge };
    let is_other = |n: &usize| pairs.iter().all(|pair| !pair.2.contains(n));
    let others = (0..conditions.len()).filter(is_other).map(|n| conditions[n]);
    let mut whole: Option<Value> = None;
    let mut make = |f: &mut MpirFn, op, args: [Value; 2]| {
        let i = f.make_inst(op, Flags::NONE, fixed::BOOL, &args, 0, span);
        made.push(i);
        f.inst(i).result().unwrap_or(args[0])
    };
    let Some((&(x, end, _), before)) = pairs.split_last() else { return };
    let tests: Vec<Value> = before.iter().map(|&(x, end, _)| make(f, compare, [x, end])).collect();
    for v in others.chain(tests) {
        whole = Some(whole.map_or(v, |whole| make(f, op, [whole, v])));
    }
    match whole {
        None => f.rewrite(*root, compare, &[x, end], 0),
        Some(whole) => {
            let test = make(f, compare, [x, end]);
            f.rewrite(*root, op, &[whole, test], 0);
        }
    }
}
