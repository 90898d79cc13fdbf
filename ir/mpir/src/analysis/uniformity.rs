//! [`Uniformity`]: what is the same for all invocations of a workgroup.
//!
//! Values are divergent at their source (invocation ids, private memory, atomics, subgroup
//! operations) or through an operand. Control makes values divergent in two ways: a phi where
//! invocations that took different ways meet, and a value that leaves a loop from which
//! invocations break away in different rounds.
//!
//! Where invocations meet is found by labels. Blocks with one label are passed by the same
//! invocations together; a divergent branch gives each side a label of its own, a loop has one for
//! a round of it, and a block that every invocation passes which passed its dominator takes that
//! one's label back. A phi whose edges carry different labels is a meeting point.

use super::{Cfg, Dominators, LoopId, Loops, Positions, PostDominators};
use crate::{Block, Inst, Memory, MpirFn, Op, Value, ValueDef};
use magpie_types::{TypeCtx, TypeKind};

/// Labels: the number of a block for what starts in it (a round of a loop, a meeting), or
/// [`SIDE`] + the number of a block that a divergent branch enters.
type Label = u32;
const SIDE: Label = 1 << 31;
/// A label that no other edge has.
const FRESH: Label = u32::MAX;

/// The number of sweeps after which everything counts as divergent.
const MAX_SWEEPS: usize = 64;

/// The uniform values, branches and blocks of a device function.
///
/// Kernel parameters, workgroup ids and sizes are uniform, and so is a load at a uniform index
/// from a buffer or a shared array. The parameters of a function that is no kernel are divergent.
#[derive(Clone, Default, Debug)]
pub struct Uniformity {
    divergent: Vec<bool>,
    /// Uniform where it is computed, divergent where it is used behind its loop.
    leaves_loop: Vec<bool>,
    /// The block whose divergent branch decides whether a block is executed.
    decided_by: Vec<Option<Block>>,
    is_divergent_branch: Vec<bool>,
    label: Vec<Label>,
    loops: Vec<LoopFacts>,
    /// Memory whose elements may differ between invocations that read them.
    varying: Vec<Value>,
    scratch: Scratch,
}

#[derive(Clone, Copy, Default, Debug)]
struct LoopFacts {
    /// The label of the edges that enter the loop.
    outer: Label,
    /// Invocations that are together in a round may leave in different rounds.
    is_divergent: bool,
    /// The innermost loop, this one or around it, that is divergent.
    nearest_divergent: Option<LoopId>,
}

#[derive(Clone, Default, Debug)]
struct Scratch {
    dom: Dominators,
    pdom: PostDominators,
    loops: Loops,
    positions: Positions,
    meets: Vec<bool>,
    next_unmarked: Vec<u32>,
    work: Vec<Block>,
}

impl Uniformity {
    /// The uniform parts of a function.
    pub fn new(f: &MpirFn, types: &TypeCtx, cfg: &Cfg) -> Uniformity {
        let mut u = Uniformity::default();
        u.compute(f, types, cfg);
        u
    }

    /// As [`Uniformity::new`], but the elements of memory that the function writes are divergent: an
    /// invocation may read them before another one writes them.
    pub fn of_written_memory(f: &MpirFn, types: &TypeCtx, cfg: &Cfg) -> Uniformity {
        let mut u = Uniformity::default();
        for b in f.block_ids() {
            for &i in &f.block(b).insts {
                let writes = matches!(f.inst(i).op.info().memory, Memory::Write | Memory::Atomic);
                u.varying.extend(f.args(i).first().filter(|_| writes));
            }
        }
        u.compute(f, types, cfg);
        u
    }

    /// Recomputes everything, reusing memory.
    pub fn compute(&mut self, f: &MpirFn, types: &TypeCtx, cfg: &Cfg) {
        let blocks = f.blocks.len();
        let s = &mut self.scratch;
        s.dom.compute(cfg);
        s.pdom.compute(f, cfg);
        s.loops.compute(cfg, &s.dom);
        s.positions.compute(f);
        fill(&mut s.meets, blocks, false);
        fill(&mut self.divergent, f.locals.len(), false);
        fill(&mut self.leaves_loop, f.locals.len(), false);
        fill(&mut self.is_divergent_branch, blocks, false);
        fill(&mut self.label, blocks, 0);
        fill(&mut self.loops, s.loops.ids().len(), LoopFacts::default());
        if !f.is_kernel() {
            for &(v, _) in &f.params {
                self.divergent[v.index()] = true;
            }
        }
        let scratch = std::mem::take(&mut self.scratch);
        let sweeps = if scratch.loops.is_reducible() { MAX_SWEEPS } else { 0 };
        let mut run = Run { f, types, cfg, s: scratch, out: self };
        if !(0..sweeps).any(|_| !run.sweep()) {
            // Irreducible control flow has no rounds to speak of.
            run.give_up();
        }
        self.scratch = run.s;
        self.mark_blocks(cfg);
    }

