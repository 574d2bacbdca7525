//! A lock that is nearly free for the first thread that takes it.
//!
//! Most message-passing programs call from one thread. For that thread taking the lock is one
//! store and one load, no atomic read-modify-write and no fence. The first call of a second
//! thread *revokes* the bias for good: it raises a flag, makes every running thread of the
//! process pass a memory barrier (`membarrier`), waits until the owner is outside, and from then
//! on everybody uses an ordinary mutex.
//!
//! A thread of the library's own, which looks in rarely, *visits*: it takes the bias away in the
//! same way and gives it back when it goes.
//!
//! Why the owner needs no fence: it stores that it is inside into `entry`, then loads `revoked`; the revoker stores
//! `revoked`, runs the barrier in every thread, then loads `entry`. Whichever side of its two
//! instructions the barrier catches the owner on, one of the two sees the other.
//!
//! A signal handler may interrupt a thread that is inside, and call again. The word `entry`, and the mutex, name the thread that is
//! inside, so that the second call is refused ([`Refusal::Reentered`]); no path pays for a look of its own.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};
use std::time::Duration;

use crate::error_checking_mutex::{self, ErrorCheckingMutex, Reentered};

/// The lock and what it guards.
pub struct Biased<T> {
    /// Thread pointer of the thread the lock is biased to while that is outside, [`INSIDE`] while it is inside; 0 before its first use. The
    /// owner says that it is inside before it looks at `revoked`.
    entry: AtomicUsize,
    /// Thread pointer of the thread the lock is biased to; 0 before its first use.
    owner: AtomicUsize,
    revoked: AtomicBool,
    /// The owner has been seen outside after the revocation. Only used with the mutex held; as
    /// long as it is false, so is `revoked`, but while the mutex is held.
    is_owner_out: AtomicBool,
    /// Somebody has revoked it for good, or is about to.
    shared: AtomicBool,
    /// Nobody gets in any more.
    shut: AtomicBool,
    mutex: ErrorCheckingMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the protocol above gives one thread at a time access to `value`.
unsafe impl<T: Send> Sync for Biased<T> {}

/// Why a lock is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has been shut.
    Shut,
    /// This thread is inside already: a signal handler has interrupted it there.
    Reentered,
}

impl From<Reentered> for Refusal {
    fn from(_: Reentered) -> Refusal {
        Refusal::Reentered
    }
}

/// Access to the value; gives the lock back when dropped. Not for sending to another thread.
pub struct Guard<'a, T> {
    lock: &'a Biased<T>,
    shared: Option<error_checking_mutex::Held<'a>>,
    /// The bias is given back with it.
    visits: bool,
    _not_send: std::marker::PhantomData<*mut ()>,
}

/// No thread's pointer, and not that of a lock which is still to be taken.
const NOBODY: usize = 1;
/// Likewise: the owner is inside.
const INSIDE: usize = 2;

/// A number that differs between any two threads alive at the same time.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer: usize;
        // SAFETY: on Linux the first word at FS is the thread's own address (ELF TLS, variant II).
        unsafe {
            core::arch::asm!("mov {}, fs:0", out(reg) pointer,
                options(nostack, pure, readonly, preserves_flags));
        }
        pointer
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // It has no destructor, so it can be used as long as the thread lives.
        thread_local!(static HERE: u64 = const { 0 });
        HERE.with(|here| here as *const u64 as usize)
    }
}

