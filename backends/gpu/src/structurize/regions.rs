//! Puts the blocks into the tree, by the dominator tree (Ramsey, "Beyond Relooper", 2022).
//!
//! A block with one way in stands where that way is: in an arm of the construct before it. A block
//! where several ways meet is a *join*: it stands behind the construct that ends its immediate
//! dominator. Control that reaches the place of a join but goes on to a later one is a transfer
//! ([`super::variables`]), and the join stands in an `if` on the selector. Whether that is so is a
//! matter of counting the edges that are under way.

use super::edges::split_edges;
use super::exits::LoopParts;
use super::tree::{Node, NodeList, StructuredBody, SwitchArm};
use super::variables::Transfers;
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{Block, MpirFn, Terminator};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// Stands in its predecessor's arm, or right behind it.
    Inline,
    /// Stands behind the construct that ends its parent.
    Join,
    /// The latch of a loop: part of the loop's node.
    Latch,
    /// Where a loop goes on: right behind the loop's node.
    LoopMerge,
}

/// Facts about a block, before the tree is built.
#[derive(Clone, Copy, Debug)]
struct Place {
    role: Role,
    /// The block in whose sequence it stands.
    parent: Option<Block>,
    /// Forward edges that lead to it.
    ways_in: u32,
    /// Edges that leave its subtree for a join further out.
    leaving: u32,
    /// Whether its subtree breaks or continues the loop around it.
    ends_loop: bool,
    /// The loop it heads.
    heads: Option<u32>,
}

/// Where a sequence ends that goes on behind the construct around it.
#[derive(Clone, Copy, Debug)]
enum Tail {
    /// The block ends in a `br`; `is_source` when it is the block a transfer started at.
    Br { block: Block, is_source: bool },
    /// The `else` edge of a guard.
    Skip(Block),
}

pub(super) struct Regions<'a> {
    f: &'a mut MpirFn,
    transfers: &'a mut Transfers,
    loops: &'a [LoopParts],
    places: Vec<Place>,
    /// Joins by the block behind which they stand, in the order of a topological sort.
    joins: Vec<Vec<Block>>,
    body: StructuredBody,
    /// For blocks that were made here or by the last split: the block before them.
    origin: FxHashMap<Block, Block>,
}

/// A sequence that waits for the one inside it.
enum Frame {
    /// The body of the loop that is the last node of `list`.
    Loop { list: NodeList, merge: Option<Block> },
    /// An arm of the construct that ends `block` and is the last node of `list`.
    Arms { block: Block, list: NodeList, left: Vec<(Block, NodeList)>, tails: Vec<Tail> },
    /// The arm of an `if` that never reaches its merge block, which is the first block of what the
    /// other arm would be.
    Exit { block: Block, list: NodeList, merge: Block },
    /// A join. With `skip` it stands in a guard, which is the last node of the list.
    Join { joins: Joins, skip: Option<Tail> },
}

/// The part of a sequence behind the construct that ends `block`.
struct Joins {
    block: Block,
    list: NodeList,
    /// Position of the next join among those of `block`.
    next: usize,
    /// Number of edges that lead to this or a later join, or further out.
    under_way: u32,
}

enum Step {
    /// A sequence begins.
    Enter(Block, NodeList),
    /// A sequence is complete.
    Done(Option<Tail>),
}

