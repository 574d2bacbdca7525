//! Waiting for an operation that another thread has locked, because that thread advances it or sleeps until it can.
//!
//! *Asking.* A call that must not wait for the operation's completion (MPI_Cancel, MPI_Request_free, MPI_Parrived)
//! *asks* for it. That wakes the thread that sleeps with it; this thread releases the operation and watches it from
//! then on. While a thread asks, no other thread locks the operation ([`FoundRequest::try_operation`]) or falls asleep
//! with it.
//!
//! A thread that is about to sleep *watches* such operations: a request wakes it when one of them has been released. It
//! checks the operations once more after it has begun to watch, and a thread that releases an operation checks for
//! watchers afterwards. So either the thread finds the operation free, or it is woken. Single-threaded programs pay
//! nothing.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::process;
use crate::requests::FoundRequest;
use crate::wake_up;

/// A sleeping thread.
struct Watcher {
    tag: c_int,
    request: rg::Request,
    /// Addresses of the operations that it watches.
    operations: Vec<usize>,
    /// Addresses of the operations that it has locked meanwhile.
    held: Vec<usize>,
}

/// Sleeping threads, and operations that other threads ask for.
struct Sleepers {
    watchers: Vec<Watcher>,
    /// Addresses of the operations, each once for each thread that asks for it.
    asked: Vec<usize>,
}

impl Sleepers {
    /// Wakes the watchers for which `is` returns true. The caller holds the lock meanwhile, so for a watch that has
    /// ended it is certain whether it has been woken.
    fn wake(&mut self, is: impl Fn(&Watcher) -> bool) {
        for watcher in self.watchers.extract_if(.., |it| is(it)) {
            let _ = wake_up::wake(watcher.tag);
        }
        self.count();
    }

    fn count(&self) {
        COUNT.store(self.watchers.len(), Ordering::Relaxed);
        ASKED_COUNT.store(self.asked.len(), Ordering::Relaxed);
    }
}

static SLEEPERS: Mutex<Sleepers> = Mutex::new(Sleepers {
    watchers: Vec::new(),
    asked: Vec::new(),
});
static COUNT: AtomicUsize = AtomicUsize::new(0);
static ASKED_COUNT: AtomicUsize = AtomicUsize::new(0);

fn sleepers() -> MutexGuard<'static, Sleepers> {
    SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for an operation until it is dropped.
pub struct Asking(usize);

/// Asks for the operation at this address: a thread that sleeps with it releases it.
#[cold]
pub fn ask(address: usize) -> Asking {
    let mut sleepers = sleepers();
    sleepers.asked.push(address);
    sleepers.wake(|it| it.held.contains(&address));
    Asking(address)
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut sleepers = sleepers();
        if let Some(at) = sleepers.asked.iter().position(|&it| it == self.0) {
            sleepers.asked.swap_remove(at);
        }
        sleepers.count();
    }
}

/// Returns whether a thread asks for the operation at this address.
#[inline]
pub fn is_asked(address: usize) -> bool {
    ASKED_COUNT.load(Ordering::Relaxed) > 0 && sleepers().asked.contains(&address)
}

/// A watch over operations. It ends when it is dropped.
pub struct Watch {
    tag: c_int,
    request: rg::Request,
}

impl Watch {
    /// Begins to watch the operations in `over`, by a thread that has those in `held` locked. Returns `None` if one of
    /// `over` is free, or if a thread asks for one of `held`. Fails with a code of the engine.
    pub fn begin(over: &[FoundRequest], held: Vec<usize>) -> Result<Option<Watch>, c_int> {
        let (tag, request) = wake_up::sleep().map_err(|_| rg::ERR_MEMORY)?;
        let mut sleepers = sleepers();
        let is_asked = sleepers.asked.iter().any(|it| held.contains(it));
        sleepers.watchers.push(Watcher {
            tag,
            request,
            operations: over.iter().map(FoundRequest::address).collect(),
            held,
        });
        sleepers.count();
        drop(sleepers);
        let watch = Watch { tag, request };
        fence(Ordering::SeqCst);
        let is_any_free = || over.iter().any(|found| found.try_operation().is_some());
        Ok((!is_asked && !is_any_free()).then_some(watch))
    }

    /// Returns the request that completes when one of the operations has been released, or when a thread asks for one
    /// that this thread has locked.
    pub fn request(&self) -> rg::Request {
        self.request
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut sleepers = sleepers();
        let before = sleepers.watchers.len();
        sleepers.watchers.retain(|it| it.request != self.request);
        let is_woken = sleepers.watchers.len() == before;
        sleepers.count();
        drop(sleepers);
        if is_woken {
            // SAFETY: the engine checks requests at each use, so this one may be complete and freed.
            unsafe { rg::rg_wait(&mut self.request, std::ptr::null_mut()) };
        } else {
            wake_up::cancel(self.tag, self.request);
        }
    }
}

/// Wakes the watchers of the operation at this address, which has been released.
#[inline]
pub fn let_go(address: usize) {
    if process::has_many_threads() {
        fence(Ordering::SeqCst);
        if COUNT.load(Ordering::Relaxed) > 0 {
            wake_watchers(address);
        }
    }
}

#[cold]
fn wake_watchers(address: usize) {
    sleepers().wake(|it| it.operations.contains(&address));
}
