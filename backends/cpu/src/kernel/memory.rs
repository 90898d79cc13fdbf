//! Where a kernel's arrays and carried values live in a thread's scratch memory.

use super::carried::{Carried, Carry};
use super::regions::RegionPlan;
use magpie_mpir::{Inst, MpirFn, Op};
use magpie_types::{TypeCtx, TypeKind};

/// Offsets into scratch memory.
///
/// Shared arrays come first (each aligned to 16 bytes), then the frame: for every slot its size
/// times the number of invocations.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Offset of each `gpu.shared`, by instruction.
    shared: Vec<(Inst, u32)>,
    pub(crate) shared_bytes: u32,
    /// Offset per invocation of each `gpu.local` that lives across regions.
    local: Vec<(Inst, u32)>,
    /// Offset per invocation of the next region's number, in kernels that need it.
    pub(crate) next_region: Option<u32>,
    /// Offset per invocation at which the carried slots start.
    pub(crate) slots: u32,
    /// Bytes of the frame for each invocation.
    pub(crate) frame_bytes: u32,
}

/// Bytes of an array type.
pub(crate) fn array_bytes(types: &TypeCtx, ty: magpie_types::TypeId) -> u32 {
    match types.kind(ty) {
        TypeKind::SharedArray(elem, n) | TypeKind::LocalArray(elem, n) => {
            types.stride(elem).saturating_mul(n)
        }
        _ => 0,
    }
}

impl Memory {
    pub(crate) fn new(f: &MpirFn, types: &TypeCtx, plan: &RegionPlan, carried: &Carried) -> Memory {
        let mut m = Memory {
            shared: Vec::new(),
            shared_bytes: 0,
            local: Vec::new(),
            next_region: None,
            slots: 0,
            frame_bytes: 0,
        };
        for block in plan.regions.iter().flat_map(|r| &r.blocks) {
            for &i in &f.block(*block).insts {
                let data = f.inst(i);
                let bytes = array_bytes(types, data.ty).next_multiple_of(16);
                if data.op == Op::GpuShared {
                    m.shared.push((i, m.shared_bytes));
                    m.shared_bytes += bytes;
                } else if data.op == Op::GpuLocal
                    && data.result().is_some_and(|v| matches!(carried.get(v), Carry::Frame(_)))
                {
                    m.local.push((i, m.slots));
                    m.slots += bytes;
                }
            }
        }
        m.frame_bytes = m.slots + carried.frame_bytes;
        if plan.per_invocation {
            m.frame_bytes = m.frame_bytes.next_multiple_of(4);
            m.next_region = Some(m.frame_bytes);
            m.frame_bytes += 4;
        }
        m
    }

    /// Offset of a shared array from the start of scratch memory.
    pub(crate) fn shared(&self, i: Inst) -> Option<u32> {
        self.shared.iter().find(|(s, _)| *s == i).map(|&(_, o)| o)
    }

    /// Offset per invocation of a private array that lives across regions.
    pub(crate) fn local(&self, i: Inst) -> Option<u32> {
        self.local.iter().find(|(s, _)| *s == i).map(|&(_, o)| o)
    }
}
