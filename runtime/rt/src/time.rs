//! `std.time`.

use crate::io;
use crate::panic::guarded;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// See [`magpie_types::abi::RtFn::NowNs`]. Counts from the first call in the process.
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// See [`magpie_types::abi::RtFn::SleepMs`]. What was printed before appears before the sleep.
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_sleep_ms(ms: u64) {
    guarded(|| {
        io::flush_stdout();
        std::thread::sleep(Duration::from_millis(ms));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_takes_its_time() {
        let before = mp_rt_now_ns();
        mp_rt_sleep_ms(3);
        assert!(mp_rt_now_ns() - before >= 3_000_000);
    }
}
