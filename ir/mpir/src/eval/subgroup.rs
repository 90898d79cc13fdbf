//! Operations among the invocations of a subgroup.

use super::AtomicOp;
use crate::Op;
use magpie_types::PrimType;

/// What the invocations of a subgroup compute together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SubgroupOp {
    /// Operand 0 of lane operand 1.
    Shuffle,
    /// Operand 0 of the lane operand 1 further up.
    ShuffleDown,
    /// Operand 0 of the lane operand 1 further down.
    ShuffleUp,
    /// Operand 0 of the lane whose number differs in the bits of operand 1.
    ShuffleXor,
    /// The sum, added in the order of the lanes.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum over the lanes before.
    PrefixSum,
    /// Whether operand 0 is true in a lane.
    Any,
    /// Whether operand 0 is true in all lanes.
    All,
    /// The lanes in which operand 0 is true, as bits.
    Ballot,
}

const OPS: &[(Op, SubgroupOp)] = &[
    (Op::GpuSubgroupShuffle, SubgroupOp::Shuffle),
    (Op::GpuSubgroupBroadcast, SubgroupOp::Shuffle),
    (Op::GpuMetalSimdShuffle, SubgroupOp::Shuffle),
    (Op::GpuSubgroupShuffleDown, SubgroupOp::ShuffleDown),
    (Op::GpuSubgroupShuffleUp, SubgroupOp::ShuffleUp),
    (Op::GpuSubgroupShuffleXor, SubgroupOp::ShuffleXor),
    (Op::GpuSubgroupSum, SubgroupOp::Sum),
    (Op::GpuMetalSimdSum, SubgroupOp::Sum),
    (Op::GpuSubgroupMin, SubgroupOp::Min),
    (Op::GpuSubgroupMax, SubgroupOp::Max),
    (Op::GpuSubgroupPrefixSum, SubgroupOp::PrefixSum),
    (Op::GpuMetalSimdPrefixSum, SubgroupOp::PrefixSum),
    (Op::GpuSubgroupAny, SubgroupOp::Any),
    (Op::GpuSubgroupAll, SubgroupOp::All),
    (Op::GpuSubgroupBallot, SubgroupOp::Ballot),
];

