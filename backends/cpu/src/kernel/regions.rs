//! Cutting a kernel into regions where its invocations meet: at barriers, and at operations of a
//! subgroup.
//!
//! A region is a single-entry part of the control-flow graph without meetings inside: every
//! invocation of a workgroup runs it from the leader to an edge that leaves it before any
//! invocation goes on behind the next meeting. A scalar spine runs region after region. The form
//! does not depend on the code generator.
//!
//! Law: the leader dominates its region; a meeting lies between two regions; an edge inside a
//! region never enters at another block than the leader, so regions partition the reachable
//! blocks.

use magpie_mpir::analysis::{Cfg, Uniformity, meeting_order};
use magpie_mpir::eval::SubgroupOp;
use magpie_mpir::{Block, Inst, Memory, MpirFn, Op, Terminator, Value};
use rustc_hash::FxHashMap;

/// A region of a [`RegionPlan`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RegionId(pub(crate) u32);

/// What invocations do together before they start a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    None,
    /// Those of a subgroup that are on their way here execute this.
    Subgroup(Inst),
    /// All wait for each other.
    Barrier,
}

/// A single-entry part of the kernel.
#[derive(Debug)]
pub(crate) struct Region {
    /// Where every invocation starts.
    pub(crate) leader: Block,
    pub(crate) meeting: Meeting,
    /// Its place among those that invocations wait for, when they wait for different ones.
    pub(crate) turn: u32,
    /// In reverse postorder, the leader first.
    pub(crate) blocks: Vec<Block>,
    /// Regions that edges lead to, each once, in order of appearance.
    pub(crate) exits: Vec<RegionId>,
    /// Whether an invocation can end here.
    pub(crate) returns: bool,
    /// Whether it does the same for every invocation and nothing else, so that once is enough.
    pub(crate) runs_once: bool,
}

/// The regions of a kernel. Region 0 starts at the entry.
#[derive(Debug)]
pub(crate) struct RegionPlan {
    pub(crate) regions: Vec<Region>,
    region_of: Vec<Option<RegionId>>,
    /// Whether invocations of one workgroup may leave a region for different ones, so that the
    /// spine must keep a next region for each invocation.
    pub(crate) per_invocation: bool,
}

impl RegionPlan {
    /// The region of a reachable block.
    pub(crate) fn region_of(&self, b: Block) -> Option<RegionId> {
        self.region_of[b.index()]
    }

    /// Invocations run on until each has come to a meeting or its end. Then the operations of
    /// subgroups have their turn, the first one first, and barriers last.
    fn set_turns(&mut self, cfg: &Cfg) {
        let order = meeting_order(cfg);
        let mut sorted: Vec<usize> = (0..self.regions.len()).collect();
        sorted.sort_by_key(|&r| {
            let Region { meeting, leader, .. } = self.regions[r];
            let waits = match meeting {
                Meeting::None => 0,
                Meeting::Subgroup(_) => 1,
                Meeting::Barrier => 2,
            };
            (waits, order[leader.index()])
        });
        for (turn, r) in (0..).zip(sorted) {
            self.regions[r].turn = turn;
        }
    }

    /// The region that starts first.
    pub(crate) fn first(&self) -> &Region {
        &self.regions[0]
    }

    /// Whether the edge stays inside its region.
    pub(crate) fn is_internal(&self, from: Block, to: Block) -> bool {
        self.region_of(from) == self.region_of(to)
    }
}

/// Splits blocks where invocations meet, and returns the blocks that start there. A barrier becomes
/// nothing but an edge. An operation of a subgroup comes first in its block, behind phis that hand
/// its operands over that edge: there the other invocations find them.
pub(crate) fn split_at_meetings(f: &mut MpirFn) -> FxHashMap<Block, Meeting> {
    let mut behind = FxHashMap::default();
    for b in f.block_ids() {
        let meeting = |(at, &i): (usize, &Inst)| match f.inst(i).op {
            Op::GpuBarrier => Some((at, Meeting::Barrier)),
            op => SubgroupOp::of(op).map(|_| (at, Meeting::Subgroup(i))),
        };
        let meetings: Vec<_> = f.block(b).insts.iter().enumerate().filter_map(meeting).collect();
        // From the end, so that every instruction moves once.
        for (at, meeting) in meetings.into_iter().rev() {
            behind.insert(split(f, b, at, meeting), meeting);
        }
    }
    behind
}