impl<'a> Regions<'a> {
    /// Builds the tree; the graph's new edges are transfers to be resolved. Also returns, for new
    /// blocks, the block before them.
    pub(super) fn build(
        f: &'a mut MpirFn,
        loops: &'a [LoopParts],
        transfers: &'a mut Transfers,
    ) -> (StructuredBody, FxHashMap<Block, Block>) {
        let mut origin = FxHashMap::default();
        let cfg = Cfg::new(f);
        let mut is_frame = vec![false; f.blocks.len()];
        for l in loops {
            is_frame[l.latch.index()] = true;
            l.merge.into_iter().for_each(|m| is_frame[m.index()] = true);
        }
        let new = split_edges(f, &cfg, |from, to| {
            cfg.succs(from).len() > 1 && (cfg.preds(to).len() > 1 || is_frame[to.index()])
        });
        for (from, middle, _) in new {
            origin.insert(middle, from);
            if transfers.is_passing(from) {
                transfers.set_passing(middle);
            }
        }
        let mut regions = Regions {
            places: Vec::new(),
            joins: Vec::new(),
            body: StructuredBody::new(),
            f,
            transfers,
            loops,
            origin,
        };
        let cfg = Cfg::new(regions.f);
        let dom = Dominators::new(&cfg);
        regions.place(&cfg, &dom);
        regions.defer_loop_ends(&cfg, &dom);
        regions.count(&cfg, &dom);
        regions.grow();
        (regions.body, regions.origin)
    }

    fn of(&self, b: Block) -> &Place {
        &self.places[b.index()]
    }

    /// Roles and parents.
    fn place(&mut self, cfg: &Cfg, dom: &Dominators) {
        let n = cfg.num_blocks();
        let unreached = Place {
            role: Role::Inline,
            parent: None,
            ways_in: 0,
            leaving: 0,
            ends_loop: false,
            heads: None,
        };
        self.places = vec![unreached; n];
        let mut back = vec![None; n];
        for (l, parts) in self.loops.iter().enumerate() {
            self.places[parts.header.index()].heads = Some(l as u32);
            self.places[parts.latch.index()].role = Role::Latch;
            back[parts.header.index()] = Some(parts.latch);
            if let Some(merge) = parts.merge {
                self.places[merge.index()].role = Role::LoopMerge;
                self.places[merge.index()].parent = Some(parts.header);
            }
        }
        for &b in cfg.rpo() {
            let ways_in = cfg.preds(b).iter().filter(|&&p| back[b.index()] != Some(p)).count();
            let place = &mut self.places[b.index()];
            place.ways_in = ways_in as u32;
            match place.role {
                Role::Latch | Role::LoopMerge => {}
                Role::Inline | Role::Join => {
                    place.role = if ways_in > 1 { Role::Join } else { Role::Inline };
                    place.parent = dom.idom(b);
                }
            }
        }
    }

    /// An arm of a switch that breaks or continues a loop around the switch goes behind it.
    fn defer_loop_ends(&mut self, cfg: &Cfg, dom: &Dominators) {
        for &b in dom.preorder().iter().rev() {
            let ends = cfg.succs(b).iter().any(|s| match self.of(*s).role {
                Role::Latch | Role::LoopMerge => true,
                Role::Inline | Role::Join => false,
            });
            self.places[b.index()].ends_loop |= ends;
            let place = *self.of(b);
            if let Some(parent) = place.parent
                && place.ends_loop
                && place.role != Role::Latch
            {
                // What is inside a loop ends that loop, not the one around it.
                let is_body = self.of(parent).heads.is_some() && place.role != Role::LoopMerge;
                self.places[parent.index()].ends_loop |= !is_body;
            }
        }
        let places = &mut self.places;
        let ends = |places: &[Place], b: Block| {
            places[b.index()].role == Role::Inline && places[b.index()].ends_loop
        };
        let is_switch: Vec<bool> = self
            .f
            .block_ids()
            .map(|b| matches!(self.f.block(b).term, Terminator::Switch { .. }))
            .collect();
        let new = split_edges(self.f, cfg, |from, to| is_switch[from.index()] && ends(places, to));
        for (from, middle, to) in new {
            places[to.index()].role = Role::Join;
            places.push(Place {
                role: Role::Inline,
                parent: Some(from),
                ways_in: 1,
                leaving: 1,
                ends_loop: false,
                heads: None,
            });
            self.origin.insert(middle, from);
            if self.transfers.is_passing(from) {
                self.transfers.set_passing(middle);
            }
        }
    }

