//! Functions of the program that run when a message has been received or sent: as interrupts, once per call that names
//! one.
//!
//! A handler runs in the program's thread, one at a time: inside an NX call, even while that waits, or between two
//! instructions of the program. Regatta reports a message only inside a call. Therefore, when the program names its
//! first handler, a thread is started. It makes progress while the program is outside calls, and interrupts the program
//! by a signal ([`crate::interrupt`]). Programs without handlers have neither the thread nor the signal.
//!
//! Three rules keep the two threads apart. The other thread makes progress only while `CALLS` is 0, holding the lock
//! that a call acquires when it begins. The other thread never runs a handler but queues it. And only the program's
//! thread empties the queue.

use std::collections::VecDeque;
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Fault;
use crate::info;
use crate::interrupt;
use crate::rg;
use crate::state::library;

/// Whether the program has named a handler.
static IN_USE: AtomicBool = AtomicBool::new(false);
/// Nesting depth of calls in the program's thread.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// Whether handlers are masked (`masktrap(1)`).
static MASKED: AtomicBool = AtomicBool::new(false);
/// Whether a handler is running.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// Whether the other thread waits for the end of a call.
static AWAITED: AtomicBool = AtomicBool::new(false);
/// Number of handlers that are going to run: announced, but not run yet.
static PROMISED: AtomicUsize = AtomicUsize::new(0);
/// Handlers that are due.
static QUEUE: Mutex<VecDeque<Due>> = Mutex::new(VecDeque::new());
/// Held by the thread that makes progress outside calls.
static BETWEEN: Mutex<()> = Mutex::new(());
static END_OF_CALL: Condvar = Condvar::new();

/// A handler in C.
pub type CHandler = unsafe extern "C" fn(c_long, c_long, c_long, c_long);
/// A handler in C with an extra argument of the program.
pub type ExtendedCHandler = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long);
/// A handler in Fortran.
pub type FortranHandler = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int);
/// A handler in Fortran with an extra argument of the program.
pub type ExtendedFortranHandler =
    unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int);

/// A handler with its extra argument.
#[derive(Clone, Copy)]
pub enum Handler {
    C(CHandler),
    ExtendedC(ExtendedCHandler, c_long),
    Fortran(FortranHandler),
    ExtendedFortran(ExtendedFortranHandler, c_int),
}

/// The message that a handler is called for.
#[derive(Clone, Copy)]
pub enum Told {
    /// A sent message: its type, length, node and pid.
    Sent([c_long; 4]),
    /// A received message.
    Came(rg::Status),
}

/// A handler that is due.
#[derive(Clone, Copy)]
pub struct Due {
    pub handler: Handler,
    pub told: Told,
}

fn queue() -> MutexGuard<'static, VecDeque<Due>> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn between() -> MutexGuard<'static, ()> {
    BETWEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the program has named a handler.
pub fn are_used() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

/// Announces a handler and reserves room for it in the queue. Called in the program's thread.
pub fn promise() -> Result<(), Fault> {
    let promised = PROMISED.fetch_add(1, Ordering::SeqCst) + 1;
    // The other thread must not allocate when it queues the handler.
    let mut queue = queue();
    let missing = promised.saturating_sub(queue.len());
    queue.reserve(missing);
    drop(queue);
    if !IN_USE.load(Ordering::Relaxed) {
        // The call in progress has not been counted, because handlers were not in use.
        CALLS.fetch_add(1, Ordering::SeqCst);
        let started = interrupt::start();
        IN_USE.store(started.is_ok(), Ordering::SeqCst);
        CALLS.fetch_sub(1, Ordering::SeqCst);
        started?;
    }
    Ok(())
}

/// Withdraws an announced handler that is not going to run, or has been taken out of the queue.
pub fn take_back() {
    PROMISED.fetch_sub(1, Ordering::SeqCst);
}

/// Wraps every call of the program: due handlers run in it.
#[inline(always)]
pub fn around<T>(call: impl FnOnce() -> T) -> T {
    if !IN_USE.load(Ordering::Relaxed) {
        return call();
    }
    around_slowly(call)
}

#[inline(never)]
fn around_slowly<T>(call: impl FnOnce() -> T) -> T {
    if CALLS.fetch_add(1, Ordering::SeqCst) > 0 {
        // A call inside a handler.
        let value = call();
        CALLS.fetch_sub(1, Ordering::SeqCst);
        return value;
    }
    // Wait until progress that the other thread is making has ended.
    drop(between());
    run_due();
    let value = call();
    // A message of the program to itself does not wake the other thread.
    // SAFETY: the call takes no arguments. The next call returns the same error.
    unsafe { rg::rg_progress() };
    run_due();
    end_of_calls();
    value
}

fn end_of_calls() {
    CALLS.fetch_sub(1, Ordering::SeqCst);
    if AWAITED.load(Ordering::SeqCst) {
        let _guard = between();
        END_OF_CALL.notify_one();
    }
}

/// Stops the other thread's work, when the program ends.
pub fn end() {
    if IN_USE.load(Ordering::Relaxed) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        drop(between());
    }
}

