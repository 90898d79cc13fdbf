//! [`Cfg`]: successors, predecessors and an order of the blocks.

use crate::{Block, MpirFn, Terminator};
use std::sync::atomic::{AtomicU64, Ordering};

/// Neighbours of every node of a graph, in one array: those of node `n` are
/// `list[start[n] .. start[n + 1]]`.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Adjacency {
    start: Vec<u32>,
    list: Vec<Block>,
}

impl Adjacency {
    pub(super) fn of(&self, node: usize) -> &[Block] {
        &self.list[self.start[node] as usize..self.start[node + 1] as usize]
    }

    pub(super) fn clear(&mut self) {
        self.start.clear();
        self.start.push(0);
        self.list.clear();
    }

    /// Adds a neighbour to the node that is being filled.
    pub(super) fn push(&mut self, neighbour: Block) {
        self.list.push(neighbour);
    }

    /// Ends the node that is being filled; the next one follows.
    pub(super) fn end_node(&mut self) {
        self.start.push(self.list.len() as u32);
    }

    /// The edges of `forward` (over `nodes` nodes) turned around. Sources appear in node order.
    fn invert(&mut self, forward: &Adjacency, nodes: usize) {
        self.start.clear();
        self.start.resize(nodes + 1, 0);
        for t in &forward.list {
            self.start[t.index() + 1] += 1;
        }
        for n in 0..nodes {
            self.start[n + 1] += self.start[n];
        }
        self.list.clear();
        self.list.resize(forward.list.len(), Block(0));
        // Filling moves each start to its end, which is the next node's start.
        for source in 0..nodes {
            for t in forward.of(source) {
                let slot = &mut self.start[t.index()];
                self.list[*slot as usize] = Block::new(source);
                *slot += 1;
            }
        }
        self.start.copy_within(0..nodes, 1);
        self.start[0] = 0;
    }
}

/// The control-flow graph of a function: edges between *blocks*, each once, whatever the number of
/// branches between them.
///
/// Requires that every branch target exists (the verifier checks that first).
#[derive(Clone, Default, Debug)]
pub struct Cfg {
    succs: Adjacency,
    preds: Adjacency,
    rpo: Vec<Block>,
    rpo_number: Vec<u32>,
    stack: Vec<(Block, u32)>,
    /// Which graph this is: a number of its own for each one computed.
    id: u64,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Targets of a terminator that are compared with what is known of it.
const MAX_COMPARED: usize = 16;

const UNREACHABLE: u32 = u32::MAX;

impl Cfg {
    /// The graph of a function.
    pub fn new(f: &MpirFn) -> Cfg {
        let mut cfg = Cfg::default();
        cfg.compute(f);
        cfg
    }

    /// Recomputes the graph, reusing memory. When it is what it was, nothing is done, and trees and
    /// loops made of it are still right.
    pub fn compute(&mut self, f: &MpirFn) {
        if self.is_of(f) {
            return;
        }
        self.id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let n = f.blocks.len();
        self.succs.clear();
        // `rpo_number` marks the targets seen for the current source until the order is known.
        self.rpo_number.clear();
        self.rpo_number.resize(n, UNREACHABLE);
        for (source, block) in f.blocks.iter().enumerate() {
            block.term.for_each_target(|t| {
                if self.rpo_number[t.index()] != source as u32 {
                    self.rpo_number[t.index()] = source as u32;
                    self.succs.push(t);
                }
            });
            self.succs.end_node();
        }
        self.preds.invert(&self.succs, n);
        self.order(n);
    }

    /// Depth-first search. Successors are walked from the last to the first, so that in reverse
    /// postorder the first one comes first.
    fn order(&mut self, n: usize) {
        self.rpo.clear();
        self.rpo_number.fill(UNREACHABLE);
        if n == 0 {
            return;
        }
        const SEEN: u32 = UNREACHABLE - 1;
        self.stack.clear();
        self.stack.push((Block(0), self.succs.of(0).len() as u32));
        self.rpo_number[0] = SEEN;
        while let Some(top) = self.stack.last_mut() {
            let block = top.0;
            if top.1 == 0 {
                self.stack.pop();
                self.rpo.push(block);
                continue;
            }
            top.1 -= 1;
            let next = self.succs.of(block.index())[top.1 as usize];
            if self.rpo_number[next.index()] == UNREACHABLE {
                self.rpo_number[next.index()] = SEEN;
                self.stack.push((next, self.succs.of(next.index()).len() as u32));
            }
        }
        self.rpo.reverse();
        for (number, b) in self.rpo.iter().enumerate() {
            self.rpo_number[b.index()] = number as u32;
        }
    }

    /// Whether the function has this graph.
    fn is_of(&self, f: &MpirFn) -> bool {
        if self.id == 0 || f.blocks.len() != self.num_blocks() {
            return false;
        }
        f.blocks.iter().enumerate().all(|(b, block)| {
            let known = self.succs.of(b);
            match block.term {
                Terminator::Ret(_) | Terminator::Unreachable => known.is_empty(),
                Terminator::Br(t) => *known == [t],
                Terminator::Cbr { then, else_, .. } if then == else_ => *known == [then],
                Terminator::Cbr { then, else_, .. } => *known == [then, else_],
                Terminator::Switch { ref cases, default, .. } => {
                    // Each target is the next one known, or one before that.
                    let mut seen = 0;
                    let mut is_next = |t: Block| {
                        if known.get(seen) == Some(&t) {
                            seen += 1;
                            return true;
                        }
                        known[..seen].contains(&t)
                    };
                    cases.len() < MAX_COMPARED
                        && cases.iter().all(|c| is_next(c.1))
                        && is_next(default)
                        && seen == known.len()
                }
            }
        })
    }

