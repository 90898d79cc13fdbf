//! Dominator and postdominator trees.
//!
//! Built with the algorithm of Lengauer and Tarjan (1979) with path compression, in
//! O(edges · log blocks).

use super::cfg::{Adjacency, Cfg};
use crate::{Block, MpirFn, Terminator};

const NONE: u32 = u32::MAX;

/// Working memory of the algorithm; indices are depth-first numbers.
#[derive(Clone, Default, Debug)]
struct Scratch {
    number: Vec<u32>,
    vertex: Vec<u32>,
    parent: Vec<u32>,
    semi: Vec<u32>,
    label: Vec<u32>,
    ancestor: Vec<u32>,
    bucket_head: Vec<u32>,
    bucket_next: Vec<u32>,
    dom: Vec<u32>,
    path: Vec<u32>,
    stack: Vec<(u32, u32)>,
}

impl Scratch {
    fn search<'a>(&mut self, nodes: usize, root: usize, succs: impl Fn(usize) -> &'a [Block]) {
        self.number.clear();
        self.number.resize(nodes, NONE);
        self.vertex.clear();
        self.parent.clear();
        self.stack.clear();
        self.stack.push((root as u32, 0));
        self.number[root] = 0;
        self.vertex.push(root as u32);
        self.parent.push(NONE);
        while let Some(top) = self.stack.last_mut() {
            let node = top.0;
            let Some(next) = succs(node as usize).get(top.1 as usize) else {
                self.stack.pop();
                continue;
            };
            top.1 += 1;
            if self.number[next.index()] == NONE {
                self.number[next.index()] = self.vertex.len() as u32;
                self.parent.push(self.number[node as usize]);
                self.vertex.push(next.0);
                self.stack.push((next.0, 0));
            }
        }
    }

    /// The vertex with the smallest semidominator on the linked path above `v`.
    fn eval(&mut self, v: u32) -> u32 {
        if self.ancestor[v as usize] == NONE {
            return v;
        }
        self.path.clear();
        let mut u = v;
        while self.ancestor[self.ancestor[u as usize] as usize] != NONE {
            self.path.push(u);
            u = self.ancestor[u as usize];
        }
        while let Some(u) = self.path.pop() {
            let a = self.ancestor[u as usize] as usize;
            let above = self.label[a];
            if self.semi[above as usize] < self.semi[self.label[u as usize] as usize] {
                self.label[u as usize] = above;
            }
            self.ancestor[u as usize] = self.ancestor[a];
        }
        self.label[v as usize]
    }

    /// Immediate dominators by node; `NONE` for the root and for nodes that it does not reach.
    fn idoms<'a>(
        &mut self,
        nodes: usize,
        root: usize,
        succs: impl Fn(usize) -> &'a [Block],
        preds: impl Fn(usize) -> &'a [Block],
        idom: &mut Vec<u32>,
    ) {
        self.search(nodes, root, succs);
        let n = self.vertex.len();
        self.semi.clear();
        self.semi.extend(0..n as u32);
        self.label.clear();
        self.label.extend(0..n as u32);
        for list in
            [&mut self.ancestor, &mut self.bucket_head, &mut self.bucket_next, &mut self.dom]
        {
            list.clear();
            list.resize(n, NONE);
        }
        for w in (1..n as u32).rev() {
            for p in preds(self.vertex[w as usize] as usize) {
                let p = self.number[p.index()];
                if p != NONE {
                    let u = self.eval(p);
                    self.semi[w as usize] = self.semi[w as usize].min(self.semi[u as usize]);
                }
            }
            let semi = self.semi[w as usize] as usize;
            self.bucket_next[w as usize] = self.bucket_head[semi];
            self.bucket_head[semi] = w;
            let parent = self.parent[w as usize];
            self.ancestor[w as usize] = parent;
            let mut v = std::mem::replace(&mut self.bucket_head[parent as usize], NONE);
            while v != NONE {
                let u = self.eval(v);
                self.dom[v as usize] =
                    if self.semi[u as usize] < self.semi[v as usize] { u } else { parent };
                v = self.bucket_next[v as usize];
            }
        }
        idom.clear();
        idom.resize(nodes, NONE);
        for w in 1..n {
            if self.dom[w] != self.semi[w] {
                self.dom[w] = self.dom[self.dom[w] as usize];
            }
            idom[self.vertex[w] as usize] = self.vertex[self.dom[w] as usize];
        }
    }
}

