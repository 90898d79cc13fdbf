//! Pure scalar ops as Cranelift instructions, the same for host functions and kernels.
//!
//! `f16` and `bf16` values are their bits in an `i16`; arithmetic on them goes through `f32` with
//! one rounding. `bool` is an `i8` that holds 0 or 1.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::Op;
use magpie_types::PrimType;
use magpie_types::abi::{MathFn, RtFn};

use crate::helpers::Helper;

/// What the translation of an op may call.
pub(crate) trait Calls {
    /// A reference to a runtime function, valid in the function being built.
    fn rt(&mut self, func: &mut ir::Function, f: RtFn) -> ir::FuncRef;
    /// A reference to one of this crate's conversion helpers.
    fn helper(&mut self, func: &mut ir::Function, h: Helper) -> ir::FuncRef;
}

/// The Cranelift type that holds a scalar.
pub(crate) fn clif_type(p: PrimType) -> ir::Type {
    match p {
        PrimType::Unit | PrimType::Bool | PrimType::U1 | PrimType::I8 | PrimType::U8 => types::I8,
        PrimType::I16 | PrimType::U16 | PrimType::F16 | PrimType::Bf16 => types::I16,
        PrimType::I32 | PrimType::U32 => types::I32,
        PrimType::I64 | PrimType::U64 => types::I64,
        PrimType::I128 | PrimType::U128 => types::I128,
        PrimType::F32 => types::F32,
        PrimType::F64 => types::F64,
    }
}

/// A scalar constant from its bits.
pub(crate) fn constant(b: &mut FunctionBuilder, p: PrimType, bits: u64) -> ir::Value {
    match p {
        PrimType::F32 => b.ins().f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
        PrimType::F64 => b.ins().f64const(ir::immediates::Ieee64::with_bits(bits)),
        _ => {
            let ty = clif_type(p);
            let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
            b.ins().iconst(ty, (bits & mask) as i64)
        }
    }
}

/// Emits a pure scalar op. `from` is the type of operand 0 (of operand 1 for `select`), `to` the
/// result type.
pub(crate) struct Pure<'a, 'f, C: Calls> {
    pub(crate) b: &'a mut FunctionBuilder<'f>,
    pub(crate) calls: &'a mut C,
}

