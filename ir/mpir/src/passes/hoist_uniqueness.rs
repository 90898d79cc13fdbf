//! Uniqueness before loops: an object that a loop changes in place is made unique once.
//!
//! In a language of values, an assignment to an element first asks for the only handle of the
//! array (`mp_rt_handle_unique`), which copies an array that somebody else has too. Inside a loop
//! the handle goes round through a phi. When nothing in the loop makes another handle of it, the
//! question has the same answer in every round, and one handle serves the whole loop:
//!
//! ```text
//! bb1: %a = phi [bb0: %0], [bb2: %u]           bb0: %u = unique %0
//! bb2: %u = unique %a                    ⇒     bb2: arr.set %u, …
//!      arr.set %u, …
//! ```
//!
//! A loop that would not have come to the assignment makes the copy too. That copy is made at most
//! once for each time that a variable takes over a value, as a copy of the value would have been.

use super::PassContext;
use super::context::refill;
use super::hoist_views::may_be_changed;
use super::insert_preheaders::loops_with_preheaders;
use crate::analysis::{LoopId, Loops, Positions, User, Uses};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Value};
use magpie_types::TypeCtx;
use magpie_types::abi::RtFn;

/// Moves questions for the only handle of an object in front of loops, as far out as possible.
/// Works on host functions that are not lowered, before `lower_arc`.
pub fn hoist_uniqueness(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    let asks = |&i: &Inst| is_unique(f, i);
    if f.domain != Domain::Host || !f.blocks.iter().flat_map(|b| &b.insts).any(asks) {
        return false;
    }
    let mut changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, loops, positions, uses, replacements, values, marks, numbers, .. } = ctx;
    if !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    uses.compute(f);
    replacements.start(f);
    // Values that are gone: those of a web are one handle now.
    refill(marks, f.locals.len(), false);
    // The last web that each value was found in.
    refill(numbers, f.locals.len(), 0);
    let mut number = 0;
    for l in loops.ids() {
        let Some(preheader) = loops.preheader(cfg, l) else { continue };
        let phis: Vec<Inst> = f.phis(loops.header(l)).collect();
        let first_of_loop = number + 1;
        for phi in phis {
            let Some(first) = f.inst(phi).result().filter(|v| !marks[v.index()]) else { continue };
            let Some(entering) = f.phi_value(phi, preheader) else { continue };
            if !types.is_heap(f.ty(first)) {
                continue;
            }
            number += 1;
            let web = Web { f, types, loops, positions, uses, l, numbers, number, first_of_loop };
            if !web.find(first, values) {
                continue;
            }
            let (ty, span) = (f.ty(first), f.inst(phi).span);
            let rt = RtFn::HandleUnique as u64;
            let unique = f.make_inst(Op::RtCall, Flags::NONE, ty, &[entering], rt, span);
            let at = match marks.get(entering.index()) {
                Some(false) => first_look(f, uses, positions, preheader, entering, phi),
                Some(true) | None => f.block(preheader).insts.len(),
            };
            if let Some(only) = f.inst(unique).result() {
                for n in at..f.block(preheader).insts.len() {
                    let i = f.block(preheader).insts[n];
                    f.args_mut(i).iter_mut().filter(|v| **v == entering).for_each(|v| *v = only);
                }
                f.block_mut(preheader).insts.insert(at, unique);
                for &v in values.iter() {
                    marks[v.index()] = true;
                    replacements.set(v, only);
                }
            }
        }
    }
    if replacements.is_empty() {
        return changed;
    }
    changed = true;
    for b in f.block_ids() {
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        let is_gone = |v: Value| marks.get(v.index()).is_some_and(|&gone| gone);
        insts.retain(|&i| !f.inst(i).result().is_some_and(is_gone));
        f.block_mut(b).insts = insts;
    }
    replacements.apply(f);
    changed
}

/// Where the preheader begins to look at the object that enters the loop: what it reads there, a
/// length above all, is then known to be the same in the loop. Its end, if the object is used
/// elsewhere too.
fn first_look(
    f: &MpirFn,
    uses: &Uses,
    positions: &Positions,
    preheader: Block,
    entering: Value,
    phi: Inst,
) -> usize {
    let insts = &f.block(preheader).insts;
    let is_here = |&user: &User| match user {
        User::Inst(i, _) => i == phi || positions.block(i) == Some(preheader),
        User::Terminator(_) => false,
    };
    if !uses.of(entering).iter().all(is_here) {
        return insts.len();
    }
    let mut at = insts.len();
    for (n, &i) in insts.iter().enumerate().rev() {
        let mut reads = f.args(i).iter().enumerate().filter(|a| *a.1 == entering).peekable();
        if reads.peek().is_none() {
            continue;
        }
        if !reads.all(|(n, _)| uses_in_place(f, i, n as u32)) {
            break;
        }
        at = n;
    }
    at
}

