//! The way into the loop that does several rounds at once.
//!
//! ```text
//! preheader: if rounds < AT_ONCE: go to the loop itself
//! decision:  rounds = least of the rounds that are left and those for which each check holds
//!            if rounds < AT_ONCE: go to the loop itself
//! ```

use super::append;
use super::find::{CheckKind, Counted};
use crate::{Block, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;

/// What is known where it is decided.
pub(super) struct Entrance {
    /// The block that decides.
    pub(super) decision: Block,
    /// The number of rounds that are done several at once.
    pub(super) rounds: Value,
    /// The counter behind them.
    pub(super) end: Value,
    /// Whether there are any.
    pub(super) may_enter: Value,
}

/// Appends to the preheader, and makes the block that decides; it ends nowhere yet. `at_once` is a
/// power of two.
pub(super) fn enter(f: &mut MpirFn, counted: &Counted, at_once: u64) -> Entrance {
    let &Counted { first, bound, .. } = counted;
    let (preheader, header) = (counted.candidate.preheader, counted.candidate.header);
    let span = f.block(header).term_span;
    let decision = f.add_block();
    f.block_mut(decision).term_span = span;
    let at_least = f.const_bits(fixed::I64, at_once);
    let zero = f.const_bits(fixed::I64, 0);

    // More rounds than fit into the signed numbers are negative here, and not enough.
    let more = append(f, preheader, Op::IcmpSlt, fixed::BOOL, &[first, bound]);
    let difference = append(f, preheader, Op::ISub, fixed::I64, &[bound, first]);
    let mut rounds = append(f, preheader, Op::Select, fixed::I64, &[more, difference, zero]);
    let enough = append(f, preheader, Op::IcmpSge, fixed::BOOL, &[rounds, at_least]);
    f.block_mut(preheader).term = Terminator::Cbr { cond: enough, then: decision, else_: header };

    for check in &counted.checks {
        rounds = match &check.kind {
            CheckKind::Same => {
                append(f, decision, Op::Select, fixed::I64, &[check.holds, rounds, zero])
            }
            CheckKind::Below { index, length } => {
                let start = index.number_at(f, decision, first);
                let inside = append(f, decision, Op::IcmpUlt, fixed::BOOL, &[start, *length]);
                let room = room(f, decision, start, *length, index.step);
                let room = append(f, decision, Op::Select, fixed::I64, &[inside, room, zero]);
                append(f, decision, Op::ISmin, fixed::I64, &[rounds, room])
            }
        };
    }
    let may_enter = match counted.checks.is_empty() {
        true => f.const_bool(true),
        false => append(f, decision, Op::IcmpSge, fixed::BOOL, &[rounds, at_least]),
    };
    let whole = f.const_bits(fixed::I64, at_once.wrapping_neg());
    let rounds = append(f, decision, Op::IAnd, fixed::I64, &[rounds, whole]);
    let end = append(f, decision, Op::IAdd, fixed::I64, &[first, rounds]);
    Entrance { decision, rounds, end, may_enter }
}

/// The number of rounds for which an index that starts inside stays there. It may be too small, and
/// negative, when the length is no number of elements that there can be.
fn room(f: &mut MpirFn, b: Block, start: Value, length: Value, step: i64) -> Value {
    let one = f.const_bits(fixed::I64, 1);
    if step == -1 {
        return append(f, b, Op::IAdd, fixed::I64, &[start, one]);
    }
    let left = append(f, b, Op::ISub, fixed::I64, &[length, start]);
    if step == 1 {
        return left;
    }
    // The rounds with an index below the length: left / step, rounded up.
    let step = f.const_bits(fixed::I64, step as u64);
    let before = append(f, b, Op::ISub, fixed::I64, &[left, one]);
    let whole = append(f, b, Op::IUdiv, fixed::I64, &[before, step]);
    append(f, b, Op::IAdd, fixed::I64, &[whole, one])
}

/// Ends the decision: into the loop of several rounds when `may_enter`, else to the loop itself,
/// whose values then are those of the preheader; behind `left` they are others, one for each phi.
pub(super) fn join(
    f: &mut MpirFn,
    counted: &Counted,
    entrance: &Entrance,
    into: Block,
    left: (Block, &[Value]),
) {
    let c = &counted.candidate;
    let block = f.block_mut(entrance.decision);
    block.term = Terminator::Cbr { cond: entrance.may_enter, then: into, else_: c.header };
    let phis: Vec<_> = f.phis(c.header).collect();
    for (&phi, &behind) in phis.iter().zip(left.1) {
        let mut arms: Vec<_> = f.phi_arms(phi).collect();
        if let Some(first) = f.phi_value(phi, c.preheader) {
            arms.push((entrance.decision, first));
        }
        arms.push((left.0, behind));
        f.set_phi_arms(phi, &arms);
    }
}