    /// Lists the joins and counts the edges under way.
    fn count(&mut self, cfg: &Cfg, dom: &Dominators) {
        self.joins = vec![Vec::new(); self.places.len()];
        for &b in cfg.rpo() {
            if let Place { role: Role::Join, parent: Some(parent), .. } = *self.of(b) {
                self.joins[parent.index()].push(b);
            }
        }
        for &b in dom.preorder().iter().rev() {
            let mut leaving = 0;
            for &s in cfg.succs(b) {
                let to = *self.of(s);
                leaving += match to.role {
                    Role::Inline if to.parent == Some(b) => to.leaving,
                    Role::Inline | Role::Join => 1,
                    Role::Latch | Role::LoopMerge => 0,
                };
            }
            let place = *self.of(b);
            if let Some(merge) = place.heads.and_then(|l| self.loops[l as usize].merge) {
                leaving += self.of(merge).leaving;
            }
            if place.role == Role::Latch {
                leaving = 0;
            }
            for &j in &self.joins[b.index()] {
                leaving = leaving + self.of(j).leaving - self.of(j).ways_in;
            }
            self.places[b.index()].leaving = leaving;
        }
    }

    /// Builds the lists, without recursion.
    fn grow(&mut self) {
        let mut stack = Vec::new();
        let mut step = Step::Enter(Block(0), self.body.root());
        loop {
            step = match step {
                Step::Enter(block, list) => self.enter(block, list, &mut stack),
                Step::Done(tail) => match stack.pop() {
                    None => return,
                    Some(frame) => self.resume(frame, tail, &mut stack),
                },
            };
        }
    }

    fn enter(&mut self, block: Block, list: NodeList, stack: &mut Vec<Frame>) -> Step {
        if let Some(l) = self.of(block).heads {
            let LoopParts { header, body: first, latch, merge } = self.loops[l as usize];
            let body = self.body.add_list();
            let node = Node::Loop { header, body, latch, merge: merge.unwrap_or(header) };
            self.body.nodes_mut(list).push(node);
            stack.push(Frame::Loop { list, merge });
            return Step::Enter(first, body);
        }
        self.body.nodes_mut(list).push(Node::Block(block));
        let (leaf, next) = match self.f.block(block).term {
            Terminator::Ret(_) => (Node::Return, None),
            Terminator::Unreachable => (Node::Unreachable, None),
            Terminator::Cbr { .. } | Terminator::Switch { .. } => {
                return self.open_construct(block, list, stack);
            }
            Terminator::Br(next) => match self.of(next).role {
                Role::Latch => (Node::Continue, None),
                Role::LoopMerge => (Node::Break, None),
                Role::Inline if self.of(next).parent == Some(block) => {
                    return Step::Enter(next, list);
                }
                Role::Inline | Role::Join => (Node::Break, Some(next)),
            },
        };
        match next {
            Some(target) => {
                self.transfers.start(self.f, block, target);
                Step::Done(Some(Tail::Br { block, is_source: true }))
            }
            None => {
                self.body.nodes_mut(list).push(leaf);
                Step::Done(None)
            }
        }
    }

