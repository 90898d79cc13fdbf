//! SSA construction for variables on a finished reducible graph.

use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, Loops};
use magpie_mpir::{Block, Inst, MpirFn, Value};
use magpie_types::{TypeId, fixed};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Where in a block a variable is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Start,
    End,
}

/// What a variable is at the end of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// What it is at the start.
    FromAbove,
    /// Nothing that anybody reads.
    Undefined,
    Value(Value),
}

/// Builds the SSA values of one variable after the other on a reducible graph.
///
/// Blocks where the variable is live are visited in reverse postorder; a join gets a phi when
/// different values arrive. A loop header gets one when the loop defines the variable.
pub(super) struct Builder<'a> {
    pub(super) f: &'a mut MpirFn,
    undefined: &'a mut Undefined,
    cfg: &'a Cfg,
    loops: &'a Loops,
    ty: TypeId,
    /// A table entry counts when its stamp is this.
    stamp: u32,
    def: Vec<(u32, Out)>,
    live: Vec<(u32, Option<Value>)>,
    defining_loop: Vec<u32>,
    region: Vec<Block>,
    new_phis: Vec<(Block, Inst)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        f: &'a mut MpirFn,
        cfg: &'a Cfg,
        loops: &'a Loops,
        undefined: &'a mut Undefined,
    ) -> Builder<'a> {
        let n = cfg.num_blocks();
        Builder {
            f,
            undefined,
            cfg,
            loops,
            ty: fixed::UNIT,
            stamp: 0,
            def: vec![(0, Out::FromAbove); n],
            live: vec![(0, None); n],
            defining_loop: vec![0; loops.ids().len()],
            region: Vec::new(),
            new_phis: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, ty: TypeId) {
        self.stamp += 1;
        self.ty = ty;
        self.region.clear();
    }

    pub(super) fn define(&mut self, b: Block, v: Value) {
        let out = match self.undefined.values.contains(&v) {
            true => Out::Undefined,
            false => Out::Value(v),
        };
        self.def[b.index()] = (self.stamp, out);
    }

    /// What the variable is at the end of `b` before its value at the start is known.
    fn out(&mut self, b: Block, outside: &impl Fn(Block) -> Out) -> Out {
        let slot = &mut self.def[b.index()];
        if slot.0 != self.stamp {
            *slot = (self.stamp, outside(b));
        }
        self.def[b.index()].1
    }

    fn need(&mut self, b: Block) {
        if self.live[b.index()].0 != self.stamp {
            self.live[b.index()] = (self.stamp, None);
            self.region.push(b);
        }
    }

    /// The values read at the given places. `None` inside stands for "undefined".
    pub(super) fn values(
        &mut self,
        reads: &[(Block, At)],
        outside: impl Fn(Block) -> Out,
    ) -> Vec<Value> {
        for &(b, at) in reads {
            if at == At::Start || self.out(b, &outside) == Out::FromAbove {
                self.need(b);
            }
        }
        let mut next = 0;
        while let Some(&b) = self.region.get(next) {
            next += 1;
            for &p in self.cfg.preds(b) {
                match self.out(p, &outside) {
                    Out::FromAbove => self.need(p),
                    Out::Undefined | Out::Value(_) => self.mark_loops(p),
                }
            }
        }
        self.region.sort_unstable_by_key(|&b| self.cfg.rpo_number(b));
        let mut phis = Vec::new();
        for at in 0..self.region.len() {
            let b = self.region[at];
            let header = self.loops.innermost(b).filter(|&l| self.loops.header(l) == b);
            let varies = header.is_some_and(|l| self.defining_loop[l.index()] == self.stamp);
            let incoming = if varies { Incoming::Several } else { self.incoming(b) };
            let value = match incoming {
                Incoming::None => None,
                Incoming::One(v) => v,
                Incoming::Several => {
                    let span = self.f.block(b).term_span;
                    let phi = self.f.make_phi(self.ty, &[], span);
                    phis.push((b, phi));
                    self.f.inst(phi).result()
                }
            };
            self.live[b.index()].1 = value;
        }
        for &(b, phi) in &phis {
            let arms: Vec<(Block, Value)> =
                self.cfg.preds(b).iter().map(|&p| (p, self.at_end(p))).collect();
            self.f.set_phi_arms(phi, &arms);
        }
        self.new_phis.append(&mut phis);
        reads
            .iter()
            .map(|&(b, at)| match at {
                At::Start => self.at_start(b),
                At::End => self.at_end(b),
            })
            .collect()
    }

    fn mark_loops(&mut self, def: Block) {
        let mut at = self.loops.innermost(def);
        while let Some(l) = at {
            if self.defining_loop[l.index()] == self.stamp {
                break;
            }
            self.defining_loop[l.index()] = self.stamp;
            at = self.loops.parent(l);
        }
    }

    /// What arrives at a block whose forward predecessors are done.
    fn incoming(&self, b: Block) -> Incoming {
        let mut seen = Incoming::None;
        for &p in self.cfg.preds(b) {
            if self.cfg.is_retreating(p, b) {
                continue;
            }
            let value = match self.def[p.index()].1 {
                Out::FromAbove => self.live[p.index()].1,
                Out::Undefined => None,
                Out::Value(v) => Some(v),
            };
            seen = match seen {
                Incoming::None => Incoming::One(value),
                Incoming::One(v) if v == value => seen,
                Incoming::One(_) | Incoming::Several => Incoming::Several,
            };
        }
        seen
    }

    fn at_start(&mut self, b: Block) -> Value {
        match self.live[b.index()].1 {
            Some(v) => v,
            None => self.undefined.value(self.f, self.ty),
        }
    }

    fn at_end(&mut self, b: Block) -> Value {
        match self.def[b.index()].1 {
            Out::FromAbove => self.at_start(b),
            Out::Undefined => self.undefined.value(self.f, self.ty),
            Out::Value(v) => v,
        }
    }

    /// Lists the new phis in their blocks.
    pub(super) fn finish(mut self) {
        self.new_phis.sort_by_key(|&(b, _)| b);
        for group in self.new_phis.chunk_by(|a, b| a.0 == b.0) {
            let phis = group.iter().map(|&(_, phi)| phi);
            self.f.block_mut(group[0].0).insts.splice(0..0, phis);
        }
    }
}

