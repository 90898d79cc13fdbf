//! Kernels over random control-flow graphs: what no structured generator makes, such as exits
//! through several levels, joins that arms skip, and cycles with several entries.

use super::{RandomArgument, RandomBuffer, RandomKernel, Rng};
use crate::{Block, Builder, Domain, Module, MpirFn, MpirGpuMeta, Op, Value, Variable};
use magpie_diag::Span;
use magpie_types::kernel::GpuBackend;
use magpie_types::{Sid, SidKind, TypeKind, fixed};

/// Which graphs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphShape {
    /// Every cycle is entered at one block.
    Reducible,
    /// Any.
    Any,
}

/// A random reducible graph of at most `nodes` nodes, as successor lists; node 0 is the entry.
/// `below(n)` gives a random number below `n`, or `None` to end early.
///
/// Every such graph can be grown from one node by adding edges from a node to itself and by
/// splitting nodes in two: the inverses of the transformations T1 and T2 by which reducibility is
/// defined (Hecht and Ullman, 1972).
pub fn reducible_graph(
    nodes: usize,
    mut below: impl FnMut(usize) -> Option<usize>,
) -> Vec<Vec<usize>> {
    let mut succs: Vec<Vec<usize>> = vec![vec![]];
    while succs.len() < nodes {
        let Some(n) = below(succs.len()) else { break };
        if below(100).is_some_and(|n| n < 15) {
            if !succs[n].contains(&n) {
                succs[n].push(n);
            }
            continue;
        }
        // `n` keeps the ways in; the new node is entered from it only.
        let new = succs.len();
        let (mut first, mut second) = (vec![new], vec![]);
        for s in std::mem::take(&mut succs[n]) {
            match below(4) {
                Some(0) => first.push(s),
                Some(1) => {
                    first.push(s);
                    second.push(s);
                }
                _ => second.push(s),
            }
        }
        if below(2) == Some(0) {
            first.reverse();
        }
        succs[n] = first;
        succs.push(second);
    }
    succs
}

/// A random graph of `nodes` nodes, reducible or not. `below(n)` gives a random number below `n`.
pub fn any_graph(nodes: usize, mut below: impl FnMut(usize) -> usize) -> Vec<Vec<usize>> {
    (0..nodes)
        .map(|_| {
            let edges = [0, 1, 1, 1, 2, 2, 2, 3][below(8)];
            let mut out = Vec::new();
            for _ in 0..edges {
                let t = below(nodes);
                if !out.contains(&t) {
                    out.push(t);
                }
            }
            out
        })
        .collect()
}

/// Number of edges to the nearest node without successors; `None` where no way leads to one.
fn distances(succs: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut distance: Vec<Option<usize>> =
        succs.iter().map(|s| s.is_empty().then_some(0)).collect();
    for _ in 0..succs.len() {
        for n in 0..succs.len() {
            let nearest = succs[n].iter().filter_map(|&s| distance[s]).min();
            distance[n] = match (distance[n], nearest) {
                (Some(a), Some(b)) => Some(a.min(b + 1)),
                (a, b) => a.or(b.map(|b| b + 1)),
            };
        }
    }
    distance
}

/// The part of a graph that node 0 leads to.
fn reachable(succs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut number = vec![None; succs.len()];
    number[0] = Some(0);
    let mut order = vec![0];
    let mut at = 0;
    while let Some(&n) = order.get(at) {
        at += 1;
        for &s in &succs[n] {
            if number[s].is_none() {
                number[s] = Some(order.len());
                order.push(s);
            }
        }
    }
    order.iter().map(|&n| succs[n].iter().filter_map(|&s| number[s]).collect()).collect()
}

