//! The clock that all profiling events share.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds of a monotonic clock that starts with its first use.
pub(crate) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
