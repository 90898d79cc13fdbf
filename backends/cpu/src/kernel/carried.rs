//! Values that live across a region edge: what is computed again, what stays scalar, and what goes
//! to the frame.

use super::regions::{Meeting, RegionId, RegionPlan};
use magpie_mpir::analysis::Uniformity;
use magpie_mpir::{Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::{TypeCtx, TypeId};
use rustc_hash::FxHashSet;

/// How a value reaches another region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carry {
    /// It does not, or it is a constant or a parameter.
    No,
    /// Cheap enough to be computed again.
    Again,
    /// One variable of the spine: the same for the workgroup.
    Scalar(u32),
    /// A slot for each invocation, this many bytes per invocation from the start of the frame.
    Frame(u32),
}

/// The carried values of a kernel.
#[derive(Debug)]
pub(crate) struct Carried {
    carry: Vec<Carry>,
    home: Vec<Option<RegionId>>,
    /// Types of the spine's variables.
    pub(crate) scalars: Vec<TypeId>,
    /// Bytes of the frame for each invocation.
    pub(crate) frame_bytes: u32,
}

impl Carried {
    pub(crate) fn get(&self, v: Value) -> Carry {
        self.carry[v.index()]
    }

    /// Marks an expression, and the expressions it is made of, to be computed again.
    fn compute_again(&mut self, f: &MpirFn, v: Value) {
        if let (Some(i), Carry::No) = (f.def_inst(v), self.get(v)) {
            self.carry[v.index()] = Carry::Again;
            f.args(i).iter().for_each(|&a| self.compute_again(f, a));
        }
    }

    /// The region an instruction is in; kernels of one region are not looked into.
    pub(crate) fn home(&self, i: Inst) -> Option<RegionId> {
        self.home.get(i.index()).copied().flatten()
    }
}

/// The deepest expression that is computed again instead of stored.
const MAX_DEPTH: u8 = 6;

/// Whether an instruction may be executed again in another region, given that its operands may.
fn is_cheap(f: &MpirFn, i: Inst) -> bool {
    match f.inst(i).op {
        Op::GpuThreadId
        | Op::GpuWorkgroupId
        | Op::GpuWorkgroupSize
        | Op::GpuGlobalId
        | Op::GpuNumWorkgroups
        | Op::GpuBufferLen
        | Op::GpuShared
        | Op::LeafGet
        | Op::GpuSubgroupSize
        | Op::GpuSubgroupLaneId => true,
        op => matches!(
            op,
            Op::IAdd
                | Op::ISub
                | Op::IMul
                | Op::IAnd
                | Op::IOr
                | Op::IXor
                | Op::IShl
                | Op::ILshr
                | Op::IAshr
                | Op::IUmin
                | Op::IUmax
                | Op::IcmpEq
                | Op::IcmpNe
                | Op::IcmpUlt
                | Op::IcmpUgt
                | Op::IcmpUle
                | Op::IcmpUge
                | Op::IcmpSlt
                | Op::IcmpSgt
                | Op::IcmpSle
                | Op::IcmpSge
                | Op::Cast
        ),
    }
}

/// Decides for every value of a kernel how it reaches the regions that use it.
pub(crate) fn carried(
    f: &MpirFn,
    types: &TypeCtx,
    plan: &RegionPlan,
    uniform: &Uniformity,
) -> Carried {
    let mut result = Carried {
        carry: vec![Carry::No; f.locals.len()],
        home: Vec::new(),
        scalars: Vec::new(),
        frame_bytes: 0,
    };
    if plan.regions.len() <= 1 {
        return result;
    }
    let depth = depths(f, plan);
    let mut crossing = Vec::new();
    let mut seen = vec![false; f.locals.len()];
    let mut home = vec![None; f.num_insts()];
    for &b in plan.regions.iter().flat_map(|r| &r.blocks) {
        for &i in &f.block(b).insts {
            home[i.index()] = plan.region_of(b);
        }
    }
    let mut note = |v: Value, at: Option<RegionId>| {
        if let ValueDef::Inst(i) = f.def(v)
            && home[i.index()] != at
            && !seen[v.index()]
        {
            seen[v.index()] = true;
            crossing.push(v);
        }
    };
    for r in &plan.regions {
        for &b in &r.blocks {
            let at = plan.region_of(b);
            for &i in &f.block(b).insts {
                if f.inst(i).op == Op::Phi {
                    for (p, v) in f.phi_arms(i) {
                        note(v, plan.region_of(p));
                    }
                } else {
                    f.args(i).iter().for_each(|&v| note(v, at));
                }
            }
            if let Some(v) = f.block(b).term.operand() {
                note(v, at);
            }
        }
    }
    // Phis of a leader get their values on edges from other regions.
    for r in &plan.regions {
        let enters = plan.regions.iter().any(|o| {
            o.leader != r.leader
                && o.exits.iter().any(|&e| plan.regions[e.0 as usize].leader == r.leader)
        });
        for phi in f.phis(r.leader) {
            if let (true, Some(v)) = (enters, f.inst(phi).result())
                && !seen[v.index()]
            {
                seen[v.index()] = true;
                crossing.push(v);
            }
        }
    }
    crossing.sort();
    // The operands and the result of what a subgroup does together, one for each invocation.
    let meetings = plan.regions.iter().filter_map(|r| match r.meeting {
        Meeting::Subgroup(i) => Some(i),
        Meeting::None | Meeting::Barrier => None,
    });
    let exchanged = meetings.flat_map(|i| f.args(i).iter().copied().chain(f.inst(i).result()));
    let mut slots: Vec<Value> = exchanged.collect();
    let shared: FxHashSet<Value> = slots.iter().copied().collect();
    for v in crossing.into_iter().filter(|v| !shared.contains(v)) {
        let carry = if depth[v.index()] <= MAX_DEPTH {
            result.compute_again(f, v);
            continue;
        } else if uniform.is_uniform(v) && !plan.per_invocation {
            result.scalars.push(f.ty(v));
            Carry::Scalar(result.scalars.len() as u32 - 1)
        } else {
            slots.push(v);
            continue;
        };
        result.carry[v.index()] = carry;
    }
    // Large slots first: every slot is aligned to its own size for any number of invocations.
    slots.sort_by_key(|&v| (std::cmp::Reverse(types.layout(f.ty(v)).size), v));
    for v in slots {
        result.carry[v.index()] = Carry::Frame(result.frame_bytes);
        result.frame_bytes += types.layout(f.ty(v)).size;
    }
    result.home = home;
    result
}

/// How deep the expression behind a value is, counting cheap instructions; `u8::MAX` when it
/// contains another one.
fn depths(f: &MpirFn, plan: &RegionPlan) -> Vec<u8> {
    let mut depth = vec![u8::MAX; f.locals.len()];
    for (n, d) in depth.iter_mut().enumerate() {
        if !matches!(f.def(Value::new(n)), ValueDef::Inst(_)) {
            *d = 0;
        }
    }
    // Regions are in reverse postorder of their leaders: definitions come before uses.
    for r in &plan.regions {
        for &b in &r.blocks {
            for &i in &f.block(b).insts {
                if let (Some(v), true) = (f.inst(i).result(), is_cheap(f, i)) {
                    let deepest = f.args(i).iter().map(|a| depth[a.index()]).max().unwrap_or(0);
                    depth[v.index()] = deepest.saturating_add(1);
                }
            }
        }
    }
    depth
}
