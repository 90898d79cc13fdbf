//! What a borrow may be used for, where, and what it excludes.

use super::{Checker, Use};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Block, Inst, Op, Terminator, Value};
use magpie_types::{Category, RefMode, TypeKind};
use rustc_hash::FxHashMap;

/// A borrow made in the source block being looked at.
#[derive(Clone, Copy, Debug)]
struct Loan {
    /// The value that is borrowed in the end.
    root: Value,
    /// The borrow that this one was made from.
    parent: Option<Value>,
    exclusive: bool,
    /// Position of the last use.
    last: u32,
    span: Span,
}

/// The borrows of one root that will be used later.
#[derive(Clone, Copy, Default, Debug)]
struct Active {
    all: u32,
    exclusive: u32,
}

/// State of the source block being looked at.
#[derive(Default)]
struct Region {
    loans: FxHashMap<Value, Loan>,
    active: FxHashMap<Value, Active>,
}

impl Checker<'_> {
    pub(super) fn borrows(&mut self) {
        self.uses_across_blocks();
        // MPIR blocks of one source block, in order.
        let mut parts: FxHashMap<u32, Vec<Block>> = FxHashMap::default();
        let mut order = Vec::new();
        for b in self.f.block_ids() {
            let source = self.source_block(b);
            let blocks = parts.entry(source).or_default();
            if blocks.is_empty() {
                order.push(source);
            }
            blocks.push(b);
        }
        for source in order {
            if let Some(blocks) = parts.remove(&source) {
                self.source_region(&blocks);
            }
        }
    }

    /// Borrows that leave the block (MPO0101), are joined (MPO0102) or returned (MPHIR03).
    fn uses_across_blocks(&mut self) {
        let f = self.f;
        let mut home: Vec<Option<u32>> = vec![None; f.locals.len()];
        for b in f.block_ids() {
            for &i in &f.block(b).insts {
                if let Some(v) = f.inst(i).result() {
                    home[v.index()] = Some(self.source_block(b));
                }
            }
        }
        for b in f.block_ids() {
            let here = self.source_block(b);
            for &i in &f.block(b).insts {
                let data = f.inst(i);
                if data.op == Op::Phi {
                    if data.result().is_some_and(|v| self.is_borrow(v)) {
                        self.findings.push(
                            Diagnostic::new(Code::MPO0102, data.span, "a borrow cannot be a phi")
                                .with_help("join the owned values and borrow the result"),
                        );
                    }
                    continue;
                }
                for &v in f.args(i) {
                    if self.is_borrow(v) && home[v.index()].is_some_and(|h| h != here) {
                        self.findings.push(self.used_elsewhere(v, data.span));
                    }
                }
            }
            if let (Terminator::Ret(_), Some(v)) = (&f.block(b).term, f.block(b).term.operand())
                && self.is_borrow(v)
            {
                self.findings.push(
                    Diagnostic::new(
                        Code::MPHIR03,
                        f.block(b).term_span,
                        format!("{} is a borrow and cannot be returned", self.name(v)),
                    )
                    .with_help("return an owned value, or do the work in the caller"),
                );
            }
        }
    }

    fn used_elsewhere(&self, v: Value, span: Span) -> Diagnostic {
        let name = self.name(v);
        let made = self.f.def_inst(v).map_or(Span::NONE, |i| self.f.inst(i).span);
        Diagnostic::new(Code::MPO0101, span, format!("{name} is a borrow of another block"))
            .with_secondary(made, "the borrow is made here")
            .with_help("borrow again in this block: a borrow ends with the block that makes it")
    }

    /// Walks the instructions of one source block in order.
    fn source_region(&mut self, blocks: &[Block]) {
        let f = self.f;
        let mut region = Region::default();
        let insts: Vec<Inst> =
            blocks.iter().flat_map(|&b| f.block(b).insts.iter().copied()).collect();
        let mut last: FxHashMap<Value, u32> = FxHashMap::default();
        for (at, &i) in insts.iter().enumerate() {
            for &v in f.args(i) {
                if self.is_borrow(v) {
                    last.insert(v, at as u32);
                }
            }
        }
        for (at, &i) in insts.iter().enumerate() {
            if f.inst(i).op == Op::Phi {
                continue;
            }
            self.check_forms(i);
            for n in 0..f.args(i).len() {
                self.check_use(&region, i, n);
            }
            self.expire(&mut region, i, at as u32);
            self.open(&mut region, i, &last);
        }
    }

    /// Ends the borrows whose last use is this instruction.
    fn expire(&self, region: &mut Region, i: Inst, at: u32) {
        for &v in self.f.args(i) {
            let Some(loan) = region.loans.get_mut(&v) else { continue };
            if loan.last == at {
                // Several operands may name one borrow.
                loan.last = u32::MAX;
                let active = region.active.entry(loan.root).or_default();
                active.all -= 1;
                active.exclusive -= loan.exclusive as u32;
            }
        }
    }

    /// Starts the borrow that an instruction makes, if it is used later.
    fn open(&self, region: &mut Region, i: Inst, last: &FxHashMap<Value, u32>) {
        let data = self.f.inst(i);
        let Some(v) = data.result().filter(|&v| self.is_borrow(v)) else { return };
        let (Some(&from), Some(&last)) = (self.f.args(i).first(), last.get(&v)) else { return };
        let parent = self.is_borrow(from).then_some(from);
        let root = region.loans.get(&from).map_or(from, |l| l.root);
        let exclusive = self.ref_mode(self.f.ty(v)) == Some(RefMode::MutBorrow);
        region.loans.insert(v, Loan { root, parent, exclusive, last, span: data.span });
        let active = region.active.entry(root).or_default();
        active.all += 1;
        active.exclusive += exclusive as u32;
    }

    /// Whether operand `n` is used in a way that a living borrow of the same value excludes.
    fn check_use(&mut self, region: &Region, i: Inst, n: usize) {
        let f = self.f;
        let v = f.arg(i, n);
        let span = f.inst(i).span;
        let used = self.use_of(i, n);
        let root = region.loans.get(&v).map_or(v, |l| l.root);
        let Some(active) = region.active.get(&root) else { return };
        // The borrow in hand and those it was made from do not exclude themselves.
        let (mut own, mut own_exclusive) = (0, 0);
        let mut handle = Some(v);
        while let Some(h) = handle {
            let Some(loan) = region.loans.get(&h) else { break };
            if loan.last != u32::MAX {
                own += 1;
                own_exclusive += loan.exclusive as u32;
            }
            handle = loan.parent;
        }
        let others = active.all - own;
        let others_exclusive = active.exclusive - own_exclusive;
        let conflict = match used {
            Use::Consume | Use::Mutate => others > 0,
            Use::Read => others_exclusive > 0,
        };
        if !conflict {
            return;
        }
        let name = self.name(root);
        let other = region
            .loans
            .iter()
            .filter(|&(&b, l)| {
                let excludes = used != Use::Read || l.exclusive;
                l.root == root && l.last != u32::MAX && b != v && excludes
            })
            .min_by_key(|(b, _)| **b);
        let (code, message, help) = match used {
            Use::Consume => (
                Code::MPO0011,
                format!("{name} is moved while a borrow of it is used later"),
                "move it after the last use of the borrow",
            ),
            Use::Mutate if f.inst(i).op == Op::SetField => (
                Code::MPHIR02,
                format!("{name} is changed while a borrow of it is used later"),
                "change it through the mutable borrow, or after the last use of the borrow",
            ),
            Use::Mutate => (
                Code::MPO0012,
                format!("{name} is borrowed mutably while another borrow of it is used later"),
                "end the other borrow first: it ends at its last use",
            ),
            Use::Read => (
                Code::MPO0012,
                format!("{name} is borrowed while a mutable borrow of it is used later"),
                "read through the mutable borrow, or after its last use",
            ),
        };
        let mut d = Diagnostic::new(code, span, message).with_help(help);
        if let Some((&b, loan)) = other {
            d = d.with_secondary(loan.span, format!("{} is made here", self.name(b)));
        }
        self.findings.push(d);
    }

    /// Rules about the kind of handle that an operand is.
    fn check_forms(&mut self, i: Inst) {
        let f = self.f;
        let data = f.inst(i);
        let Some(&first) = f.args(i).first() else { return };
        let mode = self.ref_mode(f.ty(first));
        if data.op == Op::GetField && mode.is_none() && self.is_heap_struct(first) {
            let name = self.name(first);
            self.findings.push(
                Diagnostic::new(
                    Code::MPHIR01,
                    data.span,
                    format!("getfield needs a borrow of {name}, which is owned"),
                )
                .with_help(format!(
                    "write `%b = borrow.shared {{ v={name} }}` and use it as `obj`"
                )),
            );
        }
        if self.mutates(i, 0) && matches!(mode, Some(RefMode::Borrow | RefMode::Shared)) {
            let name = self.name(first);
            let (code, what) = match (data.op, mode) {
                (Op::SetField, Some(RefMode::Borrow)) => (Code::MPHIR02, "read-only borrow"),
                (_, Some(RefMode::Borrow)) => (Code::MPO0004, "read-only borrow"),
                _ => (Code::MPO0004, "shared handle"),
            };
            self.findings.push(
                Diagnostic::new(
                    code,
                    data.span,
                    format!("{} cannot change {name}: it is a {what}", data.op.name()),
                )
                .with_help(
                    "change the value through `borrow.mut` of its owner before it is shared",
                ),
            );
        }
        let stored = match data.op {
            Op::New
            | Op::EnumNew
            | Op::ArrFrom
            | Op::StructNew
            | Op::CallableCapture
            | Op::Share => 0,
            Op::SetField | Op::ArrSet | Op::ArrPush | Op::MapSet => 1,
            _ => return,
        };
        for &v in &f.args(i)[stored..] {
            if self.is_borrow(v) {
                let name = self.name(v);
                self.findings.push(
                    Diagnostic::new(
                        Code::MPO0003,
                        data.span,
                        format!("{name} is a borrow and cannot be stored"),
                    )
                    .with_help("store an owned value or a shared handle"),
                );
            }
        }
    }

    fn is_heap_struct(&self, v: Value) -> bool {
        let types = &self.module.types;
        match types.kind(self.f.ty(v)) {
            TypeKind::Struct(s) => types.struct_def(s).category == Category::Heap,
            _ => false,
        }
    }
}
