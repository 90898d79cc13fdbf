//! Which device-resident bindings have given their buffers away, along the ways through a function.

use super::body::{Body, Loop};
use magpie_diag::{Code, Span};
use magpie_mpir::Block as MpirBlock;
use std::collections::BTreeMap;

/// Local names whose buffers went to other bindings, with the places where.
pub(super) type Moved = BTreeMap<u32, Span>;

/// Ways that part and meet again.
pub(super) struct Ways {
    /// What was moved where they part.
    before: Moved,
    /// What was moved on some way.
    after: Moved,
}

impl Body<'_, '_, '_> {
    /// The present place is where ways part.
    pub(super) fn part_ways(&self) -> Ways {
        Ways { before: self.moved.clone(), after: Moved::new() }
    }

    /// The end of one way; the next one begins.
    pub(super) fn end_way(&mut self, ways: &mut Ways) {
        let moved = std::mem::replace(&mut self.moved, ways.before.clone());
        if self.is_live() {
            ways.after.extend(moved);
        }
    }

    /// The ways have met again.
    pub(super) fn join_ways(&mut self, ways: Ways) {
        self.moved = ways.after;
    }

    /// The body of a loop begins.
    pub(super) fn begin_loop(
        &mut self,
        on_break: MpirBlock,
        on_continue: MpirBlock,
        is_forall: bool,
    ) {
        self.loops.push(Loop {
            on_break,
            on_continue,
            is_forall,
            outer_locals: self.locals.len() as u32,
            before: self.moved.clone(),
            at_breaks: Moved::new(),
        });
    }

    /// Goes to the end of the innermost loop.
    pub(super) fn leave_loop(&mut self) {
        if let Some(on_break) = self.loops.last().map(|l| l.on_break) {
            self.note_break();
            self.b.br(on_break);
        }
    }

    /// The body of the innermost loop ends.
    pub(super) fn end_loop(&mut self) {
        if self.is_live() {
            self.check_next_round();
        }
        if let Some(ended) = self.loops.pop() {
            self.moved = ended.before;
            self.moved.extend(ended.at_breaks);
        }
    }

    /// A `break` of the innermost loop.
    pub(super) fn note_break(&mut self) {
        let moved = self.moved.clone();
        if let Some(left) = self.loops.last_mut() {
            left.at_breaks.extend(moved);
        }
    }

    /// What the body of the innermost loop has taken away it has also given back, where the next
    /// round begins.
    pub(super) fn check_next_round(&mut self) {
        let Some(inner) = self.loops.last() else { return };
        let is_lost =
            |&(id, _): &(&u32, &Span)| *id < inner.outer_locals && !inner.before.contains_key(id);
        let lost: Moved = self.moved.iter().filter(is_lost).map(|(&id, &at)| (id, at)).collect();
        for (&id, &at) in &lost {
            let text = self.cx.program.name(self.locals[id as usize].name).to_string();
            let message =
                format!("`{text}` is moved in a loop, so that the next pass would use it again");
            let help = "move it before the loop, bind it in the loop, or give it another buffer \
                        before the next pass";
            self.error(Code::MIR1607, at, message, help);
        }
        // One report is enough.
        if let Some(inner) = self.loops.last_mut() {
            inner.before.extend(lost);
        }
    }
}
