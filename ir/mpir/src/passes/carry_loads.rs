//! Loads of what a loop stores itself: the content goes from round to round as a value.
//!
//! The length of a list that grows is in memory. Each round loads what the round before it has stored,
//! and waits for it:
//!
//! ```text
//! bb1: %n = mem.load [header] offset=32 %xs           bb0: %0 = mem.load [header] offset=32 %xs
//!      …                                              bb1: %n = phi [bb0: %0], [bb1: %m]
//!      %m = i.add %n, i64 1                    ⇒           %m = i.add %n, i64 1
//!      mem.store [header] offset=32 %xs, %m                mem.store [header] offset=32 %xs, %m
//!      br bb1                                              br bb1
//! ```
//!
//! The stores stay, so memory is always what it was. What is seldom called and may change the
//! content is followed by a load; anything else that may change it keeps the loads in the loop.

use super::PassContext;
use super::insert_preheaders::loops_with_preheaders;
use super::locations::{Access, Locations};
use crate::analysis::{ClassSet, LoopId, Loops, MemoryClasses, Positions};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeCtx, TypeId};

/// Places that are carried through one loop, at most: registers are few.
const MAX_CARRIED: usize = 4;
/// Places of a loop that are looked at, at most.
const MAX_PLACES: usize = 16;
/// Phis that a handle may come through.
const MAX_FOLLOWED: usize = 16;

/// Replaces loads in loops by what was stored, with phis where ways meet. Works on lowered host
/// functions.
pub fn carry_loads(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    let stores = |&i: &Inst| f.inst(i).op == Op::MemStore;
    if f.domain != Domain::LowHost || !f.blocks.iter().flat_map(|b| &b.insts).any(stores) {
        return false;
    }
    let mut changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, loops, positions, memory, .. } = ctx;
    if !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    memory.compute(f, types);
    let mut locations = Locations::default();
    let mut loads = Vec::new();
    // From the outside: what an outer loop carries, its inner ones do too.
    for l in loops.ids() {
        let Some(preheader) = loops.preheader(cfg, l) else { continue };
        let finder = Finder { f, types, loops, positions, memory, l };
        for carried in finder.find(&locations) {
            if locations.has_room_for(1, f) {
                carry(f, &carried, preheader, &mut locations, &mut loads);
            }
        }
    }
    changed |= !loads.is_empty();
    insert_behind(f, &loads, positions);
    locations.promote(f, ctx) | changed
}

/// A place in memory: base, offset and type of the content.
type Place = (Value, u64, TypeId);

/// What happens to a place in a loop.
struct Carried {
    place: Place,
    flags: Flags,
    loads: Vec<Inst>,
    stores: Vec<Inst>,
    /// Seldom called; what the place holds is not known behind it.
    unknown: Vec<Inst>,
}

/// Makes the place of `carried` a location, with a load in front of the loop and one behind each
/// instruction after which the content is unknown, which stand in no block yet.
fn carry(
    f: &mut MpirFn,
    carried: &Carried,
    preheader: Block,
    locations: &mut Locations,
    loads: &mut Vec<(Inst, Inst)>,
) {
    let (base, offset, ty) = carried.place;
    let n = locations.add(ty);
    let mut load = |f: &mut MpirFn, span| {
        let i = f.make_inst(Op::MemLoad, carried.flags, ty, &[base], offset, span);
        locations.note(i, Access::Becomes(n));
        i
    };
    let first = load(f, f.block(preheader).term_span);
    f.block_mut(preheader).insts.push(first);
    for &i in &carried.unknown {
        let again = load(f, f.inst(i).span);
        loads.push((i, again));
    }
    carried.loads.iter().for_each(|&i| locations.note(i, Access::Read(n)));
    carried.stores.iter().for_each(|&i| locations.note(i, Access::Becomes(n)));
}

/// Puts instructions behind others.
fn insert_behind(f: &mut MpirFn, pairs: &[(Inst, Inst)], positions: &Positions) {
    for &(i, new) in pairs {
        let Some(b) = positions.block(i) else { continue };
        let insts = &mut f.block_mut(b).insts;
        let at = insts.iter().position(|&other| other == i);
        insts.insert(at.map_or(insts.len(), |at| at + 1), new);
    }
}

struct Finder<'a> {
    f: &'a MpirFn,
    types: &'a TypeCtx,
    loops: &'a Loops,
    positions: &'a Positions,
    memory: &'a MemoryClasses,
    l: LoopId,
}

