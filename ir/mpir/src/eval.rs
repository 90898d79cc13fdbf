//! The meaning of every pure scalar op, as a function on bits.
//!
//! Constant folding and the reference interpreter both use it, so they cannot disagree; the
//! generated code of every back end is compared with it.

mod subgroup;

pub use subgroup::SubgroupOp;

use crate::Op;
use magpie_types::PrimType;
use magpie_types::abi::MathFn;
use magpie_types::float16::{
    bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, f64_to_bf16, f64_to_f16, i128_to_bf16,
    i128_to_f16,
};

/// Sign-extends the low `width` bits.
pub fn sign_extend(bits: u64, width: u32) -> i64 {
    match width {
        0 => 0,
        1..64 => ((bits << (64 - width)) as i64) >> (64 - width),
        _ => bits as i64,
    }
}

/// The number that the bits of an integer (or `bool`) of type `p` stand for.
pub fn int_value(p: PrimType, bits: u64) -> i128 {
    if p.is_signed() { sign_extend(bits, p.bit_width()) as i128 } else { (bits & p.mask()) as i128 }
}

/// A float of type `p` as `f64`; exact.
pub fn float_value(p: PrimType, bits: u64) -> f64 {
    match p {
        PrimType::F16 => f16_to_f32(bits as u16) as f64,
        PrimType::Bf16 => bf16_to_f32(bits as u16) as f64,
        PrimType::F32 => f32::from_bits(bits as u32) as f64,
        _ => f64::from_bits(bits),
    }
}

/// The bits of `v` rounded once to the float type `p`.
pub fn float_bits(p: PrimType, v: f64) -> u64 {
    match p {
        PrimType::F16 => f64_to_f16(v) as u64,
        PrimType::Bf16 => f64_to_bf16(v) as u64,
        PrimType::F32 => (v as f32).to_bits() as u64,
        _ => v.to_bits(),
    }
}

