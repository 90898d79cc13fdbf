//! The instructions of a region for all lanes at once.

use super::super::carried::Carry;
use super::super::emit::{Emitter, prim_of};
use super::super::regions::RegionId;
use super::LANES;
use super::guard::Guard;
use super::lanes::{Lanes, simd_type};
use super::path::Path;
use super::places::Places;
use super::still::arrays_of_free_loads;
use super::vary::Vary;
use crate::pure::{clif_type, constant};
use crate::terminators::Terminators;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::eval::SubgroupOp;
use magpie_mpir::{Block, Inst, Op, Value, ValueDef};
use magpie_types::PrimType;
use magpie_types::kernel::HOST_SUBGROUP_SIZE;

/// A region being emitted in lanes.
pub(crate) struct Vector<'v> {
    pub(crate) vary: &'v Vary,
    pub(crate) guard: &'v Guard,
    pub(super) lanes: Vec<Option<Lanes>>,
    blocks: Vec<Option<ir::Block>>,
    ways_out: Vec<WayOut>,
    /// What the block that is being emitted has accessed.
    pub(super) places: Places,
    /// Arrays whose loads may move.
    pub(super) free: Vec<Value>,
    /// The blocks to execute, when they are always the same.
    path: Option<&'v Path>,
    /// Which group of lanes this is; all are [`LANES`] behind the one before.
    pub(super) group: u32,
}

/// An edge that leaves the region: the block to fill, the phis of the next region, and that region.
type WayOut = (ir::Block, Vec<(Value, Lanes)>, Option<RegionId>);

