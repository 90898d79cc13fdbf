//! The instructions of a region for all lanes at once.

use super::super::carried::Carry;
use super::super::emit::{Emitter, prim_of};
use super::super::regions::RegionId;
use super::guard::Guard;
use super::lanes::{Lanes, simd_type};
use super::vary::Vary;
use crate::pure::{Pure, clif_type, constant};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData, TrapCode, types};
use magpie_mpir::{Block, Inst, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;

const TRUSTED: MemFlagsData = MemFlagsData::trusted();
/// Vectors in buffers and in the frame are aligned to their elements only.
const UNALIGNED: MemFlagsData = MemFlagsData::new().with_notrap();

/// A region being emitted in lanes.
pub(crate) struct Vector<'v> {
    pub(crate) vary: &'v Vary,
    pub(crate) guard: &'v Guard,
    lanes: Vec<Option<Lanes>>,
    blocks: Vec<Option<ir::Block>>,
    ways_out: Vec<WayOut>,
}

/// An edge that leaves the region: the block to fill, the phis of the next region, and that region.
type WayOut = (ir::Block, Vec<(Value, Lanes)>, Option<RegionId>);

impl<'v> Vector<'v> {
    pub(crate) fn new(e: &Emitter, vary: &'v Vary, guard: &'v Guard) -> Vector<'v> {
        Vector {
            vary,
            guard,
            lanes: vec![None; e.f.locals.len()],
            blocks: vec![None; e.f.blocks.len()],
            ways_out: Vec::new(),
        }
    }

    /// The region from the current block to `e.leave`.
    pub(crate) fn region(&mut self, e: &mut Emitter) {
        let plan = e.plan;
        let region = &plan.regions[e.region.0 as usize];
        for &b in &region.blocks {
            self.blocks[b.index()] = Some(e.b.create_block());
        }
        for &b in &region.blocks {
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
        for &b in &region.blocks {
            if let Some(block) = self.blocks[b.index()] {
                e.b.switch_to_block(block);
                self.block(e, b);
            }
        }
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
        for &i in &f.block(block).insts {
            let lanes = match (f.inst(i).op, f.inst(i).result()) {
                (Op::Phi, Some(v)) => self.lanes[v.index()],
                _ => self.inst(e, i),
            };
            if let (Some(v), Some(lanes)) = (f.inst(i).result(), lanes) {
                self.lanes[v.index()] = Some(lanes);
                self.export(e, v, lanes);
            }
        }
        self.terminator(e, block);
        for (way, values, to) in std::mem::take(&mut self.ways_out) {
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
    fn value(&mut self, e: &mut Emitter, v: Value) -> Lanes {
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
                None => Lanes::Same(constant(&mut e.b, prim, 0)),
            },
            _ => Lanes::Same(e.value(v)),
        }
    }

    fn scalar(&mut self, e: &mut Emitter, v: Value) -> ir::Value {
        let prim = prim_of(e.module, e.f.ty(v));
        let lanes = self.value(e, v);
        lanes.each(&mut e.b, prim)[0]
    }

    fn load_slot(&mut self, e: &mut Emitter, offset: u32, prim: PrimType) -> Lanes {
        let address = e.frame_address(e.memory.slots + offset, prim.size());
        match simd_type(prim) {
            Some(ty) => Lanes::Simd(e.b.ins().load(ty, UNALIGNED, address, 0)),
            None => Lanes::Each([0, 1, 2, 3].map(|n| {
                let at = n * prim.size() as i32;
                e.b.ins().load(clif_type(prim), TRUSTED, address, at)
            })),
        }
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
                let address = e.frame_address(e.memory.slots + offset, prim.size());
                self.store(e, prim, address, lanes);
            }
        }
    }

    fn store(&mut self, e: &mut Emitter, prim: PrimType, address: ir::Value, lanes: Lanes) {
        if simd_type(prim).is_some() {
            let vector = lanes.simd(&mut e.b, prim);
            e.b.ins().store(UNALIGNED, vector, address, 0);
            return;
        }
        for (n, v) in lanes.each(&mut e.b, prim).into_iter().enumerate() {
            e.b.ins().store(TRUSTED, v, address, n as i32 * prim.size() as i32);
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
            | Op::GpuSubgroupLaneId
            | Op::LeafGet => e.inst(i).map(Lanes::Same),
            _ => self.compute(e, i),
        }
    }

    /// A pure op: on scalars when no operand varies, on vectors where there is such an
    /// instruction, else lane by lane.
    fn compute(&mut self, e: &mut Emitter, i: Inst) -> Option<Lanes> {
        let f = e.f;
        let data = f.inst(i);
        let to = prim_of(e.module, data.ty);
        let args: Vec<Lanes> = f.args(i).iter().map(|&v| self.value(e, v)).collect();
        // `select` has its condition first.
        let first = f.args(i).get((data.op == Op::Select) as usize);
        let from = first.map_or(PrimType::U32, |&v| prim_of(e.module, f.ty(v)));
        if let Some(linear) = linear(e, data.op, to, &args) {
            return Some(linear);
        }
        if args.iter().all(|a| matches!(a, Lanes::Same(_))) {
            let scalars: Vec<ir::Value> = args.iter().map(|a| a.each(&mut e.b, from)[0]).collect();
            return Pure { b: &mut e.b, calls: e.code }
                .emit(data.op, from, to, &scalars)
                .map(Lanes::Same);
        }
        if let Some(lanes) = simd(e, data.op, from, to, &args) {
            return Some(lanes);
        }
        let prims: Vec<PrimType> = f.args(i).iter().map(|&v| prim_of(e.module, f.ty(v))).collect();
        let columns: Vec<[ir::Value; 4]> =
            args.iter().zip(&prims).map(|(a, &p)| a.each(&mut e.b, p)).collect();
        let mut out = [None; 4];
        for (n, slot) in out.iter_mut().enumerate() {
            let scalars: Vec<ir::Value> = columns.iter().map(|c| c[n]).collect();
            *slot = Pure { b: &mut e.b, calls: e.code }.emit(data.op, from, to, &scalars);
        }
        Some(Lanes::Each([out[0]?, out[1]?, out[2]?, out[3]?]))
    }

    fn load(&mut self, e: &mut Emitter, i: Inst) -> Lanes {
        let f = e.f;
        let data = f.inst(i);
        let prim = prim_of(e.module, data.ty);
        let base = self.scalar(e, f.arg(i, 0));
        let index = self.value(e, f.arg(i, 1));
        let address = |e: &mut Emitter, at| {
            e.element_address(base, f.arg(i, 0), at, f.ty(f.arg(i, 1)), data.imm_lo())
        };
        match (index, simd_type(prim)) {
            (Lanes::Same(at), _) => {
                let address = address(e, at);
                Lanes::Same(e.b.ins().load(clif_type(prim), TRUSTED, address, 0))
            }
            (Lanes::Linear(at, 1), Some(ty)) if e.element_stride(f.arg(i, 0)) == 4 => {
                let address = address(e, at);
                Lanes::Simd(e.b.ins().load(ty, UNALIGNED, address, 0))
            }
            _ => {
                let index_prim = prim_of(e.module, f.ty(f.arg(i, 1)));
                Lanes::Each(index.each(&mut e.b, index_prim).map(|at| {
                    let address = address(e, at);
                    e.b.ins().load(clif_type(prim), TRUSTED, address, 0)
                }))
            }
        }
    }

    fn store_element(&mut self, e: &mut Emitter, i: Inst) {
        let f = e.f;
        let data = f.inst(i);
        let prim = prim_of(e.module, f.ty(f.arg(i, 2)));
        let base = self.scalar(e, f.arg(i, 0));
        let index = self.value(e, f.arg(i, 1));
        let value = self.value(e, f.arg(i, 2));
        let address = |e: &mut Emitter, at| {
            e.element_address(base, f.arg(i, 0), at, f.ty(f.arg(i, 1)), data.imm_lo())
        };
        if let (Lanes::Linear(at, 1), Some(_), 4) =
            (index, simd_type(prim), e.element_stride(f.arg(i, 0)))
        {
            let address = address(e, at);
            self.store(e, prim, address, value);
            return;
        }
        let index_prim = prim_of(e.module, f.ty(f.arg(i, 1)));
        let places = index.each(&mut e.b, index_prim);
        let values = value.each(&mut e.b, prim);
        for (at, v) in places.into_iter().zip(values) {
            let address = address(e, at);
            e.b.ins().store(TRUSTED, v, address, 0);
        }
    }

    fn edge(&mut self, e: &mut Emitter, from: Block, to: Block) -> (ir::Block, Vec<BlockArg>) {
        let f = e.f;
        let phis: Vec<Inst> = f.phis(to).collect();
        let mut values = Vec::new();
        for phi in phis {
            if let (Some(v), Some(p)) = (f.phi_value(phi, from), f.inst(phi).result()) {
                values.push((p, self.value(e, v)));
            }
        }
        if let (true, Some(block)) = (e.plan.is_internal(from, to), self.blocks[to.index()]) {
            let mut args = Vec::new();
            for (phi, lanes) in values {
                self.push_args(e, phi, lanes, &mut args);
            }
            return (block, args);
        }
        let block = e.b.create_block();
        self.ways_out.push((block, values, e.plan.region_of(to)));
        (block, Vec::new())
    }

    fn terminator(&mut self, e: &mut Emitter, block: Block) {
        let f = e.f;
        if let Some(active) = self.guard.active_side(block) {
            let (to, args) = self.edge(e, block, active);
            e.b.ins().jump(to, &args);
            return;
        }
        match &f.block(block).term {
            Terminator::Ret(_) => e.leave_region(None),
            Terminator::Br(to) => {
                let (to, args) = self.edge(e, block, *to);
                e.b.ins().jump(to, &args);
            }
            Terminator::Cbr { cond, then, else_ } => {
                let cond = self.scalar(e, *cond);
                let (then, then_args) = self.edge(e, block, *then);
                let (else_, else_args) = self.edge(e, block, *else_);
                e.b.ins().brif(cond, then, &then_args, else_, &else_args);
            }
            Terminator::Switch { value, cases, default } => {
                let p = prim_of(e.module, f.ty(*value));
                let v = self.scalar(e, *value);
                for &(bits, to) in cases {
                    let c = constant(&mut e.b, p, bits);
                    let equal = e.b.ins().icmp(IntCC::Equal, v, c);
                    let (to, args) = self.edge(e, block, to);
                    let next = e.b.create_block();
                    e.b.ins().brif(equal, to, &args, next, &[]);
                    e.b.switch_to_block(next);
                }
                let (to, args) = self.edge(e, block, *default);
                e.b.ins().jump(to, &args);
            }
            Terminator::Unreachable => {
                e.b.ins().trap(TrapCode::unwrap_user(2));
            }
        }
    }
}