fn is_unique(f: &MpirFn, i: Inst) -> bool {
    f.inst(i).op == Op::RtCall && f.inst(i).rt() == RtFn::HandleUnique
}

/// Whether an instruction that reads a handle as operand `n` leaves it the only one.
fn uses_in_place(f: &MpirFn, i: Inst, n: u32) -> bool {
    let moves = || matches!(f.inst(i).rt(), RtFn::ArrMove | RtFn::ArrReverse);
    let takes_it_first = match f.inst(i).op {
        Op::RtCall => moves(),
        // It may take an enum apart.
        Op::EnumPayload => false,
        op => matches!(op, crate::object_reads!() | crate::object_changes!()),
    };
    takes_it_first && n == 0
}

/// The values that one handle goes through in the rounds of a loop.
struct Web<'a> {
    f: &'a MpirFn,
    types: &'a TypeCtx,
    loops: &'a Loops,
    positions: &'a Positions,
    uses: &'a Uses,
    l: LoopId,
    numbers: &'a mut [u32],
    number: u32,
    /// The number of the first web that was looked for in this loop.
    first_of_loop: u32,
}

impl Web<'_> {
    /// Collects the values that carry on the handle of a phi of the header; whether they are all
    /// that reaches the phi again, one of them is made unique, and no other handle is made.
    fn find(mut self, first: Value, web: &mut Vec<Value>) -> bool {
        web.clear();
        if !self.add(first, web) {
            return false;
        }
        let (mut asks, mut at) = (false, 0);
        while let Some(&v) = web.get(at) {
            at += 1;
            for &user in self.uses.of(v) {
                let User::Inst(i, n) = user else { continue };
                if !self.is_inside(self.positions.block(i)) {
                    continue;
                }
                let is_unique = is_unique(self.f, i);
                asks |= is_unique;
                let is_phi = self.f.inst(i).op == Op::Phi;
                let goes_on = match self.f.inst(i).result() {
                    Some(next) if is_unique || is_phi => self.add(next, web),
                    Some(view) if self.f.inst(i).op == Op::BorrowShared => {
                        self.uses.of(view).iter().all(|&user| self.only_looks(user))
                    }
                    Some(_) | None => uses_in_place(self.f, i, n),
                };
                if !goes_on {
                    return false;
                }
            }
        }
        asks && web.iter().all(|&v| self.is_fed_by_web(v, first))
    }

    /// Whether a user of a view makes no other handle of what it shows: an operation that looks at a
    /// part, or a call that has no place for one.
    fn only_looks(&self, user: User) -> bool {
        let User::Inst(i, n) = user else { return false };
        let data = self.f.inst(i);
        let may_keep = |&v: &Value| may_be_changed(self.types, self.f.ty(v));
        match data.op {
            Op::Call => self.types.is_copy(data.ty) && !self.f.args(i).iter().any(may_keep),
            _ => uses_in_place(self.f, i, n),
        }
    }

    fn is_inside(&self, b: Option<Block>) -> bool {
        b.is_some_and(|b| self.loops.contains(self.l, b))
    }

    /// Adds a value, unless another web of the loop has come to it: then neither is one.
    fn add(&mut self, v: Value, web: &mut Vec<Value>) -> bool {
        // Values that were made since stand in front of loops.
        let Some(number) = self.numbers.get_mut(v.index()) else { return false };
        let before = std::mem::replace(number, self.number);
        if before != self.number {
            web.push(v);
        }
        before == self.number || before < self.first_of_loop
    }

    /// Whether a phi has no arms but those of the web, where it is entered from inside the loop.
    fn is_fed_by_web(&self, v: Value, first: Value) -> bool {
        let Some(i) = self.f.def_inst(v).filter(|&i| self.f.inst(i).op == Op::Phi) else {
            return true;
        };
        self.f.phi_arms(i).all(|(pred, arm)| {
            let enters = v == first && !self.loops.contains(self.l, pred);
            enters || self.numbers.get(arm.index()) == Some(&self.number)
        })
    }
}
