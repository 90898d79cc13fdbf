//! Sparse conditional constant propagation (Wegman and Zadeck, 1991).
//!
//! Values start unknown and blocks unreached; what is proved to be a constant under the
//! assumption that unreached code stays so becomes one. It finds constants that go round loops,
//! which folding does not.

use super::PassContext;
use super::context::refill;
use crate::analysis::{Positions, User, Uses};
use crate::eval::eval;
use crate::{Block, Const, Domain, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;

/// Replaces scalar values that are constant on every path taken, and branches whose way follows.
/// Blocks that are then not reached remain for [`super::simplify_cfg`].
pub fn sccp(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    // Without branches there is nothing that folding does not see.
    if f.domain == Domain::Host || f.blocks.len() < 2 {
        return false;
    }
    let PassContext { propagation, uses, positions, replacements, .. } = ctx;
    uses.compute(f);
    positions.compute(f);
    propagation.start(f);
    let mut solver = Solver { f, uses, positions, s: propagation };
    solver.solve();
    replacements.start(f);
    let mut changed = false;
    for v in (0..f.locals.len()).map(Value::new) {
        if let (Lattice::Constant(bits), ValueDef::Inst(i)) = (propagation.value(v), f.def(v))
            && positions.block(i).is_some()
        {
            let constant = f.const_bits(f.ty(v), bits);
            replacements.set(v, constant);
            changed = true;
        }
    }
    replacements.apply(f);
    changed
}

/// What is known of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lattice {
    /// No path that was taken computes it.
    Unknown,
    /// Every path taken computes these bits.
    Constant(u64),
    /// Anything.
    Varying,
}

/// Working memory of the pass.
#[derive(Clone, Default, Debug)]
pub(super) struct Propagation {
    known: Vec<Lattice>,
    reached: Vec<bool>,
    /// By block: the ways out of it that are taken.
    ways: Vec<Ways>,
    /// Edges newly taken, and values newly lowered.
    edges: Vec<(Block, Block)>,
    changed: Vec<Value>,
}

/// Which ways out of a block are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ways {
    None,
    /// The ones that a constant condition chooses.
    One(Block),
    All,
}

impl Propagation {
    fn start(&mut self, f: &MpirFn) {
        self.known.clear();
        self.known.extend(f.locals.iter().map(|local| match local.def {
            ValueDef::Const(Const::Bits(bits)) => Lattice::Constant(bits),
            ValueDef::Const(_) | ValueDef::Param(_) => Lattice::Varying,
            ValueDef::Inst(_) => Lattice::Unknown,
        }));
        refill(&mut self.reached, f.blocks.len(), false);
        refill(&mut self.ways, f.blocks.len(), Ways::None);
        self.edges.clear();
        self.changed.clear();
    }

    fn value(&self, v: Value) -> Lattice {
        self.known[v.index()]
    }
}

struct Solver<'a> {
    f: &'a MpirFn,
    uses: &'a Uses,
    positions: &'a Positions,
    s: &'a mut Propagation,
}

