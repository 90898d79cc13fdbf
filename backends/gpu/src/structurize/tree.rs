//! [`StructuredBody`]: a function as nested ifs, loops and switches.

use magpie_mpir::{Block, Inst, Value};
use rustc_hash::FxHashSet;

/// A sequence of nodes of a [`StructuredBody`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeList(u32);

/// One step of structured control flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// The instructions of a block. When the block ends in `cbr` or `switch`, the next node is the
    /// [`Node::IfElse`] or [`Node::Switch`] that stands for it.
    Block(Block),
    /// `then` when `cond` is true, else `else_`. Goes on in `merge`, which is the next node of the
    /// list. An empty arm is an edge straight to `merge`.
    IfElse {
        /// A `bool`.
        cond: Value,
        /// Taken when true.
        then: NodeList,
        /// Taken when false.
        else_: NodeList,
        /// Where the arms meet; no other construct has it as its merge block.
        merge: Block,
    },
    /// Repeats `body` and then the block `latch`, which is the continuing part and the only one
    /// with an edge back to `header`. Goes on in `merge`, the next node of the list.
    Loop {
        /// Phis and a `br` to the first block of `body`; not a node of its own.
        header: Block,
        /// Every path ends in [`Node::Break`], [`Node::Continue`], [`Node::Return`] or
        /// [`Node::Unreachable`].
        body: NodeList,
        /// Phis and a `br` to `header`; not a node of its own.
        latch: Block,
        /// Where every [`Node::Break`] goes.
        merge: Block,
    },
    /// The arm whose label equals `value`, else `default`. Goes on in `merge`, the next node of the
    /// list. No arm breaks or continues a loop around the switch.
    Switch {
        /// An integer.
        value: Value,
        /// In order of first appearance; an arm may have several labels.
        arms: Vec<SwitchArm>,
        /// Taken when no label is equal.
        default: NodeList,
        /// Where the arms meet.
        merge: Block,
    },
    /// Leaves the innermost loop. The block before it ends in a `br` to the loop's merge block.
    Break,
    /// Goes to the latch of the innermost loop. The block before it ends in a `br` to the latch.
    Continue,
    /// The block before it ends in `ret`.
    Return,
    /// The block before it ends in `unreachable`.
    Unreachable,
}

/// An arm of a [`Node::Switch`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchArm {
    /// Bits of the labels, zero-extended.
    pub labels: Vec<u64>,
    /// What is done.
    pub body: NodeList,
}

/// A step of [`StructuredBody::walk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A block; see [`Node::Block`].
    Block(Block),
    /// An if begins, and its `then` arm.
    If {
        #[allow(missing_docs)]
        cond: Value,
        #[allow(missing_docs)]
        merge: Block,
    },
    /// The `else` arm begins; not reported for an empty one.
    Else,
    /// An if ends; the block `merge` comes next.
    EndIf,
    /// A loop begins, and its body.
    Loop {
        #[allow(missing_docs)]
        header: Block,
        #[allow(missing_docs)]
        latch: Block,
        #[allow(missing_docs)]
        merge: Block,
    },
    /// The body of the innermost loop is complete; its continuing part is this block.
    Continuing {
        #[allow(missing_docs)]
        latch: Block,
    },
    /// A loop ends; the block `merge` comes next.
    EndLoop,
    /// A switch begins.
    Switch {
        #[allow(missing_docs)]
        value: Value,
        #[allow(missing_docs)]
        merge: Block,
    },
    /// An arm of the innermost switch begins.
    Case {
        #[allow(missing_docs)]
        labels: &'a [u64],
    },
    /// The last arm of the innermost switch begins; reported for an empty one too.
    Default,
    /// An arm of the innermost switch ends.
    EndCase,
    /// A switch ends; the block `merge` comes next.
    EndSwitch,
    /// See [`Node::Break`].
    Break,
    /// See [`Node::Continue`].
    Continue,
    /// See [`Node::Return`].
    Return,
    /// See [`Node::Unreachable`].
    Unreachable,
}

