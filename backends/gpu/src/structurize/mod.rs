//! Structured control flow for the targets that need it: SPIR-V, MSL and WGSL.
//!
//! [`structurize`] rewrites a kernel so that its control-flow graph *is* structured, and returns
//! the tree. The graph stays SSA: an emitter that keeps phis (SPIR-V) prints blocks as they are
//! and adds the merge instructions, an emitter of text takes its control flow from the tree and
//! its phis from [`phi_copies`].
//!
//! What holds afterwards:
//! - Every reachable block stands in the tree once: as a [`Node::Block`], as the header or as the
//!   latch of a [`Node::Loop`]. Blocks come before those they dominate.
//! - A list that is not empty begins with a block or a loop. Its last block ends in a `br` to the
//!   place where the construct around the list goes on, or the list ends in a leaving node.
//! - An `IfElse`, a `Switch` or a `Loop` is followed in its list by its merge block, which is the
//!   merge block of no other construct, neither a loop header nor a latch, and dominated by the
//!   block before the construct. When no path leads there it ends in `unreachable`.
//! - A loop is entered at its header only, has one edge back, from its latch, and is left only
//!   through `Break`, `Return` and `Unreachable` of its own level. An exit through several levels
//!   has become a selector value that each level on the way out tests.
//! - No block with several successors has an edge to a block with phis.
//! - Arrays (`gpu.shared`, `gpu.local`) are made in the entry block.

mod tree;

pub use tree::{Event, Node, NodeList, StructuredBody, SwitchArm};
