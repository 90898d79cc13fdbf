//! What typical graphs become, written as text.

use super::super::*;
use super::program::{self, Choices};
use super::{agree, laws};
use magpie_mpir::{Block, Flags, Op, Terminator};
use magpie_types::{TypeKind, fixed};

/// The tree of a graph whose entry leads to node 0. Nodes are numbers; blocks that were added are
/// left out, so that two trees are equal when they mean the same. A guard is `if`, too.
fn tree(succs: &[&[usize]]) -> String {
    let succs: Vec<Vec<usize>> = succs.iter().map(|s| s.to_vec()).collect();
    let (f, types) = program::kernel(&succs, &mut Choices::new(&[]));
    let mut g = f.clone();
    let body = structurize(&mut g, &types).expect("reducible");
    laws::check(&g, &body);
    agree(&f, &g, &body);
    let mut out = Vec::new();
    body.walk(|event| {
        out.push(match event {
            // The entry block, new blocks, and headers, whose instructions move away.
            Event::Block(b) => match b.index().checked_sub(1) {
                Some(n) if n < succs.len() => n.to_string(),
                _ => return,
            },
            Event::Loop { header, .. } => format!("loop {} {{", header.index() - 1),
            Event::If { .. } => "if {".to_string(),
            Event::Else => "} else {".to_string(),
            Event::Switch { .. } => "switch {".to_string(),
            Event::Case { labels } => format!("case {labels:?} {{"),
            Event::Default => "default {".to_string(),
            Event::EndIf | Event::EndLoop | Event::EndCase | Event::EndSwitch => "}".to_string(),
            Event::Continuing { .. } => return,
            Event::Break => "break".to_string(),
            Event::Continue => "continue".to_string(),
            Event::Return => "ret".to_string(),
            Event::Unreachable => "unreachable".to_string(),
        });
    });
    out.join(" ").replace("{ }", "{}")
}

#[test]
fn straight_line() {
    assert_eq!(tree(&[&[1], &[2], &[]]), "0 1 2 ret");
}

#[test]
fn if_then_else() {
    assert_eq!(tree(&[&[1, 2], &[3], &[3], &[]]), "0 if { 1 } else { 2 } 3 ret");
    assert_eq!(tree(&[&[1, 2], &[2], &[]]), "0 if { 1 } 2 ret");
}

#[test]
fn early_return_needs_no_flag() {
    assert_eq!(tree(&[&[1, 2], &[], &[3], &[]]), "0 if { 1 ret } 2 3 ret");
}

#[test]
fn nested_ifs_with_one_join() {
    assert_eq!(tree(&[&[1, 3], &[2, 3], &[3], &[]]), "0 if { 1 if { 2 } } 3 ret");
}

#[test]
fn short_circuit_is_one_guard() {
    // if (0 && 1) 2 else 3; 4
    let expected = "0 if { 1 if { 2 } else {} } else {} if { 3 } 4 ret";
    assert_eq!(tree(&[&[1, 3], &[2, 3], &[4], &[4], &[]]), expected);
}

#[test]
fn while_loop() {
    let expected = "loop 0 { if {} else { break } 1 continue } 2 ret";
    assert_eq!(tree(&[&[1, 2], &[0], &[]]), expected);
}

#[test]
fn do_while_loop() {
    let expected = "loop 0 { 1 if {} else { break } continue } 2 ret";
    assert_eq!(tree(&[&[1], &[0, 2], &[]]), expected);
}

#[test]
fn endless_loop() {
    assert_eq!(tree(&[&[1], &[0]]), "loop 0 { 1 continue } unreachable");
}

#[test]
fn return_inside_a_loop_stays_there() {
    // while (0) { if (1) return; 2 } 3
    let expected = "loop 0 { if {} else { break } 1 if { 4 ret } 2 continue } 3 ret";
    assert_eq!(tree(&[&[1, 3], &[4, 2], &[0], &[], &[]]), expected);
}

#[test]
fn break_through_two_levels() {
    // loop 0 { loop 1 { if (1) { if (!2) leave both } else { leave one } } 3 } 4
    let expected = "loop 0 { loop 1 { if {} else { break } 2 if {} else { break } continue } \
                    if {} else { break } 3 continue } 4 5 ret";
    assert_eq!(tree(&[&[1], &[2, 3], &[1, 4], &[0], &[5], &[]]), expected);
}

#[test]
fn switch_with_shared_and_falling_arms() {
    assert_eq!(
        tree(&[&[4, 1, 2, 3], &[4], &[4], &[4], &[]]),
        "0 switch { case [0, 3] { 1 } case [1] { 2 } case [2] { 3 } default {} } 4 ret"
    );
    // 1 falls into 2.
    assert_eq!(
        tree(&[&[3, 1, 2], &[2], &[3], &[]]),
        "0 switch { case [0, 2] { 1 } case [1] {} default {} } if { 2 } 3 ret"
    );
}

