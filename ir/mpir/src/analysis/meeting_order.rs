//! [`meeting_order`]: who waits for whom when invocations of a subgroup have parted.

use super::{Cfg, Dominators, LoopId, Loops};
use crate::Block;

/// For each reachable block its place in an order in which what a loop contains comes before what
/// lies behind it, and everything else in reverse postorder.
///
/// Invocations that wait in different blocks go on in this order, so that those behind a branch or a
/// loop wait for the others.
pub fn meeting_order(cfg: &Cfg) -> Vec<u32> {
    let loops = Loops::new(cfg, &Dominators::new(cfg));
    // What the function, at 0, and each loop consist of.
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); loops.ids().len() + 1];
    let list = |l: Option<LoopId>| l.map_or(0, |l| l.index() + 1);
    for &b in cfg.rpo() {
        let innermost = loops.innermost(b);
        if let Some(l) = innermost.filter(|&l| loops.header(l) == b) {
            parts[list(loops.parent(l))].push(Part::Loop(l));
        }
        parts[list(innermost)].push(Part::Block(b));
    }
    let mut order = vec![u32::MAX; cfg.num_blocks()];
    let mut next = 0;
    let mut open = vec![parts[0].iter()];
    while let Some(rest) = open.last_mut() {
        match rest.next() {
            Some(&Part::Block(b)) => {
                order[b.index()] = next;
                next += 1;
            }
            Some(&Part::Loop(l)) => open.push(parts[list(Some(l))].iter()),
            None => {
                open.pop();
            }
        }
    }
    order
}

#[derive(Clone, Copy)]
enum Part {
    Block(Block),
    Loop(LoopId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FnId, parse};
    use magpie_diag::FileId;

    #[test]
    fn a_loop_comes_before_what_is_behind_it() {
        // Both orders of the successors.
        for branch in ["cbr %c, bb2, bb3", "cbr %c, bb3, bb2"] {
            let text = format!(
                "fn t.@f(%c: bool) {{\nbb0:\n  br bb1\nbb1:\n  {branch}\nbb2:\n  cbr %c, bb1, bb4\nbb3:\n  ret\nbb4:\n  br bb1\n}}\n"
            );
            let module = parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
            let order = meeting_order(&Cfg::new(module.func(FnId(0))));
            let at = |b| order[Block(b).index()];
            assert!(at(0) < at(1) && at(1) < at(2) && at(2) < at(4) && at(4) < at(3), "{order:?}");
        }
    }
}
