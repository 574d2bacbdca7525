//! Waiting, while multi-stage operations advance.
//!
//! Another process may wait for a later stage of an operation that this process has begun but does not wait for yet. So
//! every call that waits also waits for the requests of these operations, and advances them. While there are none,
//! which is the usual case, a wait is the engine's own.

pub mod watch;

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::abi::*;
use crate::error::{Result, checked};
use crate::process;
use crate::requests::{FoundRequest, LockedOperation, Operation, State, find};
use watch::Watch;

static STAGED: Mutex<Vec<Request>> = Mutex::new(Vec::new());
/// Operations whose requests were freed while they were pending.
static ORPHANS: Mutex<Vec<Request>> = Mutex::new(Vec::new());
static STAGED_COUNT: AtomicUsize = AtomicUsize::new(0);

fn staged() -> MutexGuard<'static, Vec<Request>> {
    STAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets this operation advance in all calls that wait, until it is removed.
pub fn add(request: Request) {
    let mut staged = staged();
    staged.push(request);
    STAGED_COUNT.store(staged.len(), Ordering::Release);
}

/// Adds an operation whose request was freed while it was pending. It advances like multi-stage operations, and is
/// freed when it is complete.
pub fn orphan(request: Request) {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    orphans.push(request);
    drop(orphans);
    if !staged().contains(&request) {
        add(request);
    }
    forget_orphans();
}

/// Hands operations whose requests were freed over to the engine, which completes them: it lets this process leave only
/// when no other process can still receive what they send. Their memory is leaked.
pub fn give_away_orphans() {
    advance();
    let orphans = std::mem::take(&mut *ORPHANS.lock().unwrap_or_else(PoisonError::into_inner));
    for request in orphans {
        let Some(mut operation) = find(request).ok().and_then(|found| found.try_operation()) else {
            continue;
        };
        if let Some(inner) = operation.as_mut()
            && inner.state() == State::Pending
        {
            let waits_for = inner.waits_for().to_vec();
            waits_for.into_iter().for_each(crate::requests::detach);
        }
    }
    staged().clear();
    STAGED_COUNT.store(0, Ordering::Release);
}

/// Frees the complete ones among the operations whose requests were freed.
fn forget_orphans() {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    if orphans.is_empty() {
        return;
    }
    let is_pending = |request: &Request| {
        let operation = find(*request).ok().and_then(|found| found.try_operation());
        operation.is_none_or(|operation| {
            operation
                .as_ref()
                .is_some_and(|it| it.state() == State::Pending)
        })
    };
    let (pending, over): (Vec<_>, Vec<_>) = orphans.drain(..).partition(is_pending);
    *orphans = pending;
    drop(orphans);
    for request in over {
        if let Ok(found) = find(request) {
            crate::requests::release(request, found);
        }
    }
}

/// Removes an operation that is complete or freed.
pub fn remove(request: Request) {
    if is_idle() {
        return;
    }
    let mut staged = staged();
    staged.retain(|&it| it != request);
    STAGED_COUNT.store(staged.len(), Ordering::Release);
}

/// Returns whether no operation has to advance.
#[inline(always)]
pub fn is_idle() -> bool {
    STAGED_COUNT.load(Ordering::Acquire) == 0
}

/// Waits for one request of the engine. Returns the code of the operation, not of the wait.
pub fn wait(request: rg::Request, status: &mut rg::Status) -> c_int {
    wait_any(&[request], status).1
}

/// Waits for one of these requests, which is freed. Returns its index and code.
pub fn wait_any(own: &[rg::Request], status: &mut rg::Status) -> (usize, c_int) {
    loop {
        match wait_once(own, &[], &[], status) {
            Waited::Complete(index, code) => return (index, code),
            Waited::Advanced => {}
            // If the wait has failed, all requests have.
            Waited::Failed(code) => return (0, code),
        }
    }
}

