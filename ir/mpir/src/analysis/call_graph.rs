//! [`CallGraph`]: which functions call which.

use crate::{FnId, Immediate, Module};

/// The calls of a module, with functions in an order that puts callees before callers.
#[derive(Clone, Default, Debug)]
pub struct CallGraph {
    start: Vec<u32>,
    callees: Vec<FnId>,
    bottom_up: Vec<FnId>,
    is_recursive: Vec<bool>,
}

impl CallGraph {
    /// The graph of a module. Functions whose address is taken count as called.
    pub fn new(module: &Module) -> CallGraph {
        let n = module.fns.len();
        let mut graph = CallGraph { start: vec![0], ..CallGraph::default() };
        let mut seen_by = vec![u32::MAX; n];
        for (caller, f) in module.fns.iter().enumerate() {
            for &i in f.blocks.iter().flat_map(|b| &b.insts) {
                let inst = f.inst(i);
                let callee = inst.func();
                if inst.op.info().immediate == Immediate::Func
                    && callee.index() < n
                    && std::mem::replace(&mut seen_by[callee.index()], caller as u32)
                        != caller as u32
                {
                    graph.callees.push(callee);
                }
            }
            graph.start.push(graph.callees.len() as u32);
        }
        graph.find_cycles(n);
        graph
    }

    /// Strongly connected components (Tarjan, 1972), which come out bottom up.
    fn find_cycles(&mut self, n: usize) {
        const NEW: u32 = u32::MAX;
        self.is_recursive = vec![false; n];
        let mut number = vec![NEW; n];
        let mut low = vec![0; n];
        let mut open = Vec::new();
        let mut is_open = vec![false; n];
        let mut stack: Vec<(usize, usize)> = Vec::new();
        let mut next = 0;
        for root in 0..n {
            if number[root] != NEW {
                continue;
            }
            stack.push((root, 0));
            while let Some(top) = stack.last_mut() {
                let f = top.0;
                if number[f] == NEW {
                    number[f] = next;
                    low[f] = next;
                    next += 1;
                    open.push(f);
                    is_open[f] = true;
                }
                if let Some(callee) = self.callees(FnId::new(f)).get(top.1) {
                    top.1 += 1;
                    let c = callee.index();
                    if number[c] == NEW {
                        stack.push((c, 0));
                    } else if is_open[c] {
                        low[f] = low[f].min(number[c]);
                        self.is_recursive[f] |= c == f;
                    }
                    continue;
                }
                stack.pop();
                if let Some(&(caller, _)) = stack.last() {
                    low[caller] = low[caller].min(low[f]);
                }
                if low[f] != number[f] {
                    continue;
                }
                let first = self.bottom_up.len();
                while let Some(member) = open.pop() {
                    is_open[member] = false;
                    self.bottom_up.push(FnId::new(member));
                    if member == f {
                        break;
                    }
                }
                if self.bottom_up.len() - first > 1 {
                    for member in &self.bottom_up[first..] {
                        self.is_recursive[member.index()] = true;
                    }
                }
            }
        }
    }

    /// The functions that a function calls or names, each once, in order of appearance.
    pub fn callees(&self, f: FnId) -> &[FnId] {
        &self.callees[self.start[f.index()] as usize..self.start[f.index() + 1] as usize]
    }

    /// Every function; callees before callers, except along cycles.
    pub fn bottom_up(&self) -> &[FnId] {
        &self.bottom_up
    }

    /// Whether a function can reach a call of itself.
    pub fn is_recursive(&self, f: FnId) -> bool {
        self.is_recursive[f.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domain, Flags, MpirFn, Op};
    use magpie_types::{Sid, SidKind, fixed};

    fn module(calls: &[&[u32]]) -> Module {
        let mut m = Module::new();
        for (n, callees) in calls.iter().enumerate() {
            let name = format!("t.@f{n}");
            let sid = Sid::new(SidKind::Function, &name);
            let mut f = MpirFn::new(sid, name, fixed::UNIT, Domain::Device);
            let b = f.add_block();
            for &c in *callees {
                let span = magpie_diag::Span::NONE;
                f.append(b, Op::Call, Flags::NONE, fixed::UNIT, &[], c as u64, span);
            }
            m.add_fn(f);
        }
        m
    }

    #[test]
    fn cycles_and_order() {
        // 0 → 1 → 2 ⇄ 3, 0 → 4 → 4, 5
        let g = CallGraph::new(&module(&[&[1, 4, 1], &[2], &[3], &[2], &[4], &[]]));
        assert_eq!(g.callees(FnId(0)), [FnId(1), FnId(4)]);
        let recursive: Vec<_> = (0..6).map(|n| g.is_recursive(FnId(n))).collect();
        assert_eq!(recursive, [false, false, true, true, true, false]);
        let place = |n| g.bottom_up().iter().position(|&f| f == FnId(n)).unwrap();
        assert!(place(2) < place(1) && place(1) < place(0) && place(4) < place(0));
        assert_eq!(g.bottom_up().len(), 6);
    }

    #[test]
    fn a_long_chain_needs_no_recursion() {
        let calls: Vec<Vec<u32>> = (0..100_000).map(|n| vec![n + 1]).chain([vec![]]).collect();
        let calls: Vec<&[u32]> = calls.iter().map(|c| &c[..]).collect();
        assert_eq!(CallGraph::new(&module(&calls)).bottom_up()[0], FnId(100_000));
    }
}
