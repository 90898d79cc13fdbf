//! Deep and large graphs: no recursion, no quadratic time.

use super::super::*;
use super::laws;
use super::program::{self, Choices};
use std::time::{Duration, Instant};

/// Structures a graph, checks the laws, and returns the time it took and the number of blocks.
fn structure(succs: &[Vec<usize>], choices: &[u32]) -> (Duration, usize) {
    let (mut f, types) = program::kernel(succs, &mut Choices::new(choices));
    let start = Instant::now();
    let body = structurize(&mut f, &types).expect("reducible");
    let time = start.elapsed();
    laws::check(&f, &body);
    (time, f.blocks.len())
}

/// `n` ifs, each inside the one before: node 2k is the test, 2k + 1 where it joins.
fn nested_ifs(n: usize) -> Vec<Vec<usize>> {
    let mut succs = Vec::new();
    for k in 0..n {
        let inner = if k + 1 < n { 2 * k + 2 } else { 2 * k + 1 };
        succs.push(vec![inner, 2 * k + 1]);
        succs.push(if k == 0 { vec![] } else { vec![2 * k - 1] });
    }
    succs
}

/// `n` loops, each inside the one before; the innermost leaves them all.
fn nested_loops(n: usize) -> Vec<Vec<usize>> {
    // Node k heads loop k; n leaves; n + 1 + k goes on with loop k.
    let mut succs: Vec<Vec<usize>> = (0..n).map(|k| vec![k + 1]).collect();
    let end = 2 * n + 1;
    succs.push(vec![end, 2 * n]);
    for k in 0..n {
        // Back to loop k, or out to what goes on with the loop around it.
        succs.push(if k == 0 { vec![0] } else { vec![k, n + k] });
    }
    succs.push(vec![]);
    succs
}

#[test]
fn ten_thousand_nested_ifs() {
    structure(&nested_ifs(10_000), &[]);
}

#[test]
fn five_thousand_nested_loops_left_at_once() {
    structure(&nested_loops(5_000), &[]);
}

#[test]
fn a_ladder_of_joins() {
    // Node k goes on or to rung k; each rung falls to the next.
    let n = 5_000;
    let mut succs: Vec<Vec<usize>> = (0..n).map(|k| vec![k + 1, n + 1 + k]).collect();
    succs.push(vec![n + 1]);
    succs.extend((0..n).map(|k| if k + 1 < n { vec![n + 2 + k] } else { vec![] }));
    structure(&succs, &[]);
}

#[test]
fn a_switch_with_many_arms() {
    let n = 20_000;
    let mut succs = vec![(1..=n).collect::<Vec<_>>()];
    succs.extend((1..=n).map(|_| vec![n + 1]));
    succs.push(vec![]);
    structure(&succs, &[]);
}

#[test]
fn time_grows_with_size() {
    // A chain of loops with a switch, an if and an early exit inside.
    let chain = |n: usize| -> Vec<Vec<usize>> {
        let mut succs = Vec::new();
        for k in 0..n {
            let at = 10 * k;
            succs.push(vec![at + 1, at + 9]);
            succs.push(vec![at + 2, at + 3, at + 4]);
            succs.push(vec![at + 5]);
            succs.push(vec![at + 5]);
            succs.push(vec![at + 9]);
            succs.push(vec![at + 6, at + 7]);
            succs.push(vec![at + 8]);
            succs.push(vec![at + 8]);
            succs.push(vec![at]);
            succs.push(if k + 1 < n { vec![at + 10] } else { vec![] });
        }
        succs
    };
    let (small, _) = structure(&chain(500), &[]);
    let (large, blocks) = structure(&chain(5_000), &[]);
    assert!(blocks > 50_000);
    // Ten times the size: linear would be 10, quadratic 100.
    assert!(large < small * 40 + Duration::from_millis(200), "{small:?}, then {large:?}");
}
