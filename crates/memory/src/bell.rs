//! The doorbell: how a task sleeps and how senders wake it, and only sleepers.
//!
//! A task that has nothing to do stores `asleep`, looks once more for work, and waits on the
//! futex word. A sender publishes its message, then looks at `asleep`. Between each side's store
//! and load there must be a full barrier, or both could miss the other. On the sender's side
//! that barrier would cost a quarter of a small message, so it is moved to the sleeper: it runs
//! `membarrier(GLOBAL_EXPEDITED)`, which makes every core that runs a registered process pass a
//! barrier. Where more tasks than cores make sleeping common (or the kernel has no such call)
//! senders pay instead: they run the fence and sleepers do not interrupt anybody ([`Payers`]).

use std::ptr::NonNull;
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

/// Who pays for the fences of a job: a word that its tasks share. It can change while the job runs, because a change is
/// made in two steps with a barrier of all cores between them, and both sides pay meanwhile:
///
/// * *To the senders.* A sender publishes, reads this word, and looks at the bell. If it reads that it need not pay, it has
///   published before that barrier, so whoever sleeps without paying, which is after the barrier, sees the message.
/// * *To the sleepers.* A sleeper announces its sleep, runs its fence, and reads this word. If it reads that it need not
///   pay, its announcement was to be seen before the word changed, so whoever sends without paying sees it.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Payers(AtomicU32);

/// Zero is a valid start.
const SLEEPERS_PAY: u32 = 0;
const BOTH_PAY: u32 = 1;
const SENDERS_PAY: u32 = 2;

impl Payers {
    /// Before anybody else reads it.
    pub fn begin(&self, senders: bool) {
        let word = if senders { SENDERS_PAY } else { SLEEPERS_PAY };
        self.0.store(word, Ordering::Relaxed);
    }

    /// Let the senders pay from now on, or the sleepers. One thread at a time.
    pub fn change(&self, senders: bool) {
        let word = if senders { SENDERS_PAY } else { SLEEPERS_PAY };
        if self.0.load(Ordering::Relaxed) == word {
            return;
        }
        self.0.store(BOTH_PAY, Ordering::SeqCst);
        if membarrier(GLOBAL_EXPEDITED) {
            self.0.store(word, Ordering::SeqCst);
        }
    }

    fn senders(&self) -> bool {
        self.0.load(Ordering::Acquire) != SLEEPERS_PAY
    }

    fn sleepers(&self) -> bool {
        self.0.load(Ordering::Acquire) != SENDERS_PAY
    }
}

/// How fences are paid for in this job and process.
#[derive(Clone, Copy, Debug)]
pub struct Fencing {
    payers: NonNull<Payers>,
    /// The barriers of others do not reach this process.
    unreached: bool,
}

// SAFETY: leads to an atomic, for as long as the value is used (`of_job`).
unsafe impl Send for Fencing {}
// SAFETY: the same.
unsafe impl Sync for Fencing {}

impl Fencing {
    /// # Safety
    /// The word is there for as long as the result is used.
    pub unsafe fn of_job(payers: &Payers) -> Fencing {
        Fencing {
            payers: NonNull::from(payers),
            unreached: !Fencing::available(),
        }
    }

    /// Can this kernel do without fences in senders? From here on this process can.
    #[cfg(not(loom))]
    pub fn available() -> bool {
        membarrier(REGISTER_GLOBAL_EXPEDITED)
    }

    /// No model has such barriers.
    #[cfg(loom)]
    pub fn available() -> bool {
        false
    }

    #[inline(always)]
    fn payers(&self) -> &Payers {
        // SAFETY: as `of_job` was promised.
        unsafe { self.payers.as_ref() }
    }

    /// Between what a task publishes and its look at who sleeps.
    #[inline(always)]
    pub fn before_look(&self) {
        // The sleeper's membarrier orders what the core does, not what the compiler did.
        compiler_fence(Ordering::SeqCst);
        if self.unreached || self.payers().senders() {
            fence(Ordering::SeqCst);
        }
    }
}

impl Bell {
    /// Sender: call after the message is published. Costs a load while the task is awake.
    #[inline(always)]
    pub fn ring(&self, fencing: Fencing) {
        fencing.before_look();
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
        if fencing.payers().sleepers() {
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
    fn no_ring_is_lost(senders: bool, changes: u32) {
        const ROUNDS: u64 = 20_000;
        let payers: &'static Payers = Box::leak(Box::default());
        payers.begin(senders);
        // SAFETY: it is never dropped.
        let fencing = unsafe { Fencing::of_job(payers) };
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
        let changing = std::thread::spawn(move || {
            for change in 0..changes {
                payers.change((change % 2 == 0) != senders);
                std::thread::yield_now();
            }
        });
        turn(0, &shared.0, &shared.1, &shared.2);
        thread.join().unwrap();
        changing.join().unwrap();
        assert_eq!(shared.2.load(Ordering::Relaxed), 2 * ROUNDS);
    }

    #[test]
    fn no_ring_is_lost_when_senders_fence() {
        no_ring_is_lost(true, 0);
    }

    #[test]
    fn no_ring_is_lost_when_sleepers_interrupt() {
        no_ring_is_lost(false, 0);
    }

    #[test]
    fn no_ring_is_lost_when_it_changes_who_pays() {
        no_ring_is_lost(true, 20_000);
    }

    #[test]
    fn a_limit_ends_the_sleep() {
        let bell = Bell::default();
        let start = std::time::Instant::now();
        let payers = Payers::default();
        bell.sleep(
            // SAFETY: it lives longer.
            unsafe { Fencing::of_job(&payers) },
            Some(Duration::from_millis(20)),
            || false,
        );
        assert!(start.elapsed() >= Duration::from_millis(19));
    }
}