    /// Whether all invocations that compute a value in the same round of its loops compute the
    /// same, and whether that holds for all of its uses.
    pub fn is_uniform(&self, v: Value) -> bool {
        !self.divergent[v.index()] && !self.leaves_loop[v.index()]
    }

    /// Whether invocations that reach the end of a block together go on in different blocks.
    pub fn is_divergent_branch(&self, b: Block) -> bool {
        self.is_divergent_branch[b.index()]
    }

    /// Whether either all invocations of a workgroup execute a block, equally often, or none.
    pub fn is_uniform_block(&self, b: Block) -> bool {
        self.decided_by[b.index()].is_none()
    }

    /// The block whose divergent branch decides whether an invocation executes `b`; `None` when
    /// [`Uniformity::is_uniform_block`].
    pub fn decided_by(&self, b: Block) -> Option<Block> {
        self.decided_by[b.index()]
    }

    /// Marks what depends on divergent branches: the ways up the postdominator tree from the
    /// successors of a branch to its immediate postdominator. Each tree edge is walked once.
    fn mark_blocks(&mut self, cfg: &Cfg) {
        let s = &mut self.scratch;
        let n = cfg.num_blocks();
        fill(&mut self.decided_by, n, None);
        s.next_unmarked.clear();
        s.next_unmarked.extend(0..n as u32);
        for &b in cfg.rpo() {
            if self.is_divergent_branch[b.index()] {
                s.work.push(b);
            }
            while let Some(branch) = s.work.pop() {
                let cause = match self.is_divergent_branch[branch.index()] {
                    true => branch,
                    false => self.decided_by[branch.index()].unwrap_or(branch),
                };
                let end = s.pdom.ipdom(branch);
                for &succ in cfg.succs(branch) {
                    let mut at = Some(succ);
                    while let Some(x) = at.map(|x| find(&mut s.next_unmarked, x, n)) {
                        // `x` is unmarked or past the root; the end ranks above what lies below it.
                        let Some(x) = x else { break };
                        if Some(x) == end || end.is_some_and(|e| s.pdom.postdominates(x, e)) {
                            break;
                        }
                        self.decided_by[x.index()] = Some(cause);
                        let up = s.pdom.ipdom(x);
                        s.next_unmarked[x.index()] = up.map_or(n as u32, |u| u.0);
                        if cfg.succs(x).len() > 1 {
                            s.work.push(x);
                        }
                        at = up;
                    }
                }
            }
        }
    }
}

/// The first unmarked block from `b` upwards; `None` past the root.
fn find(next: &mut [u32], b: Block, root: usize) -> Option<Block> {
    let mut to = b.index();
    while to < root && next[to] as usize != to {
        to = next[to] as usize;
    }
    let mut at = b.index();
    while at < root && at != to {
        at = std::mem::replace(&mut next[at], to as u32) as usize;
    }
    (to < root).then_some(Block::new(to))
}

fn fill<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}

struct Run<'a> {
    f: &'a MpirFn,
    types: &'a TypeCtx,
    cfg: &'a Cfg,
    s: Scratch,
    out: &'a mut Uniformity,
}

