//! Last step: drops arms that do nothing, and gives an edge to a block with phis a block.

use super::tree::{Node, NodeList, StructuredBody};
use magpie_mpir::{Block, MpirFn, Terminator};
use rustc_hash::FxHashMap;

/// See [`super`]: no block with several successors may have an edge to a block with phis, and all
/// other arms that only go on are empty.
pub(super) fn tidy_arms(f: &mut MpirFn, body: &mut StructuredBody) {
    for list in body.lists() {
        let nodes = std::mem::take(body.nodes_mut(list));
        let mut kept: Vec<Node> = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            if let (
                Some(&Node::Block(head)),
                Node::IfElse { cond: v, .. } | Node::Switch { value: v, .. },
            ) = (kept.last(), &mut node)
                && let Some(current) = f.block(head).term.operand()
            {
                // It was a placeholder when it stood for a selector.
                *v = current;
            }
            let (arms, merge): (Vec<NodeList>, Block) = match &node {
                Node::IfElse { then, else_, merge, .. } => (vec![*then, *else_], *merge),
                Node::Switch { arms, default, merge, .. } => {
                    (arms.iter().map(|a| a.body).chain([*default]).collect(), *merge)
                }
                Node::Block(_)
                | Node::Loop { .. }
                | Node::Break
                | Node::Continue
                | Node::Return
                | Node::Unreachable => {
                    kept.push(node);
                    continue;
                }
            };
            let Some(&Node::Block(head)) = kept.last() else {
                kept.push(node);
                continue;
            };
            if f.phis(merge).next().is_some() {
                fill_arms(f, body, head, &arms, merge);
                kept.push(node);
            } else if !drop_arms(f, body, head, &arms, merge) {
                kept.push(node);
            }
        }
        *body.nodes_mut(list) = kept;
    }
}

/// Gives each empty arm a block.
fn fill_arms(
    f: &mut MpirFn,
    body: &mut StructuredBody,
    head: Block,
    arms: &[NodeList],
    merge: Block,
) {
    let empty: Vec<NodeList> = arms.iter().copied().filter(|&a| body.nodes(a).is_empty()).collect();
    // Only guards have an empty arm and a merge block with phis, and only one such arm.
    for arm in empty {
        let middle = f.add_block();
        f.block_mut(middle).term = Terminator::Br(merge);
        f.block_mut(middle).term_span = f.block(head).term_span;
        f.block_mut(head).term.map_targets(|t| if t == merge { middle } else { t });
        let phis: Vec<_> = f.phis(merge).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |p| if p == head { middle } else { p });
        }
        body.nodes_mut(arm).push(Node::Block(middle));
    }
}

/// Empties arms that are one empty block. Returns whether the construct was one `if` without
/// anything in it, which is then a `br`.
fn drop_arms(
    f: &mut MpirFn,
    body: &mut StructuredBody,
    head: Block,
    arms: &[NodeList],
    merge: Block,
) -> bool {
    let mut dropped: FxHashMap<Block, Block> = FxHashMap::default();
    for &arm in arms {
        if let [Node::Block(b)] = *body.nodes(arm)
            && f.block(b).insts.is_empty()
            && f.block(b).term == Terminator::Br(merge)
        {
            body.nodes_mut(arm).clear();
            f.block_mut(b).term = Terminator::Unreachable;
            dropped.insert(b, merge);
        }
    }
    f.block_mut(head).term.map_targets(|t| dropped.get(&t).copied().unwrap_or(t));
    let is_empty = arms.iter().all(|&a| body.nodes(a).is_empty());
    if is_empty {
        f.block_mut(head).term = Terminator::Br(merge);
    }
    is_empty
}
