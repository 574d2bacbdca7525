//! Waiting, while operations of several stages advance.
//!
//! Another process may wait for a later stage of an operation that this one has begun and not yet waited for. So every call
//! that waits also waits for what these operations wait for, and lets them go on. While there are none, which is mostly
//! so, a wait is the engine's own.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::abi::*;
use crate::error::{Result, checked};
use crate::requests::{Operation, State, find};

static STAGED: Mutex<Vec<Request>> = Mutex::new(Vec::new());
/// Operations whose requests were freed while they were under way.
static ORPHANS: Mutex<Vec<Request>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn staged() -> MutexGuard<'static, Vec<Request>> {
    STAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This operation advances in all calls that wait, until it is removed.
pub fn add(request: Request) {
    let mut staged = staged();
    staged.push(request);
    COUNT.store(staged.len(), Ordering::Release);
}

/// Nobody will ask for this operation any more: it advances as those of stages do, and is forgotten when it is complete.
pub fn orphan(request: Request) {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    orphans.push(request);
    drop(orphans);
    if !staged().contains(&request) {
        add(request);
    }
    forget_orphans();
}

/// The engine sees operations through that were freed while they were under way: it does not let this process leave while others may still receive
/// what they send. Their memory stays.
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
    COUNT.store(0, Ordering::Release);
}

/// Forgets those that are complete.
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

/// It is complete, or forgotten.
pub fn remove(request: Request) {
    if is_idle() {
        return;
    }
    let mut staged = staged();
    staged.retain(|&it| it != request);
    COUNT.store(staged.len(), Ordering::Release);
}

/// Whether no operation has to advance.
#[inline(always)]
pub fn is_idle() -> bool {
    COUNT.load(Ordering::Acquire) == 0
}

/// Waits for one request of the engine's. The code is that of the operation, not of the wait.
pub fn wait(request: rg::Request, status: &mut rg::Status) -> c_int {
    let mut own = [request];
    wait_any(&mut own, status).1
}

/// Waits for one of these, which becomes null; its index and code.
pub fn wait_any(own: &mut [rg::Request], status: &mut rg::Status) -> (usize, c_int) {
    loop {
        if let Some(found) = wait_once(own, status) {
            return found;
        }
    }
}

/// Waits until one of these is complete, which becomes null and is told with its code, or until an operation has gone on.
pub fn wait_once(own: &mut [rg::Request], status: &mut rg::Status) -> Option<(usize, c_int)> {
    let mut round = Round::new(own);
    let (index, code) = round.wait(status);
    match index {
        Some(index) if index < own.len() => {
            own[index] = rg::REQUEST_NULL;
            Some((index, code))
        }
        Some(index) => {
            round.tell(index, status, code);
            drop(round);
            forget_orphans();
            None
        }
        // The wait itself has failed: so has everything that is waited for.
        None => Some((0, code)),
    }
}

/// Waits until this operation is complete or inactive.
pub fn wait_operation(request: Request) -> Result {
    loop {
        let found = find(request)?;
        let mut operation = found.operation();
        let Some(inner) = operation.as_mut() else {
            return Ok(());
        };
        if inner.state() != State::Pending {
            return Ok(());
        }
        let own = inner.waits_for().len();
        let mut status = rg::Status::default();
        let mut round = Round::without(inner.waits_for(), request);
        let (index, code) = round.wait(&mut status);
        match index {
            Some(index) if index < own => inner.completed(index, &status, code),
            Some(index) => round.tell(index, &status, code),
            None => checked(code)?,
        }
    }
}

/// Lets everything go on that can, without waiting.
pub fn advance() {
    // SAFETY: it takes nothing.
    unsafe { rg::rg_progress() };
    while !is_idle() {
        let mut round = Round::new(&[]);
        let mut status = rg::Status::default();
        match round.test(&mut status) {
            Some((index, code)) => round.tell(index, &status, code),
            None => break,
        }
    }
    forget_orphans();
}

/// Lets an operation go on as far as it can without waiting.
pub fn advance_one(operation: &mut dyn Operation) {
    while operation.state() == State::Pending {
        let mut requests = operation.waits_for().to_vec();
        let mut status = rg::Status::default();
        match test_any(&mut requests, &mut status) {
            Some((index, code)) => operation.completed(index, &status, code),
            None => return,
        }
    }
}

fn test_any(requests: &mut [rg::Request], status: &mut rg::Status) -> Option<(usize, c_int)> {
    if requests.iter().all(|it| *it == rg::REQUEST_NULL) {
        return None;
    }
    let (mut index, mut done) = (-1, 0);
    let count = requests.len() as c_int;
    // SAFETY: the array has this length; the others are written.
    let code =
        unsafe { rg::rg_testany(count, requests.as_mut_ptr(), &mut index, &mut done, status) };
    (done != 0 && index >= 0).then_some((index as usize, code))
}

/// The requests to wait for: the caller's, then those of all staged operations that nobody else is at.
struct Round {
    requests: Vec<rg::Request>,
    parts: Vec<Part>,
}

struct Part {
    operation: MutexGuard<'static, Option<Box<dyn Operation>>>,
    /// Of its first request.
    begin: usize,
}

impl Round {
    fn new(own: &[rg::Request]) -> Round {
        Round::without(own, REQUEST_NULL)
    }

    /// Without an operation that the caller has locked.
    fn without(own: &[rg::Request], except: Request) -> Round {
        let mut round = Round {
            requests: own.to_vec(),
            parts: Vec::new(),
        };
        for &request in staged().iter().filter(|&&it| it != except) {
            let Some(operation) = find(request).ok().and_then(|found| found.try_operation()) else {
                continue;
            };
            if let Some(inner) = operation.as_ref()
                && inner.state() == State::Pending
            {
                let begin = round.requests.len();
                round.requests.extend_from_slice(inner.waits_for());
                round.parts.push(Part { operation, begin });
            }
        }
        round
    }

    fn wait(&mut self, status: &mut rg::Status) -> (Option<usize>, c_int) {
        let mut index = -1;
        let count = self.requests.len() as c_int;
        // SAFETY: the array has this length; the others are written.
        let code = unsafe { rg::rg_waitany(count, self.requests.as_mut_ptr(), &mut index, status) };
        (usize::try_from(index).ok(), code)
    }

    fn test(&mut self, status: &mut rg::Status) -> Option<(usize, c_int)> {
        test_any(&mut self.requests, status)
    }

    /// Tells the operation whose request is complete.
    fn tell(&mut self, index: usize, status: &rg::Status, code: c_int) {
        let part = self.parts.iter_mut().rfind(|part| part.begin <= index);
        if let Some(part) = part
            && let Some(operation) = part.operation.as_mut()
        {
            operation.completed(index - part.begin, status, code);
        }
    }
}
