//! A clock for comparing copies with each other: it is read in a few nanoseconds, and its unit is the processor's affair.

/// Ticks since some moment. Two readings on one core can be compared; the unit is the same as long as the process runs.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction.
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

/// The ticks that a KiB took, where so many bytes took so many; rounded up.
#[inline(always)]
pub fn cost_of_kib(bytes: usize, ticks: u64) -> u64 {
    (ticks << 10).div_ceil(bytes.max(1) as u64)
}
