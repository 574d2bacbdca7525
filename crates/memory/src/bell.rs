//! The doorbell: how a task sleeps and how senders wake it, and only sleepers.
//!
//! A task that has nothing to do stores `asleep`, looks once more for work, and waits on the
//! futex word. A sender publishes its message, then looks at `asleep`. Between each side's store
//! and load there must be a full barrier, or both could miss the other. On the sender's side
//! that barrier would cost a quarter of a small message, so it is moved to the sleeper: it runs
//! `membarrier(GLOBAL_EXPEDITED)`, which makes every core that runs a registered process pass a
//! barrier. Where more tasks than cores make sleeping common (or the kernel has no such call)
//! the job is *fenced* instead: senders run the fence and sleepers do not interrupt anybody.

use std::time::Duration;

use crate::sync::{AtomicU32, Ordering, compiler_fence, fence};
#[cfg(loom)]
pub use crate::sync::{futex_wait, futex_wake};

/// A task's doorbell in shared memory; zero is a valid start.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Bell {
    /// 1 from when a thread of the task is about to sleep until somebody rings.
    asleep: AtomicU32,
    /// The futex word: changes with every ring.
    rings: AtomicU32,
}

/// How fences are paid for in this job and process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fencing {
    /// Do senders of this process run a fence before they look at a bell?
    pub senders: bool,
    /// Do sleepers of this process interrupt the other cores?
    pub sleepers: bool,
}

impl Fencing {
    /// `fenced`: the job's senders all run fences (fixed when the job is made).
    pub fn of_job(fenced: bool) -> Fencing {
        Fencing {
            senders: fenced || !membarrier(REGISTER_GLOBAL_EXPEDITED),
            sleepers: !fenced,
        }
    }

    /// Can this kernel do without fences in senders?
    pub fn available() -> bool {
        membarrier(REGISTER_GLOBAL_EXPEDITED)
    }
}

impl Bell {
    /// Sender: call after the message is published. Costs a load while the task is awake.
    #[inline(always)]
    pub fn ring(&self, fencing: Fencing) {
        if fencing.senders {
            fence(Ordering::SeqCst);
        } else {
            // The sleeper's membarrier orders what the core does, not what the compiler did.
            compiler_fence(Ordering::SeqCst);
        }
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// Wake the task's sleepers, whatever they wait for.
    #[cold]
    pub fn wake(&self) {
        self.asleep.store(0, Ordering::Relaxed);
        self.rings.fetch_add(1, Ordering::SeqCst);
        futex_wake(&self.rings);
    }

    /// Sleep until somebody rings, `limit` passes, or `work()` (looked at after announcing the
    /// sleep) says there is something to do. Returns early now and then; callers loop.
    pub fn sleep(&self, fencing: Fencing, limit: Option<Duration>, work: impl FnOnce() -> bool) {
        let before = self.rings.load(Ordering::SeqCst);
        self.asleep.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if fencing.sleepers {
            membarrier(GLOBAL_EXPEDITED);
        }
        // `asleep` stays set if there is work: another thread of this task may be asleep too,
        // and a needless ring costs less than a missed one.
        if !work() {
            futex_wait(&self.rings, before, limit);
        }
    }

    /// Take back the announcement; only for a process in which no other thread can be asleep.
    pub fn awake(&self) {
        self.asleep.store(0, Ordering::Relaxed);
    }
}

/// Wait while `word` is `value`.
#[cfg(not(loom))]
pub fn futex_wait(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    let time = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    });
    let time = time.as_ref().map_or(std::ptr::null(), |t| t as *const _);
    // SAFETY: the word and the time live across the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            time,
        );
    }
}

/// Wake all who wait on `word`.
#[cfg(not(loom))]
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives across the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}

const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// The classic failure: a ring between the look and the sleep is lost, and both wait for ever.
    fn no_ring_is_lost(fenced: bool) {
        const ROUNDS: u64 = 20_000;
        let fencing = Fencing::of_job(fenced);
        let shared = Arc::new((Bell::default(), Bell::default(), AtomicU64::new(0)));
        let turn = move |mine: u64, bell: &Bell, other: &Bell, count: &AtomicU64| {
            for round in (mine..2 * ROUNDS).step_by(2) {
                while count.load(Ordering::Acquire) != round {
                    bell.sleep(fencing, None, || count.load(Ordering::Acquire) == round);
                }
                count.store(round + 1, Ordering::Release);
                other.ring(fencing);
            }
        };
        let there = shared.clone();
        let thread = std::thread::spawn(move || turn(1, &there.1, &there.0, &there.2));
        turn(0, &shared.0, &shared.1, &shared.2);
        thread.join().unwrap();
        assert_eq!(shared.2.load(Ordering::Relaxed), 2 * ROUNDS);
    }

    #[test]
    fn no_ring_is_lost_when_senders_fence() {
        no_ring_is_lost(true);
    }

    #[test]
    fn no_ring_is_lost_when_sleepers_interrupt() {
        no_ring_is_lost(false);
    }

    #[test]
    fn a_limit_ends_the_sleep() {
        let bell = Bell::default();
        let start = std::time::Instant::now();
        bell.sleep(
            Fencing::of_job(true),
            Some(Duration::from_millis(20)),
            || false,
        );
        assert!(start.elapsed() >= Duration::from_millis(19));
    }
}