/// The result of a wait.
pub enum Waited {
    /// The request with this index is complete, with this code, and has been freed.
    Complete(usize, c_int),
    /// The caller must release its operations and check again: a multi-stage operation has advanced, another thread has
    /// released an operation that is waited for, or another thread asks for one that this thread has locked.
    Advanced,
    /// The wait itself has failed, with this code.
    Failed(c_int),
}

/// Waits until one of `own` is complete, a multi-stage operation has advanced, or another thread has released one of
/// `elsewhere`. `held` are the addresses of operations that the caller has locked.
pub fn wait_once(
    own: &[rg::Request],
    held: &[usize],
    elsewhere: &[FoundRequest],
    status: &mut rg::Status,
) -> Waited {
    let mut set = WaitSet::new(own);
    set.held.extend_from_slice(held);
    set.elsewhere.extend_from_slice(elsewhere);
    match set.wait(status) {
        Waited::Complete(index, code) if index < own.len() => Waited::Complete(index, code),
        Waited::Complete(index, code) => {
            set.tell(index, status, code);
            drop(set);
            advance_staged();
            forget_orphans();
            Waited::Advanced
        }
        waited => waited,
    }
}

/// Waits until this operation is complete or inactive.
pub fn wait_operation(request: Request) -> Result {
    loop {
        let found = find(request)?;
        let mut status = rg::Status::default();
        let Some(mut operation) = found.try_operation() else {
            if let Waited::Failed(code) = wait_once(&[], &[], &[found], &mut status) {
                checked(code)?;
            }
            continue;
        };
        let Some(inner) = operation.as_mut() else {
            return Ok(());
        };
        if inner.state() != State::Pending {
            return Ok(());
        }
        let own = inner.waits_for();
        if let &[mut only] = own
            && is_idle()
            && !process::has_many_threads()
        {
            // SAFETY: the request belongs to the engine, and the status may be written.
            let code = unsafe { rg::rg_wait(&mut only, &mut status) };
            if only != rg::REQUEST_NULL {
                // Only the wait has failed.
                return checked(code);
            }
            inner.completed(0, &status, code);
            continue;
        }
        let own = own.len();
        let mut set = WaitSet::without(inner.waits_for(), request);
        set.held.push(found.address());
        match set.wait(&mut status) {
            Waited::Complete(index, code) if index < own => inner.completed(index, &status, code),
            Waited::Complete(index, code) => {
                set.tell(index, &status, code);
                drop(set);
                drop(operation);
                advance_staged();
            }
            Waited::Advanced => {}
            Waited::Failed(code) => checked(code)?,
        }
    }
}

/// Advances everything as far as possible without blocking.
pub fn advance() {
    // SAFETY: the call has no arguments and no preconditions.
    unsafe { rg::rg_progress() };
    while !is_idle() {
        let mut set = WaitSet::new(&[]);
        let mut status = rg::Status::default();
        let Some((index, code)) = test_any(&mut set.requests, &mut status) else {
            break;
        };
        set.tell(index, &status, code);
        drop(set);
        advance_staged();
    }
    forget_orphans();
}

/// Checks each multi-stage operation once that no other thread has locked, and advances it as far as possible. When one
/// operation has advanced, others usually can too, and waiting for each in turn would take time proportional to their
/// number, each time.
fn advance_staged() {
    let requests = staged().clone();
    for request in requests {
        let operation = find(request).ok().and_then(|found| found.try_operation());
        if let Some(mut operation) = operation
            && let Some(inner) = operation.as_mut()
        {
            advance_one(inner.as_mut());
        }
    }
}

/// Advances an operation as far as possible without blocking.
pub fn advance_one(operation: &mut dyn Operation) {
    while operation.state() == State::Pending {
        let mut requests = operation.waits_for().to_vec();
        let mut status = rg::Status::default();
        let Some((index, code)) = test_any(&mut requests, &mut status) else {
            break;
        };
        operation.completed(index, &status, code);
    }
}

