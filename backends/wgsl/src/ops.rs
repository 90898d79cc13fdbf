//! One arm an op: what each MPIR instruction is in WGSL.

use crate::functions::Function;
use crate::interface::Builtin;
use crate::language::Wgsl;
use crate::types::Scalar;
use magpie_gpu::text::{Emit, Shape, Text, common_spelling};
use magpie_mpir::{Flags, Inst, Op};
use magpie_types::PrimType;
use magpie_types::kernel::DeviceFeatures;
use std::fmt::Write;

/// What lets a minimum be the device's own.
const ANY_EXTREMUM: Flags = Flags(Flags::NNAN.0 | Flags::NSZ.0);

impl Wgsl {
    /// Writes the expression of a pure instruction.
    pub(crate) fn write_expression(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let inst = *text.f.inst(i);
        match inst.op {
            Op::IAdd => text.expand(self, i, "$0 + $1"),
            Op::ISub => text.expand(self, i, "$0 - $1"),
            Op::IMul => text.expand(self, i, "$0 * $1"),
            Op::ISdiv => self.signed(text, i, "$0 / $1", "$T($S(#0) / $S(#1))"),
            Op::IUdiv => self.unsigned(text, i, "$0 / $1", "$T($U(#0) / $U(#1))"),
            Op::IUrem => self.unsigned(text, i, "$0 % $1", "$T($U(#0) % $U(#1))"),
            Op::IMulHiS => {
                let name = self.functions.name(Function::MulHighS, Shape::one(PrimType::I32));
                let natural = format!("{name}(#0, #1)");
                self.signed(text, i, &natural, &format!("$T({name}($S(#0), $S(#1)))"))
            }
            Op::IMulHiU => {
                let name = self.functions.name(Function::MulHighU, Shape::U32);
                let natural = format!("{name}(#0, #1)");
                self.unsigned(text, i, &natural, &format!("$T({name}($U(#0), $U(#1)))"))
            }
            Op::IXor if text.shape_of_result(i)?.prim == PrimType::Bool => {
                text.expand(self, i, "$0 != $1")
            }
            Op::IAnd | Op::IOr | Op::IXor => self.common(text, i),
            Op::IShl => self.unsigned(text, i, "$0 << $1", "$0 << $U(#1)"),
            Op::ILshr => self.unsigned(text, i, "$0 >> $1", "$T($U(#0) >> $U(#1))"),
            Op::IAshr => self.signed(text, i, "$0 >> $U(#1)", "$T($S(#0) >> $U(#1))"),
            Op::ISmin => self.signed(text, i, "min(#0, #1)", "$T(min($S(#0), $S(#1)))"),
            Op::ISmax => self.signed(text, i, "max(#0, #1)", "$T(max($S(#0), $S(#1)))"),
            Op::IUmin => self.unsigned(text, i, "min(#0, #1)", "$T(min($U(#0), $U(#1)))"),
            Op::IUmax => self.unsigned(text, i, "max(#0, #1)", "$T(max($U(#0), $U(#1)))"),
            Op::IPopcount => text.expand(self, i, "countOneBits(#0)"),
            Op::IClz => text.expand(self, i, "countLeadingZeros(#0)"),
            Op::ICtz => text.expand(self, i, "countTrailingZeros(#0)"),

            Op::FAdd => self.float_binary(text, i, " + "),
            Op::FSub => self.float_binary(text, i, " - "),
            Op::FMul => self.float_binary(text, i, " * "),
            // What is left of these may have the accuracy of WGSL.
            Op::FDiv => text.expand(self, i, "$0 / $1"),
            Op::FFma => text.expand(self, i, "fma(#0, #1, #2)"),
            Op::FSqrt | Op::FNeg | Op::FAbs | Op::FFloor | Op::FCeil | Op::FTrunc => {
                self.common(text, i)
            }
            Op::FRound => text.expand(self, i, "round(#0)"),
            Op::FMin if inst.flags.contains(ANY_EXTREMUM) => text.expand(self, i, "min(#0, #1)"),
            Op::FMax if inst.flags.contains(ANY_EXTREMUM) => text.expand(self, i, "max(#0, #1)"),
            Op::FMin => self.call(text, i, Function::Min),
            Op::FMax => self.call(text, i, Function::Max),
            Op::FExp
            | Op::FExp2
            | Op::FLog
            | Op::FLog2
            | Op::FSin
            | Op::FCos
            | Op::FTan
            | Op::FAsin
            | Op::FAcos
            | Op::FAtan
            | Op::FSinh
            | Op::FCosh
            | Op::FTanh => self.math(text, i),
            Op::FPow => self.math_call(text, i, Function::Pow),
            Op::FAtan2 => self.math_call(text, i, Function::Atan2),

            Op::IcmpEq | Op::IcmpNe => self.common(text, i),
            // As a signed number, true is -1.
            Op::IcmpSlt => {
                self.signed_order(text, i, "$0 < $1", "%S(#0) < %S(#1)", "%U(#0) > %U(#1)")
            }
            Op::IcmpSgt => {
                self.signed_order(text, i, "$0 > $1", "%S(#0) > %S(#1)", "%U(#0) < %U(#1)")
            }
            Op::IcmpSle => {
                self.signed_order(text, i, "$0 <= $1", "%S(#0) <= %S(#1)", "%U(#0) >= %U(#1)")
            }
            Op::IcmpSge => {
                self.signed_order(text, i, "$0 >= $1", "%S(#0) >= %S(#1)", "%U(#0) <= %U(#1)")
            }
            Op::IcmpUlt => self.unsigned(text, i, "$0 < $1", "%U(#0) < %U(#1)"),
            Op::IcmpUgt => self.unsigned(text, i, "$0 > $1", "%U(#0) > %U(#1)"),
            Op::IcmpUle => self.unsigned(text, i, "$0 <= $1", "%U(#0) <= %U(#1)"),
            Op::IcmpUge => self.unsigned(text, i, "$0 >= $1", "%U(#0) >= %U(#1)"),
            Op::FcmpOeq | Op::FcmpOle | Op::FcmpOge if is_reflexive(text, i) => {
                self.ordered(text, i)
            }
            Op::FcmpUne | Op::FcmpUlt | Op::FcmpUgt if is_reflexive(text, i) => {
                self.unordered(text, i)
            }
            Op::FcmpOeq | Op::FcmpOlt | Op::FcmpOgt | Op::FcmpOle | Op::FcmpOge => {
                self.common(text, i)
            }
            // naga's `!=` is false for NaN.
            Op::FcmpUne => self.call(text, i, Function::UnorderedNotEqual),

            Op::FcmpOne => self.call(text, i, Function::OrderedNotEqual),
            Op::FcmpOrd => self.ordered(text, i),
            Op::FcmpUno => self.unordered(text, i),
            Op::FcmpUeq => self.call(text, i, Function::UnorderedEqual),
            Op::FcmpUlt => self.call(text, i, Function::UnorderedLess),
            Op::FcmpUle => self.call(text, i, Function::UnorderedLessEqual),
            Op::FcmpUgt => self.call_swapped(text, i, Function::UnorderedLess),
            Op::FcmpUge => self.call_swapped(text, i, Function::UnorderedLessEqual),

            Op::Cast => self.cast(text, i),
            Op::BitsCast => self.bit_cast(text, i),
            Op::Select => self.common(text, i),

            Op::VecNew => self.vec_new(text, i),
            Op::VecSplat | Op::VecAny | Op::VecAll => self.common(text, i),
            Op::VecExtract => {
                let lane = inst.imm_lo().min(3) as usize;
                text.expand(self, i, ["$0.x", "$0.y", "$0.z", "$0.w"][lane])
            }
            Op::VecInsert => self.vec_insert(text, i),
            Op::VecDot if !text.shape_of_operand(i, 0)?.prim.is_float() => {
                text.expand(self, i, "dot(#0, #1)")
            }
            Op::VecDot => self.geometric(text, i, Function::Dot, "dot(#0, #1)"),
            Op::VecCross => self.geometric(text, i, Function::Cross, "cross(#0, #1)"),
            Op::VecReflect => self.geometric(text, i, Function::Reflect, "reflect(#0, #1)"),
            Op::VecMix => self.geometric(text, i, Function::Mix, "mix(#0, #1, #2)"),
            Op::VecLength => text.expand(self, i, "length(#0)"),
            Op::VecNormalize => text.expand(self, i, "normalize(#0)"),

            Op::LeafGet => text.leaf_get(self, i),
            Op::GpuThreadId => self.id(text, i, Builtin::LocalId),
            Op::GpuWorkgroupId => self.id(text, i, Builtin::WorkgroupId),
            Op::GpuGlobalId => self.id(text, i, Builtin::GlobalId),
            Op::GpuNumWorkgroups => self.id(text, i, Builtin::NumWorkgroups),
            Op::GpuWorkgroupSize => {
                let size = text.layout.workgroup[inst.dim().min(2) as usize];
                let _ = write!(text.out, "{size}u");
                Ok(())
            }
            Op::GpuBufferLen => self.write_length(text, i),
            Op::GpuSubgroupSize => self.subgroup_builtin(text, Builtin::SubgroupSize),
            Op::GpuSubgroupLaneId => self.subgroup_builtin(text, Builtin::SubgroupLane),

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
            | Op::StructGet => Err(text.broken_at(i, "must be lowered before emission")),

            // Statements.
            magpie_mpir::access_ops!()
            | magpie_mpir::atomic_ops!()
            | magpie_mpir::subgroup_ops!()
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuBarrier
            | Op::GpuPrint
            | Op::Call => Err(text.broken_at(i, "an effect inside an expression")),

            magpie_mpir::host_code_ops!() => Err(text.broken_at(i, "host code in a kernel")),
        }
    }

