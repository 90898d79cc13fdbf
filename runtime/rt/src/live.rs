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
    #[cfg(test)]
    OF_THIS_THREAD.set(OF_THIS_THREAD.get() + change);
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

#[cfg(test)]
thread_local! {
    static OF_THIS_THREAD: Cell<i64> = const { Cell::new(0) };
}

/// Objects made less objects freed on this thread: other tests do not disturb it.
#[cfg(test)]
pub(crate) fn of_this_thread() -> i64 {
    OF_THIS_THREAD.get()
}
