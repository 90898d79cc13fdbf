//! The skeleton of a function: the names of its values and blocks, its MPIR blocks and the edges
//! between them, with stand-ins for the operands of terminators.
//!
//! Source block `n` starts as MPIR block `n`. A `try` splits its block: what follows is a new MPIR
//! block, and the error runs through one of its own, so that each `try` has an edge of its own.

use super::body::{Body, Edge, Split};
use super::names::{Local, LocalState};
use super::*;
use crate::interner::Symbol;
use magpie_mpir::{Block as MpirBlock, Terminator as MpirTerminator, Value as MpirValue};

/// Stands for the operand of a terminator until it is lowered.
const LATER: MpirValue = MpirValue(0);

impl Body<'_, '_> {
    pub(super) fn skeleton(&mut self, params: &[Option<TypeId>]) {
        let symbols = self.scope.parsed.interner.len();
        self.s.names.start(symbols);
        self.s.labels.start(symbols);
        self.s.locals.clear();
        self.s.splits.clear();
        self.s.first_split.clear();
        self.s.last_part.clear();
        self.s.unsorted_edges.clear();
        self.s.phis.clear();
        self.s.source_blocks.clear();
        let ast = self.ast;
        for (n, param) in ast[self.decl.params].iter().enumerate() {
            let state = match params.get(n) {
                Some(Some(_)) => LocalState::Value(self.f.params[n].0),
                Some(None) | None => LocalState::Poisoned,
            };
            self.define(param.name.symbol, param.range(), MpirBlock(0), state);
        }
        let blocks = &ast[self.decl.blocks];
        for (n, block) in blocks.iter().enumerate() {
            self.f.add_block();
            self.s.source_blocks.push(n as u32);
            match self.s.labels.get(block.label.symbol) {
                None => self.s.labels.insert(block.label.symbol, n as u32),
                Some(first) => self.report_label_twice(block.label, first),
            }
        }
        for (n, block) in blocks.iter().enumerate() {
            self.source = n as u32;
            self.block_skeleton(block);
        }
        self.sort_edges(blocks.len());
    }

    fn block_skeleton(&mut self, block: &Block) {
        let mut part = MpirBlock(self.source);
        self.s.first_split.push(self.s.splits.len() as u32);
        for instr in &self.ast[block.instrs] {
            match instr.op {
                Op::TryBranch { value, target } => {
                    self.span = self.scope.span(instr.range);
                    part = self.split(part, Some((value, target)));
                }
                Op::TryCall { .. } => part = self.split(part, None),
                _ => {}
            }
            if let Some(result) = &instr.result {
                self.define(result.name, instr.range, part, LocalState::Pending);
            }
        }
        self.s.last_part.push(part);
        self.span = self.scope.span(block.terminator_range);
        let term = match block.terminator {
            Terminator::Ret(_) | Terminator::Unreachable | Terminator::Missing => {
                MpirTerminator::Unreachable
            }
            Terminator::Br(target) => {
                self.target(target).map_or(MpirTerminator::Unreachable, MpirTerminator::Br)
            }
            Terminator::Cbr { then_target, else_target, .. } => {
                match (self.target(then_target), self.target(else_target)) {
                    (Some(then), Some(else_)) => MpirTerminator::Cbr { cond: LATER, then, else_ },
                    (Some(target), None) | (None, Some(target)) => MpirTerminator::Br(target),
                    (None, None) => MpirTerminator::Unreachable,
                }
            }
            Terminator::Switch { cases, default, .. } => {
                let ast = self.ast;
                let mut targets = Vec::with_capacity(cases.len());
                for case in &ast[cases] {
                    targets.extend(self.target(case.target).map(|b| (0, b)));
                }
                match self.target(default) {
                    Some(default) => {
                        MpirTerminator::Switch { value: LATER, cases: targets, default }
                    }
                    None => match targets.pop() {
                        Some((_, b)) => {
                            MpirTerminator::Switch { value: LATER, cases: targets, default: b }
                        }
                        None => MpirTerminator::Unreachable,
                    },
                }
            }
        };
        self.terminator_edges(&term, part);
        self.f.block_mut(part).term = term;
    }