impl<'v> Vector<'v> {
    pub(crate) fn new(
        e: &Emitter,
        vary: &'v Vary,
        guard: &'v Guard,
        path: Option<&'v Path>,
    ) -> Vector<'v> {
        Vector {
            vary,
            guard,
            lanes: vec![None; e.f.locals.len()],
            blocks: vec![None; e.f.blocks.len()],
            ways_out: Vec::new(),
            places: Places::default(),
            free: Vec::new(),
            path,
            group: 0,
        }
    }

    /// The region from the current block to `e.leave`, for a group of lanes. Groups follow each
    /// other, from the first on, on a path.
    pub(crate) fn region(&mut self, e: &mut Emitter, group: u32) {
        let plan = e.plan;
        let region = &plan.regions[e.region.0 as usize];
        self.group = group;
        if group == 0 {
            for array in arrays_of_free_loads(e.f, plan, e.carried, region) {
                if self.fetch_base(e, array) {
                    self.free.push(array);
                }
            }
        } else {
            // What is the same for all lanes is so for all groups.
            for lanes in &mut self.lanes {
                *lanes = lanes.filter(|lanes| matches!(lanes, Lanes::Same(_)));
            }
        }
        let blocks = self.path.map_or(&region.blocks, |path| &path.blocks);
        for &b in blocks {
            self.blocks[b.index()] = Some(e.b.create_block());
        }
        for &b in blocks {
            let Some(block) = self.blocks[b.index()] else { continue };
            let phis: Vec<Inst> = e.f.phis(b).collect();
            for phi in phis {
                if let Some(v) = e.f.inst(phi).result() {
                    let prim = prim_of(e.module, e.f.ty(v));
                    let lanes = match (self.vary.get(v), simd_type(prim)) {
                        (false, _) => Lanes::Same(e.b.append_block_param(block, clif_type(prim))),
                        (true, Some(ty)) => Lanes::Simd(e.b.append_block_param(block, ty)),
                        (true, None) if prim == PrimType::Bool => {
                            Lanes::Mask(e.b.append_block_param(block, types::I32X4))
                        }
                        (true, None) => Lanes::Each(
                            [(); 4].map(|()| e.b.append_block_param(block, clif_type(prim))),
                        ),
                    };
                    self.lanes[v.index()] = Some(lanes);
                }
            }
        }
        self.enter(e, region.leader);
        for &b in blocks {
            if let Some(block) = self.blocks[b.index()] {
                e.b.switch_to_block(block);
                self.block(e, b);
            }
        }
        let made: Vec<ir::Block> = blocks.iter().filter_map(|b| self.blocks[b.index()]).collect();
        e.seal_inner_first(&made);
    }

    fn enter(&mut self, e: &mut Emitter, leader: Block) {
        let mut args = Vec::new();
        let phis: Vec<Inst> = e.f.phis(leader).collect();
        for phi in phis {
            let Some(v) = e.f.inst(phi).result() else { continue };
            let prim = prim_of(e.module, e.f.ty(v));
            let lanes = match e.carried.get(v) {
                Carry::Scalar(n) => Lanes::Same(e.b.use_var(e.entry_vars[n as usize])),
                Carry::Frame(offset) => self.load_slot(e, offset, prim),
                Carry::No | Carry::Again => Lanes::Same(constant(&mut e.b, prim, 0)),
            };
            self.push_args(e, v, lanes, &mut args);
        }
        if let Some(block) = self.blocks[leader.index()] {
            e.b.ins().jump(block, &args);
        }
    }

    /// The arguments of a jump for one phi.
    fn push_args(&self, e: &mut Emitter, phi: Value, lanes: Lanes, args: &mut Vec<BlockArg>) {
        let prim = prim_of(e.module, e.f.ty(phi));
        match (self.vary.get(phi), simd_type(prim), lanes) {
            (false, _, Lanes::Same(v)) => args.push(BlockArg::Value(v)),
            (true, Some(_), _) => args.push(BlockArg::Value(lanes.simd(&mut e.b, prim))),
            (true, None, _) if prim == PrimType::Bool => {
                args.push(BlockArg::Value(lanes.mask(&mut e.b)));
            }
            _ => args.extend(lanes.each(&mut e.b, prim).map(BlockArg::Value)),
        }
    }

    fn block(&mut self, e: &mut Emitter, block: Block) {
        let f = e.f;
        if self.path.is_none() {
            self.places.clear();
        }
        for &i in &f.block(block).insts {
            let lanes = match (f.inst(i).op, f.inst(i).result()) {
                (Op::Phi, Some(v)) => self.lanes[v.index()],
                // Made for the first group, or with the addresses of arrays.
                (_, Some(v)) if self.lanes[v.index()].is_some() => self.lanes[v.index()],
                _ => self.inst(e, i),
            };
            if let (Some(v), Some(lanes)) = (f.inst(i).result(), lanes) {
                self.lanes[v.index()] = Some(lanes);
                self.export(e, v, lanes);
            }
        }
        let active = self.guard.active_side(block);
        let mut ending = Ending { vector: self, e };
        match active {
            Some(to) => ending.jump(block, to),
            None => ending.terminator(block, &ending.e.f.block(block).term),
        }
        for (way, values, to) in std::mem::take(&mut self.ways_out) {
            e.b.seal_block(way);
            e.b.switch_to_block(way);
            for (phi, lanes) in values {
                match (e.carried.get(phi), lanes) {
                    (Carry::Scalar(n), Lanes::Same(v)) => e.b.def_var(e.entry_vars[n as usize], v),
                    _ => self.export(e, phi, lanes),
                }
            }
            e.leave_region(to);
        }
    }

    /// The value in every lane; values of other regions are fetched or computed where needed.
    pub(super) fn value(&mut self, e: &mut Emitter, v: Value) -> Lanes {
        if let Some(lanes) = self.lanes[v.index()] {
            return lanes;
        }
        let prim = prim_of(e.module, e.f.ty(v));
        match (e.f.def(v), e.carried.get(v)) {
            (ValueDef::Inst(_), Carry::Scalar(n)) => {
                Lanes::Same(e.b.use_var(e.scalar_vars[n as usize]))
            }
            (ValueDef::Inst(_), Carry::Frame(offset)) => self.load_slot(e, offset, prim),
            (ValueDef::Inst(i), Carry::Again) => match self.inst(e, i) {
                Some(lanes) => lanes,
                None => Lanes::Same(e.missing(v)),
            },
            _ => Lanes::Same(e.value(v)),
        }
    }

    pub(super) fn scalar(&mut self, e: &mut Emitter, v: Value) -> ir::Value {
        let prim = prim_of(e.module, e.f.ty(v));
        let lanes = self.value(e, v);
        lanes.each(&mut e.b, prim)[0]
    }

    fn export(&mut self, e: &mut Emitter, v: Value, lanes: Lanes) {
        match e.carried.get(v) {
            Carry::No | Carry::Again => {}
            Carry::Scalar(n) => {
                let prim = prim_of(e.module, e.f.ty(v));
                let value = lanes.each(&mut e.b, prim)[0];
                e.b.def_var(e.scalar_vars[n as usize], value);
            }
            Carry::Frame(offset) => {
                let prim = prim_of(e.module, e.f.ty(v));
                self.store_slot(e, offset, prim, lanes);
            }
        }
    }

    fn inst(&mut self, e: &mut Emitter, i: Inst) -> Option<Lanes> {
        let f = e.f;
        let data = f.inst(i);
        if let Some(chosen) = data.result().and_then(|v| self.guard.choice(v)) {
            return Some(self.value(e, chosen));
        }
        match data.op {
            Op::GpuThreadId | Op::GpuGlobalId if data.dim() == 0 => {
                // The counter stands at the first lane.
                e.inst(i).map(|v| Lanes::Linear(v, 1))
            }
            Op::GpuBufferLoad | Op::GpuLeafLoad => Some(self.load(e, i)),
            Op::GpuBufferStore | Op::GpuLeafStore => {
                self.store_element(e, i);
                None
            }
            Op::GpuThreadId
            | Op::GpuGlobalId
            | Op::GpuWorkgroupId
            | Op::GpuWorkgroupSize
            | Op::GpuNumWorkgroups
            | Op::GpuBufferLen
            | Op::GpuShared
            | Op::GpuSubgroupSize
            | Op::LeafGet => e.inst(i).map(Lanes::Same),
            Op::GpuSubgroupLaneId => Some(self.lane_ids(e)),
            op if SubgroupOp::of(op).is_some() => {
                let v = data.result()?;
                match e.carried.get(v) {
                    Carry::Frame(offset) => {
                        Some(self.load_slot(e, offset, prim_of(e.module, data.ty)))
                    }
                    Carry::No | Carry::Again | Carry::Scalar(_) => None,
                }
            }
            _ => self.compute(e, i),
        }
    }

    /// Positions in the subgroup. A group of lanes may lie in two subgroups.
    fn lane_ids(&self, e: &mut Emitter) -> Lanes {
        let first = e.lane_id();
        let first = e.b.ins().iadd_imm_s(first, i64::from(self.group * LANES));
        let ids = Lanes::Linear(first, 1).simd(&mut e.b, PrimType::U32);
        let mask = e.b.ins().iconst(types::I32, i64::from(HOST_SUBGROUP_SIZE - 1));
        let mask = e.b.ins().splat(types::I32X4, mask);
        Lanes::Simd(e.b.ins().band(ids, mask))
    }
}

