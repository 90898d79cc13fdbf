//! [`Loops`]: natural loops and how they nest.

use super::{Cfg, Dominators};
use crate::Block;

/// A loop of a [`Loops`]. An outer loop has a smaller number than the loops inside it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId(pub u32);

impl LoopId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct LoopData {
    header: Block,
    parent: Option<LoopId>,
    depth: u32,
    /// One past the last loop inside this one: those are numbered behind it without a gap.
    end: u32,
    /// Where the blocks of this loop start in `Loops::blocks`; the inner loops' follow.
    first_block: u32,
    last_block: u32,
}

/// The natural loops of a function: for each block that dominates a predecessor (the header), the
/// blocks from which that predecessor (a latch) is reached without passing the header.
///
/// Cycles without a header that dominates them (irreducible control flow) are no loops; the test
/// is [`Loops::is_reducible`].
#[derive(Clone, Default, Debug)]
pub struct Loops {
    loops: Vec<LoopData>,
    of_block: Vec<Option<LoopId>>,
    blocks: Vec<Block>,
    is_reducible: bool,
    /// The graph that these are the loops of.
    graph: u64,
    found: Vec<Found>,
    work: Vec<Block>,
    order: Vec<u32>,
}

/// A loop while the nesting is not known yet.
#[derive(Clone, Copy, Debug)]
struct Found {
    header: Block,
    parent: Option<u32>,
    /// An enclosing loop as far out as is known: shortens the way to the outermost one.
    outer: u32,
    first_child: Option<u32>,
    next_sibling: Option<u32>,
    own_blocks: u32,
}

impl Loops {
    /// The loops of a graph.
    pub fn new(cfg: &Cfg, dom: &Dominators) -> Loops {
        let mut loops = Loops::default();
        loops.compute(cfg, dom);
        loops
    }

    /// Recomputes the loops, reusing memory, unless they are the loops of this graph.
    pub fn compute(&mut self, cfg: &Cfg, dom: &Dominators) {
        if std::mem::replace(&mut self.graph, cfg.id()) == cfg.id() {
            return;
        }
        self.is_reducible = true;
        self.loops.clear();
        self.found.clear();
        self.blocks.clear();
        self.of_block.clear();
        self.of_block.resize(cfg.num_blocks(), None);
        // Inner headers come behind the outer headers that dominate them.
        for &header in dom.preorder().iter().rev() {
            for &latch in cfg.preds(header) {
                if cfg.is_reachable(latch) && cfg.is_retreating(latch, header) {
                    if dom.dominates(header, latch) {
                        self.work.push(latch);
                    } else {
                        self.is_reducible = false;
                    }
                }
            }
            if !self.work.is_empty() {
                self.collect(cfg, header);
            }
        }
        if !self.found.is_empty() {
            self.number(cfg);
        }
    }

    /// Walks backwards from the latches in `work` and takes in blocks and whole inner loops.
    fn collect(&mut self, cfg: &Cfg, header: Block) {
        let id = self.found.len() as u32;
        self.found.push(Found {
            header,
            parent: None,
            outer: id,
            first_child: None,
            next_sibling: None,
            own_blocks: 1,
        });
        // Until they are numbered, blocks name loops by the order of discovery.
        self.of_block[header.index()] = Some(LoopId(id));
        while let Some(b) = self.work.pop() {
            let entry = match self.of_block[b.index()] {
                None => {
                    self.of_block[b.index()] = Some(LoopId(id));
                    self.found[id as usize].own_blocks += 1;
                    b
                }
                Some(inner) => {
                    let outermost = self.outermost(inner.0);
                    if outermost == id {
                        continue;
                    }
                    self.found[outermost as usize].parent = Some(id);
                    self.found[outermost as usize].outer = id;
                    self.found[outermost as usize].next_sibling =
                        self.found[id as usize].first_child;
                    self.found[id as usize].first_child = Some(outermost);
                    self.found[outermost as usize].header
                }
            };
            self.work.extend(cfg.preds(entry).iter().filter(|&&p| cfg.is_reachable(p)));
        }
    }

    fn outermost(&mut self, id: u32) -> u32 {
        let mut root = id;
        while self.found[root as usize].outer != root {
            root = self.found[root as usize].outer;
        }
        let mut at = id;
        while at != root {
            at = std::mem::replace(&mut self.found[at as usize].outer, root);
        }
        root
    }

