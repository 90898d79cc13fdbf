//! Whether a launch meets the preconditions of a kernel's unchecked body.

use magpie_types::kernel::{PreOp, Precondition};

/// Values that an expression may hold at a time; deeper ones count as "does not hold".
const STACK: usize = 16;

/// The parts of a launch that preconditions speak of.
pub(crate) struct LaunchShape<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) scalars: &'a [u8],
}

/// Whether all preconditions hold; `len` gives the number of elements of a buffer argument.
/// A malformed expression does not hold: the checked body then runs, which is always right.
pub(crate) fn all_hold(
    preconditions: &[Precondition],
    shape: &LaunchShape<'_>,
    len: impl Fn(u32) -> Option<u64>,
) -> bool {
    preconditions.iter().all(|p| match (evaluate(&p.bound, shape, &len), len(p.buffer)) {
        (Some(bound), Some(len)) => bound <= u128::from(len),
        _ => false,
    })
}

fn evaluate(
    program: &[PreOp],
    shape: &LaunchShape<'_>,
    len: &impl Fn(u32) -> Option<u64>,
) -> Option<u128> {
    let mut stack = [0u128; STACK];
    let mut depth = 0usize;
    for op in program {
        let binary: Option<fn(u128, u128) -> u128> = match op {
            PreOp::Add => Some(u128::saturating_add),
            PreOp::Sub => Some(u128::saturating_sub),
            PreOp::Mul => Some(u128::saturating_mul),
            PreOp::Min => Some(u128::min),
            PreOp::Max => Some(u128::max),
            PreOp::Dec => {
                let top = stack.get_mut(depth.checked_sub(1)?)?;
                *top = top.saturating_sub(1);
                continue;
            }
            PreOp::Const(_)
            | PreOp::Scalar { .. }
            | PreOp::Extent(_)
            | PreOp::Grid(_)
            | PreOp::Block(_)
            | PreOp::Length(_) => None,
        };
        if let Some(apply) = binary {
            let second = *stack.get(depth.checked_sub(1)?)?;
            let first = stack.get_mut(depth.checked_sub(2)?)?;
            *first = apply(*first, second);
            depth -= 1;
        } else {
            *stack.get_mut(depth)? = leaf(op, shape, len)?;
            depth += 1;
        }
    }
    (depth == 1).then_some(stack[0])
}

fn leaf(op: &PreOp, shape: &LaunchShape<'_>, len: &impl Fn(u32) -> Option<u64>) -> Option<u128> {
    let dim = |sizes: [u32; 3], dim: u8| sizes.get(usize::from(dim)).map(|&n| u128::from(n));
    match *op {
        PreOp::Const(value) => Some(u128::from(value)),
        PreOp::Scalar { offset, size } => unsigned(shape.scalars, offset, size),
        PreOp::Extent(d) => Some(dim(shape.grid, d)? * dim(shape.block, d)?),
        PreOp::Grid(d) => dim(shape.grid, d),
        PreOp::Block(d) => dim(shape.block, d),
        PreOp::Length(buffer) => len(buffer).map(u128::from),
        PreOp::Add | PreOp::Sub | PreOp::Mul | PreOp::Min | PreOp::Max | PreOp::Dec => None,
    }
}

/// An unsigned scalar argument in the byte order of the host.
fn unsigned(scalars: &[u8], offset: u32, size: u32) -> Option<u128> {
    let start = offset as usize;
    let bytes = scalars.get(start..start.checked_add(size as usize)?)?;
    match *bytes {
        [a] => Some(u128::from(a)),
        [a, b] => Some(u128::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Some(u128::from(u32::from_ne_bytes([a, b, c, d]))),
        _ => Some(u128::from(u64::from_ne_bytes(bytes.try_into().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(bound: &[PreOp], len: u64) -> bool {
        let mut scalars = [0; 16];
        scalars[..4].copy_from_slice(&1000u32.to_ne_bytes());
        scalars[4..6].copy_from_slice(&7u16.to_ne_bytes());
        scalars[8..].copy_from_slice(&u64::MAX.to_ne_bytes());
        let shape = LaunchShape { grid: [4, 2, 1], block: [64, 8, 1], scalars: &scalars };
        let precondition = Precondition { bound: bound.to_vec(), buffer: 0 };
        all_hold(&[precondition], &shape, |buffer| (buffer == 0).then_some(len))
    }

    #[test]
    fn bounds_compare_with_the_length() {
        use PreOp::*;
        let n = Scalar { offset: 0, size: 4 };
        assert!(holds(&[n], 1000) && !holds(&[n], 999));
        assert!(holds(&[Extent(0)], 256) && !holds(&[Extent(0)], 255));
        assert!(holds(&[Extent(1), Grid(0), Mul], 64) && !holds(&[Extent(1), Grid(0), Mul], 63));
        assert!(holds(&[n, Extent(0), Min], 256) && !holds(&[n, Extent(0), Max], 999));
        assert!(holds(&[Block(0), Dec, Const(2), Mul, Const(1), Add], 127));
        assert!(holds(&[Scalar { offset: 4, size: 2 }], 7));
        assert!(holds(&[Const(0), Dec], 0));
        assert!(holds(&[n, Const(1), Sub], 999) && holds(&[Const(1), n, Sub], 0));
        assert!(holds(&[Length(0)], 5) && !holds(&[Length(1)], 5));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        use PreOp::*;
        let huge = [Scalar { offset: 8, size: 8 }, Const(u64::MAX), Mul];
        let mut program = huge.to_vec();
        program.extend_from_slice(&[Const(2), Mul, Const(2), Mul, Const(2), Mul]);
        assert!(!holds(&program, u64::MAX));
    }

    #[test]
    fn malformed_programs_do_not_hold() {
        use PreOp::*;
        let deep = vec![Const(0); STACK + 1];
        let programs: [&[PreOp]; 9] = [
            &[],
            &[Add],
            &[Dec],
            &[Const(0), Add],
            &[Const(0), Const(0)],
            &[Grid(3)],
            &[Scalar { offset: 16, size: 1 }],
            &[Scalar { offset: 0, size: 3 }],
            &deep,
        ];
        for program in programs {
            assert!(!holds(program, u64::MAX), "{program:?}");
        }
    }

    fn op() -> impl Strategy<Value = PreOp> {
        prop_oneof![
            any::<u64>().prop_map(PreOp::Const),
            (0..20u32, 0..10u32).prop_map(|(offset, size)| PreOp::Scalar { offset, size }),
            (0..4u8).prop_map(PreOp::Extent),
            (0..4u8).prop_map(PreOp::Grid),
            (0..4u8).prop_map(PreOp::Block),
            (0..2u32).prop_map(PreOp::Length),
            Just(PreOp::Add),
            Just(PreOp::Sub),
            Just(PreOp::Mul),
            Just(PreOp::Min),
            Just(PreOp::Max),
            Just(PreOp::Dec),
        ]
    }

    proptest! {
        #[test]
        fn any_program_gives_an_answer(program in prop::collection::vec(op(), 0..40), len: u64) {
            holds(&program, len);
        }
    }
}
