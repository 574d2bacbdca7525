//! Performance variables. Counters have a cost only while a handle of one is started.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Result};
use crate::objects::{Kind, Table};
use crate::requests;

/// A performance variable. Its values are of type MPI_UNSIGNED_LONG_LONG.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    source: Source,
}

#[derive(Clone, Copy)]
enum Source {
    /// A counter, which counts while a handle is started.
    Counter(&'static AtomicU64),
    /// A present level.
    Level(fn() -> u64),
}

static MESSAGES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static RECEIVES: AtomicU64 = AtomicU64::new(0);

/// Whether any counter is started.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// Number of started counters.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// All performance variables.
pub static ALL: [Variable; 5] = [
    Variable {
        name: "regatta_messages_sent",
        description: "Messages started by sends of all modes",
        source: Source::Counter(&MESSAGES),
    },
    Variable {
        name: "regatta_bytes_sent",
        description: "Bytes of these messages",
        source: Source::Counter(&BYTES),
    },
    Variable {
        name: "regatta_receives",
        description: "Receives that were started, blocking or not",
        source: Source::Counter(&RECEIVES),
    },
    Variable {
        name: "regatta_requests",
        description: "Requests that are not yet completed or freed",
        source: Source::Level(|| requests::open() as u64),
    },
    Variable {
        name: "regatta_communicators",
        description: "Communicators that are not freed",
        source: Source::Level(|| communicator::all().len() as u64),
    },
];

/// Returns whether any counter is started.
#[inline(always)]
pub fn is_counting() -> bool {
    COUNTING.load(Ordering::Relaxed)
}

/// Counts a message of this many bytes that is sent.
#[inline(always)]
pub fn sent(bytes: usize) {
    if is_counting() {
        count_sent(bytes);
    }
}

#[cold]
fn count_sent(bytes: usize) {
    MESSAGES.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Counts a receive that begins.
#[inline(always)]
pub fn receives() {
    if COUNTING.load(Ordering::Relaxed) {
        RECEIVES.fetch_add(1, Ordering::Relaxed);
    }
}

impl Variable {
    /// Returns its class (MPI_T_PVAR_CLASS_).
    pub fn class(&self) -> c_int {
        match self.source {
            Source::Counter(_) => T_PVAR_CLASS_COUNTER,
            Source::Level(_) => T_PVAR_CLASS_LEVEL,
        }
    }

    /// Returns whether it can be neither started, stopped nor written.
    pub fn is_continuous(&self) -> bool {
        matches!(self.source, Source::Level(_))
    }
}

/// A handle in a session.
struct Handle {
    variable: &'static Variable,
    /// The count of earlier periods.
    kept: u64,
    /// The counter at the beginning of the present period, while it is started.
    since: Option<u64>,
}

impl Handle {
    fn read(&self) -> u64 {
        match (self.variable.source, self.since) {
            (Source::Level(level), _) => level(),
            (Source::Counter(counter), Some(since)) => {
                let now = counter.load(Ordering::Relaxed);
                self.kept.wrapping_add(now.wrapping_sub(since))
            }
            (Source::Counter(_), None) => self.kept,
        }
    }

    fn start(&mut self) {
        if let (Source::Counter(counter), None) = (self.variable.source, self.since) {
            self.since = Some(counter.load(Ordering::Relaxed));
            STARTED.fetch_add(1, Ordering::AcqRel);
            COUNTING.store(true, Ordering::Release);
        }
    }

    fn stop(&mut self) {
        self.kept = self.read();
        if self.since.take().is_some() && STARTED.fetch_sub(1, Ordering::AcqRel) == 1 {
            COUNTING.store(false, Ordering::Release);
        }
    }

    fn set(&mut self, value: u64) {
        self.kept = value;
        if let (Source::Counter(counter), Some(since)) = (self.variable.source, &mut self.since) {
            *since = counter.load(Ordering::Relaxed);
        }
    }

    fn changeable(&self) -> Result {
        if !self.variable.is_continuous() {
            return Ok(());
        }
        let text = format!("{} is read-only", self.variable.name);
        Err(Error::new(T_ERR_PVAR_NO_WRITE, text))
    }

    fn startable(&self) -> Result {
        if !self.variable.is_continuous() {
            return Ok(());
        }
        let text = format!("{} cannot be started or stopped", self.variable.name);
        Err(Error::new(T_ERR_PVAR_NO_STARTSTOP, text))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A session of a tool, with its handles.
#[derive(Default)]
pub struct Session {
    handles: Mutex<Handles>,
}

#[derive(Default)]
struct Handles {
    all: HashMap<usize, Handle>,
}

static SESSIONS: Table<Arc<Session>> = Table::new(Kind::Tool);

/// An action on handles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Starts counting.
    Start,
    /// Stops counting.
    Stop,
    /// Resets the count to 0.
    Reset,
}

/// Begins a session.
pub fn begin() -> Result<T_pvar_session> {
    let session = SESSIONS.insert(Arc::default()).map(T_pvar_session);
    session.ok_or_else(|| Error::new(T_ERR_OUT_OF_SESSIONS, "there are too many sessions"))
}

fn no_session() -> Error {
    let text = "this is not a valid session of performance variables; it may have been freed";
    Error::new(T_ERR_INVALID_SESSION, text)
}

/// Ends a session with all its handles.
pub fn end(session: T_pvar_session) -> Result {
    SESSIONS.remove(session.0).map(drop).ok_or_else(no_session)
}

/// Returns the session with this handle.
pub fn session(session: T_pvar_session) -> Result<Arc<Session>> {
    SESSIONS.get(session.0).ok_or_else(no_session)
}

impl Session {
    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        handle: T_pvar_handle,
        act: impl FnOnce(&mut Handle) -> Result<T>,
    ) -> Result<T> {
        let mut handles = self.handles();
        let found = handles.all.get_mut(&handle.0);
        act(found.ok_or_else(|| super::no_handle("handle of this session"))?)
    }

    /// Makes a handle of a variable.
    pub fn open(&self, index: usize) -> T_pvar_handle {
        // 1 is MPI_T_PVAR_ALL_HANDLES. No number is assigned twice.
        static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        let made = Handle {
            variable: &ALL[index],
            kept: 0,
            since: None,
        };
        self.handles().all.insert(handle, made);
        T_pvar_handle(handle)
    }

    /// Frees a handle.
    pub fn close(&self, handle: T_pvar_handle) -> Result {
        let removed = self.handles().all.remove(&handle.0);
        removed
            .map(drop)
            .ok_or_else(|| super::no_handle("handle of this session"))
    }

    /// Applies an action to a handle, or to all handles that support it.
    pub fn act(&self, handle: T_pvar_handle, act: Act) -> Result {
        let done = |handle: &mut Handle| {
            match act {
                Act::Start | Act::Stop => handle.startable()?,
                Act::Reset => handle.changeable()?,
            }
            match act {
                Act::Start => handle.start(),
                Act::Stop => handle.stop(),
                Act::Reset => handle.set(0),
            }
            Ok(())
        };
        if handle == T_PVAR_ALL_HANDLES {
            let mut handles = self.handles();
            for handle in handles.all.values_mut() {
                if !handle.variable.is_continuous() {
                    done(handle)?;
                }
            }
            return Ok(());
        }
        self.with(handle, done)
    }

    /// Returns the value.
    pub fn read(&self, handle: T_pvar_handle) -> Result<u64> {
        self.with(handle, |it| Ok(it.read()))
    }

    /// Returns the value and resets it to 0.
    pub fn read_and_reset(&self, handle: T_pvar_handle) -> Result<u64> {
        self.with(handle, |it| {
            it.changeable()?;
            let value = it.read();
            it.set(0);
            Ok(value)
        })
    }

    /// Sets the value.
    pub fn write(&self, handle: T_pvar_handle, value: u64) -> Result {
        self.with(handle, |it| {
            it.changeable()?;
            it.set(value);
            Ok(())
        })
    }
}