    /// Writes an instruction that does more than compute.
    pub(crate) fn write_statement(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let inst = *text.f.inst(i);
        match inst.op {
            Op::GpuBufferLoad => self.load(text, i, 0),
            Op::GpuBufferStore => self.store(text, i, 0),
            Op::GpuLeafLoad => self.load(text, i, inst.imm_lo()),
            Op::GpuLeafStore => self.store(text, i, inst.imm_lo()),
            // Declared in front of the body.
            Op::GpuShared | Op::GpuLocal => Ok(()),
            Op::GpuBarrier => {
                if text.layout.buffers().any(|b| b.writes) {
                    text.line("storageBarrier();");
                }
                text.line("workgroupBarrier();");
                Ok(())
            }

            Op::GpuAtomicAdd => self.atomic_sum(text, i, "atomicAdd", '+'),
            Op::GpuAtomicSub => self.atomic_sum(text, i, "atomicSub", '-'),
            Op::GpuAtomicMin => self.atomic_extremum(text, i, "atomicMin", Function::Min),
            Op::GpuAtomicMax => self.atomic_extremum(text, i, "atomicMax", Function::Max),
            Op::GpuAtomicAnd => self.atomic_bits(text, i, "atomicAnd"),
            Op::GpuAtomicOr => self.atomic_bits(text, i, "atomicOr"),
            Op::GpuAtomicXor => self.atomic_bits(text, i, "atomicXor"),
            Op::GpuAtomicExchange => self.atomic_bits(text, i, "atomicExchange"),
            Op::GpuAtomicCas => self.atomic_cas(text, i),

            // A broadcast is a shuffle: its lane need not be constant.
            Op::GpuSubgroupShuffle | Op::GpuSubgroupBroadcast => {
                self.subgroup(text, i, "subgroupShuffle")
            }
            Op::GpuSubgroupShuffleXor => self.subgroup(text, i, "subgroupShuffleXor"),
            Op::GpuSubgroupShuffleUp => self.subgroup(text, i, "subgroupShuffleUp"),
            Op::GpuSubgroupShuffleDown => self.subgroup(text, i, "subgroupShuffleDown"),
            Op::GpuSubgroupSum => self.subgroup(text, i, "subgroupAdd"),
            Op::GpuSubgroupPrefixSum => self.subgroup(text, i, "subgroupExclusiveAdd"),
            Op::GpuSubgroupMin => self.subgroup(text, i, "subgroupMin"),
            Op::GpuSubgroupMax => self.subgroup(text, i, "subgroupMax"),
            Op::GpuSubgroupAny => self.subgroup(text, i, "subgroupAny"),
            Op::GpuSubgroupAll => self.subgroup(text, i, "subgroupAll"),
            Op::GpuSubgroupBallot => self.subgroup_ballot(text, i),

            // What `available` refuses.
            Op::GpuPrint
            | Op::Call
            | Op::GpuMetalSimdShuffle
            | Op::GpuMetalSimdSum
            | Op::GpuMetalSimdPrefixSum => {
                Err(text.broken_at(i, "must be refused before emission"))
            }

            Op::GpuSubgroupSize | Op::GpuSubgroupLaneId | Op::GpuBufferLen => {
                Err(text.broken_at(i, "a value as a statement"))
            }
            magpie_mpir::integer_ops!()
            | magpie_mpir::float_ops!()
            | magpie_mpir::icmp_ops!()
            | magpie_mpir::fcmp_ops!()
            | magpie_mpir::vector_ops!()
            | magpie_mpir::struct_ops!()
            | magpie_mpir::id_ops!()
            | Op::Cast
            | Op::BitsCast
            | Op::Select
            | Op::Phi => Err(text.broken_at(i, "a value as a statement")),

            magpie_mpir::host_code_ops!() => Err(text.broken_at(i, "host code in a kernel")),
        }
    }