    /// Records the edges of a terminator: one for each block it leads to.
    fn terminator_edges(&mut self, term: &MpirTerminator, pred: MpirBlock) {
        let source = self.source;
        let first = self.s.unsorted_edges.len();
        let edges = &mut self.s.unsorted_edges;
        match term {
            MpirTerminator::Switch { cases, default, .. } => {
                let mut targets: Vec<u32> = cases.iter().map(|c| c.1.0).collect();
                targets.push(default.0);
                targets.sort_unstable();
                targets.dedup();
                let edge = |target| Edge { target, source, pred, split: u32::MAX };
                edges.extend(targets.into_iter().map(edge));
            }
            MpirTerminator::Ret(_)
            | MpirTerminator::Br(_)
            | MpirTerminator::Cbr { .. }
            | MpirTerminator::Unreachable => term.for_each_target(|t| {
                if edges[first..].iter().all(|e| e.target != t.0) {
                    edges.push(Edge { target: t.0, source, pred, split: u32::MAX });
                }
            }),
        }
    }

    /// Ends `part` with the choice that a `try` makes; returns where it goes on.
    fn split(&mut self, part: MpirBlock, labelled: Option<(Symbol, Target)>) -> MpirBlock {
        let error = self.f.add_block();
        let next = self.f.add_block();
        self.s.source_blocks.extend([self.source; 2]);
        self.f.block_mut(part).term = MpirTerminator::Cbr { cond: LATER, then: next, else_: error };
        if let Some(target) = labelled.and_then(|(_, target)| self.target(target)) {
            self.f.block_mut(error).term = MpirTerminator::Br(target);
            let split = self.s.splits.len() as u32;
            let edge = Edge { target: target.0, source: self.source, pred: error, split };
            self.s.unsorted_edges.push(edge);
        }
        let tried = labelled.map(|(value, _)| value);
        self.s.splits.push(Split { error, next, tried, payload: None });
        next
    }

    /// The block of a label.
    fn target(&mut self, target: Target) -> Option<MpirBlock> {
        match self.s.labels.get(target.label) {
            Some(0) => {
                let label = self.scope.name(target.label);
                self.error(
                    Code::MPS0010,
                    format!("`{label}` is the entry of the function and cannot be branched to"),
                    "start the function with a block that only branches to this one",
                );
                None
            }
            Some(n) => Some(MpirBlock(n)),
            None => {
                let label = self.scope.name(target.label);
                let may = self.cx.may_suggest();
                let labels = self.ast[self.decl.blocks].iter();
                let labels = labels.map(|b| self.scope.name(b.label.symbol));
                let help = match magpie_diag::closest(label, labels.take_while(|_| may)) {
                    Some(similar) => format!("did you mean `{similar}`?"),
                    None => format!("add the block, `{label}:`"),
                };
                self.error(Code::MPS0008, format!("there is no block `{label}`"), help);
                None
            }
        }
    }

    fn define(&mut self, name: Symbol, range: ByteRange, block: MpirBlock, state: LocalState) {
        match self.s.names.get(name) {
            None => {
                self.s.names.insert(name, self.s.locals.len() as u32);
                self.s.locals.push(Local { name, range, block, state });
            }
            Some(first) => self.report_defined_twice(name, range, first),
        }
    }

    #[cold]
    fn report_defined_twice(&mut self, name: Symbol, range: ByteRange, first: u32) {
        let text = self.scope.name(name);
        let first = self.scope.span(self.s.locals[first as usize].range);
        let message = format!("`%{text}` is defined twice in this function");
        self.cx.report(
            Diagnostic::new(Code::MPS0001, self.scope.span(range), message)
                .with_secondary(first, "first defined here")
                .with_help("give each value a name of its own"),
        );
    }

    #[cold]
    fn report_label_twice(&mut self, label: Name, first: u32) {
        let text = self.scope.name(label.symbol);
        let first = self.ast[self.decl.blocks][first as usize].label.range;
        let message = format!("label `{text}` is used twice in this function");
        self.cx.report(
            Diagnostic::new(Code::MPS0009, self.scope.span(label.range), message)
                .with_secondary(self.scope.span(first), "first used here")
                .with_help("give each block a label of its own"),
        );
    }

    /// Puts the edges in the order of their targets; those of a target stay in source order.
    fn sort_edges(&mut self, blocks: usize) {
        let s = &mut self.s;
        s.first_edge.clear();
        s.first_edge.resize(blocks + 1, 0);
        for edge in &s.unsorted_edges {
            s.first_edge[edge.target as usize + 1] += 1;
        }
        for n in 0..blocks {
            s.first_edge[n + 1] += s.first_edge[n];
        }
        s.edges.clear();
        let filler = Edge { target: 0, source: 0, pred: MpirBlock(0), split: u32::MAX };
        s.edges.resize(s.unsorted_edges.len(), filler);
        for &edge in &s.unsorted_edges {
            let slot = &mut s.first_edge[edge.target as usize];
            s.edges[*slot as usize] = edge;
            *slot += 1;
        }
        s.first_edge.copy_within(0..blocks, 1);
        s.first_edge[0] = 0;
    }
}
