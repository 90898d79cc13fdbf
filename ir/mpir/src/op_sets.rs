//! Sets of ops as patterns.
//!
//! No `match` over [`crate::Op`] has a wildcard arm. Where an arm means "none of these", it names
//! sets instead of a hundred ops; an op that is added to the table belongs to a set, or is named,
//! or the `match` does not compile. A test checks that no two sets share an op.

/// Arithmetic, logic and bit counts on integers.
#[macro_export]
macro_rules! integer_ops {
    () => {
        $crate::Op::IAdd
            | $crate::Op::ISub
            | $crate::Op::IMul
            | $crate::Op::ISdiv
            | $crate::Op::IUdiv
            | $crate::Op::ISrem
            | $crate::Op::IUrem
            | $crate::Op::IMulHiS
            | $crate::Op::IMulHiU
            | $crate::Op::IAnd
            | $crate::Op::IOr
            | $crate::Op::IXor
            | $crate::Op::IShl
            | $crate::Op::ILshr
            | $crate::Op::IAshr
            | $crate::Op::IRotl
            | $crate::Op::IRotr
            | $crate::Op::ISmin
            | $crate::Op::ISmax
            | $crate::Op::IUmin
            | $crate::Op::IUmax
            | $crate::Op::IPopcount
            | $crate::Op::IClz
            | $crate::Op::ICtz
            | $crate::Op::IAddOverflows
            | $crate::Op::ISubOverflows
            | $crate::Op::IMulOverflows
    };
}

/// Host arithmetic that panics instead of wrapping.
#[macro_export]
macro_rules! trap_ops {
    () => {
        $crate::Op::IAddTrap
            | $crate::Op::ISubTrap
            | $crate::Op::IMulTrap
            | $crate::Op::ISdivTrap
            | $crate::Op::IUdivTrap
            | $crate::Op::ISremTrap
            | $crate::Op::IUremTrap
    };
}

/// Arithmetic and elementary functions on floats.
#[macro_export]
macro_rules! float_ops {
    () => {
        $crate::Op::FAdd
            | $crate::Op::FSub
            | $crate::Op::FMul
            | $crate::Op::FDiv
            | $crate::Op::FRem
            | $crate::Op::FNeg
            | $crate::Op::FAbs
            | $crate::Op::FMin
            | $crate::Op::FMax
            | $crate::Op::FFma
            | $crate::Op::FSqrt
            | $crate::Op::FFloor
            | $crate::Op::FCeil
            | $crate::Op::FTrunc
            | $crate::Op::FRound
            | $crate::Op::FExp
            | $crate::Op::FExp2
            | $crate::Op::FLog
            | $crate::Op::FLog2
            | $crate::Op::FSin
            | $crate::Op::FCos
            | $crate::Op::FTan
            | $crate::Op::FAsin
            | $crate::Op::FAcos
            | $crate::Op::FAtan
            | $crate::Op::FSinh
            | $crate::Op::FCosh
            | $crate::Op::FTanh
            | $crate::Op::FAtan2
            | $crate::Op::FPow
    };
}

/// Comparisons of integers.
#[macro_export]
macro_rules! icmp_ops {
    () => {
        $crate::Op::IcmpEq
            | $crate::Op::IcmpNe
            | $crate::Op::IcmpSlt
            | $crate::Op::IcmpSgt
            | $crate::Op::IcmpSle
            | $crate::Op::IcmpSge
            | $crate::Op::IcmpUlt
            | $crate::Op::IcmpUgt
            | $crate::Op::IcmpUle
            | $crate::Op::IcmpUge
    };
}

/// Comparisons of floats.
#[macro_export]
macro_rules! fcmp_ops {
    () => {
        $crate::Op::FcmpOeq
            | $crate::Op::FcmpOne
            | $crate::Op::FcmpOlt
            | $crate::Op::FcmpOgt
            | $crate::Op::FcmpOle
            | $crate::Op::FcmpOge
            | $crate::Op::FcmpOrd
            | $crate::Op::FcmpUeq
            | $crate::Op::FcmpUne
            | $crate::Op::FcmpUlt
            | $crate::Op::FcmpUgt
            | $crate::Op::FcmpUle
            | $crate::Op::FcmpUge
            | $crate::Op::FcmpUno
    };
}