enum Incoming {
    None,
    /// The same from everywhere; `None` when undefined.
    One(Option<Value>),
    Several,
}

/// Stand-ins for values that nobody reads: unlisted instructions, one a type.
#[derive(Default)]
pub(super) struct Undefined {
    by_type: BTreeMap<TypeId, Value>,
    values: FxHashSet<Value>,
}

impl Undefined {
    pub(super) fn value(&mut self, f: &mut MpirFn, ty: TypeId) -> Value {
        if let Some(&v) = self.by_type.get(&ty) {
            return v;
        }
        let stand_in = f.make_phi(ty, &[], Span::NONE);
        let v = f.inst(stand_in).result().unwrap_or(Value(0));
        self.by_type.insert(ty, v);
        self.values.insert(v);
        v
    }

    /// Replaces every stand-in by zero; returns the phi arms where one stood.
    pub(super) fn settle(self, f: &mut MpirFn) -> FxHashSet<(Inst, Block)> {
        let mut arms = FxHashSet::default();
        if self.values.is_empty() {
            return arms;
        }
        for b in f.block_ids() {
            for phi in f.phis(b) {
                let undefined = f.phi_arms(phi).filter(|(_, v)| self.values.contains(v));
                arms.extend(undefined.map(|(p, _)| (phi, p)));
            }
        }
        let zeros = self.by_type.iter().map(|(&ty, &v)| (v, f.zero(ty))).collect();
        f.replace_uses(&zeros);
        arms
    }
}
