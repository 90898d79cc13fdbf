//! A stable sort that needs nothing of the order: one that contradicts itself gives some order of
//! the elements, never a panic or a loop.

use crate::memory::{AllocError, or_die};

/// Up to this length, insertion is faster than merging.
const RUN: usize = 16;

/// Sorts `len` elements of `stride` bytes so that no element is `greater` than a later one, where
/// the order allows it.
///
/// # Safety
/// `data` is the address of the elements, which nobody else uses during the call.
pub(crate) unsafe fn sort_elements(
    data: *mut u8,
    len: usize,
    stride: usize,
    greater: impl Fn(*const u8, *const u8) -> bool,
) {
    let mut order: Vec<*const u8> = or_die(with_capacity(len));
    order.extend((0..len).map(|i| data.wrapping_add(i * stride).cast_const()));
    let mut scratch = or_die(with_capacity(len));
    merge_sort(&mut order, &mut scratch, &greater);
    let mut sorted: Vec<u8> = or_die(with_capacity(len * stride));
    for element in order {
        // SAFETY: every entry of `order` is the address of an element.
        sorted.extend_from_slice(unsafe { std::slice::from_raw_parts(element, stride) });
    }
    // SAFETY: `sorted` holds each element once and lies elsewhere.
    unsafe { data.copy_from_nonoverlapping(sorted.as_ptr(), sorted.len()) }
}

fn with_capacity<T>(len: usize) -> Result<Vec<T>, AllocError> {
    let mut vec = Vec::new();
    let bytes = len.checked_mul(size_of::<T>());
    vec.try_reserve_exact(len).map_err(|_| AllocError { bytes })?;
    Ok(vec)
}

/// Sorts runs by insertion, then merges neighbours until one run is left.
fn merge_sort<T: Copy>(items: &mut Vec<T>, scratch: &mut Vec<T>, greater: &impl Fn(T, T) -> bool) {
    for run in items.chunks_mut(RUN) {
        for end in 1..run.len() {
            let mut at = end;
            while at > 0 && greater(run[at - 1], run[at]) {
                run.swap(at - 1, at);
                at -= 1;
            }
        }
    }
    let mut width = RUN;
    while width < items.len() {
        scratch.clear();
        for pair in items.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some((&a, left_rest)), Some((&b, right_rest))) =
                (left.split_first(), right.split_first())
            {
                if greater(a, b) {
                    scratch.push(b);
                    right = right_rest;
                } else {
                    scratch.push(a);
                    left = left_rest;
                }
            }
            scratch.extend_from_slice(left);
            scratch.extend_from_slice(right);
        }
        std::mem::swap(items, scratch);
        width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted_by(mut items: Vec<(u8, usize)>, greater: fn(u8, u8) -> bool) -> Vec<(u8, usize)> {
        let mut scratch = Vec::new();
        merge_sort(&mut items, &mut scratch, &|a: (u8, usize), b: (u8, usize)| greater(a.0, b.0));
        items
    }

    proptest! {
        #[test]
        fn agrees_with_the_stable_sort_of_the_standard_library(keys in prop::collection::vec(0u8..9, 0..300)) {
            let items: Vec<_> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            prop_assert_eq!(sorted_by(items, |a, b| a > b), expected);
        }

        #[test]
        fn a_contradictory_order_keeps_the_elements(keys in prop::collection::vec(0u8..9, 0..300)) {
            let items: Vec<_> = keys.into_iter().zip(0..).collect();
            let mut result = sorted_by(items.clone(), |a, b| (a ^ b) % 3 == 1);
            result.sort_by_key(|item| item.1);
            prop_assert_eq!(result, items);
        }
    }
}