    fn open_construct(&mut self, block: Block, list: NodeList, stack: &mut Vec<Frame>) -> Step {
        let mut left = Vec::new();
        let node = match &self.f.block(block).term {
            &Terminator::Cbr { cond, then: yes, else_: no } => {
                let (then, else_) = (self.body.add_list(), self.body.add_list());
                if let Some((exit, merge)) = self.exit_arm(yes, no) {
                    let arm = if exit == yes { then } else { else_ };
                    let node = Node::IfElse { cond, then, else_, merge };
                    self.body.nodes_mut(list).push(node);
                    stack.push(Frame::Exit { block, list, merge });
                    return Step::Enter(exit, arm);
                }
                left.extend([(no, else_), (yes, then)]);
                Node::IfElse { cond, then, else_, merge: block }
            }
            Terminator::Switch { value, cases, default: otherwise } => {
                let mut arms: Vec<SwitchArm> = Vec::new();
                let mut arm_of: FxHashMap<Block, usize> = FxHashMap::default();
                for &(label, target) in cases {
                    let arm = *arm_of.entry(target).or_insert_with(|| {
                        let body = self.body.add_list();
                        left.push((target, body));
                        arms.push(SwitchArm { labels: Vec::new(), body });
                        arms.len() - 1
                    });
                    arms[arm].labels.push(label);
                }
                let default = self.body.add_list();
                left.push((*otherwise, default));
                left.reverse();
                Node::Switch { value: *value, arms, default, merge: block }
            }
            Terminator::Ret(_) | Terminator::Br(_) | Terminator::Unreachable => {
                return Step::Done(None);
            }
        };
        self.body.nodes_mut(list).push(node);
        self.next_arm(block, list, left, Vec::new(), stack)
    }

    /// The arm of an `if` that always leaves, and the other one. That one is no arm then: it goes
    /// on behind the `if`, so that a row of exits does not nest, and what it computes is not known
    /// inside an arm only.
    fn exit_arm(&self, yes: Block, no: Block) -> Option<(Block, Block)> {
        let leaves = |b: Block| self.of(b).leaving == 0;
        // Of two, that which does least and goes furthest.
        let rank = |b: Block| match self.f.block(b).term {
            Terminator::Ret(_) | Terminator::Unreachable => 2,
            Terminator::Br(t) => match self.of(t).role {
                Role::LoopMerge => 2,
                Role::Latch => 1,
                Role::Inline | Role::Join => 0,
            },
            Terminator::Cbr { .. } | Terminator::Switch { .. } => 0,
        };
        match (leaves(yes), leaves(no)) {
            (true, true) if rank(no) > rank(yes) => Some((no, yes)),
            (true, _) => Some((yes, no)),
            (false, true) => Some((no, yes)),
            (false, false) => None,
        }
    }

    /// Number of edges that come out of the construct that ends `block`.
    fn under_way(&self, block: Block) -> u32 {
        let joins = self.joins[block.index()].iter();
        let own: i64 = joins.map(|&j| self.of(j).ways_in as i64 - self.of(j).leaving as i64).sum();
        (self.of(block).leaving as i64 + own) as u32
    }

    fn next_arm(
        &mut self,
        block: Block,
        list: NodeList,
        mut left: Vec<(Block, NodeList)>,
        tails: Vec<Tail>,
        stack: &mut Vec<Frame>,
    ) -> Step {
        if let Some((first, arm)) = left.pop() {
            stack.push(Frame::Arms { block, list, left, tails });
            return Step::Enter(first, arm);
        }
        let under_way = self.under_way(block);
        self.go_on(Joins { block, list, next: 0, under_way }, tails, true, stack)
    }

    fn resume(&mut self, frame: Frame, tail: Option<Tail>, stack: &mut Vec<Frame>) -> Step {
        match frame {
            Frame::Loop { list, merge: Some(merge) } => Step::Enter(merge, list),
            Frame::Loop { list, merge: None } => self.end_construct(list),
            Frame::Arms { block, list, left, mut tails } => {
                tails.extend(tail);
                self.next_arm(block, list, left, tails, stack)
            }
            Frame::Exit { block, list, merge } => {
                let under_way = self.under_way(block);
                let joins = Joins { block, list, next: 0, under_way };
                stack.push(Frame::Join { joins, skip: None });
                Step::Enter(merge, list)
            }
            Frame::Join { joins, skip } => {
                let tails = tail.into_iter().chain(skip).collect();
                self.go_on(joins, tails, skip.is_some(), stack)
            }
        }
    }

