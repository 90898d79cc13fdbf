//! One arm an op: what each MPIR instruction is in LLVM IR.

mod barrier;
mod convert;
mod float;
mod ids;
mod int;
mod subgroup;

pub(crate) use subgroup::is_lane_loop;

use crate::emitter::{Emit, Emitter};
use ids::Id;
use magpie_mpir::{Inst, Op};
use subgroup::{Exchange, Reduction};

impl Emitter<'_> {
    /// Appends what an instruction other than a phi does.
    pub(crate) fn emit_inst(&mut self, i: Inst) -> Emit {
        let inst = self.f.inst(i);
        match inst.op {
            Op::IAdd => self.int_binary(i, "add"),
            Op::ISub => self.int_binary(i, "sub"),
            Op::IMul => self.int_binary(i, "mul"),
            Op::ISdiv => self.int_binary(i, "sdiv"),
            Op::IUdiv => self.int_binary(i, "udiv"),
            Op::ISrem => self.int_binary(i, "srem"),
            Op::IUrem => self.int_binary(i, "urem"),
            Op::IMulHiS => self.mul_high(i, "sext"),
            Op::IMulHiU => self.mul_high(i, "zext"),
            Op::IAnd => self.int_binary(i, "and"),
            Op::IOr => self.int_binary(i, "or"),
            Op::IXor => self.int_binary(i, "xor"),
            Op::IShl => self.int_binary(i, "shl"),
            Op::ILshr => self.int_binary(i, "lshr"),
            Op::IAshr => self.int_binary(i, "ashr"),
            Op::IRotl => self.rotate(i, "fshl"),
            Op::IRotr => self.rotate(i, "fshr"),
            Op::ISmin => self.int_intrinsic(i, "smin"),
            Op::ISmax => self.int_intrinsic(i, "smax"),
            Op::IUmin => self.int_intrinsic(i, "umin"),
            Op::IUmax => self.int_intrinsic(i, "umax"),
            Op::IPopcount => self.popcount(i),
            Op::IClz => self.count_zeros(i, "ctlz"),
            Op::ICtz => self.count_zeros(i, "cttz"),

            Op::FAdd => self.float_binary(i, "fadd"),
            Op::FSub => self.float_binary(i, "fsub"),
            Op::FMul => self.float_binary(i, "fmul"),
            Op::FDiv => self.divide(i),
            Op::FNeg => self.float_negate(i),
            Op::FAbs => self.float_intrinsic(i, "fabs"),
            Op::FMin => self.float_extremum(i, "minnum", "or"),
            Op::FMax => self.float_extremum(i, "maxnum", "and"),
            Op::FFma => self.float_intrinsic(i, "fma"),
            Op::FSqrt => self.square_root(i),
            Op::FFloor => self.float_intrinsic(i, "floor"),
            Op::FCeil => self.float_intrinsic(i, "ceil"),
            Op::FTrunc => self.float_intrinsic(i, "trunc"),
            Op::FRound => self.float_intrinsic(i, "rint"),
            Op::FExp2 => self.elementary(i, "ex2", "exp2"),
            Op::FLog2 => self.elementary(i, "lg2", "log2"),
            Op::FSin => self.elementary(i, "sin", "sin"),
            Op::FCos => self.elementary(i, "cos", "cos"),

            Op::IcmpEq => self.int_compare(i, "eq"),
            Op::IcmpNe => self.int_compare(i, "ne"),
            Op::IcmpSlt => self.int_compare(i, "slt"),
            Op::IcmpSgt => self.int_compare(i, "sgt"),
            Op::IcmpSle => self.int_compare(i, "sle"),
            Op::IcmpSge => self.int_compare(i, "sge"),
            Op::IcmpUlt => self.int_compare(i, "ult"),
            Op::IcmpUgt => self.int_compare(i, "ugt"),
            Op::IcmpUle => self.int_compare(i, "ule"),
            Op::IcmpUge => self.int_compare(i, "uge"),
            Op::FcmpOeq => self.float_compare(i, "oeq"),
            Op::FcmpOne => self.float_compare(i, "one"),
            Op::FcmpOlt => self.float_compare(i, "olt"),
            Op::FcmpOgt => self.float_compare(i, "ogt"),
            Op::FcmpOle => self.float_compare(i, "ole"),
            Op::FcmpOge => self.float_compare(i, "oge"),
            Op::FcmpOrd => self.float_compare(i, "ord"),
            Op::FcmpUeq => self.float_compare(i, "ueq"),
            Op::FcmpUne => self.float_compare(i, "une"),
            Op::FcmpUlt => self.float_compare(i, "ult"),
            Op::FcmpUgt => self.float_compare(i, "ugt"),
            Op::FcmpUle => self.float_compare(i, "ule"),
            Op::FcmpUge => self.float_compare(i, "uge"),
            Op::FcmpUno => self.float_compare(i, "uno"),

            Op::Cast => self.cast(i),
            Op::BitsCast => self.bit_cast(i),
            Op::Select => self.select(i),
            Op::VecNew => self.vec_new(i),
            Op::VecExtract => self.vec_extract(i),
            Op::LeafGet => self.leaf_get(i),

            Op::GpuThreadId => self.launch_id(i, Id::Invocation),
            Op::GpuWorkgroupId => self.launch_id(i, Id::Workgroup),
            Op::GpuWorkgroupSize => self.launch_id(i, Id::WorkgroupSize),
            Op::GpuNumWorkgroups => self.launch_id(i, Id::Workgroups),
            Op::GpuGlobalId => self.global_id(i),

            Op::GpuBufferLoad => self.emit_load(i, 0),
            Op::GpuBufferStore => self.emit_store(i, 0),
            Op::GpuLeafLoad => self.emit_load(i, inst.imm_lo()),
            Op::GpuLeafStore => self.emit_store(i, inst.imm_lo()),
            Op::GpuBufferLen => self.emit_length(i),
            Op::GpuShared => self.shared_array(i),
            Op::GpuLocal => self.private_array(i),
            Op::GpuBarrier => self.barrier(),
            Op::GpuAtomicAdd => self.atomic(i, ["add", "add", "fadd"]),
            Op::GpuAtomicSub => self.atomic_sub(i),
            Op::GpuAtomicMin => self.atomic(i, ["min", "umin", "fmin"]),
            Op::GpuAtomicMax => self.atomic(i, ["max", "umax", "fmax"]),
            Op::GpuAtomicAnd => self.atomic(i, ["and"; 3]),
            Op::GpuAtomicOr => self.atomic(i, ["or"; 3]),
            Op::GpuAtomicXor => self.atomic(i, ["xor"; 3]),
            Op::GpuAtomicExchange => self.atomic(i, ["xchg"; 3]),
            Op::GpuAtomicCas => self.compare_and_swap(i),

            Op::GpuSubgroupSize => self.subgroup_size(i),
            Op::GpuSubgroupLaneId => self.subgroup_lane_id(i),
            Op::GpuSubgroupShuffle | Op::GpuSubgroupBroadcast => {
                self.subgroup_shuffle(i, Exchange::Index)
            }
            Op::GpuSubgroupShuffleXor => self.subgroup_shuffle(i, Exchange::Butterfly),
            Op::GpuSubgroupShuffleUp => self.subgroup_shuffle(i, Exchange::Up),
            Op::GpuSubgroupShuffleDown => self.subgroup_shuffle(i, Exchange::Down),
            Op::GpuSubgroupSum => self.subgroup_reduce(i, Reduction::Sum),
            Op::GpuSubgroupMin => self.subgroup_reduce(i, Reduction::Min),
            Op::GpuSubgroupMax => self.subgroup_reduce(i, Reduction::Max),
            Op::GpuSubgroupPrefixSum => self.subgroup_prefix_sum(i),
            Op::GpuSubgroupAny => self.subgroup_vote(i, false),
            Op::GpuSubgroupAll => self.subgroup_vote(i, true),
            Op::GpuSubgroupBallot => self.subgroup_ballot(i),

            Op::Call => self.call_function(i),

            // What back ends refuse, and what `legalize`, `lower_vectors` and `lower_structs` remove.
            Op::GpuPrint
            | Op::GpuMetalSimdShuffle
            | Op::GpuMetalSimdSum
            | Op::GpuMetalSimdPrefixSum
            | Op::IAddOverflows
            | Op::ISubOverflows
            | Op::IMulOverflows
            | Op::FRem
            | Op::FExp
            | Op::FLog
            | Op::FTan
            | Op::FAsin
            | Op::FAcos
            | Op::FAtan
            | Op::FSinh
            | Op::FCosh
            | Op::FTanh
            | Op::FAtan2
            | Op::FPow
            | magpie_mpir::lowered_vector_ops!()
            | Op::Phi
            | Op::StructNew
            | Op::StructGet => Err(self.broken_at(i, "must be lowered before emission")),

            // Host code.
            magpie_mpir::host_code_ops!() => Err(self.broken_at(i, "host code in a kernel")),
        }
    }
}