#[test]
fn switch_arm_that_continues_goes_behind() {
    // loop 0 { switch 1 { 2: continue; 3: break; else 4: continue } } 5
    let expected = "loop 0 { 1 switch { case [0, 2] {} case [1] {} default {} } \
                    if { 2 continue } if { break } 4 continue } 3 5 ret";
    assert_eq!(tree(&[&[1], &[4, 2, 3], &[0], &[5], &[0], &[]]), expected);
}

#[test]
fn irreducible_graphs_are_refused_with_their_entries() {
    let succs = [vec![1, 2], vec![2], vec![1, 3], vec![]];
    let (mut f, types) = program::kernel(&succs, &mut Choices::new(&[]));
    let e = structurize(&mut f, &types).expect_err("irreducible");
    assert_eq!(e.entries, [Block(2), Block(3)]);
    let d = e.to_diagnostic(&f, magpie_types::kernel::GpuBackend::Wgsl);
    assert_eq!(d.code, magpie_diag::Code::MPG_WGSL_1001);
    assert!(d.message.contains("`@k`") && d.secondary.len() == 2, "{}", d.message);
}

#[test]
fn arrays_of_a_loop_move_out_and_are_zeroed_there() {
    let succs = [vec![1], vec![0, 2], vec![]];
    let (mut f, mut types) = program::kernel(&succs, &mut Choices::new(&[]));
    let local = types.intern(TypeKind::LocalArray(fixed::U32, 4));
    let shared = types.intern(TypeKind::SharedArray(fixed::U32, 4));
    let span = magpie_diag::Span::NONE;
    for (op, ty) in [(Op::GpuLocal, local), (Op::GpuShared, shared)] {
        let i = f.make_inst(op, Flags::NONE, ty, &[], 0, span);
        f.block_mut(Block(2)).insts.insert(0, i);
    }
    let body = structurize(&mut f, &types).expect("reducible");
    laws::check(&f, &body);
    let ops = |b: Block| f.block(b).insts.iter().map(|&i| f.inst(i).op).collect::<Vec<_>>();
    let entry = ops(Block(0));
    assert!(entry.contains(&Op::GpuLocal) && entry.contains(&Op::GpuShared), "{entry:?}");
    let made_elsewhere = f
        .block_ids()
        .skip(1)
        .any(|b| ops(b).iter().any(|op| matches!(op, Op::GpuLocal | Op::GpuShared)));
    assert!(!made_elsewhere);
    let mut loops = 0;
    body.walk(|event| loops += matches!(event, Event::Loop { .. }) as u32);
    assert_eq!(loops, 2);
}

#[test]
fn swapped_phis_go_through_a_temporary() {
    // loop 1: (x, y) = phi (a, b), (y, x)
    let succs = [vec![1], vec![1, 2], vec![]];
    let (mut f, types) = program::kernel(&succs, &mut Choices::new(&[]));
    let (a, b) = (f.const_u32(1), f.const_u32(2));
    let span = magpie_diag::Span::NONE;
    let (x, y) = (f.make_phi(fixed::U32, &[], span), f.make_phi(fixed::U32, &[], span));
    let (vx, vy) = (f.inst(x).result().unwrap(), f.inst(y).result().unwrap());
    f.set_phi_arms(x, &[(Block(1), a), (Block(2), vy)]);
    f.set_phi_arms(y, &[(Block(1), b), (Block(2), vx)]);
    let output = f.params[1].0;
    let store = [output, a, vx];
    let store = f.make_inst(Op::GpuBufferStore, Flags::NONE, fixed::UNIT, &store, 0, span);
    let rest = std::mem::take(&mut f.block_mut(Block(2)).insts);
    f.block_mut(Block(2)).insts = [x, y, store].into_iter().chain(rest).collect();
    let mut g = f.clone();
    let body = structurize(&mut g, &types).expect("reducible");
    laws::check(&g, &body);
    agree(&f, &g, &body);
    let latch = g.block_ids().find(|&b| !phi_copies(&g, &body).at(b).is_empty() && b != Block(1));
    let copies = phi_copies(&g, &body);
    assert_eq!(copies.temporaries, [fixed::U32]);
    assert_eq!(copies.at(latch.unwrap()).len(), 3);
}

#[test]
fn a_switch_over_bool_is_an_if() {
    let succs = [vec![1, 2], vec![], vec![]];
    let (mut f, types) = program::kernel(&succs, &mut Choices::new(&[]));
    let value = f.const_bool(true);
    f.block_mut(Block(1)).term =
        Terminator::Switch { value, cases: vec![(0, Block(3))], default: Block(2) };
    let body = structurize(&mut f, &types).expect("reducible");
    assert!(body.nodes(body.root()).iter().any(|n| matches!(n, Node::IfElse { .. })));
}