impl<C: Calls> Pure<'_, '_, C> {
    /// The result of `op`, or `None` when it is not a pure scalar op.
    pub(crate) fn emit(
        &mut self,
        op: Op,
        from: PrimType,
        to: PrimType,
        args: &[ir::Value],
    ) -> Option<ir::Value> {
        let a = *args.first()?;
        let second = args.get(1).copied();
        let x = second.unwrap_or(a);
        let value = match op {
            Op::IAdd => self.b.ins().iadd(a, x),
            Op::ISub => self.b.ins().isub(a, x),
            Op::IMul => self.b.ins().imul(a, x),
            Op::ISdiv => self.signed_div(from, a, x),
            Op::IUdiv => {
                let d = self.nonzero(from, x);
                self.b.ins().udiv(a, d)
            }
            Op::ISrem => self.signed_rem(from, a, x),
            Op::IUrem => {
                let d = self.nonzero(from, x);
                self.b.ins().urem(a, d)
            }
            Op::IMulHiS => self.mul_high(from, a, x, true),
            Op::IMulHiU => self.mul_high(from, a, x, false),
            Op::IAnd => self.b.ins().band(a, x),
            Op::IOr => self.b.ins().bor(a, x),
            Op::IXor => self.b.ins().bxor(a, x),
            Op::IShl => self.b.ins().ishl(a, x),
            Op::ILshr => self.b.ins().ushr(a, x),
            Op::IAshr => self.b.ins().sshr(a, x),
            Op::IRotl => self.b.ins().rotl(a, x),
            Op::IRotr => self.b.ins().rotr(a, x),
            Op::ISmin => self.pick(IntCC::SignedLessThan, a, x),
            Op::ISmax => self.pick(IntCC::SignedGreaterThan, a, x),
            Op::IUmin => self.pick(IntCC::UnsignedLessThan, a, x),
            Op::IUmax => self.pick(IntCC::UnsignedGreaterThan, a, x),
            Op::IPopcount => {
                let wide = self.widen(from, a, false);
                let n = self.b.ins().popcnt(wide);
                self.fit(n, from)
            }
            Op::IClz => {
                let wide = self.widen(from, a, false);
                let n = self.b.ins().clz(wide);
                let extra = self.b.func.dfg.value_type(wide).bits() - from.bit_width();
                let n = self.b.ins().iadd_imm_s(n, -(extra as i64));
                self.fit(n, from)
            }
            Op::ICtz => {
                let wide = self.widen(from, a, false);
                let wide = match from.bit_width() {
                    w if w < 32 => self.b.ins().bor_imm_u(wide, 1 << w),
                    _ => wide,
                };
                let n = self.b.ins().ctz(wide);
                self.fit(n, from)
            }
            Op::IAddOverflows => self.overflow(op, from, a, x).1,
            Op::ISubOverflows => self.overflow(op, from, a, x).1,
            Op::IMulOverflows => self.overflow(op, from, a, x).1,

            Op::FAdd => self.float(from, a, x, |b, p, q| b.ins().fadd(p, q)),
            Op::FSub => self.float(from, a, x, |b, p, q| b.ins().fsub(p, q)),
            Op::FMul => self.float(from, a, x, |b, p, q| b.ins().fmul(p, q)),
            Op::FDiv => self.float(from, a, x, |b, p, q| b.ins().fdiv(p, q)),
            Op::FRem => self.math(from, MathFn::Rem, a, x),
            Op::FNeg => self.sign(from, a, true),
            Op::FAbs => self.sign(from, a, false),
            Op::FMin => self.min_max(from, a, x, true),
            Op::FMax => self.min_max(from, a, x, false),
            Op::FFma => self.fma(from, a, x, *args.get(2)?),
            Op::FSqrt => self.float(from, a, a, |b, p, _| b.ins().sqrt(p)),
            Op::FFloor => self.float(from, a, a, |b, p, _| b.ins().floor(p)),
            Op::FCeil => self.float(from, a, a, |b, p, _| b.ins().ceil(p)),
            Op::FTrunc => self.float(from, a, a, |b, p, _| b.ins().trunc(p)),
            Op::FRound => self.float(from, a, a, |b, p, _| b.ins().nearest(p)),
            Op::FExp => self.math(from, MathFn::Exp, a, x),
            Op::FExp2 => self.math(from, MathFn::Exp2, a, x),
            Op::FLog => self.math(from, MathFn::Log, a, x),
            Op::FLog2 => self.math(from, MathFn::Log2, a, x),
            Op::FSin => self.math(from, MathFn::Sin, a, x),
            Op::FCos => self.math(from, MathFn::Cos, a, x),
            Op::FTan => self.math(from, MathFn::Tan, a, x),
            Op::FAsin => self.math(from, MathFn::Asin, a, x),
            Op::FAcos => self.math(from, MathFn::Acos, a, x),
            Op::FAtan => self.math(from, MathFn::Atan, a, x),
            Op::FSinh => self.math(from, MathFn::Sinh, a, x),
            Op::FCosh => self.math(from, MathFn::Cosh, a, x),
            Op::FTanh => self.math(from, MathFn::Tanh, a, x),
            Op::FAtan2 => self.math(from, MathFn::Atan2, a, x),
            Op::FPow => self.math(from, MathFn::Pow, a, x),

            Op::IcmpEq => self.icmp(from, IntCC::Equal, a, x),
            Op::IcmpNe => self.icmp(from, IntCC::NotEqual, a, x),
            Op::IcmpSlt => self.icmp(from, IntCC::SignedLessThan, a, x),
            Op::IcmpSgt => self.icmp(from, IntCC::SignedGreaterThan, a, x),
            Op::IcmpSle => self.icmp(from, IntCC::SignedLessThanOrEqual, a, x),
            Op::IcmpSge => self.icmp(from, IntCC::SignedGreaterThanOrEqual, a, x),
            Op::IcmpUlt => self.icmp(from, IntCC::UnsignedLessThan, a, x),
            Op::IcmpUgt => self.icmp(from, IntCC::UnsignedGreaterThan, a, x),
            Op::IcmpUle => self.icmp(from, IntCC::UnsignedLessThanOrEqual, a, x),
            Op::IcmpUge => self.icmp(from, IntCC::UnsignedGreaterThanOrEqual, a, x),
            Op::FcmpOeq => self.fcmp(from, FloatCC::Equal, a, x),
            Op::FcmpOne => self.fcmp(from, FloatCC::OrderedNotEqual, a, x),
            Op::FcmpOlt => self.fcmp(from, FloatCC::LessThan, a, x),
            Op::FcmpOgt => self.fcmp(from, FloatCC::GreaterThan, a, x),
            Op::FcmpOle => self.fcmp(from, FloatCC::LessThanOrEqual, a, x),
            Op::FcmpOge => self.fcmp(from, FloatCC::GreaterThanOrEqual, a, x),
            Op::FcmpOrd => self.fcmp(from, FloatCC::Ordered, a, x),
            Op::FcmpUeq => self.fcmp(from, FloatCC::UnorderedOrEqual, a, x),
            Op::FcmpUne => self.fcmp(from, FloatCC::NotEqual, a, x),
            Op::FcmpUlt => self.fcmp(from, FloatCC::UnorderedOrLessThan, a, x),
            Op::FcmpUgt => self.fcmp(from, FloatCC::UnorderedOrGreaterThan, a, x),
            Op::FcmpUle => self.fcmp(from, FloatCC::UnorderedOrLessThanOrEqual, a, x),
            Op::FcmpUge => self.fcmp(from, FloatCC::UnorderedOrGreaterThanOrEqual, a, x),
            Op::FcmpUno => self.fcmp(from, FloatCC::Unordered, a, x),

            Op::Cast => self.cast(from, to, a),
            Op::BitsCast => self.bits_cast(to, a),
            Op::Select => {
                let other = *args.get(2)?;
                self.b.ins().select(a, x, other)
            }

            magpie_mpir::trap_ops!()
            | magpie_mpir::vector_ops!()
            | magpie_mpir::struct_ops!()
            | magpie_mpir::id_ops!()
            | magpie_mpir::atomic_ops!()
            | magpie_mpir::subgroup_ops!()
            | magpie_mpir::access_ops!()
            | magpie_mpir::ownership_ops!()
            | magpie_mpir::object_ops!()
            | magpie_mpir::launch_ops!()
            | magpie_mpir::low_host_ops!()
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
            | Op::Panic => return None,
        };
        Some(value)
    }

