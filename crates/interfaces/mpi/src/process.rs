//! The state of this process: before, during and after the use of MPI.
//!
//! MPI is in use between MPI_Init and MPI_Finalize, and while there is a session. When it is no longer in use, sessions
//! may begin later. So this process stays a task of the engine, may end at any time, and leaves the job when it ends.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Result, checked};
use crate::progress;
use crate::window;

/// The progress of this process from MPI_Init to MPI_Finalize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// MPI has not been initialized.
    Before,
    /// MPI has been initialized and not finalized.
    During,
    /// MPI has been finalized.
    After,
}

static STAGE: AtomicU8 = AtomicU8::new(Stage::Before as u8);
static SESSIONS: AtomicUsize = AtomicUsize::new(0);
static LEVEL: AtomicI32 = AtomicI32::new(THREAD_SINGLE);
/// The kernel's thread id of the thread that has initialized MPI; 0 if none has.
static MAIN: AtomicI32 = AtomicI32::new(0);
static ENGINE: Mutex<Engine> = Mutex::new(Engine::Unused);

/// Whether this process is a task of the engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Unused,
    InUse,
    /// MPI is not in use, but may be used again.
    Spare,
    Left,
}

fn engine() -> MutexGuard<'static, Engine> {
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the stage of this process.
pub fn stage() -> Stage {
    match STAGE.load(Ordering::Acquire) {
        0 => Stage::Before,
        1 => Stage::During,
        _ => Stage::After,
    }
}

/// Returns whether MPI is in use.
pub fn is_active() -> bool {
    stage() == Stage::During || SESSIONS.load(Ordering::Acquire) != 0
}

/// Returns the level of thread support that was provided.
pub fn thread_level() -> c_int {
    LEVEL.load(Ordering::Relaxed)
}

/// Whether several threads may call MPI at once, because MPI_Init or any session has allowed it. Never reset.
static MANY_THREADS: AtomicBool = AtomicBool::new(false);

fn expect_threads(level: c_int) {
    if level == THREAD_MULTIPLE {
        MANY_THREADS.store(true, Ordering::Release);
    }
}

/// Returns whether several threads may call MPI at once.
#[inline(always)]
pub fn has_many_threads() -> bool {
    MANY_THREADS.load(Ordering::Relaxed)
}

/// Returns the name of a level of thread support.
pub fn level_name(level: c_int) -> &'static str {
    match level {
        THREAD_MULTIPLE => "MPI_THREAD_MULTIPLE",
        THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        _ => "MPI_THREAD_SINGLE",
    }
}

/// Returns the kernel's thread id of this thread. That of the standard library is not available in `atexit` functions.
fn this_thread() -> c_int {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }
}

/// Returns whether this thread has initialized MPI.
pub fn is_main_thread() -> bool {
    MAIN.load(Ordering::Relaxed) == this_thread()
}

/// Fails unless MPI is in use.
pub fn require() -> Result {
    if is_active() {
        return Ok(());
    }
    let text = match stage() {
        Stage::After => "MPI has been finalized; no further calls are allowed",
        _ => "MPI is not initialized (call MPI_Init first)",
    };
    Err(Error::new(ERR_OTHER, text))
}

/// Makes this process a task of the engine if it is not one yet.
fn enter(engine: &mut Engine) -> Result {
    match engine {
        Engine::InUse => return Ok(()),
        Engine::Left => {
            return Err(Error::new(
                ERR_OTHER,
                "this process is ending and has left its job: MPI cannot be used any more",
            ));
        }
        // SAFETY: the call takes a number and no pointers.
        Engine::Spare => checked(unsafe { rg::rg_may_end(0) })?,
        Engine::Unused => {
            // SAFETY: the call has no arguments and no preconditions.
            checked(unsafe { rg::rg_init() })?;
            // SAFETY: the callback takes no arguments and does not unwind.
            unsafe { libc::atexit(leave_at_exit) };
        }
    }
    *engine = Engine::InUse;
    Ok(())
}

/// Tells the engine that this process may end, if MPI is not in use.
fn rest(engine: &mut Engine) -> Result {
    if is_active() || *engine != Engine::InUse {
        return Ok(());
    }
    *engine = Engine::Spare;
    // SAFETY: the call takes a number and no pointers.
    checked(unsafe { rg::rg_may_end(1) })
}

/// Leaves the job when a process that has used MPI ends.
extern "C" fn leave_at_exit() {
    // A thread that is in a call when the process ends never releases the lock.
    if !is_active()
        && let Ok(mut engine) = ENGINE.try_lock()
    {
        let _ = leave(&mut engine);
    }
}

fn leave(engine: &mut Engine) -> Result {
    if !matches!(*engine, Engine::InUse | Engine::Spare) {
        return Ok(());
    }
    *engine = Engine::Left;
    // SAFETY: the call has no arguments and no preconditions.
    checked(unsafe { rg::rg_finalize() })
}

/// Joins the job, and makes MPI_COMM_WORLD and MPI_COMM_SELF.
pub fn initialize(level: c_int) -> Result {
    let mut engine = engine();
    if stage() != Stage::Before {
        return Err(Error::new(
            ERR_OTHER,
            "MPI was already initialized, which is possible only once",
        ));
    }
    enter(&mut engine)?;
    MAIN.store(this_thread(), Ordering::Relaxed);
    LEVEL.store(level, Ordering::Relaxed);
    expect_threads(level);
    communicator::make_world()?;
    STAGE.store(Stage::During as u8, Ordering::Release);
    Ok(())
}

/// Finalizes MPI.
pub fn finalize() -> Result {
    let text = match stage() {
        Stage::During => {
            window::leave_all();
            progress::give_away_orphans();
            communicator::leave_world()?;
            let mut engine = engine();
            STAGE.store(Stage::After as u8, Ordering::Release);
            return rest(&mut engine);
        }
        Stage::Before => "MPI is not initialized (call MPI_Init first)",
        Stage::After => "MPI has already been finalized",
    };
    Err(Error::new(ERR_OTHER, text))
}

/// Counts a new session, with this level of thread support.
pub fn begin_session(level: c_int) -> Result {
    let mut engine = engine();
    enter(&mut engine)?;
    expect_threads(level);
    if stage() != Stage::During {
        LEVEL.fetch_max(level, Ordering::Relaxed);
    }
    SESSIONS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Counts the end of a session.
pub fn end_session() -> Result {
    let mut engine = engine();
    SESSIONS.fetch_sub(1, Ordering::AcqRel);
    rest(&mut engine)
}

/// Ends the job with this code. As with `exit`, the low eight bits are the status.
pub fn abort(code: c_int) -> ! {
    // SAFETY: the calls take a number or nothing. Outside a job they fail, and only this process ends.
    unsafe {
        match code & 0xff {
            // The engine's abort always reports a failure, so status 0 needs `rg_halt`.
            0 => rg::rg_halt(),
            _ => rg::rg_abort(code),
        };
        libc::_exit(code & 0xff)
    }
}