    /// Goes on behind a construct (the last node of the list, when `is_open`) or behind a join.
    fn go_on(
        &mut self,
        joins: Joins,
        mut tails: Vec<Tail>,
        is_open: bool,
        stack: &mut Vec<Frame>,
    ) -> Step {
        let Joins { block, list, next, under_way } = joins;
        let Some(&join) = self.joins[block.index()].get(next) else {
            return match (is_open, tails.is_empty()) {
                (true, true) => self.end_construct(list),
                (true, false) => {
                    let block = self.meet(list, &tails, true);
                    Step::Done(Some(Tail::Br { block, is_source: false }))
                }
                (false, _) => Step::Done(tails.pop()),
            };
        };
        let Place { ways_in, leaving, heads, .. } = *self.of(join);
        let mut joins = Joins { block, list, next: next + 1, under_way: leaving };
        if under_way == ways_in {
            let is_direct = |t: &Tail| matches!(t, Tail::Br { is_source: true, .. });
            let all_direct = tails.len() == ways_in as usize && tails.iter().all(is_direct);
            if is_open && heads.is_some() {
                tails = vec![Tail::Br { block: self.meet(list, &tails, true), is_source: false }];
                self.transfers.lower_phis(self.f, join);
            } else {
                if !all_direct {
                    self.transfers.lower_phis(self.f, join);
                }
                if is_open {
                    self.set_merge(list, join);
                }
            }
            self.connect(&tails, join);
            stack.push(Frame::Join { joins, skip: None });
            return Step::Enter(join, list);
        }
        self.transfers.lower_phis(self.f, join);
        let at = match *tails {
            [Tail::Br { block, is_source: false }] if !is_open => block,
            _ => self.meet(list, &tails, is_open),
        };
        let span = self.f.block(at).term_span;
        let cond = self.transfers.is_selected(self.f, at, join, span);
        let (then, else_) = (self.body.add_list(), self.body.add_list());
        self.body.nodes_mut(list).push(Node::IfElse { cond, then, else_, merge: join });
        let first = match heads {
            // The header has phis.
            Some(_) => {
                let before = self.meet(then, &[], false);
                self.f.block_mut(before).term = Terminator::Br(join);
                before
            }
            None => join,
        };
        self.f.block_mut(at).term = Terminator::Cbr { cond, then: first, else_: join };
        joins.under_way += under_way - ways_in;
        stack.push(Frame::Join { joins, skip: Some(Tail::Skip(at)) });
        Step::Enter(join, then)
    }

    /// A new block at the end of `list` where the tails meet.
    fn meet(&mut self, list: NodeList, tails: &[Tail], is_open: bool) -> Block {
        let b = self.f.add_block();
        self.transfers.set_passing(b);
        self.connect(tails, b);
        if is_open {
            self.set_merge(list, b);
        }
        self.body.nodes_mut(list).push(Node::Block(b));
        b
    }

    fn connect(&mut self, tails: &[Tail], to: Block) {
        for &tail in tails {
            match tail {
                Tail::Br { block, .. } => self.f.block_mut(block).term = Terminator::Br(to),
                Tail::Skip(block) => {
                    if let Terminator::Cbr { else_, .. } = &mut self.f.block_mut(block).term {
                        *else_ = to;
                    }
                }
            }
        }
    }

    /// Gives the construct at the end of `list` its merge block.
    fn set_merge(&mut self, list: NodeList, to: Block) {
        match self.body.nodes_mut(list).last_mut() {
            Some(
                Node::IfElse { merge, .. } | Node::Switch { merge, .. } | Node::Loop { merge, .. },
            ) => *merge = to,
            Some(
                Node::Block(_) | Node::Break | Node::Continue | Node::Return | Node::Unreachable,
            )
            | None => {}
        }
    }

    /// Ends `list` behind a construct that control never leaves forwards.
    fn end_construct(&mut self, list: NodeList) -> Step {
        let b = self.f.add_block();
        self.set_merge(list, b);
        self.body.nodes_mut(list).extend([Node::Block(b), Node::Unreachable]);
        Step::Done(None)
    }
}
