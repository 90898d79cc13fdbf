//! One arm an op: what each MPIR instruction is in SPIR-V.

mod atomic;
mod compare;
mod convert;
mod float;
mod int;
mod math;
mod subgroup;
mod vector;

use crate::emitter::{Emit, Emitter};
use magpie_mpir::{Inst, Op};
use spirv::{
    BuiltIn, GlslStd450Op as Glsl, GroupOperation, MemorySemantics, Op as Spv, Scope, StorageClass,
};

impl Emitter<'_> {
    /// Appends what an instruction other than a phi does.
    pub(crate) fn emit_inst(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let inst = f.inst(i);
        let dim = inst.dim().min(2) as usize;
        match inst.op {
            Op::IAdd => self.int_binary(i, Spv::IAdd),
            Op::ISub => self.int_binary(i, Spv::ISub),
            Op::IMul => self.int_binary(i, Spv::IMul),
            Op::ISdiv => self.int_binary(i, Spv::SDiv),
            Op::IUdiv => self.int_binary(i, Spv::UDiv),
            Op::IUrem => self.int_binary(i, Spv::UMod),
            Op::IMulHiS => self.mul_high(i, Spv::SMulExtended),
            Op::IMulHiU => self.mul_high(i, Spv::UMulExtended),
            Op::IAnd => self.bit_binary(i, Spv::BitwiseAnd, Spv::LogicalAnd),
            Op::IOr => self.bit_binary(i, Spv::BitwiseOr, Spv::LogicalOr),
            Op::IXor => self.bit_binary(i, Spv::BitwiseXor, Spv::LogicalNotEqual),
            Op::IShl => self.int_binary(i, Spv::ShiftLeftLogical),
            Op::ILshr => self.int_binary(i, Spv::ShiftRightLogical),
            Op::IAshr => self.int_binary(i, Spv::ShiftRightArithmetic),
            Op::ISmin => self.int_extremum(i, Glsl::SMin),
            Op::ISmax => self.int_extremum(i, Glsl::SMax),
            Op::IUmin => self.int_extremum(i, Glsl::UMin),
            Op::IUmax => self.int_extremum(i, Glsl::UMax),
            Op::IPopcount => self.popcount(i),
            Op::IClz => self.leading_zeros(i),
            Op::ICtz => self.trailing_zeros(i),

            Op::FAdd => self.float_binary(i, Spv::FAdd),
            Op::FSub => self.float_binary(i, Spv::FSub),
            Op::FMul => self.float_binary(i, Spv::FMul),
            Op::FDiv => self.float_binary(i, Spv::FDiv),
            Op::FNeg => self.float_negate(i),
            Op::FAbs => self.float_function(i, Glsl::FAbs),
            Op::FMin => self.float_extremum(i, Glsl::FMin, (Glsl::NMin, Spv::BitwiseOr)),
            Op::FMax => self.float_extremum(i, Glsl::FMax, (Glsl::NMax, Spv::BitwiseAnd)),
            Op::FFma => self.float_function(i, Glsl::Fma),
            Op::FSqrt => self.float_function(i, Glsl::Sqrt),
            Op::FFloor => self.float_function(i, Glsl::Floor),
            Op::FCeil => self.float_function(i, Glsl::Ceil),
            Op::FTrunc => self.float_function(i, Glsl::Trunc),
            Op::FRound => self.float_function(i, Glsl::RoundEven),
            Op::FExp => self.math(i, Glsl::Exp),
            Op::FExp2 => self.math(i, Glsl::Exp2),
            Op::FLog => self.math(i, Glsl::Log),
            Op::FLog2 => self.math(i, Glsl::Log2),
            Op::FSin => self.math(i, Glsl::Sin),
            Op::FCos => self.math(i, Glsl::Cos),
            Op::FTan => self.math(i, Glsl::Tan),
            Op::FAsin => self.math(i, Glsl::Asin),
            Op::FAcos => self.math(i, Glsl::Acos),
            Op::FAtan => self.math(i, Glsl::Atan),
            Op::FSinh => self.math(i, Glsl::Sinh),
            Op::FCosh => self.math(i, Glsl::Cosh),
            Op::FTanh => self.math(i, Glsl::Tanh),
            Op::FAtan2 => self.atan2(i),
            Op::FPow => self.pow(i),

            Op::IcmpEq => self.int_equal(i, Spv::IEqual, Spv::LogicalEqual),
            Op::IcmpNe => self.int_equal(i, Spv::INotEqual, Spv::LogicalNotEqual),
            // As a signed number, true is -1.
            Op::IcmpSlt => self.int_order(i, Spv::SLessThan, Spv::UGreaterThan),
            Op::IcmpSgt => self.int_order(i, Spv::SGreaterThan, Spv::ULessThan),
            Op::IcmpSle => self.int_order(i, Spv::SLessThanEqual, Spv::UGreaterThanEqual),
            Op::IcmpSge => self.int_order(i, Spv::SGreaterThanEqual, Spv::ULessThanEqual),
            Op::IcmpUlt => self.int_order(i, Spv::ULessThan, Spv::ULessThan),
            Op::IcmpUgt => self.int_order(i, Spv::UGreaterThan, Spv::UGreaterThan),
            Op::IcmpUle => self.int_order(i, Spv::ULessThanEqual, Spv::ULessThanEqual),
            Op::IcmpUge => self.int_order(i, Spv::UGreaterThanEqual, Spv::UGreaterThanEqual),
            Op::FcmpOeq => self.float_compare(i, Spv::FOrdEqual),
            Op::FcmpOne => self.float_compare(i, Spv::FOrdNotEqual),
            Op::FcmpOlt => self.float_compare(i, Spv::FOrdLessThan),
            Op::FcmpOgt => self.float_compare(i, Spv::FOrdGreaterThan),
            Op::FcmpOle => self.float_compare(i, Spv::FOrdLessThanEqual),
            Op::FcmpOge => self.float_compare(i, Spv::FOrdGreaterThanEqual),
            Op::FcmpOrd => self.float_ordered(i),
            Op::FcmpUeq => self.float_compare(i, Spv::FUnordEqual),
            Op::FcmpUne => self.float_compare(i, Spv::FUnordNotEqual),
            Op::FcmpUlt => self.float_compare(i, Spv::FUnordLessThan),
            Op::FcmpUgt => self.float_compare(i, Spv::FUnordGreaterThan),
            Op::FcmpUle => self.float_compare(i, Spv::FUnordLessThanEqual),
            Op::FcmpUge => self.float_compare(i, Spv::FUnordGreaterThanEqual),
            Op::FcmpUno => self.float_unordered(i),

            Op::Cast => self.cast(i),
            Op::BitsCast => self.bit_cast(i),
            Op::Select => self.select(i),

            Op::VecNew => self.vec_new(i),
            Op::VecSplat => self.vec_splat(i),
            Op::VecExtract => self.vec_extract(i),
            Op::VecInsert => self.vec_insert(i),
            Op::VecDot => self.vec_dot(i),
            Op::VecCross => self.vec_cross(i),
            Op::VecLength => self.vec_length(i),
            Op::VecNormalize => self.vec_normalize(i),
            Op::VecReflect => self.vec_reflect(i),
            Op::VecMix => self.vec_mix(i),
            Op::VecAny => self.vec_reduce_bool(i, Spv::Any),
            Op::VecAll => self.vec_reduce_bool(i, Spv::All),

            Op::LeafGet => self.leaf_get(i),

            Op::GpuThreadId => self.id_component(i, BuiltIn::LocalInvocationId, dim),
            Op::GpuWorkgroupId => self.id_component(i, BuiltIn::WorkgroupId, dim),
            Op::GpuGlobalId => self.id_component(i, BuiltIn::GlobalInvocationId, dim),
            Op::GpuNumWorkgroups => self.id_component(i, BuiltIn::NumWorkgroups, dim),
            Op::GpuWorkgroupSize => {
                let id = self.workgroup_size(dim);
                self.set_u32(i, id)
            }

            Op::GpuBufferLoad => self.emit_load(i, 0),
            Op::GpuBufferStore => self.emit_store(i, 0),
            Op::GpuLeafLoad => self.emit_load(i, inst.imm_lo()),
            Op::GpuLeafStore => self.emit_store(i, inst.imm_lo()),
            Op::GpuBufferLen => self.emit_length(i),
            Op::GpuShared => self.emit_array(i, StorageClass::Workgroup),
            Op::GpuLocal => self.emit_array(i, StorageClass::Function),
            Op::GpuBarrier => self.barrier(),

            Op::GpuAtomicAdd => self.atomic_add(i, false),
            Op::GpuAtomicSub => self.atomic_add(i, true),
            Op::GpuAtomicMin => self.atomic_extremum(
                i,
                [Spv::AtomicSMin, Spv::AtomicUMin, Spv::AtomicFMinEXT],
                (Glsl::NMin, Spv::BitwiseOr),
            ),
            Op::GpuAtomicMax => self.atomic_extremum(
                i,
                [Spv::AtomicSMax, Spv::AtomicUMax, Spv::AtomicFMaxEXT],
                (Glsl::NMax, Spv::BitwiseAnd),
            ),
            Op::GpuAtomicAnd => self.atomic_bits(i, Spv::AtomicAnd),
            Op::GpuAtomicOr => self.atomic_bits(i, Spv::AtomicOr),
            Op::GpuAtomicXor => self.atomic_bits(i, Spv::AtomicXor),
            Op::GpuAtomicExchange => self.atomic_bits(i, Spv::AtomicExchange),
            Op::GpuAtomicCas => self.atomic_cas(i),

            Op::GpuSubgroupSize => self.subgroup_builtin(i, BuiltIn::SubgroupSize),
            Op::GpuSubgroupLaneId => self.subgroup_builtin(i, BuiltIn::SubgroupLocalInvocationId),
            Op::GpuSubgroupShuffle | Op::GpuSubgroupBroadcast => {
                self.subgroup_shuffle(i, Spv::GroupNonUniformShuffle)
            }
            Op::GpuSubgroupShuffleXor => self.subgroup_shuffle(i, Spv::GroupNonUniformShuffleXor),
            Op::GpuSubgroupShuffleUp => self.subgroup_shuffle(i, Spv::GroupNonUniformShuffleUp),
            Op::GpuSubgroupShuffleDown => self.subgroup_shuffle(i, Spv::GroupNonUniformShuffleDown),
            Op::GpuSubgroupSum => self.subgroup_sum(i, GroupOperation::Reduce),
            Op::GpuSubgroupPrefixSum => self.subgroup_sum(i, GroupOperation::ExclusiveScan),
            Op::GpuSubgroupMin => self.subgroup_extremum(
                i,
                [Spv::GroupNonUniformSMin, Spv::GroupNonUniformUMin, Spv::GroupNonUniformFMin],
            ),
            Op::GpuSubgroupMax => self.subgroup_extremum(
                i,
                [Spv::GroupNonUniformSMax, Spv::GroupNonUniformUMax, Spv::GroupNonUniformFMax],
            ),
            Op::GpuSubgroupAny => self.subgroup_vote(i, Spv::GroupNonUniformAny),
            Op::GpuSubgroupAll => self.subgroup_vote(i, Spv::GroupNonUniformAll),
            Op::GpuSubgroupBallot => self.subgroup_ballot(i),

            // What `available` refuses, and what `legalize`, `lower_structs` and `inline_calls` remove.
            Op::GpuPrint
            | Op::GpuMetalSimdShuffle
            | Op::GpuMetalSimdSum
            | Op::GpuMetalSimdPrefixSum
            | Op::ISrem
            | Op::IRotl
            | Op::IRotr
            | Op::IAddOverflows
            | Op::ISubOverflows
            | Op::IMulOverflows
            | Op::FRem
            | Op::Phi
            | Op::StructNew
            | Op::StructGet
            | Op::Call => Err(self.broken_at(i, "must be lowered before emission")),

            // Host code.
            Op::IAddTrap
            | Op::ISubTrap
            | Op::IMulTrap
            | Op::ISdivTrap
            | Op::IUdivTrap
            | Op::ISremTrap
            | Op::IUremTrap
            | Op::RtCall
            | Op::CallIndirect
            | Op::CallableCapture
            | Op::Panic
            | Op::BorrowShared
            | Op::BorrowMut
            | Op::Share
            | Op::CloneShared
            | Op::WeakDowngrade
            | Op::WeakUpgrade
            | Op::CloneWeak
            | Op::Retain
            | Op::Release
            | Op::New
            | Op::GetField
            | Op::SetField
            | Op::FieldPlace
            | Op::EnumNew
            | Op::EnumTag
            | Op::EnumIs
            | Op::EnumPayload
            | Op::ArrNew
            | Op::ArrFrom
            | Op::ArrLen
            | Op::ArrGet
            | Op::ArrSet
            | Op::ArrPlace
            | Op::ArrPush
            | Op::ArrPop
            | Op::ArrSlice
            | Op::ArrContains
            | Op::ArrSort
            | Op::ArrMap
            | Op::ArrFilter
            | Op::ArrReduce
            | Op::ArrForeach
            | Op::MapNew
            | Op::MapSet
            | Op::MapGet
            | Op::MapGetRef
            | Op::MapPlace
            | Op::MapLen
            | Op::MapContainsKey
            | Op::MapDelete
            | Op::MapDeleteVoid
            | Op::MapKeys
            | Op::MapValues
            | Op::GpuLaunch
            | Op::GpuLaunchAsync
            | Op::GpuLaunchProfiled
            | Op::MemLoad
            | Op::MemStore
            | Op::PtrAdd
            | Op::StackSlot
            | Op::FnAddr
            | Op::TypeInfoAddr
            | Op::RtRaw
            | Op::CallAddr => Err(self.broken_at(i, "host code in a kernel")),
        }
    }

    fn id_component(&mut self, i: Inst, builtin: BuiltIn, dim: usize) -> Emit {
        let id = self.builtin_component(builtin, dim);
        self.set_u32(i, id)
    }

    pub(super) fn set_u32(&mut self, i: Inst, id: u32) -> Emit {
        let ty = self.b.u32_ty();
        self.set_result(i, ty, id);
        Ok(())
    }

    /// A scalar of an aggregate parameter.
    fn leaf_get(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let param = match f.args(i).first().map(|&v| f.def(v)) {
            Some(magpie_mpir::ValueDef::Param(n)) => n,
            _ => return Err(self.broken_at(i, "operand 0 is no parameter")),
        };
        let id = self.scalar_param(param, f.inst(i).imm_lo())?;
        let (shape, _) = self.shape_of_result(i)?;
        let ty = self.b.storage_shape(shape);
        self.set_result(i, ty, id);
        Ok(())
    }

    /// Waits for the workgroup; all its stores to shared and buffer memory before it are visible
    /// to it afterwards.
    fn barrier(&mut self) -> Emit {
        let semantics = MemorySemantics::ACQUIRE_RELEASE
            | MemorySemantics::UNIFORM_MEMORY
            | MemorySemantics::WORKGROUP_MEMORY;
        let scope = self.b.u32(Scope::Workgroup as u32);
        let semantics = self.b.u32(semantics.bits());
        self.body.op(Spv::ControlBarrier, &[scope, scope, semantics]);
        Ok(())
    }
}
