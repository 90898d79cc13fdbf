//! Executes a kernel over its graph and over its tree.

use super::super::{Node, NodeList, PhiCopy, StructuredBody, phi_copies};
use magpie_mpir::eval::eval;
use magpie_mpir::{Block, Const, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;

/// What a run did: the stores in order, and whether it ended by itself.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Trace {
    stores: Vec<(u64, u64)>,
    ended: bool,
}

const MAX_STORES: usize = 200;

struct Machine<'a> {
    f: &'a MpirFn,
    values: Vec<Option<u64>>,
    random: u64,
    trace: Trace,
    /// Blocks entered; bounds a run that stores nothing.
    steps: usize,
}

impl<'a> Machine<'a> {
    fn new(f: &'a MpirFn, seed: u64) -> Machine<'a> {
        let trace = Trace { stores: vec![], ended: false };
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut m = Machine { f, values: vec![None; f.locals.len()], random, trace, steps: 0 };
        m.values[f.params[2].0.index()] = Some(seed & 0xffff);
        m
    }

    fn get(&self, v: Value) -> u64 {
        self.try_get(v).unwrap_or_else(|| panic!("{v:?} is not defined"))
    }

    /// A value; copies may move one that is not defined, as long as nobody looks at it.
    fn try_get(&self, v: Value) -> Option<u64> {
        match self.f.def(v) {
            ValueDef::Const(Const::Bits(b)) => Some(b),
            _ => self.values[v.index()],
        }
    }

    fn prim(&self, v: Value) -> PrimType {
        PrimType::from_id(self.f.ty(v)).expect("a scalar")
    }

    fn full(&self) -> bool {
        self.trace.stores.len() >= MAX_STORES || self.steps > 100_000
    }

    /// The phis of `b` for the edge from `from`, all at once.
    fn phis(&mut self, from: Option<Block>, b: Block) {
        let read = |phi| {
            let from = from.expect("the entry has no phis");
            self.f.phi_value(phi, from).unwrap_or_else(|| panic!("no arm {from:?} in {b:?}"))
        };
        let values: Vec<_> =
            self.f.phis(b).map(|phi| (self.f.inst(phi).result(), self.get(read(phi)))).collect();
        for (result, value) in values {
            self.values[result.expect("phis have results").index()] = Some(value);
        }
    }

    fn block(&mut self, b: Block) {
        self.steps += 1;
        for &i in &self.f.block(b).insts {
            let data = self.f.inst(i);
            let args = self.f.args(i);
            match data.op {
                Op::Phi => {}
                Op::GpuBufferLoad => {
                    self.random ^= self.random << 13;
                    self.random ^= self.random >> 7;
                    self.random ^= self.random << 17;
                    let result = data.result().expect("a load has a result");
                    self.values[result.index()] = Some(self.random >> 40);
                }
                Op::GpuBufferStore => {
                    let (index, value) = (self.get(args[1]), self.get(args[2]));
                    self.trace.stores.push((index, value));
                }
                Op::GpuLocal => self.trace.stores.push((u64::MAX, 0)),
                op => {
                    let from = self.prim(args[(op == Op::Select) as usize]);
                    let bits: Vec<u64> = args.iter().map(|&v| self.get(v)).collect();
                    let result = data.result().expect("pure ops have results");
                    let value = eval(op, from, self.prim(result), &bits);
                    self.values[result.index()] = Some(value.expect("a scalar op"));
                }
            }
        }
    }

    fn next(&self, b: Block) -> Option<Block> {
        match &self.f.block(b).term {
            Terminator::Ret(_) => None,
            Terminator::Br(t) => Some(*t),
            Terminator::Cbr { cond, then, else_ } => {
                Some(if self.get(*cond) == 1 { *then } else { *else_ })
            }
            Terminator::Switch { value, cases, default } => {
                let v = self.get(*value);
                Some(cases.iter().find(|c| c.0 == v).map_or(*default, |c| c.1))
            }
            Terminator::Unreachable => panic!("{b:?} was reached"),
        }
    }
}

/// Runs over the graph.
pub(super) fn run_graph(f: &MpirFn, seed: u64) -> Trace {
    let mut m = Machine::new(f, seed);
    let (mut from, mut at) = (None, Block(0));
    while !m.full() {
        m.phis(from, at);
        m.block(at);
        match m.next(at) {
            Some(next) => (from, at) = (Some(at), next),
            None => {
                m.trace.ended = !m.full();
                break;
            }
        }
    }
    m.trace
}

/// How a run over the tree gets its phis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phis {
    /// From the edge taken.
    Edges,
    /// From [`phi_copies`].
    Copies,
}