impl Finder<'_> {
    /// The places that the loop loads and stores, and nothing else that is often done changes.
    fn find(&self, known: &Locations) -> Vec<Carried> {
        let f = self.f;
        let insts = || self.loops.blocks(self.l).iter().flat_map(|&b| &f.block(b).insts).copied();
        let mut found: Vec<Carried> = Vec::new();
        for i in insts().filter(|&i| f.inst(i).op == Op::MemStore && known.access(i).is_none()) {
            let place = self.place(i);
            match found.iter().position(|c| c.place == place) {
                Some(n) => found[n].stores.push(i),
                None if found.len() < MAX_PLACES && self.comes_from_outside(place.0) => {
                    let flags = Flags::NONE;
                    let (loads, unknown) = (Vec::new(), Vec::new());
                    found.push(Carried { place, flags, loads, stores: vec![i], unknown });
                }
                None => {}
            }
        }
        if found.is_empty() {
            return found;
        }
        for i in insts().filter(|&i| f.inst(i).op == Op::MemLoad && known.access(i).is_none()) {
            let place = self.place(i);
            if let Some(carried) = found.iter_mut().find(|c| c.place == place) {
                carried.flags = carried.flags.union(f.inst(i).flags);
                carried.loads.push(i);
            }
        }
        found.retain(|carried| !carried.loads.is_empty() && self.is_there_before(carried));
        for i in insts() {
            let writes = self.memory.effects(f, i).writes;
            if found.is_empty() || writes.is_empty() {
                continue;
            }
            found.retain_mut(|carried| self.stays_known(carried, i, writes));
        }
        found.truncate(MAX_CARRIED);
        found
    }

    /// What a load or a store accesses.
    fn place(&self, i: Inst) -> Place {
        let inst = self.f.inst(i);
        let ty = match *self.f.args(i) {
            [_, stored] => self.f.ty(stored),
            _ => inst.ty,
        };
        (self.f.arg(i, 0), inst.imm, ty)
    }

    fn comes_from_outside(&self, base: Value) -> bool {
        let is_inside = |b| self.loops.contains(self.l, b);
        !self.positions.def_block(self.f, base).is_some_and(is_inside)
    }

    /// Whether a place can be loaded in front of the loop.
    fn is_there_before(&self, carried: &Carried) -> bool {
        let base = carried.place.0;
        let is_own = || self.memory.is_own_object(base) && is_never_null(self.f, base);
        carried.flags.contains(Flags::HEADER) || is_own()
    }

    /// Whether it is known what a place holds behind an instruction that writes, if need be by another
    /// load.
    fn stays_known(&self, carried: &mut Carried, i: Inst, writes: ClassSet) -> bool {
        let f = self.f;
        let read = carried.loads.iter().map(|&load| self.memory.effects(f, load).reads);
        let reads = read.fold(ClassSet::NONE, ClassSet::union);
        if !writes.intersects(reads) || carried.stores.contains(&i) {
            return true;
        }
        match f.inst(i).op {
            Op::MemStore => self.is_apart(carried, i),
            Op::RtRaw if f.inst(i).rt().is_fallback() => {
                carried.unknown.push(i);
                true
            }
            _ => false,
        }
    }

    /// Whether a store is to another part of the object, or to the same of another kind of object.
    fn is_apart(&self, carried: &Carried, store: Inst) -> bool {
        let (base, offset, ty) = carried.place;
        let (other, other_offset, other_ty) = self.place(store);
        let both_are_headers = carried.flags.contains(Flags::HEADER)
            && self.f.inst(store).flags.contains(Flags::HEADER);
        let are_of_objects = || self.memory.is_own_object(base) && self.memory.is_own_object(other);
        (both_are_headers || are_of_objects())
            && (offset + self.size(ty) <= other_offset
                || other_offset + self.size(other_ty) <= offset)
    }

    /// Bytes of what is stored.
    fn size(&self, ty: TypeId) -> u64 {
        match PrimType::from_id(ty) {
            Some(p) => u64::from(p.bit_width().div_ceil(8)),
            None => u64::from(self.types.layout(ty).size),
        }
    }
}

/// Whether a handle is that of an object on all ways that it comes.
fn is_never_null(f: &MpirFn, handle: Value) -> bool {
    let mut work = vec![handle];
    let mut at = 0;
    while let Some(&v) = work.get(at) {
        at += 1;
        let Some(i) = f.def_inst(v) else { return false };
        match f.inst(i).op {
            Op::Phi => {
                for &from in f.args(i) {
                    if !work.contains(&from) {
                        work.push(from);
                    }
                }
            }
            // It was asked because it is an object.
            Op::RtRaw => {}
            _ => return false,
        }
        if work.len() > MAX_FOLLOWED {
            return false;
        }
    }
    true
}