fn test_any(requests: &mut [rg::Request], status: &mut rg::Status) -> Option<(usize, c_int)> {
    if requests.iter().all(|it| *it == rg::REQUEST_NULL) {
        return None;
    }
    let (mut index, mut done) = (-1, 0);
    let count = requests.len() as c_int;
    // SAFETY: the array has this length; the call may write the other arguments.
    let code =
        unsafe { rg::rg_testany(count, requests.as_mut_ptr(), &mut index, &mut done, status) };
    (done != 0 && index >= 0).then_some((index as usize, code))
}

/// The requests to wait for: those of the caller, then those of all multi-stage operations that no other thread has
/// locked.
struct WaitSet {
    requests: Vec<rg::Request>,
    staged: Vec<StagedWait>,
    /// The addresses of operations that the caller has locked.
    held: Vec<usize>,
    /// Operations that other threads have locked.
    elsewhere: Vec<FoundRequest>,
}

/// Number of polls before one of several threads sleeps in such a way that the others can wake it, which costs about as
/// much as a message.
const POLLS_BEFORE_SLEEP: usize = 100;

/// A multi-stage operation whose requests are waited for.
struct StagedWait {
    operation: LockedOperation,
    /// Index of its first request.
    begin: usize,
}

impl WaitSet {
    fn new(own: &[rg::Request]) -> WaitSet {
        WaitSet::without(own, REQUEST_NULL)
    }

    /// Returns the set without an operation that the caller has locked.
    fn without(own: &[rg::Request], except: Request) -> WaitSet {
        let mut set = WaitSet {
            requests: own.to_vec(),
            staged: Vec::new(),
            held: Vec::new(),
            elsewhere: Vec::new(),
        };
        for &request in staged().iter().filter(|&&it| it != except) {
            let Ok(found) = find(request) else { continue };
            let Some(operation) = found.try_operation() else {
                set.elsewhere.push(found);
                continue;
            };
            if let Some(inner) = operation.as_ref()
                && inner.state() == State::Pending
            {
                let begin = set.requests.len();
                set.requests.extend_from_slice(inner.waits_for());
                set.staged.push(StagedWait { operation, begin });
            }
        }
        set
    }

    fn wait(&mut self, status: &mut rg::Status) -> Waited {
        let watched = self.requests.len();
        let _watch = match self.needs_watch() {
            false => None,
            true => {
                for _ in 0..POLLS_BEFORE_SLEEP {
                    if let Some((index, code)) = test_any(&mut self.requests, status) {
                        return Waited::Complete(index, code);
                    }
                }
                match Watch::begin(&self.elsewhere, self.addresses_held()) {
                    Ok(Some(watch)) => {
                        self.requests.push(watch.request());
                        Some(watch)
                    }
                    Ok(None) => return Waited::Advanced,
                    Err(code) => return Waited::Failed(code),
                }
            }
        };
        let mut index = -1;
        let count = self.requests.len() as c_int;
        // SAFETY: the array has this length; the call may write the other arguments.
        let code = unsafe { rg::rg_waitany(count, self.requests.as_mut_ptr(), &mut index, status) };
        match usize::try_from(index) {
            Ok(index) if index == watched => Waited::Advanced,
            Ok(index) => Waited::Complete(index, code),
            Err(_) => Waited::Failed(code),
        }
    }

    /// Returns whether other threads have locked operations that are waited for, or may ask for some that this thread
    /// has locked.
    fn needs_watch(&self) -> bool {
        let has_any = !self.held.is_empty() || !self.staged.is_empty();
        !self.elsewhere.is_empty() || (has_any && process::has_many_threads())
    }

    fn addresses_held(&self) -> Vec<usize> {
        let staged = self.staged.iter().map(|part| part.operation.address());
        self.held.iter().copied().chain(staged).collect()
    }

    /// Notifies the operation whose request is complete.
    fn tell(&mut self, index: usize, status: &rg::Status, code: c_int) {
        let part = self.staged.iter_mut().rfind(|part| part.begin <= index);
        if let Some(part) = part
            && let Some(operation) = part.operation.as_mut()
        {
            operation.completed(index - part.begin, status, code);
        }
    }
}
