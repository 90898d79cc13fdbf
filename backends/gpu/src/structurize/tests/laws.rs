//! The laws of [`super::super`], checked on a result.

use super::super::{Node, NodeList, StructuredBody};
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{Block, MpirFn, Op, Terminator, ValueDef};

/// Panics when a law does not hold.
pub(super) fn check(f: &MpirFn, body: &StructuredBody) {
    let cfg = Cfg::new(f);
    let dom = Dominators::new(&cfg);
    ssa(f, &cfg, &dom);
    let mut seen = vec![0; f.blocks.len()];
    let mut is_merge = vec![false; f.blocks.len()];
    let mut is_frame = vec![false; f.blocks.len()];
    let mut work = vec![(body.root(), None::<Frame>, None::<Block>)];
    while let Some((list, around, goes_on)) = work.pop() {
        let nodes = body.nodes(list);
        let first_block = |n: usize| nodes.get(n).map(first);
        assert!(matches!(nodes.first(), Some(Node::Block(_) | Node::Loop { .. }) | None));
        let mut last = None;
        for (n, node) in nodes.iter().enumerate() {
            let term = |b: Block| &f.block(b).term;
            let mut merge = |m: Block, head: Block| {
                assert_eq!(first_block(n + 1), Some(Some(m)), "the merge block comes next");
                assert!(!std::mem::replace(&mut is_merge[m.index()], true), "{m:?} merges twice");
                if cfg.is_reachable(m) {
                    assert!(dom.dominates(head, m), "{head:?} does not dominate {m:?}");
                } else {
                    assert_eq!(*term(m), Terminator::Unreachable);
                }
            };
            match node {
                Node::Block(b) => {
                    seen[b.index()] += 1;
                    match (term(*b), nodes.get(n + 1)) {
                        (Terminator::Br(t), Some(Node::Break)) => {
                            assert_eq!(Some(*t), around.map(|a| a.merge));
                        }
                        (Terminator::Br(t), Some(Node::Continue)) => {
                            assert_eq!(Some(*t), around.map(|a| a.latch));
                        }
                        (Terminator::Br(t), next) => {
                            assert_eq!(Some(*t), next.map_or(goes_on, first), "after {b:?}");
                        }
                        (Terminator::Ret(_), Some(Node::Return))
                        | (Terminator::Unreachable, Some(Node::Unreachable))
                        | (Terminator::Cbr { .. }, Some(Node::IfElse { .. }))
                        | (Terminator::Switch { .. }, Some(Node::Switch { .. })) => {}
                        (t, next) => panic!("{b:?} ends in {t:?} but {next:?} follows"),
                    }
                    last = Some(*b);
                }
                Node::IfElse { cond, then, else_, merge: m } => {
                    let head = last.expect("a block before");
                    merge(*m, head);
                    let Terminator::Cbr { cond: c, then: t, else_: e } = term(head) else {
                        panic!("{head:?} is no branch")
                    };
                    assert_eq!(c, cond);
                    for (list, target) in [(then, t), (else_, e)] {
                        assert_eq!(enters(body, *list).unwrap_or(*m), *target);
                        work.push((*list, around, Some(*m)));
                    }
                }
                Node::Switch { value, arms, default, merge: m } => {
                    let head = last.expect("a block before");
                    merge(*m, head);
                    let Terminator::Switch { value: v, cases, default: d } = term(head) else {
                        panic!("{head:?} is no switch")
                    };
                    assert_eq!(v, value);
                    let target = |list: NodeList| enters(body, list).unwrap_or(*m);
                    assert_eq!(target(*default), *d);
                    let mut labels = 0;
                    for arm in arms {
                        labels += arm.labels.len();
                        for label in &arm.labels {
                            let case = cases.iter().find(|c| c.0 == *label).expect("the label");
                            assert_eq!(case.1, target(arm.body));
                        }
                    }
                    assert_eq!(labels, cases.len());
                    // No loop around it can be left or continued from here.
                    work.extend(arms.iter().map(|a| (a.body, None, Some(*m))));
                    work.push((*default, None, Some(*m)));
                }
                Node::Loop { header, body: inside, latch, merge: m } => {
                    merge(*m, *header);
                    let Terminator::Br(first) = *term(*header) else {
                        panic!("{header:?} does more than enter its loop")
                    };
                    assert_eq!(enters(body, *inside), Some(first));
                    for b in [*header, *latch] {
                        assert!(f.block(b).insts.iter().all(|&i| f.inst(i).op == Op::Phi));
                        is_frame[b.index()] = true;
                        seen[b.index()] += 1;
                    }
                    assert_eq!(*term(*latch), Terminator::Br(*header));
                    let back: Vec<_> =
                        cfg.preds(*header).iter().filter(|&&p| dom.dominates(*header, p)).collect();
                    assert_eq!(back, [latch]);
                    work.push((*inside, Some(Frame { merge: *m, latch: *latch }), None));
                    last = Some(*header);
                }
                Node::Break | Node::Continue => assert!(around.is_some() && n + 1 == nodes.len()),
                Node::Return | Node::Unreachable => assert_eq!(n + 1, nodes.len()),
            }
        }
    }
    for b in f.block_ids() {
        assert_eq!(seen[b.index()], (cfg.is_reachable(b) || is_merge[b.index()]) as u32, "{b:?}");
        assert!(!(is_merge[b.index()] && is_frame[b.index()]), "{b:?} is frame and merge block");
        if cfg.succs(b).len() > 1 {
            for &s in cfg.succs(b) {
                assert!(f.phis(s).next().is_none(), "critical edge {b:?} to phis of {s:?}");
            }
        }
    }
    order(body, &cfg, &dom);
}