impl Solver<'_> {
    fn solve(&mut self) {
        self.reach(Block(0));
        loop {
            if let Some((from, to)) = self.s.edges.pop() {
                self.enter(from, to);
            } else if let Some(v) = self.s.changed.pop() {
                for &user in self.uses.of(v) {
                    match user {
                        User::Inst(i, n) => self.operand_changed(i, n),
                        User::Terminator(b) if self.s.reached[b.index()] => self.branch(b),
                        User::Terminator(_) => {}
                    }
                }
            } else {
                return;
            }
        }
    }

    /// Takes an edge for the first time.
    fn enter(&mut self, from: Block, to: Block) {
        for i in self.f.phis(to) {
            if let Some(v) = self.f.phi_value(i, from) {
                self.meet(i, self.s.value(v));
            }
        }
        if !self.s.reached[to.index()] {
            self.reach(to);
        }
    }

    fn reach(&mut self, b: Block) {
        self.s.reached[b.index()] = true;
        for &i in &self.f.block(b).insts {
            if self.f.inst(i).op != Op::Phi {
                self.evaluate(i);
            }
        }
        self.branch(b);
    }

    fn operand_changed(&mut self, i: Inst, n: u32) {
        let Some(b) = self.positions.block(i) else { return };
        if self.f.inst(i).op == Op::Phi {
            let Some((from, v)) = self.f.phi_arms(i).nth(n as usize) else { return };
            if self.takes(from, b) {
                self.meet(i, self.s.value(v));
            }
        } else if self.s.reached[b.index()] {
            self.evaluate(i);
        }
    }

    fn takes(&self, from: Block, to: Block) -> bool {
        match self.s.ways[from.index()] {
            Ways::None => false,
            Ways::One(b) => b == to,
            Ways::All => true,
        }
    }

    /// Finds the ways that are taken out of a block.
    fn branch(&mut self, b: Block) {
        let term = &self.f.block(b).term;
        let known = term.operand().map(|v| self.s.value(v));
        let now = match (term, known) {
            (_, Some(Lattice::Unknown)) => return,
            (Terminator::Cbr { then, else_, .. }, Some(Lattice::Constant(bits))) => {
                Ways::One(if bits & 1 == 1 { *then } else { *else_ })
            }
            (Terminator::Switch { cases, default, .. }, Some(Lattice::Constant(bits))) => {
                Ways::One(cases.iter().find(|c| c.0 == bits).map_or(*default, |c| c.1))
            }
            (
                Terminator::Ret(_)
                | Terminator::Br(_)
                | Terminator::Cbr { .. }
                | Terminator::Switch { .. }
                | Terminator::Unreachable,
                _,
            ) => Ways::All,
        };
        let before = std::mem::replace(&mut self.s.ways[b.index()], now);
        match (before, now) {
            (Ways::None, Ways::One(to)) => self.s.edges.push((b, to)),
            (Ways::None | Ways::One(_), Ways::All) => {
                let mut last = None;
                let edges = &mut self.s.edges;
                term.for_each_target(|to| {
                    if before != Ways::One(to) && last != Some(to) {
                        edges.push((b, to));
                    }
                    last = Some(to);
                });
            }
            // Once a condition varies it stays so, and a constant does not become another.
            (Ways::One(_) | Ways::All, _) | (Ways::None, Ways::None) => {}
        }
    }

    fn evaluate(&mut self, i: Inst) {
        let f = self.f;
        let inst = f.inst(i);
        let Some(result) = inst.result() else { return };
        if self.s.value(result) == Lattice::Varying {
            return;
        }
        let args = f.args(i);
        let select = inst.op == Op::Select;
        let typed = if select { args.get(1) } else { args.first() };
        let (Some(from), Some(to)) =
            (typed.and_then(|&v| PrimType::from_id(f.ty(v))), PrimType::from_id(inst.ty))
        else {
            return self.meet(i, Lattice::Varying);
        };
        let mut bits = [0; 3];
        if !inst.op.is_pure() || args.len() > bits.len() {
            return self.meet(i, Lattice::Varying);
        }
        let mut unknown = false;
        for (n, &v) in args.iter().enumerate() {
            match self.s.value(v) {
                Lattice::Constant(c) => bits[n] = c,
                Lattice::Unknown => unknown = true,
                // Zero and all ones decide `and` and `or` alone; those are left to folding.
                Lattice::Varying => return self.meet(i, Lattice::Varying),
            }
        }
        if !unknown {
            let value = eval(inst.op, from, to, &bits[..args.len()]);
            self.meet(i, value.map_or(Lattice::Varying, Lattice::Constant));
        }
    }

    /// Lowers what is known of the result by one more possibility.
    fn meet(&mut self, i: Inst, other: Lattice) {
        let Some(v) = self.f.inst(i).result() else { return };
        let before = self.s.value(v);
        let after = match (before, other) {
            (known, Lattice::Unknown) | (Lattice::Unknown, known) => known,
            (Lattice::Constant(a), Lattice::Constant(b)) if a == b => before,
            _ => Lattice::Varying,
        };
        if after != before {
            self.s.known[v.index()] = after;
            self.s.changed.push(v);
        }
    }
}
