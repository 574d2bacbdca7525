//! The doorbell: how a task sleeps, and how senders wake it without a cost while it is awake.
//!
//! A task that has nothing to do stores `asleep`, checks once more for work, and waits on the futex word. A sender
//! publishes its message, then reads `asleep`. Between each side's store and load there must be a full barrier, or both
//! could miss the other. On the sender's side that barrier would cost a quarter of a small message, so it is moved to
//! the sleeper: it runs `membarrier(GLOBAL_EXPEDITED)`, which makes every core that runs a registered process execute a
//! barrier. Where there are more tasks than cores, so that sleeping is common (or the kernel has no such call), the
//! senders pay instead: they run the fence, and sleepers interrupt no other core ([`Payers`]).
//!
//! The kernel, or a seccomp profile of one of the tasks, may refuse either half of `membarrier`. The halves concern
//! different sides:
//!
//! | refused | concerns | what it does |
//! |---|---|---|
//! | registering | a *sender*: the barriers of sleepers do not reach its core | it runs a fence before each read of
//! `asleep` ([`Fencing`]) |
//! | running the barrier | a *sleeper*: it cannot reach the senders | it demands fences of all senders of the job ([`Payers::demand`]) |
//!
//! A task demands fences when it joins, if it is refused then. A profile can be installed later, so a sleeper that is
//! refused demands them as well. At that moment a sender may be between its store and its load without a fence. So the
//! sleep in which the demand is new lasts at most [`SETTLING`]: a store becomes visible to other cores in a fraction of
//! that, and so does the demand.

use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(loom))]
pub use crate::futex::{wait as futex_wait, wake as futex_wake};
use crate::sync::{AtomicU32, Ordering, compiler_fence, fence};
#[cfg(loom)]
pub use crate::sync::{futex_wait, futex_wake};

/// A task's doorbell in shared memory. Zeros are a valid initial state.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Bell {
    /// 1 from when a thread of the task is about to sleep until the next ring.
    asleep: AtomicU32,
    /// The futex word: changes with every ring.
    rings: AtomicU32,
}

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("bell", Bell { asleep, rings });

/// The side that pays for the fences of a job: a word that its tasks share. It can change while the job runs, because a
/// change is made in two steps with a barrier of all cores between them, and both sides pay meanwhile:
///
/// * *To the senders.* A sender publishes, reads this word, and reads `asleep`. If it reads that it does not have to
///   pay, it has published before that barrier, so every task that sleeps without paying, which is after the barrier,
///   sees the message.
/// * *To the sleepers.* A sleeper announces its sleep, runs its fence, and reads this word. If it reads that it does
///   not have to pay, its announcement was visible before the word changed, so every task that sends without paying sees
///   it.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Payers(AtomicU32);

/// A word of zero is a valid initial state.
const SLEEPERS_PAY: u32 = 0;
const BOTH_PAY: u32 = 1;
const SENDERS_PAY: u32 = 2;
/// The bits of the mode: one of the three above.
const MODE: u32 = 3;
/// A bit beside the mode: some task cannot run the barrier, so senders fence whatever the mode. It is never cleared.
const DEMANDED: u32 = 4;
/// The bits from here on count the tasks that sleep often and ask all senders to fence meanwhile
/// ([`Fencing::ask_senders`]). The contribution of a task that is killed remains, which costs the other tasks a fence
/// for each send, and nothing else.
const ASKING: u32 = 8;

/// For the test that compares it with the version.
pub(crate) const PAYERS_LAYOUT: crate::layout::Layout =
    crate::layout!("payers", Payers { 0 } SLEEPERS_PAY BOTH_PAY SENDERS_PAY MODE DEMANDED ASKING);
/// Maximum sleep of a task whose demand for fences is new.
const SETTLING: Duration = Duration::from_millis(1);

impl Payers {
    /// Sets the initial mode, before other tasks read it.
    pub fn begin(&self, senders: bool) {
        let word = if senders { SENDERS_PAY } else { SLEEPERS_PAY };
        self.0.store(word, Ordering::Relaxed);
    }