    /// As MSL writes it too.
    fn common(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        match common_spelling(text.f.inst(i).op) {
            Some(template) => text.expand(self, i, template),
            None => Err(text.broken_at(i, "no spelling")),
        }
    }

    // ----- integers -----

    /// An op on signed integers: as it stands when the operands are, else by `converted`.
    fn signed(&mut self, text: &mut Text<'_>, i: Inst, natural: &str, converted: &str) -> Emit {
        let is_natural = Scalar::of(text.shape_of_operand(i, 0)?.prim) == Scalar::I32;
        text.expand(self, i, if is_natural { natural } else { converted })
    }

    /// The same for unsigned integers.
    fn unsigned(&mut self, text: &mut Text<'_>, i: Inst, natural: &str, converted: &str) -> Emit {
        let is_natural = Scalar::of(text.shape_of_operand(i, 0)?.prim) == Scalar::U32;
        text.expand(self, i, if is_natural { natural } else { converted })
    }

    /// The order of signed integers, and of bools by `bools` as the numbers 0 and 1.
    fn signed_order(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        natural: &str,
        converted: &str,
        bools: &str,
    ) -> Emit {
        if text.shape_of_operand(i, 0)?.prim != PrimType::Bool {
            return self.signed(text, i, natural, converted);
        }
        text.expand(self, i, bools)
    }

