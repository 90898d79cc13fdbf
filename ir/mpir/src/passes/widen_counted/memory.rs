//! The accesses of a loop to memory, and whether several rounds of each may be done at once.
//!
//! Accesses whose addresses differ by constants are a group: of two of them it is known how many
//! rounds apart they touch the same element. Of groups nothing is known but that they are apart
//! when their addresses, from the first to the last round, are: that is asked before the loop.

use super::append;
use super::enter::Entrance;
use super::find::{Counted, LoopView};
use super::linear::Linear;
use crate::{Block, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::{PrimType, fixed};

/// Groups of one loop.
const MAX_GROUPS: usize = 8;
/// Pairs of groups of which it is asked whether they are apart.
const MAX_PAIRS: usize = 12;

/// An access to a scalar in each round, or to the same one in all rounds.
pub(super) struct Access {
    pub(super) inst: Inst,
    /// What is so in the rounds that do it; nothing when all do.
    pub(super) conditions: Vec<Condition>,
    /// The number of its group.
    pub(super) group: usize,
    /// What its address is more than that of the group, in bytes.
    pub(super) offset: i64,
    size: i64,
    is_store: bool,
}

/// That a value of the loop is true, or false.
#[derive(Clone, Copy)]
pub(super) struct Condition {
    pub(super) value: Value,
    pub(super) is: bool,
}

/// Accesses whose addresses differ by constants.
pub(super) struct Group {
    pub(super) address: Linear,
    /// The least offset, and one past the last byte of the largest.
    reach: (i64, i64),
    has_store: bool,
}

/// What a loop does to memory.
pub(super) struct Accesses {
    pub(super) accesses: Vec<Access>,
    pub(super) groups: Vec<Group>,
    /// The groups that must be apart.
    pairs: Vec<(usize, usize)>,
    /// The most rounds that may be done at once.
    pub(super) max_rounds: u64,
}

/// The constant of an access's address with that of the instruction itself.
pub(super) fn offset_of(f: &MpirFn, access: Inst, address: &Linear) -> Option<i64> {
    let offset = (f.inst(access).imm as i64).checked_add(address.constant)?;
    super::unroll::fits(offset).then_some(offset)
}

impl Accesses {
    /// Looks at the accesses of a loop, in the order of execution: each is to memory side by side
    /// from round to round, or a load from one place.
    pub(super) fn find(view: &LoopView, counted: &Counted, order: &[Inst]) -> Option<Accesses> {
        let f = view.f;
        let (mut accesses, mut groups) = (Vec::new(), Vec::<Group>::new());
        for &inst in order.iter().filter(|&&i| matches!(f.inst(i).op, Op::MemLoad | Op::MemStore)) {
            let is_store = f.inst(inst).op == Op::MemStore;
            let ty = if is_store { f.ty(f.arg(inst, 1)) } else { f.inst(inst).ty };
            let size = i64::from(PrimType::from_id(ty)?.size());
            let address = Linear::of(view, counted.counter, f.arg(inst, 0))?;
            let is_one_place = address.step == 0 && !is_store;
            if address.pointer.is_none() || address.step != size && !is_one_place {
                return None;
            }
            let conditions = conditions(view, counted, view.positions.block(inst)?)?;
            let offset = offset_of(f, inst, &address)?;
            let group = match groups.iter().position(|g| g.address.is_parallel(&address)) {
                Some(group) => group,
                None if groups.len() == MAX_GROUPS => return None,
                None => {
                    groups.push(Group { address, reach: (offset, offset), has_store: false });
                    groups.len() - 1
                }
            };
            let g = &mut groups[group];
            g.reach = (g.reach.0.min(offset), g.reach.1.max(offset + size));
            g.has_store |= is_store;
            accesses.push(Access { inst, conditions, group, offset, size, is_store });
        }
        // What some rounds do is done in all, a store with what is there: in all rounds there must
        // be something.
        let is_there = |x: &Access| {
            let mut others = accesses.iter().filter(|y| y.conditions.is_empty());
            others.any(|y| (x.group, x.offset, x.size) == (y.group, y.offset, y.size))
        };
        if !accesses.iter().all(is_there) {
            return None;
        }
        let mut pairs = Vec::new();
        for (n, group) in groups.iter().enumerate() {
            let others = (n + 1..groups.len()).filter(|&m| group.has_store || groups[m].has_store);
            pairs.extend(others.map(|m| (n, m)));
        }
        let max_rounds = max_rounds(&accesses)?;
        let all = Accesses { accesses, groups, pairs, max_rounds };
        (all.pairs.len() <= MAX_PAIRS).then_some(all)
    }

    /// Appends to the decision whether the groups are apart.
    pub(super) fn are_apart(&self, f: &mut MpirFn, entrance: &Entrance, first: Value) -> Value {
        let b = entrance.decision;
        let mut spans: Vec<Option<(Value, Value)>> = self.groups.iter().map(|_| None).collect();
        let mut apart = entrance.may_enter;
        for &(x, y) in &self.pairs {
            let [x, y] = [x, y]
                .map(|n| *spans[n].get_or_insert_with(|| self.groups[n].span(f, entrance, first)));
            let before = append(f, b, Op::IcmpUle, fixed::BOOL, &[x.1, y.0]);
            let behind = append(f, b, Op::IcmpUle, fixed::BOOL, &[y.1, x.0]);
            let either = append(f, b, Op::IOr, fixed::BOOL, &[before, behind]);
            apart = append(f, b, Op::IAnd, fixed::BOOL, &[apart, either]);
        }
        apart
    }
}

impl Group {
    /// The addresses of its first byte and behind its last one, as numbers.
    fn span(&self, f: &mut MpirFn, entrance: &Entrance, first: Value) -> (Value, Value) {
        let b = entrance.decision;
        let base = self.address.base(f, b);
        let start = self.address.at(f, b, base, first);
        let start = append(f, b, Op::BitsCast, fixed::I64, &[start]);
        let add = |f: &mut MpirFn, v: Value, bytes: i64| {
            let bytes = f.const_bits(fixed::I64, bytes as u64);
            append(f, b, Op::IAdd, fixed::I64, &[v, bytes])
        };
        let low = add(f, start, self.reach.0);
        // From the first round to the last one.
        let step = f.const_bits(fixed::I64, self.address.step as u64);
        let moved = append(f, b, Op::IMul, fixed::I64, &[entrance.rounds, step]);
        let last = append(f, b, Op::IAdd, fixed::I64, &[start, moved]);
        let high = add(f, last, self.reach.1 - self.address.step);
        (low, high)
    }
}

/// What is so in the rounds that come to a block of the loop, from the inside out.
fn conditions(view: &LoopView, counted: &Counted, mut b: Block) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    while !view.dom.dominates(b, counted.candidate.latch) {
        let from = view.dom.idom(b)?;
        let Terminator::Cbr { cond, then, else_ } = view.f.block(from).term else { return None };
        if view.cfg.preds(b) != [from] || then == else_ {
            return None;
        }
        // Checks hold.
        let ends = &counted.candidate.ends;
        if !ends.contains(&then) && !ends.contains(&else_) {
            conditions.push(Condition { value: cond, is: then == b });
        }
        b = from;
    }
    Some(conditions)
}

/// The most rounds that may be done at once: with more, one access would come before another one
/// that is to the same element in an earlier round. Accesses are in the order of execution.
fn max_rounds(accesses: &[Access]) -> Option<u64> {
    let mut most = u64::MAX;
    for (n, x) in accesses.iter().enumerate() {
        for y in &accesses[n + 1..] {
            if x.group != y.group || !x.is_store && !y.is_store {
                continue;
            }
            let apart = y.offset - x.offset;
            if x.size != y.size || apart % x.size != 0 {
                return None;
            }
            if apart > 0 {
                most = most.min((apart / x.size) as u64);
            }
        }
    }
    Some(most)
}
