//! The number of live objects, for leak tests.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Threads spread over several counters, each on its own cache line, so that they do not slow
/// each other down.
const STRIPES: usize = 16;

#[repr(align(64))]
struct Stripe(AtomicI64);

static COUNTS: [Stripe; STRIPES] = [const { Stripe(AtomicI64::new(0)) }; STRIPES];

/// Adds to the count.
#[inline]
pub(crate) fn add(change: i64) {
    COUNTS[stripe()].0.fetch_add(change, Ordering::Relaxed);
}

/// Objects made and not yet freed, by all threads.
pub(crate) fn count() -> i64 {
    COUNTS.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
}

#[inline]
fn stripe() -> usize {
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(STRIPES) };
    }
    let mine = MINE.get();
    if mine < STRIPES {
        return mine;
    }
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let mine = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES;
    MINE.set(mine);
    mine
}