    // ----- floats -----

    /// A call of a function of the module with the operands.
    fn call(&mut self, text: &mut Text<'_>, i: Inst, function: Function) -> Emit {
        let shape = text.shape_of_operand(i, 0)?;
        self.open_call(text, function, shape);
        text.expand(self, i, "#0, #1)")
    }

    fn call_swapped(&mut self, text: &mut Text<'_>, i: Inst, function: Function) -> Emit {
        let shape = text.shape_of_operand(i, 0)?;
        self.open_call(text, function, shape);
        text.expand(self, i, "#1, #0)")
    }

    /// Whether neither operand is NaN.
    fn ordered(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let shape = text.shape_of_operand(i, 0)?;
        text.out.push('!');
        self.open_call(text, Function::IsNan, shape);
        if is_reflexive(text, i) {
            return text.expand(self, i, "#0)");
        }
        text.expand(self, i, "#0) & !")?;
        self.open_call(text, Function::IsNan, shape);
        text.expand(self, i, "#1)")
    }

    /// Whether either operand is NaN.
    fn unordered(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let shape = text.shape_of_operand(i, 0)?;
        self.open_call(text, Function::IsNan, shape);
        if is_reflexive(text, i) {
            return text.expand(self, i, "#0)");
        }
        text.expand(self, i, "#0) | ")?;
        self.open_call(text, Function::IsNan, shape);
        text.expand(self, i, "#1)")
    }

