//! No use after a move (MPO0007), on any path.
//!
//! A value that is given away must not be live behind that: a walk backwards through each block
//! compares what instructions consume with what is used later in the block or live at its end. So
//! the cost is the size of the function and of the live ranges; the use that is complained about is
//! looked for only when there is one.

use super::{Checker, Use};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::analysis::Liveness;
use magpie_mpir::{Block, Op, Terminator, Value};
use rustc_hash::FxHashSet;

/// Marks values for one block after the other, emptied in constant time.
struct Marks<T> {
    slots: Vec<(u32, T)>,
    round: u32,
}

impl<T: Copy> Marks<T> {
    fn new(values: usize, filler: T) -> Marks<T> {
        Marks { slots: vec![(0, filler); values], round: 0 }
    }

    fn set(&mut self, v: Value, mark: T) {
        self.slots[v.index()] = (self.round, mark);
    }

    fn get(&self, v: Value) -> Option<T> {
        let (round, mark) = self.slots[v.index()];
        (round == self.round).then_some(mark)
    }
}

/// A value that is used though an instruction or an edge gives it away.
struct Fault {
    v: Value,
    moved: Span,
    /// The use, when it is in the same block; else the blocks that control goes to.
    used: Option<Span>,
    next: Vec<Block>,
}

impl Checker<'_> {
    pub(super) fn moves(&mut self) {
        let f = self.f;
        let liveness = Liveness::new(f, self.cfg);
        let mut live_out: Marks<()> = Marks::new(f.locals.len(), ());
        let mut used_later = Marks::new(f.locals.len(), Span::NONE);
        let mut faults: Vec<Fault> = Vec::new();
        for &block in self.cfg.rpo() {
            live_out.round += 1;
            used_later.round += 1;
            liveness.live_out(block).iter().for_each(|&v| live_out.set(v, ()));
            self.edge_moves(block, &liveness, &mut faults);
            let term = &f.block(block).term;
            if let (Some(v), Terminator::Ret(_)) = (term.operand(), term) {
                used_later.set(v, f.block(block).term_span);
            }
            for &i in f.block(block).insts.iter().rev() {
                if f.inst(i).op == Op::Phi {
                    break;
                }
                let span = f.inst(i).span;
                let args = f.args(i);
                for (n, &v) in args.iter().enumerate() {
                    if self.use_of(i, n) != Use::Consume {
                        continue;
                    }
                    let twice = args.iter().enumerate().any(|(m, &other)| m != n && other == v);
                    let used = used_later.get(v).or(twice.then_some(span));
                    if used.is_some() || live_out.get(v).is_some() {
                        let next = self.cfg.succs(block).to_vec();
                        faults.push(Fault { v, moved: span, used, next });
                    }
                }
                args.iter().for_each(|&v| used_later.set(v, span));
            }
        }
        // One report a value: the first move in the order of the text.
        faults.sort_by_key(|fault| (fault.v, fault.moved));
        faults.dedup_by_key(|fault| fault.v);
        for fault in faults {
            self.report_moved(fault);
        }
    }

    /// Values that phis of a block take over on the way in, and that are used behind that.
    fn edge_moves(&self, target: Block, liveness: &Liveness, faults: &mut Vec<Fault>) {
        let f = self.f;
        let mut taken: FxHashSet<(Block, Value)> = FxHashSet::default();
        for phi in f.phis(target) {
            if self.module.types.is_copy(f.inst(phi).ty) {
                continue;
            }
            let moved = f.inst(phi).span;
            for (pred, v) in f.phi_arms(phi).filter(|&(_, v)| self.is_owned(v)) {
                if !taken.insert((pred, v)) {
                    faults.push(Fault { v, moved, used: Some(moved), next: Vec::new() });
                } else if liveness.live_in(target).binary_search(&v).is_ok() {
                    faults.push(Fault { v, moved, used: None, next: vec![target] });
                }
            }
        }
    }

    fn report_moved(&mut self, fault: Fault) {
        let used = fault.used.or_else(|| self.first_use(fault.v, fault.next));
        let name = self.name(fault.v);
        self.findings.push(
            Diagnostic::new(
                Code::MPO0007,
                used.unwrap_or(fault.moved),
                format!("{name} is used after it was moved"),
            )
            .with_secondary(fault.moved, format!("{name} is moved here"))
            .with_help(format!(
                "borrow {name} where it is only read, or make a second handle with `share` and \
                 `clone.shared` before the move"
            )),
        );
    }

    /// The nearest use of a value from the start of some blocks on.
    fn first_use(&self, v: Value, next: Vec<Block>) -> Option<Span> {
        let f = self.f;
        let mut seen = vec![false; f.blocks.len()];
        let mut work = std::collections::VecDeque::from(next);
        while let Some(b) = work.pop_front() {
            if std::mem::replace(&mut seen[b.index()], true) {
                continue;
            }
            let block = f.block(b);
            for &i in &block.insts {
                let data = f.inst(i);
                if data.op != Op::Phi && f.args(i).contains(&v) {
                    return Some(data.span);
                }
                if data.result() == Some(v) {
                    break;
                }
            }
            if block.term.operand() == Some(v) {
                return Some(block.term_span);
            }
            for &s in self.cfg.succs(b) {
                let phi = f.phis(s).find(|&phi| f.phi_value(phi, b) == Some(v));
                if let Some(phi) = phi {
                    return Some(f.inst(phi).span);
                }
                work.push_back(s);
            }
        }
        None
    }
}
