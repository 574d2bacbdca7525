//! This process' part: before, during and after MPI.
//!
//! MPI is in use between MPI_Init and MPI_Finalize, and while there is a session. Whenever it is in use no more, sessions may begin later:
//! so this process stays a task of the engine's then, may end in any way, and leaves when it does.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Result, checked};
use crate::progress;
use crate::window;

/// How far the process is with MPI_Init and MPI_Finalize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// MPI has not been initialized.
    Before,
    /// It has.
    During,
    /// It has been finalized.
    After,
}

static STAGE: AtomicU8 = AtomicU8::new(Stage::Before as u8);
static SESSIONS: AtomicUsize = AtomicUsize::new(0);
static LEVEL: AtomicI32 = AtomicI32::new(THREAD_SINGLE);
/// The system's number of the thread that has initialized MPI; 0: none has.
static MAIN: AtomicI32 = AtomicI32::new(0);
static ENGINE: Mutex<Engine> = Mutex::new(Engine::Unused);

/// Whether this process is a task of the engine's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Unused,
    InUse,
    /// MPI is not in use, and may be again.
    Spare,
    Left,
}

fn engine() -> MutexGuard<'static, Engine> {
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far this process is.
pub fn stage() -> Stage {
    match STAGE.load(Ordering::Acquire) {
        0 => Stage::Before,
        1 => Stage::During,
        _ => Stage::After,
    }
}

/// Whether MPI is in use.
pub fn is_active() -> bool {
    stage() == Stage::During || SESSIONS.load(Ordering::Acquire) != 0
}

/// The level of thread support that was provided.
pub fn thread_level() -> c_int {
    LEVEL.load(Ordering::Relaxed)
}

/// Whether several threads may be in calls at once: MPI_Init or a session has allowed it, whichever. For good.
static MANY_THREADS: AtomicBool = AtomicBool::new(false);

fn expect_threads(level: c_int) {
    if level == THREAD_MULTIPLE {
        MANY_THREADS.store(true, Ordering::Release);
    }
}

/// Whether several threads may be in calls at once.
#[inline(always)]
pub fn has_many_threads() -> bool {
    MANY_THREADS.load(Ordering::Relaxed)
}

/// The name of a level of thread support.
pub fn level_name(level: c_int) -> &'static str {
    match level {
        THREAD_MULTIPLE => "MPI_THREAD_MULTIPLE",
        THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        _ => "MPI_THREAD_SINGLE",
    }
}

/// The system's number of this thread. The standard library's is not there any more in functions of `atexit`.
fn this_thread() -> c_int {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }
}

/// Whether this thread has initialized MPI.
pub fn is_main_thread() -> bool {
    MAIN.load(Ordering::Relaxed) == this_thread()
}

/// MPI has to be in use.
pub fn require() -> Result {
    if is_active() {
        return Ok(());
    }
    let text = match stage() {
        Stage::After => "MPI has been finalized; nothing may follow",
        _ => "MPI is not initialized (MPI_Init comes first)",
    };
    Err(Error::new(ERR_OTHER, text))
}

/// Becomes a task of the engine's, if this process is none yet.
fn enter(engine: &mut Engine) -> Result {
    match engine {
        Engine::InUse => return Ok(()),
        Engine::Left => {
            return Err(Error::new(
                ERR_OTHER,
                "this process ends, and has left its job: MPI cannot be used any more",
            ));
        }
        // SAFETY: the call takes a number and no pointers.
        Engine::Spare => checked(unsafe { rg::rg_may_end(0) })?,
        Engine::Unused => {
            // SAFETY: the call has no arguments and no preconditions.
            checked(unsafe { rg::rg_init() })?;
            // SAFETY: the function takes nothing and does not unwind.
            unsafe { libc::atexit(leave_at_exit) };
        }
    }
    *engine = Engine::InUse;
    Ok(())
}

/// Notes that MPI is not in use for now, if it is not: this process may end.
fn rest(engine: &mut Engine) -> Result {
    if is_active() || *engine != Engine::InUse {
        return Ok(());
    }
    *engine = Engine::Spare;
    // SAFETY: the call takes a number and no pointers.
    checked(unsafe { rg::rg_may_end(1) })
}

/// A process that has used MPI leaves when it ends.
extern "C" fn leave_at_exit() {
    // A thread that is in the midst of a call when the process ends has the lock for ever.
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

/// Joins the job, and makes the world.
pub fn initialize(level: c_int) -> Result {
    let mut engine = engine();
    if stage() != Stage::Before {
        return Err(Error::new(
            ERR_OTHER,
            "MPI was initialized before, and can be only once",
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

/// Forgets the world.
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
        Stage::Before => "MPI is not initialized (MPI_Init comes first)",
        Stage::After => "MPI has been finalized before",
    };
    Err(Error::new(ERR_OTHER, text))
}

/// A session begins, with this level of thread support.
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

/// A session ends.
pub fn end_session() -> Result {
    let mut engine = engine();
    SESSIONS.fetch_sub(1, Ordering::AcqRel);
    rest(&mut engine)
}

/// Ends the job with this code: as of exit, the low eight bits are the status.
pub fn abort(code: c_int) -> ! {
    // SAFETY: the calls take a number or nothing. Outside a job they fail, and only this process ends.
    unsafe {
        match code & 0xff {
            // The engine's abort is a failure, with a status to match.
            0 => rg::rg_halt(),
            _ => rg::rg_abort(code),
        };
        libc::_exit(code & 0xff)
    }
}
