//! The choice of a lowering for each op.

use super::FnLowering;
use crate::{Inst, Op};

impl FnLowering<'_, '_, '_> {
    /// Lowers one instruction that is no phi.
    pub(super) fn inst(&mut self, i: Inst) {
        let leaves = match self.old.inst(i).op {
            Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::ISdiv
            | Op::IUdiv
            | Op::ISrem
            | Op::IUrem
            | Op::IMulHiS
            | Op::IMulHiU
            | Op::IAnd
            | Op::IOr
            | Op::IXor
            | Op::IShl
            | Op::ILshr
            | Op::IAshr
            | Op::IRotl
            | Op::IRotr
            | Op::ISmin
            | Op::ISmax
            | Op::IUmin
            | Op::IUmax
            | Op::IPopcount
            | Op::IClz
            | Op::ICtz
            | Op::IAddOverflows
            | Op::ISubOverflows
            | Op::IMulOverflows
            | Op::IAddTrap
            | Op::ISubTrap
            | Op::IMulTrap
            | Op::ISdivTrap
            | Op::IUdivTrap
            | Op::ISremTrap
            | Op::IUremTrap
            | Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FRem
            | Op::FNeg
            | Op::FAbs
            | Op::FMin
            | Op::FMax
            | Op::FFma
            | Op::FSqrt
            | Op::FFloor
            | Op::FCeil
            | Op::FTrunc
            | Op::FRound
            | Op::FExp
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
            | Op::FTanh
            | Op::FAtan2
            | Op::FPow
            | Op::IcmpEq
            | Op::IcmpNe
            | Op::IcmpSlt
            | Op::IcmpSgt
            | Op::IcmpSle
            | Op::IcmpSge
            | Op::IcmpUlt
            | Op::IcmpUgt
            | Op::IcmpUle
            | Op::IcmpUge
            | Op::FcmpOeq
            | Op::FcmpOne
            | Op::FcmpOlt
            | Op::FcmpOgt
            | Op::FcmpOle
            | Op::FcmpOge
            | Op::FcmpOrd
            | Op::FcmpUeq
            | Op::FcmpUne
            | Op::FcmpUlt
            | Op::FcmpUgt
            | Op::FcmpUle
            | Op::FcmpUge
            | Op::FcmpUno
            | Op::Cast
            | Op::VecNew
            | Op::VecSplat
            | Op::VecExtract
            | Op::VecInsert
            | Op::VecDot
            | Op::VecCross
            | Op::VecLength
            | Op::VecNormalize
            | Op::VecReflect
            | Op::VecMix
            | Op::VecAny
            | Op::VecAll => self.scalar_op(i),
            Op::BitsCast => self.bits_cast(i),
            Op::Select => self.select(i),
            Op::StructNew => self.struct_new(i),
            Op::StructGet => self.struct_get(i),
            Op::LeafGet => self.leaf_get(i),

            Op::Call => self.call(i),
            Op::RtCall => self.rt_call(i),
            Op::CallIndirect => self.call_indirect(i),
            Op::CallableCapture => self.callable_capture(i),
            Op::Panic => self.panic_with_text(i),
            Op::GpuLaunch | Op::GpuLaunchAsync | Op::GpuLaunchProfiled => self.launch(i),

            Op::BorrowShared | Op::BorrowMut => self.borrow(i),
            Op::Share => self.share(i),
            Op::CloneShared | Op::CloneWeak => self.clone_handle(i),
            Op::WeakDowngrade => self.weak_downgrade(i),
            Op::WeakUpgrade => self.weak_upgrade(i),
            Op::Retain => self.retain_operand(i),
            Op::Release => self.release_operand(i),
            Op::New => self.new_object(i),
            Op::GetField => self.get_field(i),
            Op::SetField => self.set_field(i),

            Op::EnumNew => self.enum_new(i),
            Op::EnumTag => self.enum_tag(i),
            Op::EnumIs => self.enum_is(i),
            Op::EnumPayload => self.enum_payload(i),

            Op::ArrNew => self.arr_new(i),
            Op::ArrFrom => self.arr_from(i),
            Op::ArrLen => self.arr_len(i),
            Op::ArrGet => self.arr_get(i),
            Op::ArrSet => self.arr_set(i),
            Op::ArrPush => self.arr_push(i),
            Op::ArrPop => self.arr_pop(i),
            Op::ArrSlice => self.arr_slice(i),
            Op::ArrContains => self.arr_contains(i),
            Op::ArrSort => self.arr_sort(i),
            Op::ArrMap => self.arr_map(i),
            Op::ArrFilter => self.arr_filter(i),
            Op::ArrReduce => self.arr_reduce(i),
            Op::ArrForeach => self.arr_foreach(i),

            Op::MapNew => self.map_new(i),
            Op::MapSet => self.map_set(i),
            Op::MapGet => self.map_get(i),
            Op::MapGetRef => self.map_get_ref(i),
            Op::MapLen => self.map_len(i),
            Op::MapContainsKey => self.map_contains_key(i),
            Op::MapDelete => self.map_delete(i),
            Op::MapDeleteVoid => self.map_delete_void(i),
            Op::MapKeys | Op::MapValues => self.map_list(i),

            op @ (Op::Phi
            | Op::GpuThreadId
            | Op::GpuWorkgroupId
            | Op::GpuWorkgroupSize
            | Op::GpuGlobalId
            | Op::GpuNumWorkgroups
            | Op::GpuBufferLoad
            | Op::GpuBufferStore
            | Op::GpuLeafLoad
            | Op::GpuLeafStore
            | Op::GpuBufferLen
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuBarrier
            | Op::GpuAtomicAdd
            | Op::GpuAtomicSub
            | Op::GpuAtomicMin
            | Op::GpuAtomicMax
            | Op::GpuAtomicAnd
            | Op::GpuAtomicOr
            | Op::GpuAtomicXor
            | Op::GpuAtomicExchange
            | Op::GpuAtomicCas
            | Op::GpuSubgroupSize
            | Op::GpuSubgroupLaneId
            | Op::GpuSubgroupShuffle
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
            | Op::GpuPrint
            | Op::MemLoad
            | Op::MemStore
            | Op::PtrAdd
            | Op::StackSlot
            | Op::FnAddr
            | Op::TypeInfoAddr
            | Op::RtRaw
            | Op::CallAddr) => unreachable!("the verifier keeps {op:?} out of host code"),
        };
        self.define(i, leaves);
    }
}
