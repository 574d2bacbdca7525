//! The speed of the machine, independent of any library: the one-way time of a cache line between two cores.
//!
//! Virtual machines change during a race. If the two processors are moved further apart, every latency is several times
//! as large for minutes. The driver measures this before and after each launch, so that launches at different speeds
//! can be recognised.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::stats;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A value with a cache line of its own. It is aligned to two lines, since neighbouring lines are fetched together.
#[repr(align(128))]
struct Line(AtomicU64);

/// The two processors between which the speed is measured: the same ones that tasks 0 and 1 are pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair(usize, usize);

impl Pair {
    /// Returns the first two processors that this process may use, or `None` if there is only one.
    pub fn here() -> Option<Pair> {
        let mut allowed = allowed().into_iter();
        Some(Pair(allowed.next()?, allowed.next()?))
    }
}

/// Returns the processors that this process may use.
pub fn allowed() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect(),
        Err(_) => Vec::new(),
    }
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // If pinning fails, the result is only noisier.
    let _ = sched_setaffinity(None, &set);
}

const ROUNDS: usize = 12;
const TURNS: u64 = 4000;

/// Returns the one-way time in ns: the median of several rounds, so that a short disturbance does not count.
///
/// The waiting loop is a plain spin on purpose. With a pause instruction the time is shorter, but it varies by a factor
/// of two with how the two loops happen to be in step. The plain loop repeats within 5 % on a steady machine.
pub fn line_ns(pair: Pair) -> f64 {
    let there = Line(AtomicU64::new(0));
    let back = Line(AtomicU64::new(0));
    let total = ROUNDS as u64 * TURNS;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(pair.1);
            (1..=total).for_each(|turn| {
                await_value(&there, turn);
                back.0.store(turn, Ordering::Release);
            });
        });
        let timer = scope.spawn(|| {
            pin(pair.0);
            let round_ns = |round: u64| {
                let start = Instant::now();
                for turn in round * TURNS + 1..=(round + 1) * TURNS {
                    there.0.store(turn, Ordering::Release);
                    await_value(&back, turn);
                }
                start.elapsed().as_secs_f64() / TURNS as f64 / 2.0 * 1e9
            };
            stats::median(&(0..ROUNDS as u64).map(round_ns).collect::<Vec<_>>())
        });
        timer.join().unwrap_or(f64::NAN)
    })
}

fn await_value(line: &Line, value: u64) {
    let mut spins = 0u32;
    while line.0.load(Ordering::Acquire) != value {
        spins += 1;
        if spins.is_multiple_of(100_000) {
            // The other thread may have no processor of its own at the moment.
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_nanoseconds_not_milliseconds() {
        if let Some(pair) = Pair::here() {
            let ns = line_ns(pair);
            assert!(ns > 1.0 && ns < 1e6, "{ns}");
        }
    }
}
