//! Pure ops on vector registers of 128 bits, the same for host functions and kernels. A `bool` is a
//! component that is all ones or zero, as wide as the numbers that were compared.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, ConstantData, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::Op;
use magpie_types::PrimType;

/// The type of a register with components of a type, if there are registers of them.
pub(crate) fn register(p: PrimType) -> Option<ir::Type> {
    match p {
        PrimType::F32 => Some(types::F32X4),
        PrimType::F64 => Some(types::F64X2),
        _ if p.is_int() => register_of_bits(p.bit_width()),
        _ => None,
    }
}

/// The type of a register with integers of so many bits.
pub(crate) fn register_of_bits(bits: u32) -> Option<ir::Type> {
    match bits {
        8 => Some(types::I8X16),
        16 => Some(types::I16X8),
        32 => Some(types::I32X4),
        64 => Some(types::I64X2),
        _ => None,
    }
}

/// The same bits as another type of register.
pub(crate) fn bits_as(b: &mut FunctionBuilder, v: ir::Value, ty: ir::Type) -> ir::Value {
    if b.func.dfg.value_type(v) == ty {
        return v;
    }
    let flags = MemFlagsData::new().with_endianness(ir::Endianness::Little);
    b.ins().bitcast(ty, flags, v)
}

/// A register of these bytes.
pub(crate) fn bytes(b: &mut FunctionBuilder, ty: ir::Type, bytes: Vec<u8>) -> ir::Value {
    let constant = b.func.dfg.constants.insert(ConstantData::from(bytes));
    b.ins().vconst(ty, constant)
}

/// Component by component, one or the other.
pub(crate) fn choose(
    b: &mut FunctionBuilder,
    mask: ir::Value,
    then: ir::Value,
    other: ir::Value,
) -> ir::Value {
    let ty = b.func.dfg.value_type(then);
    let mask = bits_as(b, mask, ty);
    b.ins().bitselect(mask, then, other)
}

/// The comparison of two registers, as a mask.
pub(crate) fn compare(
    b: &mut FunctionBuilder,
    op: Op,
    x: ir::Value,
    y: ir::Value,
) -> Option<ir::Value> {
    if let Some(cc) = int_condition(op) {
        return Some(b.ins().icmp(cc, x, y));
    }
    float_condition(op).map(|cc| b.ins().fcmp(cc, x, y))
}

/// The logic of two masks of one width.
pub(crate) fn mask_op(
    b: &mut FunctionBuilder,
    op: Op,
    x: ir::Value,
    y: ir::Value,
) -> Option<ir::Value> {
    Some(match op {
        Op::IAnd => b.ins().band(x, y),
        Op::IOr => b.ins().bor(x, y),
        Op::IXor | Op::IcmpNe => b.ins().bxor(x, y),
        Op::IcmpEq => b.ins().icmp(IntCC::Equal, x, y),
        _ => return None,
    })
}

/// A shift of all components by one amount.
pub(crate) fn shift(
    b: &mut FunctionBuilder,
    op: Op,
    x: ir::Value,
    amount: ir::Value,
) -> Option<ir::Value> {
    Some(match op {
        Op::IShl => b.ins().ishl(x, amount),
        Op::ILshr => b.ins().ushr(x, amount),
        Op::IAshr => b.ins().sshr(x, amount),
        _ => return None,
    })
}

/// An op of which operands and result have one type.
pub(crate) fn arithmetic(b: &mut FunctionBuilder, op: Op, args: &[ir::Value]) -> Option<ir::Value> {
    let &x = args.first()?;
    let y = args.get(1).copied().unwrap_or(x);
    let ins = b.ins();
    Some(match op {
        Op::IAdd => ins.iadd(x, y),
        Op::ISub => ins.isub(x, y),
        Op::IMul => ins.imul(x, y),
        Op::IAnd => ins.band(x, y),
        Op::IOr => ins.bor(x, y),
        Op::IXor => ins.bxor(x, y),
        Op::ISmin => ins.smin(x, y),
        Op::ISmax => ins.smax(x, y),
        Op::IUmin => ins.umin(x, y),
        Op::IUmax => ins.umax(x, y),
        Op::FAdd => ins.fadd(x, y),
        Op::FSub => ins.fsub(x, y),
        Op::FMul => ins.fmul(x, y),
        Op::FDiv => ins.fdiv(x, y),
        Op::FNeg => ins.fneg(x),
        Op::FAbs => ins.fabs(x),
        Op::FSqrt => ins.sqrt(x),
        Op::FFloor => ins.floor(x),
        Op::FCeil => ins.ceil(x),
        Op::FTrunc => ins.trunc(x),
        Op::FRound => ins.nearest(x),
        Op::FMin | Op::FMax => {
            // Cranelift's fmin and fmax order the zeros but let NaN win.
            let r = if op == Op::FMin { ins.fmin(x, y) } else { ins.fmax(x, y) };
            let x_nan = b.ins().fcmp(FloatCC::Unordered, x, x);
            let y_nan = b.ins().fcmp(FloatCC::Unordered, y, y);
            let r = choose(b, y_nan, x, r);
            choose(b, x_nan, y, r)
        }
        Op::FFma => {
            let &z = args.get(2)?;
            ins.fma(x, y, z)
        }
        _ => return None,
    })
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
