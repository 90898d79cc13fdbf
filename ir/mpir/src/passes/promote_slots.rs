//! Stack slots of lowered host code become values, where their address is not given away.
//!
//! What a view shows is in a slot of the function that has it to give, and, when it travels by value,
//! in one of the callee: all that happens to such a slot are loads and stores that can be seen.

use super::PassContext;
use super::locations::{Access, Locations};
use crate::analysis::{User, Uses};
use crate::{Domain, Inst, MpirFn, Op};
use magpie_types::{PrimType, TypeId};

/// Replaces loads from slots by what was stored, with phis where ways meet.
pub fn promote_slots(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    let is_slot = |&i: &Inst| f.inst(i).op == Op::StackSlot;
    if f.domain != Domain::LowHost || !f.blocks.iter().flat_map(|b| &b.insts).any(is_slot) {
        return false;
    }
    ctx.uses.compute(f);
    locations(f, &ctx.uses).promote(f, ctx)
}

/// The scalars in the slots that can go: all that is loaded and stored of each has one type.
fn locations(f: &MpirFn, uses: &Uses) -> Locations {
    let mut locations = Locations::default();
    let mut found: Vec<(u64, TypeId, Inst)> = Vec::new();
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        let Some(slot) = f.inst(i).result().filter(|_| f.inst(i).op == Op::StackSlot) else {
            continue;
        };
        found.clear();
        let is_plain = uses.of(slot).iter().all(|&user| match accessed(f, user) {
            Some(access) => {
                found.push(access);
                true
            }
            None => false,
        });
        found.sort_unstable();
        let is_one = |a: (u64, TypeId, Inst), b: (u64, TypeId, Inst)| (a.0, a.1) == (b.0, b.1);
        let apart = found.windows(2).all(|w| is_one(w[0], w[1]) || w[0].0 + size(w[0].1) <= w[1].0);
        let count = found.chunk_by(|&a, &b| is_one(a, b)).count();
        if is_plain && apart && locations.has_room_for(count, f) {
            for accesses in found.chunk_by(|&a, &b| is_one(a, b)) {
                let n = locations.add(accesses[0].1);
                for &(_, _, i) in accesses {
                    let access = match f.inst(i).op {
                        Op::MemStore => Access::Write(n),
                        _ => Access::Read(n),
                    };
                    locations.note(i, access);
                }
            }
        }
    }
    locations
}

/// Offset and type of what a user of a slot loads or stores there; `None` for other uses.
fn accessed(f: &MpirFn, user: User) -> Option<(u64, TypeId, Inst)> {
    let User::Inst(i, 0) = user else { return None };
    let data = f.inst(i);
    match data.op {
        Op::MemLoad => Some((data.imm, data.ty, i)),
        Op::MemStore => Some((data.imm, f.ty(f.arg(i, 1)), i)),
        _ => None,
    }
}

/// Bytes of a scalar or an address.
fn size(ty: TypeId) -> u64 {
    PrimType::from_id(ty).map_or(8, |p| u64::from(p.bit_width().div_ceil(8)))
}