/// Runs `progress` in the other thread, once the program is outside calls.
pub fn in_between(progress: impl FnOnce()) {
    let mut guard = between();
    AWAITED.store(true, Ordering::SeqCst);
    while CALLS.load(Ordering::SeqCst) > 0 {
        let waited = END_OF_CALL.wait(guard);
        guard = waited.unwrap_or_else(PoisonError::into_inner);
    }
    AWAITED.store(false, Ordering::SeqCst);
    progress();
}

/// Queues a handler, and runs it at once if possible.
pub fn put(due: Due) {
    queue().push_back(due);
    if interrupt::is_programs_thread() {
        run_due();
    }
}

/// Returns whether queued handlers need an interrupt. At the end of a call they run without one.
pub fn are_due() -> bool {
    let could = !MASKED.load(Ordering::SeqCst) && CALLS.load(Ordering::SeqCst) == 0;
    could && !queue().is_empty()
}

/// Runs the queued handlers, in the program's thread.
fn run_due() {
    while !MASKED.load(Ordering::SeqCst) && !RUNNING.load(Ordering::SeqCst) {
        let next = queue().pop_front();
        let Some(due) = next else {
            return;
        };
        take_back();
        RUNNING.store(true, Ordering::SeqCst);
        run(due);
        RUNNING.store(false, Ordering::SeqCst);
    }
}

/// Runs a handler. The description of the program's last message (`msginfo`) is preserved.
fn run(due: Due) {
    let told = match due.told {
        Told::Sent(told) => told,
        Told::Came(status) => info::describe(library(), &status),
    };
    let before = info::replace(told);
    let [kind, count, node, ptype] = told;
    // SAFETY: the program has passed a function with these arguments, and no reference into the library's state is
    // held.
    unsafe {
        match due.handler {
            Handler::C(handler) => handler(kind, count, node, ptype),
            Handler::ExtendedC(handler, own) => handler(kind, count, node, ptype, own),
            Handler::Fortran(handler) => {
                let [a, b, c, d] = &mut told.map(|number| number as c_int);
                handler(a, b, c, d);
            }
            Handler::ExtendedFortran(handler, own) => {
                let ([a, b, c, d], mut own) = (&mut told.map(|number| number as c_int), own);
                handler(a, b, c, d, &mut own);
            }
        }
    }
    info::replace(before);
}

/// Runs queued handlers in the program's thread, which a signal has interrupted, unless it is inside a call.
pub fn run_interrupting() {
    if CALLS.load(Ordering::SeqCst) > 0 {
        return;
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    run_due();
    end_of_calls();
}

/// Masks or unmasks handlers, and in the latter case runs those that are due. Returns the previous state.
pub fn mask(masked: bool) -> bool {
    let before = MASKED.swap(masked, Ordering::SeqCst);
    run_due();
    before
}