    /// Makes the senders pay from now on, or the sleepers. Only one thread may call this at a time.
    pub fn change(&self, senders: bool) {
        let mode = if senders { SENDERS_PAY } else { SLEEPERS_PAY };
        if self.0.load(Ordering::Relaxed) & MODE == mode {
            return;
        }
        self.set_mode(BOTH_PAY);
        if membarrier(GLOBAL_EXPEDITED) {
            self.set_mode(mode);
        }
    }

    fn set_mode(&self, mode: u32) {
        let with_mode = |word: u32| Some(word & !MODE | mode);
        // The closure always returns `Some`, so this does not fail.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, with_mode);
    }

    /// Makes all senders fence from now on, for a task that cannot run the barrier. Returns whether this is the first
    /// such demand.
    fn demand(&self) -> bool {
        self.0.fetch_or(DEMANDED, Ordering::SeqCst) & DEMANDED == 0
    }

    fn senders(&self) -> bool {
        self.0.load(Ordering::Acquire) != SLEEPERS_PAY
    }

    fn sleepers(&self) -> bool {
        self.0.load(Ordering::Acquire) & MODE != SENDERS_PAY
    }
}

/// How this process fences in its job.
#[derive(Clone, Copy, Debug)]
pub struct Fencing {
    payers: NonNull<Payers>,
    /// Whether the barriers of other tasks do not reach this process.
    unreached: bool,
    /// Whether all senders fence for this task because it has asked for that; then its sleeps need no barrier.
    paid: bool,
}

// SAFETY: the pointer leads to an atomic, which exists as long as the value is used (`of_job`).
unsafe impl Send for Fencing {}
// SAFETY: the pointer leads to an atomic, which exists as long as the value is used (`of_job`).
unsafe impl Sync for Fencing {}

impl Fencing {
    /// Registers this process for barriers, and demands fences if it cannot run the barrier.
    ///
    /// # Safety
    /// `payers` must exist as long as the result is used.
    pub unsafe fn of_job(payers: &Payers) -> Fencing {
        if payers.sleepers() && !membarrier(GLOBAL_EXPEDITED) {
            payers.demand();
        }
        Fencing {
            payers: NonNull::from(payers),
            unreached: !Fencing::available(),
            paid: false,
        }
    }

    /// Registers this process for barriers. Returns whether the kernel supports them, so that senders need no fences.
    #[cfg(not(loom))]
    pub fn available() -> bool {
        membarrier(REGISTER_GLOBAL_EXPEDITED)
    }

    /// Returns `false`: the model checker has no such barriers.
    #[cfg(loom)]
    pub fn available() -> bool {
        false
    }

    /// Asks all senders of the job to fence, or takes that back, for a task that sleeps in each wait. The barrier of
    /// all cores here costs some ten microseconds if one of them is running a task of any job. The task then has to
    /// sleep with the value that this returns.
    ///
    /// The barrier separates senders that had read the word before from those that read it after: see [`Payers`].
    pub fn ask_senders(self, ask: bool) -> Fencing {
        let word = &self.payers().0;
        if ask == self.paid {
            return self;
        }
        if ask {
            word.fetch_add(ASKING, Ordering::SeqCst);
        }
        let paid = ask && membarrier(GLOBAL_EXPEDITED);
        if !paid {
            word.fetch_sub(ASKING, Ordering::SeqCst);
        }
        Fencing { paid, ..self }
    }

    #[inline(always)]
    fn payers(&self) -> &Payers {
        // SAFETY: the caller of `of_job` guarantees that the word exists as long as this value is used.
        unsafe { self.payers.as_ref() }
    }

    /// Orders what a task has published before its read of `asleep`.
    #[inline(always)]
    pub fn before_look(&self) {
        // The sleeper's membarrier orders the core's accesses, but not the compiler's.
        compiler_fence(Ordering::SeqCst);
        if self.unreached || self.payers().senders() {
            fence(Ordering::SeqCst);
        }
    }
}