/// The structured form of a function. Nodes are kept in flat lists, so that no nesting depth is
/// too deep for a walk or a drop.
#[derive(Clone, Debug, Default)]
pub struct StructuredBody {
    lists: Vec<Vec<Node>>,
    undefined: FxHashSet<(Inst, Block)>,
}

impl StructuredBody {
    /// The body of a function that has nothing yet; the root list exists.
    pub(super) fn new() -> StructuredBody {
        StructuredBody { lists: vec![Vec::new()], undefined: FxHashSet::default() }
    }

    pub(super) fn set_undefined(&mut self, arms: FxHashSet<(Inst, Block)>) {
        self.undefined = arms;
    }

    /// Whether nobody reads the value that a phi has for an edge. It is zero in the function.
    pub fn is_undefined(&self, phi: Inst, pred: Block) -> bool {
        self.undefined.contains(&(phi, pred))
    }

    /// The list the function begins with.
    pub fn root(&self) -> NodeList {
        NodeList(0)
    }

    /// The nodes of a list in order.
    pub fn nodes(&self, list: NodeList) -> &[Node] {
        &self.lists[list.0 as usize]
    }

    /// Every list, in no particular order.
    pub fn lists(&self) -> impl Iterator<Item = NodeList> + use<> {
        (0..self.lists.len() as u32).map(NodeList)
    }

    pub(super) fn nodes_mut(&mut self, list: NodeList) -> &mut Vec<Node> {
        &mut self.lists[list.0 as usize]
    }

    pub(super) fn add_list(&mut self) -> NodeList {
        self.lists.push(Vec::new());
        NodeList(self.lists.len() as u32 - 1)
    }

    /// Visits everything in source order, without recursion. A block is visited after every block
    /// that dominates it.
    pub fn walk<'a>(&'a self, mut visit: impl FnMut(Event<'a>)) {
        enum Step<'a> {
            List(NodeList, usize),
            Emit(Event<'a>),
        }
        let mut stack = vec![Step::List(self.root(), 0)];
        while let Some(step) = stack.pop() {
            let (list, at) = match step {
                Step::List(list, at) => (list, at),
                Step::Emit(event) => {
                    visit(event);
                    continue;
                }
            };
            let Some(node) = self.nodes(list).get(at) else { continue };
            stack.push(Step::List(list, at + 1));
            match node {
                Node::Block(b) => visit(Event::Block(*b)),
                Node::IfElse { cond, then, else_, merge } => {
                    visit(Event::If { cond: *cond, merge: *merge });
                    stack.push(Step::Emit(Event::EndIf));
                    if !self.nodes(*else_).is_empty() {
                        stack.push(Step::List(*else_, 0));
                        stack.push(Step::Emit(Event::Else));
                    }
                    stack.push(Step::List(*then, 0));
                }
                Node::Loop { header, body, latch, merge } => {
                    visit(Event::Loop { header: *header, latch: *latch, merge: *merge });
                    stack.push(Step::Emit(Event::EndLoop));
                    stack.push(Step::Emit(Event::Continuing { latch: *latch }));
                    stack.push(Step::List(*body, 0));
                }
                Node::Switch { value, arms, default, merge } => {
                    visit(Event::Switch { value: *value, merge: *merge });
                    stack.push(Step::Emit(Event::EndSwitch));
                    stack.push(Step::Emit(Event::EndCase));
                    stack.push(Step::List(*default, 0));
                    stack.push(Step::Emit(Event::Default));
                    for arm in arms.iter().rev() {
                        stack.push(Step::Emit(Event::EndCase));
                        stack.push(Step::List(arm.body, 0));
                        stack.push(Step::Emit(Event::Case { labels: &arm.labels }));
                    }
                }
                Node::Break => visit(Event::Break),
                Node::Continue => visit(Event::Continue),
                Node::Return => visit(Event::Return),
                Node::Unreachable => visit(Event::Unreachable),
            }
        }
    }
}