/// Moves everything from a meeting on to a new block.
fn split(f: &mut MpirFn, b: Block, at: usize, meeting: Meeting) -> Block {
    let next = f.add_block();
    let mut rest = f.block_mut(b).insts.split_off(at);
    let span = f.block(b).term_span;
    let term = std::mem::replace(&mut f.block_mut(b).term, Terminator::Br(next));
    match meeting {
        Meeting::Subgroup(op) => {
            rest.splice(..0, hand_over(f, op, b));
        }
        Meeting::None | Meeting::Barrier => {
            rest.remove(0);
        }
    }
    let tail = f.block_mut(next);
    tail.insts = rest;
    tail.term = term;
    tail.term_span = span;
    for s in f.successors(next) {
        let phis: Vec<_> = f.phis(s).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |p| if p == b { next } else { p });
        }
    }
    next
}

/// Phis for the operands of an operation that follows block `b`.
fn hand_over(f: &mut MpirFn, op: Inst, b: Block) -> Vec<Inst> {
    let span = f.inst(op).span;
    let mut phis = Vec::new();
    for n in 0..f.args(op).len() {
        let v = f.arg(op, n);
        let phi = f.make_phi(f.ty(v), &[(b, v)], span);
        if let Some(result) = f.inst(phi).result() {
            f.args_mut(op)[n] = result;
        }
        phis.push(phi);
    }
    phis
}

/// Finds the regions of a kernel that was split at its meetings; `meetings` are the blocks that must
/// start a region.
pub(crate) fn plan(
    f: &MpirFn,
    cfg: &Cfg,
    uniform: &Uniformity,
    meetings: &FxHashMap<Block, Meeting>,
) -> RegionPlan {
    let is_behind = |b: &Block| meetings.contains_key(b);
    let behind: Vec<Block> = cfg.rpo().iter().copied().filter(is_behind).collect();
    let mut leaders = leaders(f, cfg, &behind);
    // A decision for the whole workgroup, such as that of a loop with barriers whether to go on, is
    // a region of its own: it runs once, and what it decides about can run in lanes.
    let decides = |&b: &Block| {
        let is_entry = cfg.rpo().first() == Some(&b);
        !is_entry && leaders[b.index()] == Some(b) && is_same_for_all(f, uniform, b)
    };
    let deciding: Vec<Block> = cfg.rpo().iter().copied().filter(decides).collect();
    if !deciding.is_empty() {
        let mut starts = behind;
        starts.extend(deciding.iter().flat_map(|&b| f.successors(b)));
        leaders = self::leaders(f, cfg, &starts);
    }
    let mut region_of = vec![None; f.blocks.len()];
    let mut regions: Vec<Region> = Vec::new();
    for &b in cfg.rpo() {
        let leader = leaders[b.index()].unwrap_or(b);
        let id = if leader == b {
            regions.push(Region {
                leader,
                meeting: meetings.get(&leader).copied().unwrap_or(Meeting::None),
                turn: 0,
                blocks: Vec::new(),
                exits: Vec::new(),
                returns: false,
                runs_once: false,
            });
            RegionId(regions.len() as u32 - 1)
        } else {
            // The leader dominates the block, so it came first.
            region_of[leader.index()].unwrap_or(RegionId(0))
        };
        region_of[b.index()] = Some(id);
        regions[id.0 as usize].blocks.push(b);
    }
    let mut plan = RegionPlan { regions, region_of, per_invocation: false };
    for &b in cfg.rpo() {
        let Some(id) = plan.region_of(b) else { continue };
        let term = &f.block(b).term;
        plan.regions[id.0 as usize].returns |= matches!(term, Terminator::Ret(_));
        for s in f.successors(b) {
            let Some(to) = plan.region_of(s) else { continue };
            let exits = &mut plan.regions[id.0 as usize].exits;
            if to != id && !exits.contains(&to) {
                exits.push(to);
            }
        }
    }
    plan.per_invocation = (0..plan.regions.len()).any(|r| may_diverge(f, uniform, &plan, r));
    if plan.per_invocation {
        plan.set_turns(cfg);
    } else {
        for region in &mut plan.regions {
            region.runs_once = matches!(region.blocks[..], [b] if is_same_for_all(f, uniform, b));
        }
    }
    plan
}