impl Bell {
    /// Wakes the task if it sleeps; for senders, after the message is published. Costs a load while the task is awake.
    #[inline(always)]
    pub fn ring(&self, fencing: Fencing) {
        if self.must_be_rung(fencing) {
            self.wake();
        }
    }

    /// Returns whether the task must be woken, like `ring` without waking it: the caller then calls
    /// [`wake`](Bell::wake).
    #[inline(always)]
    pub fn must_be_rung(&self, fencing: Fencing) -> bool {
        fencing.before_look();
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// Wakes the task's sleepers, if it has any. For a caller that rings many bells, and has run a sequentially
    /// consistent fence after it published.
    pub fn wake_if_asleep(&self) {
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// Wakes the task's sleepers, whatever they wait for.
    #[cold]
    pub fn wake(&self) {
        self.asleep.store(0, Ordering::Relaxed);
        self.rings.fetch_add(1, Ordering::SeqCst);
        futex_wake(&self.rings);
    }

    /// Sleeps until the bell rings, `limit` passes, or `work()`, which is called after the sleep is announced, returns
    /// that there is work. May also return early, so callers loop. Returns `false` if nothing has rung and there was no
    /// work.
    pub fn sleep(
        &self,
        fencing: Fencing,
        limit: Option<Duration>,
        work: impl FnOnce() -> bool,
    ) -> bool {
        let before = self.rings.load(Ordering::SeqCst);
        self.asleep.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut limit = limit;
        let pays = !fencing.paid && fencing.payers().sleepers();
        if pays && !membarrier(GLOBAL_EXPEDITED) && fencing.payers().demand() {
            limit = Some(limit.map_or(SETTLING, |limit| limit.min(SETTLING)));
        }
        // `asleep` stays set if there is work: another thread of this task may be asleep too, and a needless ring costs
        // less than a missed one.
        if work() {
            return true;
        }
        futex_wait(&self.rings, before, limit);
        self.rings.load(Ordering::SeqCst) != before
    }

    /// Withdraws the announcement. Only for a process in which no other thread can be asleep.
    pub fn awake(&self) {
        self.asleep.store(0, Ordering::Relaxed);
    }
}

const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
#[cfg(not(loom))]
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Runs a membarrier command. Returns `false` if the kernel does not know it or a seccomp profile refuses it.
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes integers and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// The classic failure: a ring between the check and the sleep is lost, and both sides wait for ever.
    fn no_ring_is_lost(senders: bool, changes: u32) {
        const ROUNDS: u64 = 20_000;
        let payers: &'static Payers = Box::leak(Box::default());
        payers.begin(senders);
        // SAFETY: `payers` is never dropped.
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

    /// No ring is lost while each side asks the other to fence, and takes that back.
    #[test]
    fn no_ring_is_lost_when_sleepers_ask_senders_to_fence() {
        const ROUNDS: u64 = 20_000;
        let shared: &'static (Payers, Bell, Bell, AtomicU64) = Box::leak(Box::default());
        let turn = move |mine: u64| {
            let (payers, one, two, count) = shared;
            let (own, other) = if mine == 0 { (one, two) } else { (two, one) };
            // SAFETY: `payers` is never dropped.
            let mut fencing = unsafe { Fencing::of_job(payers) };
            let came = |round| count.load(Ordering::Acquire) == round;
            for round in (mine..2 * ROUNDS).step_by(2) {
                fencing = fencing.ask_senders(round / 64 % 3 != mine);
                while !came(round) {
                    own.sleep(fencing, None, || came(round));
                }
                count.store(round + 1, Ordering::Release);
                other.ring(fencing);
            }
            fencing.ask_senders(false);
        };
        let thread = std::thread::spawn(move || turn(1));
        turn(0);
        thread.join().unwrap();
        assert_eq!(shared.3.load(Ordering::Relaxed), 2 * ROUNDS);
        assert!(!shared.0.senders(), "nobody asks any more");
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

    /// Makes this thread's calls of membarrier fail from now on, as a container's seccomp profile would.
    fn refuse_membarrier() {
        let statement = |code: u32, k: u32, jt, jf| libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        };
        let number = libc::SYS_membarrier as u32;
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let mut filter = [
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number, 0, 1),
            statement(libc::BPF_RET | libc::BPF_K, refused, 0, 0),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the program lives across the call; the filter affects this thread only.
        let set = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        assert!(!membarrier(GLOBAL_EXPEDITED));
    }

    /// Two threads answer each other after pauses of many lengths, so that the answer often arrives just when the other
    /// thread goes to sleep. One of them is refused the barrier: if `early`, before it joins, otherwise after it has
    /// slept a few times.
    fn no_ring_is_lost_though_one_is_refused(early: bool) {
        const ROUNDS: u64 = 100_000;
        // Stores that miss every cache delay the publishing thread.
        const WORDS: usize = 4 << 20;
        let payload: &'static [AtomicU64] = Vec::leak((0..WORDS).map(|_| 0.into()).collect());
        let shared: &'static (Payers, Bell, Bell, AtomicU64) = Box::leak(Box::default());
        let turn = move |mine: u64, refused: Option<u64>| {
            let (payers, one, two, count) = shared;
            let (own, other) = if mine == 0 { (one, two) } else { (two, one) };
            if refused == Some(0) {
                refuse_membarrier();
            }
            // SAFETY: `payers` is never dropped.
            let fencing = unsafe { Fencing::of_job(payers) };
            let mut random = 0x9e37_79b9_u64 + mine;
            for round in (mine..2 * ROUNDS).step_by(2) {
                if round > 0 && refused == Some(round) {
                    refuse_membarrier();
                }
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let came = || count.load(Ordering::Acquire) == round;
                // The thread that is not refused is mostly awake when it is answered.
                let looks = refused.map_or(1 << 14, |_| random % 128);
                let mut looks = (0..looks).inspect(|_| std::hint::spin_loop());
                while !came() {
                    if looks.next().is_none() {
                        own.sleep(fencing, None, came);
                    }
                }
                for at in 0..40 {
                    let place = random.wrapping_mul(2 * at + 1) as usize % WORDS;
                    payload[place].store(round, Ordering::Relaxed);
                }
                count.store(round + 1, Ordering::Release);
                other.ring(fencing);
            }
        };
        let (done, all) = std::sync::mpsc::channel();
        for (mine, refused) in [(0, Some(if early { 0 } else { 100 })), (1, None)] {
            let done = done.clone();
            std::thread::spawn(move || {
                turn(mine, refused);
                let _ = done.send(());
            });
        }
        let (mut ended, mut round) = (0, 0);
        while ended < 2 {
            // As the sleeps have no limit, a thread that misses a ring sleeps for ever.
            match all.recv_timeout(Duration::from_secs(20)) {
                Ok(()) => ended += 1,
                Err(_) => {
                    let now = shared.3.load(Ordering::Acquire);
                    assert!(now > round, "a ring was lost after {now} rounds");
                    round = now;
                }
            }
        }
    }

    #[test]
    fn no_ring_is_lost_when_one_task_is_refused_the_barrier() {
        no_ring_is_lost_though_one_is_refused(true);
    }

    #[test]
    fn no_ring_is_lost_when_the_barrier_is_refused_later() {
        no_ring_is_lost_though_one_is_refused(false);
    }

    #[test]
    fn a_demand_for_fences_outlives_who_pays() {
        let payers = Payers::default();
        assert!(payers.demand() && !payers.demand());
        for senders in [true, false, true] {
            payers.change(senders);
            assert!(payers.senders());
        }
    }

    #[test]
    fn a_limit_ends_the_sleep() {
        let bell = Bell::default();
        let start = std::time::Instant::now();
        let payers = Payers::default();
        bell.sleep(
            // SAFETY: `payers` outlives the value.
            unsafe { Fencing::of_job(&payers) },
            Some(Duration::from_millis(20)),
            || false,
        );
        assert!(start.elapsed() >= Duration::from_millis(19));
    }
}