    fn known(&self, v: ir::Value) -> Option<i64> {
        let inst = self.b.func.dfg.value_def(v).inst()?;
        match self.b.func.dfg.insts[inst] {
            ir::InstructionData::UnaryImm { opcode: ir::Opcode::Iconst, imm } => Some(imm.bits()),
            _ => None,
        }
    }

    /// The divisor, or 1 instead of 0: x / 1 = x and x % 1 = 0 are the values for a zero divisor.
    fn nonzero(&mut self, p: PrimType, d: ir::Value) -> ir::Value {
        if self.known(d).is_some_and(|c| c != 0) {
            return d;
        }
        let one = constant(self.b, p, 1);
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, d, 0);
        self.b.ins().select(zero, one, d)
    }

    fn signed_div(&mut self, p: PrimType, a: ir::Value, d: ir::Value) -> ir::Value {
        if self.known_divisor(p, d) {
            return self.b.ins().sdiv(a, d);
        }
        let safe = self.nonzero(p, d);
        let minus = self.b.ins().icmp_imm_s(IntCC::Equal, d, -1);
        let one = constant(self.b, p, 1);
        let safe = self.b.ins().select(minus, one, safe);
        let q = self.b.ins().sdiv(a, safe);
        let neg = self.b.ins().ineg(a);
        self.b.ins().select(minus, neg, q)
    }

    fn signed_rem(&mut self, p: PrimType, a: ir::Value, d: ir::Value) -> ir::Value {
        if self.known_divisor(p, d) {
            return self.b.ins().srem(a, d);
        }
        let safe = self.nonzero(p, d);
        let minus = self.b.ins().icmp_imm_s(IntCC::Equal, d, -1);
        let one = constant(self.b, p, 1);
        let safe = self.b.ins().select(minus, one, safe);
        self.b.ins().srem(a, safe)
    }

    fn known_divisor(&self, p: PrimType, d: ir::Value) -> bool {
        self.known(d).is_some_and(|c| {
            let c = magpie_mpir::eval::sign_extend(c as u64, p.bit_width());
            c != 0 && c != -1
        })
    }

    /// An integer in at least 32 bits.
    pub(crate) fn widen(&mut self, p: PrimType, v: ir::Value, signed: bool) -> ir::Value {
        if clif_type(p).bits() >= 32 {
            return v;
        }
        match signed {
            true => self.b.ins().sextend(types::I32, v),
            false => self.b.ins().uextend(types::I32, v),
        }
    }

    /// Narrows an integer of at least 32 bits to the width of `p`.
    fn fit(&mut self, v: ir::Value, p: PrimType) -> ir::Value {
        let ty = clif_type(p);
        if self.b.func.dfg.value_type(v) == ty { v } else { self.b.ins().ireduce(ty, v) }
    }

    fn pick(&mut self, cc: IntCC, a: ir::Value, x: ir::Value) -> ir::Value {
        let first = self.b.ins().icmp(cc, a, x);
        self.b.ins().select(first, a, x)
    }

    fn mul_high(&mut self, p: PrimType, a: ir::Value, x: ir::Value, signed: bool) -> ir::Value {
        let w = p.bit_width();
        if w == 64 {
            return match signed {
                true => self.b.ins().smulhi(a, x),
                false => self.b.ins().umulhi(a, x),
            };
        }
        let (a, x) = match signed {
            true => (self.b.ins().sextend(types::I64, a), self.b.ins().sextend(types::I64, x)),
            false => (self.b.ins().uextend(types::I64, a), self.b.ins().uextend(types::I64, x)),
        };
        let product = self.b.ins().imul(a, x);
        let high = self.b.ins().ushr_imm_u(product, w as i64);
        self.fit(high, p)
    }

    /// Wrapped result and whether the exact one lies outside the type. `op` is one of the
    /// overflow or trap forms of add, sub, mul.
    pub(crate) fn overflow(
        &mut self,
        op: Op,
        p: PrimType,
        a: ir::Value,
        x: ir::Value,
    ) -> (ir::Value, ir::Value) {
        let signed = p.is_signed();
        let add = matches!(op, Op::IAddOverflows | Op::IAddTrap);
        let sub = matches!(op, Op::ISubOverflows | Op::ISubTrap);
        if p.bit_width() < 32 {
            let (a, x) = (self.widen(p, a, signed), self.widen(p, x, signed));
            let wide = match (add, sub) {
                (true, _) => self.b.ins().iadd(a, x),
                (_, true) => self.b.ins().isub(a, x),
                _ => self.b.ins().imul(a, x),
            };
            let narrow = self.fit(wide, p);
            let back = self.widen(p, narrow, signed);
            let outside = self.b.ins().icmp(IntCC::NotEqual, back, wide);
            return (narrow, outside);
        }
        let ins = self.b.ins();
        match (add, sub, signed) {
            (true, _, true) => ins.sadd_overflow(a, x),
            (true, _, false) => ins.uadd_overflow(a, x),
            (_, true, true) => ins.ssub_overflow(a, x),
            (_, true, false) => ins.usub_overflow(a, x),
            (_, _, true) => ins.smul_overflow(a, x),
            (_, _, false) => ins.umul_overflow(a, x),
        }
    }

    fn icmp(&mut self, p: PrimType, cc: IntCC, a: ir::Value, x: ir::Value) -> ir::Value {
        // As a signed 1-bit number, true is -1: the order of the two values turns round.
        let cc = match (p, cc) {
            (PrimType::Bool, IntCC::SignedLessThan) => IntCC::UnsignedGreaterThan,
            (PrimType::Bool, IntCC::SignedGreaterThan) => IntCC::UnsignedLessThan,
            (PrimType::Bool, IntCC::SignedLessThanOrEqual) => IntCC::UnsignedGreaterThanOrEqual,
            (PrimType::Bool, IntCC::SignedGreaterThanOrEqual) => IntCC::UnsignedLessThanOrEqual,
            _ => cc,
        };
        self.b.ins().icmp(cc, a, x)
    }

    fn fcmp(&mut self, p: PrimType, cc: FloatCC, a: ir::Value, x: ir::Value) -> ir::Value {
        let (a, x) = (self.widened(p, a), self.widened(p, x));
        self.b.ins().fcmp(cc, a, x)
    }

    /// A float as `f32` or `f64`; exact.
    pub(crate) fn widened(&mut self, p: PrimType, v: ir::Value) -> ir::Value {
        match p {
            PrimType::Bf16 => {
                let wide = self.b.ins().uextend(types::I32, v);
                let bits = self.b.ins().ishl_imm_u(wide, 16);
                self.b.ins().bitcast(types::F32, ir::MemFlagsData::new(), bits)
            }
            PrimType::F16 => self.call_helper(Helper::F16ToF32, v),
            _ => v,
        }
    }

    /// A native float rounded once to `p`.
    fn rounded_to(&mut self, p: PrimType, v: ir::Value) -> ir::Value {
        let wide = self.b.func.dfg.value_type(v) == types::F64;
        match (p, wide) {
            (PrimType::F16, false) => self.call_helper(Helper::F32ToF16, v),
            (PrimType::F16, true) => self.call_helper(Helper::F64ToF16, v),
            (PrimType::Bf16, true) => self.call_helper(Helper::F64ToBf16, v),
            (PrimType::Bf16, false) => {
                // Nearest even on the bits; NaN keeps its upper half and becomes quiet.
                let bits = self.b.ins().bitcast(types::I32, ir::MemFlagsData::new(), v);
                let high = self.b.ins().ushr_imm_u(bits, 16);
                let odd = self.b.ins().band_imm_u(high, 1);
                let bias = self.b.ins().iadd_imm_s(odd, 0x7fff);
                let sum = self.b.ins().iadd(bits, bias);
                let rounded = self.b.ins().ushr_imm_u(sum, 16);
                let quiet = self.b.ins().bor_imm_u(high, 0x40);
                let nan = self.b.ins().fcmp(FloatCC::Unordered, v, v);
                let out = self.b.ins().select(nan, quiet, rounded);
                self.b.ins().ireduce(types::I16, out)
            }
            (PrimType::F32, true) => self.b.ins().fdemote(types::F32, v),
            (PrimType::F64, false) => self.b.ins().fpromote(types::F64, v),
            _ => v,
        }
    }

    fn float(
        &mut self,
        p: PrimType,
        a: ir::Value,
        x: ir::Value,
        f: impl Fn(&mut FunctionBuilder, ir::Value, ir::Value) -> ir::Value,
    ) -> ir::Value {
        let na = self.widened(p, a);
        let nx = if x == a { na } else { self.widened(p, x) };
        let r = f(self.b, na, nx);
        self.rounded_to(p, r)
    }

    fn sign(&mut self, p: PrimType, v: ir::Value, negate: bool) -> ir::Value {
        match (p, negate) {
            (PrimType::F32 | PrimType::F64, true) => self.b.ins().fneg(v),
            (PrimType::F32 | PrimType::F64, false) => self.b.ins().fabs(v),
            (_, true) => self.b.ins().bxor_imm_u(v, 0x8000),
            (_, false) => self.b.ins().band_imm_u(v, 0x7fff),
        }
    }

    fn min_max(&mut self, p: PrimType, a: ir::Value, x: ir::Value, min: bool) -> ir::Value {
        let (na, nx) = (self.widened(p, a), self.widened(p, x));
        // Cranelift's fmin and fmax order the zeros but let NaN win.
        let r = if min { self.b.ins().fmin(na, nx) } else { self.b.ins().fmax(na, nx) };
        let r = self.rounded_to(p, r);
        let a_nan = self.b.ins().fcmp(FloatCC::Unordered, na, na);
        let x_nan = self.b.ins().fcmp(FloatCC::Unordered, nx, nx);
        let r = self.b.ins().select(x_nan, a, r);
        self.b.ins().select(a_nan, x, r)
    }

    fn fma(&mut self, p: PrimType, a: ir::Value, x: ir::Value, c: ir::Value) -> ir::Value {
        let helper = match p {
            PrimType::F16 => Helper::F16Fma,
            PrimType::Bf16 => Helper::Bf16Fma,
            _ => return self.b.ins().fma(a, x, c),
        };
        let f = self.calls.helper(self.b.func, helper);
        let call = self.b.ins().call(f, &[a, x, c]);
        self.b.inst_results(call)[0]
    }

    fn math(&mut self, p: PrimType, m: MathFn, a: ir::Value, x: ir::Value) -> ir::Value {
        let (na, nx) = (self.widened(p, a), self.widened(p, x));
        let f = if p == PrimType::F64 { RtFn::MathF64 } else { RtFn::MathF32 };
        let f = self.calls.rt(self.b.func, f);
        let op = self.b.ins().iconst(types::I32, m as i64);
        let call = self.b.ins().call(f, &[op, na, nx]);
        let r = self.b.inst_results(call)[0];
        self.rounded_to(p, r)
    }

    fn call_helper(&mut self, h: Helper, v: ir::Value) -> ir::Value {
        let f = self.calls.helper(self.b.func, h);
        let call = self.b.ins().call(f, &[v]);
        self.b.inst_results(call)[0]
    }

    fn bits_cast(&mut self, to: PrimType, v: ir::Value) -> ir::Value {
        let ty = clif_type(to);
        if self.b.func.dfg.value_type(v) == ty {
            return v;
        }
        self.b.ins().bitcast(ty, ir::MemFlagsData::new(), v)
    }

    fn cast(&mut self, from: PrimType, to: PrimType, v: ir::Value) -> ir::Value {
        if from == to {
            return v;
        }
        match (from.is_float(), to.is_float()) {
            (true, true) => {
                let n = self.widened(from, v);
                self.rounded_to(to, n)
            }
            (true, false) => {
                let n = self.widened(from, v);
                self.float_to_int(to, n)
            }
            (false, true) => self.int_to_float(from, to, v),
            (false, false) => self.int_to_int(from, to, v),
        }
    }

    fn int_to_int(&mut self, from: PrimType, to: PrimType, v: ir::Value) -> ir::Value {
        if to == PrimType::Bool {
            return self.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0);
        }
        let (have, want) = (clif_type(from), clif_type(to));
        if have.bits() > want.bits() {
            self.b.ins().ireduce(want, v)
        } else if have == want {
            v
        } else if from.is_signed() {
            self.b.ins().sextend(want, v)
        } else {
            self.b.ins().uextend(want, v)
        }
    }

    fn int_to_float(&mut self, from: PrimType, to: PrimType, v: ir::Value) -> ir::Value {
        let signed = from.is_signed();
        let v = self.widen(from, v, signed);
        let helper = match (to, from) {
            (PrimType::Bf16, PrimType::I64) => Some(Helper::I64ToBf16),
            (PrimType::Bf16, PrimType::U64) => Some(Helper::U64ToBf16),
            _ => None,
        };
        if let Some(h) = helper {
            return self.call_helper(h, v);
        }
        // For f16 and bf16 from at most 32 bits f64 is exact; from 64 bits f16 overflows long
        // before f64 rounds.
        let through = if to == PrimType::F32 { types::F32 } else { types::F64 };
        let f = match signed {
            true => self.b.ins().fcvt_from_sint(through, v),
            false => self.b.ins().fcvt_from_uint(through, v),
        };
        self.rounded_to(to, f)
    }

    fn float_to_int(&mut self, to: PrimType, v: ir::Value) -> ir::Value {
        let w = to.bit_width();
        let through = if w > 32 { types::I64 } else { types::I32 };
        if to.is_signed() {
            let n = self.b.ins().fcvt_to_sint_sat(through, v);
            if w >= 32 {
                return n;
            }
            let (lo, hi) = (-(1i64 << (w - 1)), (1i64 << (w - 1)) - 1);
            let lo = self.b.ins().iconst(types::I32, lo);
            let hi = self.b.ins().iconst(types::I32, hi);
            let n = self.pick(IntCC::SignedGreaterThan, n, lo);
            let n = self.pick(IntCC::SignedLessThan, n, hi);
            self.fit(n, to)
        } else {
            let n = self.b.ins().fcvt_to_uint_sat(through, v);
            if w >= 32 {
                return n;
            }
            let hi = self.b.ins().iconst(types::I32, (1i64 << w) - 1);
            let n = self.pick(IntCC::UnsignedLessThan, n, hi);
            self.fit(n, to)
        }
    }
}
