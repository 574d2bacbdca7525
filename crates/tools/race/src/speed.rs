//! The speed of the machine, apart from any library: one way of a cache line between two cores.
//!
//! Virtual machines change under the race: when the two processors are moved further apart, every
//! latency is several times what it was, for minutes. The driver measures this before and after
//! each launch, so that launches of different times can be told apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::stats;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A cache line of its own (two: neighbours are fetched together).
#[repr(align(128))]
struct Line(AtomicU64);

/// Two processors to measure between, the same two that tasks 0 and 1 are pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair(usize, usize);

impl Pair {
    /// The first two processors this process may use; none when there is only one.
    pub fn here() -> Option<Pair> {
        let mut allowed = allowed().into_iter();
        Some(Pair(allowed.next()?, allowed.next()?))
    }
}

/// The processors this process may use.
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
    // A refusal only makes the figure noisier.
    let _ = sched_setaffinity(None, &set);
}

const ROUNDS: usize = 12;
const TURNS: u64 = 4000;

/// Nanoseconds one way: the median of several rounds, so that a moment's disturbance is left out.
///
/// The waiting loop is bare on purpose. With a pause in it the figure is smaller, but falls by half and
/// rises again with the luck of two loops in step; bare, it repeats within 5 % on a steady machine.
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
            // The other thread may not have a processor of its own just now.
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