/// A tree over nodes with preorder intervals.
#[derive(Clone, Default, Debug)]
struct Tree {
    parent: Vec<u32>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    /// Preorder position, and the largest one in the subtree.
    first: Vec<u32>,
    last: Vec<u32>,
    depth: Vec<u32>,
    preorder: Vec<Block>,
}

impl Tree {
    /// Fills everything from `parent`. Children keep the order of `order`, which lists the nodes
    /// that have a parent.
    fn finish(&mut self, root: usize, order: impl DoubleEndedIterator<Item = usize>) {
        let nodes = self.parent.len();
        for list in [&mut self.first_child, &mut self.next_sibling, &mut self.first, &mut self.last]
        {
            list.clear();
            list.resize(nodes, NONE);
        }
        self.depth.clear();
        self.depth.resize(nodes, 0);
        for n in order.rev() {
            let p = self.parent[n];
            if p != NONE {
                self.next_sibling[n] = self.first_child[p as usize];
                self.first_child[p as usize] = n as u32;
            }
        }
        self.preorder.clear();
        let mut n = root;
        loop {
            self.first[n] = self.preorder.len() as u32;
            self.preorder.push(Block::new(n));
            if self.first_child[n] != NONE {
                let child = self.first_child[n] as usize;
                self.depth[child] = self.depth[n] + 1;
                n = child;
                continue;
            }
            loop {
                self.last[n] = self.preorder.len() as u32 - 1;
                if n == root {
                    return;
                }
                let sibling = self.next_sibling[n];
                if sibling != NONE {
                    self.depth[sibling as usize] = self.depth[n];
                    n = sibling as usize;
                    break;
                }
                n = self.parent[n] as usize;
            }
        }
    }

    fn is_ancestor(&self, a: usize, b: usize) -> bool {
        self.first[b] != NONE && self.first[a] <= self.first[b] && self.first[b] <= self.last[a]
    }
}

/// The dominator tree: `a` dominates `b` when every path from the entry to `b` passes `a`.
#[derive(Clone, Default, Debug)]
pub struct Dominators {
    tree: Tree,
    scratch: Scratch,
    /// The graph that it is the tree of.
    graph: u64,
}

impl Dominators {
    /// The tree of a graph.
    pub fn new(cfg: &Cfg) -> Dominators {
        let mut d = Dominators::default();
        d.compute(cfg);
        d
    }

    /// Recomputes the tree, reusing memory, unless it is the tree of this graph.
    pub fn compute(&mut self, cfg: &Cfg) {
        if std::mem::replace(&mut self.graph, cfg.id()) == cfg.id() {
            return;
        }
        let n = cfg.num_blocks();
        self.tree.parent.clear();
        self.tree.preorder.clear();
        if n == 0 {
            return;
        }
        let (succs, preds) =
            (|b: usize| cfg.succs(Block::new(b)), |b: usize| cfg.preds(Block::new(b)));
        self.scratch.idoms(n, 0, succs, preds, &mut self.tree.parent);
        self.tree.finish(0, cfg.rpo().iter().map(|b| b.index()));
    }

    /// The closest dominator other than the block itself. `None` for the entry and for blocks that
    /// cannot be reached.
    pub fn idom(&self, b: Block) -> Option<Block> {
        let p = self.tree.parent[b.index()];
        (p != NONE).then_some(Block(p))
    }