/// Integer arithmetic that keeps a constant step between lanes.
fn linear(e: &mut Emitter, op: Op, to: PrimType, args: &[Lanes]) -> Option<Lanes> {
    use Lanes::{Linear, Same};
    if !matches!(to, PrimType::I32 | PrimType::U32) {
        return None;
    }
    let (a, b) = (*args.first()?, *args.get(1).unwrap_or(args.first()?));
    let ins = e.b.ins();
    Some(match (op, a, b) {
        (Op::IAdd, Linear(x, s), Same(y)) => Linear(ins.iadd(x, y), s),
        (Op::IAdd, Same(x), Linear(y, s)) => Linear(ins.iadd(x, y), s),
        (Op::IAdd, Linear(x, s), Linear(y, t)) => Linear(ins.iadd(x, y), s.checked_add(t)?),
        (Op::ISub, Linear(x, s), Same(y)) => Linear(ins.isub(x, y), s),
        (Op::ISub, Linear(x, s), Linear(y, t)) => Linear(ins.isub(x, y), s.checked_sub(t)?),
        // Between 32-bit integers the bits stay; a cast from another width is none of this.
        (Op::Cast | Op::BitsCast, Linear(x, s), _) if args.len() == 1 => {
            (e.b.func.dfg.value_type(x) == types::I32).then_some(Linear(x, s))?
        }
        _ => return None,
    })
}