    /// A number that no other graph has.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Number of blocks, unreachable ones included.
    pub fn num_blocks(&self) -> usize {
        self.rpo_number.len()
    }

    /// The successors, each once, in the order of the terminator.
    pub fn succs(&self, b: Block) -> &[Block] {
        self.succs.of(b.index())
    }

    /// The predecessors, each once, in block order. Unreachable ones are among them.
    pub fn preds(&self, b: Block) -> &[Block] {
        self.preds.of(b.index())
    }

    /// The reachable blocks in reverse postorder.
    pub fn rpo(&self) -> &[Block] {
        &self.rpo
    }

    /// Position of a reachable block in [`Cfg::rpo`]; larger than any position otherwise.
    pub fn rpo_number(&self, b: Block) -> u32 {
        self.rpo_number[b.index()]
    }

    /// Whether a path leads from the entry to the block.
    pub fn is_reachable(&self, b: Block) -> bool {
        self.rpo_number[b.index()] != UNREACHABLE
    }

    /// Whether the edge goes backwards in the order. In a reducible graph these are the edges from
    /// the latches of a loop to its header.
    pub fn is_retreating(&self, from: Block, to: Block) -> bool {
        self.rpo_number(from) >= self.rpo_number(to)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Const, Domain, Terminator};
    use magpie_types::{Sid, SidKind, fixed};

    /// A function whose block `n` has the successors `edges[n]`.
    pub(crate) fn graph(edges: &[&[u32]]) -> MpirFn {
        let sid = Sid::new(SidKind::Function, "t.@f");
        let mut f = MpirFn::new(sid, "t.@f", fixed::UNIT, Domain::Device);
        let cond = f.add_param("c", fixed::BOOL, magpie_diag::Span::NONE);
        for targets in edges {
            let b = f.add_block();
            f.block_mut(b).term = match **targets {
                [] => Terminator::Ret(None),
                [t] => Terminator::Br(Block(t)),
                [t, e] => Terminator::Cbr { cond, then: Block(t), else_: Block(e) },
                [d, ref cases @ ..] => Terminator::Switch {
                    value: f.constant(fixed::U32, Const::Bits(0)),
                    cases: cases.iter().map(|&c| (c as u64, Block(c))).collect(),
                    default: Block(d),
                },
            };
        }
        f
    }

    pub(crate) fn blocks(ids: &[u32]) -> Vec<Block> {
        ids.iter().map(|&b| Block(b)).collect()
    }

    #[test]
    fn edges_are_between_blocks() {
        let f = graph(&[&[1, 1], &[2, 1, 1, 2], &[]]);
        let cfg = Cfg::new(&f);
        assert_eq!(cfg.succs(Block(0)), blocks(&[1]));
        assert_eq!(cfg.succs(Block(1)), blocks(&[1, 2]));
        assert_eq!(cfg.preds(Block(1)), blocks(&[0, 1]));
        assert_eq!(cfg.preds(Block(2)), blocks(&[1]));
        assert!(cfg.preds(Block(0)).is_empty());
    }

    #[test]
    fn order_keeps_the_first_arm_first() {
        let f = graph(&[&[1, 2], &[3], &[3], &[], &[3]]);
        let cfg = Cfg::new(&f);
        assert_eq!(cfg.rpo(), blocks(&[0, 1, 2, 3]));
        assert!(!cfg.is_reachable(Block(4)));
        assert_eq!(cfg.preds(Block(3)), blocks(&[1, 2, 4]));
        assert!(!cfg.is_retreating(Block(1), Block(3)));
    }

    #[test]
    fn memory_is_reused() {
        let mut cfg = Cfg::new(&graph(&[&[1], &[2], &[0]]));
        assert!(cfg.is_retreating(Block(2), Block(0)));
        cfg.compute(&graph(&[&[]]));
        assert_eq!((cfg.num_blocks(), cfg.rpo()), (1, &blocks(&[0])[..]));
    }

    #[test]
    fn an_unchanged_graph_keeps_its_number() {
        let mut cfg = Cfg::new(&graph(&[&[1], &[2, 1, 3, 2], &[3], &[]]));
        let id = cfg.id();
        cfg.compute(&graph(&[&[1], &[2, 1, 3, 2], &[3], &[]]));
        assert_eq!(cfg.id(), id);
        for changed in [
            graph(&[&[1], &[2, 1, 2, 2], &[3], &[]]),
            graph(&[&[1], &[2, 1, 3, 2], &[3, 1], &[]]),
            graph(&[&[1], &[2, 1, 3, 2], &[3], &[], &[]]),
        ] {
            let mut other = cfg.clone();
            other.compute(&changed);
            assert_ne!(other.id(), id);
            assert_eq!(other.preds, Cfg::new(&changed).preds);
        }
    }

    #[test]
    fn a_long_chain_needs_no_recursion() {
        let edges: Vec<Vec<u32>> = (0..200_000).map(|n| vec![n + 1]).chain([vec![]]).collect();
        let edges: Vec<&[u32]> = edges.iter().map(|e| &e[..]).collect();
        assert_eq!(Cfg::new(&graph(&edges)).rpo().len(), 200_001);
    }
}
