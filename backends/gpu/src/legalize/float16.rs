//! f16 and bf16 on targets without them: values are carried as `u16` bits, every operation is done
//! in f32 and rounded once.

use super::LegalOps;
use super::format::Rounding;
use super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::retype::{Retype, const_bits};
use super::seq::Seq;
use magpie_mpir::{Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeCtx, TypeId, fixed};
use rustc_hash::FxHashMap;

/// Rewrites a kernel without struct and vector values. `lacks` says which formats the target has
/// no arithmetic for; f64 and conversions of bf16, where `legal` has them, save work. Parameters
/// change their types; the launch layout does not.
pub fn legalize_float16(
    f: &mut MpirFn,
    types: &mut TypeCtx,
    lacks: &dyn Fn(PrimType) -> bool,
    legal: &LegalOps,
) -> bool {
    let is_half = |p: PrimType| matches!(p, PrimType::F16 | PrimType::Bf16) && lacks(p);
    let used = f.locals.iter().any(|l| mentions(types, l.ty, &is_half));
    if !used {
        return false;
    }
    let scalar = |p: PrimType| if is_half(p) { PrimType::U16 } else { p };
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    // What the operands were before any type changed.
    let formats: Vec<Option<PrimType>> =
        f.locals.iter().map(|l| PrimType::from_id(l.ty).filter(|&p| is_half(p))).collect();
    let format = |v: Value| formats.get(v.index()).copied().flatten();
    let formats = Formats { of: &format, legal };
    let mut retype = Retype::new(types, &scalar);
    retype.params(f);
    for b in f.block_ids() {
        let old = std::mem::take(&mut f.block_mut(b).insts);
        let mut out = Vec::with_capacity(old.len());
        for i in old {
            let result = f.inst(i).result();
            let to = result.and_then(format);
            let from = operand_formats(f, i, &format);
            let keeps = moves_bits(f.inst(i).op);
            if to.is_none() && from.is_empty() || keeps {
                constants_to_bits(f, i, &format);
                if let Some(v) = result {
                    retype.value(f, v);
                    let ty = f.ty(v);
                    f.inst_mut(i).ty = ty;
                }
                out.push(i);
                continue;
            }
            let span = f.inst(i).span;
            let flags = f.inst(i).flags;
            let mut s = Seq { f, out: &mut out, span, flags };
            if let (Some(old), Some(new)) = (result, rewrite(&mut s, i, to, &formats)) {
                map.insert(old, new);
            }
        }
        f.block_mut(b).insts = out;
    }
    f.replace_uses(&map);
    true
}

/// Whether a type contains a scalar of the kind asked for.
pub fn mentions(types: &TypeCtx, ty: TypeId, is: &dyn Fn(PrimType) -> bool) -> bool {
    use magpie_types::TypeKind;
    match types.kind(ty) {
        TypeKind::Prim(p) | TypeKind::Vec(p, _) => is(p),
        TypeKind::Buffer(t) | TypeKind::SharedArray(t, _) | TypeKind::LocalArray(t, _) => {
            mentions(types, t, is)
        }
        _ => types.members(ty).is_some_and(|m| m.iter().any(|&t| mentions(types, t, is))),
    }
}

/// The first instruction that computes with a scalar of a kind, rather than moving it about.
pub fn first_computing(f: &MpirFn, types: &TypeCtx, is: &dyn Fn(PrimType) -> bool) -> Option<Inst> {
    let mut insts = f.blocks.iter().flat_map(|b| &b.insts).copied();
    insts.find(|&i| {
        let operands = f.args(i).iter().map(|&v| f.ty(v));
        let mut touched = std::iter::once(f.inst(i).ty).chain(operands);
        !moves_bits(f.inst(i).op) && touched.any(|ty| mentions(types, ty, is))
    })
}

fn operand_formats(
    f: &MpirFn,
    i: Inst,
    format: &dyn Fn(Value) -> Option<PrimType>,
) -> Vec<PrimType> {
    f.args(i).iter().filter_map(|&v| format(v)).collect()
}

/// Ops that pass values on without looking into them.
fn moves_bits(op: Op) -> bool {
    matches!(
        op,
        Op::Phi
            | Op::LeafGet
            | Op::GpuBufferLoad
            | Op::GpuBufferStore
            | Op::GpuLeafLoad
            | Op::GpuLeafStore
            | Op::GpuBufferLen
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuSubgroupShuffle
            | Op::GpuSubgroupShuffleDown
            | Op::GpuSubgroupShuffleUp
            | Op::GpuSubgroupShuffleXor
            | Op::GpuSubgroupBroadcast
            | Op::Select
            | Op::VecNew
            | Op::VecExtract
    )
}