/// An op on vectors of four 32-bit components, where the machine has it.
fn simd(e: &mut Emitter, op: Op, from: PrimType, to: PrimType, args: &[Lanes]) -> Option<Lanes> {
    let wide = simd_type(from).is_some();
    let is_bool = from == PrimType::Bool;
    if !wide && !is_bool {
        return None;
    }
    if is_bool {
        return mask_op(e, op, args);
    }
    let integer = from != PrimType::F32;
    if op == Op::Select {
        simd_type(to)?;
        let (then, other) = (args.get(1)?.simd(&mut e.b, to), args.get(2)?.simd(&mut e.b, to));
        if let Lanes::Same(c) = *args.first()? {
            return Some(Lanes::Simd(e.b.ins().select(c, then, other)));
        }
        let mask = args.first()?.mask(&mut e.b);
        let mask = bits_as(e, mask, simd_type(to)?);
        return Some(Lanes::Simd(e.b.ins().bitselect(mask, then, other)));
    }
    // A shift takes one amount for all lanes.
    if let Op::IShl | Op::ILshr | Op::IAshr = op {
        let Lanes::Same(amount) = *args.get(1)? else { return None };
        let x = args.first()?.simd(&mut e.b, from);
        let ins = e.b.ins();
        return Some(Lanes::Simd(match op {
            Op::IShl => ins.ishl(x, amount),
            Op::ILshr => ins.ushr(x, amount),
            _ => ins.sshr(x, amount),
        }));
    }
    if let Some(cc) = int_condition(op) {
        let (x, y) = pair(e, from, args)?;
        return Some(Lanes::Mask(e.b.ins().icmp(cc, x, y)));
    }
    if let Some(cc) = float_condition(op) {
        let (x, y) = pair(e, from, args)?;
        return Some(Lanes::Mask(e.b.ins().fcmp(cc, x, y)));
    }
    let x = || args.first().copied();
    let value = match op {
        Op::IAdd
        | Op::ISub
        | Op::IMul
        | Op::IAnd
        | Op::IOr
        | Op::IXor
        | Op::ISmin
        | Op::ISmax
        | Op::IUmin
        | Op::IUmax => {
            let (x, y) = pair(e, from, args)?;
            let ins = e.b.ins();
            match op {
                Op::IAdd => ins.iadd(x, y),
                Op::ISub => ins.isub(x, y),
                Op::IMul => ins.imul(x, y),
                Op::IAnd => ins.band(x, y),
                Op::IOr => ins.bor(x, y),
                Op::IXor => ins.bxor(x, y),
                Op::ISmin => ins.smin(x, y),
                Op::ISmax => ins.smax(x, y),
                Op::IUmin => ins.umin(x, y),
                _ => ins.umax(x, y),
            }
        }
        Op::FAdd | Op::FSub | Op::FMul | Op::FDiv => {
            let (x, y) = pair(e, from, args)?;
            let ins = e.b.ins();
            match op {
                Op::FAdd => ins.fadd(x, y),
                Op::FSub => ins.fsub(x, y),
                Op::FMul => ins.fmul(x, y),
                _ => ins.fdiv(x, y),
            }
        }
        Op::FNeg | Op::FAbs | Op::FSqrt | Op::FFloor | Op::FCeil | Op::FTrunc | Op::FRound => {
            let x = x()?.simd(&mut e.b, from);
            let ins = e.b.ins();
            match op {
                Op::FNeg => ins.fneg(x),
                Op::FAbs => ins.fabs(x),
                Op::FSqrt => ins.sqrt(x),
                Op::FFloor => ins.floor(x),
                Op::FCeil => ins.ceil(x),
                Op::FTrunc => ins.trunc(x),
                _ => ins.nearest(x),
            }
        }
        Op::FMin | Op::FMax => {
            let (x, y) = pair(e, from, args)?;
            // Cranelift's fmin and fmax order the zeros but let NaN win.
            let r = match op {
                Op::FMin => e.b.ins().fmin(x, y),
                _ => e.b.ins().fmax(x, y),
            };
            let x_nan = e.b.ins().fcmp(FloatCC::Unordered, x, x);
            let y_nan = e.b.ins().fcmp(FloatCC::Unordered, y, y);
            let (x_nan, y_nan) = (bits_as(e, x_nan, types::F32X4), bits_as(e, y_nan, types::F32X4));
            let r = e.b.ins().bitselect(y_nan, x, r);
            e.b.ins().bitselect(x_nan, y, r)
        }
        Op::FFma => {
            let (x, y) = pair(e, from, args)?;
            let z = args.get(2)?.simd(&mut e.b, from);
            e.b.ins().fma(x, y, z)
        }
        Op::BitsCast => {
            let x = x()?.simd(&mut e.b, from);
            bits_as(e, x, simd_type(to)?)
        }
        Op::Cast => {
            let x = x()?.simd(&mut e.b, from);
            match (integer, from.is_signed(), to) {
                (true, _, PrimType::I32 | PrimType::U32) => x,
                (true, true, PrimType::F32) => e.b.ins().fcvt_from_sint(types::F32X4, x),
                (true, false, PrimType::F32) => e.b.ins().fcvt_from_uint(types::F32X4, x),
                (false, _, PrimType::I32) => e.b.ins().fcvt_to_sint_sat(types::I32X4, x),
                (false, _, PrimType::U32) => e.b.ins().fcvt_to_uint_sat(types::I32X4, x),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Lanes::Simd(value))
}

/// Logic on masks.
fn mask_op(e: &mut Emitter, op: Op, args: &[Lanes]) -> Option<Lanes> {
    let x = args.first()?.mask(&mut e.b);
    let mut second = || args.get(1).map(|a| a.mask(&mut e.b));
    let value = match op {
        Op::IAnd => {
            let y = second()?;
            e.b.ins().band(x, y)
        }
        Op::IOr => {
            let y = second()?;
            e.b.ins().bor(x, y)
        }
        Op::IXor | Op::IcmpNe => {
            let y = second()?;
            e.b.ins().bxor(x, y)
        }
        Op::IcmpEq => {
            let y = second()?;
            e.b.ins().icmp(IntCC::Equal, x, y)
        }
        _ => return None,
    };
    Some(Lanes::Mask(value))
}

fn pair(e: &mut Emitter, p: PrimType, args: &[Lanes]) -> Option<(ir::Value, ir::Value)> {
    let x = args.first()?.simd(&mut e.b, p);
    let y = args.get(1)?.simd(&mut e.b, p);
    Some((x, y))
}

fn bits_as(e: &mut Emitter, v: ir::Value, ty: ir::Type) -> ir::Value {
    if e.b.func.dfg.value_type(v) == ty {
        return v;
    }
    let flags = MemFlagsData::new().with_endianness(ir::Endianness::Little);
    e.b.ins().bitcast(ty, flags, v)
}

fn int_condition(op: Op) -> Option<IntCC> {
    Some(match op {
        Op::IcmpEq => IntCC::Equal,
        Op::IcmpNe => IntCC::NotEqual,
        Op::IcmpSlt => IntCC::SignedLessThan,
        Op::IcmpSgt => IntCC::SignedGreaterThan,
        Op::IcmpSle => IntCC::SignedLessThanOrEqual,
        Op::IcmpSge => IntCC::SignedGreaterThanOrEqual,
        Op::IcmpUlt => IntCC::UnsignedLessThan,
        Op::IcmpUgt => IntCC::UnsignedGreaterThan,
        Op::IcmpUle => IntCC::UnsignedLessThanOrEqual,
        Op::IcmpUge => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

fn float_condition(op: Op) -> Option<FloatCC> {
    Some(match op {
        Op::FcmpOeq => FloatCC::Equal,
        Op::FcmpOlt => FloatCC::LessThan,
        Op::FcmpOgt => FloatCC::GreaterThan,
        Op::FcmpOle => FloatCC::LessThanOrEqual,
        Op::FcmpOge => FloatCC::GreaterThanOrEqual,
        Op::FcmpOrd => FloatCC::Ordered,
        Op::FcmpUne => FloatCC::NotEqual,
        Op::FcmpUno => FloatCC::Unordered,
        _ => return None,
    })
}