    /// Whether `a` dominates `b`; a block dominates itself. False when one cannot be reached.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.tree.is_ancestor(a.index(), b.index())
    }

    /// Number of proper dominators.
    pub fn depth(&self, b: Block) -> u32 {
        self.tree.depth[b.index()]
    }

    /// The blocks whose immediate dominator is `b`, in reverse postorder.
    pub fn children(&self, b: Block) -> impl Iterator<Item = Block> + '_ {
        let next = |c: &u32| Some(self.tree.next_sibling[*c as usize]).filter(|&c| c != NONE);
        let first = Some(self.tree.first_child[b.index()]).filter(|&c| c != NONE);
        std::iter::successors(first, next).map(Block)
    }

    /// The reachable blocks, each before those that it dominates and behind every predecessor but
    /// those along retreating edges.
    pub fn preorder(&self) -> &[Block] {
        &self.tree.preorder
    }

    /// Position of a reachable block in [`Dominators::preorder`].
    pub fn preorder_number(&self, b: Block) -> u32 {
        self.tree.first[b.index()]
    }

    /// The blocks that `b` dominates: a part of [`Dominators::preorder`], empty when `b` cannot be
    /// reached.
    pub fn dominated(&self, b: Block) -> &[Block] {
        match self.tree.first[b.index()] {
            NONE => &[],
            first => &self.tree.preorder[first as usize..=self.tree.last[b.index()] as usize],
        }
    }
}

/// The postdominator tree: `a` postdominates `b` when every path from `b` to the end of the
/// function passes `a`.
///
/// All ends meet in a virtual exit, the root. A region that no path leaves counts as ending in one
/// of its blocks, so every reachable block is in the tree.
#[derive(Clone, Default, Debug)]
pub struct PostDominators {
    tree: Tree,
    scratch: Scratch,
    /// Edges of the turned-around graph; the node behind the last block is the exit.
    succs: Adjacency,
    preds: Adjacency,
    is_end: Vec<bool>,
    reaches_end: Vec<bool>,
    work: Vec<Block>,
}

impl PostDominators {
    /// The tree of a function.
    pub fn new(f: &MpirFn, cfg: &Cfg) -> PostDominators {
        let mut d = PostDominators::default();
        d.compute(f, cfg);
        d
    }

    /// Recomputes the tree, reusing memory.
    pub fn compute(&mut self, f: &MpirFn, cfg: &Cfg) {
        let n = cfg.num_blocks();
        let exit = Block::new(n);
        self.find_ends(f, cfg);
        self.succs.clear();
        self.preds.clear();
        for b in (0..n).map(Block::new) {
            if cfg.is_reachable(b) {
                cfg.preds(b)
                    .iter()
                    .filter(|&&p| cfg.is_reachable(p))
                    .for_each(|&p| self.succs.push(p));
                cfg.succs(b).iter().for_each(|&s| self.preds.push(s));
                if self.is_end[b.index()] {
                    self.preds.push(exit);
                }
            }
            self.succs.end_node();
            self.preds.end_node();
        }
        for b in (0..n).map(Block::new).filter(|b| self.is_end[b.index()]) {
            self.succs.push(b);
        }
        self.succs.end_node();
        self.preds.end_node();
        let (succs, preds) = (&self.succs, &self.preds);
        self.scratch.idoms(n + 1, n, |b| succs.of(b), |b| preds.of(b), &mut self.tree.parent);
        self.tree.finish(n, cfg.rpo().iter().map(|b| b.index()));
    }

    /// Marks the blocks that end the function, and one block of each region without an end: the
    /// last one in reverse postorder that reaches none.
    fn find_ends(&mut self, f: &MpirFn, cfg: &Cfg) {
        self.is_end.clear();
        self.is_end.resize(cfg.num_blocks(), false);
        self.reaches_end.clear();
        self.reaches_end.resize(cfg.num_blocks(), false);
        for &b in cfg.rpo() {
            if matches!(f.block(b).term, Terminator::Ret(_) | Terminator::Unreachable) {
                self.is_end[b.index()] = true;
                self.mark_reaching(cfg, b);
            }
        }
        for &b in cfg.rpo().iter().rev() {
            if !self.reaches_end[b.index()] {
                self.is_end[b.index()] = true;
                self.mark_reaching(cfg, b);
            }
        }
    }

    fn mark_reaching(&mut self, cfg: &Cfg, end: Block) {
        self.reaches_end[end.index()] = true;
        self.work.push(end);
        while let Some(b) = self.work.pop() {
            for &p in cfg.preds(b) {
                if !std::mem::replace(&mut self.reaches_end[p.index()], true) {
                    self.work.push(p);
                }
            }
        }
    }