/// Evaluates a pure scalar op. `from` is the type of operand 0 (of operand 1 for `select`), `to`
/// the result type. `None` when the op is not a pure scalar function, or would trap, or when a
/// type is wider than 64 bits.
pub fn eval(op: Op, from: PrimType, to: PrimType, args: &[u64]) -> Option<u64> {
    if from.bit_width() > 64 || to.bit_width() > 64 {
        return None;
    }
    let w = from.bit_width();
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    let c = args.get(2).copied().unwrap_or(0);
    let (sa, sb) = (sign_extend(a, w), sign_extend(b, w));
    let (ua, ub) = (a & from.mask(), b & from.mask());
    let amount = if w == 0 { 0 } else { (ub % w as u64) as u32 };
    let int = |v: i128| Some(v as u64 & to.mask());
    let bits = |v: u64| Some(v & to.mask());
    let truth = |v: bool| Some(v as u64);
    let min = sign_extend(1u64.checked_shl(w.wrapping_sub(1)).unwrap_or(0), w);
    let exact =
        |v: i128| (int_value(from, v as u64 & from.mask()) == v).then_some(v as u64 & from.mask());
    let (va, vb) = (int_value(from, a), int_value(from, b));
    let (x, y) = match from.is_float() {
        true => (float_value(from, a), float_value(from, b)),
        false => (0.0, 0.0),
    };
    let unordered = x.is_nan() || y.is_nan();
    match op {
        Op::IAdd => bits(ua.wrapping_add(ub)),
        Op::ISub => bits(ua.wrapping_sub(ub)),
        Op::IMul => bits(ua.wrapping_mul(ub)),
        Op::ISdiv => bits(if sb == 0 { ua } else { sa.wrapping_div(sb) as u64 }),
        Op::IUdiv => bits(ua.checked_div(ub).unwrap_or(ua)),
        Op::ISrem => bits(if sb == 0 { 0 } else { sa.wrapping_rem(sb) as u64 }),
        Op::IUrem => bits(ua.checked_rem(ub).unwrap_or(0)),
        Op::IMulHiS => int((sa as i128 * sb as i128) >> w),
        Op::IMulHiU => bits(((ua as u128 * ub as u128) >> w) as u64),
        Op::IAnd => bits(a & b),
        Op::IOr => bits(a | b),
        Op::IXor => bits(a ^ b),
        Op::IShl => bits(ua << amount),
        Op::ILshr => bits(ua >> amount),
        Op::IAshr => bits((sa >> amount) as u64),
        Op::IRotl => bits(rotate_left(ua, amount, w)),
        Op::IRotr => bits(rotate_left(ua, (w - amount) % w.max(1), w)),
        Op::ISmin => bits(if sa <= sb { ua } else { ub }),
        Op::ISmax => bits(if sa >= sb { ua } else { ub }),
        Op::IUmin => bits(ua.min(ub)),
        Op::IUmax => bits(ua.max(ub)),
        Op::IPopcount => bits(ua.count_ones() as u64),
        Op::IClz => bits((ua.leading_zeros() - (64 - w)) as u64),
        Op::ICtz => bits(if ua == 0 { w as u64 } else { ua.trailing_zeros() as u64 }),
        Op::IAddOverflows => truth(exact(va + vb).is_none()),
        Op::ISubOverflows => truth(exact(va - vb).is_none()),
        Op::IMulOverflows => truth(va.checked_mul(vb).and_then(exact).is_none()),
        Op::IAddTrap => exact(va + vb),
        Op::ISubTrap => exact(va - vb),
        Op::IMulTrap => va.checked_mul(vb).and_then(exact),
        Op::ISdivTrap => {
            (sb != 0 && !(sb == -1 && sa == min)).then(|| (sa / sb) as u64 & to.mask())
        }
        Op::IUdivTrap => ua.checked_div(ub),
        Op::ISremTrap => (sb != 0).then(|| sa.wrapping_rem(sb) as u64 & to.mask()),
        Op::IUremTrap => ua.checked_rem(ub),

        Op::FAdd => Some(arith(from, a, b, |x, y| x + y, |x, y| x + y)),
        Op::FSub => Some(arith(from, a, b, |x, y| x - y, |x, y| x - y)),
        Op::FMul => Some(arith(from, a, b, |x, y| x * y, |x, y| x * y)),
        Op::FDiv => Some(arith(from, a, b, |x, y| x / y, |x, y| x / y)),
        Op::FRem => Some(arith(from, a, b, |x, y| x % y, |x, y| x % y)),
        Op::FNeg => bits(ua ^ (1 << (w - 1))),
        Op::FAbs => bits(ua & !(1 << (w - 1))),
        Op::FMin => Some(select_float(from, a, b, |x, y| x < y, true)),
        Op::FMax => Some(select_float(from, a, b, |x, y| x > y, false)),
        Op::FFma => Some(fma(from, a, b, c)),
        Op::FSqrt => Some(unary(from, a, f32::sqrt, f64::sqrt)),
        Op::FFloor => Some(unary(from, a, f32::floor, f64::floor)),
        Op::FCeil => Some(unary(from, a, f32::ceil, f64::ceil)),
        Op::FTrunc => Some(unary(from, a, f32::trunc, f64::trunc)),
        Op::FRound => Some(unary(from, a, f32::round_ties_even, f64::round_ties_even)),
        Op::FExp => Some(math(from, MathFn::Exp, a, b)),
        Op::FExp2 => Some(math(from, MathFn::Exp2, a, b)),
        Op::FLog => Some(math(from, MathFn::Log, a, b)),
        Op::FLog2 => Some(math(from, MathFn::Log2, a, b)),
        Op::FSin => Some(math(from, MathFn::Sin, a, b)),
        Op::FCos => Some(math(from, MathFn::Cos, a, b)),
        Op::FTan => Some(math(from, MathFn::Tan, a, b)),
        Op::FAsin => Some(math(from, MathFn::Asin, a, b)),
        Op::FAcos => Some(math(from, MathFn::Acos, a, b)),
        Op::FAtan => Some(math(from, MathFn::Atan, a, b)),
        Op::FSinh => Some(math(from, MathFn::Sinh, a, b)),
        Op::FCosh => Some(math(from, MathFn::Cosh, a, b)),
        Op::FTanh => Some(math(from, MathFn::Tanh, a, b)),
        Op::FAtan2 => Some(math(from, MathFn::Atan2, a, b)),
        Op::FPow => Some(math(from, MathFn::Pow, a, b)),

        Op::IcmpEq => truth(ua == ub),
        Op::IcmpNe => truth(ua != ub),
        Op::IcmpSlt => truth(sa < sb),
        Op::IcmpSgt => truth(sa > sb),
        Op::IcmpSle => truth(sa <= sb),
        Op::IcmpSge => truth(sa >= sb),
        Op::IcmpUlt => truth(ua < ub),
        Op::IcmpUgt => truth(ua > ub),
        Op::IcmpUle => truth(ua <= ub),
        Op::IcmpUge => truth(ua >= ub),
        Op::FcmpOeq => truth(x == y),
        Op::FcmpOne => truth(!unordered && x != y),
        Op::FcmpOlt => truth(x < y),
        Op::FcmpOgt => truth(x > y),
        Op::FcmpOle => truth(x <= y),
        Op::FcmpOge => truth(x >= y),
        Op::FcmpOrd => truth(!unordered),
        Op::FcmpUeq => truth(unordered || x == y),
        Op::FcmpUne => truth(x != y),
        Op::FcmpUlt => truth(unordered || x < y),
        Op::FcmpUgt => truth(unordered || x > y),
        Op::FcmpUle => truth(unordered || x <= y),
        Op::FcmpUge => truth(unordered || x >= y),
        Op::FcmpUno => truth(unordered),

        Op::Cast => cast(from, to, a),
        Op::BitsCast => (from.bit_width() == to.bit_width()).then_some(ua),
        Op::Select => bits(if a & 1 == 1 { b } else { c }),

        crate::vector_ops!()
        | crate::struct_ops!()
        | crate::id_ops!()
        | crate::atomic_ops!()
        | crate::subgroup_ops!()
        | crate::access_ops!()
        | crate::ownership_ops!()
        | crate::object_ops!()
        | crate::launch_ops!()
        | crate::low_host_ops!()
        | Op::Phi
        | Op::GpuBufferLen
        | Op::GpuShared
        | Op::GpuLocal
        | Op::GpuBarrier
        | Op::GpuPrint
        | Op::Call
        | Op::RtCall
        | Op::CallIndirect
        | Op::CallableCapture
        | Op::Panic => None,
    }
}