#[derive(Clone, Copy)]
struct Frame {
    merge: Block,
    latch: Block,
}

/// The block a node begins with.
fn first(node: &Node) -> Option<Block> {
    match node {
        Node::Block(b) | Node::Loop { header: b, .. } => Some(*b),
        Node::IfElse { .. }
        | Node::Switch { .. }
        | Node::Break
        | Node::Continue
        | Node::Return
        | Node::Unreachable => None,
    }
}

fn enters(body: &StructuredBody, list: NodeList) -> Option<Block> {
    body.nodes(list).first().and_then(first)
}

/// A walk meets dominators first.
fn order(body: &StructuredBody, cfg: &Cfg, dom: &Dominators) {
    use super::super::Event;
    let mut met = vec![false; cfg.num_blocks()];
    body.walk(|event| {
        let b = match event {
            Event::Block(b) | Event::Loop { header: b, .. } | Event::Continuing { latch: b } => b,
            _ => return,
        };
        assert!(dom.idom(b).is_none_or(|d| met[d.index()]), "{b:?} comes before its dominator");
        met[b.index()] = true;
    });
}

/// Definitions dominate uses, and phis have an arm for each predecessor.
fn ssa(f: &MpirFn, cfg: &Cfg, dom: &Dominators) {
    let mut place = vec![None; f.locals.len()];
    for b in f.block_ids() {
        for (n, &i) in f.block(b).insts.iter().enumerate() {
            if let Some(v) = f.inst(i).result() {
                assert!(place[v.index()].replace((b, n)).is_none(), "{v:?} is listed twice");
            }
        }
    }
    for &b in cfg.rpo() {
        let known = |v: magpie_mpir::Value, at: Block, before: usize| match f.def(v) {
            ValueDef::Param(_) | ValueDef::Const(_) => true,
            ValueDef::Inst(_) => place[v.index()]
                .is_some_and(|(d, n)| if d == at { n < before } else { dom.dominates(d, at) }),
        };
        for (n, &i) in f.block(b).insts.iter().enumerate() {
            if f.inst(i).op == Op::Phi {
                let mut arms: Vec<Block> = f.phi_arms(i).map(|(p, _)| p).collect();
                arms.sort();
                assert_eq!(arms, cfg.preds(b), "arms of a phi in {b:?}");
                for (p, v) in f.phi_arms(i) {
                    assert!(known(v, p, usize::MAX), "{v:?} on the edge {p:?} to {b:?}");
                }
            } else {
                for &v in f.args(i) {
                    assert!(known(v, b, n), "{v:?} in {b:?}");
                }
            }
        }
        if let Some(v) = f.block(b).term.operand() {
            assert!(known(v, b, usize::MAX), "{v:?} at the end of {b:?}");
        }
    }
}
