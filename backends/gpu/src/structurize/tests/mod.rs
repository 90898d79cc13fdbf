//! Properties on random graphs, and the shapes that matter.

mod laws;
mod limits;
mod program;
mod run;
mod shapes;

use super::*;
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
        let succs = program::reducible_graph(&mut c, max);
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
        let succs = program::any_graph(&mut c, nodes);
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
    }
}