impl<T> Biased<T> {
    /// A lock biased to whoever takes it first.
    pub const fn new(value: T) -> Biased<T> {
        Biased {
            entry: AtomicUsize::new(0),
            owner: AtomicUsize::new(0),
            revoked: AtomicBool::new(false),
            is_owner_out: AtomicBool::new(false),
            shared: AtomicBool::new(false),
            shut: AtomicBool::new(false),
            mutex: ErrorCheckingMutex::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock; an error once it has been shut, and to a thread that is inside.
    #[inline(always)]
    pub fn lock(&self) -> Result<Guard<'_, T>, Refusal> {
        match self.lock_quickly() {
            Some(guard) => Ok(guard),
            None => self.lock_slowly(),
        }
    }

    /// Goes in if the lock is biased to this thread, which is outside.
    #[inline(always)]
    fn go_in(&self) -> bool {
        if self.entry.load(Ordering::Relaxed) != thread_pointer() {
            return false;
        }
        self.entry.store(INSIDE, Ordering::Relaxed);
        // Partner: the membarrier in `ask_out`.
        compiler_fence(Ordering::SeqCst);
        if !self.revoked.load(Ordering::Acquire) {
            return true;
        }
        self.go_out();
        false
    }

    /// The owner, which is inside, goes out.
    #[inline(always)]
    fn go_out(&self) {
        self.entry.store(thread_pointer(), Ordering::Release);
    }

    #[inline(always)]
    fn lock_quickly(&self) -> Option<Guard<'_, T>> {
        self.go_in().then(|| self.guard(None))
    }