    /// A function of which WGSL promises an accuracy only; f16 goes through f32.
    fn math(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let shape = text.shape_of_result(i)?;
        if shape.prim != PrimType::F16 {
            return self.common(text, i);
        }
        let Some(template) = common_spelling(text.f.inst(i).op) else {
            return Err(text.broken_at(i, "no spelling"));
        };
        let single = self::single(shape);
        text.expand(self, i, &format!("$T({})", template.replace("#0", &format!("{single}(#0)"))))
    }

    fn math_call(&mut self, text: &mut Text<'_>, i: Inst, function: Function) -> Emit {
        let shape = text.shape_of_result(i)?;
        let name = self.functions.name(function, shape.of(PrimType::F32));
        let template = match shape.prim {
            PrimType::F16 => {
                let single = self::single(shape);
                format!("$T({name}({single}(#0), {single}(#1)))")
            }
            _ => format!("{name}(#0, #1)"),
        };
        text.expand(self, i, &template)
    }

    // ----- launch -----

    fn id(&mut self, text: &mut Text<'_>, i: Inst, builtin: Builtin) -> Emit {
        let dim = text.f.inst(i).dim().min(2) as usize;
        let name = self.interface.builtin(builtin);
        let _ = write!(text.out, "{name}.{}", ["x", "y", "z"][dim]);
        Ok(())
    }

    // ----- subgroups -----

    fn subgroup_builtin(&mut self, text: &mut Text<'_>, builtin: Builtin) -> Emit {
        self.needs |= DeviceFeatures::SUBGROUP;
        text.out.push_str(self.interface.builtin(builtin));
        Ok(())
    }

    /// The first word of a ballot.
    fn subgroup_ballot(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        self.needs |= DeviceFeatures::SUBGROUP;
        text.open_result(self, i)?;
        text.expand(self, i, "subgroupBallot(#0).x")?;
        text.end_statement();
        Ok(())
    }

    /// A subgroup operation on operand 0, and on a lane when there is operand 1.
    fn subgroup(&mut self, text: &mut Text<'_>, i: Inst, function: &str) -> Emit {
        self.needs |= DeviceFeatures::SUBGROUP;
        let is_vote = matches!(text.f.inst(i).op, Op::GpuSubgroupAny | Op::GpuSubgroupAll);
        let is_bool = text.shape_of_operand(i, 0)?.prim == PrimType::Bool && !is_vote;
        let value = if is_bool { "%U(#0)" } else { "#0" };
        let lane = if text.f.args(i).len() > 1 { ", u32(#1)" } else { "" };
        let back = if is_bool { " != %U()" } else { "" };
        text.open_result(self, i)?;
        text.expand(self, i, &format!("{function}({value}{lane}){back}"))?;
        text.end_statement();
        Ok(())
    }
}

/// Whether both operands are the same value.
fn is_reflexive(text: &Text<'_>, i: Inst) -> bool {
    let args = text.f.args(i);
    args.len() > 1 && args[0] == args[1]
}

/// The f32 type with as many lanes.
fn single(shape: Shape) -> &'static str {
    crate::types::type_name(shape.of(PrimType::F32))
}
