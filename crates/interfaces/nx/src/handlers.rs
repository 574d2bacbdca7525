//! Functions of the program that run when a message has come, or has gone: as interrupts, once for each call that names one.
//!
//! A handler runs in the program's thread, one at a time: inside the call of NX that the program is in, also while that waits, or between
//! two instructions of the program. Regatta tells of a message in a call only. So when the first handler is named, a thread
//! is started that makes progress while the program is in no call, and interrupts the program by a signal ([`crate::interrupt`]). Programs
//! without handlers have neither.
//!
//! Three rules keep the two threads apart. The other thread makes progress only while `CALLS` is 0, under the lock that a call
//! passes at its begin. It never runs a handler, but puts it into the queue. And the queue is emptied by the program's thread alone.

use std::collections::VecDeque;
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Fault;
use crate::info;
use crate::interrupt;
use crate::rg;
use crate::state::library;

/// Somebody has named a handler.
static IN_USE: AtomicBool = AtomicBool::new(false);
/// Calls that the program's thread is in.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// `masktrap(1)`: no handler runs.
static MASKED: AtomicBool = AtomicBool::new(false);
/// A handler runs.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// The other thread waits for the end of a call.
static AWAITED: AtomicBool = AtomicBool::new(false);
/// Handlers that are going to run.
static PROMISED: AtomicUsize = AtomicUsize::new(0);
/// Handlers that are due.
static QUEUE: Mutex<VecDeque<Due>> = Mutex::new(VecDeque::new());
/// Held by the thread that makes progress in between calls.
static BETWEEN: Mutex<()> = Mutex::new(());
static END_OF_CALL: Condvar = Condvar::new();

/// A function of a C program.
pub type CHandler = unsafe extern "C" fn(c_long, c_long, c_long, c_long);
/// A function of a C program that is handed a number of the program's own.
pub type ExtendedCHandler = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long);
/// A subroutine of a Fortran program.
pub type FortranHandler = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int);
/// A subroutine of a Fortran program that is handed such a number.
pub type ExtendedFortranHandler =
    unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int);

/// A handler, by its arguments.
#[derive(Clone, Copy)]
pub enum Handler {
    C(CHandler),
    ExtendedC(ExtendedCHandler, c_long),
    Fortran(FortranHandler),
    ExtendedFortran(ExtendedFortranHandler, c_int),
}

/// Facts that a handler is told.
#[derive(Clone, Copy)]
pub enum Told {
    /// Of a send: its type, length, node and pid.
    Sent([c_long; 4]),
    /// Of a message that has come.
    Came(rg::Status),
}

/// A handler that is to run.
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

/// Whether the program has named one.
pub fn are_used() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

/// One more handler is going to run: calls make room for it from now on. The calling thread is the program's.
pub fn promise() -> Result<(), Fault> {
    let promised = PROMISED.fetch_add(1, Ordering::SeqCst) + 1;
    // The other thread must not allocate when it puts one there.
    let mut queue = queue();
    let missing = promised.saturating_sub(queue.len());
    queue.reserve(missing);
    drop(queue);
    if !IN_USE.load(Ordering::Relaxed) {
        // The call that this one is in has not been counted.
        CALLS.fetch_add(1, Ordering::SeqCst);
        let started = interrupt::start();
        IN_USE.store(started.is_ok(), Ordering::SeqCst);
        CALLS.fetch_sub(1, Ordering::SeqCst);
        started?;
    }
    Ok(())
}

/// A promised one is not going to run.
pub fn take_back() {
    PROMISED.fetch_sub(1, Ordering::SeqCst);
}

/// A call of the program's: handlers may run in it.
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
        // A handler's call.
        let value = call();
        CALLS.fetch_sub(1, Ordering::SeqCst);
        return value;
    }
    // A look that the other thread has begun is over.
    drop(between());
    run_due();
    let value = call();
    // A message of the program's to itself rings nobody.
    // SAFETY: a plain call. A failure is that of the next call, too.
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

/// The program ends: the other thread does nothing any more.
pub fn end() {
    if IN_USE.load(Ordering::Relaxed) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        drop(between());
    }
}

/// Runs in the other thread: `progress` is called while the program is in no call.
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

/// A handler is due. It runs at once if it can.
pub fn put(due: Due) {
    queue().push_back(due);
    if interrupt::is_programs_thread() {
        run_due();
    }
}

/// Whether handlers wait for an interrupt. At the end of a call they run without.
pub fn are_due() -> bool {
    let could = !MASKED.load(Ordering::SeqCst) && CALLS.load(Ordering::SeqCst) == 0;
    could && !queue().is_empty()
}

/// Runs what is due, in the program's thread.
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

/// Runs one handler. The numbers of the program's last message stay as they are.
fn run(due: Due) {
    let told = match due.told {
        Told::Sent(told) => told,
        Told::Came(status) => info::describe(library(), &status),
    };
    let before = info::replace(told);
    let [kind, count, node, ptype] = told;
    // SAFETY: the program's function, with the arguments that its call says it has. No reference of ours is held.
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

/// The program's thread has been interrupted in its own code: runs what is due, unless it is in a call.
pub fn run_interrupting() {
    if CALLS.load(Ordering::SeqCst) > 0 {
        return;
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    run_due();
    end_of_calls();
}

/// Forbids handlers, or allows them and runs those that are due. Returns what it was.
pub fn mask(masked: bool) -> bool {
    let before = MASKED.swap(masked, Ordering::SeqCst);
    run_due();
    before
}