impl SubgroupOp {
    /// Every operation, by its number.
    pub const ALL: &'static [SubgroupOp] = &[
        SubgroupOp::Shuffle,
        SubgroupOp::ShuffleDown,
        SubgroupOp::ShuffleUp,
        SubgroupOp::ShuffleXor,
        SubgroupOp::Sum,
        SubgroupOp::Min,
        SubgroupOp::Max,
        SubgroupOp::PrefixSum,
        SubgroupOp::Any,
        SubgroupOp::All,
        SubgroupOp::Ballot,
    ];

    /// What an op computes, if invocations of a subgroup meet at it.
    pub fn of(op: Op) -> Option<SubgroupOp> {
        OPS.iter().find(|(o, _)| *o == op).map(|&(_, s)| s)
    }

    /// The type of the result for operands of type `p`.
    pub fn result_type(self, p: PrimType) -> PrimType {
        match self {
            SubgroupOp::Ballot => PrimType::U64,
            SubgroupOp::Any | SubgroupOp::All => PrimType::Bool,
            SubgroupOp::Shuffle
            | SubgroupOp::ShuffleDown
            | SubgroupOp::ShuffleUp
            | SubgroupOp::ShuffleXor
            | SubgroupOp::Sum
            | SubgroupOp::Min
            | SubgroupOp::Max
            | SubgroupOp::PrefixSum => p,
        }
    }

    /// The result of each lane. `lanes` has the operands of a lane, of which the first has type `p`,
    /// and `None` where there is no active invocation. A value from such a lane is the lane's own
    /// value; devices leave it open.
    pub fn apply(self, p: PrimType, lanes: &[Option<[u64; 2]>], results: &mut [u64]) {
        let active = || lanes.iter().flatten().map(|&[v, _]| v);
        let fold = |op: AtomicOp| active().reduce(|a, b| op.apply(p, a, b, 0)).unwrap_or(0);
        let is_true = |v: u64| v & 1 == 1;
        let common = match self {
            SubgroupOp::Sum => Some(fold(AtomicOp::Add)),
            SubgroupOp::Min => Some(fold(AtomicOp::Min)),
            SubgroupOp::Max => Some(fold(AtomicOp::Max)),
            SubgroupOp::Any => Some(u64::from(active().any(is_true))),
            SubgroupOp::All => Some(u64::from(active().all(is_true))),
            SubgroupOp::Ballot => {
                let bits = lanes.iter().take(64).enumerate();
                let set = bits.filter(|(_, l)| l.is_some_and(|[v, _]| is_true(v)));
                Some(set.fold(0, |mask, (n, _)| mask | 1 << n))
            }
            SubgroupOp::Shuffle
            | SubgroupOp::ShuffleDown
            | SubgroupOp::ShuffleUp
            | SubgroupOp::ShuffleXor
            | SubgroupOp::PrefixSum => None,
        };
        let mut before = None;
        for (lane, (operands, result)) in (0u32..).zip(lanes.iter().zip(results)) {
            let Some([own, other]) = *operands else { continue };
            let other = other as u32;
            let value_of = |lane: u32| {
                let there = lanes.get(lane as usize).copied().flatten();
                there.map_or(own, |[v, _]| v)
            };
            *result = match self {
                SubgroupOp::Shuffle => value_of(other),
                SubgroupOp::ShuffleDown => value_of(lane.wrapping_add(other)),
                SubgroupOp::ShuffleUp => value_of(lane.wrapping_sub(other)),
                SubgroupOp::ShuffleXor => value_of(lane ^ other),
                SubgroupOp::PrefixSum => {
                    let sum = before.unwrap_or(0);
                    before = Some(before.map_or(own, |b| AtomicOp::Add.apply(p, b, own, 0)));
                    sum
                }
                SubgroupOp::Sum
                | SubgroupOp::Min
                | SubgroupOp::Max
                | SubgroupOp::Any
                | SubgroupOp::All
                | SubgroupOp::Ballot => common.unwrap_or(0),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meeting_of_a_subgroup_has_a_meaning() {
        for &op in Op::ALL {
            let meets = op.info().convergent && matches!(op, crate::subgroup_ops!());
            assert_eq!(SubgroupOp::of(op).is_some(), meets, "{}", op.name());
        }
        for (n, &op) in SubgroupOp::ALL.iter().enumerate() {
            assert_eq!(op as usize, n);
        }
    }

    #[test]
    fn lanes_that_are_not_active_give_nothing() {
        let lanes = [Some([3, 1]), None, Some([5, 1]), Some([2, 1])];
        let run = |op: SubgroupOp, p| {
            let mut results = [77; 4];
            op.apply(p, &lanes, &mut results);
            results
        };
        assert_eq!(run(SubgroupOp::Sum, PrimType::U32), [10, 77, 10, 10]);
        assert_eq!(run(SubgroupOp::Min, PrimType::I8), [2, 77, 2, 2]);
        assert_eq!(run(SubgroupOp::Max, PrimType::U64), [5, 77, 5, 5]);
        assert_eq!(run(SubgroupOp::PrefixSum, PrimType::U32), [0, 77, 3, 8]);
        // From lanes 1, 3 and 4.
        assert_eq!(run(SubgroupOp::ShuffleDown, PrimType::U32), [3, 77, 2, 2]);
        assert_eq!(run(SubgroupOp::ShuffleUp, PrimType::U32), [3, 77, 5, 5]);
        assert_eq!(run(SubgroupOp::ShuffleXor, PrimType::U32), [3, 77, 2, 5]);
        assert_eq!(run(SubgroupOp::Shuffle, PrimType::U32), [3, 77, 5, 2]);
        assert_eq!(run(SubgroupOp::Ballot, PrimType::Bool), [5, 77, 5, 5]);
        assert_eq!(run(SubgroupOp::All, PrimType::Bool), [0, 77, 0, 0]);
        assert_eq!(run(SubgroupOp::Any, PrimType::Bool), [1, 77, 1, 1]);
    }
}