/// An atomic read-modify-write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum AtomicOp {
    Add,
    Sub,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    /// Compare and swap.
    Cas,
}

impl AtomicOp {
    /// The new element from the old one and operand `v`. For [`AtomicOp::Cas`] `v` is compared
    /// and `replacement` stored; the others ignore `replacement`.
    pub fn apply(self, p: PrimType, old: u64, v: u64, replacement: u64) -> u64 {
        let pick = |signed, unsigned, float| {
            let op = match (p.is_float(), p.is_signed()) {
                (true, _) => float,
                (false, true) => signed,
                (false, false) => unsigned,
            };
            eval(op, p, p, &[old, v]).unwrap_or(old)
        };
        match self {
            AtomicOp::Add => pick(Op::IAdd, Op::IAdd, Op::FAdd),
            AtomicOp::Sub => pick(Op::ISub, Op::ISub, Op::FSub),
            AtomicOp::Min => pick(Op::ISmin, Op::IUmin, Op::FMin),
            AtomicOp::Max => pick(Op::ISmax, Op::IUmax, Op::FMax),
            AtomicOp::And => old & v & p.mask(),
            AtomicOp::Or => (old | v) & p.mask(),
            AtomicOp::Xor => (old ^ v) & p.mask(),
            AtomicOp::Exchange => v & p.mask(),
            AtomicOp::Cas => {
                if old & p.mask() == v & p.mask() {
                    replacement & p.mask()
                } else {
                    old
                }
            }
        }
    }
}

fn rotate_left(v: u64, amount: u32, w: u32) -> u64 {
    if amount == 0 { v } else { v << amount | v >> (w - amount) }
}