/// Operations on vectors that become operations on components.
#[macro_export]
macro_rules! lowered_vector_ops {
    () => {
        $crate::Op::VecSplat
            | $crate::Op::VecInsert
            | $crate::Op::VecDot
            | $crate::Op::VecCross
            | $crate::Op::VecLength
            | $crate::Op::VecNormalize
            | $crate::Op::VecReflect
            | $crate::Op::VecMix
            | $crate::Op::VecAny
            | $crate::Op::VecAll
    };
}

/// Operations on vectors as a whole.
#[macro_export]
macro_rules! vector_ops {
    () => {
        $crate::lowered_vector_ops!() | $crate::Op::VecNew | $crate::Op::VecExtract
    };
}

/// Aggregates.
#[macro_export]
macro_rules! struct_ops {
    () => {
        $crate::Op::StructNew | $crate::Op::StructGet | $crate::Op::LeafGet
    };
}

/// Positions and sizes of the launch.
#[macro_export]
macro_rules! id_ops {
    () => {
        $crate::Op::GpuThreadId
            | $crate::Op::GpuWorkgroupId
            | $crate::Op::GpuWorkgroupSize
            | $crate::Op::GpuGlobalId
            | $crate::Op::GpuNumWorkgroups
    };
}

/// Atomic read-modify-writes.
#[macro_export]
macro_rules! atomic_ops {
    () => {
        $crate::Op::GpuAtomicAdd
            | $crate::Op::GpuAtomicSub
            | $crate::Op::GpuAtomicMin
            | $crate::Op::GpuAtomicMax
            | $crate::Op::GpuAtomicAnd
            | $crate::Op::GpuAtomicOr
            | $crate::Op::GpuAtomicXor
            | $crate::Op::GpuAtomicExchange
            | $crate::Op::GpuAtomicCas
    };
}

/// Sizes, positions and exchange in a subgroup, Metal's included.
#[macro_export]
macro_rules! subgroup_ops {
    () => {
        $crate::Op::GpuSubgroupSize
            | $crate::Op::GpuSubgroupLaneId
            | $crate::Op::GpuSubgroupShuffle
            | $crate::Op::GpuSubgroupShuffleDown
            | $crate::Op::GpuSubgroupShuffleUp
            | $crate::Op::GpuSubgroupShuffleXor
            | $crate::Op::GpuSubgroupBroadcast
            | $crate::Op::GpuSubgroupSum
            | $crate::Op::GpuSubgroupMin
            | $crate::Op::GpuSubgroupMax
            | $crate::Op::GpuSubgroupPrefixSum
            | $crate::Op::GpuSubgroupAny
            | $crate::Op::GpuSubgroupAll
            | $crate::Op::GpuSubgroupBallot
            | $crate::Op::GpuMetalSimdShuffle
            | $crate::Op::GpuMetalSimdSum
            | $crate::Op::GpuMetalSimdPrefixSum
    };
}

/// Loads and stores of buffers and arrays.
#[macro_export]
macro_rules! access_ops {
    () => {
        $crate::Op::GpuBufferLoad
            | $crate::Op::GpuBufferStore
            | $crate::Op::GpuLeafLoad
            | $crate::Op::GpuLeafStore
    };
}

/// What never stands in a kernel that is closed and checked.
#[macro_export]
macro_rules! host_code_ops {
    () => {
        $crate::trap_ops!()
            | $crate::ownership_ops!()
            | $crate::object_ops!()
            | $crate::launch_ops!()
            | $crate::low_host_ops!()
            | $crate::Op::RtCall
            | $crate::Op::CallIndirect
            | $crate::Op::CallableCapture
            | $crate::Op::Panic
    };
}