/// Runs over the tree; at each step the graph must agree about the next block.
pub(super) fn run_tree(f: &MpirFn, body: &StructuredBody, seed: u64, phis: Phis) -> Trace {
    let mut m = Machine::new(f, seed);
    let copies = phi_copies(f, body);
    let mut temporaries = vec![None; copies.temporaries.len()];
    // Where each list around the place goes on, innermost last.
    enum Around {
        List(NodeList, usize),
        Loop { header: Block, latch: Block },
    }
    let mut stack = vec![Around::List(body.root(), 0)];
    let mut from: Option<Block> = None;
    let mut expected: Option<Block> = None;
    let mut visit = |m: &mut Machine<'_>, from: &mut Option<Block>, b: Block| {
        match expected {
            Some(e) => assert_eq!(e, b, "the tree goes elsewhere than the graph"),
            None => assert_eq!(b, Block(0)),
        }
        if phis == Phis::Edges {
            m.phis(*from, b);
        }
        m.block(b);
        for copy in copies.at(b).iter().filter(|_| phis == Phis::Copies) {
            match *copy {
                PhiCopy::Assign { phi, source } => m.values[phi.index()] = m.try_get(source),
                PhiCopy::Save { temporary, phi } => {
                    temporaries[temporary as usize] = m.try_get(phi)
                }
                PhiCopy::Restore { phi, temporary } => {
                    m.values[phi.index()] = temporaries[temporary as usize];
                }
            }
        }
        expected = m.next(b);
        *from = Some(b);
    };
    while let Some(around) = stack.pop() {
        if m.full() {
            return m.trace;
        }
        let Around::List(list, at) = around else { panic!("the body of a loop ends openly") };
        let Some(node) = body.nodes(list).get(at) else { continue };
        stack.push(Around::List(list, at + 1));
        match node {
            Node::Block(b) => visit(&mut m, &mut from, *b),
            Node::IfElse { cond, then, else_, .. } => {
                let taken = if m.get(*cond) == 1 { then } else { else_ };
                stack.push(Around::List(*taken, 0));
            }
            Node::Switch { value, arms, default, .. } => {
                let v = m.get(*value);
                let arm = arms.iter().find(|a| a.labels.contains(&v)).map_or(*default, |a| a.body);
                stack.push(Around::List(arm, 0));
            }
            Node::Loop { header, body: inside, latch, .. } => {
                visit(&mut m, &mut from, *header);
                stack.push(Around::Loop { header: *header, latch: *latch });
                stack.push(Around::List(*inside, 0));
            }
            Node::Break => while !matches!(stack.pop(), Some(Around::Loop { .. })) {},
            Node::Continue => {
                let mut popped = vec![];
                while let Some(Around::List(list, at)) =
                    stack.pop_if(|a| matches!(a, Around::List(..)))
                {
                    popped.push((list, at));
                }
                let Some(&Around::Loop { header, latch }) = stack.last() else {
                    panic!("continue outside a loop")
                };
                visit(&mut m, &mut from, latch);
                visit(&mut m, &mut from, header);
                let inside = popped.last().expect("the body").0;
                stack.push(Around::List(inside, 0));
            }
            Node::Return => {
                m.trace.ended = !m.full();
                return m.trace;
            }
            Node::Unreachable => panic!("an unreachable place was reached"),
        }
    }
    panic!("the tree ends openly")
}