fn arith(
    p: PrimType,
    a: u64,
    b: u64,
    f: impl Fn(f32, f32) -> f32,
    d: impl Fn(f64, f64) -> f64,
) -> u64 {
    match p {
        PrimType::F64 => d(f64::from_bits(a), f64::from_bits(b)).to_bits(),
        PrimType::F32 => f(f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits() as u64,
        // f32 has more than twice the precision of both 16-bit formats: the second rounding of
        // one operation changes nothing (Figueroa, 1995).
        _ => narrow(p, f(float_value(p, a) as f32, float_value(p, b) as f32)),
    }
}

fn narrow(p: PrimType, v: f32) -> u64 {
    match p {
        PrimType::F16 => f32_to_f16(v) as u64,
        _ => f32_to_bf16(v) as u64,
    }
}

fn unary(p: PrimType, a: u64, f: impl Fn(f32) -> f32, d: impl Fn(f64) -> f64) -> u64 {
    arith(p, a, 0, |x, _| f(x), |x, _| d(x))
}

fn math(p: PrimType, m: MathFn, a: u64, b: u64) -> u64 {
    arith(p, a, b, |x, y| m.eval_f32(x, y), |x, y| m.eval_f64(x, y))
}

fn select_float(p: PrimType, a: u64, b: u64, better: impl Fn(f64, f64) -> bool, min: bool) -> u64 {
    let (x, y) = (float_value(p, a), float_value(p, b));
    let (a, b) = (a & p.mask(), b & p.mask());
    if x.is_nan() {
        return b;
    }
    if y.is_nan() || better(x, y) {
        return a;
    }
    if x == y && x == 0.0 {
        // Of two zeros the negative one is smaller.
        return if min { a | b } else { a & b };
    }
    b
}

/// a · b + c with one rounding.
fn fma(p: PrimType, a: u64, b: u64, c: u64) -> u64 {
    match p {
        PrimType::F64 => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
        PrimType::F32 => f32::from_bits(a as u32)
            .mul_add(f32::from_bits(b as u32), f32::from_bits(c as u32))
            .to_bits() as u64,
        _ => {
            // The product is exact in f64; the sum is rounded to odd, so that narrowing rounds once.
            let (x, y, z) = (float_value(p, a), float_value(p, b), float_value(p, c));
            let product = x * y;
            let sum = product + z;
            let part = sum - product;
            let error = (product - (sum - part)) + (z - part);
            let odd = if error != 0.0 && error.is_finite() && sum.to_bits() & 1 == 0 {
                let up = (error > 0.0) == (sum > 0.0);
                f64::from_bits(if up { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
            } else {
                sum
            };
            float_bits(p, odd)
        }
    }
}

/// Converts a scalar (language reference, section 8.5). `None` for float to `bool` and for `unit`.
fn cast(from: PrimType, to: PrimType, a: u64) -> Option<u64> {
    if from == PrimType::Unit || to == PrimType::Unit {
        return None;
    }
    if from.is_float() {
        let x = float_value(from, a);
        return match to {
            PrimType::Bool | PrimType::U1 => None,
            PrimType::I8 => Some(x as i8 as u8 as u64),
            PrimType::I16 => Some(x as i16 as u16 as u64),
            PrimType::I32 => Some(x as i32 as u32 as u64),
            PrimType::I64 => Some(x as i64 as u64),
            PrimType::U8 => Some(x as u8 as u64),
            PrimType::U16 => Some(x as u16 as u64),
            PrimType::U32 => Some(x as u32 as u64),
            PrimType::U64 => Some(x as u64),
            PrimType::F16 | PrimType::F32 | PrimType::F64 | PrimType::Bf16 => {
                Some(float_bits(to, x))
            }
            PrimType::Unit | PrimType::I128 | PrimType::U128 => None,
        };
    }
    let v = int_value(from, a);
    match to {
        PrimType::Bool => Some((v != 0) as u64),
        PrimType::F16 => Some(i128_to_f16(v) as u64),
        PrimType::Bf16 => Some(i128_to_bf16(v) as u64),
        PrimType::F32 => Some((v as f32).to_bits() as u64),
        PrimType::F64 => Some((v as f64).to_bits()),
        _ => Some(v as u64 & to.mask()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrimType::*;

    #[test]
    fn integers_are_total() {
        assert_eq!(eval(Op::ISdiv, I32, I32, &[0x8000_0000, 0xffff_ffff]), Some(0x8000_0000));
        assert_eq!(eval(Op::ISrem, I32, I32, &[0x8000_0000, 0xffff_ffff]), Some(0));
        assert_eq!(eval(Op::IUdiv, U8, U8, &[7, 0]), Some(7));
        assert_eq!(eval(Op::ISrem, I8, I8, &[0xf9, 3]), Some(0xff));
        assert_eq!(eval(Op::IShl, U32, U32, &[1, 33]), Some(2));
        assert_eq!(eval(Op::IAshr, I16, I16, &[0x8000, 17]), Some(0xc000));
        assert_eq!(eval(Op::IRotr, U8, U8, &[1, 1]), Some(0x80));
        assert_eq!(eval(Op::IRotl, U64, U64, &[1, 64]), Some(1));
        assert_eq!(eval(Op::IClz, U16, U16, &[1]), Some(15));
        assert_eq!(eval(Op::ICtz, I64, I64, &[0]), Some(64));
        assert_eq!(eval(Op::IMulHiS, I64, I64, &[u64::MAX, 2]), Some(u64::MAX));
        assert_eq!(eval(Op::IMulHiU, U32, U32, &[0xffff_ffff, 0xffff_ffff]), Some(0xffff_fffe));
    }

    #[test]
    fn traps() {
        assert_eq!(eval(Op::IAddTrap, I32, I32, &[0x7fff_ffff, 1]), None);
        assert_eq!(eval(Op::IAddTrap, U32, U32, &[0x7fff_ffff, 1]), Some(0x8000_0000));
        assert_eq!(eval(Op::ISubTrap, U32, U32, &[0, 1]), None);
        assert_eq!(eval(Op::IMulTrap, I64, I64, &[i64::MIN as u64, u64::MAX]), None);
        assert_eq!(eval(Op::ISdivTrap, I64, I64, &[i64::MIN as u64, u64::MAX]), None);
        assert_eq!(eval(Op::ISremTrap, I64, I64, &[i64::MIN as u64, u64::MAX]), Some(0));
        assert_eq!(eval(Op::IMulOverflows, U64, U64, &[u64::MAX, 2]), Some(1));
    }

    #[test]
    fn conversions() {
        assert_eq!(eval(Op::Cast, F64, I64, &[1e20f64.to_bits()]), Some(i64::MAX as u64));
        assert_eq!(eval(Op::Cast, F32, U8, &[(-3.99f32).to_bits() as u64]), Some(0));
        assert_eq!(eval(Op::Cast, F32, I32, &[f32::NAN.to_bits() as u64]), Some(0));
        assert_eq!(eval(Op::Cast, I8, U32, &[0xfe]), Some(0xffff_fffe));
        assert_eq!(eval(Op::Cast, U8, I32, &[0xfe]), Some(0xfe));
        assert_eq!(eval(Op::Cast, I64, F32, &[16777217]), Some(16777216f32.to_bits() as u64));
        assert_eq!(eval(Op::Cast, F32, Bool, &[0]), None);
    }

    #[test]
    fn half_fma_rounds_once() {
        // 1 * (1 + 2^-10) + 2^-12 and a hair: an f16 fma must see the last bits.
        let one = 0x3c01; // 1 + 2^-10
        let tiny = 0x1000; // 2^-11, half an ulp of 1
        assert_eq!(eval(Op::FFma, F16, F16, &[one, 0x3c00, tiny]), Some(0x3c02));
        assert_eq!(eval(Op::FFma, F16, F16, &[0x3c00, 0x3c00, tiny]), Some(0x3c00));
        assert_eq!(eval(Op::FFma, F16, F16, &[0x3c00, 0x3c00, 0x1001]), Some(0x3c01));
    }

    #[test]
    fn min_max_zero_and_nan() {
        let (p0, n0, nan, one) = (0u64, 0x8000_0000, 0x7fc0_0000, 0x3f80_0000);
        assert_eq!(eval(Op::FMin, F32, F32, &[p0, n0]), Some(n0));
        assert_eq!(eval(Op::FMax, F32, F32, &[n0, p0]), Some(p0));
        assert_eq!(eval(Op::FMin, F32, F32, &[nan, one]), Some(one));
        assert_eq!(eval(Op::FMax, F32, F32, &[one, nan]), Some(one));
    }
}
