//! Counters of what a program's device-resident bindings cost.

use std::sync::atomic::{AtomicI64, Ordering};

/// What is counted; the discriminant is the number in the C ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cost {
    Upload,
    Launch,
    Readback,
    Fence,
    Release,
}

static COUNTERS: [AtomicI64; 5] = [const { AtomicI64::new(0) }; 5];

/// One more.
pub(crate) fn count(cost: Cost) {
    COUNTERS[cost as usize].fetch_add(1, Ordering::Relaxed);
}

/// A counter by its number; 0 for a number without one.
pub(crate) fn get(which: i32) -> i64 {
    let counter = usize::try_from(which).ok().and_then(|n| COUNTERS.get(n));
    counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
}

/// Sets all counters to 0.
pub(crate) fn reset() {
    COUNTERS.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
}