impl Run<'_> {
    /// Goes through the blocks once; whether something new was found that blocks before it depend
    /// on.
    fn sweep(&mut self) -> bool {
        let mut again = false;
        for n in 0..self.cfg.rpo().len() {
            let b = self.cfg.rpo()[n];
            self.enter(b);
            for &i in &self.f.block(b).insts {
                if self.is_divergent(i, b)
                    && let Some(v) = self.f.inst(i).result()
                    && !std::mem::replace(&mut self.out.divergent[v.index()], true)
                {
                    again |= self.s.loops.innermost(b).is_some();
                }
            }
            let condition = self.f.block(b).term.operand();
            if condition.is_some_and(|v| self.is_divergent_at(v, b, b))
                && self.cfg.succs(b).len() > 1
                && !std::mem::replace(&mut self.out.is_divergent_branch[b.index()], true)
            {
                again |= self.s.loops.innermost(b).is_some();
            }
        }
        for l in self.s.loops.ids().rev() {
            again |= self.close(l);
        }
        for l in self.s.loops.ids() {
            let outer = self.s.loops.parent(l);
            let facts = &self.out.loops[l.index()];
            let nearest = match facts.is_divergent {
                true => Some(l),
                false => outer.and_then(|o| self.out.loops[o.index()].nearest_divergent),
            };
            again |= nearest != facts.nearest_divergent;
            self.out.loops[l.index()].nearest_divergent = nearest;
        }
        again
    }

    /// The label an edge carries, as seen in its target.
    fn edge(&mut self, from: Block, to: Block) -> Label {
        let mut label = match self.out.is_divergent_branch[from.index()] {
            true => FRESH,
            false => self.out.label[from.index()],
        };
        let mut left = self.s.loops.innermost(from);
        while let Some(l) = left.filter(|&l| !self.s.loops.contains(l, to)) {
            let facts = &mut self.out.loops[l.index()];
            if label == self.s.loops.header(l).0 {
                label = facts.outer;
            } else {
                facts.is_divergent = true;
            }
            left = self.s.loops.parent(l);
        }
        label
    }

    /// Gives a block its label from the edges that do not come from behind.
    fn enter(&mut self, b: Block) {
        let mut common = None;
        let mut differ = false;
        for &p in self.cfg.preds(b) {
            if self.cfg.is_reachable(p) && !self.cfg.is_retreating(p, b) {
                let edge = self.edge(p, b);
                differ |= common.is_some_and(|l| l != edge || edge == FRESH);
                common = Some(edge);
            }
        }
        let mut label = match common {
            _ if differ => {
                self.s.meets[b.index()] = true;
                b.0
            }
            None | Some(FRESH) => SIDE | b.0,
            Some(label) => label,
        };
        if let Some(y) = self.s.dom.idom(b)
            && self.s.pdom.postdominates(b, y)
        {
            label = self.out.label[y.index()];
            let mut left = self.s.loops.innermost(y);
            while let Some(l) = left.filter(|&l| !self.s.loops.contains(l, b)) {
                if label == self.s.loops.header(l).0 {
                    label = self.out.loops[l.index()].outer;
                }
                left = self.s.loops.parent(l);
            }
        }
        if let Some(l) = self.s.loops.innermost(b).filter(|&l| self.s.loops.header(l) == b) {
            self.out.loops[l.index()].outer = label;
            label = b.0;
        }
        self.out.label[b.index()] = label;
    }

    /// Compares the edges that go back to the header: when they differ, which one an invocation
    /// came by is divergent.
    fn close(&mut self, l: LoopId) -> bool {
        let header = self.s.loops.header(l);
        let mut label = None;
        let mut differ = false;
        for &p in self.cfg.preds(header) {
            if self.cfg.is_reachable(p) && self.cfg.is_retreating(p, header) {
                let edge = self.edge(p, header);
                differ |= label.is_some_and(|l| l != edge || edge == FRESH);
                label = Some(edge);
            }
        }
        differ && !std::mem::replace(&mut self.s.meets[header.index()], true)
    }

    /// Whether a value is divergent for its use at a place in both blocks: a phi reads its operand
    /// behind the predecessor and in its own block.
    fn is_divergent_at(&mut self, v: Value, from: Block, b: Block) -> bool {
        if self.out.divergent[v.index()] {
            return true;
        }
        let home = match self.f.def(v) {
            ValueDef::Const(_) | ValueDef::Param(_) => None,
            ValueDef::Inst(i) => self.s.positions.block(i),
        };
        let nearest = home
            .and_then(|h| self.s.loops.innermost(h))
            .and_then(|l| self.out.loops[l.index()].nearest_divergent);
        let leaves = nearest
            .is_some_and(|l| !self.s.loops.contains(l, from) || !self.s.loops.contains(l, b));
        if leaves {
            self.out.leaves_loop[v.index()] = true;
        }
        leaves
    }

    fn is_divergent(&mut self, i: Inst, b: Block) -> bool {
        let f = self.f;
        let op = f.inst(i).op;
        // Every operand is looked at: each may be one that leaves its loop.
        if op == Op::Phi {
            let first = f.args(i).first();
            let one_value = f.args(i).iter().all(|v| Some(v) == first);
            let met = self.s.meets[b.index()] && !one_value;
            return f
                .phi_arms(i)
                .filter(|&(p, _)| self.cfg.is_reachable(p))
                .fold(met, |any, (p, v)| self.is_divergent_at(v, p, b) | any);
        }
        let by_itself = match op.info().memory {
            Memory::None => is_source(op),
            Memory::Read => match f.args(i).first() {
                Some(v) if self.out.varying.contains(v) => true,
                Some(&v) => !matches!(
                    self.types.kind(f.ty(v)),
                    TypeKind::Buffer(_) | TypeKind::SharedArray(..)
                ),
                None => true,
            },
            Memory::Write | Memory::Atomic | Memory::Fence | Memory::Any => true,
        };
        f.args(i).iter().fold(by_itself, |any, &v| self.is_divergent_at(v, b, b) | any)
    }

    fn give_up(&mut self) {
        let out = &mut *self.out;
        for &b in self.cfg.rpo() {
            let block = self.f.block(b);
            for v in block.insts.iter().filter_map(|&i| self.f.inst(i).result()) {
                out.divergent[v.index()] = true;
            }
            out.is_divergent_branch[b.index()] = self.cfg.succs(b).len() > 1;
        }
    }
}

