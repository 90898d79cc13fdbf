//! Pure ops for all lanes at once.

use super::super::emit::{Emitter, prim_of};
use super::Vector;
use super::lanes::{Lanes, simd_type};
use crate::pure::Pure;
use crate::simd;
use cranelift_codegen::ir::{self, InstBuilder, types};
use magpie_mpir::{Inst, Op};
use magpie_types::PrimType;

impl Vector<'_> {
    /// A pure op: on scalars when no operand varies, on vectors where there is such an
    /// instruction, else lane by lane.
    pub(super) fn compute(&mut self, e: &mut Emitter, i: Inst) -> Option<Lanes> {
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
            return e.pure(data.op, from, to, &scalars).map(Lanes::Same);
        }
        if let Some(lanes) = on_vectors(e, data.op, from, to, &args) {
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
fn on_vectors(
    e: &mut Emitter,
    op: Op,
    from: PrimType,
    to: PrimType,
    args: &[Lanes],
) -> Option<Lanes> {
    let wide = simd_type(from).is_some();
    let is_bool = from == PrimType::Bool;
    if !wide && !is_bool {
        return None;
    }
    if is_bool {
        return mask_op(e, op, args);
    }
    if op == Op::Select {
        simd_type(to)?;
        let (then, other) = (args.get(1)?.simd(&mut e.b, to), args.get(2)?.simd(&mut e.b, to));
        if let Lanes::Same(c) = *args.first()? {
            return Some(Lanes::Simd(e.b.ins().select(c, then, other)));
        }
        let mask = args.first()?.mask(&mut e.b);
        return Some(Lanes::Simd(simd::choose(&mut e.b, mask, then, other)));
    }
    // A shift takes one amount for all lanes.
    if let Op::IShl | Op::ILshr | Op::IAshr = op {
        let Lanes::Same(amount) = *args.get(1)? else { return None };
        let x = args.first()?.simd(&mut e.b, from);
        return simd::shift(&mut e.b, op, x, amount).map(Lanes::Simd);
    }
    if let Op::BitsCast | Op::Cast = op {
        let x = args.first()?.simd(&mut e.b, from);
        return convert(e, op, from, to, x).map(Lanes::Simd);
    }
    let values: Vec<ir::Value> = args.iter().map(|a| a.simd(&mut e.b, from)).collect();
    if let &[x, y] = values.as_slice()
        && let Some(mask) = simd::compare(&mut e.b, op, x, y)
    {
        return Some(Lanes::Mask(mask));
    }
    simd::arithmetic(&mut e.b, op, &values).map(Lanes::Simd)
}

/// The same numbers, or the same bits, as another type of 32 bits.
fn convert(
    e: &mut Emitter,
    op: Op,
    from: PrimType,
    to: PrimType,
    x: ir::Value,
) -> Option<ir::Value> {
    let ty = simd_type(to)?;
    if op == Op::BitsCast {
        return Some(simd::bits_as(&mut e.b, x, ty));
    }
    let ins = e.b.ins();
    Some(match (from, to) {
        (PrimType::F32, PrimType::I32) => ins.fcvt_to_sint_sat(ty, x),
        (PrimType::F32, PrimType::U32) => ins.fcvt_to_uint_sat(ty, x),
        (PrimType::I32, PrimType::F32) => ins.fcvt_from_sint(ty, x),
        (PrimType::U32, PrimType::F32) => ins.fcvt_from_uint(ty, x),
        _ => x,
    })
}

/// Logic on masks.
fn mask_op(e: &mut Emitter, op: Op, args: &[Lanes]) -> Option<Lanes> {
    let x = args.first()?.mask(&mut e.b);
    let y = args.get(1)?.mask(&mut e.b);
    simd::mask_op(&mut e.b, op, x, y).map(Lanes::Mask)
}
