//! How many workgroups a `forall` launches. Devices take a limited number in each dimension: what
//! one index has beyond it goes over to the second dimension, and a `forall` over several indices
//! is launched in parts.

use super::body::{Body, Val};
use magpie_mpir::{Op, Value};
use magpie_types::fixed;

/// Workgroups in one dimension at most, on every device.
const MAX_GROUPS: i64 = 65535;

/// One dimension of a launch, as host values.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) start: Value,
    /// Number of indices, possibly negative.
    pub(super) extent: Value,
    /// Both, where the kernel knows them.
    pub(super) known: Option<(i64, i64)>,
    /// Invocations of a workgroup.
    pub(super) block: u32,
}

impl Axis {
    /// Whether its workgroups may be too many.
    pub(super) fn is_long(&self) -> bool {
        self.known.is_none_or(|(_, n)| n > self.most())
    }

    /// Indices of a launch at most.
    fn most(&self) -> i64 {
        MAX_GROUPS * i64::from(self.block)
    }
}

/// The part of an axis that a launch is for: its start and its length.
pub(super) type Part = [Value; 2];

impl Body<'_, '_, '_> {
    /// The dimensions of a `forall` with these ranges and this workgroup.
    pub(super) fn axes(&mut self, ends: &[(Val, Val)], block: [u32; 3]) -> Vec<Axis> {
        let mut axes = Vec::new();
        for (&(a, b), block) in ends.iter().zip(block) {
            let extent = self.b.same(Op::ISub, &[b.v, a.v]);
            let bits = |body: &mut Self, v| body.b.func().as_bits(v).map(|n| n as i64);
            let known = match (bits(self, a.v), bits(self, b.v)) {
                (Some(x), Some(y)) => y.checked_sub(x).map(|n| (x, n)),
                _ => None,
            };
            // What does not fit the indices of a launch is refused when it is launched.
            let fits = |n: i64| i32::try_from(n).is_ok();
            let known = known.filter(|&(start, n)| fits(start) && fits(n));
            let axis = Axis { start: a.v, extent, known, block };
            // The parts of a long axis are not known.
            let known = known.filter(|_| ends.len() == 1 || !axis.is_long());
            axes.push(Axis { known, ..axis });
        }
        axes
    }

    /// Calls `launch` for each part of the index space. One index has one part.
    pub(super) fn in_parts(
        &mut self,
        axes: &[Axis],
        parts: &mut Vec<Part>,
        launch: &mut dyn FnMut(&mut Self, &[Part]),
    ) {
        let Some(axis) = axes.get(parts.len()) else { return launch(self, parts) };
        if axes.len() == 1 || !axis.is_long() {
            parts.push([axis.start, axis.extent]);
            self.in_parts(axes, parts, launch);
            parts.pop();
            return;
        }
        let most = self.i64(axis.most());
        let count = self.divided_up(axis.extent, axis.most());
        self.count_to(count, &mut |body, n| {
            let before = body.b.same(Op::IMul, &[n, most]);
            let start = body.b.same(Op::IAdd, &[axis.start, before]);
            let rest = body.b.same(Op::ISub, &[axis.extent, before]);
            let extent = body.b.same(Op::ISmin, &[rest, most]);
            parts.push([start, extent]);
            body.in_parts(axes, parts, launch);
            parts.pop();
        });
    }

    /// The numbers of workgroups for a part of the index space.
    pub(super) fn groups(&mut self, axes: &[Axis], parts: &[Part]) -> Vec<Value> {
        let grid: Vec<Value> = axes
            .iter()
            .zip(parts)
            .map(|(axis, part)| self.divided_up(part[1], i64::from(axis.block)))
            .collect();
        let grid = match (&grid[..], axes) {
            (&[all], [axis]) if axis.is_long() => {
                let y = self.divided_up(all, MAX_GROUPS);
                let one = self.i64(1);
                let rest = self.b.same(Op::ISub, &[y, one]);
                let sum = self.b.same(Op::IAdd, &[all, rest]);
                vec![self.b.same(Op::IUdiv, &[sum, y]), y]
            }
            _ => grid,
        };
        let mut sizes: Vec<Value> = grid.into_iter().map(|g| self.b.cast(g, fixed::U32)).collect();
        sizes.resize_with(3, || self.b.func().const_u32(1));
        sizes
    }

    /// `n / by`, rounded up.
    fn divided_up(&mut self, n: Value, by: i64) -> Value {
        let (size, below) = (self.i64(by), self.i64(by - 1));
        let sum = self.b.same(Op::IAdd, &[n, below]);
        self.b.same(Op::IUdiv, &[sum, size])
    }
}