/// Makes a kernel over a random graph of about `nodes` nodes from every one of which a way leads
/// out. Each invocation takes ways of its own for a while, then the shortest one out; what it met
/// on the way is in its element of the output.
pub fn random_graph_kernel(seed: u64, shape: GraphShape, nodes: usize) -> RandomKernel {
    let mut rng = Rng::new(seed);
    let (succs, distance) = loop {
        let succs = match shape {
            GraphShape::Reducible => reducible_graph(nodes, |n| Some(rng.below(n))),
            GraphShape::Any => reachable(&any_graph(nodes, |n| rng.below(n))),
        };
        if let Some(distance) = distances(&succs).into_iter().collect::<Option<Vec<usize>>>() {
            break (succs, distance);
        }
    };
    let mut module = Module::new();
    let buffer = module.types.intern(TypeKind::Buffer(fixed::U32));
    let name = "random.@graph";
    let mut f = MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Device);
    let block = [16, 1, 1];
    f.gpu_meta = Some(MpirGpuMeta {
        target: GpuBackend::Spv,
        workgroup: block,
        is_unsafe: false,
        requires: Vec::new(),
        spans: Default::default(),
    });
    let output = f.add_param("out", buffer, Span::NONE);
    let start = f.add_param("seed", fixed::U32, Span::NONE);
    let mut walk = Walk::new(&mut f, &mut rng, &succs, &distance);
    walk.entry(start);
    for n in 0..succs.len() {
        walk.node(n, output);
    }
    walk.b.finish();
    let kernel = module.add_fn(f);
    let bytes = vec![0; 2 * 16 * 4];
    RandomKernel {
        module,
        kernel,
        grid: [2, 1, 1],
        block,
        arguments: vec![
            RandomArgument::Buffer(0),
            RandomArgument::Scalar((seed as u32).to_le_bytes().to_vec()),
        ],
        buffers: vec![RandomBuffer { element: fixed::U32, bytes }],
    }
}

/// The body in the making. What an invocation carries is in variables.
struct Walk<'a> {
    b: Builder<'a>,
    rng: &'a mut Rng,
    succs: &'a [Vec<usize>],
    distance: &'a [usize],
    blocks: Vec<Block>,
    id: Value,
    random: Variable,
    steps: Variable,
    numbers: Vec<Variable>,
}

/// Nodes an invocation visits before it takes the shortest way out.
const WANDER: u32 = 40;