/// Constants of a 16-bit format become constants of their bits.
fn constants_to_bits(f: &mut MpirFn, i: Inst, format: &dyn Fn(Value) -> Option<PrimType>) {
    for n in 0..f.args(i).len() {
        let v = f.arg(i, n);
        if let (Some(_), Some(bits)) = (format(v), const_bits(f, v)) {
            let bits = f.const_bits(fixed::U16, bits);
            f.args_mut(i)[n] = bits;
        }
    }
}

/// What the operands are, and what the target has to convert them with.
struct Formats<'a> {
    /// The 16-bit format that a value had at first.
    of: &'a dyn Fn(Value) -> Option<PrimType>,
    legal: &'a LegalOps,
}

/// An operand as f32.
fn widen(s: &mut Seq, v: Value, formats: &Formats<'_>) -> Value {
    let Some(p) = (formats.of)(v) else { return v };
    if let Some(bits) = const_bits(s.f, v) {
        return s.f32(magpie_mpir::eval::float_value(p, bits) as f32);
    }
    if p == PrimType::Bf16 && formats.legal.bfloat16_casts {
        // Whatever type the operand has now, it will be `u16`.
        let half = s.inst(Op::BitsCast, fixed::BF16, &[v], magpie_mpir::Flags::NONE);
        return s.cast(half, PrimType::F32);
    }
    let bits = s.cast(v, PrimType::U32);
    match p {
        PrimType::F16 => f16_to_f32(s, bits),
        _ => bf16_to_f32(s, bits),
    }
}

/// An f32 rounded to 16 bits, as `u16`.
fn narrow(s: &mut Seq, v: Value, p: PrimType, formats: &Formats<'_>) -> Value {
    if p == PrimType::Bf16 && formats.legal.bfloat16_casts {
        let half = s.cast(v, PrimType::Bf16);
        return s.bits(half, PrimType::U16);
    }
    let bits = match p {
        PrimType::F16 => f32_to_f16(s, v),
        _ => f32_to_bf16(s, v),
    };
    s.cast(bits, PrimType::U16)
}

/// The value of an instruction that computes with 16-bit floats.
fn rewrite(s: &mut Seq, i: Inst, to: Option<PrimType>, formats: &Formats<'_>) -> Option<Value> {
    let data = *s.f.inst(i);
    let args: Vec<Value> = s.f.args(i).to_vec();
    let first = *args.first()?;
    match data.op {
        Op::FNeg | Op::FAbs => {
            let bits = bits_of(s, first, formats);
            let (op, mask) =
                if data.op == Op::FNeg { (Op::IXor, 0x8000) } else { (Op::IAnd, 0x7fff) };
            // The operand may be a value that is replaced later and has its old type still.
            let mask = s.f.const_bits(fixed::U16, mask);
            Some(s.inst(op, fixed::U16, &[bits, mask], magpie_mpir::Flags::NONE))
        }
        Op::BitsCast => {
            let bits = bits_of(s, first, formats);
            let ty = if to.is_some() { PrimType::U16 } else { PrimType::from_id(data.ty)? };
            Some(s.bits(bits, ty))
        }
        Op::Cast => {
            let from = (formats.of)(first);
            match (from, to) {
                (Some(_), None) => {
                    let v = widen(s, first, formats);
                    Some(s.cast(v, PrimType::from_id(data.ty)?))
                }
                (Some(_), Some(p)) => {
                    let v = widen(s, first, formats);
                    Some(narrow(s, v, p, formats))
                }
                (None, Some(p)) => Some(narrow_from(s, first, p, formats)),
                (None, None) => None,
            }
        }
        Op::FFma => {
            // The product of two f16 is exact in f32; of two bf16 too, but it may leave the range.
            let mut v: Vec<Value> = args.iter().map(|&v| widen(s, v, formats)).collect();
            if to == Some(PrimType::Bf16) && formats.legal.float64 {
                v.iter_mut().for_each(|v| *v = s.cast(*v, PrimType::F64));
                let product = s.same(Op::FMul, &v[..2]);
                let sum = super::float_ops::odd_sum(s, product, v[2]);
                return Some(narrow_from(s, sum, PrimType::Bf16, formats));
            }
            if to == Some(PrimType::Bf16) {
                let args = [*v.first()?, *v.get(1)?, *v.get(2)?];
                let sum = super::fma::fma(s, &super::format::F32, args, Rounding::Odd);
                return Some(narrow(s, sum, PrimType::Bf16, formats));
            }
            let product = s.same(Op::FMul, &v[..2]);
            let sum = super::float_ops::odd_sum(s, product, v[2]);
            Some(narrow(s, sum, to?, formats))
        }
        _ => {
            let wide: Vec<Value> = args.iter().map(|&v| widen(s, v, formats)).collect();
            let ty = if to.is_some() { fixed::F32 } else { data.ty };
            let new = s.f.make_inst(data.op, data.flags, ty, &wide, data.imm, data.span);
            s.out.push(new);
            let v = s.f.inst(new).result();
            match (v, to) {
                (Some(v), Some(p)) => Some(narrow(s, v, p, formats)),
                (v, _) => v,
            }
        }
    }
}

