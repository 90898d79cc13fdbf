//! Which bytes of a launch go to which argument slot of a kernel function.
//!
//! Buffers have the first slots, in order. Behind them each scalar has one, and then the lengths of
//! buffers together (`magpie_gpu_msl` declares them so).

use magpie_types::kernel::{KernelLayout, ParamLayout};
use std::ops::Range;

/// A slot behind the buffers and its bytes in the scalar block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub(super) index: usize,
    pub(super) bytes: Range<usize>,
}

/// The slots behind the buffers of a kernel.
pub(super) fn slots(layout: &KernelLayout) -> Vec<Slot> {
    let block = layout.block_size as usize;
    let mut slots = Vec::new();
    let mut index = layout.num_buffers();
    let mut push = |bytes: Range<usize>| {
        slots.push(Slot { index, bytes });
        index += 1;
    };
    for param in &layout.params {
        if let &ParamLayout::Scalar { offset, size, .. } = param {
            let start = offset as usize;
            // Metal's types may be larger, as vectors of three are; never than what is left.
            push(start..(start + (size as usize).next_multiple_of(16)).min(block));
        }
    }
    if !layout.hidden.is_empty() {
        push(layout.scalar_size as usize..block);
    }
    slots
}

/// A buffer argument.
#[derive(Clone, Copy)]
pub(super) struct Argument {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) writes: bool,
}

/// Whether two arguments share bytes that the kernel may write. Metal's compiler assumes that they
/// do not, so such a launch takes other code.
pub(super) fn overlap(arguments: impl Iterator<Item = Argument> + Clone) -> bool {
    let shared = |a: Argument, b: Argument| {
        (a.writes || b.writes)
            && a.handle == b.handle
            && a.offset < b.offset + b.bytes
            && b.offset < a.offset + a.bytes
    };
    let mut rest = arguments;
    while let Some(a) = rest.next() {
        if rest.clone().any(|b| shared(a, b)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::support;
    use magpie_types::fixed;
    use magpie_types::kernel::{GpuBackend, HiddenLength};

    #[test]
    fn scalars_and_lengths_follow_the_buffers() {
        let word = |index| support::buffer(index, fixed::U32, 4, true);
        let params = vec![word(0), support::scalar(0), word(1), support::scalar(4)];
        let mut layout = support::layout("k", params, GpuBackend::Msl);
        assert_eq!(
            slots(&layout),
            [Slot { index: 2, bytes: 0..16 }, Slot { index: 3, bytes: 4..16 },]
        );
        layout.hidden = vec![HiddenLength { buffer: 1, offset: 16, size: 8 }];
        layout.block_size = 32;
        assert_eq!(slots(&layout)[1], Slot { index: 3, bytes: 4..20 });
        assert_eq!(slots(&layout)[2], Slot { index: 4, bytes: 16..32 });
        assert!(slots(&support::layout("k", vec![word(0)], GpuBackend::Msl)).is_empty());
    }

    #[test]
    fn written_bytes_that_two_arguments_share() {
        let argument = |handle, offset, writes| Argument { handle, offset, bytes: 16, writes };
        let check = |list: &[Argument]| overlap(list.iter().copied());
        assert!(check(&[argument(1, 0, false), argument(1, 0, true)]));
        assert!(check(&[argument(2, 0, true), argument(1, 0, true), argument(1, 15, false)]));
        assert!(!check(&[argument(1, 0, false), argument(1, 0, false)]));
        assert!(!check(&[argument(1, 0, true), argument(1, 16, true)]));
        assert!(!check(&[argument(1, 0, true), argument(2, 0, true)]));
        assert!(!check(&[]));
    }
}
