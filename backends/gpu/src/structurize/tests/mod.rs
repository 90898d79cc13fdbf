//! Properties on random graphs, and the shapes that matter.

mod laws;
mod limits;
mod program;
mod run;
mod shapes;

use super::*;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::testing::{
    GraphShape, RandomArgument, RandomKernel, any_graph, random_graph_kernel, reducible_graph,
};
use program::Choices;
use proptest::prelude::*;
use run::Phis;

fn agree(f: &MpirFn, structured: &MpirFn, body: &StructuredBody) {
    for seed in 0..4 {
        let expected = run::run_graph(f, seed);
        assert_eq!(run::run_graph(structured, seed), expected);
        assert_eq!(run::run_tree(structured, body, seed, Phis::Edges), expected);
        assert_eq!(run::run_tree(structured, body, seed, Phis::Copies), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn reducible_graphs_keep_their_meaning(choices in prop::collection::vec(any::<u32>(), 0..300)) {
        let mut c = Choices::new(&choices);
        let max = 2 + c.below(30);
        let succs = reducible_graph(max, |n| c.next_below(n));
        let (f, types) = program::kernel(&succs, &mut c);
        let mut g = f.clone();
        let body = structurize(&mut g, &types).expect("reducible");
        laws::check(&g, &body);
        agree(&f, &g, &body);
    }

    #[test]
    fn any_graph_can_be_made_reducible(choices in prop::collection::vec(any::<u32>(), 0..150)) {
        let mut c = Choices::new(&choices);
        let nodes = 1 + c.below(14);
        let succs = any_graph(nodes, |n| c.below(n));
        let (f, types) = program::kernel(&succs, &mut c);
        let mut g = f.clone();
        let changed = lower_irreducible(&mut g, &types);
        for seed in 0..4 {
            prop_assert_eq!(run::run_graph(&f, seed), run::run_graph(&g, seed));
        }
        let mut h = f.clone();
        match structurize(&mut h, &types) {
            Ok(_) => prop_assert!(!changed),
            Err(e) => prop_assert!(changed && e.entries.len() >= 2),
        }
        let body = structurize(&mut g, &types).expect("reducible now");
        laws::check(&g, &body);
        agree(&f, &g, &body);
        let body = structurize_any(&mut h, &types).expect("reducible now");
        laws::check(&h, &body);
        agree(&f, &h, &body);
    }
}

/// The output of a kernel in the reference interpreter.
fn interpret(k: &RandomKernel) -> Vec<u8> {
    let mut memory = k.buffers[0].bytes.clone();
    let arguments: Vec<Argument> = k
        .arguments
        .iter()
        .map(|a| match a {
            RandomArgument::Buffer(n) => Argument::Buffer(*n),
            RandomArgument::Scalar(bytes) => Argument::Scalar(bytes.clone()),
        })
        .collect();
    let mut views = [Buffer { bytes: &mut memory }];
    let launch = Launch::new(k.grid, k.block);
    run_kernel(&k.module, k.kernel, launch, &arguments, &mut views, &mut |_| {}).expect("defined");
    memory
}

#[test]
fn kernels_over_graphs_give_the_same_results() {
    for seed in 0..300 {
        for (shape, nodes) in [(GraphShape::Reducible, 24), (GraphShape::Any, 10)] {
            let mut k = random_graph_kernel(seed, shape, nodes);
            let expected = interpret(&k);
            let mut f = k.module.func(k.kernel).clone();
            lower_irreducible(&mut f, &k.module.types);
            let body = structurize(&mut f, &k.module.types).expect("reducible");
            laws::check(&f, &body);
            k.module.fns[k.kernel.index()] = f;
            assert_eq!(interpret(&k), expected, "seed {seed}");
        }
    }
}
