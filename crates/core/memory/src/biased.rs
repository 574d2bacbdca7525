//! A lock that costs almost nothing for the first thread that takes it.
//!
//! Most message-passing programs call from one thread. For that thread, taking the lock is one store and one load,
//! without an atomic read-modify-write or a fence. The first call of a second thread *revokes* the bias for good: it
//! raises a flag, makes every running thread of the process execute a memory barrier (`membarrier`), waits until the
//! owner is outside, and from then on all threads use an ordinary mutex.
//!
//! A thread of this library, which needs the lock rarely, *visits*: it takes the bias away in the same way and gives it
//! back when it is done.
//!
//! Why the owner needs no fence: it stores that it is inside into `entry`, then loads `revoked`; the revoker stores
//! `revoked`, runs the barrier in every thread, then loads `entry`. Whether the barrier hits the owner before, between
//! or after its two instructions, one of the two sees the other.
//!
//! A signal handler may interrupt a thread that is inside, and call again. `entry` and the mutex identify the thread
//! that is inside, so the second call is refused ([`Refusal::Reentered`]) without an additional check on any path.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};
use std::time::Duration;

use crate::error_checking_mutex::{self, ErrorCheckingMutex, Reentered};

/// The lock and the value that it guards.
pub struct Biased<T> {
    /// Thread pointer of the owner, to which the lock is biased, while the owner is outside; [`INSIDE`] while it is
    /// inside; 0 before the first use. The owner stores that it is inside before it reads `revoked`.
    entry: AtomicUsize,
    /// Thread pointer of the owner; 0 before the first use.
    owner: AtomicUsize,
    revoked: AtomicBool,
    /// Whether the owner has been seen outside after the revocation. Only used with the mutex held. While it is false
    /// and the mutex is free, `revoked` is false, too.
    is_owner_out: AtomicBool,
    /// Whether a thread has revoked the bias for good, or is about to.
    shared: AtomicBool,
    /// Whether the lock has been shut: no thread can take it any more.
    shut: AtomicBool,
    mutex: ErrorCheckingMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the protocol above gives one thread at a time access to `value`.
unsafe impl<T: Send> Sync for Biased<T> {}

/// Reason why the lock cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The lock has been shut.
    Shut,
    /// This thread is inside already: a signal handler has interrupted it there.
    Reentered,
}

impl From<Reentered> for Refusal {
    fn from(_: Reentered) -> Refusal {
        Refusal::Reentered
    }
}

/// Access to the value. Unlocks when dropped. Cannot be sent to another thread.
pub struct Guard<'a, T> {
    lock: &'a Biased<T>,
    shared: Option<error_checking_mutex::Held<'a>>,
    /// Whether this is a visit, so that dropping the guard gives the bias back.
    visits: bool,
    _not_send: std::marker::PhantomData<*mut ()>,
}

/// Not the pointer of any thread, and not 0, so the lock cannot be taken.
const NOBODY: usize = 1;
/// Not the pointer of any thread: the owner is inside.
const INSIDE: usize = 2;

/// Returns a number that differs between any two threads alive at the same time.
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
        // The value has no destructor, so it can be used as long as the thread lives.
        thread_local!(static HERE: u64 = const { 0 });
        HERE.with(|here| here as *const u64 as usize)
    }
}

impl<T> Biased<T> {
    /// Returns a lock that will be biased to the first thread that takes it.
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

