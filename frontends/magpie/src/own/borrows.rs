//! What a borrow may be used for, where, and what it excludes.

use super::{Checker, Use};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Block, Inst, Op, Terminator, Value};
use magpie_types::RefMode;
use rustc_hash::FxHashMap;

/// A borrow made in the source block being looked at.
#[derive(Clone, Copy, Debug)]
struct Loan {
    /// The value that is borrowed in the end.
    root: Value,
    /// The borrow that this one was made from.
    parent: Option<Value>,
    exclusive: bool,
    /// Position of the last use; `ENDED` when that is past.
    last: u32,
    span: Span,
}

const ENDED: u32 = u32::MAX;

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
    /// Position of the last use of each borrow.
    last: FxHashMap<Value, u32>,
}

impl Region {
    fn root(&self, v: Value) -> Value {
        self.loans.get(&v).map_or(v, |loan| loan.root)
    }
}

impl Checker<'_> {
    pub(super) fn borrows(&mut self) {
        self.uses_across_blocks();
        // The MPIR blocks of a source block, in order.
        let mut order: Vec<Block> = self.f.block_ids().collect();
        let source = self.source;
        order.sort_by_key(|&b| (source.block(b), b));
        for blocks in order.chunk_by(|&a, &b| source.block(a) == source.block(b)) {
            self.source_region(blocks);
        }
    }

    /// Borrows that leave the block (MPO0101), are joined (MPO0102) or returned (MPHIR03).
    fn uses_across_blocks(&mut self) {
        let f = self.f;
        // By value: the source block of a borrow, plus one.
        let mut home: Vec<u32> = vec![0; f.locals.len()];
        for b in f.block_ids() {
            for &i in &f.block(b).insts {
                let data = f.inst(i);
                if let Some(v) = data.result()
                    && data.op != Op::Phi
                    && self.is_borrow(v)
                {
                    home[v.index()] = self.source.block(b) + 1;
                }
            }
        }
        for b in f.block_ids() {
            let here = self.source.block(b) + 1;
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
                    if home[v.index()] != 0 && home[v.index()] != here {
                        self.used_elsewhere(v, data.span);
                    }
                }
            }
            let term = &f.block(b).term;
            if let (Some(v), Terminator::Ret(_)) = (term.operand(), term)
                && self.is_borrow(v)
            {
                let message = format!("{} is a borrow and cannot be returned", self.name(v));
                self.findings.push(
                    Diagnostic::new(Code::MPHIR03, f.block(b).term_span, message)
                        .with_help("return an owned value, or do the work in the caller"),
                );
            }
        }
    }

    fn used_elsewhere(&mut self, v: Value, span: Span) {
        let name = self.name(v);
        let made = self.f.def_inst(v).map_or(Span::NONE, |i| self.f.inst(i).span);
        self.findings.push(
            Diagnostic::new(Code::MPO0101, span, format!("{name} is a borrow of another block"))
                .with_secondary(made, "the borrow is made here")
                .with_help(
                    "borrow again in this block: a borrow ends with the block that makes it",
                ),
        );
    }

    /// Walks the instructions of one source block in order.
    fn source_region(&mut self, blocks: &[Block]) {
        let f = self.f;
        let mut region = Region::default();
        let insts = blocks.iter().flat_map(|&b| f.block(b).insts.iter().copied());
        let insts: Vec<Inst> = insts.filter(|&i| f.inst(i).op != Op::Phi).collect();
        for (at, &i) in insts.iter().enumerate() {
            for &v in f.args(i) {
                if self.is_borrow(v) {
                    region.last.insert(v, at as u32);
                }
            }
        }
        if region.last.is_empty() {
            // Borrows of a single instruction exclude each other only.
            insts.iter().for_each(|&i| self.check_operands(&region, i));
            return;
        }
        for (at, &i) in insts.iter().enumerate() {
            let before = self.findings.len();
            self.check_operands(&region, i);
            (0..f.args(i).len()).for_each(|n| self.check_use(&region, i, n));
            self.expire(&mut region, i, at as u32);
            // What a refused borrow excludes is not of interest.
            if self.findings.len() == before {
                self.open(&mut region, i);
            }
        }
    }

    /// Ends the borrows whose last use is this instruction.
    fn expire(&self, region: &mut Region, i: Inst, at: u32) {
        for &v in self.f.args(i) {
            let Some(loan) = region.loans.get_mut(&v) else { continue };
            if loan.last == at {
                // Several operands may name one borrow.
                loan.last = ENDED;
                let active = region.active.entry(loan.root).or_default();
                active.all -= 1;
                active.exclusive -= u32::from(loan.exclusive);
            }
        }
    }

    /// Starts the borrow that an instruction makes, if it is used later.
    fn open(&self, region: &mut Region, i: Inst) {
        let data = self.f.inst(i);
        let Some(v) = data.result().filter(|&v| self.is_borrow(v)) else { return };
        let (Some(&from), Some(&last)) = (self.f.args(i).first(), region.last.get(&v)) else {
            return;
        };
        let parent = self.is_borrow(from).then_some(from);
        let root = region.root(from);
        let exclusive = self.ref_mode(self.f.ty(v)) == Some(RefMode::MutBorrow);
        region.loans.insert(v, Loan { root, parent, exclusive, last, span: data.span });
        let active = region.active.entry(root).or_default();
        active.all += 1;
        active.exclusive += u32::from(exclusive);
    }

    /// Whether two operands of one instruction reach one value, and one of them changes it.
    fn check_operands(&mut self, region: &Region, i: Inst) {
        let args = self.f.args(i);
        for (n, &v) in args.iter().enumerate() {
            if self.use_of(i, n) != Use::Mutate {
                continue;
            }
            let root = region.root(v);
            let other = args.iter().enumerate().any(|(m, &other)| {
                let counts = self.is_borrow(other) || self.is_owned(other);
                m != n && counts && region.root(other) == root && (m > n || other != v)
            });
            if other {
                let name = self.name(root);
                let message = format!("{name} is changed here and used by another argument");
                self.findings.push(
                    Diagnostic::new(Code::MPO0012, self.f.inst(i).span, message)
                        .with_help("pass another value, or work in two steps"),
                );
                return;
            }
        }
    }

    /// Whether operand `n` is used in a way that a living borrow of the same value excludes.
    fn check_use(&mut self, region: &Region, i: Inst, n: usize) {
        let f = self.f;
        let v = f.arg(i, n);
        let used = self.use_of(i, n);
        let root = region.root(v);
        let Some(active) = region.active.get(&root).filter(|active| active.all > 0) else {
            return;
        };
        // The borrow in hand and those it was made from do not exclude themselves.
        let (mut own, mut own_exclusive) = (0, 0);
        let mut handle = Some(v);
        while let Some(loan) = handle.and_then(|h| region.loans.get(&h)) {
            if loan.last != ENDED {
                own += 1;
                own_exclusive += u32::from(loan.exclusive);
            }
            handle = loan.parent;
        }
        let conflict = match used {
            Use::Consume | Use::Mutate => active.all > own,
            Use::Read => active.exclusive > own_exclusive,
        };
        if conflict {
            self.report_conflict(region, i, v, used);
        }
    }

    fn report_conflict(&mut self, region: &Region, i: Inst, v: Value, used: Use) {
        let root = region.root(v);
        let name = self.name(root);
        let (code, message, help) = match used {
            Use::Consume => (
                Code::MPO0011,
                format!("{name} is moved while a borrow of it is used later"),
                "move it after the last use of the borrow",
            ),
            Use::Mutate if self.f.inst(i).op == Op::SetField => (
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
        let excludes = |entry: &(&Value, &Loan)| {
            let (&b, loan) = *entry;
            let counts = used != Use::Read || loan.exclusive;
            loan.root == root && loan.last != ENDED && b != v && counts
        };
        let other = region.loans.iter().filter(excludes).min_by_key(|(b, _)| **b);
        let mut d = Diagnostic::new(code, self.f.inst(i).span, message).with_help(help);
        if let Some((&b, loan)) = other {
            d = d.with_secondary(loan.span, format!("{} is made here", self.name(b)));
        }
        self.findings.push(d);
    }
}