    /// Numbers the loops in preorder and lists their blocks.
    fn number(&mut self, cfg: &Cfg) {
        self.order.clear();
        self.order.resize(self.found.len(), 0);
        // Discovery ends with the outermost loops; walking it backwards meets parents first.
        let mut start = 0;
        for root in (0..self.found.len()).rev() {
            if self.found[root].parent.is_some() {
                continue;
            }
            let mut at = root as u32;
            loop {
                start = self.open(at, start);
                if let Some(child) = self.found[at as usize].first_child {
                    at = child;
                    continue;
                }
                let next = loop {
                    self.close(at, start);
                    match (self.found[at as usize].next_sibling, self.found[at as usize].parent) {
                        _ if at == root as u32 => break None,
                        (Some(sibling), _) => break Some(sibling),
                        (None, Some(parent)) => at = parent,
                        (None, None) => break None,
                    }
                };
                match next {
                    Some(sibling) => at = sibling,
                    None => break,
                }
            }
        }
        self.blocks.resize(start as usize, Block(0));
        // `last_block` of a loop serves as its cursor; its true value is restored behind.
        let mut cursor: Vec<u32> = self.loops.iter().map(|l| l.first_block).collect();
        for &b in cfg.rpo() {
            if let Some(found) = self.of_block[b.index()] {
                let id = self.order[found.index()];
                self.of_block[b.index()] = Some(LoopId(id));
                self.blocks[cursor[id as usize] as usize] = b;
                cursor[id as usize] += 1;
            }
        }
    }

    fn open(&mut self, found: u32, first_block: u32) -> u32 {
        let id = self.loops.len() as u32;
        self.order[found as usize] = id;
        let Found { header, parent, own_blocks, .. } = self.found[found as usize];
        let parent = parent.map(|p| LoopId(self.order[p as usize]));
        let depth = parent.map_or(1, |p| self.loops[p.index()].depth + 1);
        self.loops.push(LoopData {
            header,
            parent,
            depth,
            end: id + 1,
            first_block,
            last_block: first_block,
        });
        first_block + own_blocks
    }

    fn close(&mut self, found: u32, last_block: u32) {
        let end = self.loops.len() as u32;
        let data = &mut self.loops[self.order[found as usize] as usize];
        data.end = end;
        data.last_block = last_block;
    }

    /// Whether every cycle is a loop with a header that dominates it.
    pub fn is_reducible(&self) -> bool {
        self.is_reducible
    }