    /// Takes the lock. Fails if it has been shut, or if this thread is inside already.
    #[inline(always)]
    pub fn lock(&self) -> Result<Guard<'_, T>, Refusal> {
        match self.lock_quickly() {
            Some(guard) => Ok(guard),
            None => self.lock_slowly(),
        }
    }

    /// Enters if the lock is biased to this thread and the thread is outside. Returns whether it did.
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

    /// Marks the owner, which is inside, as outside.
    #[inline(always)]
    fn go_out(&self) {
        self.entry.store(thread_pointer(), Ordering::Release);
    }

    #[inline(always)]
    fn lock_quickly(&self) -> Option<Guard<'_, T>> {
        self.go_in().then(|| self.guard(None))
    }

    /// Takes the lock if it is biased to this thread; otherwise returns `None`, and the caller uses the ordinary way.
    /// For the shortest paths, without code for other threads.
    #[inline(always)]
    pub fn try_enter_as_owner(&self) -> Option<AsOwner<'_, T>> {
        // Construct the guard only when the thread is inside: dropping it unlocks.
        self.go_in().then(|| AsOwner {
            lock: self,
            _not_send: std::marker::PhantomData,
        })
    }

    /// Takes the lock if it is biased to this thread, or if several threads use it and none is inside. For paths that
    /// check once and hold the lock briefly.
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

    /// Runs `work` on the value if the lock is biased to this thread; otherwise returns `None`.
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
            // With the mutex held: a third thread must not enter while the second still waits for the owner to leave.
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

    /// Returns whether this thread is the owner and is inside.
    fn is_inside(&self, me: usize) -> bool {
        self.owner.load(Ordering::Relaxed) == me && self.entry.load(Ordering::Relaxed) == INSIDE
    }

    /// Takes the lock without revoking the bias for good. Returns `None` if the owner is inside, or the lock has been
    /// shut.
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

    /// Ends a visit; the mutex must be held. An owner that sees this sees the visitor's changes.
    fn give_bias_back(&self) {
        self.is_owner_out.store(false, Ordering::Relaxed);
        self.revoked.store(false, Ordering::Release);
    }

    /// Returns whether the lock is biased to this thread. If it was not biased yet, biases it to this thread.
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
                // A signal handler may have interrupted the thread between the two steps above.
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
        // The owner leaves after a bounded amount of work: blocking calls unlock while they wait. It may need this
        // thread's core for that, and have a lower priority.
        let mut looks = 0;
        while self.entry.load(Ordering::Acquire) == INSIDE {
            match looks < YIELDS_BEFORE_SLEEP {
                true => std::thread::yield_now(),
                false => pause(),
            }
            looks += 1;
        }
    }

    /// Revokes the bias and runs the barrier: from now on either the owner sees the revocation, or the owner is seen
    /// inside.
    fn ask_out(&self) {
        self.revoked.store(true, Ordering::SeqCst);
        // The owner may have got the bias without having registered yet. Registration is per process and may be
        // repeated.
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

    /// Prevents any thread from taking the lock, for good. For the child of a fork, where a thread that was inside
    /// never leaves. Must be called while this thread is the only one. Costs the other paths nothing: the bias is taken
    /// away, and the slow path finds the reason.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::Relaxed);
        self.owner.store(NOBODY, Ordering::Relaxed);
        self.entry.store(NOBODY, Ordering::Relaxed);
        // A thread that is inside, because it has forked there, stores its pointer again when it leaves.
        self.revoked.store(true, Ordering::Relaxed);
        // This thread may wait for the mutex, interrupted by a signal handler that has forked; its holder does not
        // exist in the child.
        self.mutex.free();
    }

    /// Returns whether the lock has been shut.
    #[inline]
    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Relaxed)
    }

    /// Returns whether two or more threads have used the lock, not counting visits.
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// Access of the thread to which the lock is biased, on the fast path. Unlocks when dropped, also when the work inside
/// unwinds. The lock's users never call out while they are inside, so there is no second access.
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
        // SAFETY: the lock is biased to this thread and not revoked, so no other thread is inside.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for AsOwner<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is biased to this thread and not revoked, so no other thread is inside.
        unsafe { &mut *self.lock.value.get() }
    }
}

/// Access on the fast path: of the thread to which the lock is biased, or of one that holds the mutex of a shared lock.
pub enum Inside<'a, T> {
    /// The lock is biased to this thread.
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
            // SAFETY: this thread holds the mutex of a shared lock, so no other thread is inside.
            Inside::Shared(lock, _) => unsafe { &*lock.value.get() },
        }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Inside::AsOwner(alone) => alone,
            // SAFETY: this thread holds the mutex of a shared lock, so no other thread is inside.
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
            // Must happen before the mutex is unlocked.
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
    // SAFETY: membarrier takes integers and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers this process for [`barrier`]. Without that the bias cannot be revoked, so it is not given.
