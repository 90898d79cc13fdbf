//! The number of live objects, for leak tests.
//!
//! Each thread counts for itself, so counting costs a plain addition. A counter outlives its
//! thread and is passed on to a later one.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Objects made less objects freed by the threads that had this counter. Written to by one thread
/// at a time; on a cache line of its own.
#[repr(align(64))]
struct Counter(AtomicI64);

struct Registry {
    all: Vec<&'static Counter>,
    /// Those whose thread has ended.
    unused: Vec<&'static Counter>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { all: Vec::new(), unused: Vec::new() });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For threads whose own counter was already given back.
static ENDING_THREADS: Counter = Counter(AtomicI64::new(0));

thread_local! {
    static MINE: Cell<Option<&'static Counter>> = const { Cell::new(None) };
    static LOAN: Loan = Loan::new();
}

/// A counter that is given back at the end of the thread.
struct Loan(&'static Counter);

impl Loan {
    fn new() -> Loan {
        let mut registry = registry();
        Loan(registry.unused.pop().unwrap_or_else(|| {
            let counter: &'static Counter = Box::leak(Box::new(Counter(AtomicI64::new(0))));
            registry.all.push(counter);
            counter
        }))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        MINE.set(None);
        registry().unused.push(self.0);
    }
}

/// Adds to the count.
#[inline]
pub(crate) fn add(change: i64) {
    match MINE.get() {
        // No other thread writes, so load and store make one addition.
        Some(Counter(count)) => {
            count.store(count.load(Ordering::Relaxed) + change, Ordering::Relaxed);
        }
        None => add_first(change),
    }
}

#[cold]
fn add_first(change: i64) {
    match LOAN.try_with(|loan| loan.0) {
        Ok(counter) => {
            MINE.set(Some(counter));
            add(change);
        }
        Err(_) => _ = ENDING_THREADS.0.fetch_add(change, Ordering::Relaxed),
    }
}

/// Objects made and not yet freed, by all threads.
pub(crate) fn count() -> i64 {
    let load = |counter: &Counter| counter.0.load(Ordering::Relaxed);
    load(&ENDING_THREADS) + registry().all.iter().map(|&counter| load(counter)).sum::<i64>()
}

/// The counter of this thread, which tests on other threads do not disturb.
#[cfg(test)]
pub(crate) fn of_this_thread() -> i64 {
    add(0);
    MINE.get().map_or(0, |counter| counter.0.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_outlives_its_thread() {
        let counter = std::thread::spawn(|| {
            add(3);
            add(-1);
            MINE.get().unwrap()
        });
        let counter = counter.join().unwrap();
        assert!(registry().all.iter().any(|&known| std::ptr::eq(known, counter)));
        // Threads that come later go on with it.
        assert!(counter.0.load(Ordering::Relaxed) >= 2);
        counter.0.fetch_sub(2, Ordering::Relaxed);
    }
}
