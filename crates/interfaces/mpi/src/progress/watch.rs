//! Waiting for what another thread has: an operation that this thread needs is locked by one that advances it, or sleeps until it can.
//!
//! *Asking.* A call that must not wait for the operation's end (MPI_Cancel, MPI_Request_free, MPI_Parrived) *asks* for it. That wakes the thread that sleeps with it, which lets it go
//! and watches it from then on. While somebody asks, nobody else takes the operation ([`FoundRequest::try_operation`]) or falls asleep with it.
//!
//! A thread that is about to sleep *watches* such operations: a request wakes it when one of them has been let go. It looks once more after it has begun to watch, and who lets an
//! operation go looks for watchers after that; so either the thread finds it free, or it is woken. Programs of one thread pay nothing.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::process;
use crate::requests::FoundRequest;
use crate::wake_up;

/// A thread that sleeps.
struct Watcher {
    tag: c_int,
    request: rg::Request,
    /// Where the operations are that it watches.
    operations: Vec<usize>,
    /// Where those are that it has locked meanwhile.
    held: Vec<usize>,
}

/// Threads that sleep, and operations for which others ask.
struct Sleepers {
    watchers: Vec<Watcher>,
    /// Where the operations are, each as often as it is asked for.
    asked: Vec<usize>,
}

impl Sleepers {
    /// Wakes those for which this holds. The lock is held meanwhile, so a watch that has ended is known to be woken, or not to be.
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

/// The call that asks for an operation, until it is dropped.
pub struct Asking(usize);

/// Asks for the operation at this address: whoever sleeps with it lets it go.
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

/// Returns whether somebody asks for the operation at this address.
#[inline]
pub fn is_asked(address: usize) -> bool {
    ASKED_COUNT.load(Ordering::Relaxed) > 0 && sleepers().asked.contains(&address)
}

/// The watch over some operations; it ends when it is dropped.
pub struct Watch {
    tag: c_int,
    request: rg::Request,
}

impl Watch {
    /// Begins to watch, by a thread that has those in `held` locked; `None` if one of the operations is free, or somebody asks for one in `held`. An error is the
    /// engine's code.
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

    /// Returns the request that is complete when one of the operations has been let go, or somebody asks for one that this thread has.
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

/// The operation at this address has been let go.
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
