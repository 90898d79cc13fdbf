//! Pure ops for all lanes at once.

use super::super::emit::{Emitter, prim_of};
use super::Vector;
use super::lanes::{Lanes, simd_type};
use crate::pure::Pure;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
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