fn bits_of(s: &mut Seq, v: Value, formats: &Formats<'_>) -> Value {
    match ((formats.of)(v), const_bits(s.f, v)) {
        (Some(_), Some(bits)) => s.f.const_bits(fixed::U16, bits),
        _ => v,
    }
}

/// A conversion to a 16-bit format from another type, with one rounding.
fn narrow_from(s: &mut Seq, v: Value, p: PrimType, formats: &Formats<'_>) -> Value {
    match s.prim(v) {
        PrimType::F32 => narrow(s, v, p, formats),
        PrimType::F64 => {
            let odd = f64_to_f32_odd(s, v);
            narrow(s, odd, p, formats)
        }
        PrimType::Bool => {
            let one = magpie_mpir::eval::float_bits(p, 1.0);
            let one = s.f.const_bits(fixed::U16, one);
            let zero = s.f.const_bits(fixed::U16, 0);
            s.select(v, one, zero)
        }
        from if from.bit_width() <= 16 || p == PrimType::F16 => {
            // Exact in f32, or beyond the largest f16 either way.
            let single = s.cast(v, PrimType::F32);
            narrow(s, single, p, formats)
        }
        from => {
            let single = int_to_f32_odd(s, v, from);
            narrow(s, single, p, formats)
        }
    }
}

/// Rounds to odd: an inexact result gets its last bit set, so that narrowing it rounds once.
fn f64_to_f32_odd(s: &mut Seq, v: Value) -> Value {
    let near = s.cast(v, PrimType::F32);
    let back = s.cast(near, PrimType::F64);
    let inexact = s.inst(Op::FcmpOne, fixed::BOOL, &[back, v], magpie_mpir::Flags::NONE);
    let (size, true_size) = (s.same(Op::FAbs, &[back]), s.same(Op::FAbs, &[v]));
    let too_large = s.cmp(Op::FcmpOgt, size, true_size);
    let bits = s.bits(near, PrimType::U32);
    let less = s.plus(bits, -1);
    let toward_zero = s.select(too_large, less, bits);
    let one = s.u32(1);
    let odd = s.or(toward_zero, one);
    let bits = s.select(inexact, odd, bits);
    s.bits(bits, PrimType::F32)
}

/// The same for an integer of 32 or 64 bits: bits below the 24 leading ones become one sticky bit,
/// which makes the conversion exact.
fn int_to_f32_odd(s: &mut Seq, v: Value, from: PrimType) -> Value {
    let w = from.bit_width();
    let unsigned = from.bits_type();
    let bits = s.bits(v, unsigned);
    let (magnitude, negative) = if from.is_signed() {
        let zero = s.like(v, 0);
        let negative = s.cmp(Op::IcmpSlt, v, zero);
        let zero = s.like(bits, 0);
        let minus = s.sub(zero, bits);
        (s.select(negative, minus, bits), Some(negative))
    } else {
        (bits, None)
    };
    let zeros = s.same(Op::IClz, &[magnitude]);
    let surplus = s.like(bits, w as u64 - 24);
    let least = s.same(Op::IUmin, &[zeros, surplus]);
    let drop = s.sub(surplus, least);
    let kept = s.same(Op::ILshr, &[magnitude, drop]);
    let back = s.same(Op::IShl, &[kept, drop]);
    let lost = s.cmp(Op::IcmpNe, back, magnitude);
    let sticky = s.bit(lost, kept);
    let kept = s.or(kept, sticky);
    let exact = s.same(Op::IShl, &[kept, drop]);
    let single = s.cast(exact, PrimType::F32);
    match negative {
        None => single,
        Some(negative) => {
            let minus = s.same(Op::FNeg, &[single]);
            s.select(negative, minus, single)
        }
    }
}
