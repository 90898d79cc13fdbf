//! Values that a loop carries from round to round and only combines with others, by an operation
//! on integers for which the order does not matter.

use super::choice::Choice;
use super::find::{Counted, LoopView};
use crate::{Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeId};

pub(super) struct Reduction {
    /// The phi of the header.
    pub(super) phi: Inst,
    /// What combines two parts of the whole.
    pub(super) op: Op,
    pub(super) ty: TypeId,
    /// The value at the end of a round.
    pub(super) last: Value,
    /// The instructions of the loop that pass on the value, in order.
    pub(super) steps: Vec<(Inst, Step)>,
    /// The results of the phi and of these.
    chain: Vec<Value>,
}

/// What an instruction does with a value on its way through a round.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Combines it, as its first operand or the second one, with the other.
    Combine { carried: Value, other: Value },
    /// Takes a number from it.
    Subtract { carried: Value, other: Value },
    /// Chooses between two states of it.
    Choose(Choice),
}

impl Reduction {
    /// The reduction that begins with a phi of the header; `order` are the instructions of the loop.
    pub(super) fn find(
        view: &LoopView,
        counted: &Counted,
        phi: Inst,
        order: &[Inst],
    ) -> Option<Reduction> {
        let f = view.f;
        let first = f.inst(phi).result()?;
        let ty = f.inst(phi).ty;
        PrimType::from_id(ty).filter(|p| p.is_int())?;
        let last = f.phi_value(phi, counted.candidate.latch)?;
        let (mut chain, mut steps, mut op) = (vec![first], Vec::new(), None);
        for &i in order {
            if !f.args(i).iter().any(|v| chain.contains(v)) {
                continue;
            }
            let inst = f.inst(i);
            // What is compared decides nothing but a least or largest number: whoever else asks
            // for a comparison finds that it depends on the chain.
            if matches!(inst.op, crate::icmp_ops!()) {
                continue;
            }
            let (step, by) = match Choice::of(view, i) {
                Some(choice) => choose(f, &chain, choice)?,
                None => combine(f, &chain, i)?,
            };
            if by.is_some() && op.is_some() && by != op {
                return None;
            }
            op = by.or(op);
            steps.push((i, step));
            chain.push(inst.result()?);
        }
        let is_carried = last != first && chain.contains(&last);
        let op = op.filter(|_| is_carried)?;
        Some(Reduction { phi, op, ty, last, steps, chain })
    }

    /// Whether a value is only part of the whole.
    pub(super) fn holds(&self, v: Value) -> bool {
        self.chain.contains(&v)
    }

    /// What makes `then` of `before`, and from what, if zero in its place changes nothing.
    pub(super) fn addition(&self, f: &MpirFn, then: Value, before: Value) -> Option<(Op, Value)> {
        let &(_, step) = self.steps.iter().find(|step| f.inst(step.0).result() == Some(then))?;
        let is_neutral = matches!(self.op, Op::IAdd | Op::IOr | Op::IXor);
        match step {
            Step::Combine { carried, other } if carried == before && is_neutral => {
                Some((self.op, other))
            }
            Step::Subtract { carried, other } if carried == before => Some((Op::ISub, other)),
            Step::Combine { .. } | Step::Subtract { .. } | Step::Choose(_) => None,
        }
    }

    /// Whether the whole may be combined with itself.
    pub(super) fn is_idempotent(&self) -> bool {
        !matches!(self.op, Op::IAdd | Op::IXor | Op::IMul)
    }
}

fn combine(f: &MpirFn, chain: &[Value], i: Inst) -> Option<(Step, Option<Op>)> {
    let op = f.inst(i).op;
    let &[x, y] = f.args(i) else { return None };
    let (carried, other) = if chain.contains(&x) { (x, y) } else { (y, x) };
    if chain.contains(&other) {
        return None;
    }
    if op == Op::ISub && carried == x {
        return Some((Step::Subtract { carried, other }, Some(Op::IAdd)));
    }
    let is_any_order = matches!(
        op,
        Op::IAdd
            | Op::IMul
            | Op::IAnd
            | Op::IOr
            | Op::IXor
            | Op::ISmin
            | Op::ISmax
            | Op::IUmin
            | Op::IUmax
    );
    is_any_order.then_some((Step::Combine { carried, other }, Some(op)))
}

fn choose(f: &MpirFn, chain: &[Value], choice: Choice) -> Option<(Step, Option<Op>)> {
    let Choice { cond, then, else_ } = choice;
    let (carried, other) = match (chain.contains(&then), chain.contains(&else_)) {
        (true, true) => return Some((Step::Choose(choice), None)),
        (true, false) => (then, else_),
        (false, true) => (else_, then),
        (false, false) => return None,
    };
    // The smaller or larger of two numbers; when they are equal it does not matter which.
    let compare = f.def_inst(cond)?;
    let &[x, y] = f.args(compare) else { return None };
    let op = f.inst(compare).op;
    let (least, largest) = if matches!(op, Op::IcmpSlt | Op::IcmpSle) {
        (Op::ISmin, Op::ISmax)
    } else if matches!(op, Op::IcmpSgt | Op::IcmpSge) {
        (Op::ISmax, Op::ISmin)
    } else if matches!(op, Op::IcmpUlt | Op::IcmpUle) {
        (Op::IUmin, Op::IUmax)
    } else if matches!(op, Op::IcmpUgt | Op::IcmpUge) {
        (Op::IUmax, Op::IUmin)
    } else {
        return None;
    };
    let by = match (x, y) {
        _ if (x, y) == (then, else_) => least,
        _ if (y, x) == (then, else_) => largest,
        _ => return None,
    };
    Some((Step::Combine { carried, other }, Some(by)))
}
