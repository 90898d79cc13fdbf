//! [`Plan`]: which values are expressions, which are declared where they are computed, and which
//! need a variable of the whole function.

use crate::structurize::{Event, PhiCopies, PhiCopy, StructuredBody};
use magpie_mpir::{Block, Inst, MpirFn, Op, Value, ValueDef};

/// Where values stand, found in one walk over the tree.
pub(super) struct Plan {
    values: Vec<Use>,
}

#[derive(Clone, Copy, Default)]
struct Use {
    /// The braces around the definition.
    scope: u32,
    /// The only use, unless there are several.
    user: User,
    /// Some use stands outside the braces around the definition.
    escapes: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum User {
    #[default]
    Nobody,
    /// One instruction or the branch at the end of this block.
    One(Block),
    Several,
}

impl Plan {
    pub(super) fn new(f: &MpirFn, body: &StructuredBody, copies: &PhiCopies) -> Plan {
        let mut walk = Walk {
            f,
            copies,
            values: vec![Use::default(); f.locals.len()],
            open: vec![true],
            scopes: vec![0],
            latches: Vec::new(),
        };
        body.walk(|event| walk.step(event));
        Plan { values: walk.values }
    }

    /// Whether anything reads a value.
    pub(super) fn is_used(&self, v: Value) -> bool {
        self.values[v.index()].user != User::Nobody
    }

    /// Whether an expression may stand where the value is used: once, in the block that computes
    /// it.
    pub(super) fn is_used_once_in(&self, v: Value, block: Block) -> bool {
        self.values[v.index()].user == User::One(block)
    }

    /// Whether a value needs a variable of the whole function.
    pub(super) fn escapes(&self, v: Value) -> bool {
        self.values[v.index()].escapes
    }
}

struct Walk<'a> {
    f: &'a MpirFn,
    copies: &'a PhiCopies,
    values: Vec<Use>,
    /// By scope: whether its braces are open. Scopes are numbered in source order.
    open: Vec<bool>,
    /// The open ones, from the outside.
    scopes: Vec<u32>,
    latches: Vec<Block>,
}

impl Walk<'_> {
    fn step(&mut self, event: Event<'_>) {
        match event {
            Event::Block(b) => self.block(b),
            Event::If { .. } | Event::Case { .. } | Event::Default => self.enter(),
            Event::Else => {
                self.leave();
                self.enter();
            }
            Event::EndIf | Event::EndCase => self.leave(),
            Event::Loop { header, latch, .. } => {
                self.latches.push(latch);
                self.enter();
                self.block(header);
            }
            Event::EndLoop => {
                self.latches.pop();
                self.leave();
            }
            // Written where a `continue` is.
            Event::Continue => {
                if let Some(&latch) = self.latches.last() {
                    self.copies_at(latch);
                }
            }
            Event::Continuing { latch } => self.definitions(latch),
            Event::Switch { .. }
            | Event::EndSwitch
            | Event::Break
            | Event::Return
            | Event::Unreachable => {}
        }
    }

    fn enter(&mut self) {
        self.scopes.push(self.open.len() as u32);
        self.open.push(true);
    }

    fn leave(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.open[scope as usize] = false;
        }
    }

    fn definitions(&mut self, b: Block) {
        let scope = self.scopes.last().copied().unwrap_or(0);
        for &i in &self.f.block(b).insts {
            if let Some(v) = self.f.inst(i).result() {
                self.values[v.index()].scope = scope;
            }
        }
    }

    fn block(&mut self, b: Block) {
        let f = self.f;
        self.definitions(b);
        for &i in &f.block(b).insts {
            if f.inst(i).op != Op::Phi {
                f.args(i).iter().for_each(|&v| self.used(v, Some(b)));
            }
        }
        self.copies_at(b);
        if let Some(v) = f.block(b).term.operand() {
            self.used(v, Some(b));
        }
    }

    fn copies_at(&mut self, b: Block) {
        for copy in self.copies.at(b) {
            if let PhiCopy::Assign { source, .. } = copy {
                // Never in place: a copy before it may change what an expression reads.
                self.used(*source, None);
            }
        }
    }

    fn used(&mut self, v: Value, by: Option<Block>) {
        if !matches!(self.f.def(v), ValueDef::Inst(_)) {
            return;
        }
        let facts = &mut self.values[v.index()];
        facts.user = match (facts.user, by) {
            (User::Nobody, Some(block)) => User::One(block),
            _ => User::Several,
        };
        facts.escapes |= !self.open[facts.scope as usize];
    }
}

/// How deep expressions nest, so that lines stay readable and neither this code nor a compiler
/// recurses far.
pub(super) const MAX_EXPRESSION_DEPTH: u8 = 6;

/// By value: how a use is written.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Written {
    /// Not computed yet.
    #[default]
    Not,
    /// Nobody reads it.
    Unread,
    /// `v` and this number.
    Number(u32),
    /// This position in the list of names.
    Name(u32),
    /// The expression of this instruction, which nests so deep.
    Expression(Inst, u8),
}
