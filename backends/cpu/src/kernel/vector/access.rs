//! Loads and stores of all lanes at once.

use super::super::emit::{Emitter, prim_of};
use super::lanes::{Lanes, simd_type};
use super::places::{MAX_STRIDE, Place, REACH};
use super::{LANES, Vector};
use crate::pure::clif_type;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData};
use magpie_mpir::{Inst, Value};
use magpie_types::PrimType;

const TRUSTED: MemFlagsData = MemFlagsData::trusted();
/// Vectors in buffers and in the frame are aligned to their elements only.
const UNALIGNED: MemFlagsData = MemFlagsData::new().with_notrap();

/// Lanes and groups that are further apart are addressed one by one.
const MAX_STEP: i64 = REACH / 64;

/// Where the elements of an access are.
#[derive(Clone, Copy)]
enum Elements {
    /// One for all lanes.
    Same(Place),
    /// The first, and how many bytes behind it the next is.
    Apart(Place, i32),
    /// One address a lane.
    Each([Place; LANES as usize]),
}

impl Elements {
    fn of_lane(self, lane: i32) -> Place {
        match self {
            Elements::Same(p) => p,
            Elements::Apart(p, step) => Place { offset: p.offset + lane * step, ..p },
            Elements::Each(places) => places[lane as usize],
        }
    }
}

impl Vector<'_> {
    /// Reads the address of an array from memory again, so that no load through it can come before
    /// this point. See [`super::still::arrays_of_free_loads`].
    pub(super) fn fetch_base(&mut self, e: &mut Emitter, array: Value) -> bool {
        let base = e.fetch_base(array);
        if let Some(base) = base {
            self.lanes[array.index()] = Some(Lanes::Same(base));
        }
        base.is_some()
    }

    pub(super) fn load_slot(&mut self, e: &mut Emitter, offset: u32, prim: PrimType) -> Lanes {
        let size = prim.size() as i32;
        let first = self.slot(e, offset, prim);
        match simd_type(prim) {
            Some(ty) => Lanes::Simd(e.b.ins().load(ty, UNALIGNED, first.address, first.offset)),
            None => Lanes::Each([0, 1, 2, 3].map(|n| {
                let at = first.offset + n * size;
                e.b.ins().load(clif_type(prim), TRUSTED, first.address, at)
            })),
        }
    }

    pub(super) fn store_slot(
        &mut self,
        e: &mut Emitter,
        offset: u32,
        prim: PrimType,
        lanes: Lanes,
    ) {
        let first = self.slot(e, offset, prim);
        store(e, prim, Elements::Apart(first, prim.size() as i32), lanes);
    }

    /// Where the frame has a value of the first lane.
    fn slot(&self, e: &mut Emitter, offset: u32, prim: PrimType) -> Place {
        let address = e.frame_address(e.memory.slots + offset, prim.size());
        Place { address, offset: (self.group * LANES * prim.size()) as i32 }
    }

    pub(super) fn load(&mut self, e: &mut Emitter, i: Inst) -> Lanes {
        let data = e.f.inst(i);
        let array = e.f.arg(i, 0);
        let prim = prim_of(e.module, data.ty);
        let may_move = |flags: MemFlagsData| match self.free.contains(&array) {
            true => flags.with_readonly().with_can_move(),
            false => flags,
        };
        let (trusted, unaligned) = (may_move(TRUSTED), may_move(UNALIGNED));
        match (self.elements(e, i), simd_type(prim)) {
            (Elements::Same(p), _) => {
                Lanes::Same(e.b.ins().load(clif_type(prim), trusted, p.address, p.offset))
            }
            (Elements::Apart(p, 4), Some(ty)) => {
                Lanes::Simd(e.b.ins().load(ty, unaligned, p.address, p.offset))
            }
            (elements, _) => Lanes::Each([0, 1, 2, 3].map(|n| {
                let p = elements.of_lane(n);
                e.b.ins().load(clif_type(prim), trusted, p.address, p.offset)
            })),
        }
    }

    pub(super) fn store_element(&mut self, e: &mut Emitter, i: Inst) {
        let v = e.f.arg(i, 2);
        let prim = prim_of(e.module, e.f.ty(v));
        let elements = self.elements(e, i);
        let value = self.value(e, v);
        store(e, prim, elements, value);
    }

    /// Where an access of a buffer or an array goes.
    fn elements(&mut self, e: &mut Emitter, i: Inst) -> Elements {
        let f = e.f;
        let (array, index) = (f.arg(i, 0), f.arg(i, 1));
        let base = self.scalar(e, array);
        let stride = e.element_stride(array);
        let leaf = e.leaf_offset(array, f.inst(i).imm_lo());
        let prim = prim_of(e.module, f.ty(index));
        let is_near = stride <= MAX_STRIDE && prim.bit_width() == 32;
        let value = self.value(e, index);
        let behind = |p: Place| Place { offset: p.offset + leaf, ..p };
        // `ahead` is how much larger the index is than in the first group.
        let mut first = |e: &mut Emitter, at, ahead: i32| {
            let mut compute = || e.element_address(base, array, at, f.ty(index));
            behind(match is_near {
                true => self.places.find(f, self.guard, [array, index], ahead, stride, compute),
                false => Place { address: compute(), offset: 0 },
            })
        };
        match value {
            Lanes::Same(at) => Elements::Same(first(e, at, 0)),
            Lanes::Linear(at, step) if is_near && step.abs() < MAX_STEP => {
                let ahead = step as i32 * (self.group * LANES) as i32;
                Elements::Apart(first(e, at, ahead), step as i32 * stride as i32)
            }
            Lanes::Linear(..) | Lanes::Simd(_) | Lanes::Mask(_) | Lanes::Each(_) => {
                Elements::Each(value.each(&mut e.b, prim).map(|at| {
                    let address = e.element_address(base, array, at, f.ty(index));
                    behind(Place { address, offset: 0 })
                }))
            }
        }
    }
}

fn store(e: &mut Emitter, prim: PrimType, elements: Elements, value: Lanes) {
    if let (Elements::Apart(p, 4), Some(_)) = (elements, simd_type(prim)) {
        let vector = value.simd(&mut e.b, prim);
        e.b.ins().store(UNALIGNED, vector, p.address, p.offset);
        return;
    }
    for (n, v) in value.each(&mut e.b, prim).into_iter().enumerate() {
        let p = elements.of_lane(n as i32);
        e.b.ins().store(TRUSTED, v, p.address, p.offset);
    }
}