impl<'a> Walk<'a> {
    fn new(
        f: &'a mut MpirFn,
        rng: &'a mut Rng,
        succs: &'a [Vec<usize>],
        distance: &'a [usize],
    ) -> Walk<'a> {
        let mut b = Builder::new(f);
        let blocks = succs.iter().map(|_| b.create_block()).collect();
        let (random, steps) = (b.declare(fixed::U32), b.declare(fixed::U32));
        let types = [fixed::U32, fixed::U32, fixed::F32, fixed::I32];
        let numbers = types.into_iter().map(|ty| b.declare(ty)).collect();
        let id = b.const_bits(fixed::U32, 0);
        Walk { b, rng, succs, distance, blocks, id, random, steps, numbers }
    }

    fn entry(&mut self, start: Value) {
        self.id = self.b.value(Op::GpuGlobalId, fixed::U32, &[], 0);
        let scale = self.b.const_bits(fixed::U32, 0x9e37_79b1);
        let one = self.b.const_bits(fixed::U32, 1);
        let next = self.b.same(Op::IAdd, &[self.id, one]);
        let own = self.b.same(Op::IMul, &[next, scale]);
        let random = self.b.same(Op::IXor, &[own, start]);
        let random = self.b.same(Op::IOr, &[random, one]);
        self.b.write(self.random, random);
        for n in 0..self.numbers.len() {
            let var = self.numbers[n];
            let v = self.number(next, n);
            self.b.write(var, v);
        }
        self.b.br(self.blocks[0]);
    }

    /// A small number as the type of a variable.
    fn number(&mut self, v: Value, n: usize) -> Value {
        let ty = [fixed::U32, fixed::U32, fixed::F32, fixed::I32][n];
        let mask = self.b.const_bits(fixed::U32, 0xff);
        let small = self.b.same(Op::IAnd, &[v, mask]);
        self.b.cast(small, ty)
    }

    fn node(&mut self, n: usize, output: Value) {
        self.b.switch_to(self.blocks[n]);
        // Xorshift (Marsaglia, 2003).
        let mut random = self.b.read(self.random);
        for (op, amount) in [(Op::IShl, 13), (Op::ILshr, 17), (Op::IShl, 5)] {
            let amount = self.b.const_bits(fixed::U32, amount);
            let moved = self.b.same(op, &[random, amount]);
            random = self.b.same(Op::IXor, &[random, moved]);
        }
        self.b.write(self.random, random);
        let steps = self.b.read(self.steps);
        let one = self.b.const_bits(fixed::U32, 1);
        let steps = self.b.same(Op::IAdd, &[steps, one]);
        self.b.write(self.steps, steps);
        self.compute(n, random);
        let succs = &self.succs[n];
        if succs.is_empty() {
            let trace = self.b.read(self.numbers[0]);
            self.b.effect(Op::GpuBufferStore, &[output, self.id, trace], 0);
            self.b.ret(None);
            return;
        }
        let nearest = (0..succs.len()).min_by_key(|&s| self.distance[succs[s]]).unwrap_or_default();
        let limit = self.b.const_bits(fixed::U32, WANDER as u64);
        let late = self.b.compare(Op::IcmpUgt, steps, limit);
        let eight = self.b.const_bits(fixed::U32, 8);
        let choice = self.b.same(Op::ILshr, &[random, eight]);
        let count = self.b.const_bits(fixed::U32, succs.len() as u64);
        let choice = self.b.same(Op::IUrem, &[choice, count]);
        let out = self.b.const_bits(fixed::U32, nearest as u64);
        let choice = self.b.select(late, out, choice);
        let targets: Vec<Block> = succs.iter().map(|&s| self.blocks[s]).collect();
        match *targets {
            [only] => self.b.br(only),
            [then, else_] if self.rng.chance(80) => {
                let zero = self.b.const_bits(fixed::U32, 0);
                let cond = self.b.compare(Op::IcmpEq, choice, zero);
                self.b.cbr(cond, then, else_);
            }
            _ => {
                let cases = targets.iter().enumerate().skip(1).map(|(n, &t)| (n as u64, t));
                self.b.switch(choice, cases.collect(), targets[0]);
            }
        }
    }

    /// Changes some numbers, and mixes one into the trace.
    fn compute(&mut self, n: usize, random: Value) {
        for _ in 0..self.rng.below(3) {
            let which = 1 + self.rng.below(self.numbers.len() - 1);
            let var = self.numbers[which];
            let old = self.b.read(var);
            let new = self.number(random, which);
            let op = if self.b.ty(old) == fixed::F32 { Op::FAdd } else { Op::IAdd };
            let sum = self.b.same(op, &[old, new]);
            self.b.write(var, sum);
        }
        let read = self.b.read(self.numbers[1 + self.rng.below(self.numbers.len() - 1)]);
        let bits = self.b.inst(Op::BitsCast, fixed::U32, &[read], 0).unwrap_or(read);
        let trace = self.b.read(self.numbers[0]);
        let prime = self.b.const_bits(fixed::U32, 31);
        let scaled = self.b.same(Op::IMul, &[trace, prime]);
        let here = self.b.const_bits(fixed::U32, n as u64 + 1);
        let sum = self.b.same(Op::IAdd, &[scaled, here]);
        let sum = self.b.same(Op::IXor, &[sum, bits]);
        self.b.write(self.numbers[0], sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Cfg, Dominators, Loops};
    use crate::{Stage, verify_module};

    #[test]
    fn kernels_are_well_formed() {
        for seed in 0..200 {
            let k = random_graph_kernel(seed, GraphShape::Reducible, 12);
            verify_module(&k.module, Stage::Core).unwrap();
            let cfg = Cfg::new(k.module.func(k.kernel));
            assert!(Loops::new(&cfg, &Dominators::new(&cfg)).is_reducible());
            let k = random_graph_kernel(seed, GraphShape::Any, 8);
            verify_module(&k.module, Stage::Core).unwrap();
        }
    }

    #[test]
    fn some_graphs_are_irreducible() {
        let is_irreducible = |&seed: &u64| {
            let k = random_graph_kernel(seed, GraphShape::Any, 12);
            let cfg = Cfg::new(k.module.func(k.kernel));
            !Loops::new(&cfg, &Dominators::new(&cfg)).is_reducible()
        };
        assert!((0..100).filter(is_irreducible).count() > 10);
    }
}