/// Views and counts of host objects.
#[macro_export]
macro_rules! ownership_ops {
    () => {
        $crate::Op::BorrowShared
            | $crate::Op::BorrowMut
            | $crate::Op::Share
            | $crate::Op::CloneShared
            | $crate::Op::WeakDowngrade
            | $crate::Op::WeakUpgrade
            | $crate::Op::CloneWeak
            | $crate::Op::Retain
            | $crate::Op::Release
    };
}

/// Heap structs, enums, arrays and maps.
#[macro_export]
macro_rules! object_ops {
    () => {
        $crate::object_reads!()
            | $crate::object_changes!()
            | $crate::Op::New
            | $crate::Op::EnumNew
            | $crate::Op::ArrNew
            | $crate::Op::ArrFrom
            | $crate::Op::ArrMap
            | $crate::Op::ArrFilter
            | $crate::Op::ArrReduce
            | $crate::Op::ArrForeach
            | $crate::Op::MapNew
    };
}

/// What looks at an object, operand 0, or at a view of it, and at the key. A result may show a part of it.
/// An enum that is owned is taken apart by [`crate::Op::EnumPayload`] ([`crate::Consumes::First`]).
#[macro_export]
macro_rules! object_reads {
    () => {
        $crate::Op::GetField
            | $crate::Op::EnumTag
            | $crate::Op::EnumIs
            | $crate::Op::EnumPayload
            | $crate::Op::ArrLen
            | $crate::Op::ArrGet
            | $crate::Op::ArrSlice
            | $crate::Op::ArrContains
            | $crate::Op::MapGet
            | $crate::Op::MapGetRef
            | $crate::Op::MapLen
            | $crate::Op::MapContainsKey
            | $crate::Op::MapKeys
            | $crate::Op::MapValues
    };
}

/// What changes an object, operand 0, in place, or shows a part of it to be changed.
#[macro_export]
macro_rules! object_changes {
    () => {
        $crate::Op::SetField
            | $crate::Op::FieldPlace
            | $crate::Op::ArrSet
            | $crate::Op::ArrPlace
            | $crate::Op::ArrPush
            | $crate::Op::ArrPop
            | $crate::Op::ArrSort
            | $crate::Op::MapSet
            | $crate::Op::MapPlace
            | $crate::Op::MapDelete
            | $crate::Op::MapDeleteVoid
    };
}

/// Launches of kernels.
#[macro_export]
macro_rules! launch_ops {
    () => {
        $crate::Op::GpuLaunch | $crate::Op::GpuLaunchAsync | $crate::Op::GpuLaunchProfiled
    };
}

/// What lowered host code has: addresses, memory, calls by address.
#[macro_export]
macro_rules! low_host_ops {
    () => {
        $crate::Op::MemLoad
            | $crate::Op::MemStore
            | $crate::Op::PtrAdd
            | $crate::Op::StackSlot
            | $crate::Op::FnAddr
            | $crate::Op::TypeInfoAddr
            | $crate::Op::RtRaw
            | $crate::Op::CallAddr
    };
}

#[cfg(test)]
mod tests {
    use crate::Op;

    #[test]
    fn sets_are_disjoint() {
        for &op in Op::ALL {
            let sets = [
                matches!(op, crate::integer_ops!()),
                matches!(op, crate::trap_ops!()),
                matches!(op, crate::float_ops!()),
                matches!(op, crate::icmp_ops!()),
                matches!(op, crate::fcmp_ops!()),
                matches!(op, crate::vector_ops!()),
                matches!(op, crate::struct_ops!()),
                matches!(op, crate::id_ops!()),
                matches!(op, crate::atomic_ops!()),
                matches!(op, crate::subgroup_ops!()),
                matches!(op, crate::access_ops!()),
                matches!(op, crate::ownership_ops!()),
                matches!(op, crate::object_ops!()),
                matches!(op, crate::launch_ops!()),
                matches!(op, crate::low_host_ops!()),
            ];
            let named = matches!(
                op,
                Op::Cast
                    | Op::BitsCast
                    | Op::Select
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
                    | Op::Panic
            );
            let count = sets.iter().filter(|s| **s).count();
            assert_eq!(count, if named { 0 } else { 1 }, "{}", op.name());
        }
    }
}