fn register() -> bool {
    membarrier(REGISTER_PRIVATE)
}

/// Time after which a store is certainly visible to all cores.
const BIAS_SETTLE_TIME: Duration = Duration::from_millis(10);
/// Number of times a revoker yields its core before it sleeps between two checks of the owner.
const YIELDS_BEFORE_SLEEP: u32 = 100;
/// Duration of these sleeps.
const SLEEP_BETWEEN_CHECKS: Duration = Duration::from_micros(50);

/// Sleeps, so that a thread of a lower priority can have the core. A signal may end the sleep early.
fn pause() {
    sleep(SLEEP_BETWEEN_CHECKS);
}

/// Sleeps with a system call that is not a cancellation point.
fn sleep(time: Duration) {
    if let Ok(time) = rustix::thread::Timespec::try_from(time) {
        let _ = rustix::thread::nanosleep(&time);
    }
}

fn barrier() {
    // If the owner got the bias, `register` had succeeded, so the kernel has the call. A seccomp profile installed
    // later can still refuse it.
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

    /// Several threads use the fast paths and the ordinary one: never are two of them inside.
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

    /// The owner is inside for a long time while several other threads try to enter.
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
        // Long enough for all of them to start; a late one only weakens the test.
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
        // In the child of a fork, a thread that was inside never leaves.
        std::mem::forget(lock.lock().unwrap());
        lock.shut();
        assert_eq!(lock.lock().err(), Some(Refusal::Shut));
        assert_eq!(lock.as_owner(|n| *n), None);
        let other = lock.clone();
        let there = std::thread::spawn(move || other.lock().err());
        assert_eq!(there.join().unwrap(), Some(Refusal::Shut));
    }

    /// The thread sleeps until another thread unlocks, and a signal handler forks. The other thread does not exist in
    /// the child.
    #[test]
    fn a_child_that_a_waiting_thread_forks_is_refused_and_does_not_wait() {
        const MAX_WAIT_SECONDS: u32 = 20;
        static LOCK: Biased<u32> = Biased::new(0);
        static CHILD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);
        extern "C" fn fork(_: libc::c_int) {
            // SAFETY: the child shuts the lock and continues to the thread's next step, which ends it.
            match unsafe { libc::fork() } {
                0 => {
                    // SAFETY: `alarm` takes a number; it ends a child that would wait for ever.
                    unsafe { libc::alarm(MAX_WAIT_SECONDS) };
                    LOCK.shut();
                }
                child => CHILD.store(child, Ordering::Relaxed),
            }
        }
        // SAFETY: zeros are an action with an empty mask; the handler is never unloaded. Interrupted waits are
        // restarted.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = fork as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
                0
            );
        }
        // SAFETY: `getpid` takes no arguments.
        let parent = unsafe { libc::getpid() };
        *LOCK.lock().unwrap() += 1;
        std::thread::scope(|scope| scope.spawn(|| drop(LOCK.lock().unwrap())).join().unwrap());
        let held = LOCK.lock().unwrap();
        let waiter = std::thread::spawn(move || {
            let refusal = LOCK.lock().err();
            // SAFETY: `getpid` takes no arguments, and `_exit` ends the child without running anything.
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
        // SAFETY: the process is a child of this one; its status is written to `status`.
        unsafe { libc::waitpid(CHILD.load(Ordering::Relaxed), &mut status, 0) };
        assert_eq!(status, 0, "the child's status as the kernel has it");
        drop(held);
        assert_eq!(waiter.join().unwrap(), None);
    }

    /// A signal handler that interrupts a thread inside does the same.
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
        // From the second thread on, the mutex is used.
        std::thread::scope(|scope| scope.spawn(|| *lock.lock().unwrap() += 1).join().unwrap());
        assert!(lock.is_shared());
        let shared = lock.try_enter().unwrap();
        refused(&lock);
        drop(shared);
        assert_eq!(*lock.lock().unwrap(), 2);
    }

    /// A signal handler that interrupts a thread between the two steps of its first lock does the same.
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

    /// Otherwise a thread with a real-time priority would keep a core that the owner needs to leave.
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
            // The name in parentheses may contain any characters.
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
