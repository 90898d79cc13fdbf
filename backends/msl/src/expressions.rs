//! One template an op: what each pure MPIR instruction is in MSL.

use crate::arguments::Builtin;
use crate::functions::Function;
use crate::language::Msl;
use magpie_gpu::text::{Emit, Shape, Text};
use magpie_mpir::{Flags, Inst, Op};
use magpie_types::PrimType;

/// What lets the library's own geometric functions stand for the definitions.
const LOOSE: Flags = Flags(Flags::CONTRACT.0 | Flags::REASSOC.0);

/// What lets `fmin` and `fmax` stand for the definitions.
const PLAIN: Flags = Flags(Flags::NNAN.0 | Flags::NSZ.0);

impl Msl<'_> {
    /// Writes the expression of a pure instruction.
    pub(crate) fn write_expression(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let inst = *text.f.inst(i);
        match inst.op {
            // In unsigned integers, which wrap.
            Op::IAdd => self.wrapping(text, i, ["$0 + $1", "$T($U(#0) + $U(#1))"]),
            Op::ISub => self.wrapping(text, i, ["$0 - $1", "$T($U(#0) - $U(#1))"]),
            Op::IMul => self.wrapping(text, i, ["$0 * $1", "$T($U(#0) * $U(#1))"]),
            Op::IShl => self.wrapping(text, i, ["$0 << $1", "$T($U(#0) << $1)"]),
            Op::ILshr => self.wrapping(text, i, ["$0 >> $1", "$T($U(#0) >> $1)"]),
            Op::IAshr => self.signed(text, i, ["$0 >> $1", "$T($S(#0) >> $1)"]),
            Op::ISdiv => self.signed(text, i, ["$0 / $1", "$T($S(#0) / $S(#1))"]),
            Op::IUdiv => self.wrapping(text, i, ["$0 / $1", "$T($U(#0) / $U(#1))"]),
            Op::IUrem => self.wrapping(text, i, ["$0 % $1", "$T($U(#0) % $U(#1))"]),
            Op::IMulHiS => self.signed(text, i, ["mulhi(#0, #1)", "$T(mulhi($S(#0), $S(#1)))"]),
            Op::IMulHiU => self.wrapping(text, i, ["mulhi(#0, #1)", "$T(mulhi($U(#0), $U(#1)))"]),
            Op::ISmin => self.signed(text, i, ["min(#0, #1)", "$T(min($S(#0), $S(#1)))"]),
            Op::ISmax => self.signed(text, i, ["max(#0, #1)", "$T(max($S(#0), $S(#1)))"]),
            Op::IUmin => self.wrapping(text, i, ["min(#0, #1)", "$T(min($U(#0), $U(#1)))"]),
            Op::IUmax => self.wrapping(text, i, ["max(#0, #1)", "$T(max($U(#0), $U(#1)))"]),
            Op::IAnd => text.expand(self, i, "$0 & $1"),
            Op::IOr => text.expand(self, i, "$0 | $1"),
            // Bools become int on the way.
            Op::IXor if is_bool(text, i)? => text.expand(self, i, "$0 != $1"),
            Op::IXor => text.expand(self, i, "$0 ^ $1"),
            Op::IPopcount => text.expand(self, i, "popcount(#0)"),
            Op::IClz => text.expand(self, i, "clz(#0)"),
            Op::ICtz => text.expand(self, i, "ctz(#0)"),

            Op::IcmpEq => self.compare(text, i, "$0 == $1"),
            Op::IcmpNe => self.compare(text, i, "$0 != $1"),
            // As a signed number, true is -1.
            Op::IcmpSlt if is_bool(text, i)? => self.compare(text, i, "$0 > $1"),
            Op::IcmpSgt if is_bool(text, i)? => self.compare(text, i, "$0 < $1"),
            Op::IcmpSle if is_bool(text, i)? => self.compare(text, i, "$0 >= $1"),
            Op::IcmpSge if is_bool(text, i)? => self.compare(text, i, "$0 <= $1"),
            Op::IcmpSlt => self.compare_signed(text, i, ["$0 < $1", "%S(#0) < %S(#1)"]),
            Op::IcmpSgt => self.compare_signed(text, i, ["$0 > $1", "%S(#0) > %S(#1)"]),
            Op::IcmpSle => self.compare_signed(text, i, ["$0 <= $1", "%S(#0) <= %S(#1)"]),
            Op::IcmpSge => self.compare_signed(text, i, ["$0 >= $1", "%S(#0) >= %S(#1)"]),
            Op::IcmpUlt => self.compare_unsigned(text, i, ["$0 < $1", "%U(#0) < %U(#1)"]),
            Op::IcmpUgt => self.compare_unsigned(text, i, ["$0 > $1", "%U(#0) > %U(#1)"]),
            Op::IcmpUle => self.compare_unsigned(text, i, ["$0 <= $1", "%U(#0) <= %U(#1)"]),
            Op::IcmpUge => self.compare_unsigned(text, i, ["$0 >= $1", "%U(#0) >= %U(#1)"]),
            Op::FcmpOeq => self.compare(text, i, "$0 == $1"),
            Op::FcmpOlt => self.compare(text, i, "$0 < $1"),
            Op::FcmpOgt => self.compare(text, i, "$0 > $1"),
            Op::FcmpOle => self.compare(text, i, "$0 <= $1"),
            Op::FcmpOge => self.compare(text, i, "$0 >= $1"),
            Op::FcmpUne => self.compare(text, i, "$0 != $1"),
            Op::FcmpOrd => self.compare(text, i, "isordered(#0, #1)"),
            Op::FcmpUno => self.compare(text, i, "isunordered(#0, #1)"),
            Op::FcmpUlt => self.compare(text, i, "!($0 >= $1)"),
            Op::FcmpUgt => self.compare(text, i, "!($0 <= $1)"),
            Op::FcmpUle => self.compare(text, i, "!($0 > $1)"),
            Op::FcmpUge => self.compare(text, i, "!($0 < $1)"),
            Op::FcmpOne => {
                self.functions.call(Function::Differ);
                self.compare(text, i, "magpie_differ(#0, #1)")
            }
            Op::FcmpUeq => {
                self.functions.call(Function::Differ);
                self.compare(text, i, "!magpie_differ(#0, #1)")
            }

            Op::FAdd => text.expand(self, i, "$0 + $1"),
            Op::FSub => text.expand(self, i, "$0 - $1"),
            Op::FMul => text.expand(self, i, "$0 * $1"),
            Op::FDiv if inst.flags.contains(Flags::AFN) => self.fast(text, i, "divide(#0, #1)"),
            Op::FDiv => text.expand(self, i, "$0 / $1"),
            Op::FNeg => text.expand(self, i, "-$0"),
            Op::FAbs => text.expand(self, i, "fabs(#0)"),
            Op::FFma => text.expand(self, i, "fma(#0, #1, #2)"),
            Op::FFloor => text.expand(self, i, "floor(#0)"),
            Op::FCeil => text.expand(self, i, "ceil(#0)"),
            Op::FTrunc => text.expand(self, i, "trunc(#0)"),
            Op::FRound => text.expand(self, i, "rint(#0)"),
            Op::FMin if inst.flags.contains(PLAIN) => text.expand(self, i, "fmin(#0, #1)"),
            Op::FMax if inst.flags.contains(PLAIN) => text.expand(self, i, "fmax(#0, #1)"),
            Op::FMin => {
                self.functions.call(Function::Min);
                text.expand(self, i, "magpie_min<$U>(#0, #1)")
            }
            Op::FMax => {
                self.functions.call(Function::Max);
                text.expand(self, i, "magpie_max<$U>(#0, #1)")
            }
            Op::FSqrt => self.math(text, i, "sqrt"),
            Op::FExp => self.math(text, i, "exp"),
            Op::FExp2 => self.math(text, i, "exp2"),
            Op::FLog => self.math(text, i, "log"),
            Op::FLog2 => self.math(text, i, "log2"),
            Op::FSin => self.math(text, i, "sin"),
            Op::FCos => self.math(text, i, "cos"),
            Op::FTan => self.math(text, i, "tan"),
            Op::FAsin => self.math(text, i, "asin"),
            Op::FAcos => self.math(text, i, "acos"),
            Op::FAtan => self.math(text, i, "atan"),
            Op::FSinh => self.math(text, i, "sinh"),
            Op::FCosh => self.math(text, i, "cosh"),
            Op::FTanh => self.math(text, i, "tanh"),
            Op::FAtan2 => self.math(text, i, "atan2"),
            Op::FPow => self.math(text, i, "pow"),

            Op::Cast => self.cast(text, i),
            Op::BitsCast => text.expand(self, i, "as_type<$T>(#0)"),
            Op::Select => match text.shape_of_result(i)?.lanes {
                1 => text.expand(self, i, "$0 ? $1 : $2"),
                // The value for `false` comes first.
                _ => self.select_lanes(text, i),
            },

            Op::VecNew => self.vec_new(text, i),
            Op::VecSplat => text.expand(self, i, "$T(#0)"),
            Op::VecExtract => text.expand(self, i, &format!("$0[{}]", inst.imm_lo().min(3))),
            Op::VecInsert => {
                self.functions.call(Function::Insert);
                let template = format!("magpie_insert(#0, {}u, #1)", inst.imm_lo().min(3));
                text.expand(self, i, &template)
            }
            Op::VecAny => text.expand(self, i, "any(#0)"),
            Op::VecAll => text.expand(self, i, "all(#0)"),
            Op::VecDot => self.geometry(text, i, "dot", Function::Dot),
            Op::VecCross => self.geometry(text, i, "cross", Function::Cross),
            Op::VecLength => self.geometry(text, i, "length", Function::Length),
            Op::VecNormalize => self.geometry(text, i, "normalize", Function::Normalize),
            Op::VecReflect => self.geometry(text, i, "reflect", Function::Reflect),
            Op::VecMix => self.geometry(text, i, "mix", Function::Mix),

            Op::LeafGet => text.leaf_get(self, i),
            Op::GpuThreadId => self.write_id(text, i, Builtin::ThreadId),
            Op::GpuWorkgroupId => self.write_id(text, i, Builtin::WorkgroupId),
            Op::GpuWorkgroupSize => self.write_id(text, i, Builtin::WorkgroupSize),
            Op::GpuGlobalId => self.write_id(text, i, Builtin::GlobalId),
            Op::GpuNumWorkgroups => self.write_id(text, i, Builtin::NumWorkgroups),
            Op::GpuBufferLen => self.write_buffer_len(text, i),
            Op::GpuSubgroupSize => self.write_builtin(text, Builtin::SimdWidth),
            Op::GpuSubgroupLaneId => self.write_builtin(text, Builtin::LaneId),

            // What `legalize`, `lower_structs` and `inline_calls` remove.
            Op::ISrem
            | Op::IRotl
            | Op::IRotr
            | Op::IAddOverflows
            | Op::ISubOverflows
            | Op::IMulOverflows
            | Op::FRem
            | Op::Phi
            | Op::StructNew
            | Op::StructGet
            | Op::Call => Err(text.broken_at(i, "must be lowered before emission")),
            Op::GpuSubgroupShuffle
            | Op::GpuSubgroupShuffleDown
            | Op::GpuSubgroupShuffleUp
            | Op::GpuSubgroupShuffleXor
            | Op::GpuSubgroupBroadcast
            | Op::GpuSubgroupSum
            | Op::GpuSubgroupMin
            | Op::GpuSubgroupMax
            | Op::GpuSubgroupPrefixSum
            | Op::GpuSubgroupAny
            | Op::GpuSubgroupAll
            | Op::GpuSubgroupBallot
            | Op::GpuMetalSimdShuffle
            | Op::GpuMetalSimdSum
            | Op::GpuMetalSimdPrefixSum
            | magpie_mpir::atomic_ops!()
            | magpie_mpir::access_ops!()
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuBarrier
            | Op::GpuPrint => Err(text.broken_at(i, "is no expression")),
            magpie_mpir::host_code_ops!() => Err(text.broken_at(i, "host code in a kernel")),
        }
    }

    /// An operation on unsigned integers: as it stands, or with conversions there and back.
    fn wrapping(&mut self, text: &mut Text<'_>, i: Inst, forms: [&str; 2]) -> Emit {
        let converts = text.shape_of_result(i)?.prim.is_signed();
        text.expand(self, i, forms[converts as usize])
    }

    /// The same for signed integers.
    fn signed(&mut self, text: &mut Text<'_>, i: Inst, forms: [&str; 2]) -> Emit {
        let converts = !text.shape_of_result(i)?.prim.is_signed();
        text.expand(self, i, forms[converts as usize])
    }

    /// A comparison. Of vectors it is made a vector of bools in so many words.
    fn compare(&mut self, text: &mut Text<'_>, i: Inst, template: &str) -> Emit {
        match text.shape_of_result(i)?.lanes {
            1 => text.expand(self, i, template),
            _ => text.expand(self, i, &format!("$T({template})")),
        }
    }

    fn compare_signed(&mut self, text: &mut Text<'_>, i: Inst, forms: [&str; 2]) -> Emit {
        let converts = !text.shape_of_operand(i, 0)?.prim.is_signed();
        self.compare(text, i, forms[converts as usize])
    }

    fn compare_unsigned(&mut self, text: &mut Text<'_>, i: Inst, forms: [&str; 2]) -> Emit {
        let converts = text.shape_of_operand(i, 0)?.prim.is_signed();
        self.compare(text, i, forms[converts as usize])
    }

    /// Conversions of numbers and bools. Conversions from float to integer come here legalised: the
    /// value lies inside the result type.
    fn cast(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let (from, to) = (text.shape_of_operand(i, 0)?, text.shape_of_result(i)?);
        match from == to {
            true => text.expand(self, i, "$0"),
            false => text.expand(self, i, "$T(#0)"),
        }
    }

    /// A function of the library that exists for float in an accurate and a fast form. Half goes
    /// through float.
    fn math(&mut self, text: &mut Text<'_>, i: Inst, name: &str) -> Emit {
        let shape = text.shape_of_operand(i, 0)?;
        let is_fast = text.f.inst(i).flags.contains(Flags::AFN);
        let form = if is_fast { "fast" } else { "precise" };
        let single = crate::types::type_name(shape.of(PrimType::F32));
        let template = match (text.f.args(i).len(), shape.prim) {
            (1, PrimType::F32) => format!("{form}::{name}(#0)"),
            (_, PrimType::F32) => format!("{form}::{name}(#0, #1)"),
            (1, _) => format!("$T({form}::{name}({single}(#0)))"),
            _ => format!("$T({form}::{name}({single}(#0), {single}(#1)))"),
        };
        text.expand(self, i, &template)
    }

    /// A function in its fast form, which half does not need.
    fn fast(&mut self, text: &mut Text<'_>, i: Inst, call: &str) -> Emit {
        match text.shape_of_result(i)?.prim {
            PrimType::F32 => text.expand(self, i, &format!("fast::{call}")),
            _ => text.expand(self, i, call),
        }
    }

    fn select_lanes(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        match text.shape_of_operand(i, 0)?.lanes {
            1 => text.expand(self, i, "$0 ? $1 : $2"),
            _ => text.expand(self, i, "select(#2, #1, #0)"),
        }
    }

    fn vec_new(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let template = match text.f.args(i).len() {
            2 => "$T(#0, #1)",
            3 => "$T(#0, #1, #2)",
            4 => "$T(#0, #1, #2, #3)",
            _ => return Err(text.broken_at(i, "operands are missing")),
        };
        text.expand(self, i, template)
    }

    /// A geometric function: the library's when the flags allow it, else ours, which follows the
    /// definition.
    fn geometry(&mut self, text: &mut Text<'_>, i: Inst, loose: &str, function: Function) -> Emit {
        let shape = text.shape_of_operand(i, 0)?;
        let operands = match text.f.args(i).len() {
            1 => "#0",
            2 => "#0, #1",
            _ => "#0, #1, #2",
        };
        if text.f.inst(i).flags.contains(LOOSE) {
            return text.expand(self, i, &format!("{loose}({operands})"));
        }
        self.functions.call(function);
        let lane = crate::types::type_name(Shape::one(shape.prim));
        let template = format!("{}<{}, {lane}>({operands})", function.name(), shape.lanes);
        text.expand(self, i, &template)
    }
}

fn is_bool(text: &Text<'_>, i: Inst) -> Emit<bool> {
    Ok(text.shape_of_operand(i, 0)?.prim == PrimType::Bool)
}