    /// Takes the lock if it is biased to this thread. `None` otherwise: take it in the ordinary way. For the shortest paths, with no code
    /// for any other thread.
    #[inline(always)]
    pub fn try_enter_as_owner(&self) -> Option<AsOwner<'_, T>> {
        // Not made before it is inside: what is made is dropped, and lets go.
        self.go_in().then(|| AsOwner {
            lock: self,
            _not_send: std::marker::PhantomData,
        })
    }

    /// Takes the lock if it is biased to this thread, or if several threads use it and nobody is inside. For paths that look once, and keep nobody out for long.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<Inside<'_, T>> {
        if let Some(alone) = self.try_enter_as_owner() {
            return Some(Inside::AsOwner(alone));
        }
        if !self.shared.load(Ordering::Relaxed) {
            return None;
        }
        let held = self.mutex.try_lock()?;
        let is_open =
            self.is_owner_out.load(Ordering::Relaxed) && !self.shut.load(Ordering::Relaxed);
        is_open.then_some(Inside::Shared(self, held))
    }

    /// Runs `work` on the value if the lock is biased to this thread.
    #[inline(always)]
    pub fn as_owner<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_enter_as_owner()
            .map(|mut inside| work(&mut inside))
    }

    #[cold]
    fn lock_slowly(&self) -> Result<Guard<'_, T>, Refusal> {
        let me = thread_pointer();
        let mut may_own = true;
        loop {
            if self.shut.load(Ordering::Relaxed) {
                return Err(Refusal::Shut);
            }
            if self.is_inside(me) {
                return Err(Refusal::Reentered);
            }
            if may_own && !self.revoked.load(Ordering::Acquire) && self.is_first(me) {
                may_own = register();
                if may_own && let Some(guard) = self.lock_quickly() {
                    return Ok(guard);
                }
            }
            let held = self.mutex.lock()?;
            // With the mutex held: a third thread must not get in while the second still waits for
            // the owner to leave.
            if !self.is_owner_out.load(Ordering::Relaxed) {
                if may_own && self.is_first(me) {
                    // A visitor has given the bias back.
                    continue;
                }
                self.revoke(me);
                self.is_owner_out.store(true, Ordering::Relaxed);
            }
            // A signal handler that interrupted one of the waits above may have forked, and this is the child.
            if self.shut.load(Ordering::Relaxed) {
                return Err(Refusal::Shut);
            }
            return Ok(self.guard(Some(held)));
        }
    }

    /// Is this thread the owner, and inside?
    fn is_inside(&self, me: usize) -> bool {
        self.owner.load(Ordering::Relaxed) == me && self.entry.load(Ordering::Relaxed) == INSIDE
    }

    /// Take the lock without making it a shared one for good; `None` if its owner is inside just
    /// now, or it has been shut.
    #[cold]
    pub fn visit(&self) -> Option<Guard<'_, T>> {
        if self.shut.load(Ordering::Relaxed) {
            return None;
        }
        let held = self.mutex.lock().ok()?;
        let visits = !self.is_owner_out.load(Ordering::Relaxed);
        if visits {
            self.ask_out();
            if self.entry.load(Ordering::Acquire) == INSIDE {
                self.give_bias_back();
                return None;
            }
            self.is_owner_out.store(true, Ordering::Relaxed);
        }
        let mut guard = self.guard(Some(held));
        guard.visits = visits;
        Some(guard)
    }

    /// A visit is over. With the mutex held; the owner that sees this sees the visitor's work.
    fn give_bias_back(&self) {
        self.is_owner_out.store(false, Ordering::Relaxed);
        self.revoked.store(false, Ordering::Release);
    }

    /// Is the lock biased to this thread, or to nobody until now?
    fn is_first(&self, me: usize) -> bool {
        let before = self
            .owner
            .compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed);
        match before {
            Ok(_) => {
                self.entry.store(me, Ordering::Relaxed);
                true
            }
            Err(owner) if owner == me => {
                // A signal handler may have come between the two steps above.
                let _ = self
                    .entry
                    .compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    fn revoke(&self, me: usize) {
        self.shared.store(true, Ordering::Release);
        if self.owner.load(Ordering::Acquire) == me {
            return self.revoked.store(true, Ordering::SeqCst);
        }
        self.ask_out();
        // The owner leaves after a bounded piece of work: blocking calls let go while they wait. It may need this thread's core for that,
        // and have a lower priority.
        let mut looks = 0;
        while self.entry.load(Ordering::Acquire) == INSIDE {
            match looks < YIELDS_BEFORE_SLEEP {
                true => std::thread::yield_now(),
                false => pause(),
            }
            looks += 1;
        }
    }

    /// From now on the owner either sees that the lock is revoked, or is seen inside.
    fn ask_out(&self) {
        self.revoked.store(true, Ordering::SeqCst);
        // The owner may have the bias and not have registered yet: registering is per process and
        // may be done twice.
        register();
        barrier();
    }

    #[inline(always)]
    fn guard<'a>(&'a self, shared: Option<error_checking_mutex::Held<'a>>) -> Guard<'a, T> {
        Guard {
            lock: self,
            shared,
            visits: false,
            _not_send: std::marker::PhantomData,
        }
    }

    /// Let nobody in any more, for good: in the child of a fork, where whoever was inside never comes
    /// out. For a moment when this thread is alone. Costs the others nothing: the bias is taken
    /// away, and the slow way finds out why.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::Relaxed);
        self.owner.store(NOBODY, Ordering::Relaxed);
        self.entry.store(NOBODY, Ordering::Relaxed);
        // A thread that is inside, because it has forked there, stores its pointer again when it leaves.
        self.revoked.store(true, Ordering::Relaxed);
        // A thread that waits for the mutex, because a signal handler has forked there, would wait for a holder that is not here.
        self.mutex.free();
    }

    /// Has it been shut?
    #[inline]
    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Relaxed)
    }

    /// Have two or more threads used the lock, but for visits?
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// Access of the thread that the lock is biased to, on the short way. Gives the lock back when dropped, also when the work inside unwinds. The
/// lock's users never call out while they are inside, so there is no second one.
pub struct AsOwner<'a, T> {
    lock: &'a Biased<T>,
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl<T> Drop for AsOwner<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.go_out();
    }
}

impl<T> Deref for AsOwner<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: biased to this thread and not revoked: nobody else is inside.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for AsOwner<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

/// Access on the short way: of the thread that the lock is biased to, or of one that holds the mutex of a lock that is shared.
pub enum Inside<'a, T> {
    /// Biased to this thread.
    AsOwner(AsOwner<'a, T>),
    /// This thread holds the mutex.
    Shared(&'a Biased<T>, error_checking_mutex::Held<'a>),
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Inside::AsOwner(alone) => alone,
            // SAFETY: the mutex of a lock that is shared is held: nobody else is inside.
            Inside::Shared(lock, _) => unsafe { &*lock.value.get() },
        }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Inside::AsOwner(alone) => alone,
            // SAFETY: as above.
            Inside::Shared(lock, _) => unsafe { &mut *lock.value.get() },
        }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.shared.is_none() {
            self.lock.go_out();
        } else if self.visits {
            // Before the mutex is let go of.
            self.lock.give_bias_back();
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this thread alone has access.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while this thread alone has access.
        unsafe { &mut *self.lock.value.get() }
    }
}

