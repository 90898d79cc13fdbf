//! Properties on random graphs, and the shapes that matter.

mod laws;
mod program;
mod run;

use super::*;
use magpie_mpir::Block;
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
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 20_000, ..Default::default() })]

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

#[test]
#[ignore]
fn zz_hunt() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut rng = 88172645463325252u64;
    let mut next = || {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        rng
    };
    for size in 30..200usize {
        for _ in 0..3000 {
            let choices: Vec<u32> = (0..size).map(|_| (next() >> 20) as u32).collect();
            for irr in [true, false] {
                let r = std::panic::catch_unwind(|| {
                    let mut c = Choices::new(&choices);
                    let n = 2 + size / 10;
                    let succs = if irr {
                        program::any_graph(&mut c, n.min(14))
                    } else {
                        program::reducible_graph(&mut c, n)
                    };
                    let (f, types) = program::kernel(&succs, &mut c);
                    let mut g = f.clone();
                    if irr {
                        lower_irreducible(&mut g, &types);
                    }
                    let body = structurize(&mut g, &types).expect("reducible");
                    laws::check(&g, &body);
                    agree(&f, &g, &body);
                });
                if let Err(e) = r {
                    let _ = std::panic::take_hook();
                    let msg = e
                        .downcast_ref::<String>()
                        .cloned()
                        .or(e.downcast_ref::<&str>().map(|s| s.to_string()))
                        .unwrap_or_default();
                    println!("{msg}");
                    let mut c = Choices::new(&choices);
                    let n = 2 + size / 10;
                    let succs = if irr {
                        program::any_graph(&mut c, n.min(14))
                    } else {
                        program::reducible_graph(&mut c, n)
                    };
                    let (f, types) = program::kernel(&succs, &mut c);
                    println!("irr={irr} size={size}\n{succs:?}");
                    let module = magpie_mpir::Module::new();
                    let _ = &module;
                    for b in f.block_ids() {
                        println!("{b:?}: {:?}", f.block(b).term);
                    }
                    let mut g = f.clone();
                    let gg = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        if irr {
                            lower_irreducible(&mut g, &types);
                        }
                        let body = structurize(&mut g, &types).unwrap();
                        (body,)
                    }));
                    println!("--- after");
                    for b in g.block_ids() {
                        println!(
                            "{b:?}: {:?}  {:?}",
                            g.block(b).term,
                            g.block(b)
                                .insts
                                .iter()
                                .map(|&i| format!(
                                    "{:?} = {:?} {:?}",
                                    g.inst(i).result(),
                                    g.inst(i).op,
                                    if g.inst(i).op == magpie_mpir::Op::Phi {
                                        format!("{:?}", g.phi_arms(i).collect::<Vec<_>>())
                                    } else {
                                        format!("{:?}", g.args(i))
                                    }
                                ))
                                .collect::<Vec<_>>()
                        );
                    }
                    if let Ok((body,)) = gg {
                        let mut d = 0usize; body.walk(|e| { use Event::*; if matches!(e, Else|EndIf|EndLoop|EndCase|EndSwitch|Continuing{..}) { d -= 1; } println!("{}{e:?}", "  ".repeat(d)); if matches!(e, If{..}|Else|Loop{..}|Switch{..}|Case{..}|Default|Continuing{..}) { d += 1; } });
                    }
                    panic!("found");
                }
            }
        }
    }
    println!("all fine");
}