/// Whether an op without memory effect gives different results to the invocations of a workgroup.
fn is_source(op: Op) -> bool {
    matches!(op, Op::GpuThreadId | Op::GpuGlobalId | Op::GpuSubgroupLaneId) || op.info().convergent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;
    use magpie_diag::FileId;

    fn kernel(body: &str) -> (Module, Uniformity) {
        let text = format!(
            "gpu fn t.@k(%b: gpu.TBuffer<u32>, %n: u32) -> unit workgroup(64, 1, 1) {{\n{body}\n}}\n"
        );
        let m = crate::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
        let f = &m.fns[0];
        let u = Uniformity::new(f, &m.types, &Cfg::new(f));
        (m, u)
    }

    /// The values and blocks (by number) that are divergent, of those that are numbered `%n`, `bbn`.
    fn divergent(body: &str) -> (Vec<usize>, Vec<usize>) {
        let (m, u) = kernel(body);
        let f = &m.fns[0];
        let results = f.blocks.iter().flat_map(|b| &b.insts).filter_map(|&i| f.inst(i).result());
        let values = results.enumerate().filter(|&(_, v)| !u.is_uniform(v)).map(|(n, _)| n);
        let blocks = f.block_ids().filter(|&b| !u.is_uniform_block(b)).map(|b| b.index());
        (values.collect(), blocks.collect())
    }

    #[test]
    fn sources() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            %v1: u32 = gpu.workgroup_id dim=0
            %v2: u32 = gpu.buffer_load %b, %v1
            %v3: u32 = gpu.buffer_load %b, %v0
            %v4: u32 = gpu.atomic.add %b, %v1, u32 1
            %v5: u32 = i.add %v2, %n
            %v6: local_array<4, u32> = gpu.local
            %v7: u32 = gpu.buffer_load %v6, u32 0
            %v8: shared_array<4, u32> = gpu.shared
            %v9: u32 = gpu.buffer_load %v8, u32 0
            %v10: u32 = gpu.subgroup.sum %v5
            %v11: u32 = gpu.subgroup.size
            %v12: u32 = gpu.buffer_len %b
            ret",
        );
        assert_eq!(values, [0, 3, 4, 6, 7, 10]);
        assert!(blocks.is_empty());
    }

    #[test]
    fn phis_of_divergent_and_uniform_branches() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            %v1: bool = icmp.ult %v0, %n
            %v2: bool = icmp.ult %n, u32 9
            cbr %v2, bb1, bb4
            bb1:
            cbr %v1, bb2, bb3
            bb2:
            br bb3
            bb3:
            %v3: u32 = phi [bb1: u32 1], [bb2: u32 2]
            br bb5
            bb4:
            br bb5
            bb5:
            %v4: u32 = phi [bb3: u32 1], [bb4: u32 2]
            %v5: u32 = phi [bb3: %v3], [bb4: u32 2]
            ret",
        );
        assert_eq!(values, [0, 1, 3, 5]);
        assert_eq!(blocks, [2]);
    }

    #[test]
    fn a_guard_divides_everything_behind_it() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            %v1: bool = icmp.ult %v0, %n
            cbr %v1, bb1, bb4
            bb1:
            %v2: bool = icmp.ult %n, u32 9
            cbr %v2, bb2, bb3
            bb2:
            br bb3
            bb3:
            %v3: u32 = phi [bb1: u32 1], [bb2: u32 2]
            ret
            bb4:
            ret",
        );
        assert_eq!(values, [0, 1]);
        assert_eq!(blocks, [1, 2, 3, 4]);
    }

    #[test]
    fn uniform_loop_with_a_divergent_part() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            br bb1
            bb1:
            %v1: u32 = phi [bb0: u32 0], [bb4: %v6]
            %v2: u32 = phi [bb0: u32 0], [bb4: %v5]
            %v3: bool = icmp.ult %v1, %n
            cbr %v3, bb2, bb5
            bb2:
            %v4: bool = icmp.ult %v0, %v1
            cbr %v4, bb3, bb4
            bb3:
            br bb4
            bb4:
            %v5: u32 = phi [bb2: %v2], [bb3: u32 7]
            %v6: u32 = i.add %v1, u32 1
            br bb1
            bb5:
            %v7: u32 = i.add %v1, u32 1
            ret",
        );
        assert_eq!(values, [0, 2, 4, 5]);
        assert_eq!(blocks, [3]);
    }

    #[test]
    fn counter_leaves_a_loop_with_divergent_exit() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            br bb1
            bb1:
            %v1: u32 = phi [bb0: u32 0], [bb2: %v4]
            %v2: bool = icmp.ult %v1, %v0
            %v3: u32 = i.mul %v1, u32 3
            cbr %v2, bb2, bb3
            bb2:
            %v4: u32 = i.add %v1, u32 1
            br bb1
            bb3:
            %v5: u32 = i.add %v3, u32 1
            %v6: u32 = i.add %n, u32 1
            ret",
        );
        // The counter itself is the same for all in a round; what is computed from it is not
        // behind the loop.
        assert_eq!(values, [0, 2, 3, 5]);
        assert_eq!(blocks, [1, 2]);
    }

    #[test]
    fn two_ways_round_a_loop() {
        let (values, _) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            br bb1
            bb1:
            %v1: u32 = phi [bb0: u32 0], [bb2: u32 1], [bb3: u32 2]
            %v2: bool = icmp.ult %v0, u32 5
            cbr %v2, bb2, bb3
            bb2:
            br bb1
            bb3:
            %v3: bool = icmp.ult %n, u32 5
            cbr %v3, bb1, bb4
            bb4:
            ret",
        );
        assert_eq!(values, [0, 1, 2]);
    }

    #[test]
    fn different_exits_of_a_divergent_loop_meet() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            br bb1
            bb1:
            %v1: bool = icmp.ult %v0, %n
            cbr %v1, bb2, bb3
            bb2:
            %v2: bool = icmp.ult %n, u32 5
            cbr %v2, bb1, bb4
            bb3:
            br bb5
            bb4:
            br bb5
            bb5:
            %v3: u32 = phi [bb3: u32 0], [bb4: u32 1]
            ret",
        );
        assert_eq!(values, [0, 1, 3]);
        assert_eq!(blocks, [1, 2, 3, 4]);
    }

    #[test]
    fn a_barrier_loop_inside_a_uniform_branch_stays_uniform() {
        let (values, blocks) = divergent(
            "bb0:
            %v0: u32 = gpu.thread_id dim=0
            %v1: bool = icmp.ult %n, u32 5
            cbr %v1, bb1, bb6
            bb1:
            %v2: u32 = phi [bb0: u32 128], [bb4: %v5]
            %v3: bool = icmp.ne %v2, u32 0
            cbr %v3, bb2, bb5
            bb2:
            %v4: bool = icmp.ult %v0, %v2
            cbr %v4, bb3, bb4
            bb3:
            br bb4
            bb4:
            gpu.barrier
            %v5: u32 = i.lshr %v2, u32 1
            br bb1
            bb5:
            br bb7
            bb6:
            br bb7
            bb7:
            %v6: u32 = phi [bb5: u32 0], [bb6: u32 1]
            ret",
        );
        assert_eq!(values, [0, 4]);
        assert_eq!(blocks, [3]);
    }
}