const REGISTER_PRIVATE: libc::c_int = 1 << 4;
const PRIVATE: libc::c_int = 1 << 3;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes two integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Prepare for [`barrier`]; without it the bias cannot be revoked, so it is not given.
fn register() -> bool {
    membarrier(REGISTER_PRIVATE)
}

/// A store is seen by all cores within a fraction of this.
const BIAS_SETTLE_TIME: Duration = Duration::from_millis(10);
/// How often a revoker gives its core away before it sleeps between two looks at the owner.
const YIELDS_BEFORE_SLEEP: u32 = 100;
/// How long it sleeps then.
const SLEEP_BETWEEN_CHECKS: Duration = Duration::from_micros(50);

/// Sleeps, so that a thread of a lower priority has the core. A signal may end it early.
fn pause() {
    sleep(SLEEP_BETWEEN_CHECKS);
}

/// Sleeps by a system call that is no cancellation point.
fn sleep(time: Duration) {
    if let Ok(time) = rustix::thread::Timespec::try_from(time) {
        let _ = rustix::thread::nanosleep(&time);
    }
}

fn barrier() {
    // If the owner got the bias, `register` had succeeded, so the kernel has the call. A seccomp profile that came
    // later refuses it all the same.
    if !membarrier(PRIVATE) {
        sleep(BIAS_SETTLE_TIME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn one_thread_keeps_the_bias() {
        let lock = Biased::new(0u32);
        for _ in 0..10 {
            *lock.lock().unwrap() += 1;
        }
        assert_eq!(*lock.lock().unwrap(), 10);
        assert!(!lock.is_shared());
    }

    /// Short ways in and the ordinary one, by several threads: nobody is inside beside another.
    #[test]
    fn threads_that_enter_at_once_are_alone_inside() {
        const ROUNDS: u64 = 50_000;
        let lock = Biased::new((0u64, 0u64));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let add = |both: &mut (u64, u64)| {
                        assert_eq!(both.0, both.1);
                        both.0 += 1;
                        std::hint::black_box(&both);
                        both.1 += 1;
                    };
                    for _ in 0..ROUNDS {
                        match lock.try_enter() {
                            Some(mut inside) => add(&mut inside),
                            None => add(&mut lock.lock().unwrap()),
                        }
                    }
                });
            }
        });
        assert!(lock.is_shared());
        assert!(lock.try_enter_as_owner().is_none());
        assert_eq!(*lock.try_enter().unwrap(), (4 * ROUNDS, 4 * ROUNDS));
        lock.shut();
        assert!(lock.try_enter().is_none());
    }

    /// The owner is inside for long, and several others come meanwhile.
    #[test]
    fn nobody_gets_in_before_the_owner_is_out() {
        let lock = Arc::new(Biased::new(false));
        let mut inside = lock.lock().unwrap();
        *inside = true;
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let lock = lock.clone();
                std::thread::spawn(move || {
                    assert!(!*lock.lock().unwrap(), "the owner is still inside")
                })
            })
            .collect();
        // Long enough for all of them to come; one that comes late only weakens the test.
        while !lock.is_shared() {
            std::thread::yield_now();
        }
        for _ in 0..10_000 {
            std::thread::yield_now();
        }
        *inside = false;
        drop(inside);
        threads.into_iter().for_each(|t| t.join().unwrap());
    }

    #[test]
    fn threads_that_arrive_at_any_moment_exclude_each_other() {
        const EACH: u64 = 20_000;
        for round in 0..40 {
            let lock = Arc::new(Biased::new((0u64, 0u64)));
            let threads: Vec<_> = (0..3)
                .map(|k| {
                    let lock = lock.clone();
                    std::thread::spawn(move || {
                        for _ in 0..EACH {
                            let mut both = lock.lock().unwrap();
                            both.0 += 1;
                            std::hint::black_box(&mut *both);
                            both.1 += 1;
                            assert_eq!(both.0, both.1, "round {round} thread {k}");
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(lock.lock().unwrap().0, 3 * EACH);
            assert!(lock.is_shared());
        }
    }

    #[test]
    fn visits_exclude_the_owner_and_leave_it_the_bias() {
        let lock = Arc::new(Biased::new((0u64, 0u64)));
        let over = Arc::new(AtomicBool::new(false));
        let count = |lock: &Biased<(u64, u64)>, guard: Option<Guard<'_, (u64, u64)>>| {
            let Some(mut both) = guard else { return 0 };
            assert_eq!(both.0, both.1);
            both.0 += 1;
            std::hint::black_box(&mut *both);
            both.1 += 1;
            assert!(!lock.is_shared());
            1
        };
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                let (lock, over) = (lock.clone(), over.clone());
                std::thread::spawn(move || {
                    let mut visits = 0;
                    while !over.load(Ordering::Relaxed) {
                        visits += count(&lock, lock.visit());
                    }
                    visits
                })
            })
            .collect();
        let mut calls = 0;
        while lock.lock().unwrap().0 < calls + 300 {
            calls += count(&lock, lock.lock().ok());
            let owned = lock.as_owner(|both| {
                assert_eq!(both.0, both.1);
                (both.0, both.1) = (both.0 + 1, both.1 + 1);
            });
            calls += u64::from(owned.is_some());
        }
        over.store(true, Ordering::Relaxed);
        let visits: u64 = visitors.into_iter().map(|one| one.join().unwrap()).sum();
        assert_eq!(lock.as_owner(|both| both.0), Some(calls + visits));
    }

    #[test]
    fn who_comes_to_stay_during_a_visit_shares_the_lock() {
        let lock = Arc::new(Biased::new(0u32));
        *lock.lock().unwrap() += 1;
        let there = lock.clone();
        let other = std::thread::spawn(move || {
            let visit = there.visit();
            let third = there.clone();
            let third = std::thread::spawn(move || *third.lock().unwrap() += 1);
            assert!(!there.is_shared());
            drop(visit);
            third.join().unwrap();
        });
        other.join().unwrap();
        assert!(lock.is_shared() && lock.as_owner(|n| *n).is_none());
        assert_eq!(*lock.lock().unwrap(), 2);
        *lock.visit().unwrap() += 1;
        assert!(lock.is_shared());
    }

    #[test]
    fn a_lock_that_was_shut_lets_nobody_in() {
        let lock = Arc::new(Biased::new(0u32));
        assert_eq!(lock.as_owner(|n| *n), None, "nobody has the bias yet");
        *lock.lock().unwrap() += 1;
        assert_eq!(lock.as_owner(|n| *n), Some(1));
        // A thread that was inside when the memory was copied never comes out.
        std::mem::forget(lock.lock().unwrap());
        lock.shut();
        assert_eq!(lock.lock().err(), Some(Refusal::Shut));
        assert_eq!(lock.as_owner(|n| *n), None);
        let other = lock.clone();
        let there = std::thread::spawn(move || other.lock().err());
        assert_eq!(there.join().unwrap(), Some(Refusal::Shut));
    }

    /// The thread sleeps until another one lets go, and the handler of a signal forks. The other one is not in the child.
    #[test]
    fn a_child_that_a_waiting_thread_forks_is_refused_and_does_not_wait() {
        const MAX_WAIT_SECONDS: u32 = 20;
        static LOCK: Biased<u32> = Biased::new(0);
        static CHILD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);
        extern "C" fn fork(_: libc::c_int) {
            // SAFETY: the child shuts the lock, and goes on to the thread's next step, which ends it.
            match unsafe { libc::fork() } {
                0 => {
                    // SAFETY: takes a number; ends a child that waits for ever.
                    unsafe { libc::alarm(MAX_WAIT_SECONDS) };
                    LOCK.shut();
                }
                child => CHILD.store(child, Ordering::Relaxed),
            }
        }
        // SAFETY: zeros are an action with an empty mask; the handler stays. Waits that it interrupts go on.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = fork as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
                0
            );
        }
        // SAFETY: asks for the number of the process.
        let parent = unsafe { libc::getpid() };
        *LOCK.lock().unwrap() += 1;
        std::thread::scope(|scope| scope.spawn(|| drop(LOCK.lock().unwrap())).join().unwrap());
        let held = LOCK.lock().unwrap();
        let waiter = std::thread::spawn(move || {
            let refusal = LOCK.lock().err();
            // SAFETY: asks for a number; a child ends without running anything.
            unsafe {
                if libc::getpid() != parent {
                    libc::_exit((refusal != Some(Refusal::Shut)).into());
                }
            }
            refusal
        });
        while LOCK.mutex.sleepers() == 0 {
            std::thread::yield_now();
        }
        use std::os::unix::thread::JoinHandleExt;
        // SAFETY: the thread has not been joined.
        unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGUSR1) };
        while CHILD.load(Ordering::Relaxed) < 0 {
            std::thread::yield_now();
        }
        let mut status = -1;
        // SAFETY: a child of this process; the status is written.
        unsafe { libc::waitpid(CHILD.load(Ordering::Relaxed), &mut status, 0) };
        assert_eq!(status, 0, "the child's status as the kernel has it");
        drop(held);
        assert_eq!(waiter.join().unwrap(), None);
    }

    /// As a signal handler does that interrupts a thread there.
    #[test]
    fn a_thread_that_is_inside_does_not_get_in_again() {
        let lock = Biased::new(0u32);
        let refused = |lock: &Biased<u32>| {
            assert_eq!(lock.lock().err(), Some(Refusal::Reentered));
            assert!(lock.try_enter_as_owner().is_none() && lock.try_enter().is_none());
        };
        *lock.lock().unwrap() += 1;
        let owner = lock.try_enter_as_owner().unwrap();
        refused(&lock);
        drop(owner);
        let ordinary = lock.lock().unwrap();
        refused(&lock);
        drop(ordinary);
        // By the mutex, from the second thread on.
        std::thread::scope(|scope| scope.spawn(|| *lock.lock().unwrap() += 1).join().unwrap());
        assert!(lock.is_shared());
        let shared = lock.try_enter().unwrap();
        refused(&lock);
        drop(shared);
        assert_eq!(*lock.lock().unwrap(), 2);
    }

    /// As a signal handler does that interrupts a thread between the two steps of its first lock.
    #[test]
    fn a_thread_in_the_middle_of_its_first_lock_gets_in() {
        const TIME_LIMIT: Duration = Duration::from_secs(60);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let lock = Biased::new(0u32);
            lock.owner.store(thread_pointer(), Ordering::Relaxed);
            *lock.lock().unwrap() += 1;
            // The step that was interrupted.
            lock.entry.store(thread_pointer(), Ordering::Relaxed);
            *lock.lock().unwrap() += 1;
            tell.send((*lock.lock().unwrap(), lock.is_shared()))
                .unwrap();
        });
        assert_eq!(told.recv_timeout(TIME_LIMIT), Ok((2, false)));
    }

    /// A thread with a real-time priority would else keep a core that the owner needs to get out.
    #[test]
    fn a_thread_that_waits_for_the_owner_to_leave_sleeps() {
        let lock = Arc::new(Biased::new(0u32));
        let inside = lock.lock().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let there = lock.clone();
        let second = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            *there.lock().unwrap() += 1;
        });
        let stat = format!("/proc/self/task/{}/stat", told.recv().unwrap());
        let sleeps = || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            // The name in parentheses may hold anything.
            lock.is_shared() && stat.rsplit_once(") ").unwrap().1.starts_with('S')
        };
        let begun = std::time::Instant::now();
        while !sleeps() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "it runs on and on"
            );
            std::thread::yield_now();
        }
        drop(inside);
        second.join().unwrap();
        assert_eq!(*lock.lock().unwrap(), 1);
    }
}