    /// Whether there is no loop.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// Every loop, outer ones before those inside them.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = LoopId> + ExactSizeIterator + use<> {
        (0..self.loops.len() as u32).map(LoopId)
    }

    /// The block through which the loop is entered.
    pub fn header(&self, l: LoopId) -> Block {
        self.loops[l.index()].header
    }

    /// The smallest loop around a loop.
    pub fn parent(&self, l: LoopId) -> Option<LoopId> {
        self.loops[l.index()].parent
    }

    /// 1 for an outermost loop.
    pub fn depth(&self, l: LoopId) -> u32 {
        self.loops[l.index()].depth
    }

    /// The blocks of a loop, those of inner loops included; the header comes first, then blocks
    /// that lie in no inner loop in reverse postorder.
    pub fn blocks(&self, l: LoopId) -> &[Block] {
        let data = &self.loops[l.index()];
        &self.blocks[data.first_block as usize..data.last_block as usize]
    }

    /// The innermost loop around a block.
    pub fn innermost(&self, b: Block) -> Option<LoopId> {
        self.of_block[b.index()]
    }

    /// Number of loops around a block.
    pub fn depth_of(&self, b: Block) -> u32 {
        self.innermost(b).map_or(0, |l| self.depth(l))
    }

    /// Whether `inner` is `outer` or lies inside it.
    pub fn encloses(&self, outer: LoopId, inner: LoopId) -> bool {
        outer.0 <= inner.0 && inner.0 < self.loops[outer.index()].end
    }

    /// Whether a block belongs to a loop.
    pub fn contains(&self, l: LoopId, b: Block) -> bool {
        self.innermost(b).is_some_and(|inner| self.encloses(l, inner))
    }

    /// Whether the block is the header of a loop.
    pub fn is_header(&self, b: Block) -> bool {
        self.innermost(b).is_some_and(|l| self.header(l) == b)
    }

    /// Whether the loop has no loop inside it.
    pub fn is_innermost(&self, l: LoopId) -> bool {
        self.loops[l.index()].end == l.0 + 1
    }

    /// The predecessors of the header inside the loop.
    pub fn latches<'a>(&'a self, cfg: &'a Cfg, l: LoopId) -> impl Iterator<Item = Block> + 'a {
        cfg.preds(self.header(l)).iter().copied().filter(move |&p| self.contains(l, p))
    }

    /// The edges that leave the loop.
    pub fn exits<'a>(
        &'a self,
        cfg: &'a Cfg,
        l: LoopId,
    ) -> impl Iterator<Item = (Block, Block)> + 'a {
        self.blocks(l).iter().flat_map(move |&b| {
            cfg.succs(b).iter().filter(move |&&s| !self.contains(l, s)).map(move |&s| (b, s))
        })
    }

    /// The only predecessor of the header outside the loop, when the header is its only successor.
    pub fn preheader(&self, cfg: &Cfg, l: LoopId) -> Option<Block> {
        let header = self.header(l);
        let mut outside = cfg
            .preds(header)
            .iter()
            .copied()
            .filter(|&p| cfg.is_reachable(p) && !self.contains(l, p));
        let only = outside.next()?;
        (outside.next().is_none() && cfg.succs(only).len() == 1).then_some(only)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cfg::tests::{blocks, graph};
    use super::*;
    use proptest::prelude::*;

    fn loops(edges: &[&[u32]]) -> (Cfg, Loops) {
        let cfg = Cfg::new(&graph(edges));
        let loops = Loops::new(&cfg, &Dominators::new(&cfg));
        (cfg, loops)
    }

    #[test]
    fn nest() {
        // 1 { 2 { 3 } 4 { 5 } 6 } 7
        let (cfg, l) = loops(&[&[1], &[2, 7], &[3, 4], &[2], &[5, 6], &[4], &[1], &[]]);
        assert!(l.is_reducible());
        let headers: Vec<_> = l.ids().map(|id| l.header(id)).collect();
        assert_eq!(headers[0], Block(1));
        assert_eq!(l.blocks(LoopId(0)).len(), 6);
        assert_eq!(l.blocks(LoopId(0))[..2], blocks(&[1, 6]));
        let inner = l.innermost(Block(5)).unwrap();
        assert_eq!(l.blocks(inner), blocks(&[4, 5]));
        assert_eq!(l.parent(inner), Some(LoopId(0)));
        assert_eq!((l.depth_of(Block(7)), l.depth_of(Block(6)), l.depth_of(Block(3))), (0, 1, 2));
        assert!(l.is_header(Block(4)) && !l.is_header(Block(5)));
        assert!(l.is_innermost(inner) && !l.is_innermost(LoopId(0)));
        assert_eq!(l.preheader(&cfg, LoopId(0)), Some(Block(0)));
        assert_eq!(l.preheader(&cfg, inner), None);
        assert_eq!(l.exits(&cfg, inner).collect::<Vec<_>>(), [(Block(4), Block(6))]);
        assert_eq!(l.latches(&cfg, inner).collect::<Vec<_>>(), blocks(&[5]));
    }

    #[test]
    fn two_latches_make_one_loop() {
        let (_, l) = loops(&[&[1], &[2, 4], &[1, 3], &[1], &[]]);
        assert_eq!(l.ids().len(), 1);
        assert_eq!(l.blocks(LoopId(0)), blocks(&[1, 2, 3]));
    }

    #[test]
    fn irreducible() {
        let (_, l) = loops(&[&[1, 2], &[2], &[1, 3], &[]]);
        assert!(!l.is_reducible() && l.is_empty());
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            edges in prop::collection::vec(prop::collection::vec(1u32..10, 0..4), 10)
        ) {
            let edges: Vec<&[u32]> = edges.iter().map(|e| &e[..]).collect();
            let cfg = Cfg::new(&graph(&edges));
            let dom = Dominators::new(&cfg);
            let l = Loops::new(&cfg, &dom);
            let mut reducible = true;
            for &h in cfg.rpo() {
                let mut body = vec![];
                for &p in cfg.preds(h).iter().filter(|&&p| cfg.is_retreating(p, h)) {
                    if !cfg.is_reachable(p) {
                        continue;
                    }
                    if !dom.dominates(h, p) {
                        reducible = false;
                        continue;
                    }
                    let mut work = vec![p];
                    while let Some(b) = work.pop() {
                        if !body.contains(&b) {
                            body.push(b);
                            if b != h {
                                work.extend(cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)));
                            }
                        }
                    }
                }
                prop_assert_eq!(l.is_header(h), !body.is_empty());
                if !body.is_empty() {
                    let id = l.innermost(h).unwrap();
                    let mut got = l.blocks(id).to_vec();
                    prop_assert_eq!(got[0], h);
                    got.sort();
                    body.sort();
                    prop_assert_eq!(got, body);
                }
            }
            prop_assert_eq!(l.is_reducible(), reducible);
            for id in l.ids() {
                prop_assert!(l.parent(id).is_none_or(|p| l.encloses(p, id) && p < id));
                for &b in l.blocks(id) {
                    prop_assert!(l.contains(id, b));
                }
            }
        }
    }
}
