//! Times of a device on the host's clock.

/// Where the two clocks met, and how fast the device's runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceClock {
    ticks: u64,
    host_ns: u64,
    /// Meaningful bits of a timestamp.
    bits: u32,
    /// Nanoseconds of a tick.
    period: f64,
}

impl DeviceClock {
    /// The device's clock showed `ticks` when the host's showed `host_ns`.
    pub(super) fn new(ticks: u64, host_ns: u64, bits: u32, period: f64) -> DeviceClock {
        DeviceClock { ticks, host_ns, bits: bits.clamp(1, 64), period }
    }

    /// The host's time of a timestamp that lies less than half of the clock's range away.
    pub(super) fn host_ns(&self, ticks: u64) -> u64 {
        let unused = 64 - self.bits;
        // Shifted to the top, the difference wraps and has its sign as the timestamps have.
        let difference = (ticks.wrapping_sub(self.ticks) << unused).cast_signed() >> unused;
        let nanoseconds = (difference as f64 * self.period) as i64;
        self.host_ns.saturating_add_signed(nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_the_meeting() {
        let clock = DeviceClock::new(1000, 50_000, 64, 10.0);
        assert_eq!(clock.host_ns(1000), 50_000);
        assert_eq!(clock.host_ns(1100), 51_000);
        assert_eq!(clock.host_ns(900), 49_000);
        assert_eq!(clock.host_ns(0), 40_000);
    }

    #[test]
    fn clocks_with_few_bits_wrap() {
        let clock = DeviceClock::new(0xFFFF_FFF0, 1_000_000, 32, 1.0);
        assert_eq!(clock.host_ns(0x10), 1_000_032);
        assert_eq!(clock.host_ns(0xFFFF_FFE0), 999_984);
    }
}
