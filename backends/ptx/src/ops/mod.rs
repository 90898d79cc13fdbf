//! One arm an op: what each MPIR instruction is in PTX.

mod atomic;
mod compare;
mod convert;
mod float;
mod int;
mod subgroup;

use crate::emitter::{Emit, Emitter, ptx};
use crate::memory::Space;
use crate::operand::{Class, Reg};
use crate::params::Special;
use magpie_mpir::{Inst, Op};

impl Emitter<'_, '_> {
    /// Appends what an instruction other than a phi does.
    pub(crate) fn emit_inst(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let inst = f.inst(i);
        let dim = inst.dim();
        match inst.op {
            Op::IAdd => self.int_binary(i, "add.s"),
            Op::ISub => self.int_binary(i, "sub.s"),
            Op::IMul => self.int_binary(i, "mul.lo.s"),
            Op::ISdiv => self.int_binary(i, "div.s"),
            Op::IUdiv => self.int_binary(i, "div.u"),
            Op::IUrem => self.int_binary(i, "rem.u"),
            Op::IMulHiS => self.int_binary(i, "mul.hi.s"),
            Op::IMulHiU => self.int_binary(i, "mul.hi.u"),
            Op::IAnd => self.bit_binary(i, "and"),
            Op::IOr => self.bit_binary(i, "or"),
            Op::IXor => self.bit_binary(i, "xor"),
            Op::IShl => self.shift(i, "shl.b"),
            Op::ILshr => self.shift(i, "shr.u"),
            Op::IAshr => self.shift(i, "shr.s"),
            Op::ISmin => self.int_binary(i, "min.s"),
            Op::ISmax => self.int_binary(i, "max.s"),
            Op::IUmin => self.int_binary(i, "min.u"),
            Op::IUmax => self.int_binary(i, "max.u"),
            Op::IPopcount => self.count_bits(i, "popc"),
            Op::IClz => self.count_bits(i, "clz"),
            Op::ICtz => self.trailing_zeros(i),

            Op::FAdd => self.float_arithmetic(i, "add"),
            Op::FSub => self.float_arithmetic(i, "sub"),
            Op::FMul => self.float_arithmetic(i, "mul"),
            Op::FDiv => self.float_divide(i),
            Op::FNeg => self.float_sign(i, "neg"),
            Op::FAbs => self.float_sign(i, "abs"),
            Op::FMin => self.float_extremum(i, "min"),
            Op::FMax => self.float_extremum(i, "max"),
            Op::FFma => self.float_fma(i),
            Op::FSqrt => self.float_root(i),
            Op::FFloor => self.float_round(i, "rmi"),
            Op::FCeil => self.float_round(i, "rpi"),
            Op::FTrunc => self.float_round(i, "rzi"),
            Op::FRound => self.float_round(i, "rni"),
            Op::FExp2 => self.approximation(i, "ex2"),
            Op::FLog2 => self.approximation(i, "lg2"),
            Op::FSin => self.approximation(i, "sin"),
            Op::FCos => self.approximation(i, "cos"),

            Op::IcmpEq => self.int_compare(i, "eq.s"),
            Op::IcmpNe => self.int_compare(i, "ne.s"),
            Op::IcmpSlt => self.int_compare(i, "lt.s"),
            Op::IcmpSgt => self.int_compare(i, "gt.s"),
            Op::IcmpSle => self.int_compare(i, "le.s"),
            Op::IcmpSge => self.int_compare(i, "ge.s"),
            Op::IcmpUlt => self.int_compare(i, "lt.u"),
            Op::IcmpUgt => self.int_compare(i, "gt.u"),
            Op::IcmpUle => self.int_compare(i, "le.u"),
            Op::IcmpUge => self.int_compare(i, "ge.u"),
            Op::FcmpOeq => self.float_compare(i, "eq"),
            Op::FcmpOne => self.float_compare(i, "ne"),
            Op::FcmpOlt => self.float_compare(i, "lt"),
            Op::FcmpOgt => self.float_compare(i, "gt"),
            Op::FcmpOle => self.float_compare(i, "le"),
            Op::FcmpOge => self.float_compare(i, "ge"),
            Op::FcmpOrd => self.float_compare(i, "num"),
            Op::FcmpUeq => self.float_compare(i, "equ"),
            Op::FcmpUne => self.float_compare(i, "neu"),
            Op::FcmpUlt => self.float_compare(i, "ltu"),
            Op::FcmpUgt => self.float_compare(i, "gtu"),
            Op::FcmpUle => self.float_compare(i, "leu"),
            Op::FcmpUge => self.float_compare(i, "geu"),
            Op::FcmpUno => self.float_compare(i, "nan"),

            Op::Cast => self.cast(i),
            Op::BitsCast => self.bit_cast(i),
            Op::Select => self.select(i),

            Op::VecNew => self.vec_new(i),
            Op::VecExtract => self.vec_extract(i),
            Op::LeafGet => self.leaf_get(i),

            Op::GpuThreadId => self.special_result(i, Special::Tid(dim)),
            Op::GpuWorkgroupId => self.special_result(i, Special::Ctaid(dim)),
            Op::GpuWorkgroupSize => self.special_result(i, Special::Ntid(dim)),
            Op::GpuNumWorkgroups => self.special_result(i, Special::Nctaid(dim)),
            Op::GpuGlobalId => self.global_id(i, dim),

            Op::GpuBufferLoad => self.emit_load(i, 0),
            Op::GpuBufferStore => self.emit_store(i, 0),
            Op::GpuLeafLoad => self.emit_load(i, inst.imm_lo()),
            Op::GpuLeafStore => self.emit_store(i, inst.imm_lo()),
            Op::GpuBufferLen => self.emit_length(i),
            Op::GpuShared => self.emit_array(i, Space::Shared),
            Op::GpuLocal => self.emit_array(i, Space::Local),
            Op::GpuBarrier => {
                ptx!(self, "bar.sync 0");
                Ok(())
            }

            Op::GpuAtomicAdd => self.atomic_add(i, false),
            Op::GpuAtomicSub => self.atomic_add(i, true),
            Op::GpuAtomicMin => self.atomic_extremum(i, "min"),
            Op::GpuAtomicMax => self.atomic_extremum(i, "max"),
            Op::GpuAtomicAnd => self.atomic_bits(i, "and"),
            Op::GpuAtomicOr => self.atomic_bits(i, "or"),
            Op::GpuAtomicXor => self.atomic_bits(i, "xor"),
            Op::GpuAtomicExchange => self.atomic_bits(i, "exch"),
            Op::GpuAtomicCas => self.atomic_cas(i),

            Op::GpuSubgroupSize => {
                let d = self.result(i)?;
                ptx!(self, "mov.u32 {d}, WARP_SZ");
                Ok(())
            }
            Op::GpuSubgroupLaneId => self.special_result(i, Special::LaneId),
            Op::GpuSubgroupShuffle | Op::GpuSubgroupBroadcast => self.subgroup_shuffle(i, "idx"),
            Op::GpuSubgroupShuffleXor => self.subgroup_shuffle(i, "bfly"),
            Op::GpuSubgroupShuffleUp => self.subgroup_shuffle(i, "up"),
            Op::GpuSubgroupShuffleDown => self.subgroup_shuffle(i, "down"),
            Op::GpuSubgroupSum => self.subgroup_reduce(i, "add"),
            Op::GpuSubgroupMin => self.subgroup_reduce(i, "min"),
            Op::GpuSubgroupMax => self.subgroup_reduce(i, "max"),
            Op::GpuSubgroupPrefixSum => self.subgroup_prefix_sum(i),
            Op::GpuSubgroupAny => self.subgroup_vote(i, "any"),
            Op::GpuSubgroupAll => self.subgroup_vote(i, "all"),
            Op::GpuSubgroupBallot => self.subgroup_ballot(i),

            Op::Call => self.call_function(i),

            // What `available` refuses, and what `legalize`, `lower_structs` and `lower_vectors`
            // remove.
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

            magpie_mpir::host_code_ops!() => Err(self.broken_at(i, "host code in a kernel")),
        }
    }

    fn special_result(&mut self, i: Inst, special: Special) -> Emit {
        let reg = self.special(special);
        self.set_result(i, reg.into())
    }

    fn global_id(&mut self, i: Inst, dim: u8) -> Emit {
        let [group, size, thread] =
            [Special::Ctaid(dim), Special::Ntid(dim), Special::Tid(dim)].map(|s| self.special(s));
        let d = self.result(i)?;
        ptx!(self, "mad.lo.s32 {d}, {group}, {size}, {thread}");
        Ok(())
    }

    /// Chooses between operands 1 and 2.
    fn select(&mut self, i: Inst) -> Emit {
        let [cond, a, b] = self.operands(i)?;
        let d = self.result(i)?;
        if d.class != Class::Pred {
            ptx!(self, "selp.{} {d}, {a}, {b}, {cond}", d.class.ty());
            return Ok(());
        }
        let [first, other, second]: [Reg; 3] = std::array::from_fn(|_| self.fresh(Class::Pred));
        ptx!(self, "and.pred {first}, {cond}, {a}");
        ptx!(self, "not.pred {other}, {cond}");
        ptx!(self, "and.pred {second}, {other}, {b}");
        ptx!(self, "or.pred {d}, {first}, {second}");
        Ok(())
    }
}