/// Whether a block computes, decides and hands on the same for every invocation, and has no effect.
fn is_same_for_all(f: &MpirFn, uniform: &Uniformity, b: Block) -> bool {
    let block = f.block(b);
    let is_same = |v: Option<Value>| v.is_none_or(|v| uniform.is_uniform(v));
    let hands_on_the_same = f.successors(b).into_iter().all(|s| {
        !is_subgroup_meeting(f, s)
            && f.phis(s).all(|phi| is_same(f.phi_value(phi, b)) && is_same(f.inst(phi).result()))
    });
    hands_on_the_same
        && block.insts.iter().all(|&i| {
            let inst = f.inst(i);
            inst.op.is_removable()
                && !inst.op.info().convergent
                && matches!(inst.op.info().memory, Memory::None)
                && inst.result().is_none_or(|v| uniform.is_uniform(v))
        })
        && block.term.operand().is_none_or(|v| uniform.is_uniform(v))
}

/// Whether a block starts with an operation of a subgroup, to which each invocation gives its own.
fn is_subgroup_meeting(f: &MpirFn, b: Block) -> bool {
    let first = f.block(b).insts.iter().find(|&&i| f.inst(i).op != Op::Phi);
    first.is_some_and(|&i| SubgroupOp::of(f.inst(i).op).is_some())
}

/// The leader of every reachable block: the only region its predecessors are in, or itself.
fn leaders(f: &MpirFn, cfg: &Cfg, behind: &[Block]) -> Vec<Option<Block>> {
    let mut leader: Vec<Option<Block>> = vec![None; f.blocks.len()];
    let mut fixed = vec![false; f.blocks.len()];
    for &b in behind.iter().chain(cfg.rpo().first()) {
        fixed[b.index()] = true;
        leader[b.index()] = Some(b);
    }
    // A block only ever turns into a leader, so this ends; one round more than the nesting of
    // loops with barriers is the rule.
    let mut changed = true;
    while changed {
        changed = false;
        for &b in cfg.rpo() {
            if fixed[b.index()] {
                continue;
            }
            let mut common = None;
            let mut differ = false;
            for &p in cfg.preds(b) {
                match (leader[p.index()], common) {
                    (None, _) => {}
                    (Some(l), None) => common = Some(l),
                    (Some(l), Some(c)) => differ |= l != c,
                }
            }
            let new = if differ { Some(b) } else { common };
            fixed[b.index()] |= differ;
            if new != leader[b.index()] {
                leader[b.index()] = new;
                changed = true;
            }
        }
    }
    leader
}

/// Whether a divergent branch of the region decides between different ways out of it.
fn may_diverge(f: &MpirFn, uniform: &Uniformity, plan: &RegionPlan, region: usize) -> bool {
    let r = &plan.regions[region];
    if r.exits.len() + r.returns as usize <= 1 {
        return false;
    }
    // For each block the ways out that can be reached without leaving the region: the number of
    // one of them, or `Many`.
    #[derive(Clone, Copy, PartialEq)]
    enum Ways {
        Unknown,
        One(u32),
        Many,
    }
    let join = |a: Ways, b: Ways| match (a, b) {
        (Ways::Unknown, x) | (x, Ways::Unknown) => x,
        (Ways::One(x), Ways::One(y)) if x == y => a,
        _ => Ways::Many,
    };
    let mut ways = vec![Ways::Unknown; f.blocks.len()];
    let id = Some(RegionId(region as u32));
    let mut changed = true;
    while changed {
        changed = false;
        for &b in r.blocks.iter().rev() {
            let mut new = match f.block(b).term {
                Terminator::Ret(_) => Ways::One(u32::MAX),
                _ => Ways::Unknown,
            };
            for s in f.successors(b) {
                let way = match plan.region_of(s) {
                    to if to == id => ways[s.index()],
                    Some(to) => Ways::One(to.0),
                    None => Ways::Unknown,
                };
                new = join(new, way);
            }
            if new != ways[b.index()] {
                ways[b.index()] = new;
                changed = true;
            }
        }
    }
    r.blocks.iter().any(|&b| {
        let divergent = f.block(b).term.operand().is_some_and(|v| !uniform.is_uniform(v));
        divergent && f.successors(b).len() > 1 && ways[b.index()] == Ways::Many
    })
}
