//! A clock for comparing copies with each other. Reading it takes a few nanoseconds; its unit depends on the processor.

/// Returns the ticks since an arbitrary moment. Two readings on one core can be compared; the unit does not change
/// while the process runs.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Returns the number of ticks in this many microseconds. The first call measures the rate, which takes 200 us.
pub fn ticks_of(microseconds: u64) -> u64 {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};
    const CALIBRATION_TIME: Duration = Duration::from_micros(200);
    /// Ticks per millisecond.
    static RATE: OnceLock<u64> = OnceLock::new();
    let rate = RATE.get_or_init(|| {
        let (start, first) = (Instant::now(), ticks());
        let took = loop {
            let took = start.elapsed();
            if took >= CALIBRATION_TIME {
                break took;
            }
        };
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        ticks().wrapping_sub(first).saturating_mul(1_000_000) / nanoseconds
    });
    rate.saturating_mul(microseconds) / 1000
}

/// Returns the ticks per KiB if `bytes` took `ticks`, rounded up.
#[inline(always)]
pub fn cost_of_kib(bytes: usize, ticks: u64) -> u64 {
    (ticks << 10).div_ceil(bytes.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn ticks_go_as_fast_as_was_measured() {
        // Another process may have the core between two readings, so use the closest of several measurements.
        let off = |_| {
            let (start, first) = (Instant::now(), ticks());
            while ticks().wrapping_sub(first) < ticks_of(1000) {}
            start.elapsed().as_micros().abs_diff(1000)
        };
        let nearest = (0..20).map(off).min();
        assert!(nearest < Some(200), "{nearest:?} us off");
    }
}