/// The lanes of a block while its end is emitted.
struct Ending<'a, 'v, 'm, 'f, 'r> {
    vector: &'a mut Vector<'v>,
    e: &'a mut Emitter<'m, 'f, 'r>,
}

impl<'f> Terminators<'f> for Ending<'_, '_, '_, 'f, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'f> {
        &mut self.e.b
    }

    fn prim(&self, v: Value) -> PrimType {
        prim_of(self.e.module, self.e.f.ty(v))
    }

    fn decider(&mut self, v: Value) -> ir::Value {
        self.vector.scalar(self.e, v)
    }

    fn edge(&mut self, from: Block, to: Block) -> (ir::Block, Vec<BlockArg>) {
        let Ending { vector, e } = self;
        let f = e.f;
        let phis: Vec<Inst> = f.phis(to).collect();
        let mut values = Vec::new();
        for phi in phis {
            if let (Some(v), Some(p)) = (f.phi_value(phi, from), f.inst(phi).result()) {
                values.push((p, vector.value(e, v)));
            }
        }
        if let (true, Some(block)) = (e.plan.is_internal(from, to), vector.blocks[to.index()]) {
            let mut args = Vec::new();
            for (phi, lanes) in values {
                vector.push_args(e, phi, lanes, &mut args);
            }
            return (block, args);
        }
        let block = e.b.create_block();
        vector.ways_out.push((block, values, e.plan.region_of(to)));
        (block, Vec::new())
    }

    fn ret(&mut self, _: Option<Value>) {
        self.e.leave_region(None);
    }
}