    /// The closest postdominator other than the block itself; `None` when that is the virtual exit
    /// or the block cannot be reached.
    pub fn ipdom(&self, b: Block) -> Option<Block> {
        let p = self.tree.parent[b.index()];
        (p != NONE && (p as usize) < self.tree.parent.len() - 1).then_some(Block(p))
    }

    /// Whether `a` postdominates `b`; a block postdominates itself. False when one cannot be
    /// reached.
    pub fn postdominates(&self, a: Block, b: Block) -> bool {
        self.tree.is_ancestor(a.index(), b.index())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cfg::tests::{blocks, graph};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn diamond_and_loop() {
        // 0 → 1 (header) → 2 | 5; 2 → 3 | 4; 3, 4 → 1
        let f = graph(&[&[1], &[2, 5], &[3, 4], &[1], &[1], &[]]);
        let cfg = Cfg::new(&f);
        let dom = Dominators::new(&cfg);
        assert_eq!(dom.idom(Block(1)), Some(Block(0)));
        assert_eq!(dom.idom(Block(4)), Some(Block(2)));
        assert_eq!(dom.idom(Block(0)), None);
        assert_eq!(dom.children(Block(2)).collect::<Vec<_>>(), blocks(&[3, 4]));
        assert_eq!(dom.preorder(), blocks(&[0, 1, 2, 3, 4, 5]));
        assert_eq!(dom.dominated(Block(2)), blocks(&[2, 3, 4]));
        assert_eq!(dom.depth(Block(4)), 3);
        let pdom = PostDominators::new(&f, &cfg);
        assert_eq!(pdom.ipdom(Block(2)), Some(Block(1)));
        assert_eq!(pdom.ipdom(Block(1)), Some(Block(5)));
        assert_eq!(pdom.ipdom(Block(5)), None);
        assert!(pdom.postdominates(Block(5), Block(3)));
        assert!(!pdom.postdominates(Block(3), Block(2)));
    }

    #[test]
    fn regions_without_an_end_are_in_the_tree() {
        let f = graph(&[&[1, 2], &[1], &[3], &[2]]);
        let cfg = Cfg::new(&f);
        let pdom = PostDominators::new(&f, &cfg);
        assert_eq!(pdom.ipdom(Block(0)), None);
        assert!(pdom.postdominates(Block(3), Block(2)));
        assert!(pdom.postdominates(Block(1), Block(1)));
    }

    fn reaches(f: &MpirFn, from: Block, avoiding: Option<Block>) -> Vec<bool> {
        let mut seen = vec![false; f.blocks.len()];
        let mut work = vec![from];
        while let Some(b) = work.pop() {
            if Some(b) != avoiding && !std::mem::replace(&mut seen[b.index()], true) {
                work.extend(f.successors(b));
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            edges in prop::collection::vec(prop::collection::vec(1u32..12, 0..4), 12)
        ) {
            let edges: Vec<&[u32]> = edges.iter().map(|e| &e[..]).collect();
            let f = graph(&edges);
            let cfg = Cfg::new(&f);
            let dom = Dominators::new(&cfg);
            let pdom = PostDominators::new(&f, &cfg);
            let reachable = reaches(&f, Block(0), None);
            for a in f.block_ids() {
                let without = reaches(&f, Block(0), Some(a));
                for b in f.block_ids() {
                    let both = reachable[a.index()] && reachable[b.index()];
                    prop_assert_eq!(dom.dominates(a, b), both && !without[b.index()]);
                    let ends = reaches(&f, b, (a != b).then_some(a));
                    let avoids = f.block_ids().any(|e| {
                        ends[e.index()] && matches!(f.block(e).term, Terminator::Ret(_))
                    });
                    if both && a != b && avoids {
                        prop_assert!(!pdom.postdominates(a, b));
                    }
                    let all = reaches(&f, b, None);
                    let can_end = f.block_ids().all(|e| {
                        !all[e.index()] || f.block_ids().any(|x| {
                            reaches(&f, e, None)[x.index()]
                                && matches!(f.block(x).term, Terminator::Ret(_))
                        })
                    });
                    if both && a != b && can_end && !avoids {
                        prop_assert!(pdom.postdominates(a, b));
                    }
                }
            }
        }
    }
}
